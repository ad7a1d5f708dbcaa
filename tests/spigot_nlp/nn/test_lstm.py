"""BiLSTMs that learn by kernels, against torch's LSTM."""

import copy

import pytest
import torch
from torch import Tensor, nn

from spigot import kernels
from spigot_nlp.nn.encoder import BiLSTM, kernels_read, read_both_ways

pytestmark = pytest.mark.skipif(not kernels.available, reason="there are no kernels")

LENGTHS = torch.tensor([4, 9, 0, 1, 9, 7, 3])


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def learned(lstm: BiLSTM, inputs: Tensor, wanted: Tensor, seeds: Tensor | None = None) -> list[Tensor]:
    """The states, and the gradients of the inputs and of all weights, of one sweep there and back."""
    inputs = inputs.detach().requires_grad_()
    states = lstm(inputs, LENGTHS, seeds)
    there = (torch.arange(inputs.shape[1]) < LENGTHS.unsqueeze(-1)).unsqueeze(-1)
    (states * wanted * there).sum().backward()  # nobody asks for states of padding
    found = [states * there, inputs.grad, *(p.grad for p in lstm.parameters())]
    return [value.detach() for value in found if value is not None]


@pytest.mark.parametrize("units", [1, 3, 7, 8, 9, 15, 16, 17, 33, 64, 70])
@pytest.mark.parametrize("interleaved", [False, True])
def test_states_and_gradients_are_those_of_torch_in_double_precision(units: int, interleaved: bool) -> None:
    ours = BiLSTM(5, units, 2, interleaved=interleaved, dropout=0.3)
    exact = copy.deepcopy(ours).double()
    inputs, wanted = torch.randn(7, 9, 5), torch.randn(7, 9, 2 * units)
    assert kernels_read(inputs)
    assert not kernels_read(inputs.double())
    seeds = torch.arange(7)
    found = learned(ours, inputs, wanted, seeds)
    right = learned(exact, inputs.double(), wanted.double(), seeds)
    assert len(found) == len(right) == 2 + 16
    for ours_is, true in zip(found, right, strict=True):
        margin = 1e-5 * max(1.0, float(true.abs().max()))
        torch.testing.assert_close(ours_is.double(), true, atol=margin, rtol=1e-4)


def test_gates_far_open_and_far_closed() -> None:
    ours = BiLSTM(5, 9, 1)
    exact = copy.deepcopy(ours).double()
    inputs, wanted = 200 * torch.randn(7, 9, 5), torch.randn(7, 9, 18)
    for ours_is, true in zip(
        learned(ours, inputs, wanted), learned(exact, inputs.double(), wanted.double()), strict=True
    ):
        assert ours_is.isfinite().all()
        margin = 1e-4 * max(1.0, float(true.abs().max()))
        torch.testing.assert_close(ours_is.double(), true, atol=margin, rtol=0)


def test_states_and_their_gradients_depend_neither_on_threads_nor_on_the_batch() -> None:
    lengths = LENGTHS.repeat(4)
    gates = [torch.randn(28, 9, 96, requires_grad=True) for _ in range(2)]
    weights = [torch.randn(96, 24) for _ in range(2)]
    wanted, before = torch.randn(28, 9, 48), torch.get_num_threads()

    def both(rows: slice) -> list[Tensor]:
        states, *_ = torch.ops.spigot.recur(*(gate[rows] for gate in gates), *weights, lengths[rows])
        return [states.detach(), *torch.autograd.grad((states * wanted[rows]).sum(), gates)]

    found: list[list[Tensor]] = []
    try:
        for threads in (1, 2, 8):
            torch.set_num_threads(threads)
            found.append(both(slice(None)))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
    for k in range(7):
        states, *alone = both(slice(k, k + 1))
        assert torch.equal(states[0], found[0][0][k])
        assert all(torch.equal(a[k], b[k]) for a, b in zip(alone, found[0][1:], strict=True))


def test_padding_has_zeros_and_no_say() -> None:
    right, left = nn.LSTM(5, 6, 2), nn.LSTM(5, 6, 2)
    inputs = torch.randn(7, 9, 5)
    states = read_both_ways(right, left, inputs, LENGTHS)
    padding = torch.arange(9) >= LENGTHS.unsqueeze(-1)
    assert not states[padding].any()
    assert states[~padding].all()
    changed = inputs.masked_fill(padding.unsqueeze(-1), 77.0)
    assert torch.equal(read_both_ways(right, left, changed, LENGTHS), states)


@pytest.mark.parametrize("lengths", [[10, 3], [-1, 3]])
def test_lengths_that_lead_elsewhere_are_refused(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="must be between 0 and 9"):
        read_both_ways(nn.LSTM(5, 6), nn.LSTM(5, 6), torch.zeros(2, 9, 5), torch.tensor(lengths))


def test_the_operators_compile_whole() -> None:
    gates = [torch.randn(2, 3, 8, requires_grad=True) for _ in range(2)]
    weights = [torch.randn(8, 2, requires_grad=True) for _ in range(2)]
    lengths, wanted = torch.tensor([3, 1]), torch.randn(2, 3, 4)

    def loss(*given: Tensor) -> Tensor:
        return (torch.ops.spigot.recur(*given, lengths)[0] * wanted).sum()

    torch.library.opcheck(
        torch.ops.spigot.recur.default,
        (*gates, *weights, lengths),
        test_utils=("test_schema", "test_autograd_registration"),
    )
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    plain = torch.autograd.grad(loss(*gates, *weights), gates + weights)
    torch.testing.assert_close(torch.autograd.grad(compiled(*gates, *weights), gates + weights), plain)
