"""The skeletons of the PropBank release: who does what to whom, without the words.

A token on each line, a blank line between sentences. The columns are the document, the numbers of sentence and token,
a place for the word, its tag, its piece of the phrase structure, a lemma and a roleset if it is a predicate, then one
column for each predicate, in which brackets mark where its arguments begin and end: `(ARG1*`, `*`, `*)`.

References:
    Carreras and Màrquez (2005), Introduction to the CoNLL-2005 shared task: semantic role labeling, §3.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from spigot_nlp.data.formats.files import FormatError, shown

_FIXED = 8
_TAG, _ROLESET = 4, 7
_OPENED = re.compile(r"\(([^*()]+)")
_PREDICATE = "V"


class Argument(NamedTuple):
    """A span of tokens, from 0, both ends included, and its role.

    Example:
        >>> Argument(0, 2, "ARG0").role
        'ARG0'
    """

    first: int
    last: int
    role: str


class Proposition(NamedTuple):
    """A predicate and its arguments.

    Example:
        >>> Proposition(3, "announce.01", (Argument(0, 2, "ARG0"),)).predicate
        3
    """

    predicate: int
    roleset: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Skeleton:
    """A sentence without its words.

    Attributes:
        tags: The tag of each token.
        propositions: What is said of whom.

    Example:
        >>> Skeleton(("NN", "VBD"), (Proposition(1, "fall.01", (Argument(0, 0, "ARG1"),)),)).tags
        ('NN', 'VBD')
    """

    tags: tuple[str, ...]
    propositions: tuple[Proposition, ...]


def read_skeletons(path: Path) -> Iterator[Skeleton]:
    """The sentences of a document.

    Args:
        path: A file whose name ends in `gold_skel`.

    Raises:
        FormatError: If a line is not as it should be.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "rain.gold_skel"
        >>> lines = ["d 0 0 [WORD] NN (TOP(S(NP*) - - (ARG1*)", "d 0 1 [WORD] VBD (VP*))) fall fall.01 (V*)"]
        >>> _ = path.write_text("\\n".join(lines))
        >>> next(read_skeletons(path)).propositions
        (Proposition(predicate=1, roleset='fall.01', arguments=(Argument(first=0, last=0, role='ARG1'),)),)
    """
    rows: list[list[str]] = []
    number = 0
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            cells = line.split()
            if cells:
                rows.append(cells)
            elif rows:
                yield _skeleton(rows, path, number - len(rows))
                rows = []
    if rows:
        yield _skeleton(rows, path, number - len(rows) + 1)


def _skeleton(rows: list[list[str]], path: Path, first: int) -> Skeleton:
    width = len(rows[0])
    for number, row in enumerate(rows, first):
        if len(row) != width or width < _FIXED:
            wanted = f"{width} as in the first line of the sentence" if width >= _FIXED else f"at least {_FIXED}"
            raise FormatError(str(path), number, f"{len(row)} columns where there should be {wanted}.")
    propositions = []
    for column in range(_FIXED, width):
        spans = list(_spans([row[column] for row in rows], path, first))
        places = [span.first for span in spans if span.role == _PREDICATE]
        if places:
            # What continues the predicate, as a particle does, is no argument of it.
            arguments = tuple(s for s in spans if s.role != _PREDICATE and not s.role.startswith(f"C-{_PREDICATE}"))
            propositions.append(Proposition(places[0], rows[places[0]][_ROLESET], arguments))
    return Skeleton(tuple(row[_TAG] for row in rows), tuple(propositions))


def _spans(column: list[str], path: Path, first: int) -> Iterator[Argument]:
    """The bracketed spans of a column, in the order in which they end."""
    waiting: list[tuple[int, str]] = []
    for place, cell in enumerate(column):
        waiting += [(place, role) for role in _OPENED.findall(cell)]
        for _ in range(cell.count(")")):
            if not waiting:
                raise FormatError(str(path), first + place, f"{shown(cell)} closes an argument that was never opened.")
            begin, role = waiting.pop()
            yield Argument(begin, place, role)
    if waiting:
        begin, role = waiting[-1]
        raise FormatError(str(path), first + begin, f"the argument {shown(role)} is never closed.")
