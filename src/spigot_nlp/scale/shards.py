"""What is written of a piece of a corpus: a shard of answers, and one of what could not be read if there is any."""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from spigot_nlp.data.formats import FORMATS
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.formats.files import written
from spigot_nlp.data.formats.json_lines import with_class
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.spacing import with_text
from spigot_nlp.scale.columns import row_of, schema_of, starts_of
from spigot_nlp.scale.documents import Placed

if TYPE_CHECKING:
    from spigot_nlp.models.parser import Parser

Style: TypeAlias = Literal["parquet", "jsonl", "conllu", "sdp"]
"""The formats of shards."""

_UNFIT = re.compile(r"[\s/%]+")
_ROWS = 1 << 14  # of a group of rows in parquet


@dataclass(frozen=True)
class Bad:
    """A document that could not be parsed.

    Attributes:
        document: What it is called.
        source: The file it is in.
        line: The line, or row, of that file, from 1; 0 if that says nothing.
        reason: Why.

    Example:
        >>> Bad("news.jsonl:3", "news.jsonl", 3, "the line is not JSON.").document
        'news.jsonl:3'
    """

    document: str
    source: str
    line: int
    reason: str


@dataclass(frozen=True)
class Look:
    """What of an answer is written, and how.

    Attributes:
        style: The format.
        graph: The graph that is written where there is a place for one; `None` if none is.

    Example:
        >>> Look("sdp", "graph").suffix
        '.sdp'
    """

    style: Style
    graph: str | None = None

    @property
    def suffix(self) -> str:
        """How the names of shards end."""
        return f".{self.style}"

    @classmethod
    def of(cls, parser: "Parser", style: Style, *, graph: bool = False, field: str | None = None) -> "Look":
        """How the answers of a system are written.

        Args:
            parser: The system.
            style: The format.
            graph: Whether the enhanced column of CoNLL-U gets the graph.
            field: Which graph, if the system finds several.

        Raises:
            ValueError: If the format has no place for what the system finds, or it is not clear for which graph.
        """
        names = [name for name, annotation in parser.annotations.items() if type(annotation).name == "graph"]
        if graph and style != "conllu":
            raise ValueError(f"--graph is about the enhanced column of CoNLL-U, and {style} has none; leave it out.")
        if not (graph or style == "sdp"):
            if field is not None:
                raise ValueError(f"--field is {field}, but {style} has no place for one graph; leave it out.")
            if style == "conllu" and not {"heads", "tags", "upos"} & set(parser.gives):
                raise ValueError("the model finds no trees, so there are none to write; use --to jsonl or parquet.")
            return cls(style)
        if not names:
            raise ValueError("the model finds no graphs, so there are none to write; use --to jsonl or parquet.")
        if field is None and len(names) > 1:
            raise ValueError(
                f"the model finds {', '.join(names)}, and here is a place for one graph; name it with --field."
            )
        if field is not None and field not in names:
            raise ValueError(f"--field is {field}; the model finds {', '.join(names)}.")
        return cls(style, field or names[0])


@contextlib.contextmanager
def opened_shard(path: Path, look: Look, parser: "Parser") -> Iterator[Callable[[Sequence[Any]], object]]:
    """A shard that is there when it is complete, and what writes rendered answers to it.

    Args:
        path: Its name.
        look: What is written.
        parser: The system whose answers these are.
    """
    with written(path) as file:
        if look.style == "parquet":
            with _parquet(file, parser) as put:
                yield put
        else:
            yield lambda texts: file.write("".join(texts).encode())
            if not file.tell():
                file.write(FORMATS[look.style].header.encode())
        file.flush()
        os.fsync(file.fileno())  # a shard that is said to be done survives the machine


@contextlib.contextmanager
def _parquet(file: IO[bytes], parser: "Parser") -> Iterator[Callable[[Sequence[Any]], object]]:
    import pyarrow  # pyright: ignore[reportMissingImports]
    import pyarrow.parquet  # pyright: ignore[reportMissingImports]

    schema, waiting = schema_of(parser), []
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:

        def put(rows: Sequence[Any], least: int = _ROWS) -> None:
            waiting.extend(rows)
            if len(waiting) >= least:
                writer.write_table(pyarrow.Table.from_pylist(waiting, schema=schema))
                waiting.clear()

        yield put
        put((), 1)


def renderer(look: Look, parser: "Parser") -> Callable[[Placed, Sentence, bool], Any]:
    """What makes of an answer that which is written of it: a row of parquet, or text.

    Args:
        look: What is written.
        parser: The system whose answers these are.

    Returns:
        A function of the sentence, the answer, and whether it is the first of its shard.
    """
    names = list(parser.annotations)
    if look.style == "parquet":
        return lambda placed, answer, opens: row_of(placed, answer, names, parser.class_names)

    def render(placed: Placed, answer: Sentence, opens: bool) -> str:
        if look.graph is not None:
            answer = parser.annotations[look.graph].written(answer)
        elif look.style == "conllu":
            answer = answer.put("graph", None)
        if look.style in ("conllu", "jsonl"):
            answer = with_class(answer, parser.class_names)
        dress = {"jsonl": _with_place, "conllu": _with_comments, "sdp": _with_line}[look.style]
        return FORMATS[look.style].render(dress(placed, answer), opens)[0] + ("\n" if look.style == "jsonl" else "\n\n")

    return render


def _with_place(placed: Placed, answer: Sentence) -> Sentence:
    starts = starts_of(placed)
    place = {"document": placed.document, **({} if starts is None else {"start": placed.start, "starts": starts})}
    return replace(answer, source=None, annotations={**answer.annotations, **place})


def _with_comments(placed: Placed, answer: Sentence) -> Sentence:
    answer = with_text(replace(answer, id=fit_id(answer.id)))
    source = answer.source
    if placed.start is None or not isinstance(source, ConllSource):
        return answer
    opening = (f"# newdoc id = {_line(placed.document)}",) if placed.opens else ()
    comments = (*opening, f"# sent_id = {answer.id}", f"# start = {placed.start}", *source.comments)
    return replace(answer, source=replace(source, comments=comments))


def _with_line(placed: Placed, answer: Sentence) -> Sentence:
    return replace(answer, id=_line(answer.id))


def fit_id(id: str) -> str:
    """An id as the ids of sentences may be in Universal Dependencies: without slashes and white space.

    These are written as in addresses, and so is the sign that they are written by, so that no two become one.

    Example:
        >>> fit_id("may/my notes.txt:0"), fit_id("100%:0")
        ('may%2Fmy%20notes.txt:0', '100%25:0')
    """
    return _UNFIT.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), id)


def _line(name: str) -> str:
    """A name that stands on a line: what is white space in it is one space."""
    return " ".join(name.split())


def write_errors(path: Path, bad: Sequence[Bad]) -> None:
    """Write what could not be read, as JSON lines; if there is nothing, a file of that name goes.

    Args:
        path: The file.
        bad: The documents.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "errors.jsonl"
        >>> write_errors(path, [Bad("news.jsonl:3", "news.jsonl", 3, "the line is not JSON.")])
        >>> print(path.read_text().strip())
        {"document": "news.jsonl:3", "source": "news.jsonl", "line": 3, "reason": "the line is not JSON."}
    """
    if not bad:
        path.unlink(missing_ok=True)
        return
    with written(path) as file:
        for one in bad:
            file.write(f"{json.dumps(asdict(one), ensure_ascii=False)}\n".encode())
        file.flush()
        os.fsync(file.fileno())
