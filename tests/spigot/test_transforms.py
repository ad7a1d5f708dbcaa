"""The layer inside torch's transforms, and tensors that do not live on the host."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot._runtime import native
from spigot._runtime.host import HOSTED, HostFunction, _Hosted
from spigot.interface import AbstractMarginalStructure, AbstractRankedStructure, AbstractSamplingStructure
from tests.spigot.cases import STRUCTURES, StructureCase

TREES = spigot.ProjectiveTrees()

STEPWISE = ("ProjectiveTrees", "NonProjectiveTrees-many", "SemanticGraphs-one")
"""Cases whose argmax goes step by step, which an accelerator does slowly."""

OPEN = ("OneOf", "Chains", "ConstituencyTrees", "Alignments")
"""Cases to compile for any size: one for each way in which sizes are checked."""

LIKE_ANOTHER = (
    *("ProjectiveTrees-many", "NonProjectiveTrees-many", "SemanticGraphs-all"),
    *("Matchings-wide", "Matchings-tall", "Alignments-wide"),
    *("Subsets-at-most-2", "Subsets-1-to-3", "Subsets-at-least-2"),
)
"""Cases that differ from another in numbers alone that operators are given: what is traced is the same Python."""


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("case", [case for case in STRUCTURES if case.name not in LIKE_ANOTHER], ids=str)
def test_every_verb_compiles_without_a_graph_break(case: StructureCase) -> None:
    structure: Any = case.structure
    scores, mask = case.draw(70, 2, dtype=torch.float32)
    scores = scores.nan_to_num()

    def verbs(scores: Tensor, mask: Tensor) -> list[Tensor]:
        found = [structure.argmax(scores, mask), structure.relaxation.project(scores, mask)]
        if isinstance(structure, AbstractMarginalStructure):
            z = structure.argmax(scores, mask)
            found += [structure.marginals(scores, mask), structure.log_partition(scores, mask)]
            found += [structure.entropy(scores, mask), structure.kl(scores, scores.flip(0), mask)]
            found += [structure.log_prob(scores, z, mask), structure.log_count(mask)]
        if isinstance(structure, AbstractSamplingStructure):
            found.append(torch.zeros(structure.sample(scores, mask, 2).shape))
        if isinstance(structure, AbstractRankedStructure):
            found += structure.k_best(scores, 2, mask)
        return found

    traced = torch.compile(verbs, fullgraph=True, backend="aot_eager")(scores, mask)
    for ours, theirs in zip(traced, verbs(scores, mask), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("case", [case for case in STRUCTURES if case.name in OPEN], ids=str)
def test_sizes_may_be_left_open(case: StructureCase) -> None:
    """A model that has seen batches of two lengths is compiled for all of them."""
    structure: Any = case.structure
    scores, mask = case.draw(72, 3, dtype=torch.float32)
    scores, mask = scores.nan_to_num(), mask[:1]

    def verbs(scores: Tensor, mask: Tensor) -> list[Tensor]:
        drawn = structure.sample(scores, mask, 2)
        return [structure.argmax(scores, mask), structure.relaxation.project(scores, mask), torch.zeros(drawn.shape)]

    traced = torch.compile(verbs, fullgraph=True, dynamic=True, backend="aot_eager")(scores, mask)
    for ours, theirs in zip(traced, verbs(scores, mask), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_a_gradient_inside_vmap_is_that_of_the_batch() -> None:
    scores = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(0))

    def loss(scores: Tensor, weight: Tensor, rule: spigot.AbstractEstimator = spigot.Spigot()) -> Tensor:
        return (spigot.argmax(scores, TREES, rule) * weight).sum()

    leaf = scores.clone().requires_grad_()
    loss(leaf, scores.sin()).backward()
    mapped = torch.vmap(torch.func.grad(loss))(scores, scores.sin())
    assert leaf.grad is not None
    torch.testing.assert_close(mapped, leaf.grad, rtol=0, atol=1e-6)
    for rule in (spigot.IMLE(), spigot.SparseMAP(), spigot.Spigot(polytope=spigot.ConvexHull(TREES))):
        with pytest.raises(NotImplementedError, match=r"cannot run inside vmap.*Take the gradient outside"):
            torch.vmap(torch.func.grad(lambda s, w, rule=rule: loss(s, w, rule)))(scores, scores.sin())


@pytest.mark.skipif(not native.available, reason="without kernels sums are plain torch")
def test_what_torch_cannot_transform_is_said() -> None:
    scores = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(0))
    with pytest.raises(NotImplementedError, match=r"torch.func cannot differentiate.*Use torch.autograd.grad"):
        torch.func.grad(lambda s: TREES.log_partition(s).sum())(scores)


@pytest.mark.skipif(not native.available, reason="without kernels tensors stay where they are")
@pytest.mark.parametrize("case", [case for case in STRUCTURES if case.name in STEPWISE], ids=str)
def test_an_accelerator_goes_through_the_kernels(case: StructureCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """No accelerator is at hand: the question whether the host is the better place is answered in its stead."""
    scores, mask = case.draw(71, 4, dtype=torch.float32)
    expected = case.structure.argmax(scores, mask)
    asked: list[torch.device] = []
    monkeypatch.setattr("spigot._runtime.native.prefers_host", lambda device: asked.append(device) or True)
    moves = _count_moves(monkeypatch)
    assert torch.equal(case.structure.argmax(scores, mask), expected)
    assert asked == [scores.device]
    assert moves == ["cpu", "cpu", scores.device], "scores and mask go there, z comes back"


def test_an_accelerator_without_kernels_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not native.prefers_host(torch.device("cpu"))
    assert native.prefers_host(torch.device("cuda")) == native.available
    monkeypatch.setattr("spigot._runtime.native.available", False)
    assert not native.prefers_host(torch.device("cuda"))


def _count_moves(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    from spigot._runtime import operators

    moves: list[object] = []
    move = operators._to

    def counted(value: Any, device: Any) -> Any:
        if isinstance(value, Tensor):
            moves.append(device)
        return move(value, device)

    monkeypatch.setattr(operators, "_to", counted)
    return moves


class Thing:
    """Something that can be counted among the living."""

    def __init__(self, name: int) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and other.name == self.name

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def test_what_compiled_graphs_name_is_kept_up_to_a_bound() -> None:
    hosted = _Hosted(room=3)
    handles = [hosted.keep(Thing(i)) for i in range(5)]
    gc.collect()
    assert [hosted[handle].name for handle in handles[2:]] == [2, 3, 4]
    for handle in handles[:2]:
        with pytest.raises(RuntimeError, match=r"is gone.*Keep a reference"):
            hosted[handle]
    held = hosted[handles[2]]
    for i in range(10, 13):
        hosted.keep(Thing(i))
    assert hosted[handles[2]] is held, "beyond the bound a thing lives as long as somebody holds it"
    shared = hosted.keep(Thing(12))
    assert shared == hosted.keep(Thing(12)), "equal things share a number"
    gc.collect()
    assert hosted[shared].name == 12, "and the first of them lives on"


def test_a_function_that_nobody_holds_is_freed() -> None:
    function = HostFunction(lambda parts, mask: parts, event_ndim=1)
    alive, handle = weakref.ref(function), function.handle
    del function
    gc.collect()
    assert alive() is None
    with pytest.raises(RuntimeError, match="is gone"):
        HOSTED[handle]


@pytest.mark.parametrize("verb", ["marginals", "log_partition", "entropy", "sample", "kl", "log_count", "log_prob"])
def test_a_structure_says_by_its_type_what_it_lacks(verb: str) -> None:
    strict, free = spigot.SemanticGraphs(2, deterministic=(0,)), spigot.SemanticGraphs(2)
    assert not isinstance(strict, AbstractMarginalStructure)
    assert isinstance(free, AbstractMarginalStructure)
    assert isinstance(free, spigot.SemanticGraphs)
    assert not hasattr(strict, verb)
    with pytest.raises(TypeError, match=rf"has no {verb}: sums over graphs are intractable with deterministic roles"):
        getattr(strict, verb)
    program = spigot.ZeroOneProgram(torch.ones(1, 2), torch.ones(1))
    with pytest.raises(AttributeError, match=f"has no {verb}: nothing but its argmax is tractable"):
        getattr(program, verb)
    with pytest.raises(AttributeError, match="has no attribute 'margnals'"):
        program.margnals  # pyright: ignore[reportAttributeAccessIssue] # noqa: B018
