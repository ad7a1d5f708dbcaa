"""The intermediate parser, the layer, the end model (Algorithm 1)."""

import abc
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

import spigot
from spigot import config
from spigot.data.batch import Batch
from spigot.data.vocab import Vocab
from spigot.interface import AbstractEstimator
from spigot.models.answers import Answer, Evidence
from spigot.models.classifier import Classifier
from spigot.models.constraints import Constraints
from spigot.models.estimators import estimator
from spigot.models.given import given_trees
from spigot.models.limits import Limits
from spigot.models.pruning import ArcPruner
from spigot.models.semantics import SemanticParser
from spigot.models.syntax import SyntacticParser
from spigot.types import Parts, Values


class AbstractJoint(nn.Module, abc.ABC):
    """An end model that reads the structures of an intermediate parser, and may train it through them.

    Attributes:
        syntax: The syntactic parser; `None` in a system without.
        semantics: The semantic parser; `None` in a system without.
        pruner: The small parser that decides what the semantic parser scores.
        estimator: How gradients pass through the structure.

    Example:
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> vocab = Vocab.of([Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))])
        >>> model: AbstractJoint = joint_model(config.make_config({"system": "ste"}), vocab)
        >>> sorted(model.parts()), model.estimator
        (['pruner', 'semantics', 'syntax'], StraightThrough(eta=1.0, max_norm=None))
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

    @property
    @abc.abstractmethod
    def intermediate(self) -> SyntacticParser | SemanticParser | None:
        """The parser whose structures the end model reads."""

    @abc.abstractmethod
    def evidence(self, batch: Batch) -> Evidence:
        """The scores of the intermediate parser, and which parts exist: what the structure is decoded from."""

    @abc.abstractmethod
    def loss_given(self, batch: Batch, z: Parts | None) -> Values:
        """The end task's loss of each sentence as a function of the structure that the end model reads."""

    @abc.abstractmethod
    def parse(self, batch: Batch, limits: Limits | None = None) -> Answer:
        """The structures and the classes of the sentences.

        Args:
            batch: The sentences.
            limits: What their structures must have and must not have. The end model reads structures that keep to it.
        """

    def limits(
        self, constraints: Sequence[Constraints | None], lengths: Sequence[int], size: int, roles: Sequence[str]
    ) -> Limits | None:
        """Constraints on sentences as what `parse` takes.

        Args:
            constraints: Those of each sentence.
            lengths: Words of each sentence.
            size: Positions of the batch, with the root.
            roles: The roles of the vocabulary.

        Raises:
            Infeasible: The constraints of a sentence do not fit it or this system, or leave it no structure.
        """
        trees = None if self.syntax is None else self.syntax.structure
        graphs = None if self.semantics is None else self.semantics.structure
        return Limits.of(constraints, lengths, size, roles, trees=trees, graphs=graphs)

    def _tree_evidence(self, batch: Batch, limits: Limits | None) -> Evidence:
        assert self.syntax is not None
        return Evidence(*self.syntax(batch, allowed=None if limits is None else limits.heads))

    def _graph_evidence(self, batch: Batch, z: Parts | None, limits: Limits | None) -> tuple[Evidence, Parts]:
        """Scores and mask, and the scores to decode by, which differ where an arc is forced."""
        assert self.semantics is not None
        forced = None if limits is None else limits.forced
        scored = self.semantics(batch, self.pruner, z, noisy=False, forced=forced)
        scores, mask = self.semantics.parts(batch, scored)
        decisive = scores
        if limits is not None:
            decisive, mask = limits.decide(scores, mask, self.semantics.structure)
        return Evidence(scores, mask), decisive

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
        return self.loss_given(batch, self.trees(batch, through=through))

    @property
    def intermediate(self) -> SyntacticParser | None:
        """The syntactic parser."""
        return self.syntax

    def evidence(self, batch: Batch) -> Evidence:
        """The scores of the arcs of trees, and which of them exist."""
        return self._tree_evidence(batch, None)

    def loss_given(self, batch: Batch, z: Parts | None) -> Values:
        """The semantic parser's loss if these are the trees."""
        return self.semantics.loss(batch, self.semantics(batch, self.pruner, z))

    @torch.no_grad()
    def parse(self, batch: Batch, limits: Limits | None = None) -> Answer:
        """The best tree and the best graph. The tree is the best one also where the semantic parser reads marginals."""
        tree = z = trees = None
        if self.syntax is not None:
            trees = self._tree_evidence(batch, limits)
            tree = z = self.syntax.structure.argmax(*trees)
            if not self.estimator.hard:
                z = spigot.argmax(trees.scores, self.syntax.structure, self.estimator, mask=trees.mask)
        graphs, decisive = self._graph_evidence(batch, z, limits)
        return Answer(tree, self.semantics.structure.argmax(decisive, graphs.mask), None, trees, graphs)


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
        parser = self.intermediate
        if parser is None:
            return given_trees(batch, self.settings.classifier.structure)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._frozen(through)):
            scores, mask = self.evidence(batch)
            return spigot.argmax(scores, parser.structure, self.estimator, mask=mask)

    def end_loss(self, batch: Batch, through: bool) -> Values:
        """The classifier's loss."""
        return self.loss_given(batch, self.structure(batch, through=through))

    @property
    def intermediate(self) -> SyntacticParser | SemanticParser | None:
        """The parser of trees or of graphs."""
        return self.syntax or self.semantics

    def evidence(self, batch: Batch) -> Evidence:
        """The scores of the parts of the structures, and which of them exist."""
        return self._evidence(batch, None)[0]

    def loss_given(self, batch: Batch, z: Parts | None) -> Values:
        """The classifier's loss if these are the structures."""
        return self.classifier.loss(batch, self._classify(batch, z))

    @torch.no_grad()
    def parse(self, batch: Batch, limits: Limits | None = None) -> Answer:
        """The best structure and the probability of each class. The classifier may have read a soft structure."""
        parser = self.intermediate
        if parser is None:
            z = self.structure(batch)
            return Answer(z, None, self._classify(batch, z).softmax(-1))
        found, scores = self._evidence(batch, limits)
        best = z = parser.structure.argmax(scores, found.mask)
        if not self.estimator.hard:
            z = spigot.argmax(scores, parser.structure, self.estimator, mask=found.mask)
        probabilities = self._classify(batch, z).softmax(-1)
        if self.semantics is None:
            return Answer(best, None, probabilities, tree_evidence=found)
        return Answer(None, best, probabilities, graph_evidence=found)

    def _evidence(self, batch: Batch, limits: Limits | None) -> tuple[Evidence, Parts]:
        if self.syntax is not None:
            found = self._tree_evidence(batch, limits)
            return found, found.scores
        batch = replace(batch, predicates=None, arcs=None)  # no gold arc is kept from pruning
        return self._graph_evidence(batch, None, limits)

    def _classify(self, batch: Batch, z: Parts | None) -> Float[Tensor, "batch k"]:
        if z is None or self.semantics is None:
            return self.classifier(batch, z)
        # Predicates stand on the diagonal of the arcs. The classifier does not read them.
        itself = torch.eye(batch.size, dtype=torch.bool, device=z.device)
        return self.classifier(batch, z[..., 0].masked_fill(itself, 0), z[..., 1:])


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
