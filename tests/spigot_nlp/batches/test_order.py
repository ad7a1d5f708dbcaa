"""The order that sentences come in."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.batches import bucketed, task_order
from tests.spigot_nlp.parsing import of_lengths


@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 9), st.integers(0, 5))
def test_every_sentence_comes_once(lengths: list[int], size: int, seed: int) -> None:
    batches = bucketed(lengths, size, (seed, 1))
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    assert all(0 < len(batch) <= size for batch in batches)
    assert len(batches) == -(-len(lengths) // size)
    assert batches == bucketed(lengths, size, (seed, 1))


def test_a_batch_has_sentences_of_close_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 600).tolist()
    for batch in bucketed(lengths, 8, (0, 0)):
        chosen = [lengths[k] for k in batch]
        assert max(chosen) <= 1.25 * min(chosen) + 1  # ten per cent of noise, and the gap between neighbours


def test_another_epoch_has_other_batches_in_another_order() -> None:
    lengths = [sentence.__len__() for sentence in of_lengths([5] * 40)]
    first, second = bucketed(lengths, 4, (0, 0)), bucketed(lengths, 4, (0, 1))
    assert first != second
    assert set(map(frozenset, first)) != set(map(frozenset, second))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 3))
def test_an_epoch_takes_every_step_of_both_tasks(syntax: int, semantics: int, seed: int) -> None:
    sizes = {"syntax": 4 * syntax, "semantics": 4 * semantics}
    order = list(task_order(sizes, {"syntax": syntax, "semantics": semantics}, (seed,)))
    assert Counter(order) == Counter({"syntax": syntax, "semantics": semantics})
    assert order == list(task_order(sizes, {"syntax": syntax, "semantics": semantics}, (seed,)))


@pytest.mark.parametrize(("large", "small"), [(9, 3), (5, 5)])
def test_a_task_is_drawn_in_proportion_to_its_size_at_every_step(large: int, small: int) -> None:
    epochs = [
        list(task_order({"a": 4 * large, "b": 4 * small}, {"a": large, "b": small}, (seed,))) for seed in range(1000)
    ]
    share = large / (large + small)
    for position in range(large + small):
        drawn = sum(epoch[position] == "a" for epoch in epochs)
        assert abs(drawn - 1000 * share) < 3.5 * (1000 * share * (1 - share)) ** 0.5


def test_what_is_left_of_a_task_decides_the_next_draw() -> None:
    """After a first step of the larger task, the chances are those of the sentences still to come."""
    second = Counter()
    for seed in range(3000):
        first, then = itertools.islice(task_order({"a": 40, "b": 20}, {"a": 4, "b": 2}, (seed,)), 2)
        second[first, then] += 1
    for first, share in (("a", 3 / 5), ("b", 4 / 5)):
        count = second[first, "a"] + second[first, "b"]
        assert abs(second[first, "a"] - count * share) < 3.5 * (count * share * (1 - share)) ** 0.5
