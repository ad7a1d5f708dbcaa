"""Which trees have crossing arcs."""

import itertools

import pytest

from spigot_nlp.annotations.trees import is_projective


def cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (a, b), (c, d) = sorted((tuple(sorted(one)), tuple(sorted(other))))
    return a < c < b < d


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4])
def test_no_two_arcs_of_a_projective_tree_cross(length: int) -> None:
    seen = set()
    for heads in itertools.product(range(length + 1), repeat=length):
        arcs = [(head, word) for word, head in enumerate(heads, 1)]
        if all(head != word for head, word in arcs):
            expected = not any(cross(one, other) for one, other in itertools.combinations(arcs, 2))
            assert is_projective(heads) == expected
            seen.add(expected)
    assert seen == ({True, False} if length > 2 else {True})
