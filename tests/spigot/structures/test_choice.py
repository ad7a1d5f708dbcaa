"""One of k."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import spigot
from spigot import OneOf


def test_picks_the_best() -> None:
    assert OneOf().argmax(torch.tensor([0.3, 2.0, -1.0])).tolist() == [0, 1, 0]


def test_any_size_of_the_last_axis() -> None:
    for k in (1, 2, 7, 1000):
        scores = torch.randn(3, k)
        z = OneOf().argmax(scores)
        assert z.sum(-1).tolist() == [1, 1, 1]
        assert torch.equal(z.argmax(-1), scores.argmax(-1))


def test_no_choice_at_all() -> None:
    scores = torch.full((2, 3), torch.nan, requires_grad=True)
    mask = torch.zeros(2, 3, dtype=torch.bool)
    assert not OneOf().argmax(scores, mask).any()
    assert not OneOf().marginals(scores, mask).any()
    value = OneOf().log_partition(scores, mask)
    assert value.tolist() == [0, 0]
    value.sum().backward()
    assert scores.grad is not None
    assert not scores.grad.any()


def test_minus_1e8_beats_a_masked_entry() -> None:
    scores = torch.tensor([-1e8, 5.0])
    mask = torch.tensor([True, False])
    assert OneOf().argmax(scores, mask).tolist() == [1, 0]
    assert OneOf().marginals(scores, mask).tolist() == [1, 0]


def test_infinite_scores() -> None:
    low = torch.tensor([-torch.inf, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    assert OneOf().argmax(low).tolist() == [0, 0, 1]
    mu = OneOf().marginals(low)
    torch.testing.assert_close(mu, torch.tensor([0.0, 1.0, torch.e], dtype=torch.float64) / (1 + torch.e))
    (gradient,) = torch.autograd.grad(mu[1], low)
    assert gradient.isfinite().all()
    assert gradient[0] == 0
    nothing = torch.full((3,), -torch.inf)
    assert OneOf().argmax(nothing).sum() == 1


def test_ties_are_broken_the_same_way_everywhere() -> None:
    z = OneOf().argmax(torch.zeros(5, 4))
    assert z.sum(-1).tolist() == [1] * 5
    assert (z == z[0]).all()


def test_violations_say_what_is_wrong() -> None:
    z = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    messages = OneOf().violations(z)
    assert [bool(broken) for broken in messages] == [True, True, True, False]
    assert "2" in messages[0][0]
    mask = torch.tensor([True, False, True])
    assert OneOf().violations(z[3], mask)[0]


def test_nan_is_named() -> None:
    scores = torch.zeros(2, 3)
    scores[1, 2] = torch.nan
    for verb in (OneOf().argmax, OneOf().log_partition, OneOf().marginals):
        with pytest.raises(ValueError, match=r"instance 1.*\[2\]"):
            verb(scores)


def test_mask_counts_choices() -> None:
    mask = OneOf().mask(torch.tensor([2, 0, 3]))
    assert mask.tolist() == [[True, True, False], [False] * 3, [True] * 3]
    assert OneOf().mask(torch.tensor([2]), size=4).tolist() == [[True, True, False, False]]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    st.floats(-1e3, 1e3),
)
def test_marginals_are_softmax(values: list[float], shift: float) -> None:
    scores = torch.tensor(values, dtype=torch.float64)
    torch.testing.assert_close(OneOf().marginals(scores), scores.softmax(0))
    torch.testing.assert_close(OneOf().log_partition(scores), scores.logsumexp(0))
    torch.testing.assert_close(OneOf().marginals(scores + shift), scores.softmax(0), rtol=0, atol=1e-6)


def test_relaxation_is_the_simplex() -> None:
    assert OneOf().relaxation == spigot.Simplex()
    assert OneOf().event_ndim == 1


@pytest.mark.parametrize("shape", [(3, 0), (0,), (0, 4)])
def test_an_axis_without_choices_is_empty_everywhere(shape: tuple[int, ...]) -> None:
    scores = torch.zeros(shape, requires_grad=True)
    choice = spigot.OneOf()
    assert (choice.log_partition(scores) == 0).all()
    for value in (choice.argmax(scores), choice.marginals(scores), spigot.ConvexHull(choice).project(scores)):
        assert value.shape == shape
    spigot.argmax(scores, choice, spigot.SparseMAP()).sum().backward()
    assert scores.grad is not None
    assert scores.grad.shape == shape


def test_k_best_is_the_sorted_list() -> None:
    scores = torch.tensor([[0.5, 2.0, 2.0, -1.0, 3.0], [0.0, -torch.inf, 1.0, 0.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    z, values = OneOf().k_best(scores, 4, mask)
    assert z.shape == (4, 2, 5)
    assert z[:, 0].argmax(-1).tolist() == [4, 1, 2, 0]  # ties: the first
    assert values[:, 0].tolist() == [3.0, 2.0, 2.0, 0.5]
    assert values[:, 1].tolist() == [1.0, 0.0, -torch.inf, -torch.inf]
    assert not z[2:, 1].any()
    (gradient,) = torch.autograd.grad(values[0].sum(), scores)
    assert torch.equal(gradient, z[0])
    assert OneOf().k_best(scores.detach(), 9)[0].shape == (9, 2, 5)
    nothing = OneOf().k_best(torch.zeros(3), 2, torch.zeros(3, dtype=torch.bool))
    assert nothing[1].tolist() == [0, -torch.inf]


def test_samples_come_as_often_as_softmax_says() -> None:
    scores = torch.randn(3, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mask = torch.ones(3, 6, dtype=torch.bool)
    mask[1, [0, 5]] = False
    mask[2] = False
    scores[0, 2] = -torch.inf
    z = OneOf().sample(scores, mask, samples=8000, generator=torch.Generator().manual_seed(2))
    assert z.shape == (8000, 3, 6)
    assert OneOf().contains(z, mask.expand_as(z)).all()
    mu = OneOf().marginals(scores, mask)
    assert ((z.mean(0) - mu).abs() <= 5 * (mu * (1 - mu) / 8000).sqrt()).all()
    again = OneOf().sample(scores, mask, samples=8000, generator=torch.Generator().manual_seed(2))
    assert torch.equal(z, again)
    with pytest.raises(ValueError, match="every choice of the instance has a score of -inf"):
        OneOf().sample(torch.full((3,), -torch.inf))
    with pytest.raises(ValueError, match="samples is -1"):
        OneOf().sample(scores, samples=-1)
    wide = OneOf().sample(torch.randn(2, 10_000), samples=3)
    assert (wide.sum(-1) == 1).all()
