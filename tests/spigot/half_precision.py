"""Half precision, as checks of the conformance suite: what float32 says of the same numbers, rounded."""

import torch
from torch import Tensor

import spigot
from tests.spigot.cases import FEW, EstimatorCase, PolytopeCase, StructureCase
from tests.spigot.checks import ESTIMATORS, HALF, MARGINALS, POLYTOPES, STRUCTURES
from tests.spigot.estimators.conformance import upstream

BATCH = 2


def rounded(ours: Tensor, exact: Tensor, dtype: torch.dtype) -> None:
    """The first is the second in half precision, and the second is not in half precision itself."""
    assert exact.dtype == torch.float32
    assert ours.dtype == dtype
    assert torch.equal(ours, exact.to(dtype))


@STRUCTURES.check(dtypes=HALF)
def half_precision_is_float32_rounded(case: StructureCase, dtype: torch.dtype) -> None:
    scores, mask = case.draw(30, BATCH, dtype=dtype)
    z = case.structure.argmax(scores, mask)
    rounded(z, case.structure.argmax(scores.float(), mask), dtype)
    assert case.structure.contains(z, mask).all()
    assert case.structure.violations(z + 1, mask) == case.structure.violations(z.float() + 1, mask)


@MARGINALS.check(dtypes=HALF)
def sums_in_half_precision_are_float32_rounded(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    scores, mask = case.draw(31, BATCH, dtype=dtype)
    for verb in (case.marginal.marginals, case.marginal.log_partition):
        leaf, exact = scores.clone().requires_grad_(), scores.float().requires_grad_()
        ours, theirs = verb(leaf, mask), verb(exact, mask)
        rounded(ours, theirs, dtype)
        grad = torch.ones_like(ours)
        back = torch.autograd.grad(ours, leaf, grad)[0]
        rounded(back, torch.autograd.grad(theirs, exact, grad.float())[0], dtype)


@POLYTOPES.check(dtypes=HALF)
def projections_in_half_precision_are_float32_rounded(case: PolytopeCase, dtype: torch.dtype) -> None:
    points, mask = case.draw(32, BATCH, dtype=dtype)
    projected = case.polytope.project(points, mask)
    rounded(projected, case.polytope.project(points.float(), mask), dtype)
    assert case.polytope.contains(projected, mask, atol=0.05).all()  # eight bits and a few terms


@ESTIMATORS.check(needs=lambda estimator, case: case.name in FEW, dtypes=HALF)
def half_precision_passes_in_both_directions(estimator: EstimatorCase, case: StructureCase, dtype: torch.dtype) -> None:
    rule = estimator.make(case.structure)
    scores, mask = case.draw(33, BATCH, dtype=dtype)
    grad = upstream(scores)
    leaf, exact = scores.clone().requires_grad_(), scores.float().requires_grad_()
    z, theirs = (spigot.argmax(s, case.structure, rule, mask=mask) for s in (leaf, exact))
    rounded(z, theirs, dtype)
    z.backward(grad)
    theirs.backward(grad.float())
    assert leaf.grad is not None
    assert exact.grad is not None
    rounded(leaf.grad, exact.grad, dtype)
    account = rule.explain(case.structure, scores, grad, mask)
    told = rule.explain(case.structure, scores.float(), grad.float(), mask)
    assert torch.equal(account.support, told.support)
    for name in ("z", "grad", "stepped", "projected", "gradient", "distance", "gap"):
        if (value := getattr(told, name)) is not None:
            rounded(getattr(account, name), value, dtype)
