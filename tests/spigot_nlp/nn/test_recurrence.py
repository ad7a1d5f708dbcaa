"""BiLSTMs that read in whole numbers: the kernel against its twin, and against torch."""

import pytest
import torch
from torch import nn

from spigot import kernels
from spigot_nlp.nn.encoder import BiLSTM
from spigot_nlp.nn.quantised import LARGEST, layer_weights, read_layer, read_layer_reference, rounded
from spigot_nlp.nn.scorers import quick_tanh_

needs_kernels = pytest.mark.skipif(not kernels.available, reason="there are no kernels")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@needs_kernels
@pytest.mark.parametrize("units", [1, 3, 7, 8, 9, 15, 16, 17, 33])
@pytest.mark.parametrize("halves", [False, True])
def test_the_kernel_gives_what_its_twin_gives(units: int, halves: bool) -> None:
    width, lengths = units + 2, torch.tensor([4, 0, 6, 1, 6])
    lstms = nn.LSTM(width, units), nn.LSTM(width, units)
    inputs = torch.randn(11, width * (1 + halves))
    inputs[0] = 0
    place = torch.randint(0, len(inputs), (5, 6))
    ours = layer_weights(*lstms, lanes=kernels.compiled.LSTM_LANES)
    found = read_layer(ours, inputs, place, lengths, units, halves=halves)
    right = read_layer_reference(layer_weights(*lstms), inputs, place, lengths, units, halves=halves)
    torch.testing.assert_close(found, right, atol=1e-3, rtol=0)  # a rounded state may fall to either side
    assert not found[1].any()
    assert not found[0, 4:].any()


@needs_kernels
def test_gates_that_are_quite_open_or_closed() -> None:
    lstms = nn.LSTM(4, 9), nn.LSTM(4, 9)
    with torch.no_grad():
        for weight in (*lstms[0].parameters(), *lstms[1].parameters()):
            weight.mul_(1e3)
    inputs, lengths = torch.tensor([[1.0, -1.0, 1.0, 1.0], [1.0, 1.0, -1.0, 0.0]]), torch.tensor([40])
    place = torch.arange(40).remainder(2).unsqueeze(0)
    found = read_layer(layer_weights(*lstms, lanes=kernels.compiled.LSTM_LANES), inputs, place, lengths, 9)
    assert found.isfinite().all()
    right = read_layer_reference(layer_weights(*lstms), inputs, place, lengths, 9)
    torch.testing.assert_close(found, right, atol=1e-3, rtol=0)


@needs_kernels
def test_states_depend_neither_on_threads_nor_on_the_batch() -> None:
    lstm, lengths = BiLSTM(20, 24, 2, interleaved=True), torch.tensor([9, 3, 1, 7, 5])
    lstm.precision = "int16"
    inputs, before = torch.randn(5, 9, 20), torch.get_num_threads()
    with torch.no_grad():
        try:
            torch.set_num_threads(1)
            one = lstm(inputs, lengths)
            torch.set_num_threads(2)
            two = lstm(inputs, lengths)
        finally:
            torch.set_num_threads(before)
        alone = [lstm(inputs[k : k + 1, :n], lengths[k : k + 1])[0] for k, n in enumerate(lengths.tolist())]
    assert torch.equal(one, two)
    assert all(torch.equal(one[k, : len(states)], states) for k, states in enumerate(alone))


@needs_kernels
@pytest.mark.parametrize("interleaved", [False, True])
def test_a_bilstm_reads_nearly_the_same_and_notices_new_weights(interleaved: bool) -> None:
    lstm, lengths = BiLSTM(30, 40, 2, interleaved=interleaved), torch.tensor([8, 5])
    inputs = torch.randn(2, 8, 30)
    inside = torch.arange(8) < lengths.unsqueeze(-1)
    optimiser = torch.optim.Adam(lstm.parameters(), 0.1, fused=True)
    for _ in range(2):
        lstm.precision = "float32"
        right = lstm(inputs, lengths)
        lstm.precision = "int16"
        assert torch.equal(lstm(inputs, lengths), right)  # where something is learned
        with torch.no_grad():
            torch.testing.assert_close(lstm(inputs, lengths)[inside], right[inside], atol=5e-3, rtol=0)
        right.sum().backward()
        optimiser.step()


@needs_kernels
def test_nothing_to_read() -> None:
    lstm = BiLSTM(3, 4)
    lstm.precision = "int16"
    with torch.no_grad():
        assert lstm(torch.zeros(0, 5, 3), torch.zeros(0, dtype=torch.int64)).shape == (0, 5, 8)
        assert not lstm(torch.zeros(2, 5, 3), torch.zeros(2, dtype=torch.int64)).any()


@needs_kernels
def test_what_the_kernel_trusts_is_checked() -> None:
    weights = layer_weights(nn.LSTM(3, 4), nn.LSTM(3, 4), lanes=kernels.compiled.LSTM_LANES)
    with pytest.raises(ValueError, match="lengths go from 3 to 3; they must be between 0 and 2"):
        read_layer(weights, torch.zeros(2, 3), torch.zeros(1, 2, dtype=torch.int64), torch.tensor([3]), 4)
    with pytest.raises(ValueError, match="place go from 0 to 2"):
        read_layer(weights, torch.zeros(2, 3), torch.tensor([[0, 2]]), torch.tensor([2]), 4)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_no_sum_of_whole_numbers_overflows(scale: float) -> None:
    weight = torch.cat((torch.randn(5, 700), torch.ones(1, 700), torch.zeros(1, 700), torch.eye(700)[:1])) * scale
    whole = rounded(weight)
    assert int(whole.weight.abs().long().sum(-1).max()) * LARGEST < 2**31
    torch.testing.assert_close(whole.weight * whole.scale.unsqueeze(-1), weight, atol=5e-3 * scale, rtol=0)


def test_without_kernels_torch_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spigot._runtime.native.available", False)
    lstm, inputs, lengths = BiLSTM(3, 4), torch.randn(2, 5, 3), torch.tensor([5, 2])
    with torch.no_grad():
        right = lstm(inputs, lengths)
        lstm.precision = "int16"
        assert torch.equal(lstm(inputs, lengths), right)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 31, 33, 20_000])
def test_tanh_is_that_of_torch(count: int) -> None:
    values = torch.cat((torch.randn(count) * 5, torch.tensor([0.0, 1e-6, -200.0, 200.0, torch.inf, -torch.inf])))
    with torch.no_grad():
        torch.testing.assert_close(quick_tanh_(values.clone()), values.tanh(), atol=3e-7, rtol=0)
        assert quick_tanh_(torch.full((9,), torch.nan)).isnan().all()


def test_tanh_has_its_derivative() -> None:
    values = (torch.randn(6, 5) * 2).t().requires_grad_()
    quick_tanh_(values).square().sum().backward()
    twin = values.detach().clone().requires_grad_()
    twin.tanh().square().sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(values.grad, twin.grad, atol=2e-6, rtol=0)
    assert torch.equal(quick_tanh_(values.double()), values.double().tanh())
