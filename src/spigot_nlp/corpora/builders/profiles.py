"""Profiles of the Redwoods treebank: a folder of tables, of which one has the words and one the analyses."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

_TOKEN = re.compile(
    r'\(\d+, \d+, \d+, <(?P<start>\d+):(?P<end>\d+)>, 1, "(?P<form>(?:[^"\\]|\\.)*)", 0, "null"'
    r'(?:, (?P<tag>"\S+") [\d.]+(?: "\S+" [\d.]+)*)?\)'
)
_MARKS = re.compile(r"⌊(?:\W|λ)|(?:\W|λ)⌋|[⌊⌋]")
_SIGNS = re.compile(r"\W+")
_TAGS = {
    **dict.fromkeys(".!?", "."),
    **dict.fromkeys((";", ":", "…", "–", "—", "--"), ":"),
    **dict.fromkeys("([{", "-LRB-"),
    **dict.fromkeys(")]}", "-RRB-"),
    **dict.fromkeys(("“", "‘", "``"), "``"),
    **dict.fromkeys(("”", "’", '"', "''"), "''"),
    ",": ",",
    "-": "HYPH",
    "/": "SYM",
}
PUNCTUATION = frozenset((",", ".", ":", "``", "''", "-LRB-", "-RRB-", "HYPH"))
"""Tags of words that mean nothing by themselves."""


class Token(NamedTuple):
    """A word of a profile.

    Attributes:
        start: Its first character.
        end: The one after its last.
        form: The word.
        tag: Its tag, from a tagger; punctuation goes by its form.

    Example:
        >>> Token(0, 4, "Rain", "NN").form
        'Rain'
    """

    start: int
    end: int
    form: str
    tag: str


class Reading(NamedTuple):
    """The analysis of an item that the annotators chose.

    Attributes:
        name: The profile and the number of the item.
        tokens: The words, as they are written in the table.
        derivation: The derivation.
        mrs: Its meaning.
    """

    name: str
    tokens: str
    derivation: str
    mrs: str


def delphin() -> ModuleType:
    """PyDelphin.

    Raises:
        ImportError: If it is not installed.

    Example:
        >>> delphin().__name__
        'delphin'
    """
    try:
        import delphin.codecs.simplemrs
        import delphin.derivation
        import delphin.eds
        import delphin.tsdb
    except ModuleNotFoundError:
        raise ImportError(
            'redwoods-dm needs PyDelphin, which is not installed: pip install "torch-spigot[corpora]".'
        ) from None
    return delphin


def read_profile(folder: Path) -> Iterator[Reading]:
    """The readings of a profile, in its order.

    Args:
        folder: The profile.

    Raises:
        ValueError: If a reading is one of no item.
    """
    tsdb = delphin().tsdb
    schema = tsdb.read_schema(folder)
    column = {name: tsdb.make_field_index(schema[name]) for name in ("parse", "result")}
    with tsdb.open(folder, "parse") as lines:
        rows = map(tsdb.split, lines)
        words = {row[column["parse"]["parse-id"]]: row[column["parse"]["p-input"]] for row in rows}
    with tsdb.open(folder, "result") as lines:
        for row in map(tsdb.split, lines):
            number, derivation, mrs = (row[column["result"][name]] for name in ("parse-id", "derivation", "mrs"))
            if number not in words:
                raise ValueError(
                    f"{folder}: there is a result for {number}, and no parse; the profile is not complete."
                )
            yield Reading(f"{folder.name}-{number}", words[number] or "", derivation or "", mrs or "")


def tokens(text: str) -> list[Token]:
    r"""The words of an item as its table has them.

    Example:
        >>> tokens('(1, 0, 1, <0:4>, 1, "Rain", 0, "null", "NN" 1.0) (2, 1, 2, <4:5>, 1, "!", 0, "null", "NN" 0.9)')
        [Token(start=0, end=4, form='Rain', tag='NN'), Token(start=4, end=5, form='!', tag='.')]
    """
    found = []
    for match in _TOKEN.finditer(text):
        form = match["form"].replace('\\"', '"').replace("\\\\", "\\")
        tag = (match["tag"] or "_").strip('"')
        if form in _TAGS:
            tag = _TAGS[form]
        elif tag == "." and _SIGNS.fullmatch(form):
            tag = "SYM"
        found.append(Token(int(match["start"]), int(match["end"]), form.replace(" ", "_"), tag))
    return found


def plain(form: str) -> str:
    """A word without the marks that stand for the mark-up of a page.

    Example:
        >>> plain("⌊/rain/⌋"), plain("rain")
        ('rain', 'rain')
    """
    if "⌊" not in form and "⌋" not in form:
        return form
    bare = form.replace("⌊", "").replace("⌋", "")
    return _MARKS.sub("", form) or bare or "_"
