"""What a worker does: it loads the model once, and makes shards of pieces until there are none left."""

import itertools
import os
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.text.foreign import Foreign
from spigot_nlp.plugins import load_announced, load_plugin
from spigot_nlp.scale.documents import Document, Manner, Placed, documents
from spigot_nlp.scale.pieces import Counts, Piece
from spigot_nlp.scale.shards import Bad, Look, opened_shard, renderer, write_errors
from spigot_nlp.scale.sources import Source
from spigot_nlp.scale.survey import Span, survey

if TYPE_CHECKING:
    from spigot_nlp.models.parser import Parser

MARK = ".mark"
"""The file in the folder of shards by which a machine knows that it sees the same folder."""

Task: TypeAlias = Source | Piece
"""What a worker is given: a file to survey, or a piece to parse."""

_PATIENCE = 5.0  # seconds until a shared folder shows on one machine what another has written
Numbered: TypeAlias = tuple[int, Placed]
"""A sentence, and the number of its document in the piece."""


@dataclass(frozen=True)
class Order:
    """What every worker is told.

    Attributes:
        model: The folder of the model.
        out: The folder of the shards.
        look: How answers are written.
        manner: How documents are read.
        size: How many bytes a piece should have.
        mark: What the file of that name in the folder of the shards says; empty if nobody needs to ask.
        device: Where to compute.
        precision: What words are encoded in.
        threads: How many threads a worker may use.
        plugins: Code of users to load first.
        packed: The files of the model, for machines that may not see its folder.

    Example:
        >>> Order("runs/spigot", "out", Look("jsonl")).threads
        1
    """

    model: str
    out: str
    look: Look
    manner: Manner = field(default_factory=Manner)
    size: int = 4_000_000
    mark: str = ""
    device: str = "cpu"
    precision: str = "int16"
    threads: int = 1
    plugins: tuple[str, ...] = ()
    packed: Mapping[str, bytes] | None = field(default=None, repr=False)


class Culprits(Exception):
    """Documents, by their places in a piece, that turned out to be bad after something of them may have been written.

    Example:
        >>> Culprits({3: "too long"}).reasons
        {3: 'too long'}
    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = dict(reasons)


class Worker:
    """Surveys files, and parses pieces.

    Args:
        order: What it is told.

    Example:
        >>> order = Order("runs/spigot", "out", Look("jsonl"))
        >>> Worker(order).order.out
        'out'
    """

    def __init__(self, order: Order) -> None:
        self.order = order

    def unfit(self) -> str:
        """Why this machine cannot do the work, in a sentence; empty if it can."""
        out, deadline = Path(self.order.out), time.monotonic() + _PATIENCE
        while self.order.mark and _read(out / MARK) != self.order.mark:
            if time.monotonic() > deadline or not out.is_dir():
                return (
                    f"{socket.gethostname()} does not see {out}; the folder of shards must be the same one, under the "
                    "same name, on every machine of the cluster."
                )
            time.sleep(0.1)
        return ""

    def do(self, task: Task) -> Any:
        """Survey a file, or parse a piece."""
        return self.survey(task) if isinstance(task, Source) else self.parse(task)

    def survey(self, source: Source) -> list[Span]:
        """The parts that a file is cut into."""
        manner = self.order.manner
        columns = (manner.text, *([manner.id] if manner.id else []))
        return survey(
            source, self.order.size, lines=manner.lines, errors=manner.errors, columns=columns, folder=manner.folder
        )

    def parse(self, piece: Piece) -> Counts:
        """Write the shard of a piece, and that of its errors.

        Whatever happens, there is all of it or nothing; and if it is done again, the same comes out.
        """
        started = time.monotonic()
        bad: dict[int, str] = {}
        while True:
            try:
                counts = self._write(piece, bad)
            except Culprits as found:  # what was written of them goes, so all is written again
                bad |= found.reasons
            else:
                return replace(counts, seconds=round(time.monotonic() - started, 3))

    @cached_property
    def parser(self) -> "Parser":
        """The model, loaded when it is first needed."""
        import torch

        from spigot_nlp.models import checkpoint

        order = self.order
        for name in order.plugins:
            load_plugin(name)
        load_announced()
        torch.set_num_threads(order.threads)
        precision: Any = order.precision
        if order.packed is None:
            return checkpoint.load(order.model, order.device, precision=precision)
        with tempfile.TemporaryDirectory() as folder:
            for name, data in order.packed.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            return checkpoint.load(folder, order.device, precision=precision)

    def _write(self, piece: Piece, bad: Mapping[int, str]) -> Counts:
        order, parser = self.order, self.parser
        errors: list[Bad] = []
        read, sentences, words, foreign = _Read(piece, order.manner, bad, errors), 0, 0, Foreign()
        with opened_shard(Path(order.out) / piece.shard(order.look.suffix), order.look, parser) as put:
            for chunk in chunks(read.sentences(parser)):
                put(self.rendered(chunk, opens=not sentences))
                sentences += len(chunk)
                words += sum(len(placed.sentence) for _, placed in chunk)
                foreign += parser.foreign(placed.sentence for _, placed in chunk)
            write_errors(Path(order.out) / piece.errors, errors)
        return Counts(read.documents, sentences, words, len(errors), lettered=foreign.words, new=foreign.new)

    def rendered(self, chunk: Sequence[Numbered], *, opens: bool = False) -> list[Any]:
        """What is written of some sentences.

        Args:
            chunk: The sentences, with the numbers of their documents.
            opens: Whether the first is the first of its shard.

        Raises:
            Culprits: If some documents cannot be parsed.
        """
        try:
            return self._answers(chunk, opens)
        except Exception:
            reasons: dict[int, str] = {}
            for number, some in itertools.groupby(chunk, key=lambda pair: pair[0]):
                try:
                    self._answers(list(some), False)
                except Exception as error:
                    reasons[number] = f"{type(error).__name__}: {error}"
            if not reasons:  # only all together are too much
                raise
            raise Culprits(reasons) from None

    def _answers(self, chunk: Sequence[Numbered], opens: bool) -> list[Any]:
        plain = chunk[0][1].start is not None
        found = self.parser.parse((placed.sentence for _, placed in chunk), plain=plain)
        pairs = zip((placed for _, placed in chunk), found, strict=True)
        return [self._render(placed, answer, opens and not k) for k, (placed, answer) in enumerate(pairs)]

    @cached_property
    def _render(self) -> Any:
        return renderer(self.order.look, self.parser)


@dataclass
class _Read:
    """The documents of a piece, counted as they are read."""

    piece: Piece
    manner: Manner
    bad: Mapping[int, str]
    errors: list[Bad]
    documents: int = 0

    def sentences(self, parser: "Parser") -> Iterator[Numbered]:
        number = 0
        for span in self.piece.spans:
            for document in documents(span, self.manner):
                number += 1
                if reason := document.reason or self.bad.get(number, ""):
                    self.errors.append(Bad(document.id, span.name, document.line, reason))
                    continue
                self.documents += document.counts
                yield from numbered(document, number, parser.conventions, self.manner)


def numbered(document: Document, number: int, conventions: Conventions, manner: Manner) -> Iterator[Numbered]:
    """The sentences of a document, each with the number of that.

    Args:
        document: The document.
        number: Its number.
        conventions: How text is divided.
        manner: How documents are read.

    Raises:
        Culprits: If it cannot be parsed.

    Example:
        >>> [number for number, _ in numbered(Document("note", ["It rained. Why?"]), 7, Conventions(), Manner())]
        [7, 7]
    """
    try:
        for placed in document.placed(conventions, manner):
            yield number, placed
    except ValueError as error:
        raise Culprits({number: str(error)}) from None


def chunks(sentences: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """As many sentences as are parsed at a time, all of them plain text or none.

    Args:
        sentences: The sentences.

    Example:
        >>> some = numbered(Document("note", ["It rained. Why?"]), 7, Conventions(), Manner())
        >>> [len(chunk) for chunk in chunks(some)]
        [2]
    """
    from spigot_nlp.models.parser import CHUNK

    for _, some in itertools.groupby(sentences, key=lambda pair: pair[1].start is not None):
        while chunk := list(itertools.islice(some, CHUNK)):
            yield chunk


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def own_plugins() -> tuple[str, ...]:
    """The plug-ins that this process was given, for those that work for it.

    Example:
        >>> own_plugins()
        ()
    """
    return tuple(name for name in os.environ.get("SPIGOT_PLUGINS", "").split(os.pathsep) if name)
