"""Checks that every structure, polytope and estimator must pass.

Each check takes a case of `tests.spigot.cases` and a dtype. `tests/spigot/test_conformance.py` runs all checks on all
cases that have what they need; a new structure, polytope or estimator gets them by adding one case to the list.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from tests.spigot import brute
from tests.spigot.cases import Case, PolytopeCase, StructureCase
from tests.spigot.checks import DOUBLE, MARGINALS, POLYTOPES, STRUCTURES

BATCH = 24


def close(dtype: torch.dtype) -> float:
    """How near two computations of the same number must come."""
    return 1e-9 if dtype == torch.float64 else 2e-5


def member(z: Tensor, vertices: Tensor) -> bool:
    return bool((vertices == z.double()).flatten(1).all(1).any())


def check_shapes(function: Callable[[Tensor, Tensor], Tensor], case: Case, dtype: torch.dtype, event_ndim: int) -> None:
    """Batch axes are free, batches equal loops, memory layout and order do not matter, nothing is written to.

    `event_ndim` counts the part axes of the result.
    """
    values, mask = case.draw(1, 4, dtype=dtype)
    before = values.clone(), mask.clone()
    whole = function(values, mask)
    parts = whole.shape[whole.ndim - event_ndim :]
    assert whole.dtype == dtype
    assert torch.equal(values.nan_to_num(), before[0].nan_to_num())
    assert torch.equal(mask, before[1])

    def same(left: Tensor, right: Tensor) -> None:
        torch.testing.assert_close(left, right, rtol=close(dtype), atol=close(dtype))

    alone = [function(v, m) for v, m in zip(case.flat(values), case.flat(mask), strict=True)]
    assert alone[0].shape == parts
    same(whole, torch.stack(alone))
    gaps = [tensor.repeat_interleave(2, 0)[::2].unflatten(0, (2, 2)) for tensor in (values, mask)]
    assert not gaps[0].is_contiguous()
    same(function(*gaps), whole.reshape(2, 2, *parts))
    order = torch.tensor([3, 1, 0, 2])
    turned = [tensor[order].movedim(0, -1).contiguous().movedim(-1, 0) for tensor in (values, mask)]
    assert not turned[0].is_contiguous()
    same(function(*turned), whole[order])
    same(function(values[:1].expand(3, *case.parts), mask[:1].expand(3, *case.parts)), whole[:1].expand(3, *parts))
    for empty in ((0,), (2, 0)):
        nothing = function(values.new_zeros(*empty, *case.parts), mask.new_zeros(*empty, *case.parts))
        assert nothing.shape == (*empty, *parts)
        assert nothing.dtype == dtype


def check_outside(function: Callable[[Tensor, Tensor], Tensor], case: Case, dtype: torch.dtype) -> None:
    """What stands outside the mask changes nothing, and the result there is exactly zero."""
    values, mask = case.draw(2, 6, dtype=dtype)
    with_nan = function(values, mask)
    numbers = values.new_tensor([1e30, torch.inf, -1e30, -torch.inf])[torch.arange(values.numel()) % 4]
    assert torch.equal(with_nan, function(torch.where(mask, values, numbers.reshape(values.shape)), mask))
    assert not with_nan[~mask].any()
    assert with_nan.isfinite().all()


@STRUCTURES.check()
def argmax_is_a_member_that_nothing_beats(case: StructureCase, dtype: torch.dtype) -> None:
    for seed, (scale, integers) in enumerate(((1.0, False), (1.0, True), (1e3, False))):
        scores, mask = case.draw(seed, BATCH, dtype=dtype, scale=scale, integers=integers)
        z = case.structure.argmax(scores, mask)
        for s, m, answer in zip(case.flat(scores), case.flat(mask), case.flat(z), strict=True):
            vertices = case.vertices(m)
            assert not case.integral or member(answer, vertices)
            best = brute.values(vertices, s).max()
            mine = (answer.double() * s.double().nan_to_num()).sum()
            slack = 1e-6 * s.nan_to_num().abs().max() if dtype == torch.float32 else 1e-12 * (1 + best.abs())
            assert mine >= best - slack


@STRUCTURES.check()
def argmax_is_shape_blind(case: StructureCase, dtype: torch.dtype) -> None:
    check_shapes(case.structure.argmax, case, dtype, len(case.parts))


@STRUCTURES.check()
def argmax_ignores_what_does_not_exist(case: StructureCase, dtype: torch.dtype) -> None:
    check_outside(case.structure.argmax, case, dtype)


@STRUCTURES.check()
def an_omitted_mask_is_everything(case: StructureCase, dtype: torch.dtype) -> None:
    scores, _ = case.draw(3, 4, dtype=dtype)
    scores = scores.nan_to_num(0.5)
    everything = case.structure.full_mask(scores)
    z = case.structure.argmax(scores, everything)
    assert torch.equal(case.structure.argmax(scores), z)
    impossible = scores.masked_fill(~everything, torch.nan)
    assert torch.equal(case.structure.argmax(impossible), z)
    assert torch.equal(case.structure.argmax(impossible, torch.ones_like(everything)), z)
    projected = case.structure.relaxation.project(impossible)
    torch.testing.assert_close(projected, case.structure.relaxation.project(scores, everything), rtol=0, atol=1e-6)
    if case.marginal:
        mu = case.marginal.marginals(scores, everything)
        torch.testing.assert_close(case.marginal.marginals(impossible), mu, rtol=0, atol=close(dtype))
    if case.variable:
        words = case.parts[0] - (case.rooted and case.axes > 1)
        assert torch.equal(everything, case.structure.mask(torch.full((4,), words)))


@STRUCTURES.check(needs=lambda case: case.variable)
def an_instance_of_length_zero_has_one_member(case: StructureCase, dtype: torch.dtype) -> None:
    """It has no parts, whether the tensor has none either or some that are padding."""
    for size in (None, case.parts[0] - (case.rooted and case.axes > 1)):
        mask = case.structure.mask(torch.zeros(2, dtype=torch.int64), size)
        scores = torch.full(mask.shape, torch.nan, dtype=dtype)
        z = case.structure.argmax(scores, mask)
        assert z.shape == mask.shape
        assert not z.any()
        assert case.structure.contains(z, mask).tolist() == [True, True]
        assert not case.structure.relaxation.project(scores, mask).any()
        assert case.structure.relaxation.contains(z, mask).all()
        if case.marginal:
            zeros = torch.zeros(2, dtype=dtype)
            assert torch.equal(case.marginal.entropy(scores.nan_to_num(), mask), zeros)
            assert torch.equal(case.marginal.log_count(mask), zeros.double())
            assert not case.marginal.marginals(scores, mask).any()
        if case.sampling:
            assert torch.equal(case.sampling.sample(scores, mask, 3), torch.stack([z] * 3))
        if case.ranked:
            assert case.ranked.k_best(scores.nan_to_num(), 2, mask)[1].tolist() == [[0, 0], [-torch.inf, -torch.inf]]


@STRUCTURES.check(dtypes=DOUBLE)
def contains_and_violations_agree_with_the_list(case: StructureCase, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(4)
    _, mask = case.draw(4, 8, dtype=dtype)
    for m in case.flat(mask):
        vertices = case.vertices(m)
        some = vertices[torch.randperm(len(vertices), generator=generator)[:20]].to(dtype)
        flipped = some.clone()
        for z in flipped:
            z.view(-1)[torch.randint(z.numel(), (1,), generator=generator)] += 1
        noise = (torch.rand(20, *case.parts, generator=generator) < 0.3) & m
        candidates = torch.cat([some, flipped % 2, noise.to(dtype)])
        masks = m.expand_as(candidates)
        expected = [member(z, vertices) for z in candidates]
        assert all(expected[: len(some)])
        assert case.structure.contains(candidates, masks).tolist() == expected
        messages = case.structure.violations(candidates, masks)
        assert [not broken for broken in messages] == expected
        assert all(isinstance(text, str) and text for broken in messages for text in broken)


@STRUCTURES.check(dtypes=DOUBLE)
def contains_says_what_violations_say(case: StructureCase, dtype: torch.dtype) -> None:
    """Of members, of what differs from one in a few parts, and of anything, numbers other than 0 and 1 among it."""
    generator = torch.Generator().manual_seed(40)
    scores, mask = case.draw(40, 3, 16, dtype=dtype)
    z = case.structure.argmax(scores, mask)
    few = (z - (torch.rand(z.shape, generator=generator) < 1.5 / z[0, 0].numel()).to(dtype)).abs()
    other = torch.rand(z.shape, generator=generator).round(decimals=1) * (
        torch.rand(z.shape, generator=generator) < 0.2
    )
    spoilt = z.clone().masked_fill_(torch.rand(z.shape, generator=generator) < 0.05, torch.nan)
    anything = (torch.rand(z.shape, generator=generator) < 0.4).to(dtype)
    for candidate in (z, few, other.to(dtype), spoilt, anything, torch.zeros_like(z), torch.ones_like(z)):
        for exists in (mask, None):
            messages = case.structure.violations(candidate, exists)
            found = case.structure.contains(candidate, exists)
            assert found.shape == (3, 16)
            assert found.flatten().tolist() == [not broken for broken in messages]


@STRUCTURES.check(needs=lambda case: case.integral)
def only_zeros_and_ones_are_members(case: StructureCase, dtype: torch.dtype) -> None:
    _, mask = case.draw(5, 8, dtype=dtype)
    for m in case.flat(mask):
        vertices = case.vertices(m).to(dtype)
        if len(vertices) > 1:
            middle = vertices[:2].mean(0)
            assert not case.structure.contains(middle, m)
            assert case.structure.violations(middle, m)[0]


@STRUCTURES.check()
def the_relaxation_holds_every_member(case: StructureCase, dtype: torch.dtype) -> None:
    _, mask = case.draw(6, 8, dtype=dtype)
    for m in case.flat(mask):
        vertices = case.vertices(m).to(dtype)
        masks = m.expand_as(vertices)
        assert case.structure.relaxation.contains(vertices, masks).all()
        some = vertices[:: max(1, len(vertices) // 8)]
        projected = case.structure.relaxation.project(some, m.expand_as(some))
        torch.testing.assert_close(projected, some, rtol=0, atol=close(dtype))


@STRUCTURES.check(needs=lambda case: case.variable)
def padding_changes_nothing(case: StructureCase, dtype: torch.dtype) -> None:
    scores, mask = case.draw(7, 6, dtype=dtype)
    room = [6, *(size + 3 for size in case.parts[: case.axes]), *case.parts[case.axes :]]
    inside = (slice(None), *(slice(size) for size in case.parts[: case.axes]))
    wide, wide_mask = scores.new_full(room, torch.nan), mask.new_zeros(room)
    wide[inside], wide_mask[inside] = scores, mask
    z = case.structure.argmax(wide, wide_mask)
    assert torch.equal(z[inside], case.structure.argmax(scores, mask))
    assert not z[~wide_mask].any()
    if case.marginal:
        mu = case.marginal.marginals(wide, wide_mask)
        torch.testing.assert_close(mu[inside], case.marginal.marginals(scores, mask), rtol=0, atol=close(dtype))


@MARGINALS.check()
def log_partition_equals_the_sum(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    for seed, scale in enumerate((1.0, 30.0, 1000.0)):
        scores, mask = case.draw(seed, BATCH, dtype=dtype, scale=scale)
        ours = case.marginal.log_partition(scores, mask)
        assert ours.dtype == dtype
        assert ours.shape == (BATCH,)
        pairs = zip(case.flat(scores), case.flat(mask), strict=True)
        theirs = torch.stack([brute.log_partition(case.vertices(m), s) for s, m in pairs])
        torch.testing.assert_close(ours.double(), theirs, rtol=close(dtype), atol=close(dtype) * scale)


@MARGINALS.check()
def marginals_equal_the_mean(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    for seed, scale in enumerate((1.0, 30.0, 1000.0)):
        scores, mask = case.draw(seed, BATCH, dtype=dtype, scale=scale)
        mu = case.marginal.marginals(scores, mask)
        pairs = zip(case.flat(scores), case.flat(mask), strict=True)
        theirs = torch.stack([brute.marginals(case.vertices(m), s) for s, m in pairs])
        torch.testing.assert_close(mu.double(), theirs, rtol=0, atol=close(dtype))
        assert mu.min() >= 0
        assert mu.max() <= 1


@MARGINALS.check()
def marginals_are_the_gradient_of_log_partition(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    scores, mask = case.draw(8, BATCH, dtype=dtype)
    scores.requires_grad_()
    (gradient,) = torch.autograd.grad(case.marginal.log_partition(scores, mask).sum(), scores)
    mu = case.marginal.marginals(scores.detach(), mask)
    torch.testing.assert_close(gradient, mu, rtol=0, atol=close(dtype))
    assert not gradient[~mask].any()
    with torch.no_grad():
        assert torch.equal(case.marginal.marginals(scores, mask), mu)
    torch.testing.assert_close(case.marginal.marginals(scores, mask).detach(), mu, rtol=0, atol=close(dtype))


@MARGINALS.check()
def derivative_of_marginals_is_the_covariance(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    scores, mask = case.draw(9, BATCH, dtype=dtype, scale=3.0)
    direction = torch.randn(scores.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64).to(dtype)
    scores.requires_grad_()
    mu = case.marginal.marginals(scores, mask)
    (back,) = torch.autograd.grad((mu * direction).sum(), scores)
    for s, m, d, b in zip(case.flat(scores), case.flat(mask), case.flat(direction), case.flat(back), strict=True):
        theirs = brute.covariance(case.vertices(m), s, d)
        torch.testing.assert_close(b.double(), theirs, rtol=0, atol=10 * close(dtype))
        assert not b[~m].any()


@MARGINALS.check(dtypes=DOUBLE)
def gradients_pass_gradcheck(case: StructureCase, dtype: torch.dtype) -> None:
    marginal = case.marginal
    assert marginal
    scores, mask = case.draw(10, 4, dtype=dtype)
    scores = scores.nan_to_num().requires_grad_()
    assert gradcheck(lambda s: marginal.log_partition(s, mask), scores, fast_mode=True)
    assert gradgradcheck(lambda s: marginal.log_partition(s, mask), scores, fast_mode=True)
    assert gradcheck(lambda s: marginal.marginals(s, mask), scores, fast_mode=True)


@MARGINALS.check()
def marginals_are_shape_blind(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    check_shapes(case.marginal.marginals, case, dtype, len(case.parts))
    check_shapes(case.marginal.log_partition, case, dtype, 0)


@MARGINALS.check()
def marginals_ignore_what_does_not_exist(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    check_outside(case.marginal.marginals, case, dtype)


def draw_points(case: PolytopeCase, seed: int, dtype: torch.dtype, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    return case.draw(seed, BATCH if case.exact else 8, dtype=dtype, scale=scale)


def slack(case: PolytopeCase, dtype: torch.dtype, scale: float = 1.0) -> float:
    """How much the optimality of a projection may be missed: rounding, or the promised duality gap."""
    return (1e-9 if dtype == torch.float64 else 1e-6 if not case.exact else 2e-6) * (1 + 10 * scale) * 3


@POLYTOPES.check()
def projection_is_feasible_and_nearest(case: PolytopeCase, dtype: torch.dtype) -> None:
    for seed, scale in enumerate((0.3, 1.0, 10.0)):
        points, mask = draw_points(case, seed, dtype, scale)
        projected = case.polytope.project(points, mask)
        assert case.polytope.contains(projected, mask, atol=1e-5 if dtype == torch.float32 else 1e-7).all()
        if not case.euclidean:
            continue
        for x, m, p in zip(case.flat(points), case.flat(mask), case.flat(projected), strict=True):
            vertices = case.vertices(m)
            outward = (x.nan_to_num() - p).double().masked_fill(~m, 0)
            reach = brute.values(vertices, outward).max() - (outward * p.double()).sum()
            assert reach <= slack(case, dtype, scale), "the variational inequality fails at a vertex"


@POLYTOPES.check(needs=lambda case: case.euclidean)
def projection_lies_in_the_hull(case: PolytopeCase, dtype: torch.dtype) -> None:
    """Nearest point by a second algorithm, over the enumerated vertices."""
    points, mask = case.draw(11, 6, dtype=dtype)
    projected = case.polytope.project(points, mask)
    for x, m, p in zip(case.flat(points), case.flat(mask), case.flat(projected), strict=True):
        theirs = brute.project(case.vertices(m), x.double().nan_to_num().masked_fill(~m, 0))
        torch.testing.assert_close(p.double(), theirs, rtol=0, atol=1e-6 if dtype == torch.float64 else 2e-3)


@POLYTOPES.check()
def projection_is_idempotent(case: PolytopeCase, dtype: torch.dtype) -> None:
    points, mask = draw_points(case, 12, dtype)
    once = case.polytope.project(points, mask)
    torch.testing.assert_close(case.polytope.project(once, mask), once, rtol=0, atol=_near(case, dtype))


@POLYTOPES.check()
def vertices_are_fixed_points(case: PolytopeCase, dtype: torch.dtype) -> None:
    _, mask = draw_points(case, 13, dtype)
    for m in case.flat(mask)[:5]:
        vertices = case.vertices(m)
        some = vertices[:: max(1, len(vertices) // 10)].to(dtype)
        masks = m.expand_as(some)
        assert case.polytope.contains(some, masks).all()
        torch.testing.assert_close(case.polytope.project(some, masks), some, rtol=0, atol=_near(case, dtype))
        if len(vertices) > 1:
            beyond = 2 * some - vertices.mean(0).to(dtype)
            assert not case.polytope.contains(beyond, masks).any(), "past a vertex, away from the centre, is outside"


@POLYTOPES.check(needs=lambda case: case.euclidean)
def projection_never_expands(case: PolytopeCase, dtype: torch.dtype) -> None:
    a, mask = draw_points(case, 14, dtype)
    b = a + 0.5 * torch.randn(a.shape, generator=torch.Generator().manual_seed(14), dtype=torch.float64).to(dtype)
    axes = tuple(range(1, a.ndim))
    apart = torch.linalg.vector_norm((a - b).masked_fill(~mask, 0), dim=axes)
    after = torch.linalg.vector_norm(case.polytope.project(a, mask) - case.polytope.project(b, mask), dim=axes)
    assert (after <= apart + _near(case, dtype)).all()


@POLYTOPES.check()
def projection_is_shape_blind(case: PolytopeCase, dtype: torch.dtype) -> None:
    check_shapes(case.polytope.project, case, dtype, len(case.parts))
    points, mask = case.draw(15, 2, 3, dtype=dtype)
    assert case.polytope.contains(points.nan_to_num(), mask).shape == (2, 3)


@POLYTOPES.check()
def projection_ignores_what_does_not_exist(case: PolytopeCase, dtype: torch.dtype) -> None:
    check_outside(case.polytope.project, case, dtype)


@POLYTOPES.check()
def contains_refuses_mass_outside_the_mask(case: PolytopeCase, dtype: torch.dtype) -> None:
    points, mask = draw_points(case, 16, dtype)
    stray = case.polytope.project(points, mask).clone()
    for p, m in zip(case.flat(stray), case.flat(mask), strict=True):
        p.view(-1)[(~m).view(-1).nonzero()[:1]] = 0.5
    full = mask.flatten(1).all(1)
    assert torch.equal(case.polytope.contains(stray, mask), full)


def _near(case: PolytopeCase, dtype: torch.dtype) -> float:
    """How near a projection must come; a duality gap of g allows an error of its square root."""
    if dtype == torch.float64:
        return 1e-12 if case.exact else 1e-6
    return 1e-6 if case.exact else 2e-3
