"""How structures are read, against loops written from the formulas."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from spigot_nlp.annotations.trees import tree_parts
from spigot_nlp.wires.readers import HeadReader, RoundReader


def randomised(module: nn.Module) -> nn.Module:
    """Biases start at zero, which would hide that one is missing or counted twice."""
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


def head_reader(inputs: int = 3, hidden: int = 4, roles: int = 2) -> HeadReader:
    reader = randomised(HeadReader(inputs, hidden, roles))
    assert isinstance(reader, HeadReader)
    return reader


def graphs(n: int, roles: int, seed: int, *, hard: bool) -> tuple[Tensor, Tensor]:
    """Arcs of two graphs and their roles; words with no head, one and several. Roles need not sum to their arc."""
    torch.manual_seed(seed)
    arcs = (torch.rand(2, n, n) < 0.4).double() if hard else 1.3 * torch.rand(2, n, n, dtype=torch.float64)
    labelled = torch.rand(2, n, n, roles, dtype=torch.float64) * arcs.unsqueeze(-1)
    return arcs, labelled


def averages(arcs: Tensor) -> Tensor:
    """m_i = max(1, sum_p z_{p -> i})."""
    rows = [[max(1.0, sum(column)) for column in zip(*graph, strict=True)] for graph in arcs.tolist()]
    return torch.tensor(rows, dtype=torch.float64)


def features(reader: HeadReader, states: Tensor, arcs: Tensor, labelled: Tensor | None, m: Tensor) -> Tensor:
    """f_i = ReLU(b + W_self h_i + 1/m_i sum_p [z_{p -> i} W_head h_p + sum_l z_{p -l-> i} W_role e_l])."""
    batch, n, _ = states.shape
    rows = []
    for b in range(batch):
        for i in range(n):
            total = reader.itself.bias + reader.itself.weight @ states[b, i]
            for p in range(n):
                total = total + arcs[b, p, i] / m[b, i] * (reader.head.weight @ states[b, p])
                if labelled is not None and reader.roles is not None and reader.role is not None:
                    for l, vector in enumerate(reader.roles):
                        total = total + labelled[b, p, i, l] / m[b, i] * (reader.role.weight @ vector)
            rows.append(total.clamp(min=0))
    return torch.stack(rows).view(batch, n, -1)


@given(st.integers(1, 5), st.integers(1, 3), st.booleans(), st.integers(0, 99))
def test_features_are_those_of_the_formula(n: int, roles: int, hard: bool, seed: int) -> None:
    arcs, labelled = graphs(n, roles, seed, hard=hard)
    reader, states = head_reader(roles=roles), torch.randn(2, n, 3, dtype=torch.float64)
    torch.testing.assert_close(reader(states, arcs, labelled), features(reader, states, arcs, labelled, averages(arcs)))


def test_arcs_without_roles_are_read_too() -> None:
    arcs, labelled = graphs(4, 2, 0, hard=True)
    reader, states = head_reader(roles=0), torch.randn(2, 4, 3, dtype=torch.float64)
    expected = features(reader, states, arcs, None, averages(arcs))
    torch.testing.assert_close(reader(states, arcs), expected)
    torch.testing.assert_close(reader(states, arcs, labelled), expected)
    assert {name for name, _ in reader.named_parameters()} == {"itself.weight", "itself.bias", "head.weight"}


@pytest.mark.parametrize("hard", [True, False])
def test_the_gradient_on_z_is_that_of_the_formula_with_m_held(hard: bool) -> None:
    """By differences of the slow formula; m_i stays where it was while z moves."""
    arcs, labelled = graphs(4, 2, 3, hard=hard)
    reader, states = head_reader(), torch.randn(2, 4, 3, dtype=torch.float64)
    weights, m = torch.randn(2, 4, 4, dtype=torch.float64), averages(arcs)
    assert (m > 1).any()
    leaves = arcs.clone().requires_grad_(), labelled.clone().requires_grad_()
    (weights * reader(states, *leaves)).sum().backward()
    step = 1e-6
    for k, leaf in enumerate(leaves):
        assert leaf.grad is not None
        differences = torch.zeros_like(leaf)
        for place in range(leaf.numel()):
            values = []
            for sign in (1, -1):
                moved = [arcs.clone(), labelled.clone()]
                moved[k].view(-1)[place] += sign * step
                with torch.no_grad():
                    values.append(float((weights * features(reader, states, moved[0], moved[1], m)).sum()))
            differences.view(-1)[place] = (values[0] - values[1]) / (2 * step)
        torch.testing.assert_close(leaf.grad, differences, atol=1e-7, rtol=1e-6)
        assert leaf.grad.any()


def test_an_arc_moves_the_heads_and_a_role_the_roles() -> None:
    """Heads are weighted by unlabelled arcs and roles by labelled ones: neither stands in for the other."""
    reader, states = head_reader(), torch.randn(1, 3, 3, dtype=torch.float64)
    arcs, labelled = torch.zeros(1, 3, 3, dtype=torch.float64), torch.zeros(1, 3, 3, 2, dtype=torch.float64)
    arcs[0, 1, 2] = 1
    without = reader(states, arcs)
    torch.testing.assert_close(reader(states, arcs, labelled), without)
    labelled[0, 1, 2, 1] = 1
    only_roles = reader(states, torch.zeros_like(arcs), labelled)
    assert reader.roles is not None
    assert reader.role is not None
    expected = (reader.itself(states[0, 2]) + reader.role(reader.roles[1])).relu()
    torch.testing.assert_close(only_roles[0, 2], expected)


def test_two_heads_count_half_each() -> None:
    reader, states = head_reader(roles=0), torch.randn(1, 4, 3, dtype=torch.float64)
    arcs = torch.zeros(1, 4, 4, dtype=torch.float64)
    arcs[0, 1, 3] = arcs[0, 2, 3] = 1
    both = reader.itself(states[0, 3]) + (reader.head(states[0, 1]) + reader.head(states[0, 2])) / 2
    torch.testing.assert_close(reader(states, arcs)[0, 3], both.relu())


def test_what_a_head_reader_starts_from() -> None:
    reader = HeadReader(50, hidden=40, roles=30)
    assert not reader.itself.bias.any()
    assert reader.roles is not None
    assert reader.role is not None
    for weight in (reader.itself.weight, reader.head.weight, reader.role.weight):
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.9 * bound < float(weight.detach().abs().max()) <= bound
    bound = (3 / 40) ** 0.5
    assert 0.9 * bound < float(reader.roles.detach().abs().max()) <= bound


def round_reader(rounds: int, hidden: int = 8) -> RoundReader:
    torch.manual_seed(5)
    return RoundReader(3, hidden, rounds).double()


def test_rounds_are_those_of_the_formula() -> None:
    reader = randomised(RoundReader(3, 4, rounds=3))
    assert isinstance(reader, RoundReader)
    arcs, states = torch.rand(2, 4, 4, dtype=torch.float64), torch.randn(2, 4, 3, dtype=torch.float64)
    for b in range(2):
        found = [torch.zeros(4, dtype=torch.float64)] * 4
        for _ in range(3):
            found = [
                torch.tanh(
                    reader.out.bias
                    + reader.out.weight
                    @ torch.relu(
                        reader.itself.bias
                        + reader.itself.weight @ states[b, i]
                        + reader.message.weight @ sum((arcs[b, i, j] * found[j] for j in range(4)), torch.zeros(4))
                    )
                )
                for i in range(4)
            ]
        torch.testing.assert_close(reader(states, arcs)[b], torch.stack(found))


def random_heads(n: int, seed: int) -> list[int]:
    """Any tree over n words, crossing arcs included."""
    dice = random.Random(seed)
    order = dice.sample(range(1, n + 1), n)
    heads = [0] * n
    for k, word in enumerate(order):
        heads[word - 1] = dice.choice([0, *order[:k]]) if k else 0
    return heads


def depth(heads: list[int]) -> int:
    def up(word: int) -> int:
        return 0 if word == 0 else 1 + up(heads[word - 1])

    return max(map(up, range(len(heads) + 1)))


@given(st.integers(1, 7), st.integers(0, 99))
def test_in_a_tree_of_depth_d_nothing_changes_after_round_d_plus_1(n: int, seed: int) -> None:
    heads = random_heads(n, seed)
    arcs = tree_parts(torch.tensor([[0, *heads]]), torch.tensor([n]), torch.float64)
    states, d = torch.randn(1, n + 1, 3, dtype=torch.float64), depth(heads)
    settled = round_reader(d + 1)(states, arcs)
    for more in (2, 5):
        assert torch.equal(round_reader(d + more)(states, arcs), settled)
    assert not torch.allclose(round_reader(d)(states, arcs)[0, 0], settled[0, 0])  # a round earlier it has not


@given(st.integers(1, 6), st.integers(0, 99))
def test_the_root_has_then_seen_every_word_and_a_word_what_is_below_it(n: int, seed: int) -> None:
    heads = random_heads(n, seed)
    arcs = tree_parts(torch.tensor([[0, *heads]]), torch.tensor([n]), torch.float64)
    states = torch.randn(1, n + 1, 3, dtype=torch.float64, requires_grad=True)
    found = round_reader(depth(heads) + 1, hidden=32)(states, arcs)
    for i in range(n + 1):
        (gradient,) = torch.autograd.grad(found[0, i].sum(), states, retain_graph=True)
        seen = {j for j in range(n + 1) if gradient[0, j].any()}
        below = {j for j in range(n + 1) if i in chain(j, heads)}
        assert seen == below
    assert {j for j in range(n + 1) if 0 in chain(j, heads)} == set(range(n + 1))


def chain(word: int, heads: list[int]) -> list[int]:
    """A word, its head, the head of that, to the root."""
    return [word] if word == 0 else [word, *chain(heads[word - 1], heads)]


def test_what_a_round_reader_starts_from() -> None:
    reader = RoundReader(50, hidden=40, rounds=2)
    assert not reader.itself.bias.any()
    assert not reader.out.bias.any()
    for layer in (reader.itself, reader.message, reader.out):
        bound = (6 / sum(layer.weight.shape)) ** 0.5
        assert 0.9 * bound < float(layer.weight.detach().abs().max()) <= bound
