"""Scores at the end of the range, masks that allow nothing, tensors of any shape: with kernels and without them."""

import contextlib
import functools
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import spigot
from spigot import AbstractMarginalStructure, NonProjectiveTrees, ProjectiveTrees, SemanticGraphs
from spigot._runtime import native
from tests.spigot.cases import POLYTOPES, STRUCTURES, PolytopeCase, StructureCase
from tests.spigot.test_native import reference

every_case = pytest.mark.parametrize("case", STRUCTURES, ids=str)
TREES = [kind(single_root=single) for kind in (ProjectiveTrees, NonProjectiveTrees) for single in (True, False)]


def both_ways() -> Iterator[contextlib.AbstractContextManager[None]]:
    """With kernels, if there are any, and without."""
    if native.available:
        yield contextlib.nullcontext()
    yield reference()


def extreme(mask: Tensor, dtype: torch.dtype, top: float) -> Tensor:
    """Numbers up to a giant, a fifth of them just that."""
    generator = torch.Generator().manual_seed(3)
    scores = (2 * torch.rand(mask.shape, generator=generator, dtype=torch.float64) - 1) * top
    giant = torch.rand(mask.shape, generator=generator) < 0.2
    return torch.where(giant, scores.sign() * top, scores).to(dtype).masked_fill(~mask, 0)


@every_case
@pytest.mark.parametrize(
    ("dtype", "top"),
    [(torch.float64, 1e200), (torch.float64, torch.finfo(torch.float64).max), (torch.float32, 3e38)],
    ids=str,
)
def test_the_best_member_at_the_end_of_the_range(case: StructureCase, dtype: torch.dtype, top: float) -> None:
    """Sums of such scores are no numbers; the best member is known all the same."""
    count = 20 if case.name.startswith(("Factor", "Joint", "ZeroOne", "Relaxed", "Oracle")) else 60
    _, mask = case.draw(5, count)
    scores = extreme(mask, dtype, top)
    small = scores.double() * 2.0**-100  # exactly as far apart, and small enough to be summed
    for way in both_ways():
        with way:
            z = case.structure.argmax(scores, mask)
        for s, m, answer in zip(small, mask, z, strict=True):
            values = case.vertices(m).flatten(1) @ s.flatten()
            slack = 1e-9 if dtype == torch.float64 else 1e-5
            assert (answer.double() * s).sum() >= values.max() - slack * small.abs().max()


def test_roles_once_at_the_end_of_the_range() -> None:
    """Both arguments want role 0; the second gains more by it, whatever the scale and what stands beside it."""
    graphs = SemanticGraphs(labels=2, deterministic=(0,))
    for scale in (1.0, 1e150, 1e200, 1e300, 5e307):
        scores = torch.zeros(3, 3, 3, dtype=torch.float64)
        scores[0, 1, 1:] = torch.tensor([2.0, 1.5]) * scale
        scores[0, 2, 1:] = torch.tensor([1.0, -3.0]) * scale
        mask = graphs.full_mask(scores)
        mask[1:] = False
        for way in both_ways():
            with way:
                _, _, labelled = graphs.unpack(graphs.argmax(scores, mask))
            assert labelled[0, 1].tolist() == [0, 1]
            assert labelled[0, 2].tolist() == [1, 0]


@pytest.mark.parametrize("case", [case for case in STRUCTURES if case.marginal], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_sums_at_the_end_of_the_range(case: StructureCase, dtype: torch.dtype) -> None:
    """Numbers, or a sentence that scores are too large to be summed; never NaN, and never that the mask is to blame."""
    assert isinstance(case.structure, AbstractMarginalStructure)
    _, mask = case.draw(5, 30)
    for top in (torch.finfo(dtype).max, float(torch.finfo(dtype).max) * 2.0**-64):
        scores = extreme(mask, dtype, top)
        for way in both_ways():
            with way:
                leaf = scores.clone().requires_grad_()
                said = ""
                try:
                    mu = spigot.argmax(leaf, case.structure, spigot.StructuredAttention(), mask=mask)
                    mu.backward(torch.randn(mu.shape, dtype=dtype, generator=torch.Generator().manual_seed(1)))
                    drawn = case.sampling.sample(scores, mask)[0] if case.sampling else None
                    fine = mu.isfinite().all() and leaf.grad is not None and leaf.grad.isfinite().all()
                    assert fine
                    assert drawn is None or case.structure.contains(drawn, mask).all()
                except ValueError as error:
                    said = str(error)
                assert not said or "too large to be summed" in said


def test_words_all_of_whose_heads_are_giants_keep_one_root() -> None:
    """Beside scores of 1e19 the weight that singles out one root must not be lost to rounding."""
    mask = torch.zeros(3, 3, dtype=torch.bool)
    mask[0, 1] = mask[0, 2] = mask[1, 2] = True
    scores = torch.full((3, 3), -1.8e19)
    for way in both_ways():
        with way:
            mu = NonProjectiveTrees().marginals(scores, mask)
            drawn = NonProjectiveTrees().sample(scores, mask, samples=20)
        assert mu[0].tolist() == [0, 1, 0]
        assert mu[1].tolist() == [0, 0, 1]
        assert torch.equal(drawn, mu.expand_as(drawn))


def _feasible(arcs: list[list[bool]], *, projective: bool, single_root: bool) -> bool:
    """Whether there is a tree at all, by reachability, or by spans if no arcs may cross."""
    n = len(arcs)
    words = [j for j in range(1, n) if any(arcs[j]) or any(arcs[i][j] for i in range(n))]
    if not words:
        return True

    def reached(start: int) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            i = waiting.pop()
            new = [j for j in words if arcs[i][j] and j not in seen]
            seen.update(new)
            waiting += new
        return seen.issuperset(words)

    if not projective:
        return any(arcs[0][root] and reached(root) for root in words) if single_root else reached(0)
    at = [0, *words]

    @functools.cache
    def whole(i: int, j: int, right: bool) -> bool:
        if i == j:
            return True
        if right:
            return any(arc(i, k, True) and whole(k, j, True) for k in range(i + 1, j + 1))
        return any(whole(i, k, False) and arc(k, j, False) for k in range(i, j))

    @functools.cache
    def arc(i: int, j: int, right: bool) -> bool:
        there = arcs[at[i]][at[j]] if right else arcs[at[j]][at[i]]
        return there and any(whole(i, k, True) and whole(k + 1, j, False) for k in range(i, j))

    last = len(words)
    if not single_root:
        return whole(0, last, True)
    return any(arcs[0][at[r]] and whole(1, r, False) and whole(r, last, True) for r in range(1, last + 1))


@pytest.mark.parametrize("trees", TREES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_heads_that_allow_no_tree_are_refused(trees: ProjectiveTrees | NonProjectiveTrees, dtype: torch.dtype) -> None:
    """Random masks and infinite scores, n = 7, against a search that knows no scores."""
    generator, n, feasible = torch.Generator().manual_seed(17), 7, 0
    share = 0.05 + 0.5 * torch.rand(250, 1, 1, generator=generator)
    masks = torch.rand(250, n, n, generator=generator) < share
    masks[:, 0, 1] |= torch.rand(250, generator=generator) < 0.5
    choices = torch.tensor(
        [torch.inf, -torch.inf, 0.0, 1.0, torch.finfo(dtype).max, -torch.finfo(dtype).max], dtype=dtype
    )
    scores = choices[torch.randint(len(choices), masks.shape, generator=generator)]
    projective = isinstance(trees, ProjectiveTrees)
    for number, (mask, s) in enumerate(zip(masks, scores, strict=True)):
        arcs = mask.clone().fill_diagonal_(False)
        arcs[:, 0] = False
        possible = _feasible(arcs.tolist(), projective=projective, single_root=trees.single_root)
        feasible += possible
        for way in both_ways() if number % 5 == 0 else [contextlib.nullcontext()]:
            with way:
                if possible:
                    assert trees.contains(trees.argmax(s, mask), mask)
                else:
                    with pytest.raises(ValueError, match=r"no possible head|leaves no"):
                        trees.argmax(s, mask)
    assert 10 < feasible < 240


@pytest.mark.parametrize("trees", TREES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_no_verb_takes_heads_that_allow_no_tree(
    trees: ProjectiveTrees | NonProjectiveTrees, dtype: torch.dtype
) -> None:
    """Two words that have only each other, in one sentence of several, whatever the scores and the strides."""
    mask = trees.mask(torch.tensor([6, 4, 5]), 7)
    mask[1, :, 2:4] = False
    mask[1, 2, 3] = mask[1, 3, 2] = True
    generator = torch.Generator().manual_seed(3)
    kinds = [torch.zeros(3, 7, 7, dtype=dtype), torch.randn(3, 7, 7, generator=generator, dtype=dtype)]
    kinds += [kinds[1].masked_fill(torch.rand(3, 7, 7, generator=generator) < share, -torch.inf) for share in (0.5, 1)]
    verbs: list[Callable[[Tensor, Tensor], object]] = [
        trees.argmax,
        trees.log_partition,
        trees.marginals,
        trees.sample,
        lambda scores, mask: trees.k_best(scores, 3, mask),
        lambda scores, mask: trees.log_count(mask),
    ]
    for scores in kinds:
        for s, m in ((scores, mask), (scores.mT.contiguous().mT, mask.mT.contiguous().mT), (scores[:1], mask[1:2])):
            for verb in verbs:
                for way in both_ways():
                    with way, pytest.raises(ValueError, match="leaves no"):
                        verb(s, m)


def _refused_or_answered(verb: Callable[[Tensor], object], given: object) -> None:
    said = "an answer"
    try:
        verb(given)  # pyright: ignore[reportArgumentType]
    except (ValueError, TypeError) as error:
        said = str(error).strip()
    assert said
    assert "\n" not in said


def _shapes(parts: tuple[int, ...]) -> list[tuple[int, ...]]:
    axes = len(parts)
    other = [(), (0,), (2, 3), (0, 0), (2, 0), (5, 4, 3), (5, 4, 3, 2), (0,) * axes, (0,) * (axes + 1), (1,) * axes]
    return [*other, (0, *parts), (*parts[:-1], 0), (*parts[:-1], parts[-1] + 1), (parts[0] + 1, *parts[1:])]


@pytest.mark.parametrize("case", [*STRUCTURES, *POLYTOPES], ids=str)
def test_tensors_of_any_shape_and_things_that_are_none(case: StructureCase | PolytopeCase) -> None:
    if isinstance(case, StructureCase):
        structure = case.structure
        relaxation = structure.relaxation
        verbs = [structure.argmax, structure.contains, structure.violations, relaxation.contains, relaxation.project]
    else:
        verbs = [case.polytope.contains, case.polytope.project]
    for verb in verbs:
        for shape in _shapes(case.parts):
            _refused_or_answered(verb, torch.zeros(shape))
        for given in (None, [1.0], torch.zeros(case.parts, dtype=torch.int64), torch.full(case.parts, torch.nan)):
            _refused_or_answered(verb, given)
        with pytest.raises(TypeError, match="must be a tensor, not list"):
            verb([1.0])  # pyright: ignore[reportArgumentType]
