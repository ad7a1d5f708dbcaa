"""The verbs that only some structures have, as checks of the conformance suite: against enumeration, in many digits."""

import math
from decimal import Decimal, localcontext

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from tests.spigot import brute
from tests.spigot.cases import StructureCase
from tests.spigot.checks import DOUBLE, HALF, MARGINALS, RANKED, SAMPLERS, STRUCTURES
from tests.spigot.conformance import check_outside, check_shapes, close

BATCH = 6
DRAWS = 3000


def log_probabilities(vertices: Tensor, scores: Tensor) -> list[Decimal]:
    """log p of each member in fifty digits, from scores that are exact as they stand."""
    with localcontext() as context:
        context.prec = 50
        parts = [Decimal(float(s)) for s in scores.nan_to_num().flatten()]
        totals = [sum((parts[i] for i in z.flatten().nonzero()[:, 0].tolist()), Decimal(0)) for z in vertices]
        top = max(totals)
        log_total = top + sum(((t - top).exp() for t in totals), Decimal(0)).ln()
        return [t - log_total for t in totals]


def entropy(vertices: Tensor, scores: Tensor) -> float:
    with localcontext() as context:
        context.prec = 50
        return float(-sum((p.exp() * p for p in log_probabilities(vertices, scores)), Decimal(0)))


def divergence(vertices: Tensor, scores: Tensor, others: Tensor) -> float:
    with localcontext() as context:
        context.prec = 50
        pairs = zip(log_probabilities(vertices, scores), log_probabilities(vertices, others), strict=True)
        return float(sum((p.exp() * (p - q) for p, q in pairs), Decimal(0)))


@MARGINALS.check(dtypes=DOUBLE)
def entropy_equals_enumeration(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    for seed, scale in enumerate((1.0, 100.0, 1e4)):
        scores, mask = case.draw(40 + seed, 2, dtype=dtype, scale=scale)
        pairs = zip(case.flat(scores), case.flat(mask), strict=True)
        theirs = torch.tensor([entropy(case.vertices(m), s) for s, m in pairs], dtype=dtype)
        torch.testing.assert_close(case.marginal.entropy(scores, mask), theirs, rtol=1e-8, atol=1e-14 * 1e3 * scale)


@MARGINALS.check(dtypes=DOUBLE)
def divergence_equals_enumeration(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    for seed, scale in enumerate((1.0, 100.0)):
        scores, mask = case.draw(43 + seed, 2, dtype=dtype, scale=scale)
        others = torch.where(mask, scores.roll(1, -1).nan_to_num() * 0.7 + 0.1, torch.nan)
        triples = zip(case.flat(scores), case.flat(others), case.flat(mask), strict=True)
        theirs = torch.tensor([divergence(case.vertices(m), s, o) for s, o, m in triples], dtype=dtype)
        torch.testing.assert_close(case.marginal.kl(scores, others, mask), theirs, rtol=1e-8, atol=1e-11 * scale)
        same = case.marginal.kl(scores, scores.clone(), mask)
        torch.testing.assert_close(same, torch.zeros_like(same), rtol=0, atol=1e-11 * scale)


@MARGINALS.check()
def probabilities_sum_to_one(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    scores, mask = case.draw(45, 3, dtype=dtype)
    for s, m in zip(case.flat(scores), case.flat(mask), strict=True):
        vertices = case.vertices(m)
        many = s.expand(vertices.shape)
        log_p = case.marginal.log_prob(many, vertices.to(dtype), m.expand(vertices.shape))
        theirs = torch.tensor([float(p) for p in log_probabilities(vertices, s)], dtype=dtype)
        torch.testing.assert_close(log_p, theirs, rtol=close(dtype), atol=close(dtype))
        assert abs(float(log_p.double().exp().sum()) - 1) < 100 * close(dtype)


@MARGINALS.check(dtypes=DOUBLE)
def members_are_counted(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    _, mask = case.draw(46, BATCH, dtype=dtype)
    theirs = [math.log(len(case.vertices(m))) for m in case.flat(mask)]
    ours = case.marginal.log_count(mask)
    torch.testing.assert_close(ours, torch.tensor(theirs, dtype=torch.float64), rtol=1e-9, atol=1e-9)


@MARGINALS.check(dtypes=DOUBLE)
def entropy_and_divergence_pass_gradcheck(case: StructureCase, dtype: torch.dtype) -> None:
    marginal = case.marginal
    assert marginal
    scores, mask = case.draw(47, 2, dtype=dtype)
    scores = scores.nan_to_num().requires_grad_()
    others = (scores.detach().flip(-1) * 0.5).requires_grad_()
    assert gradcheck(lambda s: marginal.entropy(s, mask), scores, fast_mode=True)
    assert gradcheck(lambda s, o: marginal.kl(s, o, mask), (scores, others), fast_mode=True)


@MARGINALS.check(dtypes=DOUBLE)
def uncertainty_of_whole_numbers_is_refused(case: StructureCase, dtype: torch.dtype) -> None:
    """It would be rounded to one."""
    assert case.marginal
    scores, mask = case.draw(48, 2, dtype=dtype)
    whole = scores.nan_to_num().long()
    with pytest.raises(TypeError, match=r"scores has dtype torch.int64; it must be floating point"):
        case.marginal.entropy(whole, mask)
    with pytest.raises(TypeError, match=r"others has dtype torch.int64; it must be floating point"):
        case.marginal.kl(scores, whole, mask)


@MARGINALS.check(dtypes=HALF)
def uncertainty_in_half_precision_is_float32_rounded(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    scores, mask = case.draw(48, 2, dtype=dtype)
    others = scores.flip(-1).nan_to_num()
    wide = scores.float(), others.float()
    for ours, exact in (
        (case.marginal.entropy(scores, mask), case.marginal.entropy(wide[0], mask)),
        (case.marginal.kl(scores, others, mask), case.marginal.kl(*wide, mask)),
    ):
        assert ours.dtype == dtype
        assert torch.equal(ours, exact.to(dtype))


@STRUCTURES.check(dtypes=DOUBLE)
def mapped_is_batched(case: StructureCase, dtype: torch.dtype) -> None:
    """Under vmap the mapped axis is one more batch axis, wherever it stands."""
    scores, mask = case.draw(49, 3, dtype=dtype)
    z = case.structure.argmax(scores, mask)
    assert torch.equal(torch.vmap(case.structure.argmax)(scores, mask), z)
    last = torch.vmap(case.structure.argmax, in_dims=(-1, None))(scores[:1].movedim(0, -1), mask[0])
    assert torch.equal(last, z[:1])
    if case.marginal:
        mu = torch.vmap(case.marginal.marginals)(scores, mask)
        torch.testing.assert_close(mu, case.marginal.marginals(scores, mask), rtol=0, atol=close(dtype))


@SAMPLERS.check(dtypes=DOUBLE)
def samples_follow_the_marginals(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.sampling
    for seed, scale in enumerate((0.3, 2.0)):
        scores, mask = case.draw(50 + seed, BATCH, dtype=dtype, scale=scale)
        drawn = case.sampling.sample(scores, mask, DRAWS, torch.Generator().manual_seed(seed))
        assert drawn.shape == (DRAWS, *scores.shape)
        assert drawn.dtype == dtype
        mu = case.sampling.marginals(scores, mask)
        error = (mu * (1 - mu) / DRAWS).clamp(min=0).sqrt()
        assert ((drawn.mean(0) - mu).abs() <= 6 * error + 3 / DRAWS).all()


@SAMPLERS.check(dtypes=DOUBLE)
def samples_follow_the_probabilities(case: StructureCase, dtype: torch.dtype) -> None:
    """Marginals do not tell a distribution: the frequencies of whole members do."""
    assert case.sampling
    scores, mask = case.draw(52, 1, dtype=dtype)
    drawn = case.sampling.sample(scores, mask, DRAWS, torch.Generator().manual_seed(0))[:, 0]
    vertices = case.vertices(mask[0])
    counts = (drawn.flatten(1) @ vertices.flatten(1).T == vertices.flatten(1).sum(1)) & (
        drawn.flatten(1).sum(1, keepdim=True) == vertices.flatten(1).sum(1)
    )
    assert (counts.sum(1) == 1).all(), "every draw is a member"
    p = torch.tensor([float(x.exp()) for x in log_probabilities(vertices, scores[0])], dtype=dtype)
    error = (p * (1 - p) / DRAWS).sqrt()
    assert ((counts.double().mean(0) - p).abs() <= 6 * error + 3 / DRAWS).all()


@SAMPLERS.check()
def samples_come_from_the_generator(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.sampling
    scores, mask = case.draw(53, 2, dtype=dtype)
    draws, ends = [], []
    for values, seed in ((scores, 1), (scores, 1), (-scores, 1), (scores, 2)):
        generator = torch.Generator().manual_seed(seed)
        draws.append(case.sampling.sample(values, mask, 40, generator))
        ends.append(generator.get_state())
    assert torch.equal(draws[0], draws[1])
    assert torch.equal(ends[0], ends[2]), "how far the generator goes does not depend on the scores"
    assert not torch.equal(draws[0], draws[3]) or all(len(case.vertices(m)) == 1 for m in case.flat(mask))
    assert not draws[0].requires_grad
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        one = case.sampling.sample(scores, mask)
        torch.manual_seed(5)
        assert torch.equal(one, case.sampling.sample(scores, mask))
    assert one.shape == (1, *scores.shape)
    assert not one[0][~mask].any()


def lead(case: StructureCase, scores: Tensor, mask: Tensor) -> Tensor:
    """How far the best member is ahead of the second; zero if it is alone."""
    values = brute.values(case.vertices(mask), scores).sort(descending=True).values
    return values[0] - values[1] if len(values) > 1 else values.new_zeros(())


@SAMPLERS.check()
def peaked_samples_are_the_argmax(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.sampling
    for scale in (1e4, 1e8):
        scores, mask = case.draw(54, BATCH, dtype=dtype, scale=scale)
        drawn = case.sampling.sample(scores, mask, 3, torch.Generator().manual_seed(0))
        z = case.structure.argmax(scores, mask)
        best = torch.stack([lead(case, s, m) for s, m in zip(case.flat(scores), case.flat(mask), strict=True)])
        clear = (best > 60) | (best == 0)
        assert clear.any()
        assert torch.equal(drawn[:, clear], z[clear].expand(3, *z[clear].shape))


@SAMPLERS.check()
def samples_have_the_shape_of_their_batch(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.sampling
    scores, mask = case.draw(55, 2, 3, dtype=dtype)
    assert case.sampling.sample(scores, mask, 4).shape == (4, *scores.shape)
    assert case.sampling.sample(scores[0, 0], mask[0, 0], 4).shape == (4, *case.parts)
    nothing = case.sampling.sample(scores[:0], mask[:0], 4)
    assert nothing.shape == (4, 0, 3, *case.parts)
    assert case.sampling.sample(scores, mask, 0).shape == (0, *scores.shape)
    with pytest.raises(ValueError, match="samples is -1; it must be a whole number, zero or more"):
        case.sampling.sample(scores, mask, -1)


@SAMPLERS.check(needs=lambda case: case.variable, dtypes=DOUBLE)
def samples_do_not_depend_on_padding(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.sampling
    scores, mask = case.draw(56, 6, dtype=dtype)
    seeds = torch.arange(6 * 5).reshape(5, 6) * 7919
    room = [6, *(size + 3 for size in case.parts[: case.axes]), *case.parts[case.axes :]]
    inside = (slice(None), *(slice(size) for size in case.parts[: case.axes]))
    wide, wide_mask = scores.new_full(room, torch.nan), mask.new_zeros(room)
    wide[inside], wide_mask[inside] = scores, mask
    z = case.sampling.sample_from_seeds(wide, seeds, wide_mask)
    narrow = case.sampling.sample_from_seeds(scores, seeds, mask)
    assert torch.equal(torch.stack([drawn[inside] for drawn in z]), narrow)


def ranked_values(case: StructureCase, scores: Tensor, mask: Tensor, k: int) -> Tensor:
    rows = []
    for s, m in zip(case.flat(scores), case.flat(mask), strict=True):
        values = brute.values(case.vertices(m), s).sort(descending=True).values[:k]
        rows.append(torch.nn.functional.pad(values, (0, k - len(values)), value=-torch.inf))
    return torch.stack(rows, 1)


@RANKED.check()
def the_k_best_are_those_of_the_list(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.ranked
    for seed, (k, integers) in enumerate(((1, False), (4, False), (7, True), (60, False))):
        scores, mask = case.draw(60 + seed, BATCH, dtype=dtype, integers=integers)
        z, values = case.ranked.k_best(scores, k, mask)
        assert z.shape == (k, *scores.shape)
        assert z.dtype == values.dtype == dtype
        theirs = ranked_values(case, scores, mask, k)
        torch.testing.assert_close(values.double(), theirs, rtol=close(dtype), atol=close(dtype))
        for b in range(BATCH):
            found = int(theirs[:, b].isfinite().sum())
            mine = z[:found, b]
            assert case.structure.contains(mine, mask[b].expand(mine.shape)).all()
            assert len(mine.flatten(1).unique(dim=0)) == found, "no member twice"
            assert not z[found:, b].any()


@RANKED.check()
def the_first_of_the_k_best_is_the_argmax(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.ranked
    ranked = case.ranked
    scores, mask = case.draw(64, BATCH, dtype=dtype)
    z, values = ranked.k_best(scores.requires_grad_(), 3, mask)
    assert torch.equal(z[0], case.structure.argmax(scores.detach(), mask))
    assert not z.requires_grad
    (back,) = torch.autograd.grad(values[0].sum(), scores)
    assert torch.equal(back, z[0])
    check_shapes(
        lambda s, m: ranked.k_best(s, 2, m)[0].movedim(0, s.ndim - len(case.parts)), case, dtype, len(case.parts) + 1
    )
    check_outside(lambda s, m: ranked.k_best(s, 1, m)[0][0], case, dtype)
    assert ranked.k_best(scores, 0, mask)[0].shape == (0, *scores.shape)
    with pytest.raises(ValueError, match="k is -1; it must be a whole number, zero or more"):
        ranked.k_best(scores, -1, mask)


@RANKED.check(dtypes=HALF)
def ranks_in_half_precision_are_those_of_float32(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.ranked
    scores, mask = case.draw(65, 2, dtype=dtype)
    z, values = case.ranked.k_best(scores, 3, mask)
    exact, theirs = case.ranked.k_best(scores.float(), 3, mask)
    assert z.dtype == values.dtype == dtype
    assert torch.equal(z, exact.to(dtype))
    assert torch.equal(values, theirs.to(dtype))


@STRUCTURES.check(dtypes=DOUBLE)
def decisions_carry_no_gradient(case: StructureCase, dtype: torch.dtype) -> None:
    scores, mask = case.draw(80, 2, dtype=dtype)
    leaf = scores.nan_to_num().requires_grad_()
    assert not case.structure.argmax(leaf, mask).requires_grad


@MARGINALS.check(dtypes=DOUBLE)
def certain_members_have_no_entropy(case: StructureCase, dtype: torch.dtype) -> None:
    """At these scales one member has all the mass, and totals have lost the digits that tell it from the others."""
    assert case.marginal
    for scale in (1e8, 1e10):
        scores, mask = case.draw(81, 8, dtype=dtype, scale=scale)
        clear = torch.stack([lead(case, s, m) for s, m in zip(case.flat(scores), case.flat(mask), strict=True)]) > 1e3
        alone = torch.tensor([len(case.vertices(m)) == 1 for m in case.flat(mask)])
        sure = clear | alone
        assert sure.any()
        mu, z = case.marginal.marginals(scores, mask), case.structure.argmax(scores, mask)
        torch.testing.assert_close(mu[sure], z[sure], rtol=0, atol=1e-9)
        assert (case.marginal.entropy(scores, mask)[sure] <= 1e-15 * 1e3 * scale).all()


@MARGINALS.check(dtypes=DOUBLE)
def sums_can_be_mapped_twice(case: StructureCase, dtype: torch.dtype) -> None:
    assert case.marginal
    scores, mask = case.draw(82, 2, 2, dtype=dtype)
    for verb in (case.marginal.log_partition, case.marginal.marginals, case.marginal.entropy):
        torch.testing.assert_close(torch.vmap(torch.vmap(verb))(scores, mask), verb(scores, mask), rtol=0, atol=1e-9)
