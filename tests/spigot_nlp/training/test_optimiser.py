"""The optimiser of one model, against Adam written by hand."""

import math

import pytest
import torch
from torch import Tensor, nn

from spigot_nlp.config import Optimiser
from spigot_nlp.training.optimiser import ModelOptimiser
from spigot_nlp.training.row_adam import RowAdam


class Small(nn.Module):
    """A table and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 3, sparse=True)
        self.layer = nn.Linear(3, 2)

    def forward(self, rows: Tensor) -> Tensor:
        return self.layer(self.table(rows)).tanh()


def made(**settings: float) -> tuple[Small, ModelOptimiser]:
    torch.manual_seed(1)
    model = Small().double()
    optimiser = ModelOptimiser(model, Optimiser.model_validate(settings))
    optimiser.set_epoch(0)
    return model, optimiser


def step(model: Small, optimiser: ModelOptimiser, k: int, scale: float = 1.0) -> float:
    optimiser.zero_grad()
    rows = torch.tensor([[k % 5, (2 * k) % 5, k % 5]])  # some twice, and the last never
    (scale * (model(rows) * torch.tensor([1.0, -2.0 + k]).double()).sum()).backward()
    return optimiser.step()


def test_updates_are_adams_with_a_decay_of_its_own() -> None:
    rate, decay, betas, eps = 0.01, 1e-3, (0.8, 0.95), 1e-8
    model, optimiser = made(learning_rate=rate, weight_decay=decay, beta1=betas[0], beta2=betas[1], max_norm=0.5)
    first = {name: torch.zeros_like(value) for name, value in model.named_parameters()}
    second = {name: torch.zeros_like(value) for name, value in model.named_parameters()}
    counts = dict.fromkeys(first, 0)
    values = {name: value.detach().clone() for name, value in model.named_parameters()}
    for k in range(6):
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        found = step(model, optimiser, k)
        # The same gradients, taken from a twin at the same point.
        twin = Small().double()
        twin.load_state_dict(before)
        rows = torch.tensor([[k % 5, (2 * k) % 5, k % 5]])
        (twin(rows) * torch.tensor([1.0, -2.0 + k]).double()).sum().backward()
        gradients = {name: value.grad.to_dense() for name, value in twin.named_parameters() if value.grad is not None}
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients.values()))
        assert found == pytest.approx(norm)
        for name, gradient in gradients.items():
            gradient = gradient * min(1.0, 0.5 / norm)
            table = name == "table.weight"
            touched = torch.ones_like(gradient, dtype=torch.bool)
            if table:
                touched = torch.zeros_like(touched)
                touched[rows.unique()] = True
            else:
                values[name] = values[name] * (1 - decay)
            counts[name] += 1
            m = betas[0] * first[name] + (1 - betas[0]) * gradient
            v = betas[1] * second[name] + (1 - betas[1]) * gradient**2
            first[name] = torch.where(touched, m, first[name])
            second[name] = torch.where(touched, v, second[name])
            # SparseAdam's epsilon stands beside the uncorrected root.
            one, two = 1 - betas[0] ** counts[name], 1 - betas[1] ** counts[name]
            root = (v.sqrt() + eps) / math.sqrt(two) if table else (v / two).sqrt() + eps
            moved = values[name] - rate * (m / one) / root
            values[name] = torch.where(touched, moved, values[name])
        for name, value in model.named_parameters():
            torch.testing.assert_close(value.detach(), values[name], rtol=1e-9, atol=1e-12)


def test_rows_that_were_not_read_stay() -> None:
    model, optimiser = made(weight_decay=0.1)
    untouched = model.table.weight[5].detach().clone()
    for k in range(4):
        step(model, optimiser, k)
    assert torch.equal(model.table.weight[5], untouched)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_clipping_is_by_the_norm_over_all_parameters(scale: float) -> None:
    model, optimiser = made(max_norm=0.25)
    norm = step(model, optimiser, 1, scale)
    squares = [p.grad.to_dense().square().sum() for p in model.parameters() if p.grad is not None]
    after = float(torch.stack(squares).sum().sqrt())
    assert after == pytest.approx(min(norm, 0.25))


def test_each_model_is_clipped_by_itself() -> None:
    one, optimise_one = made(max_norm=1.0)
    two, optimise_two = made(max_norm=1.0)
    alone, optimise_alone = made(max_norm=1.0)
    step(one, optimise_one, 1, scale=1e6)
    step(two, optimise_two, 1, scale=1e-3)
    step(alone, optimise_alone, 1, scale=1e-3)
    for value, other in zip(two.parameters(), alone.parameters(), strict=True):
        assert torch.equal(value, other)


def rates(optimiser: ModelOptimiser) -> set[float]:
    return {optimiser.rate, optimiser._sparse.rate}


def test_the_rate_is_annealed_by_epochs() -> None:
    _, optimiser = made(learning_rate=0.8, anneal_every=3, anneal_by=0.5)
    for epoch, expected in enumerate([0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2]):
        optimiser.set_epoch(epoch)
        assert rates(optimiser) == {expected}
    optimiser.set_epoch(0)
    assert rates(optimiser) == {0.8}
    _, never = made(learning_rate=0.8, anneal_every=0)
    never.set_epoch(50)
    assert rates(never) == {0.8}


@pytest.mark.parametrize("epoch", [0, 4])
def test_decay_is_a_factor_whatever_the_rate(epoch: int) -> None:
    """1 - decay at every update, also after annealing; embedding tables do not decay."""
    model, optimiser = made(learning_rate=1e-12, weight_decay=0.01, anneal_every=1, anneal_by=0.5)
    optimiser.set_epoch(epoch)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    step(model, optimiser, 1)
    for name, value in model.named_parameters():
        factor = 1.0 if name == "table.weight" else 0.99
        torch.testing.assert_close(value.detach(), factor * before[name], atol=1e-9, rtol=0)


@pytest.mark.parametrize("scale", [0.0, math.nan, math.inf])
def test_nothing_moves_without_a_gradient_or_with_a_bad_one(scale: float) -> None:
    model, optimiser = made(weight_decay=0.1)
    step(model, optimiser, 0)
    values = {name: value.detach().clone() for name, value in model.named_parameters()}
    state = {name: value.clone() for name, value in optimiser.state().items()}
    norm = step(model, optimiser, 1, scale)
    assert norm == 0 if scale == 0 else not math.isfinite(norm)
    assert all(torch.equal(value, values[name]) for name, value in model.named_parameters())
    assert all(torch.equal(value, state[name]) for name, value in optimiser.state().items())
    optimiser.zero_grad()
    assert optimiser.step() == 0  # no gradients at all


@pytest.mark.parametrize("interrupted", [0, 1, 3])
def test_a_saved_state_continues_bit_for_bit(interrupted: int) -> None:
    model, optimiser = made(learning_rate=0.01, weight_decay=1e-3)
    for k in range(interrupted):
        step(model, optimiser, k)
    state = {name: value.clone() for name, value in optimiser.state().items()}
    other, resumed = made(learning_rate=0.01, weight_decay=1e-3)
    other.load_state_dict(model.state_dict())
    resumed.load_state(state)
    for k in range(interrupted, interrupted + 4):
        step(model, optimiser, k)
        step(other, resumed, k)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    assert optimiser.state().keys() == resumed.state().keys()
    for name, value in optimiser.state().items():
        assert torch.equal(value, resumed.state()[name])


def test_a_learning_rate_warms_up_and_goes_on_where_it_was() -> None:
    plain, (model, optimiser) = made(learning_rate=0.1), made(learning_rate=0.1, warm_up=4)
    for k in range(3):
        step(model, optimiser, k)
    again, resumed = made(learning_rate=0.1, warm_up=4)
    again.load_state_dict(model.state_dict())
    resumed.load_state({name: value.clone() for name, value in optimiser.state().items()})
    for k in range(3, 7):
        step(model, optimiser, k)
        step(again, resumed, k)
        assert optimiser.rate == resumed.rate == 0.1
    assert all(torch.equal(*pair) for pair in zip(model.parameters(), again.parameters(), strict=True))
    # The first update of Adam is of the size of the learning rate, here of a quarter of it.
    first, (slow, warming) = Small().double(), made(learning_rate=0.1, warm_up=4, weight_decay=0.0)
    first.load_state_dict(slow.state_dict())
    step(slow, warming, 1)
    assert warming.rate == pytest.approx(0.025)
    moved = (slow.layer.weight - first.layer.weight).abs()
    torch.testing.assert_close(moved, torch.full_like(moved, 0.025), rtol=1e-4, atol=0)
    assert "|taken" not in plain[1].state()


def test_what_is_frozen_is_left_alone() -> None:
    model = Small().double()
    model.layer.requires_grad_(False)
    before = model.layer.weight.clone()
    optimiser = ModelOptimiser(model, Optimiser())
    optimiser.set_epoch(0)
    step(model, optimiser, 1)
    assert torch.equal(model.layer.weight, before)
    assert list(optimiser.parameters) == ["table.weight"]


def test_rows_are_updated_as_torch_does_it_to_the_last_bit() -> None:
    torch.manual_seed(3)
    tables = [nn.Embedding(40, 5, sparse=True) for _ in range(2)]
    tables[1].load_state_dict(tables[0].state_dict())
    ours = RowAdam([tables[0].weight], 0.02, (0.9, 0.95))
    theirs = torch.optim.SparseAdam([tables[1].weight], 0.02, (0.9, 0.95))
    for k in range(12):
        rows, weight = torch.randint(0, 30, (3, 4)), torch.randn(3, 4, 5)
        for table in tables:
            table.weight.grad = None
            (table(rows) * weight).sum().backward()
            assert table.weight.grad is not None
            table.weight.grad = table.weight.grad.coalesce()
        if k == 7:
            ours.rate = theirs.param_groups[0]["lr"] = 0.01
        ours.step()
        theirs.step()
    assert torch.equal(tables[0].weight, tables[1].weight)
    memory, other = ours.state[tables[0].weight], theirs.state[tables[1].weight]
    assert all(torch.equal(torch.as_tensor(memory[key]), torch.as_tensor(other[key])) for key in other)
