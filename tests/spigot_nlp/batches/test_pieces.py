"""Subwords in windows: nothing lost, nothing twice, and as much around each as there can be."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.batches import Frame, divided

SPLIT = {"a": [11], "bb": [12, 13], "cccc": [14, 15, 16, 17], "": [], "dddddddd": list(range(20, 28))}
WORDS = st.lists(st.lists(st.sampled_from(sorted(SPLIT)), max_size=7), min_size=1, max_size=3)


def divide(words: list[str]) -> list[list[int]]:
    assert len(set(words)) == len(words), "each word once"
    return [SPLIT[word] for word in words]


@given(WORDS, st.integers(1, 9), st.booleans(), st.sampled_from([(), (1,), (1, 2)]), st.sampled_from([(), (3,)]))
def test_every_subword_stands_in_some_window(
    text: list[list[str]], room: int, first: bool, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    size = 1 + max(map(len, text))
    found = divided(text, size, divide, Frame(before, after, 0, room), first=first)
    width = found.ids.shape[1]
    assert width <= max(1, room + len(before) + len(after))
    chosen = found.ids.flatten()[found.place].tolist()
    wanted, words = [], []
    for k, forms in enumerate(text):
        for n, some in enumerate([list(before[:1]), *(SPLIT[form][: 1 if first else None] for form in forms)]):
            wanted += some
            words += [k * size + n] * len(some)
    assert chosen == wanted
    assert found.word.tolist() == words
    assert (found.there is None) or bool(found.there.flatten()[found.place].all())
    states = torch.rand(*found.ids.shape, 2)
    pooled = found.pooled(states, len(text), size)
    for word in range(len(text) * size):
        mine = states.flatten(0, 1)[found.place[found.word == word]]
        expected = mine.mean(0) if len(mine) else torch.zeros(2)
        torch.testing.assert_close(pooled.flatten(0, 1)[word], expected)


@given(WORDS, st.integers(1, 9), st.sampled_from([(), (1,)]))
def test_windows_of_like_length_are_read_together(text: list[list[str]], room: int, before: tuple[int, ...]) -> None:
    found = divided(text, 1 + max(map(len, text)), divide, Frame(before, (), 0, room))
    asked: list[torch.Tensor] = []

    def model(ids: torch.Tensor, there: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        there = torch.ones_like(ids, dtype=torch.bool) if there is None else there
        asked.append(there.sum(1))
        states = ids.masked_fill(~there, 0).cumsum(1).unsqueeze(-1).float()
        return states, -states

    plain = model(found.ids, found.there)
    asked.clear()
    for given_states, wanted in zip(found.read(model), plain, strict=True):
        there = torch.ones_like(found.ids, dtype=torch.bool) if found.there is None else found.there
        torch.testing.assert_close(given_states[there], wanted[there])
    assert sum(map(len, asked)) == len(found.ids)
    assert all(5 * lengths.min() >= 3 * lengths.max() for lengths in asked)


def test_a_state_comes_from_the_window_that_sees_more_around_it() -> None:
    room, count = 8, 30
    found = divided([["a"] * count], count + 1, divide, Frame((), (), 0, room))
    starts = [0, 4, 8, 12, 16, 20, 22]
    assert found.ids.shape == (len(starts), room)
    for piece, place in enumerate(found.place.tolist()):
        window, column = divmod(place, room)
        assert starts[window] + column == piece
        around = min(column if starts[window] else count, room - 1 - column if window < len(starts) - 1 else count)
        assert around >= 1, "no edge of a window inside the sentence"


@pytest.mark.parametrize("before", [(), (1,)])
def test_sentences_without_words(before: tuple[int, ...]) -> None:
    found = divided([[], []], 1, divide, Frame(before, (), 7, 4))
    assert found.ids.tolist() == [[*before] or [7]] * 2
    assert found.there is None
    assert found.word.tolist() == ([0, 1] if before else [])


def test_they_move_together() -> None:
    for text in ([["a"]], [["a"], []]):
        moved = divided(text, 2, divide, Frame((1,), (), 0, 4)).to(torch.device("meta"))
        assert {part.device.type for part in moved if part is not None} == {"meta"}
