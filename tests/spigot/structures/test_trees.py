"""Dependency trees: counts, enumeration, masks, words."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import spigot
from spigot import NonProjectiveTrees, ProjectiveTrees
from tests.spigot import brute
from tests.spigot.twins import without_kernels

Trees = ProjectiveTrees | NonProjectiveTrees

KINDS = [
    pytest.param(ProjectiveTrees(), True, True, id="projective-single"),
    pytest.param(ProjectiveTrees(single_root=False), True, False, id="projective-many"),
    pytest.param(NonProjectiveTrees(), False, True, id="nonprojective-single"),
    pytest.param(NonProjectiveTrees(single_root=False), False, False, id="nonprojective-many"),
]
kinds = pytest.mark.parametrize(("trees", "projective", "single_root"), KINDS)
every = pytest.mark.parametrize("trees", [kind.values[0] for kind in KINDS], ids=[kind.id for kind in KINDS])


def full(words: int) -> torch.Tensor:
    mask = ~torch.eye(words + 1, dtype=torch.bool)
    mask[:, 0] = False
    return mask


@kinds
@pytest.mark.parametrize("words", range(6))
def test_enumeration_counts(trees: Trees, projective: bool, single_root: bool, words: int) -> None:
    del trees
    members = brute.trees(full(words), projective=projective, single_root=single_root)
    assert len(members) == brute.tree_count(words, projective=projective, single_root=single_root)
    assert len(members.unique(dim=0)) == len(members)


@kinds
@pytest.mark.parametrize("words", [0, 1, 2, 3, 5, 8, 13, 60 if spigot.kernels.available else 20])
def test_log_partition_of_zeros_counts_trees(trees: Trees, projective: bool, single_root: bool, words: int) -> None:
    count = brute.tree_count(words, projective=projective, single_root=single_root)
    for dtype, rtol in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        value = trees.log_partition(torch.zeros(words + 1, words + 1, dtype=dtype))
        assert value.item() == pytest.approx(math.log(count), rel=rtol, abs=rtol)


@kinds
def test_padding_leaves_the_count_alone(trees: Trees, projective: bool, single_root: bool) -> None:
    lengths = torch.tensor([0, 1, 4, 7, 2])
    counts = [brute.tree_count(n, projective=projective, single_root=single_root) for n in lengths.tolist()]
    value = trees.log_partition(torch.zeros(5, 10, 10, dtype=torch.float64), trees.mask(lengths, size=10))
    torch.testing.assert_close(value, torch.tensor(counts, dtype=torch.float64).log())


@kinds
def test_five_words_against_enumeration(trees: Trees, projective: bool, single_root: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    members = brute.trees(full(5), projective=projective, single_root=single_root)
    scores = 2 * torch.randn(200, 6, 6, generator=generator, dtype=torch.float64)
    values = torch.einsum("vij,bij->bv", members, scores)
    assert torch.equal(trees.argmax(scores), members[values.argmax(1)])
    assert torch.equal(trees.argmax(scores.float()).double(), members[values.argmax(1)])
    torch.testing.assert_close(trees.log_partition(scores), values.logsumexp(1))
    mu = torch.einsum("bv,vij->bij", values.softmax(1), members)
    torch.testing.assert_close(trees.marginals(scores), mu, rtol=0, atol=1e-10)
    torch.testing.assert_close(trees.marginals(scores.float()).double(), mu, rtol=0, atol=1e-5)


@kinds
def test_every_member_can_be_the_answer(trees: Trees, projective: bool, single_root: bool) -> None:
    """Scoring a tree's own arcs 1 and all others 0 must give this tree back."""
    members = brute.trees(full(4), projective=projective, single_root=single_root)
    assert torch.equal(trees.argmax(members), members)
    assert torch.equal(trees.argmax(1e8 * members - 1e8).double(), members)


@every
def test_marginals_sum_to_one_for_each_word(trees: Trees) -> None:
    scores = 5 * torch.randn(4, 21, 21, dtype=torch.float64)
    mask = trees.mask(torch.tensor([20, 13, 1, 0]))
    total = trees.marginals(scores, mask).sum(-2)
    torch.testing.assert_close(total, mask.any(-2).double(), rtol=0, atol=1e-12)
    if trees.single_root:
        roots = trees.marginals(scores, mask)[:, 0].sum(-1)
        torch.testing.assert_close(roots, torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=torch.float64), rtol=0, atol=1e-12)


@given(st.integers(0, 10_000), st.booleans(), st.booleans(), st.sampled_from([1.0, 20.0]))
def test_holes_and_pruned_arcs(seed: int, projective: bool, single_root: bool, scale: float) -> None:
    """Any mask: the answer is the best of the list, or the list is empty and the error says so."""
    generator = torch.Generator().manual_seed(seed)
    mask = full(5) & (torch.rand(6, 6, generator=generator) < 0.6)
    exists = torch.rand(6, generator=generator) < 0.8
    exists[0] = True
    mask &= exists[:, None] & exists[None, :]
    scores = scale * torch.randn(6, 6, generator=generator, dtype=torch.float64)
    scores[~mask] = torch.nan
    trees: Trees = ProjectiveTrees(single_root) if projective else NonProjectiveTrees(single_root)
    members = brute.trees(mask, projective=projective, single_root=single_root)
    if not len(members):
        for verb in (trees.argmax, trees.log_partition, trees.marginals):
            with pytest.raises(ValueError, match="the instance"):
                verb(scores, mask)
        return
    best = members[brute.values(members, scores).argmax()]
    assert torch.equal(trees.argmax(scores, mask), best)
    torch.testing.assert_close(trees.marginals(scores, mask), brute.marginals(members, scores), rtol=0, atol=1e-10)
    torch.testing.assert_close(trees.log_partition(scores, mask), brute.log_partition(members, scores))


@every
def test_mask_from_lengths(trees: Trees) -> None:
    mask = trees.mask(torch.tensor([[2, 0], [1, 3]]))
    assert mask.shape == (2, 2, 4, 4)
    assert mask.dtype == torch.bool
    assert mask[0, 0].tolist() == [
        [False, True, True, False],
        [False, False, True, False],
        [False, True, False, False],
        [False, False, False, False],
    ]
    assert not mask[0, 1].any()
    assert mask[1, 0].nonzero().tolist() == [[0, 1]]
    assert torch.equal(mask[1, 1], full(3))
    assert trees.mask(torch.tensor([1]), size=5).shape == (1, 5, 5)
    assert trees.mask(torch.tensor(2)).shape == (3, 3)
    assert trees.mask(torch.tensor([], dtype=torch.long), size=3).shape == (0, 3, 3)


@every
def test_mask_refuses_too_small_a_size(trees: Trees) -> None:
    with pytest.raises(ValueError, match="5"):
        trees.mask(torch.tensor([5]), size=3)


@every
def test_impossible_parts_in_a_mask_are_ignored(trees: Trees) -> None:
    """Self-loops and arcs into the root cannot exist, whatever the mask says."""
    scores = torch.randn(3, 5, 5, dtype=torch.float64)
    everything = torch.ones(3, 5, 5, dtype=torch.bool)
    tempting = scores.clone()
    tempting[:, range(5), range(5)] = 100
    tempting[:, :, 0] = 100
    assert torch.equal(trees.argmax(tempting, everything), trees.argmax(scores))
    torch.testing.assert_close(trees.marginals(tempting, everything), trees.marginals(scores))
    torch.testing.assert_close(trees.log_partition(tempting, everything), trees.log_partition(scores))


@every
def test_root_and_event_axes(trees: Trees) -> None:
    assert trees.event_ndim == 2
    assert trees.relaxation == spigot.HeadSimplex()
    assert type(trees)().single_root is True


@every
def test_single_root_is_kept_at_any_scale(trees: Trees) -> None:
    """Root arcs far better than all others must not buy a second root."""
    scores = torch.zeros(8, 7, 7)
    scores[:, 0] = 1e6 * torch.rand(8, 7)
    z = trees.argmax(scores)
    roots = z[:, 0].sum(-1)
    assert trees.contains(z).all()
    assert (roots == (1 if trees.single_root else 6)).all()


def test_single_root_compares_exactly_in_float32() -> None:
    """A constant big enough to forbid a second root would wash out the differences between the others."""
    generator = torch.Generator().manual_seed(3)
    members = brute.trees(full(4), projective=False, single_root=True)
    scores = torch.randn(300, 5, 5, generator=generator) * 1e-6
    scores[:, 0] += 1e3 * torch.rand(300, 5, generator=generator)
    values = torch.einsum("vij,bij->bv", members, scores.double())
    mine = (NonProjectiveTrees().argmax(scores).double() * scores.double()).sum((1, 2))
    # Rounding sums of a root score and tiny others in float32 costs up to 1e3 * 2^-24, five times over.
    assert (mine >= values.amax(1) - 3e-4).all()


def test_violations_in_words() -> None:
    z = torch.zeros(8, 8)
    for head, modifier in [(0, 1), (1, 2), (5, 3), (2, 4), (3, 5), (1, 4), (4, 7)]:
        z[head, modifier] = 1
    (messages,) = NonProjectiveTrees().violations(z)
    text = "\n".join(messages)
    assert "modifier 4 has 2 heads" in text
    assert "modifier 6 has 0 heads" in text or "modifier 6 has no head" in text
    assert "cycle" in text
    assert "3 -> 5 -> 3" in text or "5 -> 3 -> 5" in text
    assert "cross" not in text


def test_violations_name_crossing_arcs_and_roots() -> None:
    z = torch.zeros(8, 8)
    for head, modifier in [(0, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (4, 7)]:
        z[head, modifier] = 1
    assert not NonProjectiveTrees().violations(z)[0]
    text = "\n".join(ProjectiveTrees().violations(z)[0])
    assert "2->5" in text
    assert "4->7" in text
    assert "cross" in text

    z = torch.zeros(3, 3)
    z[0, 1] = z[0, 2] = 1
    assert not ProjectiveTrees(single_root=False).violations(z)[0]
    for trees in (ProjectiveTrees(), NonProjectiveTrees()):
        assert any("root" in message for message in trees.violations(z)[0])


@every
def test_violations_of_loops_masked_arcs_and_fractions(trees: Trees) -> None:
    z = torch.zeros(4, 3, 3)
    z[:, 0, 1] = z[:, 1, 2] = 1
    z[0, 2, 2] = 1
    z[1, 1, 0] = 1
    z[2, 0, 1] = 0.5
    mask = trees.mask(torch.tensor([2, 2, 2, 2]))
    assert trees.contains(z, mask).tolist() == [False, False, False, True]
    mask[3, 1, 2] = False
    assert not trees.contains(z, mask)[3]


@every
def test_shift_of_one_modifier_changes_nothing(trees: Trees) -> None:
    """Each word takes exactly one head, so a constant on all its heads adds itself to every tree."""
    scores = torch.randn(6, 6, dtype=torch.float64)
    shift = 10 * torch.randn(6, dtype=torch.float64)
    assert torch.equal(trees.argmax(scores + shift), trees.argmax(scores))
    torch.testing.assert_close(trees.marginals(scores + shift), trees.marginals(scores), rtol=0, atol=1e-10)
    torch.testing.assert_close(trees.log_partition(scores + shift), trees.log_partition(scores) + shift[1:].sum())


@pytest.mark.parametrize("single_root", [True, False])
def test_projective_trees_are_trees(single_root: bool) -> None:
    """The best projective tree is a tree, so it cannot beat the best tree; nor can their partition functions."""
    scores = torch.randn(20, 15, 15, dtype=torch.float64)
    projective, other = ProjectiveTrees(single_root), NonProjectiveTrees(single_root)
    z = projective.argmax(scores)
    assert other.contains(z).all()
    assert ((z * scores).sum((1, 2)) <= (other.argmax(scores) * scores).sum((1, 2)) + 1e-12).all()
    assert (projective.log_partition(scores) < other.log_partition(scores)).all()


@every
def test_low_temperature_marginals_are_the_argmax(trees: Trees) -> None:
    scores = torch.randn(10, 12, 12, dtype=torch.float64)
    torch.testing.assert_close(trees.marginals(1e6 * scores), trees.argmax(scores), rtol=0, atol=1e-6)


def test_non_projective_argmax_against_linear_programming() -> None:
    """A second algorithm: branchings are the bases of a matroid intersection, found here by a flow-free MILP."""
    from scipy.optimize import LinearConstraint, milp

    generator = torch.Generator().manual_seed(5)
    for single_root in (True, False):
        n = 7
        scores = torch.randn(n, n, generator=generator, dtype=torch.float64)
        arcs = full(n - 1).nonzero().tolist()
        rows, low, high = [], [], []
        for j in range(1, n):
            rows.append([float(m == j) for _, m in arcs])
            low.append(1.0)
            high.append(1.0)
        for subset in range(2 ** (n - 1)):  # every set of words is entered from outside: no cycles
            members = {j for j in range(1, n) if subset >> (j - 1) & 1}
            if len(members) > 1:
                rows.append([float(m in members and h not in members) for h, m in arcs])
                low.append(1.0)
                high.append(float("inf"))
        if single_root:
            rows.append([float(h == 0) for h, _ in arcs])
            low.append(1.0)
            high.append(1.0)
        answer = milp(
            [-scores[h, m].item() for h, m in arcs],
            constraints=LinearConstraint(rows, low, high),  # pyright: ignore[reportArgumentType] (one bound a row)
            integrality=1,
            bounds=(0, 1),
        )
        z = NonProjectiveTrees(single_root).argmax(scores)
        assert (z * scores).sum().item() == pytest.approx(-answer.fun)


@pytest.mark.parametrize("words", [115, 140])
def test_long_sentences_are_summed_as_in_log_space(words: int) -> None:
    """Beyond about a hundred words a sum of normalised weights is too small for plain doubles as it stands."""
    trees = ProjectiveTrees()
    scores = torch.randn(2, words + 1, words + 1, dtype=torch.float64)
    mask = trees.mask(torch.tensor([words, words - 7]))
    with without_kernels():
        total = trees.log_partition(scores, mask)
    torch.testing.assert_close(trees.log_partition(scores, mask), total)
    mu = trees.marginals(scores, mask)
    direction = torch.randn_like(scores)
    step = 1e-6
    slope = (
        trees.log_partition(scores + step * direction, mask) - trees.log_partition(scores - step * direction, mask)
    ) / (2 * step)
    torch.testing.assert_close((mu * direction).sum((-2, -1)), slope, rtol=1e-5, atol=1e-5)
