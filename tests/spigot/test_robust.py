"""Hard inputs: extreme scores, ties, empty and impossible instances, long sentences, wrong arguments."""

import itertools
import time

import pytest
import torch
from torch import Tensor

import spigot
from spigot import (
    AbstractMarginalStructure,
    AbstractStructure,
    ConvexHull,
    NonProjectiveTrees,
    OneOf,
    ProjectiveTrees,
    SemanticGraphs,
)
from tests.spigot import brute
from tests.spigot.cases import STRUCTURES, StructureCase

TREES = [
    ProjectiveTrees(),
    ProjectiveTrees(single_root=False),
    NonProjectiveTrees(),
    NonProjectiveTrees(single_root=False),
]
every_tree = pytest.mark.parametrize("trees", TREES, ids=str)
every_case = pytest.mark.parametrize("case", STRUCTURES, ids=str)
Trees = ProjectiveTrees | NonProjectiveTrees


def members(trees: Trees, mask: Tensor) -> Tensor:
    return brute.trees(mask, projective=isinstance(trees, ProjectiveTrees), single_root=trees.single_root)


def full(words: int) -> Tensor:
    return ProjectiveTrees().mask(torch.tensor(words))


@every_tree
@pytest.mark.parametrize("scale", [300.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_words_that_prefer_each_other(trees: Trees, scale: float, dtype: torch.dtype) -> None:
    """Two words that strongly prefer each other make the Laplacian singular in any floating-point format."""
    torch.manual_seed(7)
    scores = (scale * torch.randn(100, 5, 5, dtype=torch.float64)).to(dtype)
    scores[:, 1, 2] = scores[:, 2, 1] = 3 * scale
    scores[50:, 3, 4] = scores[50:, 4, 3] = 2 * scale
    every = members(trees, full(4))
    values = torch.einsum("vij,bij->bv", every, scores.double())
    mu = torch.einsum("bv,vij->bij", values.softmax(1), every)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(trees.log_partition(scores).double(), values.logsumexp(1), rtol=tolerance, atol=0)
    torch.testing.assert_close(trees.marginals(scores).double(), mu, rtol=0, atol=tolerance)
    best = every[values.argmax(1)]
    mine = (trees.argmax(scores).double() * scores.double()).sum((1, 2))
    torch.testing.assert_close(mine, (best * scores.double()).sum((1, 2)), rtol=1e-6, atol=0)


@every_tree
@pytest.mark.parametrize("scale", [400.0, 1000.0])
def test_many_instances_at_large_scale(trees: Trees, scale: float) -> None:
    """Overflow and cancellation are rare at this scale: one instance in ten thousand is enough to spoil training."""
    count = 20_000 if spigot.kernels.available else 400
    every = members(trees, full(5)).flatten(1)
    generator = torch.Generator().manual_seed(0)
    scores = scale * torch.randn(count, 6, 6, generator=generator, dtype=torch.float64)
    value, mu = trees.log_partition(scores), trees.marginals(scores)
    for rows in range(0, count, 4_000):
        some = slice(rows, rows + 4_000)
        totals = scores[some].flatten(1) @ every.T
        torch.testing.assert_close(value[some], totals.logsumexp(1), rtol=1e-12, atol=1e-9)
        torch.testing.assert_close(mu[some].flatten(1), totals.softmax(1) @ every, rtol=0, atol=1e-9)
    if count > 400:  # longer sentences, where enumeration ends: each word keeps exactly one head
        scores = scale * torch.randn(1_000, 13, 13, generator=generator, dtype=torch.float64)
        total = trees.marginals(scores).sum(-2)[:, 1:]
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-9)


@every_tree
def test_second_derivatives_at_large_scores(trees: Trees) -> None:
    """The derivative of the marginals stays right where they are nearly 0 or 1, and at mixtures of scales."""
    torch.manual_seed(8)
    every = members(trees, full(4))
    for scale in (30.0, 300.0):
        scores = scale * torch.randn(20, 5, 5, dtype=torch.float64).round(decimals=1)
        g = torch.randn(20, 5, 5, dtype=torch.float64)
        leaf = scores.clone().requires_grad_()
        trees.marginals(leaf).backward(g)
        assert leaf.grad is not None
        for s, direction, back in zip(scores, g, leaf.grad, strict=True):
            torch.testing.assert_close(back, brute.covariance(every, s, direction), rtol=0, atol=1e-8)


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_all_equal_scores(case: StructureCase, dtype: torch.dtype) -> None:
    _, mask = case.draw(50, 6)
    for value in (0.0, 3.0, -1e8):
        scores = torch.full(mask.shape, value, dtype=dtype)
        assert case.structure.contains(case.structure.argmax(scores, mask), mask).all()
        if case.marginal and value == 0:
            mu = case.marginal.marginals(scores, mask)
            uniform = torch.stack([case.vertices(m).mean(0) for m in mask])
            torch.testing.assert_close(mu.double(), uniform, rtol=0, atol=1e-6)


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_wild_scores_still_give_members(case: StructureCase, dtype: torch.dtype) -> None:
    """Scores of very different sizes in one instance: ±1e8, tiny ones, and minus infinity."""
    generator = torch.Generator().manual_seed(51)
    _, mask = case.draw(51, 20)
    choices = torch.tensor([1e8, -1e8, 1.0, -1.0, 1e-8, 0.0, 1e30, -1e30, -torch.inf], dtype=dtype)
    scores = choices[torch.randint(len(choices), mask.shape, generator=generator)]
    z = case.structure.argmax(scores, mask)
    assert case.structure.contains(z, mask).all()
    assert not z[~mask].any()


@every_case
def test_minus_infinity_is_used_only_if_nothing_else_is_left(case: StructureCase) -> None:
    scores, mask = case.draw(52, 30)
    generator = torch.Generator().manual_seed(52)
    scores[torch.rand(scores.shape, generator=generator) < 0.3] = -torch.inf
    z = case.structure.argmax(scores, mask)
    for s, m, answer in zip(scores, mask, z, strict=True):
        vertices = case.vertices(m)
        finite = vertices[~((vertices > 0) & (s == -torch.inf)).flatten(1).any(1)]
        if len(finite):
            value = brute.values(answer[None].double(), s)[0]
            torch.testing.assert_close(value, brute.values(finite, s.clamp(min=-1e300)).max())


@pytest.mark.parametrize("case", [case for case in STRUCTURES if case.marginal], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_minus_infinity_has_no_probability(case: StructureCase, dtype: torch.dtype) -> None:
    scores, mask = case.draw(53, 40, dtype=dtype)
    generator = torch.Generator().manual_seed(53)
    forbidden = (torch.rand(scores.shape, generator=generator) < 0.25) & mask
    scores[forbidden] = -torch.inf
    possible = torch.tensor(
        [bool((~((case.vertices(m) > 0) & f).flatten(1).any(1)).any()) for m, f in zip(mask, forbidden, strict=True)]
    )
    scores, mask, forbidden = scores[possible].requires_grad_(), mask[possible], forbidden[possible]
    assert len(scores) > 10
    assert case.marginal
    mu = case.marginal.marginals(scores, mask)
    value = case.marginal.log_partition(scores, mask)
    for i, (s, m, f) in enumerate(zip(scores.detach(), mask, forbidden, strict=True)):
        rest = case.vertices(m)
        rest = rest[~((rest > 0) & f).flatten(1).any(1)]
        torch.testing.assert_close(mu[i].double(), brute.marginals(rest, s), rtol=0, atol=1e-5)
        torch.testing.assert_close(value[i].double(), brute.log_partition(rest, s), rtol=1e-5, atol=1e-5)
    (back,) = torch.autograd.grad(mu.square().sum() + value.sum(), scores)
    assert back.isfinite().all()
    assert not back[forbidden].any()


@pytest.mark.parametrize("structure", [OneOf(), *TREES], ids=str)
def test_members_without_any_probability(structure: AbstractMarginalStructure) -> None:
    """Every member is scored minus infinity: the sum is empty, but the mask is not to blame and a member exists."""
    scores = torch.zeros(2, 3) if structure.event_ndim == 1 else torch.zeros(2, 3, 3)
    scores[1] = -torch.inf
    z = structure.argmax(scores)
    assert structure.contains(z).all()
    assert structure.log_partition(scores)[0].isfinite()
    assert structure.log_partition(scores)[1] == -torch.inf
    assert not structure.marginals(scores)[1].any()


@every_tree
def test_an_unmasked_arc_at_minus_1e8_beats_a_masked_one(trees: Trees) -> None:
    for dtype in (torch.float32, torch.float64):
        scores = torch.full((3, 3), -1e8, dtype=dtype)
        scores[1, 2] = 1e8
        mask = full(2)
        mask[1, 2] = False
        z = trees.argmax(scores, mask)
        assert z[1, 2] == 0
        assert trees.contains(z, mask)
        torch.testing.assert_close(trees.marginals(scores, mask).sum(0)[1:], torch.ones(2, dtype=dtype))


@every_tree
def test_lengths_zero_and_one(trees: Trees) -> None:
    mask = trees.mask(torch.tensor([0, 1, 3]))
    scores = torch.randn(3, 4, 4, dtype=torch.float64)
    z = trees.argmax(scores, mask)
    assert not z[0].any()
    assert z[1].nonzero().tolist() == [[0, 1]]
    assert torch.equal(trees.marginals(scores, mask)[:2], z[:2])
    value = trees.log_partition(scores, mask)
    assert value[0] == 0
    assert value[1] == pytest.approx(scores[1, 0, 1].item())
    only_root = trees.argmax(torch.zeros(2, 1, 1))
    assert only_root.shape == (2, 1, 1)
    assert not only_root.any()
    assert trees.log_partition(torch.zeros(2, 1, 1)).tolist() == [0, 0]
    assert ConvexHull(trees).project(torch.ones(2, 1, 1)).tolist() == [[[0]], [[0]]]


@every_tree
@pytest.mark.parametrize("verb", ["argmax", "log_partition", "marginals"])
def test_a_word_without_a_head_is_named(trees: Trees, verb: str) -> None:
    mask = trees.mask(torch.tensor([3, 3, 3]))
    mask[1, :, 2] = False
    with pytest.raises(ValueError, match=r"(?s)word 2.*instance 1|instance 1.*word 2"):
        getattr(trees, verb)(torch.zeros(3, 4, 4), mask)
    with pytest.raises(ValueError, match=r"word 2"):
        getattr(trees, verb)(torch.zeros(4, 4), mask[1])
    nested = mask.unsqueeze(0).expand(2, 3, 4, 4)
    with pytest.raises(ValueError, match=r"\(0, 1\)"):
        getattr(trees, verb)(torch.zeros(2, 3, 4, 4), nested)


@every_tree
@pytest.mark.parametrize("verb", ["argmax", "log_partition", "marginals"])
def test_a_mask_that_leaves_no_tree(trees: Trees, verb: str) -> None:
    """Every word has a head, but no word can hang from the root; or two words need to, and only one may."""
    cycle = torch.zeros(2, 3, 3, dtype=torch.bool)
    cycle[0] = full(2)
    cycle[1, 1, 2] = cycle[1, 2, 1] = True
    with pytest.raises(ValueError, match="instance 1"):
        getattr(trees, verb)(torch.zeros(2, 3, 3), cycle)
    roots = torch.zeros(3, 3, dtype=torch.bool)
    roots[0, 1] = roots[0, 2] = True
    if trees.single_root:
        with pytest.raises(ValueError, match="no"):
            getattr(trees, verb)(torch.zeros(3, 3), roots)
    else:
        getattr(trees, verb)(torch.zeros(3, 3), roots)


def test_a_mask_that_leaves_no_projective_tree() -> None:
    """Arcs 0->3, 3->1, 1->4 and 4->2 make a tree whose arcs cross; there is no other."""
    mask = torch.zeros(5, 5, dtype=torch.bool)
    for head, modifier in [(0, 3), (3, 1), (1, 4), (4, 2)]:
        mask[head, modifier] = True
    scores = torch.zeros(5, 5)
    assert torch.equal(NonProjectiveTrees().argmax(scores, mask), mask.float())
    for verb in ("argmax", "log_partition", "marginals"):
        with pytest.raises(ValueError, match="projective"):
            getattr(ProjectiveTrees(), verb)(scores, mask)


@every_case
def test_nan_inside_the_mask_is_refused(case: StructureCase) -> None:
    for dtype in (torch.float32, torch.float64):
        scores, mask = case.draw(54, 4, dtype=dtype)
        scores = scores.nan_to_num()
        mask[2] = case.structure.full_mask(scores)[2]
        assert case.structure.argmax(scores, mask).isfinite().all()
        where = mask[2].nonzero()[-1].tolist()
        scores[(2, *where)] = torch.nan
        verbs = [case.structure.argmax]
        if case.marginal:
            verbs += [case.marginal.marginals, case.marginal.log_partition]
        for verb in verbs:
            with pytest.raises(ValueError, match=r"(?s)instance 2.*NaN|NaN.*instance 2"):
                verb(scores, mask)


@every_case
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64], ids=str)
def test_other_dtypes_are_refused(case: StructureCase, dtype: torch.dtype) -> None:
    scores = torch.ones(case.parts).to(dtype)
    with pytest.raises(TypeError, match=str(dtype)):
        case.structure.argmax(scores)
    with pytest.raises(TypeError, match=str(dtype)):
        case.structure.relaxation.project(scores)
    with pytest.raises(TypeError, match=str(dtype)):
        spigot.argmax(scores, case.structure)


@every_case
def test_a_mask_of_another_dtype_or_shape_is_refused(case: StructureCase) -> None:
    scores = torch.ones(2, *case.parts)
    with pytest.raises(TypeError, match="bool"):
        case.structure.argmax(scores, torch.ones(2, *case.parts))
    with pytest.raises(ValueError, match=r"\(3, "):
        case.structure.argmax(scores, torch.ones(3, *case.parts, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"mask"):
        spigot.argmax(scores, case.structure, mask=torch.ones(case.parts[0] + 1, dtype=torch.bool))


@every_tree
def test_wrong_shapes_are_named(trees: Trees) -> None:
    for shape in ((2, 4, 5), (4,), (2, 0, 0)):
        layer = spigot.Argmax(trees)
        for verb in (trees.argmax, trees.log_partition, trees.marginals, ConvexHull(trees).project, layer):
            with pytest.raises(ValueError, match=str(shape).replace("(", r"\(").replace(")", r"\)")):
                verb(torch.zeros(shape))


def test_scores_must_be_tensors() -> None:
    with pytest.raises(TypeError, match="list"):
        spigot.argmax([0.0, 1.0], OneOf())  # pyright: ignore[reportArgumentType]


@every_tree
def test_five_hundred_words(trees: Trees) -> None:
    """Long input: a member, marginals that sum to one and are finite, in acceptable time."""
    n = 501 if spigot.kernels.available else 61
    scores = torch.randn(1, n, n, generator=torch.Generator().manual_seed(9))
    start = time.perf_counter()
    z = trees.argmax(scores)
    assert trees.contains(z).all()
    if isinstance(trees, NonProjectiveTrees):  # the greedy heads bound the best tree from above
        greedy = scores.masked_fill(~trees.full_mask(scores), -torch.inf).amax(-2)[..., 1:].sum()
        assert 0.95 * greedy <= (z * scores).sum() <= greedy
    mu = trees.marginals(scores)
    torch.testing.assert_close(mu.sum(-2)[:, 1:], torch.ones(1, n - 1), rtol=0, atol=1e-3)
    assert mu.min() >= 0
    assert time.perf_counter() - start < 60


@pytest.mark.parametrize("structure", [OneOf(), SemanticGraphs(labels=3, deterministic=(0, 1))], ids=str)
def test_large_instances_of_the_others(structure: AbstractStructure) -> None:
    shape = (2, 5000) if structure.event_ndim == 1 else (1, 101, 101, 4)
    scores = torch.randn(shape)
    z = structure.argmax(scores)
    assert structure.contains(z).all()
    if isinstance(structure, AbstractMarginalStructure) and structure.event_ndim == 1:
        torch.testing.assert_close(structure.marginals(scores).sum(-1), torch.ones(2))


def test_ties_are_deterministic() -> None:
    """The same tie is broken the same way on every call, alone or in a batch."""
    for trees in TREES:
        scores = torch.randint(0, 2, (30, 7, 7), generator=torch.Generator().manual_seed(1)).float()
        z = trees.argmax(scores)
        assert torch.equal(z, trees.argmax(scores))
        assert torch.equal(z, torch.stack([trees.argmax(s) for s in scores]))
        assert torch.equal(z, trees.argmax(scores.double()).float())


@every_tree
def test_ties_reach_the_optimum(trees: Trees) -> None:
    every = members(trees, full(4))
    for bound in (2, 3):
        scores = torch.randint(0, bound, (300, 5, 5), generator=torch.Generator().manual_seed(bound)).float()
        best = torch.einsum("vij,bij->bv", every, scores.double()).amax(1)
        z = trees.argmax(scores)
        assert trees.contains(z).all()
        assert torch.equal((z * scores).sum((1, 2)).double(), best)


def test_every_binary_score_of_three_words() -> None:
    """All 2^9 patterns of scores, exhaustively: many cycles, many ties."""
    arcs = full(3)
    patterns = torch.tensor(list(itertools.product([0.0, 1.0], repeat=9)))
    scores = torch.zeros(512, 4, 4)
    scores[:, arcs] = patterns
    for trees in TREES:
        every = members(trees, arcs)
        best = torch.einsum("vij,bij->bv", every, scores.double()).amax(1)
        assert torch.equal((trees.argmax(scores) * scores).sum((1, 2)).double(), best)
        torch.testing.assert_close(
            trees.log_partition(scores.double()), torch.einsum("vij,bij->bv", every, scores.double()).logsumexp(1)
        )


def test_things_that_are_neither_structure_nor_estimator_are_refused() -> None:
    scores = torch.zeros(3)
    with pytest.raises(TypeError, match="structure"):
        spigot.argmax(scores, "OneOf")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="such as Spigot"):
        spigot.argmax(scores, spigot.OneOf(), spigot.Spigot)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="grad has shape"):
        spigot.Spigot().explain(spigot.OneOf(), scores, torch.zeros(4))
    with pytest.raises(ValueError, match="weight has shape"):
        spigot.structured_hinge(scores, torch.zeros(3), spigot.OneOf(), weight=torch.ones(4))
