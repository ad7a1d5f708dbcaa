"""Draws and k-best lists of trees, against enumeration, closed forms and each other."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

import spigot
from spigot import NonProjectiveTrees, ProjectiveTrees
from spigot._algorithms.k_best import k_best_choices
from spigot._algorithms.sampling import uniform
from spigot._runtime.checks import NoStructureError
from tests.spigot import brute
from tests.spigot.structures.test_trees import Trees, every, full, kinds

NATIVE = spigot.kernels.available


def seeded(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def members_of(trees: Trees, mask: Tensor) -> Tensor:
    return brute.trees(mask, projective=trees.projective, single_root=trees.single_root)


def counts(drawn: Tensor, members: Tensor) -> Tensor:
    """How often each member of the list was drawn; every draw must be one."""
    arcs = int(members[0].sum())
    hits = torch.einsum("sij,vij->sv", drawn.double(), members) == arcs
    assert (hits.sum(1) == 1).all()
    assert (drawn.sum((-2, -1)) == arcs).all()
    return hits.sum(0)


def follows(found: Tensor, p: Tensor) -> None:
    """A chi-square test of counts against probabilities, wide enough to fail one time in millions."""
    expected = p * found.sum()
    common = expected >= 5
    chi = ((found - expected).square() / expected.clamp(min=1e-300))[common].sum()
    degrees = int(common.sum())
    assert chi <= degrees + 6 * math.sqrt(2 * degrees) + 20
    rare = float(expected[~common].sum())
    assert float(found[~common].sum()) <= rare + 6 * math.sqrt(rare) + 10


@every
@pytest.mark.parametrize("scale", [0.0, 1.0, 4.0])
def test_draws_follow_the_probabilities(trees: Trees, scale: float) -> None:
    scores = scale * torch.randn(2, 5, 5, generator=seeded(3), dtype=torch.float64)
    drawn = trees.sample(scores, None, 4000, seeded(4))
    members = members_of(trees, full(4))
    for b in range(2):
        follows(counts(drawn[:, b], members), brute.values(members, scores[b]).softmax(0))


@every
@pytest.mark.parametrize("hot", [6.0, 12.0, 1e4])
def test_draws_where_words_insist_on_each_other(trees: Trees, hot: float) -> None:
    """Walks would go around in loops without end; the distribution must not show that they give up."""
    scores = torch.randn(5, 5, generator=seeded(5), dtype=torch.float64)
    scores[1, 2] += hot
    scores[2, 1] += hot
    scores[3, 4] += hot / 2
    scores[4, 3] += hot / 2
    drawn = trees.sample(scores, None, 6000 if NATIVE else 3000, seeded(6))
    members = members_of(trees, full(4))
    follows(counts(drawn, members), brute.values(members, scores).softmax(0))


@every
def test_draws_of_longer_sentences_follow_the_marginals(trees: Trees) -> None:
    words, samples = (20, 3000) if NATIVE else (8, 1000)
    mask = trees.mask(torch.tensor([words, words - 5]))
    for scale in (1.0, 5.0):
        scores = scale * torch.randn(2, words + 1, words + 1, generator=seeded(7), dtype=torch.float64)
        mu = trees.marginals(scores, mask)
        mean = trees.sample(scores, mask, samples, seeded(8)).mean(0)
        assert ((mean - mu).abs() <= 6 * (mu * (1 - mu) / samples).sqrt() + 4 / samples).all()
        assert not mean[~mask].any()


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_draws_and_ranks_under_any_mask(seed: int, projective: bool, single_root: bool) -> None:
    generator = seeded(seed)
    mask = full(4) & (torch.rand(5, 5, generator=generator) < 0.6)
    exists = torch.rand(5, generator=generator) < 0.8
    exists[0] = True
    mask &= exists[:, None] & exists[None, :]
    scores = torch.randn(5, 5, generator=generator, dtype=torch.float64).masked_fill(~mask, torch.nan)
    trees: Trees = ProjectiveTrees(single_root) if projective else NonProjectiveTrees(single_root)
    members = members_of(trees, mask)
    if not len(members):
        with pytest.raises(NoStructureError, match="the instance"):
            trees.sample(scores, mask)
        with pytest.raises(NoStructureError, match="the instance"):
            trees.k_best(scores, 3, mask)
        return
    drawn = trees.sample(scores, mask, 20, generator)
    assert trees.contains(drawn, mask.expand(drawn.shape)).all()
    z, values = trees.k_best(scores, 7, mask)
    best = brute.values(members, scores).sort(descending=True).values[:7]
    assert trees.contains(z[: len(best)], mask.expand(len(best), 5, 5)).all()
    torch.testing.assert_close(values[: len(best)], best)
    assert len(z[: len(best)].unique(dim=0)) == len(best)
    assert values[len(best) :].isneginf().all()
    assert not z[len(best) :].any()


@kinds
def test_k_best_lists_every_tree(trees: Trees, projective: bool, single_root: bool) -> None:
    count = brute.tree_count(4, projective=projective, single_root=single_root)
    scores = torch.randn(2, 5, 5, generator=seeded(9), dtype=torch.float64)
    z, values = trees.k_best(scores, count + 2)
    members = members_of(trees, full(4))
    for b in range(2):
        order = brute.values(members, scores[b]).argsort(descending=True)
        assert torch.equal(z[:count, b], members[order])
    assert values[count:].isneginf().all()
    assert not z[count:].any()


@every
def test_k_best_with_ties_lists_no_tree_twice(trees: Trees) -> None:
    count = len(members_of(trees, full(4)))
    z, values = trees.k_best(torch.zeros(5, 5), count)
    assert len(z.unique(dim=0)) == count
    assert not values.any()


@every
def test_k_best_of_longer_sentences(trees: Trees) -> None:
    """The first is the argmax, none repeats, each is a tree, and the order is that of the scores."""
    words = 30 if NATIVE else 10
    scores = torch.randn(3, words + 1, words + 1, generator=seeded(10), dtype=torch.float64)
    mask = trees.mask(torch.tensor([words, words // 2, 1]))
    z, values = trees.k_best(scores, 6, mask)
    assert torch.equal(z[0], trees.argmax(scores, mask))
    assert (values[1:] <= values[:-1]).all()
    assert values[0].isfinite().all()
    assert values[1:, 2].isneginf().all()
    for b in range(2):
        assert len(z[:, b].unique(dim=0)) == 6
        assert trees.contains(z[:, b], mask[b].expand(z[:, b].shape)).all()
    grouped = [trees.k_best(scores[b], 6, mask[b])[0] for b in range(3)]
    assert torch.equal(torch.stack(grouped, 1), z)


@every
def test_the_values_of_k_best_have_a_gradient(trees: Trees) -> None:
    scores = torch.randn(2, 4, 4, generator=seeded(11), dtype=torch.float64, requires_grad=True)
    z, values = trees.k_best(scores, 2)
    assert not z.requires_grad
    (grad,) = torch.autograd.grad(values.sum(), scores)
    assert torch.equal(grad, z.sum(0))


@every
def test_peaked_draws_are_the_argmax(trees: Trees) -> None:
    for words in (1, 12, 40 if NATIVE else 12):
        scores = 1e7 * torch.randn(3, words + 1, words + 1, generator=seeded(words), dtype=torch.float64)
        drawn = trees.sample(scores, None, 3, seeded(0))
        assert torch.equal(drawn, trees.argmax(scores).expand(drawn.shape))


@every
@pytest.mark.skipif(not NATIVE, reason="too slow in plain torch")
def test_draws_of_500_words(trees: Trees) -> None:
    words = 500 if not trees.projective else 250
    scores = torch.randn(1, words + 1, words + 1, generator=seeded(12))
    drawn = trees.sample(scores, None, 2, seeded(0))
    assert trees.contains(drawn).all()
    assert not torch.equal(drawn[0], drawn[1])


@every
def test_a_draw_depends_on_its_seed_alone(trees: Trees) -> None:
    """Not on threads, nor on what else is in the batch; and the generator moves on by the same whatever the scores."""
    scores = 3 * torch.randn(9, 11, 11, generator=seeded(13))
    drawn = trees.sample(scores, None, 2, seeded(1))
    assert torch.equal(drawn, trees.sample(scores, None, 2, seeded(1)))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(drawn, trees.sample(scores, None, 2, seeded(1)))
    finally:
        torch.set_num_threads(before)
    generator, other = seeded(1), seeded(1)
    trees.sample(scores, None, 2, generator)
    trees.sample(torch.zeros_like(scores), None, 2, other)
    assert torch.equal(generator.get_state(), other.get_state())
    assert not torch.equal(trees.sample(scores, None, 2, generator), drawn)


@every
def test_no_words_one_word_no_instances(trees: Trees) -> None:
    assert trees.sample(torch.zeros(1, 1), None, 3).shape == (3, 1, 1)
    assert trees.sample(torch.zeros(0, 4, 4), None, 3).shape == (3, 0, 4, 4)
    assert trees.sample(torch.zeros(2, 2))[0].tolist() == [[0, 1], [0, 0]]
    z, values = trees.k_best(torch.zeros(2, 1, 1), 2)
    assert z.shape == (2, 2, 1, 1)
    assert values.tolist() == [[0, 0], [-torch.inf, -torch.inf]]
    z, values = trees.k_best(torch.zeros(0, 4, 4), 3)
    assert z.shape == (3, 0, 4, 4)
    assert values.shape == (3, 0)
    assert trees.k_best(torch.full((2, 2), 3.0), 2)[1].tolist() == [3, -torch.inf]
    nothing = trees.mask(torch.tensor([0]), 4)
    assert not trees.sample(torch.zeros(1, 4, 4), nothing).any()


@every
def test_infinite_scores(trees: Trees) -> None:
    """-inf is drawn only where nothing else is left, and ranks last; +inf has no distribution, and ranks first."""
    scores = torch.zeros(4, 4)
    scores[0, 1] = -torch.inf
    assert not trees.sample(scores, None, 200, seeded(0))[:, 0, 1].any()
    scores[0] = -torch.inf
    drawn = trees.sample(scores, None, 50, seeded(0))
    assert trees.contains(drawn).all()
    assert (drawn[:, 0].sum(-1) == 1).all(), "one arc of -inf is enough"
    count = len(members_of(trees, full(3)))
    z, values = trees.k_best(scores, count)
    assert trees.contains(z).all()
    assert values.isneginf().all()
    assert (z[:, 0].sum(-1).diff() >= 0).all(), "few arcs of -inf before many"
    scores = torch.zeros(4, 4)
    scores[2, 1] = torch.inf
    with pytest.raises(ValueError, match="infinite"):
        trees.sample(scores)
    z, values = trees.k_best(scores, count)
    assert (values.isposinf() == (z[:, 2, 1] == 1)).all()
    assert (z[:, 2, 1].diff() <= 0).all()


@every
def test_words_for_what_is_wrong(trees: Trees) -> None:
    scores = torch.zeros(2, 4, 4)
    with pytest.raises(ValueError, match="samples is -1; it must be a whole number, zero or more"):
        trees.sample(scores, None, -1)
    with pytest.raises(ValueError, match="k is -1; it must be a whole number, zero or more"):
        trees.k_best(scores, -1)
    scores[1, 2, 3] = torch.nan
    with pytest.raises(ValueError, match=r"instance 1 are NaN at part \[2, 3\]"):
        trees.sample(scores)
    with pytest.raises(ValueError, match=r"instance 1 are NaN at part \[2, 3\]"):
        trees.k_best(scores, 2)
    mask = full(3)
    mask[0] = False
    with pytest.raises(NoStructureError, match="leaves no"):
        trees.sample(torch.zeros(4, 4), mask)


@every
def test_compiled_and_mapped(trees: Trees) -> None:
    scores = torch.randn(3, 5, 5, generator=seeded(14))
    torch.manual_seed(0)
    plain = trees.sample(scores, None, 2)
    torch.manual_seed(0)
    compiled = torch.compile(lambda s: trees.sample(s, None, 2), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(scores), plain)
    z, values = torch.compile(lambda s: trees.k_best(s, 3), fullgraph=True, backend="aot_eager")(scores)
    assert torch.equal(z, trees.k_best(scores, 3)[0])
    mapped, mapped_values = torch.vmap(lambda s: trees.k_best(s, 3), out_dims=1)(scores)
    assert torch.equal(mapped, z)
    torch.testing.assert_close(mapped_values, values)
    drawn = torch.vmap(lambda s: trees.sample(s, None, 2), out_dims=1, randomness="different")(scores)
    assert trees.contains(drawn).all()


def test_partitions_of_a_structure_without_constraints() -> None:
    """One choice in each group, all independent: the k best sums of one number from each column."""
    scores = torch.randn(3, 4, 3, generator=seeded(15), dtype=torch.float64)
    allowed = torch.rand(3, 4, 3, generator=seeded(16)) < 0.8
    allowed[2, :, 1] = False  # a group without anything to choose
    best, found = k_best_choices(scores, allowed, 70, lambda s, owner: s.argmax(1))
    for b in range(3):
        columns = [scores[b, allowed[b, :, g], g] for g in range(3) if allowed[b, :, g].any()]
        sums = torch.cartesian_prod(*columns).sum(-1).sort(descending=True).values
        assert int(found[b].sum()) == len(sums) < 70
        chosen = best[b, found[b]]
        values = torch.where(chosen >= 0, scores[b].gather(0, chosen.clamp(min=0)), 0).sum(-1)
        torch.testing.assert_close(values, sums)
        assert len(chosen.unique(dim=0)) == len(sums)
    assert (best[2, :, 1] == -1).all()


def test_uniform_numbers_are_uniform() -> None:
    values = uniform(torch.arange(200)[:, None] * 12345, torch.arange(200))
    assert values.min() > 0
    assert values.max() < 1
    assert abs(float(values.mean()) - 0.5) < 0.01
    assert abs(float(values.var()) - 1 / 12) < 0.01
    assert len(values.unique()) == values.numel()
