"""The compiled kernels against the torch reference, and the package without them."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spigot import (
    ArcLabel,
    Chains,
    ConvexHull,
    HeadSimplex,
    NonProjectiveTrees,
    ProjectiveTrees,
    SemanticGraphs,
    Simplex,
)
from spigot._runtime import native

ROOT = Path(__file__).parents[2]

compiled = pytest.mark.skipif(not native.available, reason="there are no kernels to compare")
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 100_000)


@contextmanager
def reference() -> Iterator[None]:
    """Everything through torch: without its kernels, a call of one is an error."""
    kernels, available = native.kernels, native.available
    native.kernels, native.available = None, False
    try:
        yield
    finally:
        native.kernels, native.available = kernels, available


def both(function: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
    fast = function()
    with reference():
        slow = function()
    assert fast.dtype == slow.dtype
    assert fast.shape == slow.shape
    return fast, slow


def draw_mask(generator: torch.Generator, batch: int, n: int) -> Tensor:
    """Mixed lengths, some words missing in the middle, some arcs pruned; chains keep a projective tree possible."""
    possible = ProjectiveTrees().mask(torch.tensor(n - 1))
    exists = torch.rand(batch, n, generator=generator) < 0.8
    lengths = torch.randint(0, n, (batch,), generator=generator)
    exists &= torch.arange(n) <= lengths[:, None]
    exists[:, 0] = True
    mask = possible & exists[:, :, None] & exists[:, None, :] & (torch.rand(batch, n, n, generator=generator) < 0.7)
    for b in range(batch):
        words = exists[b].nonzero()[:, 0].tolist()
        for left, right in itertools.pairwise(words):
            mask[b, left, right] = True
    return mask


def draw(seed: int, dtype: torch.dtype, *, integers: bool = False, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    batch = int(torch.randint(1, 20, (), generator=generator))
    n = int(torch.randint(1, 14, (), generator=generator))
    mask = draw_mask(generator, batch, n)
    scores = scale * torch.randn(batch, n, n, generator=generator, dtype=torch.float64)
    if integers:
        scores = scores.mul(2).round()
    return scores.masked_fill(~mask, torch.nan).to(dtype), mask


def pick(projective: bool, single_root: bool) -> ProjectiveTrees | NonProjectiveTrees:
    return ProjectiveTrees(single_root) if projective else NonProjectiveTrees(single_root)


@compiled
def test_reference_really_is_without_kernels() -> None:
    with reference():
        assert not native.available
        assert "torch" in native.status()
    assert native.available
    assert "native kernels in use" in native.status()


@compiled
@given(seeds, dtypes, st.booleans(), st.booleans(), st.booleans())
def test_argmax_of_trees(seed: int, dtype: torch.dtype, projective: bool, single_root: bool, integers: bool) -> None:
    scores, mask = draw(seed, dtype, integers=integers)
    trees = pick(projective, single_root)
    fast, slow = both(lambda: trees.argmax(scores, mask))
    assert trees.contains(fast, mask).all()
    assert trees.contains(slow, mask).all()
    if integers:  # equal in value, exactly; which of the tied trees is returned is promised, too
        total = [(z * scores.nan_to_num()).sum((1, 2)) for z in (fast, slow)]
        assert torch.equal(*total)
    else:
        assert torch.equal(fast, slow)


@compiled
@given(seeds, dtypes, st.booleans(), st.booleans(), st.sampled_from([1.0, 50.0, 1000.0]))
def test_sums_over_trees(seed: int, dtype: torch.dtype, projective: bool, single_root: bool, scale: float) -> None:
    scores, mask = draw(seed, dtype, scale=scale)
    trees = pick(projective, single_root)
    rtol = 1e-11 if dtype == torch.float64 else 1e-5
    atol = 1e-9 if dtype == torch.float64 else 2e-5 * max(1.0, scale / 10)
    fast, slow = both(lambda: trees.log_partition(scores, mask))
    torch.testing.assert_close(fast, slow, rtol=rtol, atol=atol)
    fast, slow = both(lambda: trees.marginals(scores, mask))
    torch.testing.assert_close(fast, slow, rtol=0, atol=atol)
    assert not fast[~mask].any()


@compiled
@given(seeds, st.booleans(), st.booleans(), st.sampled_from([1.0, 50.0]))
def test_derivatives_of_marginals(seed: int, projective: bool, single_root: bool, scale: float) -> None:
    scores, mask = draw(seed, torch.float64, scale=scale)
    direction = torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    trees = pick(projective, single_root)

    def back() -> Tensor:
        leaf = scores.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(trees.marginals(leaf, mask), leaf, direction)
        return gradient

    fast, slow = both(back)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-8)


@compiled
@given(seeds, dtypes, st.sampled_from([(), (0,), (0, 1), (0, 1, 2)]), st.booleans())
def test_argmax_of_graphs(seed: int, dtype: torch.dtype, deterministic: tuple[int, ...], integers: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    graphs = SemanticGraphs(3, deterministic)
    scores = torch.randn(6, 6, 6, 4, generator=generator, dtype=torch.float64)
    scores = (scores.mul(2).round() if integers else scores).to(dtype)
    mask = graphs.full_mask(scores) & (torch.rand(scores.shape, generator=generator) < 0.9)
    fast, slow = both(lambda: graphs.argmax(scores.masked_fill(~mask, torch.nan), mask))
    assert graphs.contains(fast, mask).all()
    if integers:
        assert torch.equal((fast * scores).sum((1, 2, 3)), (slow * scores).sum((1, 2, 3)))
    else:
        assert torch.equal(fast, slow)


@compiled
@given(seeds, dtypes, st.sampled_from([0.1, 1.0, 100.0]), st.booleans())
def test_projections(seed: int, dtype: torch.dtype, scale: float, integers: bool) -> None:
    atol = 1e-12 if dtype == torch.float64 else 1e-5
    points, mask = draw(seed, dtype, scale=scale, integers=integers)
    for polytope in (Simplex(), HeadSimplex()):
        fast, slow = both(lambda polytope=polytope: polytope.project(points, mask))
        torch.testing.assert_close(fast, slow, rtol=0, atol=atol)
    generator = torch.Generator().manual_seed(seed)
    parts = (scale * torch.randn(4, 5, 5, 4, generator=generator, dtype=torch.float64)).to(dtype)
    exists = torch.rand(parts.shape, generator=generator) < 0.8
    for sequential in (False, True):
        fast, slow = both(lambda sequential=sequential: ArcLabel(sequential).project(parts, exists))
        torch.testing.assert_close(fast, slow, rtol=0, atol=atol)


@compiled
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("integers", [True, False])
def test_hull_of_trees(projective: bool, single_root: bool, integers: bool) -> None:
    trees = pick(projective, single_root)
    for seed in range(6):
        points, mask = draw(seed, torch.float64, integers=integers)
        fast, slow = both(lambda points=points, mask=mask: ConvexHull(trees).project(points, mask))
        torch.testing.assert_close(fast, slow, rtol=0, atol=1e-6)
        z = trees.argmax(points, mask)
        fast, slow = both(lambda points=points, mask=mask, z=z: ConvexHull(trees).project(points, mask, start=z))
        torch.testing.assert_close(fast, slow, rtol=0, atol=1e-6)


@compiled
@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(1, 7), st.integers(1, 6), st.sampled_from([0.2, 1.0, 10.0]), st.booleans())
def test_hull_of_chains(seed: int, n: int, k: int, scale: float, integers: bool) -> None:
    chains, generator = Chains(k), torch.Generator().manual_seed(seed)
    mask = chains.mask(torch.randint(0, n + 1, (5,), generator=generator), n)
    some = torch.rand(mask.shape, generator=generator) < 0.8
    some[..., :2, 0] = True  # so that there is a chain
    mask = mask & some
    points = scale * torch.randn(mask.shape, generator=generator, dtype=torch.float64)
    points = points.round() if integers else points
    hull, other = ConvexHull(chains), chains.argmax(points.flip(0), mask)
    for start in (None, other, torch.ones_like(points)):  # the last is no chain
        fast, slow = both(lambda start=start: hull.project(points, mask, start=start))
        torch.testing.assert_close(fast, slow, rtol=0, atol=1e-6)
    solution = hull.solve(points, mask)
    assert (solution.gap <= 1e-8 * max(1.0, scale)).all()
    for point, support in zip(solution.point, solution.support, strict=True):
        assert (support.weights >= 0).all()
        mixture = torch.tensordot(support.weights, support.vertices.double(), 1)
        torch.testing.assert_close(mixture, point, rtol=0, atol=1e-9)


@compiled
def test_hulls_of_chains_one_by_one_and_on_several_threads(monkeypatch) -> None:
    chains, generator = Chains(9), torch.Generator().manual_seed(0)
    mask = chains.mask(torch.randint(0, 12, (40,), generator=generator), 12)
    points = torch.randn(mask.shape, generator=generator).masked_fill(~mask, torch.nan)
    whole = ConvexHull(chains).project(points, mask)
    alone = torch.stack([ConvexHull(chains).project(*one) for one in zip(points, mask, strict=True)])
    assert torch.equal(whole, alone)
    for count in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda count=count: count)
        assert torch.equal(whole, ConvexHull(chains).project(points, mask))


@compiled
def test_errors_of_chains_are_the_same() -> None:
    hull, mask = ConvexHull(Chains(2)), Chains(2).mask(torch.tensor([3, 3]))
    nan, stateless, broken = torch.zeros(mask.shape), mask.clone(), mask.clone()
    nan[1, 1, 2, 0] = torch.nan
    stateless[1, 1, 0] = False
    broken[1, 2, 1:] = False
    for points, exists in ((nan, mask), (torch.zeros(mask.shape), stateless), (torch.zeros(mask.shape), broken)):
        with pytest.raises(ValueError, match="instance 1") as fast:
            hull.project(points, exists)
        with pytest.raises(ValueError, match="instance 1") as slow, reference():
            hull.project(points, exists)
        assert str(fast.value) == str(slow.value)


@compiled
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("verb", ["argmax", "log_partition", "marginals"])
def test_errors_are_the_same(projective: bool, verb: str) -> None:
    """Whoever finds the fault, the message is one."""
    trees = pick(projective, True)
    mask = trees.mask(torch.tensor([3, 3]))
    nan, headless, rootless = torch.zeros(2, 4, 4), mask.clone(), mask.clone()
    nan[1, 2, 3] = torch.nan
    headless[1, :, 3] = False
    rootless[1, 0] = False
    for scores, exists in ((nan, mask), (torch.zeros(2, 4, 4), headless), (torch.zeros(2, 4, 4), rootless)):
        with pytest.raises(ValueError, match="instance 1") as fast:
            getattr(trees, verb)(scores, exists)
        with pytest.raises(ValueError, match="instance 1") as slow, reference():
            getattr(trees, verb)(scores, exists)
        assert str(fast.value) == str(slow.value)


@compiled
@pytest.mark.parametrize("n", [2, 3, 8, 9, 16, 17, 33, 65])
def test_sizes_around_the_vector_width(n: int) -> None:
    """Off-by-one errors in padded rows show at these sizes."""
    generator = torch.Generator().manual_seed(n)
    for dtype in (torch.float32, torch.float64):
        scores = torch.randn(2, n, n, generator=generator, dtype=torch.float64).to(dtype)
        for projective, single_root in ((True, True), (True, False), (False, True), (False, False)):
            trees = pick(projective, single_root)
            fast, slow = both(lambda trees=trees, scores=scores: trees.argmax(scores))
            assert torch.equal(fast, slow)
            if n < 20:  # the reference takes its time
                fast, slow = both(lambda trees=trees, scores=scores: trees.marginals(scores))
                torch.testing.assert_close(fast, slow, rtol=0, atol=1e-10 if dtype == torch.float64 else 2e-5)


@compiled
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_sentences_are_the_same_alone_and_in_a_batch(projective: bool, single_root: bool, dtype: torch.dtype) -> None:
    """Kernels may pack sentences of like length together; not one bit may depend on the company."""
    trees = pick(projective, single_root)
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(0, 40, (35,), generator=generator)
    mask = trees.mask(lengths, size=40)
    scores = torch.randn(mask.shape, generator=generator, dtype=torch.float64).to(dtype).masked_fill(~mask, torch.nan)

    def results(s: Tensor, m: Tensor) -> list[Tensor]:
        leaf = s.clone().requires_grad_()
        mu = trees.marginals(leaf, m)
        mu.backward(torch.sin(9 * s))
        assert leaf.grad is not None
        gradient = trees.relaxation.project(s, m)
        return [trees.argmax(s, m), trees.log_partition(s, m), mu.detach(), leaf.grad, gradient]

    whole = results(scores, mask)
    for index, length in enumerate(lengths.tolist()):
        n = length + 1
        alone = results(scores[index, :n, :n], mask[index, :n, :n])
        for one, many in zip(alone, whole, strict=True):
            assert torch.equal(one, many[index] if one.ndim == 0 else many[index, :n, :n])


def run(*arguments: str, **environment: str) -> str:
    """Run Python; on failure show what it said."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_kernels_can_be_switched_off() -> None:
    code = "import spigot; print(spigot.kernels.available, spigot.kernels.status())"
    said = run("-c", code, SPIGOT_NATIVE="0")
    assert said.startswith("False")
    assert "SPIGOT_NATIVE=0" in said


OF_VALUES = (
    "nothing_beats",
    "feasible_and_nearest",
    "equals_the_sum",
    "equal_the_mean",
    "covariance",
    "samples_follow",
    "those_of_the_list",
    "Spigot- and explain",
)
"""Checks of the conformance suite that look at values: one or two of each verb."""

ALONE = pytest.mark.xdist_group("without a compiler")  # installed once
Isolated: TypeAlias = dict[str, str]


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    """The package as it installs without a compiler, by an environment in which Python finds that, and not this one."""
    target, build = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("build")
    run(
        *("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"),
        *("--no-index", "--config-settings", f"build-dir={build}", "--target", str(target), str(ROOT)),
        CC="/nonexistent/cc",
        CXX="/nonexistent/c++",
        CMAKE_GENERATOR="Unix Makefiles",
    )
    assert (target / "spigot" / "__init__.py").exists()
    assert not list(target.rglob("_native*")), "there was no compiler, so there can be no kernels"
    # What is importable here, after the package just installed, and (by -S) without the environment's start-up files,
    # which would lead back to the source tree.
    paths = [str(target), *filter(None, sys.path), str(ROOT)]
    return {"PYTHONPATH": os.pathsep.join(paths), "SPIGOT_NATIVE": "1", "PYTHONSAFEPATH": "1"}


@ALONE
@pytest.mark.slow
def test_package_built_without_a_compiler_says_so(isolated: Isolated) -> None:
    target = isolated["PYTHONPATH"].partition(os.pathsep)[0]
    code = "import spigot; print(spigot.__file__, spigot.kernels.available)"
    assert run("-S", "-c", code, **isolated).split() == [str(Path(target, "spigot", "__init__.py")), "False"]
    assert "not built" in run("-S", "-m", "spigot_nlp", "--version", **isolated)


@ALONE
@pytest.mark.slow
def test_package_built_without_a_compiler(isolated: Isolated) -> None:
    """What the conformance suite asks of values holds on the fallback.

    In that run every call of the library is also held to the shapes it is annotated with. For their time, programs,
    which have no kernels, hulls, which decode many times as often as the others, and most estimators, which have no
    kernels of their own, are left out, and so are checks that ask the same of any implementation, or of what all make
    of the same sums; the tests above hold each reference to its kernel.
    """
    run(
        *("-S", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-o", "addopts=", "-n", "0", "--assert", "plain"),
        *("--jaxtyping-packages=spigot,beartype.beartype", "tests/spigot/test_conformance.py"),
        *("-k", f"float64 and not Program and not ConvexHull and ({' or '.join(OF_VALUES)})"),
        **isolated,
    )
