"""Seeded instances of every structure, and every estimator: what golden values of the layer are computed on.

Scores come from numpy's PCG64 by way of 53-bit fractions, rounded so that float32 holds them exactly: they are the same
on every machine and in both precisions. The numbers are chosen without near-ties (`make.py` looks), so that decisions
are the same everywhere, too.
"""

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import spigot
from spigot import factors


class Numbers:
    """Random numbers that follow from a name."""

    def __init__(self, name: str) -> None:
        self._stream = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))

    def fractions(self, *shape: int) -> Tensor:
        """Between 0 and 1, in multiples of 2^-20."""
        return torch.from_numpy(np.round(self._stream.random(shape) * 2**20) / 2**20)

    def scores(self, *shape: int) -> Tensor:
        """Between -2 and 2."""
        return 4 * self.fractions(*shape) - 2


Lengths = Callable[[Tensor], Tensor]
"""A mask from lengths."""


@dataclass(frozen=True)
class Case:
    """A structure and the sizes of its instances.

    Attributes:
        name: What it is called.
        structure: The structure.
        small: The shape of the parts where everything is computed.
        large: That of some larger instances; none if empty.
        rooted: Whether the first axis of parts has a root beside its words.
        fixed: Whether all instances have all parts, but for some at random.
        batch: The batch axes of the small instances.
        without: Losses and estimators that take too long on it, or do not fit.
        seed: Another draw, where the first has a near-tie.
    """

    name: str
    structure: spigot.AbstractStructure
    small: tuple[int, ...]
    large: tuple[int, ...] = ()
    rooted: bool = False
    fixed: bool = False
    batch: tuple[int, ...] = (2, 2)
    without: tuple[str, ...] = ()
    seed: int = 0

    def numbers(self, what: str) -> Numbers:
        return Numbers(f"{self.name} {what} {self.seed}")

    def instances(self) -> Iterator["Instance"]:
        """Some with masks, in a batch of two axes; one without batch or mask; and a few that are larger."""
        yield self._masked("small", self.batch, self.small)
        if not isinstance(self.structure, spigot.FactorGraphs):  # which must have as many instances as graphs
            yield Instance(self, "whole", self.numbers("whole").scores(*self.small), None)
        if self.large:
            yield self._masked("large", (3,), self.large)

    def _masked(self, name: str, batch: tuple[int, ...], parts: tuple[int, ...]) -> "Instance":
        """Lengths that differ, and parts that are missing at random, but those of one member."""
        numbers = self.numbers(name)
        scores = numbers.scores(*batch, *parts)
        mask = self.structure.full_mask(scores)
        if not self.fixed:
            longest = parts[0] - self.rooted
            lengths = (longest - torch.arange(math.prod(batch))).clamp(min=1).reshape(batch)
            size = parts[:2] if isinstance(self.structure, spigot.Alignments | spigot.Matchings) else parts[0]
            mask = mask & self.structure.mask(lengths, size)  # pyright: ignore[reportArgumentType]: it depends on the kind
        kept = self.structure.argmax(numbers.scores(*batch, *parts), mask) > 0.5
        mask = mask & (kept | (numbers.fractions(*mask.shape) < 0.85))
        return Instance(self, name, scores, mask)


@dataclass(frozen=True)
class Instance:
    """Scores and a mask of a batch, in float64."""

    case: Case
    name: str
    values: Tensor
    mask: Tensor | None

    def scores(self, dtype: torch.dtype) -> Tensor:
        """The scores: NaN, at which nobody may look, outside the mask."""
        return self._outside(self.values).to(dtype)

    def other(self, what: str, dtype: torch.dtype) -> Tensor:
        """More numbers of the same shape, finite."""
        return self.case.numbers(f"{self.name} {what}").scores(*self.values.shape).to(dtype)

    def _outside(self, values: Tensor) -> Tensor:
        return values if self.mask is None else values.masked_fill(~self.mask, torch.nan)


def _two_best(scores: Tensor, mask: Tensor) -> Tensor:
    """The oracle of a user: the two best of those that exist and are worth taking."""
    order = scores.masked_fill(~mask, -torch.inf).argsort(-1, descending=True).argsort(-1)
    return ((order < 2) & (scores > 0) & mask).to(scores.dtype)


THROUGH_HULLS = ("Spigot-hull", "LPGD-hull", "SparseMAP", "SpigotCE-sparsemap")
"""Estimators whose projection stops at a small gap, on every structure."""

_ROWS = [[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 1, 1]], [1, 2, 1]
_BAG = [[3, 4, 5, 2, 4, 1], [1, 0, 1, 0, 1, 1]], [9, 2]

_ARCS = [[-1, 0, 1], [-1, -1, 2], [-1, 3, -1]]
_GRAPHS = (
    spigot.FactorGraph(5, [factors.AtMostOne([0, 1]), factors.Or([1, 2], output=3), factors.Implies([3], output=4)]),
    spigot.FactorGraph(
        12,
        [
            factors.Member(spigot.ProjectiveTrees(), _ARCS),
            factors.ExactlyOne([4, 5, 6], negated=[False, False, True]),
            factors.Pair(0, 4, both=7),
            factors.And([5, 8], output=9),
            factors.AtLeastOne([2, 8, 10]),
            factors.Budget([4, 5, 8, 10, 11], most=3, least=1),
            factors.Knapsack([8, 10, 11, 2], weights=[2.0, 3.0, 4.0, 1.0], capacity=6.5),
        ],
        exact=True,
    ),
)

_HULLS = ("hull", "sparsemap_loss", *THROUGH_HULLS)
_IDENTITIES = ("Identity", "Identity-normalised")

STRUCTURES = (
    Case("OneOf", spigot.OneOf(), (6,), (40,)),
    Case("ProjectiveTrees", spigot.ProjectiveTrees(), (6, 6), (20, 20), rooted=True),
    Case("ProjectiveTrees-many", spigot.ProjectiveTrees(single_root=False), (6, 6), (20, 20), rooted=True),
    Case("NonProjectiveTrees", spigot.NonProjectiveTrees(), (6, 6), (20, 20), rooted=True),
    Case("NonProjectiveTrees-many", spigot.NonProjectiveTrees(single_root=False), (6, 6), (20, 20), rooted=True),
    Case("LabelledTrees", spigot.LabelledTrees(spigot.ProjectiveTrees(), 2), (5, 5, 2), (12, 12, 2), rooted=True),
    Case(
        "LabelledTrees-many",
        spigot.LabelledTrees(spigot.NonProjectiveTrees(single_root=False), 2),
        (5, 5, 2),
        (12, 12, 2),
        rooted=True,
    ),
    Case("SemanticGraphs", spigot.SemanticGraphs(2), (4, 4, 3), rooted=True),
    Case("SemanticGraphs-large", spigot.SemanticGraphs(6), (4, 4, 7), (12, 12, 7), rooted=True, without=_HULLS),
    Case("SemanticGraphs-one", spigot.SemanticGraphs(2, (1,)), (4, 4, 3), (10, 10, 3), rooted=True),
    Case("SemanticGraphs-all", spigot.SemanticGraphs(2, (0, 1)), (4, 4, 3), (10, 10, 3), rooted=True),
    Case("Chains", spigot.Chains(3), (4, 4, 3), (25, 4, 3)),
    Case("Matchings", spigot.Matchings(), (4, 4), (12, 12)),
    Case("Matchings-wide", spigot.Matchings(), (3, 5), (9, 14), fixed=True),
    Case("Matchings-partial", spigot.Matchings(complete=False), (4, 4), (10, 10)),
    Case("ConstituencyTrees", spigot.ConstituencyTrees(labels=2), (4, 4, 2), (12, 12, 2)),
    Case("Alignments", spigot.Alignments(), (4, 4), (16, 16)),
    Case("Alignments-wide", spigot.Alignments(), (3, 5), (9, 20), fixed=True),
    Case("Subsets-exactly-2", spigot.Subsets(minimum=2, maximum=2), (6,), (30,)),
    Case("Subsets-1-to-3", spigot.Subsets(minimum=1, maximum=3), (6,), (30,)),
    Case("Subsets-any", spigot.Subsets(), (6,), (30,)),
    Case("ZeroOneProgram", spigot.ZeroOneProgram(*_BAG), (6,), fixed=True),
    Case("RelaxedProgram", spigot.RelaxedProgram(*_ROWS), (5,), fixed=True),
    Case("Oracle", spigot.Oracle(_two_best, batched=True), (6,), fixed=True),
    Case("FactorGraph", _GRAPHS[0], (5,), fixed=True),
    Case("FactorGraph-exact", _GRAPHS[1], (12,), fixed=True, batch=(2,), without=(*_IDENTITIES, "spo_plus")),
    Case(
        "FactorGraphs",
        spigot.FactorGraphs(_GRAPHS, exact=True),
        (12,),
        batch=(2,),
        without=(*_IDENTITIES, "fenchel_young", "IMLE", "IMLE-samples", "Perturbed"),
    ),
    Case(
        "JointGraphs",
        spigot.JointGraphs(
            (spigot.SemanticGraphs(1), spigot.SemanticGraphs(2)), arcs=((0, 1),), labelled=(((0, 0), (1, 1)),)
        ),
        (3, 3, 7),
        rooted=True,
    ),
)

POLYTOPES: dict[str, tuple[spigot.AbstractPolytope, tuple[int, ...]]] = {
    "Simplex": (spigot.Simplex(), (6,)),
    "Box": (spigot.Box(), (6,)),
    "Box-2": (spigot.Box(event_ndim=2), (2, 3)),
    "HeadSimplex": (spigot.HeadSimplex(), (5, 5)),
    "ChainSimplex": (spigot.ChainSimplex(), (4, 4, 3)),
    "LabelledHeadSimplex": (spigot.LabelledHeadSimplex(), (4, 4, 2)),
    "ArcLabel": (spigot.ArcLabel(), (4, 4, 3)),
    "ArcLabel-sequential": (spigot.ArcLabel(sequential=True), (4, 4, 3)),
    "DiagonalSimplex": (spigot.DiagonalSimplex(), (4, 5)),
    "SpanSimplex": (spigot.SpanSimplex(), (4, 4, 2)),
    "Birkhoff": (spigot.Birkhoff(), (4, 4)),
    "Birkhoff-partial": (spigot.Birkhoff(complete=False), (4, 4)),
    "CappedSimplex": (spigot.CappedSimplex(minimum=1, maximum=3), (6,)),
    "LinearPolytope": (spigot.LinearPolytope(*_ROWS), (5,)),
}
"""Polytopes that are made by themselves; those of structures are projected onto with their structures."""

Rule = Callable[[spigot.AbstractStructure], spigot.AbstractEstimator]

ESTIMATORS: dict[str, Rule] = {
    "Pipeline": lambda _: spigot.Pipeline(),
    "StraightThrough": lambda _: spigot.StraightThrough(),
    "StraightThrough-clipped": lambda _: spigot.StraightThrough(eta=2.0, max_norm=0.5),
    "StraightThrough-blocks": lambda _: spigot.StraightThrough(max_norm=0.3, clip_per="block", centred="block"),
    "Spigot": lambda _: spigot.Spigot(),
    "Spigot-clipped": lambda _: spigot.Spigot(eta=2.0, max_norm=0.5),
    "Spigot-blocks": lambda _: spigot.Spigot(eta=0.7, max_norm=0.3, clip_per="block", centred="block"),
    "Spigot-centred": lambda _: spigot.Spigot(max_norm=0.8, centred="instance"),
    "Spigot-hull": lambda s: spigot.Spigot(eta=0.7, polytope=spigot.ConvexHull(s)),
    "StructuredAttention": lambda _: spigot.StructuredAttention(),
    "SparseMAP": lambda _: spigot.SparseMAP(),
    "BlackBox": lambda _: spigot.BlackBox(),
    "BlackBox-clipped": lambda _: spigot.BlackBox(strength=3.0, max_norm=0.5),
    "IMLE": lambda _: spigot.IMLE(),
    "IMLE-samples": lambda _: spigot.IMLE(strength=2.0, temperature=0.5, samples=3, seed=7, max_norm=0.5),
    "Identity": lambda _: spigot.Identity(),
    "Identity-normalised": lambda _: spigot.Identity(eta=2.0, normalise=True, max_norm=0.5),
    "Perturbed": lambda _: spigot.Perturbed(temperature=0.5, samples=4, seed=7),
    "LPGD": lambda _: spigot.LPGD(rho=3.0),
    "LPGD-auto": lambda _: spigot.LPGD(eta=2.0, rho="auto", two_sided=True, max_norm=0.5),
    "LPGD-hull": lambda s: spigot.LPGD(eta=0.7, rho=2.0, polytope=spigot.ConvexHull(s)),
    "SpigotCE": lambda _: spigot.SpigotCE(eta=0.5),
    "SpigotCE-sparsemap": lambda _: spigot.SpigotCE(eta=2.0, start="sparsemap", soft=True),
    "SpigotCE-vertex": lambda _: spigot.SpigotCE(eta=0.8, start="vertex", max_norm=0.5),
    "SpigotEG": lambda _: spigot.SpigotEG(),
    "SpigotEG-soft": lambda _: spigot.SpigotEG(eta=3.0, soft=True, max_norm=0.5),
    "MarginalStraightThrough": lambda _: spigot.MarginalStraightThrough(forward_temperature=0.5, seed=7),
    "MarginalStraightThrough-argmax": lambda _: spigot.MarginalStraightThrough(backward_temperature=2.0, sampled=False),
    "ReinMax": lambda _: spigot.ReinMax(temperature=1.5, seed=7),
    "ScoreFunction": lambda _: spigot.ScoreFunction(samples=3, seed=7),
}
