"""Holm's correction: by hand, and by the closed testing principle that it is a short cut for."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.evaluation import holm


def closed(p_values: list[float]) -> list[float]:
    """A hypothesis is rejected if every set of hypotheses that holds it is, each by Bonferroni's test."""
    places = range(len(p_values))
    sets = [chosen for size in range(1, len(p_values) + 1) for chosen in combinations(places, size)]
    tested = {chosen: min(1.0, len(chosen) * min(p_values[k] for k in chosen)) for chosen in sets}
    return [max(value for chosen, value in tested.items() if k in chosen) for k in places]


def test_by_hand() -> None:
    # Sorted: 0.005 * 4, 0.011 * 3, 0.02 * 2, 0.04 * 1; none smaller than the one before.
    assert holm([0.02, 0.005, 0.04, 0.011]) == pytest.approx([0.04, 0.02, 0.04, 0.033])
    assert holm([0.7, 0.6]) == [1.0, 1.0]
    assert holm([0.03]) == [0.03]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_is_closed_testing(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(closed(p_values))


def test_what_is_no_p_value_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.5 is no p value; they lie between 0 and 1"):
        holm([0.5, 1.5])
    with pytest.raises(ValueError, match="nan is no p value"):
        holm([float("nan")])
