"""The intermediate parser, the layer, the end parser (Algorithm 1)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

import spigot
from spigot import config
from spigot.data.batch import Batch
from spigot.data.vocab import Vocab
from spigot.interface import AbstractEstimator
from spigot.models.pruning import ArcPruner
from spigot.models.semantics import Scored, SemanticParser
from spigot.models.syntax import SyntacticParser
from spigot.types import Parts, Values


class JointParser(nn.Module):
    """A semantic parser that reads the trees of a syntactic one, and is trained through them.

    Args:
        settings: The experiment.
        vocab: The indices.
        vectors: Pretrained word vectors in the vocabulary's order.

    Attributes:
        syntax: The intermediate model; `None` in the system without syntax.
        semantics: The end model.
        pruner: The small parser that decides what the end model scores.
        estimator: How gradients pass through the trees.

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

    def __init__(self, settings: config.Config, vocab: Vocab, vectors: Float[Tensor, "words d"] | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.estimator = estimator(settings)
        self.syntax = SyntacticParser(settings.syntax, vocab, vectors) if settings.intermediate == "syntax" else None
        self.semantics = SemanticParser(settings.semantics, vocab, vectors, heads=settings.intermediate == "syntax")
        pruning = settings.semantics.pruning
        self.pruner = ArcPruner(pruning, vocab) if pruning.learned else None

    def trees(self, batch: Batch, *, through: bool = True) -> Parts | None:
        """The trees the semantic parser reads, decoded without cost and without dropped words.

        Args:
            batch: The sentences.
            through: Whether gradients may reach the syntactic parser.
        """
        if self.syntax is None:
            return None
        if not through or isinstance(self.estimator, spigot.Pipeline):
            with torch.no_grad():
                return self._layer(batch)
        return self._layer(batch)

    def loss(self, batch: Batch, task: str, *, through: bool = True) -> Values:
        """One loss a sentence.

        Args:
            batch: Sentences annotated for the task.
            task: `syntax`, `semantics`, or `pruner`.
            through: Whether the semantic loss may train the syntactic parser.
        """
        if task == "syntax":
            if self.syntax is None:
                raise ValueError("This system has no syntactic parser to train.")
            return self.syntax.loss(batch)
        if task == "pruner":
            if self.pruner is None:
                raise ValueError("This experiment has no learned pruner to train.")
            return self.pruner.loss(batch, self.semantics.seen(batch))
        return self.semantics.loss(batch, self.semantics(batch, self.pruner, self.trees(batch, through=through)))

    @torch.no_grad()
    def parse(self, batch: Batch) -> tuple[Parts | None, Parts, Scored]:
        """The best tree, the best graph, and the scores behind the graph.

        The tree is always the best one, also where the semantic parser reads marginals.
        """
        tree = None if self.syntax is None else self.syntax.structure.argmax(*self.syntax(batch))
        soft = tree is not None and not self.estimator.hard
        scored = self.semantics(batch, self.pruner, self.trees(batch) if soft else tree)
        return tree, self.semantics.decode(batch, scored), scored

    def _layer(self, batch: Batch) -> Parts:
        assert self.syntax is not None
        scores, mask = self.syntax(batch)
        return spigot.argmax(scores, self.syntax.structure, self.estimator, mask=mask)


def estimator(settings: config.Config) -> AbstractEstimator:
    """The estimator a system stands for.

    Example:
        >>> estimator(config.make_config({"system": "spigot", "preset": "release"}))
        Spigot(eta=1.0, polytope=None, max_norm=1.0)
    """
    choice = settings.estimator
    polytope = None
    if choice.polytope == "hull":
        trees = spigot.ProjectiveTrees if settings.syntax.trees == "projective" else spigot.NonProjectiveTrees
        polytope = spigot.ConvexHull(trees(single_root=settings.syntax.single_root))
    match settings.system:
        case "spigot":
            return spigot.Spigot(choice.eta, polytope, choice.max_norm)
        case "ste":
            return spigot.StraightThrough(choice.eta, max_norm=choice.max_norm)
        case "attention":
            return spigot.StructuredAttention()
        case "sparsemap":
            return spigot.SparseMAP()
        case _:
            return spigot.Pipeline()
