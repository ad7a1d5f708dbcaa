r"""Tokens as they are written, and the words that they are made of: `don't` is one of the first and two of the second.

Universal Dependencies calls a token of several words a multiword token, and gives it a line of its own in CoNLL-U. In
its English treebanks these are the contractions and the possessives; everything else that is cut apart without a space,
such as punctuation, is tokens by itself.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.spacing import RANGE, Spacing, contractions
from spigot_nlp.data.text.tokens import SPACE

_SPACES = re.compile(f"[{SPACE}]+")


class Token(NamedTuple):
    """A token as it is written.

    Attributes:
        text: How it is written.
        size: How many words it is made of.

    Example:
        >>> Token("don't", 2).size
        2
    """

    text: str
    size: int = 1


def tokens_of(sentence: Sentence) -> Iterator[Token]:
    r"""The tokens of a sentence as they are written.

    What a CoNLL-U file says counts; in sentences of plain text, contractions and possessives are tokens of several
    words; where nothing is known about the white space, every word is a token.

    Args:
        sentence: The sentence.

    Example:
        >>> from spigot_nlp.data.text.raw import sentences
        >>> (sentence,) = sentences("I don't know Poe's.")
        >>> [token.text for token in tokens_of(sentence) if token.size > 1]
        ["don't", "Poe's"]
    """
    forms, source = sentence.forms, sentence.source
    spelt: dict[int, tuple[int, str]] = {}
    if isinstance(source, ConllSource):
        matches = (RANGE.match(line) for _, line in source.others)
        spelt = {int(match[1]) - 1: (int(match[2]), match[3]) for match in matches if match}
    elif isinstance(source, Spacing):
        ranges = contractions(forms, source.after)
        spelt = {first: (last, "".join(forms[first:last])) for first, last in ranges}
    k = 0
    while k < len(forms):
        last, text = spelt.get(k, (k + 1, forms[k]))
        yield Token(text, last - k)
        k = last


def without_space(text: str) -> str:
    r"""A text without white space, and without signs that print nothing.

    Example:
        >>> without_space("1 000\u200b")
        '1000'
    """
    return _SPACES.sub("", text)
