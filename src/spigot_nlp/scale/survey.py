r"""Where a large file can be cut, so that several workers parse it and its documents stay whole.

JSON lines are cut after a line, CoNLL-U after a blank one. A text is one document, however long, and is cut after blank
lines, where a sentence ends anyway; how many characters stand before each cut is counted, so that places are those in
the whole text. All of a file is read for it, at some hundred times the speed of parsing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from spigot_nlp.data.formats.files import FormatError
from spigot_nlp.data.text.decoding import Decoder, Errors
from spigot_nlp.scale.sources import Damaged, Kind, Source, opened, opened_parquet

_BLOCK = 1 << 20
_REACH = 1 << 16  # bytes that a blank line may have
_MOST = 64  # pieces of a compressed file: each is unpacked up to its end
_LINE, _PARAGRAPH, _BLOCK_END = re.compile(rb"\n"), re.compile(rb"\n[ \t\r]*\n"), re.compile(rb"\n\r?\n")
_SPACE = re.compile(rb"\s*")
# The first byte of a character that is white space in no script: what is before it is whole, with all that follows it.
_SEEN = re.compile(
    rb"[!-~\xc3-\xd7\xd9-\xe0\xe4-\xee\xf0-\xf4]|\xd8[^\x9c]|\xe1[^\x9a]|\xe2[^\x80\x81]|\xe3[^\x80]|\xef[^\xbb]"
)
_NEWDOC = re.compile(rb"^#[ \t]*newdoc[ \t]+id[ \t]*=[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True)
class Span:
    """A part of a file: what begins and ends in it, it has whole, but for texts, of which it may have some paragraphs.

    Attributes:
        name: The path or URL of the file.
        kind: What it holds.
        packing: How it is compressed.
        start: The first byte, unpacked; the first row of parquet.
        stop: The byte or row after the last; `None` at the end.
        character: How many characters stand before it.
        line: How many lines stand before it.
        document: The document that it begins in, if CoNLL-U names them.
        weight: About how many bytes it has.
        reason: Why nothing of the file can be read; empty if it can.

    Example:
        >>> Span("news.txt", "text").stop is None
        True
    """

    name: str
    kind: Kind
    packing: str = ""
    start: int = 0
    stop: int | None = None
    character: int = 0
    line: int = 0
    document: str = ""
    weight: int = 0
    reason: str = ""


def needs_survey(source: Source, size: int) -> bool:
    """Whether a file may have to be cut.

    Args:
        source: The file.
        size: How many bytes a piece should have.

    Example:
        >>> needs_survey(Source("a.txt", "text", "", 1000, 0), 4000), needs_survey(Source("a.txt", "text", "", 9, 0), 4)
        (False, True)
    """
    return source.kind == "parquet" or source.weight > size


def whole(source: Source) -> Span:
    """All of a file.

    Example:
        >>> whole(Source("a.txt", "text", "", 1000, 0)).weight
        1000
    """
    return Span(source.name, source.kind, source.packing, weight=source.weight)


def survey(
    source: Source,
    size: int,
    *,
    lines: bool = False,
    errors: Errors = "strict",
    columns: tuple[str, ...] = (),
    folder: str = "",
) -> list[Span]:
    """The parts that a file is cut into.

    Args:
        source: The file.
        size: How many bytes a part should have.
        lines: Whether each line of a text is a sentence.
        errors: What to do about bytes that are not UTF-8.
        columns: What a parquet file must have.
        folder: What a path is relative to.

    Raises:
        ValueError: If a parquet file has no such column.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> file = Path(tempfile.mkdtemp()) / "news.txt"
        >>> _ = file.write_text("Über Nacht.\\n\\nIt rained.\\n\\nAnd rained.", encoding="utf-8")
        >>> source = Source(str(file), "text", "", file.stat().st_size, 0)
        >>> [(span.start, span.stop, span.character) for span in survey(source, 10)]
        [(0, 14, 0), (14, 26, 13), (26, None, 25)]
    """
    try:
        if source.kind == "parquet":
            return list(_rows(source, size, columns, folder))
        return list(_cuts(source, size, lines, errors, folder))
    except (Damaged, FormatError) as error:
        if source.kind != "text":
            return [whole(source)]  # what stands before the damage can be read
        reason = error.reason if isinstance(error, FormatError) else str(error)
        return [replace(whole(source), reason=reason)]


def _cuts(source: Source, size: int, lines: bool, errors: Errors, folder: str) -> Iterator[Span]:
    where = {"jsonl": _LINE, "conllu": _BLOCK_END, "text": _LINE if lines else _PARAGRAPH}[source.kind]
    decoder = Decoder(source.name, errors) if source.kind == "text" else _Uncounted()
    size = max(size, source.weight // _MOST) if source.packing else size
    base, pending = 0, b""  # what was read and not yet counted, and where that begins
    span = Span(source.name, source.kind, source.packing)
    characters, number, document = 0, 0, ""

    def count(some: bytes) -> None:
        nonlocal base, characters, number, document
        base += len(some)
        characters += len(decoder.feed(some))
        number += some.count(b"\n")
        if source.kind == "conllu" and (named := _NEWDOC.findall(some)):
            document = named[-1].decode(errors="replace")

    with opened(source.name, source.packing, folder=folder) as stream:
        while block := stream.read(_BLOCK):
            pending += block
            while (target := span.start + size - base) < len(pending):
                place = _place(where, pending, max(0, target), text=source.kind == "text")
                if place is None:
                    break
                count(pending[:place])
                pending = pending[place:]
                yield replace(span, stop=base, weight=base - span.start)
                span = replace(span, start=base, character=characters, line=number, document=document)
            # What no cut can be in any more. In CoNLL-U whole lines, so that no name of a document is cut in two.
            safe = max(0, len(pending) - _REACH)
            if source.kind == "conllu" and len(pending) < 16 * _BLOCK:
                safe = pending.rfind(b"\n", 0, safe) + 1
            count(pending[:safe])
            pending = pending[safe:]
    count(pending)
    decoder.close()
    yield replace(span, weight=base - span.start)


def _place(where: re.Pattern[bytes], some: bytes, start: int, *, text: bool) -> int | None:
    """The first place to cut from some place on; `None` if there is none yet."""
    while (match := where.search(some, start)) is not None:
        start = _SPACE.match(some, match.end()).end() if text else match.end()  # pyright: ignore[reportOptionalMemberAccess]
        if _SEEN.match(some, start) if text else start < len(some):
            return start
        if start == len(some):
            return None
    return None


class _Uncounted:
    """What stands for a decoder where nobody needs to know the number of characters."""

    def feed(self, piece: bytes) -> str:
        return ""

    def close(self) -> str:
        return ""


def _rows(source: Source, size: int, columns: tuple[str, ...], folder: str) -> Iterator[Span]:
    with opened_parquet(source.name, folder) as file:
        known = file.schema_arrow.names
        for column in columns:
            if column not in known:
                raise ValueError(
                    f"{source.name} has no column {column!r}; it has {', '.join(known)}. Name the one with the text "
                    "by --text-field, and the one with names of documents by --id-field."
                )
        meta, place = file.metadata, 0
        for k in range(meta.num_row_groups):
            group = meta.row_group(k)
            chunks = (group.column(c) for c in range(group.num_columns))
            weight = sum(c.total_uncompressed_size for c in chunks if c.path_in_schema.split(".")[0] in columns)
            parts = max(1, min(group.num_rows, -(-weight // size)))
            for part in range(parts):
                start = place + group.num_rows * part // parts
                stop = place + group.num_rows * (part + 1) // parts
                yield Span(source.name, "parquet", start=start, stop=stop, weight=weight // parts)
            place += group.num_rows
