r"""A sentence on each line: plain text, and `LABEL<TAB>TEXT` for data of one's own.

Words are separated by white space, but a no-break space inside a word belongs to it. Nothing else is taken apart, so
text must be tokenised as the training data are.
"""

import re
from dataclasses import dataclass

from spigot_nlp.data.formats.conll import describe
from spigot_nlp.data.formats.files import LINE, Block, Layout, Malformed, shown
from spigot_nlp.data.sentence import Sentence

# A byte order mark in the middle of a file, where two were joined, is no part of a word either.
_WORD = re.compile(r"[^\s\ufeff]+(?:[\u00a0\u2007\u202f][^\s\ufeff]+)*")
_LABEL = re.compile(r"[0-9]{1,9}")
_TREE = re.compile(r"\s*\([0-4] \([0-4] ")


@dataclass(frozen=True, slots=True)
class LineSource:
    """A line that would not come out the same from its sentence alone.

    Attributes:
        text: The line.
        layout: The white space around it.

    Example:
        >>> parse_text(Block(["two  spaces"], layout=LINE)).source.text
        'two  spaces'
    """

    text: str
    layout: Layout = LINE


def line_source(block: Block, canonical: str) -> LineSource | None:
    """What to keep of a line; nothing if its sentence is written as `canonical`, the very same line.

    Example:
        >>> line_source(Block(["two spaces"], layout=LINE), "two spaces") is None
        True
    """
    text = block.lines[0]
    return None if text == canonical and block.layout == LINE else LineSource(text, block.layout)


def parse_text(block: Block) -> Sentence:
    """Reads a line of words.

    Example:
        >>> parse_text(Block(["Rain fell ."])).forms
        ('Rain', 'fell', '.')
    """
    text = block.lines[0]
    if _TREE.match(text):
        raise Malformed(
            0,
            "a tree of the Stanford Sentiment Treebank, not plain text; give the format 'sst-binary' or 'sst', "
            "on the command line --format sst-binary.",
        )
    forms = _words(text)
    if not forms:
        raise Malformed(0, "a line without a word; write one, or leave the line empty.")
    return Sentence(forms, source=line_source(block, " ".join(forms)))


def parse_labelled(block: Block) -> Sentence:
    r"""Reads a class, a tab, and words.

    Example:
        >>> sentence = parse_labelled(Block(["1\tWhat a day !"]))
        >>> sentence.label, sentence.forms
        (1, ('What', 'a', 'day', '!'))
    """
    label, forms = _labelled(block.lines[0])
    return Sentence(forms, label=label, source=line_source(block, f"{label}\t{' '.join(forms)}"))


def render_text(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    """The words of a sentence, a space between two; everything else that is known about it is left out.

    Example:
        >>> render_text(Sentence(("Rain", "fell", ".")))[0]
        'Rain fell .'
    """
    text = _joined(sentence)
    if _TREE.match(text):
        raise ValueError(f"{describe(sentence)} would be taken for a tree; it can be written as 'labelled' or 'jsonl'.")
    source = sentence.source
    if not isinstance(source, LineSource):
        return text, LINE
    return source.text if _words(source.text) == sentence.forms else text, source.layout


def render_labelled(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    r"""The class of a sentence, a tab, and its words; everything else that is known about it is left out.

    Example:
        >>> render_labelled(Sentence(("What", "a", "day", "!"), label=1))[0]
        '1\tWhat a day !'
    """
    text, label = _joined(sentence), sentence.label
    if label is None or not _LABEL.fullmatch(str(label)):
        advice = "it can be written as 'text' or 'jsonl'" if label is None else "classes are numbered from 0"
        raise ValueError(f"{describe(sentence)} has the label {label}; {advice}.")
    text = f"{label}\t{text}"
    source = sentence.source
    if not isinstance(source, LineSource):
        return text, LINE
    try:
        same = _labelled(source.text) == (label, sentence.forms)
    except Malformed:  # read as something else
        same = False
    return source.text if same else text, source.layout


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text))


def _labelled(text: str) -> tuple[int, tuple[str, ...]]:
    label, tab, rest = text.partition("\t")
    if not tab:
        raise Malformed(0, "no tab; a line is LABEL<TAB>TEXT, as in `1<TAB>What a day !`.")
    if not _LABEL.fullmatch(label):
        raise Malformed(
            0,
            f"the label is {shown(label)}; it must be a whole number from 0, and a tab and the text follow. "
            f"Number the classes, and take out a header.",
        )
    forms = _words(rest)
    if not forms:
        raise Malformed(0, f"no words after the label {label}; write some, or take the line out.")
    return int(label), forms


def _joined(sentence: Sentence) -> str:
    where = describe(sentence)
    text = " ".join(sentence.forms)
    if "\0" in text or _words(text) != sentence.forms:
        for word, form in enumerate(sentence.forms, 1):
            if "\0" in form or _words(form) != (form,):
                raise ValueError(
                    f"{where}, word {word}: {shown(form)} cannot be written on a line of words; "
                    f"it must not be empty, nor hold white space or a NUL. Words of any kind can be written as 'jsonl'."
                )
    return text
