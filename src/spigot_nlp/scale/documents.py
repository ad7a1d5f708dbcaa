"""The documents in a part of a file: their names, their text or sentences, or why they cannot be read."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, NamedTuple

from spigot_nlp.data.formats.conll import parse_conllu
from spigot_nlp.data.formats.files import FormatError, Malformed, decode, split_blocks
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.text.decoding import Decoder, Errors
from spigot_nlp.data.text.spacing import Spacing
from spigot_nlp.scale.sources import Damaged, opened, opened_parquet
from spigot_nlp.scale.survey import Span

_BLOCK = 1 << 16
_ROWS = 64
_WIDEST = 1000  # words of a sentence: time and memory grow with their square at least


@dataclass(frozen=True)
class Manner:
    """How documents are read.

    Attributes:
        text: The field of JSON lines, or column of parquet, that has the text.
        id: The one that names the document; where there is none, it is called by its file and line or row.
        lines: Whether each line is a sentence.
        tokenised: Whether there is a space between all tokens already.
        errors: What to do about bytes that are not UTF-8.
        folder: What paths are relative to.

    Example:
        >>> Manner().text
        'text'
    """

    text: str = "text"
    id: str | None = None
    lines: bool = False
    tokenised: bool = False
    errors: Errors = "strict"
    folder: str = ""


class Placed(NamedTuple):
    """A sentence, and where it stands.

    Attributes:
        document: The document that it is of.
        sentence: The sentence.
        start: Where it begins in the text of the document; `None` if there is no such text.
        opens: Whether it is the first of its document.

    Example:
        >>> Placed("news", Sentence(("Rain",)), 0, True).start
        0
    """

    document: str
    sentence: Sentence
    start: int | None
    opens: bool


@dataclass(frozen=True)
class Document:
    """A document, or a part of one.

    Attributes:
        id: What it is called.
        pieces: Its text, in pieces.
        start: How many characters of it stand before these.
        sentences: Its sentences, if it is divided already.
        reason: Why it cannot be read; empty if it can.
        counts: Whether it is to be counted: that part of a document is which has its beginning.
        line: The line of its file, from 1; 0 if that says nothing.

    Example:
        >>> document = Document("note", ["It rained.  ", "Why?"])
        >>> [(placed.sentence.id, placed.start) for placed in document.placed(Conventions(), Manner())]
        [('note:0', 0), ('note:12', 12)]
    """

    id: str
    pieces: Iterable[str] = ()
    start: int = 0
    sentences: tuple[Sentence, ...] | None = None
    reason: str = ""
    counts: bool = True
    line: int = 0

    def placed(self, conventions: Conventions, manner: Manner) -> Iterator[Placed]:
        """Its sentences.

        Args:
            conventions: How text is divided.
            manner: How documents are read.

        Raises:
            ValueError: If one of them is too long to be parsed.
        """
        if self.sentences is not None:
            for sentence in self.sentences:
                yield Placed(self.id, _checked(sentence), None, False)
            return
        place, opens = self.start, self.counts
        for found in conventions.sentences(self.pieces, lines=manner.lines, tokenised=manner.tokenised):
            spacing = found.source
            assert isinstance(spacing, Spacing)
            place += len(spacing.before)
            named = Sentence(_checked(found).forms, source=spacing, id=f"{self.id}:{place}")
            yield Placed(self.id, named, place, opens)
            place += sum(map(len, found.forms)) + sum(map(len, spacing.after))
            opens = False


def _checked(sentence: Sentence) -> Sentence:
    if len(sentence) > _WIDEST:
        raise ValueError(f"a sentence of {len(sentence):,} words; at most {_WIDEST:,} are parsed. Divide it.")
    return sentence


def documents(span: Span, manner: Manner) -> Iterator[Document]:
    """The documents of a part of a file, one after another; each is to be read before the next.

    Args:
        span: The part.
        manner: How they are read.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> file = Path(tempfile.mkdtemp()) / "two.jsonl"
        >>> _ = file.write_text('{"id": "a", "text": "It rained."}\\n{"txt": "Why?"}\\n')
        >>> for document in documents(Span("two.jsonl", "jsonl"), Manner(folder=str(file.parent))):
        ...     print(document.id, document.reason or list(document.pieces))
        a ['It rained.']
        two.jsonl:2 no field 'text'; it has 'txt'. Name the one with the text by --text-field.
    """
    if span.reason:
        yield Document(span.name, reason=span.reason)
        return
    read = {"text": _texts, "jsonl": _json_lines, "conllu": _blocks, "parquet": _rows}[span.kind]
    try:
        yield from read(span, manner)
    except Damaged as error:
        yield Document(span.name, reason=str(error))
    except FormatError as error:
        yield Document(f"{span.name}:{span.line + error.line}", reason=error.reason)


def _texts(span: Span, manner: Manner) -> Iterator[Document]:
    try:  # to the end, before anything of it is parsed: a document is whole or it is bad
        for _ in _text(span, manner):
            pass
    except (Damaged, FormatError) as error:
        reason = error.reason if isinstance(error, FormatError) else str(error)
        yield Document(span.name, reason=reason)
        return
    yield Document(span.name, _text(span, manner), span.character, counts=not span.start)


def _text(span: Span, manner: Manner) -> Iterator[str]:
    decoder = Decoder(span.name, manner.errors)
    with opened(span.name, span.packing, start=span.start, folder=manner.folder) as stream:
        for piece in _limited(stream, span):
            yield decoder.feed(piece)
    yield decoder.close()


def _limited(stream: IO[bytes], span: Span) -> Iterator[bytes]:
    left = None if span.stop is None else span.stop - span.start
    while left is None or left > 0:
        piece = stream.read(_BLOCK if left is None else min(left, _BLOCK))
        if not piece:
            return
        if left is not None:
            left -= len(piece)
        yield piece


def _lines(span: Span, manner: Manner) -> Iterator[bytes]:
    with opened(span.name, span.packing, start=span.start, folder=manner.folder) as stream:
        rest: list[bytes] = []
        for piece in _limited(stream, span):
            *whole, last = piece.split(b"\n")
            for line in whole:
                yield b"".join((*rest, line, b"\n"))
                rest.clear()
            rest.append(last)
        if any(rest):
            yield b"".join(rest)


def _json_lines(span: Span, manner: Manner) -> Iterator[Document]:
    for number, line in enumerate(_lines(span, manner), span.line + 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield _json_document(line, f"{span.name}:{number}", number, manner)


def _json_document(line: bytes, name: str, number: int, manner: Manner) -> Document:
    try:
        record = json.loads(line.decode(errors=manner.errors))
    except UnicodeDecodeError as error:
        return Document(name, reason=f"byte 0x{line[error.start]:02x} of the line is not UTF-8.", line=number)
    except (ValueError, RecursionError) as error:
        return Document(name, reason=f"the line is not JSON ({str(error) or type(error).__name__}).", line=number)
    if not isinstance(record, dict):
        return Document(name, reason="the line is JSON, but no object with fields.", line=number)
    own = record.get(manner.id or "id")
    if isinstance(own, str | int) and not isinstance(own, bool) and str(own):
        name = str(own)
    elif manner.id is not None:
        return Document(name, reason=f"the field {manner.id!r} has no name of the document.", line=number)
    if manner.text not in record:
        known = ", ".join(repr(key) for key in list(record)[:8]) or "none"
        reason = f"no field {manner.text!r}; it has {known}. Name the one with the text by --text-field."
        return Document(name, reason=reason, line=number)
    return text_document(name, record[manner.text], number, f"the field {manner.text!r}")


def text_document(name: str, text: object, number: int, called: str) -> Document:
    """A document that is at hand, or why it is none.

    Args:
        name: What it is called.
        text: Its text.
        number: The line or row that it is from.
        called: What the place of the text is called.

    Example:
        >>> text_document("note", None, 3, "the field 'text'").reason
        "the field 'text' is NoneType, not text."
    """
    if not isinstance(text, str):
        return Document(name, reason=f"{called} is {type(text).__name__}, not text.", line=number)
    try:
        text.encode()
        name.encode()
    except UnicodeEncodeError:
        name = name.encode(errors="replace").decode()
        return Document(name, reason=f"{called} has half of a surrogate pair, which no text has.", line=number)
    return Document(name, (text,), line=number)


def _blocks(span: Span, manner: Manner) -> Iterator[Document]:
    document = span.document or span.name
    for raw in split_blocks(_lines(span, manner), span.name):
        for line in (*raw.lead.splitlines(), *raw.lines):
            if not line.startswith(b"#"):
                break
            name, _, value = line[1:].partition(b"=")
            if name.split() == [b"newdoc", b"id"]:
                document = value.strip().decode(errors="replace")
        number = span.line + raw.first
        try:
            sentence = parse_conllu(decode(raw))
        except Malformed as error:
            yield Document(f"{span.name}:{number + error.offset}", reason=error.reason, line=number + error.offset)
            continue
        named = sentence if sentence.id else replace(sentence, id=f"{span.name}:{number}")
        yield Document(document, sentences=(named,), line=number)


def _rows(span: Span, manner: Manner) -> Iterator[Document]:
    with opened_parquet(span.name, manner.folder) as file:
        named = manner.id or ("id" if "id" in file.schema_arrow.names else None)
        columns = [manner.text, *([named] if named else [])]
        row = 0
        groups = []
        for k in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(k).num_rows
            if row < (span.stop or 0) and row + rows > span.start:
                groups.append((k, row))
            row += rows
        for k, first in groups:
            row = first
            for batch in file.iter_batches(batch_size=_ROWS, row_groups=[k], columns=columns):
                inside = range(max(0, span.start - row), min(batch.num_rows, (span.stop or 0) - row))
                for place in inside:
                    values = {name: batch.column(name)[place].as_py() for name in columns}
                    own = values.get(named) if named else None
                    name = f"{span.name}:{row + place + 1}" if own in (None, "") else str(own)
                    yield text_document(name, values[manner.text], row + place + 1, f"the column {manner.text!r}")
                row += batch.num_rows
                if row >= (span.stop or 0):
                    break
