r"""Two ways to divide one text, laid over each other: which words of the one are which of the other.

Whoever parses plain text may find other sentences and words than the treebank has. What can be compared is what covers
the same characters, white space left aside: a token or a sentence of one side is found by the other if it begins and
ends at the same ones. Words are aligned in the same way, but those of multiword tokens have no characters of their own
(`don't` may be spelt out as `do not`). So wherever either side has a multiword token, all words of both sides in the
stretch that it covers, with those that overlap it, are compared by their spelling: a longest common subsequence of
them is aligned, upper and lower case being the same.

References:
    Zeman et al. (2018), CoNLL 2018 shared task: multilingual parsing from raw text to Universal Dependencies, §4.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.surface import tokens_of, without_space
from spigot_nlp.data.text.treebank import first_difference

Span = tuple[int, int]
"""Where something begins and ends among the characters of a text that are not white space."""

_SHOWN = 30  # characters of a text in a message


@dataclass(frozen=True)
class Surface:
    """Sentences laid out over the characters of their text.

    Attributes:
        text: All characters but white space.
        forms: The words of all sentences, one after another.
        sentences: Where each sentence is.
        tokens: Where each token is.
        words: Where each word is; the words of a multiword token are all where the token is.
        multiword: Which of the words belong to a multiword token.

    Example:
        >>> surface = Surface.of([Sentence(("It", "rained")), Sentence(("Why", "?"))])
        >>> surface.text, surface.sentences, surface.words
        ('ItrainedWhy?', [(0, 8), (8, 12)], [(0, 2), (2, 8), (8, 11), (11, 12)])
    """

    text: str
    forms: list[str]
    sentences: list[Span]
    tokens: list[Span]
    words: list[Span]
    multiword: list[bool]

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> "Surface":
        """Lays out sentences.

        Args:
            sentences: The sentences of a text, in order.
        """
        pieces: list[str] = []
        forms: list[str] = []
        places: list[Span] = []
        tokens: list[Span] = []
        words: list[Span] = []
        multiword: list[bool] = []
        end = 0
        for sentence in sentences:
            first = end
            for token in tokens_of(sentence):
                piece = without_space(token.text)
                span = (end, end + len(piece))
                end = span[1]
                pieces.append(piece)
                tokens.append(span)
                words += [span] * token.size
                multiword += [token.size > 1] * token.size
            places.append((first, end))
            forms += sentence.forms
        return cls("".join(pieces), forms, places, tokens, words, multiword)


def align(gold: Surface, predicted: Surface) -> list[tuple[int, int]]:
    """The words of one side that are words of the other.

    The time grows with the text, and with the square of the number of words under one multiword token.

    Args:
        gold: A text.
        predicted: The same text, divided otherwise.

    Returns:
        Pairs of a word of the first and one of the second, counted from 0 through the whole text, in order.

    Raises:
        ValueError: If the texts differ.

    Example:
        >>> left, right = Sentence(("New", "York's")), Sentence(("New", "York", "'s"))
        >>> align(Surface.of([left]), Surface.of([right]))
        [(0, 0)]
    """
    _check_same(gold, predicted)
    stretches = _stretches([span for side in (gold, predicted) for span, many in _words(side) if many])
    starts = [start for start, _ in stretches]
    alone: list[dict[Span, int]] = [{}, {}]
    inside: list[dict[int, list[int]]] = [{}, {}]
    for mine, within, side in zip(alone, inside, (gold, predicted), strict=True):
        for word, (start, end) in enumerate(side.words):
            k = bisect_right(starts, start) - 1
            if k >= 0 and end <= stretches[k][1] and start < end:
                within.setdefault(k, []).append(word)
            elif start < end:  # there is nothing to tell one word without characters from another by
                mine[start, end] = word
    pairs = [(word, alone[1][span]) for span, word in alone[0].items() if span in alone[1]]
    for k, words in inside[0].items():
        others = inside[1].get(k, [])
        spelt = ([side.forms[word].lower() for word in some] for side, some in ((gold, words), (predicted, others)))
        pairs += [(words[a], others[b]) for a, b in _common(*spelt)]
    return sorted(pairs)


def _words(side: Surface) -> Iterable[tuple[Span, bool]]:
    return zip(side.words, side.multiword, strict=True)


def _stretches(spans: Sequence[Span]) -> list[Span]:
    """What the multiword tokens of both sides cover: those that share a character are one stretch."""
    found: list[Span] = []
    for start, end in sorted(span for span in set(spans) if span[0] < span[1]):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _common(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """A longest common subsequence: the places of its members on either side."""
    longest = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]  # of what begins at each pair of places
    for a in reversed(range(len(left))):
        row, below = longest[a], longest[a + 1]
        for b in reversed(range(len(right))):
            row[b] = 1 + below[b + 1] if left[a] == right[b] else max(below[b], row[b + 1])
    found, a, b = [], 0, 0
    while a < len(left) and b < len(right):
        if left[a] == right[b]:
            found.append((a, b))
            a, b = a + 1, b + 1
        elif longest[a][b] == longest[a + 1][b]:
            a += 1
        else:
            b += 1
    return found


def _check_same(gold: Surface, predicted: Surface) -> None:
    if gold.text == predicted.text:
        return
    place = first_difference(gold.text, predicted.text)
    number = 1 + next((k for k, (_, end) in enumerate(gold.sentences) if place < end), len(gold.sentences) - 1)
    after = repr(gold.text[max(0, place - _SHOWN) : place]) if place else "its beginning"
    here, there = (
        repr(rest) if (rest := side.text[place : place + _SHOWN]) else "nothing" for side in (gold, predicted)
    )
    raise ValueError(
        f"the texts differ from character {place + 1} on, white space left aside: after {after}, in sentence {number}, "
        f"the gold text goes on with {here}, and the other with {there}; give answers about the same text."
    )
