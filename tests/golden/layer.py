"""What golden values of the layer are computed: every verb, loss, projection and gradient, by public names."""

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import spigot
from tests.golden.api import compiled
from tests.golden.instances import ESTIMATORS, POLYTOPES, STRUCTURES, THROUGH_HULLS, Case, Instance, Numbers
from tests.golden.stored import Kind, Value

PRECISIONS = (torch.float64, torch.float32) if compiled() else (torch.float64,)
"""Torch alone does the same in both."""

DRAWN = ("samples", "score_function", "MarginalStraightThrough ", "ScoreFunction", "ReinMax")
"""What draws members, of which kernels and torch alone have different ones for the same seed."""

NEGOTIATED = spigot.FactorGraph | spigot.FactorGraphs | spigot.JointGraphs
"""Structures whose relaxations are solved by iterations."""


def is_drawn(name: str) -> bool:
    """Whether a value depends on what is drawn from a structure."""
    return name.rpartition("/")[2].removeprefix("gradient of ").startswith(DRAWN)


def of_structure(case: Case, dtype: torch.dtype) -> Iterator[Value]:
    """All values of a structure; of large instances only decisions, and sums of the numbers.

    Torch alone, which takes its time, computes less.
    """
    for instance in case.instances():
        if instance.name == "large" and not compiled():
            continue
        values = [verbs(instance, dtype)]
        if instance.name != "whole" and (compiled() or not isinstance(case.structure, NEGOTIATED)):
            values += [polytopes(instance, dtype), losses(instance, dtype), estimators(instance, dtype)]
        for value in itertools.chain(*values):
            shown = _summary(value) if instance.name == "large" and value.kind != "exact" else value
            yield Value(f"{case.name}/{instance.name}/{_named(dtype)}/{value.name}", shown.tensor, value.kind)


def everything() -> Iterator[Value]:
    """All values of the layer."""
    for dtype in PRECISIONS:
        for case in STRUCTURES:
            yield from of_structure(case, dtype)
        for name in POLYTOPES:
            yield from of_polytope(name, dtype)
    yield from adapting()
    yield from in_half_precision()


def verbs(instance: Instance, dtype: torch.dtype) -> Iterator[Value]:
    """What a structure answers by itself."""
    structure, mask = instance.case.structure, instance.mask
    scores = instance.scores(dtype)
    decided: Kind = "close" if isinstance(structure, spigot.RelaxedProgram) else "exact"
    if mask is not None and dtype == torch.float64:
        yield Value("mask", mask, "exact")
    z = structure.argmax(scores, mask)
    yield Value("argmax", z, decided)
    flipped = (instance.other("flips", dtype) > 1.5).to(dtype)
    yield Value("contains", torch.stack([structure.contains(z, mask), structure.contains(flipped, mask)]), "exact")
    if isinstance(structure, spigot.AbstractRankedStructure):
        members, values = structure.k_best(scores, 4, mask)
        yield Value("k_best", members, "exact")
        yield Value("k_best values", values, "close")
    if isinstance(structure, spigot.AbstractMarginalStructure):
        yield from sums(structure, instance, dtype)
    if isinstance(structure, spigot.AbstractSamplingStructure):
        batch = scores.shape[: scores.ndim - structure.event_ndim]
        seeds = (torch.arange(3 * math.prod(batch)) * 7919 - 5).reshape(3, *batch)
        yield Value("samples", structure.sample_from_seeds(scores, seeds, mask), "exact")
    if isinstance(structure, NEGOTIATED):
        found = structure.solve(scores, mask)
        yield Value("solution", found.z, "exact")
        yield Value("solution is best", found.optimal, "exact")
        yield Value("value of the solution", found.value, "close")


def sums(structure: spigot.AbstractMarginalStructure, instance: Instance, dtype: torch.dtype) -> Iterator[Value]:
    """Sums over all members, and derivatives."""
    mask, weights = instance.mask, instance.other("weights", dtype)
    others = instance.other("others", dtype)
    scores = instance.scores(dtype)
    exists = structure.full_mask(scores) if mask is None else mask
    leaf = scores.clone().requires_grad_()
    log_partition, marginals = structure.log_partition(leaf, mask), structure.marginals(leaf, mask)
    entropy, kl = structure.entropy(leaf, mask), structure.kl(leaf, others, mask)
    yield Value("log_partition", log_partition, "close")
    yield Value("marginals", marginals, "close")
    yield Value("entropy", entropy, "close")
    yield Value("kl", kl, "close")
    yield Value("log_prob", structure.log_prob(scores, structure.argmax(others, mask), mask), "close")
    yield Value("gradient of log_partition", _gradient(log_partition.sum(), leaf), "close")
    yield Value("gradient of marginals", _gradient((marginals * weights).sum(), leaf), "close")
    yield Value("gradient of entropy and kl", _gradient(entropy.sum() + kl.sum(), leaf), "close")
    if dtype == torch.float64:
        yield Value("log_count", structure.log_count(exists), "close")


def polytopes(instance: Instance, dtype: torch.dtype) -> Iterator[Value]:
    """Projections onto the relaxation and the convex hull."""
    structure = instance.case.structure
    points = instance.other("points", dtype)
    known = isinstance(structure.relaxation, spigot.ConvexHull | spigot.LinearPolytope | spigot.Birkhoff)
    kind: Kind = "iterated" if known or isinstance(structure, NEGOTIATED) else "close"
    yield from _projected("relaxation", structure.relaxation, points, instance.mask, kind)
    if structure.tractable_hull and "hull" not in instance.case.without:
        yield from _projected("hull", spigot.ConvexHull(structure), points, instance.mask, "iterated")


def of_polytope(name: str, dtype: torch.dtype) -> Iterator[Value]:
    """Projections onto a polytope that is made by itself."""
    polytope, parts = POLYTOPES[name]
    points = Numbers(name).scores(2, 2, *parts).to(dtype)
    kind: Kind = "iterated" if isinstance(polytope, spigot.LinearPolytope | spigot.Birkhoff) else "close"
    for value in _projected(name, polytope, points, None, kind):
        yield Value(f"{name}/{_named(dtype)}/{value.name.removeprefix(name).strip()}", value.tensor, value.kind)


def _projected(
    name: str, polytope: spigot.AbstractPolytope, points: Tensor, mask: Tensor | None, kind: Kind
) -> Iterator[Value]:
    for scale in (0.5, 4.0):
        projected = polytope.project(scale * points, mask)
        yield Value(f"{name} {scale}", projected, kind)
        yield Value(f"{name} {scale} holds it", polytope.contains(projected, mask), "exact")
    everywhere = torch.ones_like(points, dtype=torch.bool) if mask is None else mask
    along = polytope.tangent(points, everywhere)
    if along is not None:
        yield Value(f"{name} tangent", along, kind)


def losses(instance: Instance, dtype: torch.dtype) -> Iterator[Value]:
    """Every loss and its gradient, against the member that other scores give."""
    structure, mask = instance.case.structure, instance.mask
    gold = structure.argmax(instance.other("gold", dtype), mask)
    truth = instance.other("truth", dtype)
    weight = instance.other("weight", dtype).abs()
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "hinge": lambda s: spigot.structured_hinge(s, gold, structure, mask=mask),
        "hinge with costs": lambda s: spigot.structured_hinge(
            s, gold, structure, mask=mask, false_positive=0.3, false_negative=1.2, weight=weight
        ),
        "perceptron": lambda s: spigot.perceptron(s, gold, structure, mask=mask),
        "fenchel_young": lambda s: spigot.fenchel_young(
            s, gold, structure, mask=mask, temperature=0.7, samples=3, seed=5
        ),
        "spo_plus": lambda s: spigot.spo_plus(s, truth, structure, mask=mask),
    }
    if structure.tractable_hull:
        kinds["sparsemap_loss"] = lambda s: spigot.sparsemap_loss(s, gold, structure, mask=mask)
    if isinstance(structure, spigot.AbstractMarginalStructure):
        kinds["crf_nll"] = lambda s: spigot.crf_nll(s, gold, structure, mask=mask)
        kinds["crf_nll and entropy"] = lambda s: spigot.crf_nll(s, gold, structure, mask=mask, entropy=0.5)
    if isinstance(structure, spigot.AbstractSamplingStructure):
        kinds["score_function"] = lambda s: spigot.score_function(
            lambda z: _loss(z, truth, structure.event_ndim), structure, s, mask=mask, samples=4, seed=3
        )
    for name, loss in kinds.items():
        if name in instance.case.without:
            continue
        kind: Kind = "iterated" if name == "sparsemap_loss" else "close"
        leaf = instance.scores(dtype).requires_grad_()
        value = loss(leaf)
        yield Value(name, value, kind)
        yield Value(f"gradient of {name}", _gradient(value.sum(), leaf), kind)
    if isinstance(structure, spigot.AbstractMarginalStructure):

        def end(p: Tensor) -> Tensor:
            return _loss(p, truth, structure.event_ndim)

        for method in ("projected", "exponentiated"):
            label = spigot.pulled_back_label(
                end, structure, instance.scores(dtype), mask=mask, steps=3, eta=0.4, method=method
            )
            yield Value(f"pulled_back_label {method}", label, "iterated")


def estimators(instance: Instance, dtype: torch.dtype) -> Iterator[Value]:
    """The forward value of every estimator that fits, and the gradient of one loss behind it."""
    structure, mask = instance.case.structure, instance.mask
    weights = instance.other("loss", dtype)
    for name in ESTIMATORS:
        estimator = _fitting(name, structure)
        if estimator is None or name in instance.case.without:
            continue
        leaf = instance.scores(dtype).requires_grad_()
        z = spigot.argmax(leaf, structure, estimator, mask=mask)
        whole = estimator.hard and not isinstance(structure, spigot.RelaxedProgram)
        slow = name in THROUGH_HULLS or isinstance(structure, NEGOTIATED | spigot.RelaxedProgram | spigot.Oracle)
        slow = slow or isinstance(structure.relaxation, spigot.LinearPolytope | spigot.Birkhoff)
        kind: Kind = "iterated" if slow else "close"
        yield Value(f"{name} forward", z, "exact" if whole else kind)
        yield Value(f"{name} gradient", _gradient(_loss(z, weights, structure.event_ndim).sum(), leaf), kind)


def adapting() -> Iterator[Value]:
    """`AdaptiveIMLE` in a module: its state and gradients over five steps."""
    for name, two_sided in (("OneOf", False), ("ProjectiveTrees", True)):
        (case,) = (case for case in STRUCTURES if case.name == name)
        estimator = spigot.AdaptiveIMLE(start=0.5, samples=2, two_sided=two_sided, rate=0.3, seed=7)
        layer = spigot.Argmax(case.structure, estimator)
        instance = next(case.instances())
        scores, weights = instance.scores(torch.float64), instance.other("loss", torch.float64)
        for step in range(5):
            leaf = (scores + 0.25 * step * weights).requires_grad_()
            z = layer(leaf, instance.mask)
            _loss(z, weights, case.structure.event_ndim).sum().backward()
            assert leaf.grad is not None
            yield Value(f"AdaptiveIMLE/{name}/{step} forward", z, "exact")
            yield Value(f"AdaptiveIMLE/{name}/{step} gradient", leaf.grad, "close")
            for what, value in sorted(layer.state_dict().items()):
                yield Value(f"AdaptiveIMLE/{name}/{step} {what}", value.clone(), "close")


def in_half_precision() -> Iterator[Value]:
    """Scores in bfloat16, of which the results are in bfloat16, too."""
    for case in STRUCTURES:
        if case.name not in ("OneOf", "ProjectiveTrees", "SemanticGraphs", "Chains"):
            continue
        structure, instance = case.structure, next(case.instances())
        weights = instance.other("loss", torch.bfloat16)
        for name in ("Spigot", "StructuredAttention", "StraightThrough-blocks"):
            leaf = instance.scores(torch.bfloat16).requires_grad_()
            z = spigot.argmax(leaf, structure, ESTIMATORS[name](structure), mask=instance.mask)
            gradient = _gradient((z * weights).float().sum(), leaf)
            yield Value(f"half precision/{case.name}/{name} forward", z, "close")
            yield Value(f"half precision/{case.name}/{name} gradient", gradient, "close")


def _fitting(name: str, structure: spigot.AbstractStructure) -> spigot.AbstractEstimator | None:
    """The estimator of this name, if it is one for this structure."""
    if name in THROUGH_HULLS and name != "SparseMAP" and not structure.tractable_hull:
        return None
    try:
        estimator = ESTIMATORS[name](structure)
        estimator.check(structure)
    except TypeError:
        return None
    return estimator


def _loss(z: Tensor, weights: Tensor, event_ndim: int) -> Tensor:
    """A loss of each instance that is not linear in z."""
    axes = tuple(range(-event_ndim, 0))
    along = (weights * z).sum(axes)
    return along + 0.5 * torch.log1p(along.square()) + 0.2 * (weights.flip(-1) * z.pow(3)).sum(axes)


def _gradient(value: Tensor, leaf: Tensor) -> Tensor:
    if not value.requires_grad:
        return torch.zeros_like(leaf)
    (gradient,) = torch.autograd.grad(value, leaf, retain_graph=True, allow_unused=True)
    return torch.zeros_like(leaf) if gradient is None else gradient


def _summary(value: Value) -> Value:
    """Some weighted sums of many numbers."""
    if value.tensor.numel() <= 16:
        return value
    flat = value.tensor.detach().double().flatten()
    weights = Numbers("summary").scores(4, flat.numel())
    return Value(value.name, (weights @ flat / flat.numel() ** 0.5).to(value.tensor.dtype), value.kind)


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
