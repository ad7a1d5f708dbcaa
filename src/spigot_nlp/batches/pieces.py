"""Words as the subwords of somebody else's tokeniser, in windows that a model of limited length can read."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class Frame:
    """What stands around the subwords of a window.

    Attributes:
        before: The signs that begin every window; the state of the first of them is that of the root.
        after: The signs that end it.
        padding: What stands behind the end of a shorter window.
        room: Subwords of a window, these signs not counted.

    Example:
        >>> Frame((101,), (102,), 0, 510).room
        510
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    padding: int
    room: int


class Pieces(NamedTuple):
    """The subwords of a batch, and which of them make up the state of a word.

    Attributes:
        ids: The windows.
        there: What of them exists; `None` if all does.
        place: Where each subword that counts stands in the windows, one after another.
        word: The position of a sentence that it belongs to, sentences one after another; the root is one.
        share: What part of the position's state it is.

    Example:
        >>> divided([("a",)], 2, lambda words: [[7, 8]], Frame((1,), (2,), 0, 9)).ids.tolist()
        [[1, 7, 8, 2]]
    """

    ids: Int[Tensor, "windows width"]
    there: Bool[Tensor, "windows width"] | None
    place: Int[Tensor, " pieces"]
    word: Int[Tensor, " pieces"]
    share: Float[Tensor, " pieces"]

    def to(self, device: torch.device) -> "Pieces":
        """The same on another device."""
        ids, place, word, share = (part.to(device) for part in (self.ids, self.place, self.word, self.share))
        return Pieces(ids, None if self.there is None else self.there.to(device), place, word, share)

    def read(self, model: Callable[[Tensor, Tensor | None], Sequence[Tensor]]) -> list[Tensor]:
        """What a model makes of all windows, where it is asked about windows of like length at a time.

        Sentences of a batch differ in length, and a model takes as long over padding as over words.

        Args:
            model: States `(some, width, d)`, of one or more layers, from windows and from what of them exists.

        Example:
            >>> found = divided([("a",) * 8, ("a",)], 9, lambda words: [[7]], Frame((), (), 0, 9))
            >>> asked = []
            >>> (states,) = found.read(lambda ids, there: (asked.append(ids.shape), ids.unsqueeze(-1))[1:])
            >>> [tuple(shape) for shape in asked], tuple(states.shape)
            ([(1, 8), (1, 1)], (2, 8, 1))
        """
        if self.there is None:
            return list(model(self.ids, None))
        lengths = self.there.sum(1)
        order = lengths.argsort(descending=True, stable=True)
        said, width = list[Sequence[Tensor]](), self.ids.shape[1]
        for start, end in _alike(lengths[order].tolist()):
            rows = order[start:end]
            wide = int(lengths[rows[0]])
            there = self.there[rows, :wide]
            found = model(self.ids[rows, :wide], None if there.all() else there)
            said.append([pad(states, (0, 0, 0, width - wide)) for states in found])
        back = order.argsort()
        return [torch.cat(layer).index_select(0, back) for layer in zip(*said, strict=True)]

    def pooled(
        self, states: Float[Tensor, "windows width d"], batch: int, size: int
    ) -> Float[Tensor, "{batch} {size} d"]:
        """States of positions from states of subwords; zeros for positions that have none.

        Args:
            states: What a model made of the windows.
            batch: Sentences.
            size: Positions of each, with the root.

        Example:
            >>> frame, states = Frame((1,), (2,), 0, 9), torch.tensor([[[5.0], [1.0], [3.0], [0.0]]])
            >>> divided([("a", "b")], 3, lambda words: [[7, 8], []], frame).pooled(states, 1, 3).tolist()
            [[[5.0], [2.0], [0.0]]]
        """
        parts = states.flatten(0, 1).index_select(0, self.place) * self.share.unsqueeze(-1).to(states.dtype)
        sums = states.new_zeros(batch * size, states.shape[-1]).index_add(0, self.word, parts)
        return sums.view(batch, size, -1)


def divided(
    sentences: Sequence[Sequence[str]],
    size: int,
    divide: Callable[[list[str]], Sequence[Sequence[int]]],
    frame: Frame,
    *,
    first: bool = False,
) -> Pieces:
    """The subwords of some sentences; each distinct word is divided once.

    A sentence with more subwords than a window has room for is read in several, which overlap by half. The state of a
    subword is that of the window whose ends are farther away.

    Args:
        sentences: The words of each.
        size: Positions of the batch, with the root.
        divide: The subwords of each of some words; there may be none.
        frame: What stands around them.
        first: Whether only the first subword of a word counts.

    Example:
        >>> frame = Frame((1,), (), 0, 4)
        >>> found = divided([("a", "b"), ("b",)], 3, lambda words: [[7, 8], [9]], frame)
        >>> found.ids.tolist(), found.place.tolist(), found.word.tolist(), found.share.tolist()
        ([[1, 7, 8, 9], [1, 9, 0, 0]], [0, 1, 2, 3, 4, 5], [0, 1, 1, 2, 3, 4], [1.0, 0.5, 0.5, 1.0, 1.0, 1.0])
        >>> divided([("a",) * 3], 4, lambda words: [[7, 8]], frame).ids.tolist()          # six subwords, four at a time
        [[1, 7, 8, 7, 8], [1, 7, 8, 7, 8]]
    """
    known = {form: k for k, form in enumerate(dict.fromkeys(form for forms in sentences for form in forms))}
    parts_of = divide(list(known)) if known else []
    rows: list[list[int]] = []
    place: list[tuple[int, int]] = []  # window and column
    word: list[int] = []
    share: list[float] = []
    for k, forms in enumerate(sentences):
        parts = [parts_of[known[form]] for form in forms]
        whole = [part for some in parts for part in some]
        row = len(rows)
        spans = _windows(len(whole), frame.room)
        for start, end in spans:
            content = [*frame.before, *whole[start:end], *frame.after]
            rows.append(content or [frame.padding])  # of no word and no sign, a model still reads something
        if frame.before:
            place.append((row, 0))
            word.append(k * size)
            share.append(1.0)
        cuts = [(following[0] + before[1]) // 2 for before, following in itertools.pairwise(spans)]
        owner = np.searchsorted(cuts, np.arange(len(whole)), side="right")
        at = 0
        for n, some in enumerate(parts, 1):
            counted = range(at, at + min(len(some), 1) if first else at + len(some))
            place += [(row + int(owner[p]), len(frame.before) + p - spans[owner[p]][0]) for p in counted]
            word += [k * size + n] * len(counted)
            share += [1 / len(counted)] * len(counted) if counted else []
            at += len(some)
    width = max(map(len, rows), default=1)
    ids = np.full((len(rows), width), frame.padding, dtype=np.int64)
    there = np.zeros((len(rows), width), dtype=bool)
    for k, content in enumerate(rows):
        ids[k, : len(content)], there[k, : len(content)] = content, True
    return Pieces(
        torch.from_numpy(ids),
        None if there.all() else torch.from_numpy(there),
        torch.tensor([window * width + column for window, column in place], dtype=torch.int64),
        torch.tensor(word, dtype=torch.int64),
        torch.tensor(share, dtype=torch.float32),
    )


def _alike(lengths: list[int]) -> Iterator[tuple[int, int]]:
    """Where groups of lengths begin and end, the longest first; padding is at most two thirds of what is padded."""
    start = 0
    for k, length in enumerate(lengths):
        if 5 * length < 3 * lengths[start]:
            yield start, k
            start = k
    yield start, len(lengths)


def _windows(count: int, room: int) -> list[tuple[int, int]]:
    """Beginnings and ends of windows over so many subwords."""
    if count <= room:
        return [(0, count)]
    starts = [*range(0, count - room, max(1, room // 2)), count - room]
    return [(start, start + room) for start in starts]
