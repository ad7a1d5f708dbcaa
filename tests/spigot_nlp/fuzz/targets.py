"""What is fuzzed: a name, inputs to begin with, and a function of bytes that checks what can be checked."""

import io
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

from spigot_nlp.config import load_config
from spigot_nlp.data.formats import FORMATS, read, write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.vocab import read_vectors
from spigot_nlp.models import checkpoint
from spigot_nlp.serve.requests import read_query, read_request
from tests.spigot_nlp.fuzz import seeds, sst_reader
from tests.spigot_nlp.fuzz.contract import Broken
from tests.spigot_nlp.parsing import load


@dataclass(frozen=True)
class Target:
    """Something that takes bytes.

    Attributes:
        name: What failures are filed under.
        seeds: Makes the inputs to begin with.
        run: Takes an input. It raises what a user would see, and `Broken` for an answer that cannot be right.
        share: How many of the cases of a round it gets: less where one takes long.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    run: Callable[[bytes], object]
    share: float = 1.0

    def __str__(self) -> str:
        return self.name


def _round_trip(data: bytes, format: str) -> None:
    """What was read is written as it was, and read again is the same."""
    sentences = list(read(io.BytesIO(data), format))
    if format.endswith("phrases") or not sentences:
        return
    stream = io.BytesIO()
    write(sentences, stream, format)
    again = list(read(io.BytesIO(stream.getvalue()), format))
    if [_plain(sentence) for sentence in again] != [_plain(sentence) for sentence in sentences]:
        raise Broken(f"what was written reads differently: {stream.getvalue()[:500]!r}")


def _plain(sentence: Sentence) -> tuple[object, ...]:
    return sentence.forms, sentence.lemmas, sentence.tags, sentence.heads, sentence.graph, sentence.label


def _trees(data: bytes) -> None:
    """A second reader agrees on what is a tree, and on its words."""
    try:
        expected = sst_reader.read_trees(data)
    except sst_reader.NoTree:
        expected = None
    except RecursionError:
        return
    try:
        found = [(sentence.label, sentence.forms) for sentence in read(io.BytesIO(data), "sst")]
    except ValueError:
        found = None
    if found != expected and not data.startswith(b"\x1f\x8b"):
        raise Broken(f"read as {found!r:.500}, and by another reader as {expected!r:.500}")


def _text(data: bytes) -> None:
    """Every token stands in the text, one after another."""
    text, place = data.decode(errors="replace"), 0
    for sentence in Conventions().sentences(text):
        if not sentence.forms or not all(sentence.forms):
            raise Broken("a sentence without words, or an empty word")
        for form in sentence.forms:
            place = text.find(form, place)
            if place < 0:
                raise Broken(f"the word {form!r} is not in the text, or not in its place")
            place += len(form)


def _query(data: bytes) -> None:
    query = read_query(read_request(data), {"rain": Conventions(), "other": Conventions(hyphens=False)})
    if len(query.constraints) > len(list(query.sentences)) or not query.systems:
        raise Broken(f"a query that does not hang together: {query}")


def _config(data: bytes) -> None:
    with _file(data, "mine.toml") as path:
        load_config(path)


def _damaged_run(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        shutil.copytree(seeds.run(), run)
        (run / name).write_bytes(data)
        parser = load(run)
        list(parser.pipe(seeds.SENTENCES[:2]))


def _tagger(data: bytes) -> None:
    with _file(data, "tagger.safetensors") as path:
        list(Tagger.load(path).tag(seeds.SENTENCES[:2]))


def _vectors(data: bytes) -> None:
    with _file(data, "vectors.txt") as path:
        read_vectors(path)


class _file:
    """A file with some bytes, for as long as it is needed."""

    def __init__(self, data: bytes, name: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / name
        self._path.write_bytes(data)

    def __enter__(self) -> Path:
        return self._path

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _shipped() -> list[bytes]:
    return [
        file.read_bytes()
        for file in (resources.files("spigot_nlp") / "configs").iterdir()
        if file.name.endswith(".toml")
    ]


def _run_file(name: str) -> list[bytes]:
    return [(seeds.run() / name).read_bytes()]


TARGETS = [
    *(Target(f"read-{name}", partial(seeds.of_format, name), partial(_round_trip, format=name)) for name in FORMATS),
    Target("sst-twice", lambda: seeds.TREES, _trees, 3.0),
    Target("text", lambda: seeds.TEXTS, _text, 2.0),
    Target("query", lambda: seeds.QUERIES, _query, 2.0),
    Target("config", _shipped, _config, 0.3),
    Target("vectors", lambda: seeds.VECTORS, _vectors),
    Target("tagger", lambda: _run_file(checkpoint.TAGGER), _tagger, 0.5),
    *(
        Target(f"run-{name}", partial(_run_file, name), partial(_damaged_run, name=name), 0.15)
        for name in (checkpoint.CONFIG, checkpoint.VOCAB, checkpoint.MODEL)
    ),
]
