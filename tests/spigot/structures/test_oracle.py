"""Structures given by a function, and the operator behind them."""

import functools
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
import torch
from torch import Tensor

import spigot
from spigot import ConvexHull, OneOf, Oracle, SparseMAP, Spigot, StraightThrough
from spigot._runtime.host import HostFunction, host_call


def top_two(scores: Tensor) -> Tensor:
    """The two best of the last axis."""
    return torch.zeros_like(scores).scatter(-1, scores.topk(2).indices, 1.0)


def positive(scores: Tensor, mask: Tensor) -> np.ndarray:
    """Any subset, through numpy and as truth values."""
    return ((scores > 0) & mask).numpy()


def one_of(scores: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1])


@pytest.mark.parametrize("batched", [False, True])
def test_function_of_scores(batched: bool) -> None:
    structure = Oracle(top_two, batched=batched)
    scores = torch.randn(3, 4, 6)
    z = structure.argmax(scores)
    assert torch.equal(z, top_two(scores))
    assert z.is_contiguous()


@pytest.mark.parametrize("batched", [False, True])
def test_function_of_scores_and_mask(batched: bool) -> None:
    structure = Oracle(positive, batched=batched)
    scores = torch.randn(5, 6, dtype=torch.float64)
    mask = torch.rand(5, 6) < 0.6
    scores = scores.masked_fill(~mask, torch.nan)
    z = structure.argmax(scores, mask)
    assert torch.equal(z, ((scores > 0) & mask).double())
    assert structure.contains(z, mask).all()


def test_masks_are_passed_to_those_who_ask() -> None:
    seen = []

    def keyword(scores: Tensor, *, mask: Tensor, temperature: float = 1.0) -> Tensor:
        seen.append("keyword")
        return mask * temperature

    def option(scores: Tensor, k: int = 2) -> Tensor:
        assert k == 2
        assert scores.tolist() == [1, -torch.inf, 1]
        return scores.isfinite().float()

    mask = torch.tensor([True, False, True])
    for fn in (keyword, option, functools.partial(option, k=2), lambda s, m: m):
        assert Oracle(fn).argmax(torch.ones(3), mask).tolist() == [1, 0, 1]
    assert seen == ["keyword"]


def test_instances_without_parts_are_left_out() -> None:
    mask = torch.tensor([[True, True, True], [False] * 3])
    for batched in (False, True):
        structure = Oracle(top_two, batched=batched)
        assert structure.argmax(torch.ones(2, 3), mask).sum(-1).tolist() == [2, 0]
        assert structure.argmax(torch.ones(0, 3)).shape == (0, 3)
        assert not structure.argmax(torch.ones(2, 3), mask & False).any()


def test_more_axes_of_parts() -> None:
    def row_and_column(scores: Tensor) -> Tensor:
        flat = scores.flatten()
        return torch.nn.functional.one_hot(flat.argmax(), flat.numel()).reshape(scores.shape)

    structure = Oracle(row_and_column, event_ndim=2)
    mask = structure.mask(torch.tensor([2, 3]))
    assert mask.shape == (2, 3, 3)
    assert mask.sum((-1, -2)).tolist() == [4, 9]
    scores = torch.randn(2, 3, 3)
    z = structure.argmax(scores, mask)
    assert z.sum((-1, -2)).tolist() == [1, 1]
    assert structure.violations(z * 0.5, mask)[0][0].startswith("part [")
    assert repr(structure) == "Oracle(row_and_column, event_ndim=2)"


def test_same_as_the_structure_it_imitates() -> None:
    scores = torch.randn(6, 4, dtype=torch.float64)
    weights = torch.randn(6, 4, dtype=torch.float64)
    for estimator in (Spigot(), StraightThrough(), SparseMAP()):
        gradients = []
        for structure in (Oracle(one_of, batched=True), OneOf()):
            learnt = scores.clone().requires_grad_()
            (spigot.argmax(learnt, structure, estimator) * weights).sum().backward()
            gradients.append(learnt.grad)
        torch.testing.assert_close(*gradients, atol=1e-7, rtol=0)


def test_relaxation_is_the_hull() -> None:
    structure = Oracle(top_two)
    assert structure.relaxation == ConvexHull(structure)
    p = structure.relaxation.project(torch.tensor([2.0, 0.5, 0.3], dtype=torch.float64))
    torch.testing.assert_close(p, torch.tensor([1.0, 0.6, 0.4], dtype=torch.float64))


def test_violations_and_check() -> None:
    def exactly_two(z: Tensor, mask: Tensor) -> list[str]:
        return [] if z.sum() == 2 else [f"{int(z.sum())} are chosen, not 2"]

    structure = Oracle(top_two, check=exactly_two)
    z = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.5, 1.5, 0.0]])
    mask = torch.tensor([[True, False, True], [True] * 3, [True] * 3])
    assert structure.violations(z, mask) == [
        ["part 1 is 1 but masked"],
        ["3 are chosen, not 2"],
        ["part 0 is 0.5, not 0 or 1", "part 1 is 1.5, not 0 or 1"],
    ]
    assert structure.contains(z, mask).tolist() == [False, False, False]
    assert structure.contains(structure.argmax(z)).all()


def test_wrong_answers_are_refused() -> None:
    scores, mask = torch.randn(2, 3), torch.tensor([[True] * 3, [False, True, True]])
    with pytest.raises(ValueError, match=r"short returned shape \(2,\); it was given \(3,\)"):
        Oracle(lambda s: s[:2], name="short").argmax(scores)
    with pytest.raises(ValueError, match=r"returned nan at part 0 of instance 0: a value that is not finite"):
        Oracle(lambda s: s * torch.nan).argmax(scores)
    with pytest.raises(ValueError, match=r"everything returned 1 at part 0 of instance 1: a part that is masked"):
        Oracle(lambda s: torch.ones_like(s), name="everything").argmax(scores, mask)
    with pytest.raises(TypeError, match="returned str"):
        Oracle(lambda s: "best").argmax(scores)
    with pytest.raises(ValueError, match=r"scores of instance 1 are NaN at part \[2\]"):
        Oracle(top_two).argmax(torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, torch.nan]]))
    with pytest.raises(TypeError, match="must be a function"):
        Oracle(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="event_ndim is 0"):
        Oracle(top_two, event_ndim=0)


def test_the_function_cannot_change_the_scores() -> None:
    scores = torch.ones(3)
    Oracle(lambda s: s.zero_()).argmax(scores)
    assert scores.tolist() == [1, 1, 1]


def test_autograd_inside_the_function() -> None:
    """Some decoders are the gradient of a recursion."""

    def gradient_of_max(scores: Tensor) -> Tensor:
        with torch.enable_grad():
            scores = scores.detach().requires_grad_()
            return torch.autograd.grad(scores.max(), scores)[0]

    structure = Oracle(gradient_of_max)
    scores = torch.tensor([0.5, 2.0, 1.0], requires_grad=True)
    assert structure.argmax(scores).tolist() == [0, 1, 0]
    with torch.no_grad():
        assert structure.argmax(scores).tolist() == [0, 1, 0]
    spigot.argmax(scores, structure)[1].backward()
    assert scores.grad is not None


def test_equality_repr_and_pickle() -> None:
    structure = Oracle(top_two, batched=True)
    assert structure == Oracle(top_two, batched=True)
    assert hash(structure) == hash(Oracle(top_two, batched=True))
    assert structure != Oracle(top_two)
    assert repr(structure) == "Oracle(top_two)"
    twin = pickle.loads(pickle.dumps(structure))
    assert twin == structure
    assert twin.argmax(torch.arange(3.0)).tolist() == [0, 1, 1]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch's own tracer
def test_inside_a_compiled_model() -> None:
    torch._dynamo.reset()
    layer, weights = spigot.Argmax(Oracle(top_two, batched=True), Spigot()), torch.randn(4)

    def model(scores: Tensor) -> Tensor:
        return (layer(scores * 2) * weights).sum()

    gradients = []
    for run in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        scores = torch.arange(12.0).reshape(3, 4).requires_grad_()
        run(scores).backward()
        gradients.append(scores.grad)
    assert torch.equal(*gradients)


def test_operator_is_well_behaved() -> None:
    double = HostFunction(lambda parts, mask: 2 * parts, event_ndim=1)
    parts, mask = torch.randn(3, 4), torch.rand(3, 4) < 0.5
    torch.library.opcheck(host_call, (parts, mask, double.handle))
    identity = HostFunction(lambda parts, mask: parts, event_ndim=1)
    result = identity(parts, torch.ones_like(mask))
    assert result.data_ptr() != parts.data_ptr()
    assert double(parts.t(), mask.t()).is_contiguous()
    with torch.inference_mode():
        assert torch.equal(identity(parts, mask), parts * mask)


def test_operator_has_no_gradient_and_says_so() -> None:
    double = HostFunction(lambda parts, mask: 2 * parts, event_ndim=1)
    result = double(torch.ones(3, requires_grad=True), torch.ones(3, dtype=torch.bool))
    with pytest.raises(NotImplementedError, match="use an estimator"):
        result.sum().backward()


def test_functions_are_freed() -> None:
    function = HostFunction(lambda parts, mask: parts, event_ndim=1)
    handle, alive = function.handle, weakref.ref(function)
    del function
    gc.collect()
    assert alive() is None
    with pytest.raises(RuntimeError, match=f"host function {handle} is gone"):
        host_call(torch.ones(3), torch.ones(3, dtype=torch.bool), handle)


def test_two_threads_at_once() -> None:
    results: dict[int, bool] = {}

    def work(number: int) -> None:
        same = True
        for _ in range(50):
            scores = torch.randn(4, 5)
            structure = Oracle(top_two)  # registered and freed while the other thread calls
            same &= torch.equal(structure.argmax(scores), top_two(scores))
        results[number] = same

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: True, 1: True}
