"""What the development data say about a system in training."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from spigot.data.batch import collate, encode
from spigot.data.corpus import Corpus
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.vocab import TOP
from spigot.evaluation.induced import Field, changed
from spigot.evaluation.metrics import accuracy, graph_counts, tree_counts
from spigot.models.parser import Parser
from spigot.training.plan import ACCURACY, LF, UAS, UF, Phase

TREE, CHANGED = "tree", "changed"
"""How well latent trees agree with the right ones, and how much of the structures is new since the last epoch."""


class Development:
    """Scores a system after each epoch.

    Args:
        parser: The system.
        corpus: What it is trained on.
    """

    def __init__(self, parser: Parser, corpus: Corpus) -> None:
        self.parser, self.corpus = parser, corpus

    def scores(self, phase: Phase, before: Sequence[Any]) -> tuple[dict[str, float], list[Any]]:
        """Scores in per cent, that of the phase's own measure first, and the structures they go with.

        Args:
            phase: The part of the training that the epoch belongs to.
            before: The structures of an epoch ago, as plain values; none at the start.
        """
        if phase.name == "pruner":
            return pruning_scores(self.parser, self.corpus), []
        scores: dict[str, float] = {}
        after: list[Any] = []
        if phase.measure == ACCURACY and self.corpus.labels.dev:
            scores, after = self._classifier_scores(before)
        model, graphs, trees = self.parser.model, self.corpus.graphs.dev, self.corpus.trees.dev
        supervised = phase.measure is not None and not self.parser.config.is_latent
        if supervised and phase.measure != UAS and model.semantics is not None and graphs:
            predicted = list(self.parser.parse(graphs, tagged=True))
            scores[LF] = 100 * graph_counts(graphs, predicted).f1()
            scores[UF] = 100 * graph_counts(graphs, predicted, labelled=False).f1()
        if supervised and model.syntax is not None and trees:
            predicted = list(self.parser.parse(trees, tagged=True))
            scores[UAS] = 100 * tree_counts(trees, predicted).accuracy()
        return scores, after

    def _classifier_scores(self, before: Sequence[Any]) -> tuple[dict[str, float], list[Any]]:
        gold = self.corpus.labels.dev
        predicted = list(self.parser.parse(gold, tagged=True))
        scores = {ACCURACY: 100 * accuracy(gold, predicted)}
        if self.parser.config.intermediate is None:
            return scores, []
        field = structure_field(self.parser)
        if self.parser.model.syntax is not None and all(sentence.heads is not None for sentence in gold):
            scores[TREE] = 100 * tree_counts(gold, predicted).accuracy()
        if before:
            pairs = zip(predicted, before, strict=True)
            earlier = [_with_structure(sentence, structure, field) for sentence, structure in pairs]
            scores[CHANGED] = 100 * changed(earlier, predicted, field=field)
        return scores, [_structure(sentence, field) for sentence in predicted]


def structure_field(parser: Parser) -> Field:
    """Where the structures stand that a system finds.

    Example:
        >>> from spigot.config import make_config
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import joint_model
        >>> config = make_config({"task": "classification", "classifier": {"structure": "trees"}})
        >>> vocab = Vocab.of([Sentence(("Rain",), label=0), Sentence(("Sun",), label=1)])
        >>> structure_field(Parser(config, vocab, joint_model(config, vocab)))
        'heads'
    """
    return "heads" if parser.model.syntax is not None else "graph"


def _structure(sentence: Sentence, field: Field) -> list[Any]:
    """The heads of a sentence, or the arcs and tops of its graph, as plain values."""
    if field == "heads":
        return list(sentence.heads or ())
    assert sentence.graph is not None
    return [*sentence.graph.arcs, *((0, top, TOP) for top in sentence.graph.tops)]


def _with_structure(sentence: Sentence, structure: Sequence[Any], field: Field) -> Sentence:
    """The sentence with what `_structure` gave."""
    if field == "heads":
        return replace(sentence, heads=tuple(structure))
    arcs = [Arc(*arc) for arc in structure]
    tops = [arc.argument for arc in arcs if arc.predicate == 0]
    return replace(sentence, graph=Graph.of([arc for arc in arcs if arc.predicate], tops))


@torch.no_grad()
def pruning_scores(parser: Parser, corpus: Corpus) -> dict[str, float]:
    """What pruning leaves on the development data: labelled parts and arcs a token, and its recall."""
    semantics, pruner, vocab = parser.model.semantics, parser.model.pruner, parser.vocab
    assert semantics is not None
    arcs = parts = tokens = gold = found = 0
    encoded = sorted((encode(s, vocab) for s in corpus.graphs.dev), key=lambda s: s.length)
    for start in range(0, len(encoded), 64):
        batch = collate(encoded[start : start + 64])
        kept = semantics.surviving(batch, pruner)
        roles = semantics.seen.labels(batch, kept.nonzero())
        arcs, parts = arcs + int(kept.sum()), parts + int(roles.sum())
        tokens += int(batch.lengths.sum())
        assert batch.arcs is not None
        sentence, head, argument, role = batch.arcs.unbind(-1)
        allowed = semantics.seen.roles[batch.tags[sentence, head], batch.tags[sentence, argument], role]
        gold, found = gold + len(batch.arcs), found + int((kept[sentence, head, argument] & allowed).sum())
    return {
        "arcs_a_token": arcs / max(tokens, 1),
        "parts_a_token": parts / max(tokens, 1),
        "recall": 100 * found / max(gold, 1),
    }
