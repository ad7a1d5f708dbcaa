"""The fixture list of the conformance suite: every structure, polytope and estimator, small enough to enumerate.

A case brings three things: the object, a way to draw a random mask, and the list of vertices under a mask, which comes
from `tests.spigot.brute` and never from the library.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

import spigot
from spigot import (
    AbstractEstimator,
    AbstractMarginalStructure,
    AbstractPolytope,
    AbstractRankedStructure,
    AbstractSamplingStructure,
    AbstractStructure,
)
from tests.spigot import brute
from tests.spigot.masks import (
    DEMANDS,
    INTERVALS,
    alignment_mask,
    any_mask,
    arc_labels,
    at_most_two,
    best_two,
    chain_mask,
    demanded,
    diagonals,
    graph_mask,
    heads,
    intervals,
    joint_graphs,
    joint_mask,
    labelled_heads,
    labelled_mask,
    matching_mask,
    more_than_two,
    sized,
    span_labels,
    span_mask,
    steps,
    subset_mask,
    tree_mask,
)


@dataclass(frozen=True)
class Case:
    """What structures and polytopes have in common: parts, masks and vertices."""

    name: str
    parts: tuple[int, ...]
    draw_mask: Callable[[Generator], Tensor]
    enumerate: Callable[[Tensor], Tensor]
    cache: dict[bytes, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return self.name

    def vertices(self, mask: Tensor) -> Tensor:
        """All vertices of one instance, `(count, *parts)`."""
        key = mask.contiguous().numpy().tobytes()
        if key not in self.cache:
            self.cache[key] = self.enumerate(mask)
        return self.cache[key]

    def draw(
        self, seed: int, *batch: int, dtype: torch.dtype = torch.float64, scale: float = 1.0, integers: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Random part values and random masks. Parts that do not exist hold NaN, which nobody may look at."""
        generator = torch.Generator().manual_seed(seed)
        values = torch.randn(*batch, *self.parts, generator=generator, dtype=torch.float64) * scale
        if integers:
            values = values.round()
        count = int(torch.tensor(batch).prod()) if batch else 1
        masks = [self.draw_mask(generator) for _ in range(count)]
        mask = torch.stack(masks).reshape(*batch, *self.parts) if masks else torch.zeros(values.shape, dtype=torch.bool)
        return values.masked_fill(~mask, torch.nan).to(dtype), mask

    def flat(self, parts: Tensor) -> list[Tensor]:
        """The instances one after another."""
        return list(parts.reshape(-1, *self.parts))


@dataclass(frozen=True)
class StructureCase(Case):
    """A structure. `variable`: it comes in any size, by lengths; `integral`: its members are 0/1.

    `growing`: how many of the part axes grow with the length; `rooted`: if two do, their first entry is a root.
    """

    structure: AbstractStructure = field(kw_only=True)
    variable: bool = field(default=True, kw_only=True)
    integral: bool = field(default=True, kw_only=True)
    growing: int | None = field(default=None, kw_only=True)
    rooted: bool = field(default=True, kw_only=True)

    @property
    def axes(self) -> int:
        """How many of the part axes grow with the length."""
        return min(len(self.parts), 2) if self.growing is None else self.growing

    @property
    def marginal(self) -> AbstractMarginalStructure | None:
        """The structure, if its partition function is tractable."""
        return self.structure if isinstance(self.structure, AbstractMarginalStructure) else None

    @property
    def sampling(self) -> AbstractSamplingStructure | None:
        """The structure, if it can be drawn from."""
        return self.structure if isinstance(self.structure, AbstractSamplingStructure) else None

    @property
    def ranked(self) -> AbstractRankedStructure | None:
        """The structure, if it knows its k best members."""
        return self.structure if isinstance(self.structure, AbstractRankedStructure) else None


@dataclass(frozen=True)
class PolytopeCase(Case):
    """A polytope. `euclidean`: its projection is the nearest point; `exact`: up to rounding, not up to a gap."""

    polytope: AbstractPolytope = field(kw_only=True)
    euclidean: bool = field(default=True, kw_only=True)
    exact: bool = field(default=True, kw_only=True)


@dataclass(frozen=True)
class EstimatorCase:
    """An estimator, made for a structure; whether it needs `marginals`, or works through the convex `hull`.

    `sampled`: its gradient is an estimate from draws, or invented, so that no difference quotient of its forward value
    can equal it. `kind`: the structures that it is for; `named`: on which of them to look at it. A few estimators are
    looked at on all structures, and so each structure with those; the others on the structures of each sort.
    """

    name: str
    make: Callable[[AbstractStructure], AbstractEstimator]
    marginals: bool = False
    hull: bool = False
    sampled: bool = False
    kind: type[AbstractStructure] = AbstractStructure
    named: tuple[str, ...] | None = ()

    def structures(self) -> list[StructureCase]:
        """The cases that have what the estimator needs."""
        cases = HULLS if self.hull else [case for case in STRUCTURES if case.name not in _LIKE_OTHERS]
        cases = [case for case in cases if isinstance(case.structure, self.kind)]
        if self.named is not None:
            cases = [case for case in cases if case.name in (self.named or EACH_SORT)]
        return [case for case in cases if case.marginal] if self.marginals else cases

    def __str__(self) -> str:
        return self.name


def _tree_case(name: str, structure: AbstractStructure, *, projective: bool, single_root: bool) -> StructureCase:
    members = functools.partial(brute.trees, projective=projective, single_root=single_root)
    return StructureCase(name, (5, 5), lambda g: tree_mask(g, 5, members), members, structure=structure)


def _labelled_case(name: str, trees: spigot.ProjectiveTrees | spigot.NonProjectiveTrees) -> StructureCase:
    kind = {"projective": trees.projective, "single_root": trees.single_root}
    bare, members = functools.partial(brute.trees, **kind), functools.partial(brute.labelled_trees, **kind)
    structure = spigot.LabelledTrees(trees, labels=2)
    return StructureCase(name, (4, 4, 2), lambda g: labelled_mask(g, 4, 2, bare), members, structure=structure)


def _graph_case(name: str, deterministic: tuple[int, ...]) -> StructureCase:
    structure = spigot.SemanticGraphs(labels=2, deterministic=deterministic)
    members = functools.partial(brute.graphs, deterministic=deterministic)
    return StructureCase(name, (3, 3, 3), lambda g: graph_mask(g, 3, 2), members, structure=structure)


def _matching_case(name: str, n: int, m: int, *, complete: bool = True) -> StructureCase:
    members = functools.partial(brute.matchings, complete=complete)
    structure = spigot.Matchings(complete)
    draw = functools.partial(matching_mask, n=n, m=m, complete=complete)
    return StructureCase(name, (n, m), draw, members, structure=structure, variable=False)


def _flat_case(
    name: str, structure: AbstractStructure, members: Callable[[Tensor], Tensor], *, integral: bool = True
) -> StructureCase:
    return StructureCase(
        name, (5,), lambda g: any_mask(g, 5), members, structure=structure, variable=False, integral=integral
    )


def _subset_case(name: str, minimum: int = 0, maximum: int | None = None) -> StructureCase:
    members = functools.partial(sized, minimum=minimum, maximum=5 if maximum is None else maximum)
    structure = spigot.Subsets(minimum=minimum, maximum=maximum)
    return StructureCase(name, (5,), lambda g: subset_mask(g, minimum), members, structure=structure)


SUBSETS = [
    _subset_case("Subsets-exactly-2", 2, 2),
    _subset_case("Subsets-at-most-2", maximum=2),
    _subset_case("Subsets-1-to-3", 1, 3),
    _subset_case("Subsets-any"),
    _subset_case("Subsets-at-least-2", 2),
]


STRUCTURES: list[StructureCase] = [
    StructureCase("OneOf", (5,), lambda g: any_mask(g, 5), brute.choices, structure=spigot.OneOf()),
    _tree_case("ProjectiveTrees", spigot.ProjectiveTrees(), projective=True, single_root=True),
    _tree_case("ProjectiveTrees-many", spigot.ProjectiveTrees(single_root=False), projective=True, single_root=False),
    _tree_case("NonProjectiveTrees", spigot.NonProjectiveTrees(), projective=False, single_root=True),
    _tree_case(
        "NonProjectiveTrees-many", spigot.NonProjectiveTrees(single_root=False), projective=False, single_root=False
    ),
    _labelled_case("LabelledTrees", spigot.ProjectiveTrees()),
    _labelled_case("LabelledTrees-many", spigot.NonProjectiveTrees(single_root=False)),
    _graph_case("SemanticGraphs", ()),
    _graph_case("SemanticGraphs-one", (1,)),
    _graph_case("SemanticGraphs-all", (0, 1)),
    StructureCase(
        "Chains", (3, 4, 3), lambda g: chain_mask(g, 3, 3), brute.chains, structure=spigot.Chains(3), growing=1
    ),
    _matching_case("Matchings", 4, 4),
    _matching_case("Matchings-wide", 3, 4),
    _matching_case("Matchings-tall", 4, 2),
    _matching_case("Matchings-partial", 3, 3, complete=False),
    StructureCase(
        "ConstituencyTrees",
        (4, 4, 2),
        lambda g: span_mask(g, 4, 2),
        brute.span_trees,
        structure=spigot.ConstituencyTrees(labels=2),
        rooted=False,
    ),
    StructureCase(
        "Alignments",
        (4, 4),
        lambda g: alignment_mask(g, 4, 4),
        brute.alignments,
        structure=spigot.Alignments(),
        rooted=False,
    ),
    StructureCase(
        "Alignments-wide",
        (2, 5),
        lambda g: alignment_mask(g, 2, 5),
        brute.alignments,
        structure=spigot.Alignments(),
        variable=False,
    ),
    _flat_case("ZeroOneProgram", spigot.ZeroOneProgram(*INTERVALS), intervals),
    _flat_case("RelaxedProgram", spigot.RelaxedProgram(*INTERVALS), intervals, integral=False),
    _flat_case("Oracle", spigot.Oracle(best_two, batched=True, check=more_than_two), at_most_two),
    _flat_case("FactorGraph", spigot.FactorGraph(5, DEMANDS, exact=True), demanded),
    StructureCase(
        "JointGraphs",
        (2, 2, 6),
        joint_mask,
        joint_graphs,
        structure=spigot.JointGraphs((spigot.SemanticGraphs(1), spigot.SemanticGraphs(2)), arcs=((0, 1),)),
        growing=2,
    ),
    *SUBSETS,
]


_LIKE_OTHERS = ("Alignments-wide", "Subsets-at-most-2", "Subsets-any", "Subsets-at-least-2")
"""Structures that differ from one of the others only in ways an estimator does not see."""

_NO_HULL = ("SemanticGraphs", "SemanticGraphs-all", "RelaxedProgram", "Matchings-tall", *_LIKE_OTHERS)

HULLS = [case for case in STRUCTURES if case.name not in _NO_HULL and case.structure.tractable_hull]
"""Structures to take the convex hull of; the others differ from one of these only in ways a hull does not see."""


def _hull_case(case: StructureCase) -> PolytopeCase:
    hull = spigot.ConvexHull(case.structure)
    return PolytopeCase(f"ConvexHull-{case}", case.parts, case.draw_mask, case.vertices, polytope=hull, exact=False)


def _capped_case(case: StructureCase) -> PolytopeCase:
    name = case.name.replace("Subsets", "CappedSimplex")
    return PolytopeCase(name, case.parts, case.draw_mask, case.vertices, polytope=case.structure.relaxation)


POLYTOPES: list[PolytopeCase] = [
    PolytopeCase("Simplex", (5,), lambda g: any_mask(g, 5), brute.choices, polytope=spigot.Simplex()),
    PolytopeCase("Box", (5,), lambda g: any_mask(g, 5), brute.subsets, polytope=spigot.Box()),
    PolytopeCase("Box-2", (2, 3), lambda g: any_mask(g, 2, 3), brute.subsets, polytope=spigot.Box(event_ndim=2)),
    PolytopeCase("HeadSimplex", (4, 4), lambda g: tree_mask(g, 4, heads), heads, polytope=spigot.HeadSimplex()),
    PolytopeCase("ChainSimplex", (3, 3, 2), lambda g: chain_mask(g, 3, 2), steps, polytope=spigot.ChainSimplex()),
    PolytopeCase(
        "LabelledHeadSimplex",
        (3, 3, 2),
        lambda g: labelled_mask(g, 3, 2, heads),
        labelled_heads,
        polytope=spigot.LabelledHeadSimplex(),
    ),
    PolytopeCase("ArcLabel", (3, 3, 3), lambda g: graph_mask(g, 3, 2), arc_labels, polytope=spigot.ArcLabel()),
    PolytopeCase(
        "ArcLabel-sequential",
        (3, 3, 3),
        lambda g: graph_mask(g, 3, 2),
        arc_labels,
        polytope=spigot.ArcLabel(sequential=True),
        euclidean=False,
    ),
    PolytopeCase(
        "DiagonalSimplex", (3, 4), lambda g: alignment_mask(g, 3, 4), diagonals, polytope=spigot.DiagonalSimplex()
    ),
    PolytopeCase("SpanSimplex", (3, 3, 2), lambda g: span_mask(g, 3, 2), span_labels, polytope=spigot.SpanSimplex()),
    PolytopeCase(
        "LinearPolytope",
        (5,),
        lambda g: any_mask(g, 5),
        intervals,
        polytope=spigot.LinearPolytope(*INTERVALS),
        exact=False,
    ),
    *(
        PolytopeCase(f"Birkhoff-{case}", case.parts, case.draw_mask, case.vertices, polytope=case.structure.relaxation)
        for case in STRUCTURES
        if isinstance(case.structure, spigot.Matchings)
    ),
    *(
        PolytopeCase(
            f"Local-{case}", case.parts, case.draw_mask, case.vertices, polytope=case.structure.relaxation, exact=False
        )
        for case in STRUCTURES
        if not case.structure.tractable_hull
    ),
    *map(_hull_case, HULLS),
    *map(_capped_case, SUBSETS),
]

FEW = ("OneOf", "ProjectiveTrees", "SemanticGraphs")
EACH_SORT = (*FEW, "SemanticGraphs-one", "Chains", "Matchings", "RelaxedProgram", "Oracle")  # 0/1 programs are oracles
ALL = None


ESTIMATORS: list[EstimatorCase] = [
    EstimatorCase("Pipeline", lambda _: spigot.Pipeline()),
    EstimatorCase("StraightThrough", lambda _: spigot.StraightThrough()),
    EstimatorCase("StraightThrough-clipped", lambda _: spigot.StraightThrough(max_norm=0.5)),
    EstimatorCase("Spigot", lambda _: spigot.Spigot(), named=ALL),
    EstimatorCase("Spigot-clipped", lambda _: spigot.Spigot(eta=2.0, max_norm=0.5)),
    EstimatorCase("Spigot-hull", lambda s: spigot.Spigot(eta=0.7, polytope=spigot.ConvexHull(s)), hull=True),
    EstimatorCase("StructuredAttention", lambda _: spigot.StructuredAttention(), marginals=True, named=ALL),
    EstimatorCase("SparseMAP", lambda _: spigot.SparseMAP(), hull=True, named=ALL),
    EstimatorCase("BlackBox", lambda _: spigot.BlackBox()),
    EstimatorCase("BlackBox-clipped", lambda _: spigot.BlackBox(strength=3.0, max_norm=0.5)),
    EstimatorCase("IMLE", lambda _: spigot.IMLE(), named=ALL),
    EstimatorCase("IMLE-samples", lambda _: spigot.IMLE(2.0, temperature=0.5, samples=3, seed=7, max_norm=0.5)),
    EstimatorCase("Identity", lambda _: spigot.Identity()),
    EstimatorCase("Identity-normalised", lambda _: spigot.Identity(eta=2.0, normalise=True, max_norm=0.5)),
    EstimatorCase("Perturbed", lambda _: spigot.Perturbed(0.5, samples=4, seed=7, max_norm=0.5), sampled=True),
    EstimatorCase("LPGD", lambda _: spigot.LPGD(rho=3.0), named=ALL),
    EstimatorCase("LPGD-auto", lambda _: spigot.LPGD(2.0, "auto", two_sided=True, max_norm=0.5), named=FEW),
    EstimatorCase(
        "LPGD-hull",
        lambda s: spigot.LPGD(0.7, 2.0, spigot.ConvexHull(s)),
        hull=True,
        named=("OneOf", "ProjectiveTrees"),
    ),
    EstimatorCase("SpigotCE", lambda _: spigot.SpigotCE(0.5), marginals=True),
    EstimatorCase(
        "SpigotCE-soft",
        lambda _: spigot.SpigotCE(2.0, "sparsemap", soft=True, max_norm=0.5),
        hull=True,
        sampled=True,
        named=("OneOf", "SemanticGraphs-one", "Oracle"),
    ),
    EstimatorCase("SpigotEG", lambda _: spigot.SpigotEG(), marginals=True),
    EstimatorCase(
        "SpigotEG-soft",
        lambda _: spigot.SpigotEG(3.0, soft=True, max_norm=0.5),
        marginals=True,
        sampled=True,
        named=FEW,
    ),
    EstimatorCase(
        "MarginalStraightThrough-argmax",
        lambda _: spigot.MarginalStraightThrough(backward_temperature=2.0, sampled=False, max_norm=0.5),
        marginals=True,
    ),
    EstimatorCase(
        "MarginalStraightThrough",
        lambda _: spigot.MarginalStraightThrough(0.5, seed=7),
        kind=spigot.AbstractSamplingStructure,
    ),
    EstimatorCase("ReinMax", lambda _: spigot.ReinMax(1.5, seed=7, max_norm=0.5), kind=spigot.OneOf),
    EstimatorCase("ScoreFunction", lambda _: spigot.ScoreFunction(3, 7), kind=spigot.AbstractSamplingStructure),
    EstimatorCase(
        "AdaptiveIMLE",
        lambda s: spigot.Argmax(s, spigot.AdaptiveIMLE(temperature=0.5)).with_state(),
        named=("NonProjectiveTrees", "SemanticGraphs-one", "Oracle"),
    ),
    EstimatorCase(
        "AdaptiveIMLE-two-sided",
        lambda s: spigot.Argmax(
            s, spigot.AdaptiveIMLE(start=0.5, samples=2, two_sided=True, seed=7, max_norm=0.5)
        ).with_state(),
        named=FEW[:1],
    ),
]
