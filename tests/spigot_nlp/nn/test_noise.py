"""Random numbers that belong to a sentence."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.nn.noise import dropout, locked_dropout, uniform

LARGEST = 2**64


def split_mix(x: int) -> int:
    """The finaliser of SplitMix64, on whole numbers of any size."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % LARGEST
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % LARGEST
    return x ^ (x >> 31)


@given(st.integers(0, 2**62), st.integers(0, 9), st.integers(1, 6))
def test_numbers_are_those_of_split_mix(seed: int, stream: int, size: int) -> None:
    step = 0x9E3779B97F4A7C15
    start = split_mix((seed + (stream + 1) * step) % LARGEST)
    expected = [(split_mix((start + k * step) % LARGEST) >> 40) / 2**24 for k in range(1, size + 1)]
    assert uniform(torch.tensor([seed]), size, stream)[0].tolist() == expected


def test_numbers_are_uniform_and_streams_differ() -> None:
    values = uniform(torch.arange(200), 100, stream=0).flatten().numpy()
    histogram = np.histogram(values, bins=20, range=(0, 1))[0]
    chi_square = ((histogram - 1000) ** 2 / 1000).sum()
    assert chi_square < 43.8  # 19 degrees of freedom, one in a thousand
    other = uniform(torch.arange(200), 100, stream=1).flatten().numpy()
    assert abs(np.corrcoef(values, other)[0, 1]) < 0.03


def test_a_shorter_row_begins_like_a_longer_one() -> None:
    seeds = torch.tensor([3, 11])
    assert torch.equal(uniform(seeds, 4, 0), uniform(seeds, 9, 0)[:, :4])


def test_locked_dropout_keeps_the_mean_and_scales_the_gradient() -> None:
    states = torch.ones(3, 400, 50, requires_grad=True)
    dropped = locked_dropout(states, torch.arange(400), 0.3, stream=1)
    assert float(dropped.detach().mean()) == pytest.approx(1, abs=0.02)
    dropped.sum().backward()
    assert states.grad is not None
    assert torch.equal(states.grad, dropped.detach())


def test_no_seeds_no_dropout() -> None:
    states = torch.randn(2, 3, 4)
    assert locked_dropout(states, None, 0.9, stream=0) is states
    assert locked_dropout(states, torch.arange(3), 0.0, stream=0) is states
    assert dropout(states, None, 0.9, stream=0) is states
    assert dropout(states, torch.arange(3), 0.0, stream=0) is states


def test_dropout_keeps_the_mean_and_scales_the_gradient() -> None:
    states = torch.ones(5, 200, 40, requires_grad=True)
    dropped = dropout(states, torch.arange(200), 0.3, stream=1)
    values = dropped.detach()
    assert set(values.unique().tolist()) == {0.0, float(torch.tensor(1.0) / 0.7)}
    assert float(values.mean()) == pytest.approx(1, abs=0.02)
    dropped.sum().backward()
    assert states.grad is not None
    assert torch.equal(states.grad, values)


def test_dropout_decides_for_every_position_unit_and_sentence_alone() -> None:
    kept = (dropout(torch.ones(30, 30, 30), torch.arange(30), 0.5, stream=4) > 0).numpy().astype(float)
    for axis in range(3):
        shifted = np.roll(kept, 1, axis)
        assert abs(np.corrcoef(kept.ravel(), shifted.ravel())[0, 1]) < 0.03
    other = (dropout(torch.ones(30, 30, 30), torch.arange(30), 0.5, stream=5) > 0).numpy().astype(float)
    assert abs(np.corrcoef(kept.ravel(), other.ravel())[0, 1]) < 0.03


@given(st.integers(1, 6), st.integers(0, 5), st.integers(0, 2**40))
def test_dropout_of_a_sentence_depends_on_its_seed_and_not_on_padding_or_batch(n: int, more: int, seed: int) -> None:
    alone = dropout(torch.ones(n, 1, 6), torch.tensor([seed]), 0.5, stream=3)
    together = dropout(torch.ones(n + more, 3, 6), torch.tensor([seed + 1, seed, 9]), 0.5, stream=3)
    assert torch.equal(together[:n, 1], alone[:, 0])
