"""The first hidden layer of perceptrons over pairs: the kernel against its twin, there and back."""

import pytest
import torch
from torch import Tensor

from spigot import kernels
from spigot_nlp.nn.pairs import pair_tanh, pair_tanh_reference

needs_kernels = pytest.mark.skipif(not kernels.available, reason="there are no kernels")


def there_and_back(function, first: Tensor, second: Tensor, *rows: Tensor) -> tuple[Tensor, ...]:
    """Values, and the gradients of both tables for a loss that tells all values apart."""
    tables = first.clone().requires_grad_(), second.clone().requires_grad_()
    values = function(*tables, *rows)
    weight = torch.linspace(-1, 2, values.numel(), dtype=values.dtype).view_as(values)
    return values.detach(), *torch.autograd.grad((values * weight).sum(), tables)


def drawn(width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tables of two sizes, and pairs in no order, some of them more than once."""
    first, second = torch.randn(11, width) * 2, torch.randn(7, width) * 2
    return first, second, torch.randint(11, (150,)), torch.randint(7, (150,))


@needs_kernels
@pytest.mark.parametrize("width", [1, 7, 8, 9, 33, 100])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_kernel_gives_what_its_twin_gives(width: int, threads: int) -> None:
    first, second, *rows = drawn(width)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = there_and_back(pair_tanh, first, second, *rows)
    finally:
        torch.set_num_threads(before)
    right = there_and_back(pair_tanh_reference, first.double(), second.double(), *rows)
    for ours, theirs in zip(found, right, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=2e-5, rtol=1e-5)


@needs_kernels
def test_sums_do_not_depend_on_threads() -> None:
    given, before, found = drawn(50), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(there_and_back(pair_tanh, *given))
    finally:
        torch.set_num_threads(before)
    for more in found[1:]:
        assert all(map(torch.equal, found[0], more))


def test_rows_that_are_not_contiguous_and_pairs_that_are_none() -> None:
    first, second, *rows = drawn(12)
    odd = first.t().contiguous().t()
    assert torch.equal(pair_tanh(odd, second, *rows), pair_tanh(first, second, *rows))
    none = torch.empty(0, dtype=torch.int64)
    assert pair_tanh(first, second, none, none).shape == (0, 12)
    assert pair_tanh(first.double(), second.double(), *rows).dtype == torch.float64


@needs_kernels
def test_rows_that_are_not_there_are_refused() -> None:
    first, second, *rows = drawn(3)
    with pytest.raises(ValueError, match=r"rows of pairs go from 0 to \d+; they must be between 0 and 4"):
        pair_tanh(first[:5], second, *rows)


@needs_kernels
def test_it_compiles_without_a_graph_break() -> None:
    given = drawn(9)
    plain = there_and_back(pair_tanh, *given)
    traced = there_and_back(torch.compile(pair_tanh, fullgraph=True, backend="aot_eager"), *given)
    for ours, theirs in zip(traced, plain, strict=True):
        torch.testing.assert_close(ours, theirs)
