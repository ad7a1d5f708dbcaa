"""The files of the Redwoods treebank: profiles, and derivations as dependency trees.

In each phrase of a derivation one daughter is the head, and the others depend on it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from delphin import tsdb
from delphin.derivation import UDFNode

from spigot_nlp.data import FormatError
from spigot_nlp.data.formats.conll import find_cycle

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
_FROM = re.compile(r'\+FROM \\?"(\d+)')
_TO = re.compile(r'\+TO \\?"(\d+)')
_HEAD_LAST = re.compile(r"[a-z]+-hd")


class Token(NamedTuple):
    """A word: its first character, the one after its last, and its tag, from a tagger or by its form."""

    start: int
    end: int
    form: str
    tag: str


class Reading(NamedTuple):
    """The analysis of an item that the annotators chose; its words are as the table writes them."""

    name: str
    tokens: str
    derivation: str
    mrs: str


def read_profile(folder: Path) -> Iterator[Reading]:
    """The readings of a profile, in its order."""
    words: dict[str, str] = {}
    for number, text in _rows(folder, "parse", "parse-id", "p-input"):
        words[number] = text
    for number, derivation, mrs in _rows(folder, "result", "parse-id", "derivation", "mrs"):
        if number not in words:
            raise ValueError(f"{folder}: there is a result for {number}, and no parse; the profile is not complete.")
        yield Reading(f"{folder.name}-{number}", words[number], derivation, mrs)


def _rows(folder: Path, table: str, *columns: str) -> Iterator[tuple[str, ...]]:
    """Some columns of a table. PyDelphin's own reader of tables leaves files open."""
    places = tsdb.make_field_index(tsdb.read_schema(folder)[table])
    with tsdb.open(folder, table) as lines:
        for row in map(tsdb.split, lines):
            yield tuple(str(row[places[name]] or "") for name in columns)


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
    """A word without the marks that stand for the mark-up of a page."""
    if "⌊" not in form and "⌋" not in form:
        return form
    bare = form.replace("⌊", "").replace("⌋", "")
    return _MARKS.sub("", form) or bare or "_"


def read_heads(path: Path) -> dict[str, int]:
    """Which daughter heads the phrases of each rule, from 0: `etc/rules.hds` of the grammar."""
    heads = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split()
        if len(cells) == 3 and cells[2].isdecimal():
            heads[cells[0]] = int(cells[2])
        elif cells and not line.startswith(";"):
            raise FormatError(str(path), number, f"{line!r} is not a rule, its number of daughters, and its head.")
    return heads


def dependencies(
    derivation: UDFNode, spans: Sequence[tuple[int, int]], heads: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    """The heads and relations of the words, or `None` if they make no tree.

    A relation is the name of the rule up to its first underscore. Of a lexical entry of several words the first stands
    for it, and the others depend on that as `mwe`. Words that the derivation does not have, such as most punctuation,
    depend on the word before them as `punct`.

    Args:
        derivation: What PyDelphin reads.
        spans: The characters of each word.
        heads: Which daughter heads the phrases of each rule.
    """
    arcs: list[tuple[list[int], list[int], str]] = []

    def entry(node: UDFNode) -> list[int]:
        """The words, from 0, of the entry that heads a phrase, after noting what depends on what inside it."""
        phrases = [daughter for daughter in node.daughters if isinstance(daughter, UDFNode)]
        if not phrases:
            return _words(node, spans)
        entries = [entry(phrase) for phrase in phrases]
        if len(entries) == 1:
            return entries[0]
        place = heads.get(node.entity, len(entries))
        if place >= len(entries):
            place = int(_HEAD_LAST.match(node.entity) is not None)
        head = entries[place] or next(filter(None, entries), [])
        arcs.extend((head, other, node.entity) for other in entries if other and other is not head)
        return head

    root = entry(derivation)
    if not root:
        return None
    found: list[int | None] = [None] * len(spans)
    relations = ["punct"] * len(spans)
    found[root[0]], relations[root[0]] = 0, "root"
    for governor, dependent, rule in arcs:
        if found[dependent[0]] is None and dependent[0] != governor[0]:
            found[dependent[0]], relations[dependent[0]] = governor[0] + 1, rule.partition("_")[0]
    for some in (root, *(dependent for _, dependent, _ in arcs)):
        for word in some[1:]:
            if found[word] is None:
                found[word], relations[word] = some[0] + 1, "mwe"
    whole = tuple((word or 2) if head is None else head for word, head in enumerate(found))
    return (whole, tuple(relations)) if max(whole) <= len(whole) and not find_cycle(whole) else None


def _words(node: UDFNode, spans: Sequence[tuple[int, int]]) -> list[int]:
    """The words that a lexical entry covers."""
    structures = [token.tfs for terminal in node.daughters for token in terminal.tokens]
    starts = [int(match[1]) for tfs in structures if (match := _FROM.search(tfs))]
    ends = [int(match[1]) for tfs in structures if (match := _TO.search(tfs))]
    if not starts or not ends:
        return []
    return [word for word, (start, end) in enumerate(spans) if start < max(ends) and end > min(starts)]
