"""The intermediate parser, the layer, the end model (Algorithm 1)."""

import abc
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

import spigot
from spigot import config
from spigot.data.batch import Batch
from spigot.data.vocab import Vocab
from spigot.interface import AbstractEstimator, AbstractPolytope, AbstractStructure
from spigot.models.classifier import Classifier
from spigot.models.given import given_trees
from spigot.models.pruning import ArcPruner
from spigot.models.semantics import SemanticParser
from spigot.models.syntax import SyntacticParser
from spigot.types import Parts, Values


class Answer(NamedTuple):
    """What a system says about the sentences of a batch: whatever it has."""

    tree: Parts | None = None
    graph: Parts | None = None
    probabilities: Float[Tensor, "batch k"] | None = None


class AbstractJoint(nn.Module, abc.ABC):
    """An end model that reads the structures of an intermediate parser, and may train it through them.

    Attributes:
        syntax: The syntactic parser; `None` in a system without.
        semantics: The semantic parser; `None` in a system without.
        pruner: The small parser that decides what the semantic parser scores.
        estimator: How gradients pass through the structure.
    """

    settings: config.Config
    syntax: SyntacticParser | None
    semantics: SemanticParser | None
    pruner: ArcPruner | None
    estimator: AbstractEstimator

    def parts(self) -> dict[str, tuple[nn.Module, config.Optimiser]]:
        """The models by the name of their task, each with the settings of its own optimiser."""
        settings = self.settings
        found: dict[str, tuple[nn.Module | None, config.Optimiser]] = {
            "syntax": (self.syntax, settings.syntax.optimiser),
            "semantics": (self.semantics, settings.semantics.optimiser),
            "pruner": (self.pruner, settings.semantics.pruning.optimiser),
        }
        return {name: (model, optimiser) for name, (model, optimiser) in found.items() if model is not None}

    def loss(self, batch: Batch, task: str, *, through: bool = True) -> Values:
        """One loss a sentence.

        Args:
            batch: Sentences annotated for the task.
            task: `syntax`, `semantics`, `classifier`, or `pruner`.
            through: Whether the end task's loss may train the intermediate parser.
        """
        if task == self.settings.end:
            return self.end_loss(batch, through)
        if task == "syntax" and self.syntax is not None:
            return self.syntax.loss(batch)
        if task == "semantics" and self.semantics is not None:
            return self.semantics.loss(batch, self.semantics(batch, self.pruner))
        if task == "pruner" and self.pruner is not None and self.semantics is not None:
            return self.pruner.loss(batch, self.semantics.seen(batch))
        kind = {"syntax": "syntactic parser", "semantics": "semantic parser", "pruner": "learned pruner"}.get(
            task, task
        )
        raise ValueError(f"This system has no {kind} to train.")

    @abc.abstractmethod
    def end_loss(self, batch: Batch, through: bool) -> Values:
        """The end task's loss of each sentence."""

    @abc.abstractmethod
    def parse(self, batch: Batch) -> Answer:
        """The structures and the classes of the sentences."""

    def _frozen(self, through: bool) -> bool:
        return not through or isinstance(self.estimator, spigot.Pipeline)


class JointParser(AbstractJoint):
    """A semantic parser that reads the trees of a syntactic one, and is trained through them.

    Args:
        settings: The experiment.
        vocab: The indices.
        vectors: Pretrained word vectors in the vocabulary's order.

    Example:
        >>> from spigot.data.batch import collate, encode
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab = Vocab.of([rain])
        >>> model = JointParser(config.make_config({"system": "ste"}), vocab)
        >>> model.loss(collate([encode(rain, vocab)]), "semantics").sum().backward()
        >>> model.syntax.arcs.out.weight.grad is None                   # trained through its trees
        False
    """

    semantics: SemanticParser

    def __init__(self, settings: config.Config, vocab: Vocab, vectors: Float[Tensor, "words d"] | None = None) -> None:
        super().__init__()
        self.settings = settings
        reads_trees = settings.intermediate == "syntax"
        self.syntax = SyntacticParser(settings.syntax, vocab, vectors) if reads_trees else None
        parser = SemanticParser(settings.semantics, vocab, vectors, heads=reads_trees)
        self.semantics = parser  # pyright: ignore[reportIncompatibleVariableOverride] (parsing never lacks one)
        pruning = settings.semantics.pruning
        self.pruner = ArcPruner(pruning, vocab) if pruning.learned else None
        self.estimator = estimator(settings, None if self.syntax is None else self.syntax.structure)

    def trees(self, batch: Batch, *, through: bool = True) -> Parts | None:
        """The trees the semantic parser reads, decoded without cost and without dropped words.

        Args:
            batch: The sentences.
            through: Whether gradients may reach the syntactic parser.
        """
        if self.syntax is None:
            return None
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._frozen(through)):
            scores, mask = self.syntax(batch)
            return spigot.argmax(scores, self.syntax.structure, self.estimator, mask=mask)

    def end_loss(self, batch: Batch, through: bool) -> Values:
        """The semantic parser's loss."""
        return self.semantics.loss(batch, self.semantics(batch, self.pruner, self.trees(batch, through=through)))

    @torch.no_grad()
    def parse(self, batch: Batch) -> Answer:
        """The best tree and the best graph. The tree is the best one also where the semantic parser reads marginals."""
        tree = None if self.syntax is None else self.syntax.structure.argmax(*self.syntax(batch))
        soft = tree is not None and not self.estimator.hard
        scored = self.semantics(batch, self.pruner, self.trees(batch) if soft else tree)
        return Answer(tree, self.semantics.decode(batch, scored))


class JointClassifier(AbstractJoint):
    """A classifier that reads the graphs or trees of a parser, and is trained through them.

    Args:
        settings: The experiment.
        vocab: The indices. Latent graphs take their roles from it too.
        vectors: Pretrained word vectors in the vocabulary's order.

    Attributes:
        classifier: The end model.

    Example:
        >>> from spigot.data.batch import collate, encode
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> sun = Sentence(("Sun", "shone"), label=1)
        >>> vocab = Vocab.of([rain, sun, Sentence(("It", "rained"), label=0)])
        >>> model = JointClassifier(config.make_config({"task": "classification"}), vocab)
        >>> model.loss(collate([encode(sun, vocab)]), "classifier").shape
        torch.Size([1])
    """

    def __init__(self, settings: config.Config, vocab: Vocab, vectors: Float[Tensor, "words d"] | None = None) -> None:
        super().__init__()
        self.settings = settings
        kind, pruning = settings.intermediate, settings.semantics.pruning
        self.syntax = SyntacticParser(settings.syntax, vocab, vectors) if kind == "syntax" else None
        self.semantics = SemanticParser(settings.semantics, vocab, vectors) if kind == "semantics" else None
        learned = kind == "semantics" and pruning.learned and not settings.is_latent
        self.pruner = ArcPruner(pruning, vocab) if learned else None
        parser = self.syntax or self.semantics
        self.estimator = estimator(settings, None if parser is None else parser.structure)
        roles = None if settings.system == "bilstm" else len(vocab.roles) if kind == "semantics" else 0
        self.classifier = Classifier(settings.classifier, vocab, vectors, roles=roles)

    def parts(self) -> dict[str, tuple[nn.Module, config.Optimiser]]:
        """The models by the name of their task, each with the settings of its own optimiser."""
        return {**super().parts(), "classifier": (self.classifier, self.settings.classifier.optimiser)}

    def structure(self, batch: Batch, *, through: bool = True) -> Parts | None:
        """The structures the classifier reads, decoded without cost and without dropped words.

        Args:
            batch: The sentences.
            through: Whether gradients may reach the parser.
        """
        if self.settings.system == "bilstm":
            return None
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._frozen(through)):
            if self.syntax is not None:
                scores, mask = self.syntax(batch)
                return spigot.argmax(scores, self.syntax.structure, self.estimator, mask=mask)
            if self.semantics is not None:
                batch = replace(batch, predicates=None, arcs=None)  # no gold arc is kept from pruning
                scored = self.semantics(batch, self.pruner, noisy=False)
                scores, mask = self.semantics.parts(batch, scored)
                return spigot.argmax(scores, self.semantics.structure, self.estimator, mask=mask)
        return given_trees(batch, self.settings.classifier.structure)

    def end_loss(self, batch: Batch, through: bool) -> Values:
        """The classifier's loss."""
        return self.classifier.loss(batch, self._classify(batch, self.structure(batch, through=through)))

    @torch.no_grad()
    def parse(self, batch: Batch) -> Answer:
        """The best structure and the probability of each class. The classifier may have read a soft structure."""
        z = self.structure(batch)
        probabilities = self._classify(batch, z).softmax(-1)
        if self.settings.intermediate is not None and not self.estimator.hard:
            z = self._best(batch)
        is_graph = self.semantics is not None
        return Answer(None if is_graph else z, z if is_graph else None, probabilities)

    def _classify(self, batch: Batch, z: Parts | None) -> Float[Tensor, "batch k"]:
        if z is None or self.semantics is None:
            return self.classifier(batch, z)
        # Predicates stand on the diagonal of the arcs. The classifier does not read them.
        itself = torch.eye(batch.size, dtype=torch.bool, device=z.device)
        return self.classifier(batch, z[..., 0].masked_fill(itself, 0), z[..., 1:])

    def _best(self, batch: Batch) -> Parts:
        if self.syntax is not None:
            return self.syntax.structure.argmax(*self.syntax(batch))
        assert self.semantics is not None
        return self.semantics.decode(batch, self.semantics(batch, self.pruner, noisy=False))


def joint_model(
    settings: config.Config, vocab: Vocab, vectors: Float[Tensor, "words d"] | None = None
) -> JointParser | JointClassifier:
    """The model of an experiment, with fresh parameters.

    Args:
        settings: The experiment.
        vocab: The indices.
        vectors: Pretrained word vectors in the vocabulary's order.

    Example:
        >>> from spigot.data.sentence import Sentence
        >>> vocab = Vocab.of([Sentence(("Rain",), label=0), Sentence(("Sun",), label=1)])
        >>> type(joint_model(config.make_config({"task": "classification", "system": "bilstm"}), vocab)).__name__
        'JointClassifier'
    """
    return (JointParser if settings.task == "parsing" else JointClassifier)(settings, vocab, vectors)


def estimator(settings: config.Config, structure: AbstractStructure | None = None) -> AbstractEstimator:
    """The estimator a system stands for.

    Args:
        settings: The experiment.
        structure: What is decoded, for `estimator.polytope = "hull"`.

    Example:
        >>> estimator(config.make_config({"system": "spigot", "preset": "release"}))
        Spigot(eta=1.0, polytope=None, max_norm=1.0)
    """
    choice = settings.estimator
    polytope: AbstractPolytope | None = None
    if choice.polytope == "hull" and structure is not None:
        polytope = spigot.ConvexHull(structure)
    elif choice.polytope == "sequential":
        polytope = spigot.ArcLabel(sequential=True)
    match settings.system:
        case "spigot":
            return spigot.Spigot(choice.eta, polytope, choice.max_norm)
        case "ste":
            return spigot.StraightThrough(choice.eta, max_norm=choice.max_norm)
        case "attention":
            return spigot.StructuredAttention()
        case "sparsemap":
            return spigot.SparseMAP()
        case "identity":
            return spigot.Identity(choice.eta, choice.normalise, max_norm=choice.max_norm)
        case "blackbox":
            return spigot.BlackBox(choice.strength, max_norm=choice.max_norm)
        case "imle":
            return spigot.IMLE(
                choice.strength, choice.temperature, choice.samples, settings.seed, max_norm=choice.max_norm
            )
        case "perturbed":
            return spigot.Perturbed(choice.temperature, choice.samples, settings.seed, max_norm=choice.max_norm)
        case _:
            return spigot.Pipeline()
