"""One graph among several that a stage finds: what pruning leaves of it, and the scores of that."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from spigot_nlp.annotations.graphs import GoldGraph, Graphs
from spigot_nlp.batches.batch import Batch
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.nn.scorers import PairScorer, WordScorer
from spigot_nlp.stages.graph_scores import Scored, rows_of
from spigot_nlp.stages.pruning import ArcPruner, SeenArcs


class GraphTask(nn.Module):
    """Scorers of predicates, arcs and labels, and what training has seen between tags.

    Args:
        settings: Those of the stage.
        annotation: The graphs.
        vocab: The indices.
        width: Length of a state.
    """

    def __init__(self, settings: Any, annotation: Graphs, vocab: Vocab, width: int) -> None:
        super().__init__()
        self.seen = SeenArcs(settings.pruning, vocab, annotation)
        self.predicates = WordScorer(width, settings.mlp, settings.mlp_layers)
        self.pairs = PairScorer(width, settings.mlp, settings.mlp_layers)
        self.labels = PairScorer(width, settings.mlp, settings.mlp_layers, outputs=len(annotation.roles))

    def surviving(self, batch: Batch, pruner: ArcPruner | None, gold: GoldGraph | None) -> Bool[Tensor, "batch n n"]:
        """The arcs that pruning leaves, and gold arcs if they are to be kept."""
        surviving = self.seen(batch)
        if pruner is not None:
            surviving = pruner(batch, surviving)
        if gold is not None:
            surviving[gold.arcs[:, :3].unbind(-1)] = True
        return surviving

    def score(
        self,
        batch: Batch,
        states: Float[Tensor, "batch n d"],
        surviving: Bool[Tensor, "batch n n"],
        gold: GoldGraph | None,
    ) -> tuple[Scored, Float[Tensor, "pairs h"], Float[Tensor, "pairs h"]]:
        """Scores of what survives, and the hidden layers that those of arcs and of labels come from."""
        pairs = surviving.nonzero()
        possible = self.seen.labels(batch, pairs)
        if gold is not None:
            possible[rows_of(pairs, gold.arcs, *surviving.shape[:2]), gold.arcs[:, 3]] = True
        arcs, labels = self.pairs.hidden_at(states, pairs), self.labels.hidden_at(states, pairs)
        scored = Scored(
            self.predicates(states), pairs, self.pairs.out(arcs).squeeze(-1), self.labels.out(labels), possible
        )
        return scored, arcs, labels

    @torch.no_grad()
    def pruned(self, batch: Batch, pruner: ArcPruner | None, gold: GoldGraph) -> tuple[int, int, int, int]:
        """What pruning leaves of a batch: arcs, labelled parts, gold arcs and those of them that are left."""
        kept = self.surviving(batch, pruner, None)
        pairs, role = gold.arcs[:, :3], gold.arcs[:, 3:]
        allowed = self.seen.labels(batch, pairs).gather(-1, role).squeeze(-1)
        parts = int(self.seen.labels(batch, kept.nonzero()).sum())
        return int(kept.sum()), parts, len(pairs), int((kept[pairs.unbind(-1)] & allowed).sum())
