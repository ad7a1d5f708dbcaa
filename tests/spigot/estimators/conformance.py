"""Checks that every estimator must pass on every structure that has what it needs."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import gradcheck

import spigot
from spigot import Explanation
from tests.spigot import brute
from tests.spigot.cases import EstimatorCase, StructureCase
from tests.spigot.checks import DOUBLE, ESTIMATORS
from tests.spigot.conformance import check_outside, check_shapes, close

BATCH = 6


def upstream(scores: Tensor) -> Tensor:
    """An arbitrary dL/dz that each instance carries with it: NaN where the scores are."""
    return 0.4 * torch.sin(7 * scores) - 0.3


def layer_gradient(estimator: EstimatorCase, case: StructureCase) -> Callable[[Tensor, Tensor], Tensor]:
    """dL/ds as a function of scores and mask."""
    rule = estimator.make(case.structure)

    def gradient(scores: Tensor, mask: Tensor) -> Tensor:
        leaf = scores.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        z = spigot.argmax(leaf, case.structure, rule, mask=mask)
        z.backward(upstream(scores))
        return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad

    return gradient


def has_true_gradients(estimator: EstimatorCase, case: StructureCase) -> bool:
    return not estimator.make(case.structure).hard and not estimator.sampled


def near(estimator: EstimatorCase, dtype: torch.dtype) -> float:
    """Estimators that stop at a duality gap are as exact as its square root."""
    if estimator.hull:
        return 1e-6 if dtype == torch.float64 else 2e-3
    return close(dtype)


@ESTIMATORS.check()
def forward_is_what_it_says(estimator: EstimatorCase, case: StructureCase, dtype: torch.dtype) -> None:
    rule = estimator.make(case.structure)
    scores, mask = case.draw(20, BATCH, dtype=dtype)
    z = spigot.argmax(scores, case.structure, rule, mask=mask)
    assert z.dtype == dtype
    assert z.shape == scores.shape
    if rule.hard:
        assert torch.equal(z, case.structure.argmax(scores, mask))
        assert case.structure.contains(z, mask).all()
    else:
        assert case.structure.relaxation.contains(z, mask).all()
        for p, m in zip(case.flat(z), case.flat(mask), strict=True):
            inside = brute.project(case.vertices(m), p.double())
            torch.testing.assert_close(p.double(), inside, rtol=0, atol=1e-6 if dtype == torch.float64 else 1e-4)


@ESTIMATORS.check(dtypes=DOUBLE)
def gradient_is_shape_blind(estimator: EstimatorCase, case: StructureCase, dtype: torch.dtype) -> None:
    check_shapes(layer_gradient(estimator, case), case, dtype, len(case.parts))


@ESTIMATORS.check(dtypes=DOUBLE)
def nothing_passes_the_mask(estimator: EstimatorCase, case: StructureCase, dtype: torch.dtype) -> None:
    check_outside(layer_gradient(estimator, case), case, dtype)
    rule = estimator.make(case.structure)
    check_outside(lambda s, m: spigot.argmax(s, case.structure, rule, mask=m), case, dtype)


@ESTIMATORS.check()
def explain_tells_what_happens(estimator: EstimatorCase, case: StructureCase, dtype: torch.dtype) -> None:
    rule = estimator.make(case.structure)
    scores, mask = case.draw(21, BATCH, dtype=dtype)
    account = rule.explain(case.structure, scores, upstream(scores), mask)
    assert isinstance(account, Explanation)
    learning = scores.clone().requires_grad_()  # some estimators add noise only where there is something to learn
    torch.testing.assert_close(account.z, spigot.argmax(learning, case.structure, rule, mask=mask).detach())
    if rule.hard:
        assert case.structure.contains(account.z, mask).all()
    gradient = layer_gradient(estimator, case)(scores, mask)
    torch.testing.assert_close(account.gradient, gradient, rtol=0, atol=near(estimator, dtype))
    assert account.support.dtype == torch.bool
    assert account.support.shape == scores.shape
    carried = account.z if account.projected is None else account.projected
    assert torch.equal(account.support, carried != 0)
    assert account.distance.shape == account.gap.shape == (BATCH,)
    assert not account.grad[~mask].any()
    assert (account.gap <= (1e-9 if dtype == torch.float64 else 1e-6) * 10).all()
    assert (account.gap >= -1e-6).all()
    if account.stepped is not None and account.projected is not None:
        gone = torch.linalg.vector_norm((account.stepped - account.projected).flatten(1), dim=1)
        torch.testing.assert_close(account.distance, gone)


@ESTIMATORS.check(dtypes=DOUBLE)
def a_detached_input_stays_detached(estimator: EstimatorCase, case: StructureCase, dtype: torch.dtype) -> None:
    rule = estimator.make(case.structure)
    scores, mask = case.draw(22, BATCH, dtype=dtype)
    z = spigot.argmax(scores, case.structure, rule, mask=mask)
    assert not z.requires_grad
    scores.requires_grad_()
    with torch.no_grad():
        again = spigot.argmax(scores, case.structure, rule, mask=mask)
    assert not again.requires_grad
    torch.testing.assert_close(z, again, rtol=0, atol=0)


@ESTIMATORS.check(needs=has_true_gradients, dtypes=DOUBLE)
def true_gradients_pass_gradcheck(estimator: EstimatorCase, case: StructureCase, dtype: torch.dtype) -> None:
    rule = estimator.make(case.structure)
    scores, mask = case.draw(23, 3, dtype=dtype)
    scores = scores.nan_to_num().requires_grad_()
    assert gradcheck(lambda s: spigot.argmax(s, case.structure, rule, mask=mask), scores, atol=1e-5, fast_mode=True)


@ESTIMATORS.check(dtypes=DOUBLE)
def mapped_is_batched(estimator: EstimatorCase, case: StructureCase, dtype: torch.dtype) -> None:
    """Under vmap the mapped axis is one more batch axis, forward and back."""
    rule = estimator.make(case.structure)
    scores, mask = case.draw(24, 3, dtype=dtype)
    leaf = scores.clone().requires_grad_()
    z = torch.vmap(lambda s, m: spigot.argmax(s, case.structure, rule, mask=m))(leaf, mask)
    torch.testing.assert_close(
        z, spigot.argmax(leaf, case.structure, rule, mask=mask), rtol=0, atol=near(estimator, dtype)
    )
    (mapped,) = torch.autograd.grad(z, leaf, upstream(scores), allow_unused=True)
    ours = torch.zeros_like(leaf) if mapped is None else mapped
    torch.testing.assert_close(ours, layer_gradient(estimator, case)(scores, mask), rtol=0, atol=near(estimator, dtype))
