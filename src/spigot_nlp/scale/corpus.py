"""A corpus of any size, parsed into a folder of shards: by processes of this machine, or on a Ray cluster."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import spigot
from spigot_nlp.bundled import run_folder
from spigot_nlp.data.text.decoding import Errors
from spigot_nlp.scale.documents import Manner
from spigot_nlp.scale.ledger import Ledger, Manifest, opened_ledger
from spigot_nlp.scale.pieces import Counts, Piece, gathered
from spigot_nlp.scale.shards import Look, Style
from spigot_nlp.scale.sources import Kind, Source, find_sources
from spigot_nlp.scale.survey import Span, needs_survey, whole
from spigot_nlp.scale.team import Failure, Team, handed_out
from spigot_nlp.scale.worker import Order, own_plugins
from spigot_nlp.threads import cores

PIECE = 4_000_000
"""Bytes of text that become one shard, unless one says otherwise: some minutes of work for one core."""


@dataclass(frozen=True)
class Progress:
    """How far a corpus is.

    Attributes:
        doing: What is being done: `surveying` or `parsing`.
        done: How many files are surveyed, or pieces parsed.
        total: How many there are.
        counts: How much was in the pieces that are parsed.

    Example:
        >>> Progress("parsing", 3, 10, Counts(words=500)).done
        3
    """

    doing: str
    done: int
    total: int
    counts: Counts


@dataclass(frozen=True)
class Options:
    """What of a command decides what comes out. To go on with a corpus, all of it must be as before.

    Attributes:
        to: The format of the shards.
        graph: Whether the enhanced column of CoNLL-U gets the graph.
        field: Which graph is written where there is a place for one.
        kind: What the files hold, if their names do not tell.
        text: The field or column that has the text.
        id: The one that names documents.
        lines: Whether each line is a sentence.
        tokenised: Whether there is a space between all tokens already.
        errors: What to do about bytes that are not UTF-8.
        precision: What words are encoded in.
        piece: How many bytes of text become one shard.

    Example:
        >>> Options(to="parquet").piece
        4000000
    """

    to: Style = "jsonl"
    graph: bool = False
    field: str | None = None
    kind: Kind | None = None
    text: str = "text"
    id: str | None = None
    lines: bool = False
    tokenised: bool = False
    errors: Errors = "strict"
    precision: str = "int16"
    piece: int = PIECE


def parse_corpus(
    model: str | os.PathLike[str],
    inputs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    options: Options = Options(),
    *,
    on: str = "processes",
    workers: int | None = None,
    threads: int = 1,
    device: str = "cpu",
    watch: Callable[[Progress], None] | None = None,
) -> Manifest:
    """Parse a corpus into a folder of shards; if some of that is done already, the rest of it.

    Every document is in the shards once, or among the errors once, whatever was interrupted or lost on the way.

    Args:
        model: The folder that `spigot train` made, or the name of a model that comes with spigot.
        inputs: Files, folders and URLs.
        out: The folder of the shards, which is made if need be.
        options: How documents are read, and answers written.
        on: `processes` of this machine, `ray` for the Ray cluster of this machine, or the address of one.
        workers: How many there are to be; by default as many as there are cores.
        threads: How many threads each may use.
        device: Where to compute.
        watch: Told how far it is.

    Returns:
        What came of it.

    Raises:
        ValueError: If something is wrong with what is asked for, or the folder has answers to something else.
        RuntimeError: If some pieces could not be parsed; the others are.
    """
    from spigot_nlp.models import checkpoint

    if options.piece < 1 or threads < 1 or (workers is not None and workers < 1):
        raise ValueError(
            f"piece is {options.piece}, threads is {threads} and workers is {workers}; all must be at least 1."
        )
    folder = run_folder(model)
    parser = checkpoint.open_run(folder)
    if parser.reads_gold:
        raise ValueError(f"{model} reads the right trees of sentences, and a corpus has none; use spigot predict.")
    look = Look.of(parser, options.to, graph=options.graph, field=options.field)
    if look.style == "parquet":
        from spigot_nlp.scale.columns import schema_of

        schema_of(parser)  # complains at once if there is no pyarrow
    sources = find_sources([os.fspath(name) for name in inputs], options.kind)
    _check_apart(sources, Path(out))
    asked = {
        "spigot": spigot.__version__,
        "model": {"name": os.fspath(model), "fingerprint": fingerprint(folder)},
        "inputs": [[source.name, source.size, source.modified] for source in sources],
        "options": dict(vars(options)),
    }
    manner = Manner(options.text, options.id, options.lines, options.tokenised, options.errors, os.getcwd())
    with opened_ledger(Path(out).resolve(), asked, look.suffix) as ledger:
        order = Order(
            model=str(folder.resolve()),
            out=str(ledger.folder),
            look=look,
            manner=manner,
            size=options.piece,
            mark=ledger.mark,
            device=device,
            precision=options.precision,
            threads=threads,
            plugins=own_plugins(),
        )
        return _Run(ledger, sources, order, watch or (lambda progress: None)).finish(
            lambda: _team(order, on, workers, folder)
        )


@dataclass
class _Run:
    ledger: Ledger
    sources: Sequence[Source]
    order: Order
    watch: Callable[[Progress], None]

    def finish(self, hire: Callable[[], Team]) -> Manifest:
        """Do what is left to do."""
        pieces = self.ledger.pieces
        if pieces is not None and all(piece.number in self.ledger.done for piece in pieces):
            return self.ledger.write(complete=True)
        complete = False
        try:
            with hire() as team:
                if pieces is None:
                    pieces = gathered(self._spans(team), self.order.size)
                    self.ledger.plan(pieces)
                self._parse(pieces, team)
            complete = True
        finally:
            manifest = self.ledger.write(complete=complete)
        return manifest

    def _spans(self, team: Team) -> list[Span]:
        """The parts of all files, in their order."""
        large = [source for source in self.sources if needs_survey(source, self.order.size)]
        found: dict[str, list[Span]] = {}
        for source, spans in handed_out(large, team):
            if isinstance(spans, Failure):
                raise ValueError(spans.reason)
            found[source.name] = spans
            self.watch(Progress("surveying", len(found), len(large), Counts()))
        return [span for source in self.sources for span in found.get(source.name) or [whole(source)]]

    def _parse(self, pieces: Sequence[Piece], team: Team) -> None:
        done = self.ledger.done
        counts = Counts.total(list(done.values()))
        left = [piece for piece in pieces if piece.number not in done]
        failed: list[str] = []
        self.watch(Progress("parsing", len(done), len(pieces), counts))
        for piece, answer in handed_out(left, team):
            if isinstance(answer, Failure):
                failed.append(f"{piece.spans[0].name}: {answer.reason}")
                continue
            self.ledger.add(piece, answer)
            counts += answer
            self.watch(Progress("parsing", len(done), len(pieces), counts))
        if failed:
            raise RuntimeError(
                f"{len(failed)} of {len(pieces)} pieces could not be parsed; the same command tries them again. "
                f"The first: {failed[0]}"
            )


def _team(order: Order, on: str, workers: int | None, model: Path) -> Any:
    if on == "processes":
        from spigot_nlp.scale.processes import ProcessTeam

        return ProcessTeam(order, workers or max(1, cores() // order.threads))
    from spigot_nlp.scale.machines import RayTeam, packed_model

    return RayTeam(replace(order, packed=packed_model(model)), on, workers)


def _check_apart(sources: Sequence[Source], out: Path) -> None:
    """Complain if a folder is to be read while it is written."""
    folder = out.resolve()
    for source in sources:
        if folder in Path(source.name).resolve().parents:
            raise ValueError(f"{source.name} is in {out}, where the answers go; choose another --out.")


def fingerprint(model: Path) -> str:
    """What tells a model from all others: a hash of its files.

    Args:
        model: Its folder.

    Example:
        >>> import tempfile
        >>> len(fingerprint(Path(tempfile.mkdtemp())))
        64
    """
    from spigot_nlp.scale.machines import packed_model

    found = hashlib.sha256()
    for name, data in packed_model(model).items():
        found.update(f"{name} {len(data)}\n".encode())
        found.update(data)
    return found.hexdigest()
