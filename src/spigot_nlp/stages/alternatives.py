"""What a stage chose, and what it might have chosen instead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spigot import LabelledTrees, NonProjectiveTrees, ProjectiveTrees, SemanticGraphs
from spigot.types import Mask, Parts
from spigot_nlp.annotations.graphs import TOP
from spigot_nlp.batches.batch import Batch
from spigot_nlp.data.sentence import Arc, Graph

_SURE = 1e-6  # what single precision can tell of a probability near 1

Known = Callable[[Tensor], Tensor]
"""Says for pairs of words which roles training has seen between them."""


@dataclass(frozen=True)
class Alternative:
    """A head that a word has or might have had.

    Attributes:
        head: Which word; 0 is the root.
        score: The score of the arc from it, whether constraints allow it or not. Where trees have one root, a constant
            more on all arcs from the root changes no tree: they are shown with scores by which the root is as likely,
            beside the other heads of the word, as it is.
        difference: The same less the score of the arc from the chosen head: negative means worse.
        marginal: How probable the arc is under all trees that meet the constraints; 0 where they rule it out.
        relation: The best relation of the word to this head; empty if trees are not labelled.

    Example:
        >>> Alternative(head=2, score=1.5, difference=-0.25, marginal=0.4).difference
        -0.25
    """

    head: int
    score: float
    difference: float
    marginal: float | None = None
    relation: str = ""


@dataclass(frozen=True)
class ArcScore:
    """An arc of a graph and its rivals.

    Attributes:
        arc: The arc; a top is an arc of predicate 0 with the role TOP.
        score: The scores of the arc and of its role, added up; or how likely it is, less the threshold, where marginals
            decode.
        alternatives: The next best roles of these two words, each with the difference it makes to the score.

    Example:
        >>> ArcScore(Arc(2, 1, "ARG1"), 3.5, (("ARG2", -1.25),)).alternatives[0]
        ('ARG2', -1.25)
    """

    arc: Arc
    score: float
    alternatives: tuple[tuple[str, float], ...] = ()


def head_alternatives(
    structure: ProjectiveTrees | NonProjectiveTrees,
    z: Parts,
    scores: Parts,
    mask: Mask,
    batch: Batch,
    top: int,
    relations: Sequence[str] = (),
    possible: Mask | None = None,
    exists: Mask | None = None,
) -> list[tuple[tuple[Alternative, ...], ...]]:
    """For every word of every sentence its heads by how probable they are, the chosen one among them.

    Args:
        structure: The trees, without relations.
        z: The chosen ones.
        scores: What they were chosen by.
        mask: Which arcs existed, under the constraints.
        batch: The sentences.
        top: How many heads of a word to list.
        relations: The names of the relations, if z, scores and mask are of labelled trees.
        possible: Which labels arcs may have, whatever the constraints; any, if omitted.
        exists: Which arcs have scores; all, if omitted.
    """
    named: Tensor | None = None
    exists = structure.mask(batch.lengths, batch.size) if exists is None else exists
    if relations:
        there = exists.unsqueeze(-1).expand_as(scores) if possible is None else exists.unsqueeze(-1) & possible
        named = scores.masked_fill(~there, -torch.inf).argmax(-1)
        z, mask = z.sum(-1), mask.any(-1)
        scores, _ = LabelledTrees(structure, len(relations)).arc_scores(scores, there)
        scores = scores.masked_fill(~exists, 0)
    marginals = structure.marginals(scores, mask)
    chosen = z.argmax(-2, keepdim=True)
    if structure.single_root:
        free = marginals if torch.equal(mask & exists, exists) else structure.marginals(scores, exists)
        scores = _with_root_in_place(scores, free, exists)
    best = scores.gather(-2, chosen)
    listed = _ranked(scores, marginals.masked_fill(~exists, -1))[:, :top]
    # A tree may have to take a head that is not among the best.
    listed[:, -1:] = torch.where((listed == chosen).any(-2, keepdim=True), listed[:, -1:], chosen)
    several = [scores.gather(-2, listed), (scores - best).gather(-2, listed), marginals.gather(-2, listed)]
    best_names = torch.zeros_like(listed) if named is None else named.gather(-2, listed)
    # One row a word.
    rows = [v.transpose(-1, -2).tolist() for v in (listed, *several, best_names, exists.gather(-2, listed))]
    names = list[str](relations or ("",))
    return [
        tuple(
            tuple(
                Alternative(*values[:4], relation=names[values[4]])
                for values in zip(*(row[k][word] for row in rows), strict=True)
                if values[5]
            )
            for word in range(1, length + 1)
        )
        for k, length in enumerate(batch.lengths.tolist())
    ]


def _with_root_in_place(scores: Parts, marginals: Parts, exists: Mask) -> Parts:
    """Scores whose arcs from the root can be compared with those from words: among the heads that a word might have,
    each as likely as the exponential of its score, the root is as likely as it is in all trees."""
    others = scores[..., 1:, :].masked_fill(~exists[..., 1:, :], -torch.inf).logsumexp(-2).nan_to_num(neginf=0)
    likely = marginals[..., 0, :].clamp(min=torch.finfo(marginals.dtype).tiny)
    odds = likely.log() - (1 - likely).clamp(min=_SURE).log()
    return torch.cat([(others + odds).unsqueeze(-2), scores[..., 1:, :]], -2)


def _ranked(scores: Parts, marginals: Parts) -> Tensor:
    """The heads of each word, best first: by marginals, and by scores where those are equal but for rounding.

    Not by scores alone: an arc may score well in a place where hardly any tree can have it.
    """
    by_score = scores.argsort(-2, descending=True)
    ranked = marginals.gather(-2, by_score).round(decimals=6).argsort(stable=True, dim=-2, descending=True)
    return by_score.gather(-2, ranked)


def arc_alternatives(
    graphs: Sequence[Graph], roles: Sequence[str], scores: Parts, known: "Known", top: int
) -> list[tuple[ArcScore, ...]]:
    """The arcs of graphs, then their tops, each with the next best roles.

    Args:
        graphs: The chosen ones.
        roles: The names of the roles.
        scores: What they were chosen by, in the layout of `SemanticGraphs`.
        known: Says which roles training has seen between two words.
        top: How many other roles to list.
    """
    index = {role: k for k, role in enumerate(roles)}
    _, arc_scores, labelled = SemanticGraphs(len(roles)).unpack(scores)
    found = []
    for k, graph in enumerate(graphs):
        arcs = [*graph.arcs, *(Arc(0, word, TOP) for word in graph.tops)]
        pairs = torch.tensor([(k, *arc[:2]) for arc in arcs], dtype=torch.int64).reshape(-1, 3).to(scores.device)
        own = torch.tensor([index[arc.role] for arc in arcs], dtype=torch.int64, device=scores.device).unsqueeze(-1)
        given = labelled[pairs.unbind(-1)]
        mine = given.gather(-1, own)
        # Roles that training never saw between such words have scores too, but nothing has taught them.
        others = (given - mine).masked_fill(~known(pairs), -torch.inf).scatter(-1, own, -torch.inf)
        better = others.topk(min(top, len(roles)), -1)
        total = arc_scores[pairs.unbind(-1)] + mine.squeeze(-1)
        listed: list[tuple[tuple[str, float], ...]] = [
            tuple((roles[int(k)], float(value)) for k, value in zip(*row, strict=True) if value > -torch.inf)
            for row in zip(better.indices.tolist(), better.values.tolist(), strict=True)
        ]
        found.append(tuple(map(ArcScore, arcs, total.tolist(), listed)))
    return found
