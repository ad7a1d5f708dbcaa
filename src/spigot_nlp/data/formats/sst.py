r"""Trees of the Stanford Sentiment Treebank: one on each line, a class from 0 (worst) to 4 (best) on every constituent.

`(3 (2 It) (4 (2 was) (4 lovely)))`

References:
    Socher et al. (2013), Recursive deep models for semantic compositionality over a sentiment treebank, §3.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from spigot_nlp.data.formats.conll import describe
from spigot_nlp.data.formats.files import LINE, Block, Layout, Malformed, shown
from spigot_nlp.data.sentence import Sentence

_NEUTRAL = 2
_LABELS = ("0", "1", "2", "3", "4")
# A word may hold a no-break space, as in a number with a fraction, so only blanks and tabs separate. A part is a leaf,
# the opening of a node with parts of its own, a closing bracket, or something that does not belong.
_PART = re.compile(r"\([ \t]*([0-4])[ \t]+([^() \t]+)[ \t]*\)|\([ \t]*([0-4])[ \t]*(?=\()|(\))|[^ \t]")
# What ends a line elsewhere, or is white space to others: nobody writes it into a word, and each reader would cut there
# in a way of its own.
_BREAK = re.compile("[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_TOKEN = re.compile(r"[()]|[^() \t]+")
_FOLLOWS = {"": ("(",), "(": ("label",), "label": ("(", "word"), "word": (")",), ")": ("(", ")")}
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_LOOK = "a tree looks like (3 (2 Good) (2 film))"


class Constituent(NamedTuple):
    """A phrase of a tree and its class.

    Attributes:
        label: From 0 to 4.
        first: Its first word, from 1.
        last: Its last word.

    Example:
        >>> Constituent(4, 2, 3)
        Constituent(label=4, first=2, last=3)
    """

    label: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SentimentTree:
    """The tree that a sentence or phrase was read from: the `source` of what comes from the treebank.

    Attributes:
        text: The tree as the file has it.
        binary: Whether the sentence got one of two classes, or else one of five.
        layout: The white space around it.

    Example:
        >>> SentimentTree("(3 (2 It) (4 lovely))").constituents[0]
        Constituent(label=3, first=1, last=2)
    """

    text: str
    binary: bool = False
    layout: Layout = LINE

    @property
    def constituents(self) -> tuple[Constituent, ...]:
        """Every phrase: the whole first, then those of its first part, and so on.

        Of two phrases with the same words the outer one comes first, so that the list has all there is to the tree.

        Example:
            >>> [tuple(phrase) for phrase in SentimentTree("(3 (2 It) (4 (2 was) (4 fun)))").constituents]
            [(3, 1, 3), (2, 1, 1), (4, 2, 3), (2, 2, 2), (4, 3, 3)]
        """
        return tuple(map(Constituent._make, _scan(self.text)[0]))


def parse_sst(block: Block) -> Sentence:
    """Reads the sentence of a tree, with one of five classes. Its `id` is the number of its line.

    Example:
        >>> sentence = parse_sst(Block(["(3 (2 It) (4 lovely))"]))
        >>> sentence.forms, sentence.label
        (('It', 'lovely'), 3)
    """
    nodes, words = _scan(block.lines[0])
    return _sentence(block, nodes[0][0], words, binary=False)


def parse_sst_binary(block: Block) -> Iterable[Sentence]:
    """Reads the sentence of a tree as bad (0) or good (1), or nothing if it is neutral.

    Example:
        >>> [sentence.label for sentence in parse_sst_binary(Block(["(3 (2 It) (4 lovely))"]))]
        [1]
        >>> parse_sst_binary(Block(["(2 (2 It) (2 rained))"]))
        ()
    """
    nodes, words = _scan(block.lines[0])
    label = nodes[0][0]
    return () if label == _NEUTRAL else (_sentence(block, _side(label), words, binary=True),)


def parse_sst_phrases(block: Block) -> Iterable[Sentence]:
    """Reads every phrase of a tree as a sentence, the whole one first; a phrase that occurs twice is read twice.

    The `id` of a phrase is the number of its line and its own in the tree: `17.1` is the whole of line 17. Its `source`
    is the whole tree, and its number is the place of its constituent there.

    Example:
        >>> for phrase in parse_sst_phrases(Block(["(3 (2 It) (4 lovely))"])):
        ...     print(phrase.id, phrase.label, *phrase.forms)
        1.1 3 It lovely
        1.2 2 It
        1.3 4 lovely
    """
    return _phrases(block, binary=False)


def parse_sst_binary_phrases(block: Block) -> Iterable[Sentence]:
    """Reads every phrase of a tree that is not neutral, as bad (0) or good (1); otherwise as `parse_sst_phrases`.

    Example:
        >>> [phrase.id for phrase in parse_sst_binary_phrases(Block(["(3 (2 It) (4 lovely))"]))]
        ['1.1', '1.3']
    """
    return _phrases(block, binary=True)


def render_sst(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    """The tree that a sentence was read from. There is no other way to write one: a new sentence has no tree.

    Example:
        >>> render_sst(parse_sst(Block(["(3 (2 It) (4 lovely))"])))[0]
        '(3 (2 It) (4 lovely))'
    """
    where = describe(sentence)
    tree = sentence.source
    if not isinstance(tree, SentimentTree):
        raise ValueError(
            f"{where} has no tree, and this format has nothing else; it can be written as 'labelled' or 'jsonl'."
        )
    nodes, words = _scan(tree.text)
    label = _side(nodes[0][0]) if tree.binary else nodes[0][0]
    if sentence.forms != tuple(words) or sentence.label != label:
        what = f"label {sentence.label} is not that" if sentence.forms == tuple(words) else "its words are not those"
        raise ValueError(
            f"{where}: {what} of the tree it was read from, {shown(tree.text)}; "
            f"a changed sentence can be written as 'labelled' or 'jsonl'."
        )
    return tree.text, tree.layout


def render_sst_phrases(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    """Raises `ValueError`: the phrases of a tree are not a file of their own.

    Example:
        >>> render_sst_phrases(Sentence(("lovely",)))
        Traceback (most recent call last):
            ...
        ValueError: sentence 'lovely': phrases are read off trees; write them as 'labelled' or 'jsonl'.
    """
    raise ValueError(f"{describe(sentence)}: phrases are read off trees; write them as 'labelled' or 'jsonl'.")


def _side(label: int) -> int:
    return int(label > _NEUTRAL)


def _source(block: Block, *, binary: bool) -> SentimentTree:
    return SentimentTree(block.lines[0], binary, block.layout)


def _sentence(block: Block, label: int, words: list[str], *, binary: bool) -> Sentence:
    return Sentence(tuple(words), label=label, id=str(block.first), source=_source(block, binary=binary))


def _phrases(block: Block, *, binary: bool) -> Iterable[Sentence]:
    nodes, words = _scan(block.lines[0])
    forms, source = tuple(words), _source(block, binary=binary)
    # One at a time: together the phrases of a deep tree are quadratic in its size.
    return (
        Sentence(
            forms[first - 1 : last],
            label=_side(label) if binary else label,
            id=f"{block.first}.{number}",
            source=source,
        )
        for number, (label, first, last) in enumerate(nodes, 1)
        if not (binary and label == _NEUTRAL)
    )


def _scan(text: str) -> tuple[list[tuple[int, int, int]], list[str]]:
    """The constituents of a line, the outer before the inner, and its words."""
    if found := _BREAK.search(text):
        what = f"the control character U+{ord(found[0]):04X} at column {found.start() + 1}"
        raise Malformed(0, f"{what}; words are separated by blanks, and trees by line feeds.")
    labels: list[str] = []
    firsts: list[int] = []
    lasts: list[int] = []
    words: list[str] = []
    waiting: list[int] = []  # the nodes that are open; no recursion, for trees may be deep
    for leaf, word, inner, close in _PART.findall(text):
        if labels and not waiting:
            raise _explain(text)
        if leaf:
            words.append(_plain(word))
            labels.append(leaf)
            firsts.append(len(words))
            lasts.append(len(words))
        elif inner:
            waiting.append(len(labels))
            labels.append(inner)
            firsts.append(len(words) + 1)
            lasts.append(0)
        elif close and waiting:
            lasts[waiting.pop()] = len(words)
        else:
            raise _explain(text)
    if waiting:
        raise _explain(text)
    return list(zip(map(int, labels), firsts, lasts, strict=True)), words


@lru_cache(maxsize=1 << 16)
def _plain(token: str) -> str:
    """A word without the escapes of the Penn Treebank. Words repeat, so remembering them saves time and memory."""
    return intern(_BRACKETS.get(token) or token.replace("\\/", "/").replace("\\*", "*"))


def _explain(text: str) -> Malformed:
    """What is wrong with a line that is no tree: the first token that cannot follow those before it."""
    before = ""  # the kind of the last token: ( label word )
    waiting: list[int] = []
    for match in _TOKEN.finditer(text):
        token, column = match[0], match.start() + 1
        kind = token if token in "()" else "label" if before == "(" else "word"
        follows = _FOLLOWS[before] if waiting or not before else ()
        if kind not in follows or (kind == "label" and token not in _LABELS):
            return Malformed(0, _reason(token, column, before, text))
        if kind == "(":
            waiting.append(column)
        elif kind == ")":
            waiting.pop()
        before = kind
    noun = "bracket is" if len(waiting) == 1 else "brackets are"
    return Malformed(
        0, f"{len(waiting)} {noun} not closed, the last of them at column {waiting[-1]}; add what is missing."
    )


def _reason(token: str, column: int, before: str, text: str) -> str:
    if not before:
        beside = "; for LABEL<TAB>TEXT give the format 'labelled'" if "\t" in text else ""
        return f"{shown(token)} where a tree begins; {_LOOK}{beside}."
    if before == "(":
        given = "a bracket without a label" if token in "()" else f"the label {shown(token)}"
        return f"{given} at column {column}; every bracket opens with a label from 0 to 4."
    if before == "label":
        return f"an empty node ends at column {column}; give it a word or parts, or take it out."
    if before == "word":
        second = "a part" if token == "(" else f"the word {shown(token)}"
        return f"{second} beside a word at column {column}; each word has a bracket and a label of its own."
    if token == "(":
        return f"a second tree begins at column {column}; put each tree on a line of its own."
    if token == ")":
        return f"a closing bracket too many at column {column}; take it out or open it before."
    return f"{shown(token)} at column {column} has no bracket of its own; {_LOOK}."
