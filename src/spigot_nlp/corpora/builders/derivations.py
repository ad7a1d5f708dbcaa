"""Derivations as dependency trees: in each phrase one daughter is the head, and the others depend on it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spigot_nlp.data.formats.files import FormatError, shown

if TYPE_CHECKING:
    from delphin.derivation import UDFNode

_FROM = re.compile(r'\+FROM \\?"(\d+)')
_TO = re.compile(r'\+TO \\?"(\d+)')
_HEAD_LAST = re.compile(r"[a-z]+-hd")


def read_heads(path: Path) -> dict[str, int]:
    """Which daughter heads the phrases of each rule, from 0, as `etc/rules.hds` of the English Resource Grammar says.

    Args:
        path: A rule, how many daughters it has and which of them is the head, on each line.

    Raises:
        FormatError: If a line has something else.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "rules.hds"
        >>> _ = path.write_text("sb-hd_mc_c 2 1\\n")
        >>> read_heads(path)
        {'sb-hd_mc_c': 1}
    """
    heads = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split()
        if len(cells) == 3 and cells[2].isdecimal():
            heads[cells[0]] = int(cells[2])
        elif cells and not line.startswith(";"):
            raise FormatError(str(path), number, f"{shown(line)} is not a rule, its number of daughters, and its head.")
    return heads


def dependencies(
    derivation: "UDFNode", spans: Sequence[tuple[int, int]], heads: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    """The heads and relations of the words, or `None` if they make no tree.

    A relation is the name of the rule up to its first underscore. Of a lexical entry of several words the first stands
    for it, and the others depend on that as `mwe`. Words that the derivation does not have, such as most punctuation,
    depend on the word before them as `punct`.

    Args:
        derivation: What PyDelphin reads.
        spans: The characters of each word.
        heads: Which daughter heads the phrases of each rule.

    Example:
        >>> from delphin.derivation import UDFNode, UDFTerminal, UDFToken
        >>> def leaf(start: int, end: int) -> UDFNode:
        ...     token = UDFToken(1, f'token [ +FROM "{start}" +TO "{end}" ]')
        ...     return UDFNode(2, "some_entry", daughters=[UDFTerminal("some", [token])])
        >>> clause = UDFNode(3, "sb-hd_mc_c", daughters=[leaf(0, 4), leaf(5, 9)])
        >>> dependencies(clause, [(0, 4), (5, 9)], {"sb-hd_mc_c": 1})
        ((2, 0), ('sb-hd', 'root'))
    """
    return _Walk(spans, heads).tree(derivation)


class _Walk:
    """One derivation on its way; words count from 0 here, and a lexical entry is its words."""

    def __init__(self, spans: Sequence[tuple[int, int]], heads: Mapping[str, int]) -> None:
        self.spans = spans
        self.heads = heads
        self.arcs: list[tuple[list[int], list[int], str]] = []

    def tree(self, derivation: "UDFNode") -> tuple[tuple[int, ...], tuple[str, ...]] | None:
        root = self._entry(derivation)
        if not root:
            return None
        size = len(self.spans)
        heads: list[int | None] = [None] * size
        relations = ["punct"] * size
        heads[root[0]], relations[root[0]] = 0, "root"
        for governor, dependent, rule in self.arcs:
            if heads[dependent[0]] is None and dependent[0] != governor[0]:
                heads[dependent[0]], relations[dependent[0]] = governor[0] + 1, rule.partition("_")[0]
        for entry in (root, *(dependent for _, dependent, _ in self.arcs)):
            for word in entry[1:]:
                if heads[word] is None:
                    heads[word], relations[word] = entry[0] + 1, "mwe"
        whole = tuple((word or 2) if head is None else head for word, head in enumerate(heads))
        return (whole, tuple(relations)) if _is_tree(whole) else None

    def _entry(self, node: "UDFNode") -> list[int]:
        """The lexical entry that heads a phrase, after noting what depends on what inside it; nothing if none does."""
        phrases = [daughter for daughter in node.daughters if hasattr(daughter, "daughters")]
        if not phrases:
            return self._words(node)
        entries = [self._entry(phrase) for phrase in phrases]
        if len(entries) == 1:
            return entries[0]
        place = self.heads.get(node.entity, len(entries))
        if place >= len(entries):
            place = int(_HEAD_LAST.match(node.entity) is not None)
        head = entries[place] or next(filter(None, entries), [])
        self.arcs += [(head, entry, node.entity) for entry in entries if entry and entry is not head]
        return head

    def _words(self, node: "UDFNode") -> list[int]:
        """The words that a lexical entry covers."""
        structures = [token.tfs for terminal in node.daughters for token in terminal.tokens]
        edges = [
            (int(start[1]), int(end[1]))
            for tfs in structures
            if (start := _FROM.search(tfs)) and (end := _TO.search(tfs))
        ]
        if not edges:
            return []
        first, last = min(start for start, _ in edges), max(end for _, end in edges)
        return [word for word, (start, end) in enumerate(self.spans) if start < last and end > first]


def _is_tree(heads: Sequence[int]) -> bool:
    from spigot_nlp.data.formats.table import find_cycle

    return max(heads) <= len(heads) and not find_cycle(heads)
