"""Labelled trees: against enumeration, against bare trees, in words."""

import math
from decimal import Decimal, localcontext

import pytest
import torch
from torch import Generator, Tensor

import spigot
from spigot import LabelledTrees, NonProjectiveTrees, ProjectiveTrees
from spigot._runtime.checks import NoStructureError
from tests.spigot import brute
from tests.spigot.structures.test_trees import Trees, every, full, kinds


def seeded(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def members_of(trees: Trees, mask: Tensor) -> Tensor:
    return brute.labelled_trees(mask, projective=trees.projective, single_root=trees.single_root)


def everything(words: int, labels: int) -> Tensor:
    return full(words).unsqueeze(-1).expand(-1, -1, labels).contiguous()


@kinds
@pytest.mark.parametrize("words", [0, 1, 2, 6])
def test_counts(trees: Trees, projective: bool, single_root: bool, words: int) -> None:
    labelled = LabelledTrees(trees, 3)
    count = brute.tree_count(words, projective=projective, single_root=single_root) * 3**words
    assert labelled.log_count(labelled.mask(torch.tensor(words))).item() == pytest.approx(math.log(count), abs=1e-9)


@every
def test_one_label_is_no_label(trees: Trees) -> None:
    labelled = LabelledTrees(trees, 1)
    scores = 2 * torch.randn(4, 7, 7, generator=seeded(1), dtype=torch.float64)
    mask = trees.mask(torch.tensor([6, 4, 1, 0]))
    with_label, with_mask = scores.unsqueeze(-1), mask.unsqueeze(-1)
    assert torch.equal(labelled.mask(torch.tensor([6, 4, 1, 0])), with_mask)
    assert torch.equal(labelled.argmax(with_label, with_mask).squeeze(-1), trees.argmax(scores, mask))
    for verb in ("log_partition", "entropy"):
        ours = getattr(labelled, verb)(with_label, with_mask)
        torch.testing.assert_close(ours, getattr(trees, verb)(scores, mask), rtol=1e-10, atol=1e-10)
    mu = labelled.marginals(with_label, with_mask).squeeze(-1)
    torch.testing.assert_close(mu, trees.marginals(scores, mask), rtol=0, atol=1e-10)
    z, values = labelled.k_best(with_label, 4, with_mask)
    bare, bare_values = trees.k_best(scores, 4, mask)
    assert torch.equal(z.squeeze(-1), bare)
    torch.testing.assert_close(values, bare_values)
    drawn = labelled.sample(with_label, with_mask, 3, seeded(2)).squeeze(-1)
    assert torch.equal(drawn, trees.sample(scores, mask, 3, seeded(2)))
    point = torch.randn(4, 7, 7, generator=seeded(3), dtype=torch.float64)
    relaxed = labelled.relaxation.project(point.unsqueeze(-1), with_mask).squeeze(-1)
    torch.testing.assert_close(relaxed, trees.relaxation.project(point, mask))
    hull = spigot.ConvexHull(labelled).project(point.unsqueeze(-1), with_mask).squeeze(-1)
    torch.testing.assert_close(hull, spigot.ConvexHull(trees).project(point, mask), rtol=0, atol=1e-5)


@every
def test_scores_of_arcs_stand_for_their_labels(trees: Trees) -> None:
    labelled = LabelledTrees(trees, 3)
    mask = labelled.mask(torch.tensor([4, 2]))
    mask[0, :, 2, 1] = False
    scores = torch.randn(2, 5, 5, 3, generator=seeded(4), dtype=torch.float64, requires_grad=True)
    arcs = labelled.arc_scores(scores, mask)
    torch.testing.assert_close(trees.log_partition(*arcs), labelled.log_partition(scores, mask))
    mu = labelled.marginals(scores, mask)
    torch.testing.assert_close(trees.marginals(*arcs), mu.sum(-1))
    (grad,) = torch.autograd.grad(trees.log_partition(*arcs).sum(), scores)
    torch.testing.assert_close(grad, mu.detach())
    half, _ = labelled.arc_scores(scores.detach().bfloat16(), mask)
    assert half.dtype == torch.bfloat16


@every
def test_k_best_lists_every_labelled_tree(trees: Trees) -> None:
    labelled = LabelledTrees(trees, 2)
    mask = everything(3, 2)
    mask[0, 1, 0] = mask[2, 1, 1] = mask[1, 3] = False
    members = members_of(trees, mask)
    scores = torch.randn(4, 4, 2, generator=seeded(4), dtype=torch.float64).masked_fill(~mask, torch.nan)
    order = brute.values(members, scores).argsort(descending=True)
    z, values = labelled.k_best(scores, len(members) + 3, mask)
    assert torch.equal(z[: len(members)], members[order])
    assert values[len(members) :].isneginf().all()
    assert not z[len(members) :].any()
    for k in (1, 2, 5):
        assert torch.equal(labelled.k_best(scores, k, mask)[0], members[order[:k]])
    ties = labelled.k_best(torch.zeros(4, 4, 2), len(members), mask)[0]
    assert len(ties.unique(dim=0)) == len(members)


@every
def test_draws_follow_the_probabilities(trees: Trees) -> None:
    labelled = LabelledTrees(trees, 2)
    mask = everything(3, 2)
    mask[0, 2, 1] = False
    members = members_of(trees, mask)
    scores = torch.randn(4, 4, 2, generator=seeded(5), dtype=torch.float64).masked_fill(~mask, torch.nan)
    drawn = labelled.sample(scores, mask, 6000, seeded(6))
    hits = torch.einsum("sijl,vijl->sv", drawn, members) == 3
    assert (hits.sum(1) == 1).all()
    assert (drawn.sum((-3, -2, -1)) == 3).all()
    expected = brute.values(members, scores).softmax(0) * 6000
    common = expected >= 5
    chi = ((hits.sum(0) - expected).square() / expected)[common].sum()
    assert chi <= int(common.sum()) + 6 * math.sqrt(2 * int(common.sum())) + 20
    mu = labelled.marginals(scores, mask)
    assert ((drawn.mean(0) - mu).abs() <= 6 * (mu * (1 - mu) / 6000).sqrt() + 3 / 6000).all()


@every
@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_entropy_in_many_digits(trees: Trees, scale: float) -> None:
    labelled = LabelledTrees(trees, 2)
    members = members_of(trees, everything(3, 2))
    scores = scale * torch.randn(4, 4, 2, generator=seeded(7), dtype=torch.float64)
    with localcontext() as context:
        context.prec = 60
        parts = [Decimal(x) for x in scores.flatten().tolist()]
        totals = [sum((parts[i] for i in z.flatten().nonzero()[:, 0].tolist()), Decimal(0)) for z in members]
        weights = [(total - max(totals)).exp() for total in totals]
        p = [w / sum(weights) for w in weights]
        theirs = float(-sum((x * x.ln() for x in p if x), Decimal(0)))
    assert labelled.entropy(scores).item() == pytest.approx(theirs, rel=1e-8, abs=1e-11 * scale)


def test_extreme_scores() -> None:
    labelled = LabelledTrees(NonProjectiveTrees(), 3)
    scores = 1e7 * torch.randn(5, 5, 3, generator=seeded(8), dtype=torch.float64)
    best = labelled.argmax(scores)
    assert torch.equal(labelled.sample(scores, None, 4, seeded(0)), best.expand(4, 5, 5, 3))
    torch.testing.assert_close(labelled.marginals(scores), best)
    scores = torch.zeros(3, 3, 2)
    scores[..., 0] = -torch.inf
    for z in (*labelled_draws(scores), *LabelledTrees(ProjectiveTrees(), 2).k_best(scores, 2)[0]):
        assert not z[..., 0].any()
    scores[0] = -torch.inf  # every tree has an arc of -inf, with either label
    assert all(z[0].sum() == 1 for z in labelled_draws(scores))


def labelled_draws(scores: Tensor) -> Tensor:
    labelled = LabelledTrees(ProjectiveTrees(), 2)
    drawn = labelled.sample(scores, None, 30, seeded(0))
    assert labelled.contains(drawn).all()
    return drawn


def test_a_sentence_of_the_size_of_a_treebank() -> None:
    words, labels = (40, 30) if spigot.kernels.available else (8, 5)
    for bare in (ProjectiveTrees(), NonProjectiveTrees()):
        trees = LabelledTrees(bare, labels)
        mask = trees.mask(torch.tensor([words, words // 2]))
        scores = torch.randn(mask.shape, generator=seeded(9))
        z = trees.argmax(scores, mask)
        assert trees.contains(z, mask).all()
        ranked, values = trees.k_best(scores, 5, mask)
        assert torch.equal(ranked[0], z)
        assert (values[1:] <= values[:-1] + 1e-4).all()
        assert len(ranked[:, 0].flatten(1).unique(dim=0)) == 5
        drawn = trees.sample(scores, mask, 2, seeded(0))
        assert trees.contains(drawn, mask.expand(drawn.shape)).all()
        total = trees.marginals(scores, mask).sum((-3, -1))
        torch.testing.assert_close(total, mask.any(-1).any(-2).float(), rtol=0, atol=1e-4)


def test_the_hull_is_not_that_of_the_trees() -> None:
    """Labels that share an arc share what a change of it costs: projecting the best of them would be wrong."""
    labelled = LabelledTrees(NonProjectiveTrees(), 2)
    members = members_of(labelled.trees, everything(2, 2))
    point = torch.randn(3, 3, 2, generator=seeded(10), dtype=torch.float64)
    ours = spigot.ConvexHull(labelled).project(point)
    torch.testing.assert_close(ours, brute.project(members, point), rtol=0, atol=1e-6)
    reduced = spigot.ConvexHull(labelled.trees).project(point.amax(-1))
    assert (ours.sum(-1) - reduced).abs().max() > 1e-3


def test_indices_and_back() -> None:
    trees = LabelledTrees(ProjectiveTrees(), 3)
    scores = torch.randn(2, 3, 6, 6, 3, generator=seeded(11))
    mask = trees.mask(torch.tensor([[5, 3, 0], [1, 2, 4]]))
    z = trees.argmax(scores, mask)
    heads, labels = trees.to_indices(z)
    assert heads.shape == labels.shape == (2, 3, 6)
    assert torch.equal(heads >= 0, mask.any(-1).any(-2))
    assert torch.equal(labels >= 0, heads >= 0)
    assert torch.equal(trees.from_indices(heads, labels), z)
    with pytest.raises(ValueError, match=r"heads has shape \(2, 3, 6\) and labels \(3, 6\)"):
        trees.from_indices(heads, labels[0])


def test_words_for_what_is_wrong() -> None:
    trees = LabelledTrees(ProjectiveTrees(), 2)
    z = torch.zeros(3, 3, 2)
    z[0, 1] = 1
    z[1, 2, 0] = 0.5
    mask = everything(2, 2)
    mask[0, 1, 1] = False
    assert trees.violations(z, mask) == [
        [
            "label 1 of arc 0->1 is not in the mask",
            "arc 1->2 with label 0 is 0.5, not 0 or 1",
            "arc 0->1 has 2 labels: 0, 1",
        ]
    ]
    with pytest.raises(ValueError, match=r"scores has 3 labels in shape \(3, 3, 3\); there must be 2"):
        trees.argmax(torch.zeros(3, 3, 3))
    with pytest.raises(ValueError, match=r"must be \(\*batch, n, n, labels\)"):
        trees.argmax(torch.zeros(3, 2, 2))
    with pytest.raises(ValueError, match="labels is 0"):
        LabelledTrees(ProjectiveTrees(), 0)
    with pytest.raises(TypeError, match=r"trees is OneOf\(\); it must be"):
        LabelledTrees(spigot.OneOf(), 2)  # pyright: ignore[reportArgumentType]
    scores = torch.zeros(2, 3, 3, 2)
    scores[1, 0, 2, 1] = torch.nan
    for verb in (trees.argmax, trees.sample, trees.log_partition, trees.marginals, lambda s: trees.k_best(s, 2)):
        with pytest.raises(ValueError, match=r"instance 1 are NaN at part \[0, 2, 1\]"):
            verb(scores)
    nothing = everything(2, 2)
    nothing[0] = False
    for verb in (trees.argmax, trees.sample, trees.log_partition, lambda s, m: trees.k_best(s, 2, m)):
        with pytest.raises(NoStructureError, match="leaves no projective tree"):
            verb(torch.zeros(3, 3, 2), nothing)
    with pytest.raises(ValueError, match="are infinite"):
        trees.relaxation.project(torch.full((3, 3, 2), torch.inf))


def test_compiled_and_mapped() -> None:
    trees = LabelledTrees(NonProjectiveTrees(), 2)
    scores = torch.randn(3, 4, 4, 2, generator=seeded(12))

    def verbs(s: Tensor) -> tuple[Tensor, ...]:
        z, values = trees.k_best(s, 3)
        return trees.argmax(s), trees.marginals(s), trees.entropy(s), z.movedim(0, -4), values.movedim(0, -1)

    plain = verbs(scores)
    compiled = torch.compile(verbs, fullgraph=True, backend="aot_eager")(scores)
    for ours, theirs, mapped in zip(plain, compiled, torch.vmap(verbs)(scores), strict=True):
        torch.testing.assert_close(ours, theirs)
        torch.testing.assert_close(ours, mapped)
    torch.manual_seed(0)
    drawn = trees.sample(scores, None, 2)
    torch.manual_seed(0)
    again = torch.compile(lambda s: trees.sample(s, None, 2), fullgraph=True, backend="aot_eager")(scores)
    assert torch.equal(drawn, again)


def test_indices_out_of_range_are_refused() -> None:
    trees = LabelledTrees(ProjectiveTrees(), labels=2)
    with pytest.raises(ValueError, match=r"labels go from -1 to 2; they must be 0 to 1, or be -1 for none"):
        trees.from_indices(torch.tensor([-1, 0, 1]), torch.tensor([-1, 0, 2]))
    with pytest.raises(ValueError, match=r"heads go from -1 to 7; they must be 0 to 2"):
        trees.from_indices(torch.tensor([-1, 0, 7]), torch.tensor([-1, 0, 1]))
