"""Corpora of any size: files cut into shards, and each shard parsed into a file of its own, here or on a Ray cluster.

A file of answers gets its name when it is complete, and what is there is not parsed again. So whatever is interrupted
or lost, and whenever: the same command goes on, nothing is lost, and nothing is there twice.
"""

import bz2
import contextlib
import gzip
import hashlib
import itertools
import json
import lzma
import os
import re
import secrets
import socket
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import spigot
from spigot_nlp.bundled import run_folder
from spigot_nlp.data.formats import FORMATS
from spigot_nlp.data.formats.conll import ConllSource, parse_conllu
from spigot_nlp.data.formats.files import FormatError, Malformed, decode, split_blocks, written
from spigot_nlp.data.formats.json_lines import with_class
from spigot_nlp.data.sentence import COLUMNS, Graph, Sentence
from spigot_nlp.data.text.reading import Decoder, Errors
from spigot_nlp.data.text.spacing import Spacing, with_text
from spigot_nlp.data.vocab import OutOfVocabulary
from spigot_nlp.encoders import READING, Precision
from spigot_nlp.garbage import gc_frozen
from spigot_nlp.locks import lock
from spigot_nlp.models.checkpoint import CONFIG, LEMMAS, MODEL, TAGGER, VOCAB
from spigot_nlp.models.parser import CHUNK, Parser
from spigot_nlp.parallel import ordered_map
from spigot_nlp.parse_files import graphs_of, kept_of
from spigot_nlp.plugins import PLUGINS, load_announced, load_plugin
from spigot_nlp.ray_cluster import cores as cluster_cores
from spigot_nlp.ray_cluster import join_cluster, last_line
from spigot_nlp.threads import cores, use_threads

STYLES = ("jsonl", "conllu", "sdp", "parquet")
_KINDS = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".conllu": "conllu",
    ".parquet": "parquet",
}
_PACKINGS = (".gz", ".bz2", ".xz", ".zst")
_ASKED, _MARK = "corpus.json", ".mark"
_WIDEST = 1000  # words of a sentence: time and memory grow with their square at least
_BLOCK = 1 << 20
_ROWS = 1 << 14  # of a group of rows in parquet
_NEEDED = "{0} needs pyarrow; install it with: pip install 'torch-spigot[ray]'"
_UNFIT = re.compile(r"[\s/%]+")


@dataclass(frozen=True)
class Counts:
    """How much was parsed.

    Attributes:
        documents: Documents; one that was cut counts where it begins.
        sentences: Their sentences.
        words: Their words.
        errors: Documents that could not be parsed.
        lettered: Words with a letter in them.
        new: Those of them that are new to the model.
        shards: Files that were written.
    """

    documents: int = 0
    sentences: int = 0
    words: int = 0
    errors: int = 0
    lettered: int = 0
    new: int = 0
    shards: int = 0

    @property
    def out_of_vocabulary(self) -> OutOfVocabulary:
        """How much of it is new to the model."""
        return OutOfVocabulary(self.lettered, self.new)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True)
class _Shard:
    """A part of a file, and the file of its answers."""

    name: str
    kind: str
    out: str
    start: int = 0  # the first byte, or group of rows
    stop: int | None = None
    line: int = 0  # how many lines, or rows, stand before it
    character: int = 0
    size: int = 0
    reason: str = ""  # why nothing of it can be read


@dataclass(frozen=True)
class _Job:
    """What every worker is told."""

    folder: str
    to: str
    graph: str | None
    text_field: str
    id_field: str | None
    one_per_line: bool
    tokenised: bool
    errors: Errors
    precision: Precision
    device: str
    threads: int
    mark: str = ""
    plugins: tuple[str, ...] = ()


def parse_corpus(
    model: str | os.PathLike[str],
    inputs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    ray: str | None = None,
    format: str | None = None,
    to: str = "jsonl",
    graph: bool = False,
    field: str | None = None,
    one_per_line: bool = False,
    tokenised: bool = False,
    errors: Errors = "strict",
    text_field: str = "text",
    id_field: str | None = None,
    shard_megabytes: float = 4.0,
    processes: int | None = None,
    threads: int = 1,
    device: str = "cpu",
    precision: Precision = READING,
    watch: Callable[[int, int, Counts], object] = lambda done, total, counts: None,
) -> Counts:
    """Parse a corpus into a folder; if some of that is done already, the rest of it.

    A file of the corpus becomes a file of the folder; a large one of text or JSON lines, if it is not compressed, and
    one of parquet become several, in their order: `news.txt-00000.jsonl`. A document that cannot be parsed becomes a
    row without words that says why, and stops nothing.

    Args:
        model: The folder that `spigot train` made, or the name of a model that comes with spigot. Its files are handed
            to the machines of a cluster.
        inputs: Files, folders and URLs: text, JSON lines, CoNLL-U and parquet; each but the last also as .gz, .bz2,
            .xz and .zst.
        out: The folder, which is made if need be; on a cluster the same one, under the same name, on every machine.
        ray: The address of a Ray cluster, or `auto` for that of this machine, which is started if there is none; by
            default processes of this machine do the work.
        format: What the files hold, if their names do not tell.
        to: The format of the answers: jsonl, conllu, sdp or parquet.
        graph: Whether the enhanced column of CoNLL-U gets the graph.
        field: Which graph is written where there is a place for one.
        one_per_line: Of text: whether each line is a sentence.
        tokenised: Of text: whether there is a space between all tokens already.
        errors: Of text and JSON lines: what to do about bytes that are not UTF-8.
        text_field: The field or column that has the text.
        id_field: The one that names documents; by default `id` where there is one, or else the place.
        shard_megabytes: How much text becomes one file.
        processes: How many processes parse on this machine; by default one for each core.
        threads: How many threads, and cores of a cluster, each of them may use.
        device: Where to compute.
        precision: As `Parser.load` takes it.
        watch: Told how many shards are done, of how many, and how much was in them.

    Returns:
        How much was parsed now.

    Raises:
        ValueError: If something is wrong with what is asked for, or the folder has the answers to something else.
        RuntimeError: If some shards could not be parsed; the others are, and the same call tries them again.
    """
    if shard_megabytes <= 0 or threads < 1 or (processes is not None and processes < 1):
        raise ValueError(
            f"shard_megabytes is {shard_megabytes}, threads is {threads} and processes is {processes}; they must be "
            "above 0."
        )
    if to not in STYLES:
        raise ValueError(f"to is {to!r}; a corpus is written as {', '.join(STYLES)}.")
    model_folder, folder = run_folder(model).absolute(), Path(out).resolve()
    with use_threads(threads):
        parser = Parser.load(model_folder, device=device, precision=precision)
    if parser.reads_gold:
        raise ValueError(f"{model} reads the right trees of sentences, and a corpus has none.")
    own = tuple(name for name in os.environ.get(PLUGINS, "").split(os.pathsep) if name)
    written_graph = _graph_of(parser, to, graph, field)
    job = _Job(
        *(str(folder), to, written_graph, text_field, id_field, one_per_line, tokenised),
        *(errors, precision, device, threads, secrets.token_hex(16), own),
    )
    if to == "parquet":
        _schema(parser)  # complains at once if there is no pyarrow
    packed = _packed(model_folder)
    asked = {
        "spigot": spigot.__version__,
        "model": hashlib.sha256(repr(sorted(packed.items())).encode()).hexdigest(),
        "format": format,
        "shard_megabytes": shard_megabytes,
        **{name: value for name, value in asdict(job).items() if name not in ("folder", "device", "threads", "mark")},
    }
    files = _files([os.fspath(name) for name in inputs], format)
    with _locked(folder, json.loads(json.dumps(asked)), job.mark):
        shards = [
            shard
            for name, kind, stem, size in files
            for shard in _cut(_Shard(name, kind, stem, size=size), job, int(shard_megabytes * 1e6))
        ]
        left = [shard for shard in shards if not (folder / shard.out).exists()]
        counts, done, failed = Counts(), len(shards) - len(left), list[str]()
        watch(done, len(shards), counts)
        tasks = _gathered(left, int(shard_megabytes * 1e6))
        if ray is None:
            with use_threads(threads), gc_frozen():
                workers = processes or max(1, cores() // threads)
                work = ordered_map(lambda some: _parse_shards(some, job, parser), tasks, workers)
                results = list(_told(work, failed, watch, done, len(shards)))
        else:
            results = list(_told(_by_ray(ray, tasks, job, packed), failed, watch, done, len(shards)))
        counts = sum(results, Counts())
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {len(shards)} shards could not be parsed; the same command tries them again. "
            f"The first: {failed[0]}"
        )
    return counts


def _told(
    work: Iterable[Sequence[Counts | str]],
    failed: list[str],
    watch: Callable[[int, int, Counts], object],
    done: int,
    total: int,
) -> Iterator[Counts]:
    counts = Counts()
    for results in work:
        for result in results:
            if isinstance(result, str):
                failed.append(result)
            else:
                counts += result
                yield result
        watch(done + counts.shards, total, counts)


def _gathered(shards: Iterable[_Shard], size: int) -> Iterator[list[_Shard]]:
    """Small files make one task together."""
    some: list[_Shard] = []
    for shard in shards:
        if some and sum(one.size for one in some) + shard.size > size:
            yield some
            some = []
        some.append(shard)
    if some:
        yield some


def _by_ray(
    address: str, tasks: Iterable[list[_Shard]], job: _Job, packed: Mapping[str, bytes]
) -> Iterator[Sequence[Counts | str]]:
    """What comes of tasks on a Ray cluster, as soon as it is there. What a lost worker had Ray gives to another."""
    ray = join_cluster(address)
    room = sum(number // job.threads for number in cluster_cores(ray).values())
    if not room:
        raise ValueError(f"--threads is {job.threads}, and no machine of the cluster has so many cores; give fewer.")
    gpus = 1 if job.device.startswith("cuda") else 0
    task = ray.remote(num_cpus=job.threads, num_gpus=gpus, max_retries=3)(_ray_task)
    model, waiting, pending = ray.put(dict(packed)), iter(tasks), {}
    while True:
        for some in itertools.islice(waiting, max(0, 4 * room - len(pending))):
            pending[task.remote(some, job, model, spigot.__version__)] = some
        if not pending:
            return
        for answer in ray.wait(list(pending), num_returns=1)[0]:
            some = pending.pop(answer)
            try:
                yield ray.get(answer)
            except ray.exceptions.RayError as error:
                yield [f"{shard.name}: {last_line(error)}" for shard in some]


_LOADED: dict[str, Parser] = {}


def _ray_task(shards: list[_Shard], job: _Job, packed: Mapping[str, bytes], version: str) -> Sequence[Counts | str]:
    """What a worker of a cluster does; it keeps the model for the next task."""
    if spigot.__version__ != version:
        return [f"{socket.gethostname()} has spigot {spigot.__version__}, not {version}; install the same."] * len(
            shards
        )
    if job.mark not in _LOADED:
        deadline = time.monotonic() + 5  # until a shared folder shows on one machine what another has written
        while _content(Path(job.folder) / _MARK) != job.mark:
            if time.monotonic() > deadline or not Path(job.folder).is_dir():
                why = f"{socket.gethostname()} does not see {job.folder}, which must be the same one on every machine."
                return [why] * len(shards)
            time.sleep(0.1)
        for name in job.plugins:
            load_plugin(name)
        load_announced()
        with tempfile.TemporaryDirectory() as folder:
            for name, data in packed.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            parser = Parser.load(folder, device=job.device, precision=job.precision)
        _LOADED.clear()
        _LOADED[job.mark] = parser
    with use_threads(job.threads):
        return _parse_shards(shards, job, _LOADED[job.mark])


def _parse_shards(shards: Sequence[_Shard], job: _Job, parser: Parser) -> Sequence[Counts | str]:
    """How much was in each shard, or why it could not be parsed."""
    results: list[Counts | str] = []
    for shard in shards:
        try:
            results.append(_parse_shard(shard, job, parser))
        except Exception as error:
            results.append(f"{shard.name}: {error or type(error).__name__}")
    return results


def _parse_shard(shard: _Shard, job: _Job, parser: Parser) -> Counts:
    bad: dict[int, str] = {}
    (Path(job.folder) / shard.out).parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            return _write(shard, job, parser, bad)
        except _BadDocuments as found:  # what was written of them goes, so all is written again
            bad |= found.reasons


class _BadDocuments(Exception):
    """Documents, by their numbers, that turned out to be bad after something of them may have been written."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = dict(reasons)


class _Document(NamedTuple):
    """A document, or a part of one: pieces of text, or a sentence, or why it cannot be read."""

    id: str
    line: int = 0
    pieces: Iterable[str] = ()
    sentence: Sentence | None = None
    reason: str = ""


class _Placed(NamedTuple):
    """A sentence, and where it stands: `start` characters into its document, which it may open."""

    document: str
    line: int
    sentence: Sentence | None
    start: int | None = None
    opens: bool = False
    reason: str = ""


def _write(shard: _Shard, job: _Job, parser: Parser, bad: Mapping[int, str]) -> Counts:
    render, counts = _renderer(job, parser), Counts(shards=1)
    documents = errors = 0

    def placed() -> Iterator[tuple[int, _Placed]]:
        nonlocal documents, errors
        for number, document in enumerate(_documents(shard, job)):
            if reason := document.reason or bad.get(number, ""):
                errors += 1
                yield number, _Placed(document.id, document.line, None, reason=reason)
                continue
            documents += not shard.character
            try:
                yield from ((number, one) for one in _sentences(document, shard, job, parser))
            except ValueError as error:
                raise _BadDocuments({number: str(error)}) from None

    with _opened_shard(Path(job.folder) / shard.out, job.to, parser) as put:
        found, opens = placed(), True
        while chunk := list(itertools.islice(found, CHUNK)):
            sentences = [one.sentence for _, one in chunk if one.sentence is not None]
            answers = iter(_answers(chunk, parser, plain=shard.kind != "conllu"))
            rows = []
            for _, one in chunk:
                rows.append(render(one, None if one.sentence is None else next(answers), opens))
                opens = False
            put(rows)
            new = parser.out_of_vocabulary(sentences)
            words = sum(map(len, sentences))
            counts += Counts(sentences=len(sentences), words=words, lettered=new.words, new=new.new)
    return replace(counts, documents=documents, errors=errors)


def _answers(chunk: Sequence[tuple[int, _Placed]], parser: Parser, *, plain: bool) -> list[Sentence]:
    def parsed(some: Iterable[tuple[int, _Placed]]) -> list[Sentence]:
        return list(parser.pipe([one.sentence for _, one in some if one.sentence is not None], plain=plain))

    try:
        return parsed(chunk)
    except Exception:
        reasons: dict[int, str] = {}
        for number, some in itertools.groupby(chunk, key=lambda pair: pair[0]):
            try:
                parsed(some)
            except Exception as error:
                reasons[number] = f"{type(error).__name__}: {error}"
        if not reasons:  # only all together are too much
            raise
        raise _BadDocuments(reasons) from None


# What is read


def _files(names: Sequence[str], format: str | None) -> list[tuple[str, str, str, int]]:
    """The files behind some names: each with what it holds, the beginning of the names of its answers, and its size."""
    kinds = dict.fromkeys(_KINDS.values())
    if format is not None and format not in kinds:
        raise ValueError(f"format is {format!r}; the files of a corpus are {', '.join(kinds)}.")
    found, stems = list[tuple[str, str, str, int]](), set[str]()
    for given in names:
        inside = list(_remote(given) if "://" in given else _local(given))
        if not inside:
            raise ValueError(f"there is no file in {given}; give files, or folders with some.")
        for name, stem, size in inside:
            if stem in stems:
                raise ValueError(f"two files would both be written as {stem}; give a folder that has both, or others.")
            stems.add(stem)
            found.append((name, _kind(name, format), stem, size))
    return found


def _local(name: str) -> Iterator[tuple[str, str, int]]:
    path = Path(name).absolute()
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {name}.")

    def fail(error: OSError) -> None:
        raise error  # or some would be missed

    if not path.is_dir():
        yield str(path), path.name, path.stat().st_size
        return
    inside = []
    for place, folders, files in os.walk(path, onerror=fail):
        folders[:] = [folder for folder in folders if not folder.startswith((".", "_"))]
        inside += [Path(place, file) for file in files if not file.startswith((".", "_"))]
    for file in sorted(one for one in inside if one.is_file()):
        yield str(file), file.relative_to(path).as_posix(), file.stat().st_size


def _remote(name: str) -> Iterator[tuple[str, str, int]]:
    import fsspec  # torch brings it

    try:
        system, path = fsspec.core.url_to_fs(name)
        paths = sorted(system.find(path)) if system.isdir(path) else [path]
    except (ImportError, ValueError) as error:
        raise ValueError(f"{name} cannot be read: {str(error).rstrip('.')}.") from None
    for one in paths:
        stem = one.removeprefix(path).lstrip("/") or one.rpartition("/")[2]
        if not any(part.startswith((".", "_")) for part in stem.split("/")):
            yield system.unstrip_protocol(one), stem, system.size(one) or 0


def _kind(name: str, format: str | None) -> str:
    stem, suffix = os.path.splitext(name.lower())
    packed = suffix in _PACKINGS
    kind = format or _KINDS.get(os.path.splitext(stem)[1] if packed else suffix)
    if kind is None:
        raise ValueError(
            f"{name}: the name does not tell what it holds; it may end in {', '.join(_KINDS)}, and then in "
            f"{', '.join(_PACKINGS)}. Or say it for all files: --format text."
        )
    if kind == "parquet" and packed:
        raise ValueError(f"{name}: parquet is compressed inside; unpack the file.")
    return kind


@contextlib.contextmanager
def _opened(name: str, start: int = 0) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked; `ValueError` if they are damaged."""
    import fsspec

    packing = os.path.splitext(name.lower())[1]
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(fsspec.open(name, "rb") if "://" in name else open(name, "rb"))  # noqa: SIM115
        if packing == ".zst":
            file = _arrow(name).CompressedInputStream(file, "zstd")
        elif packing in _PACKINGS:
            file = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[packing](file)
        elif start:
            file.seek(start)
        try:
            yield file
        except EOFError:
            raise ValueError(f"the {packing} data end too early; the file is truncated.") from None
        except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise ValueError(f"the {packing} data are damaged ({error}).") from None
        except OSError as error:  # bz2 and pyarrow have no error of their own; those of the system have a number
            if packing not in (".bz2", ".zst") or error.errno is not None:
                raise
            raise ValueError(f"the {packing} data are damaged ({error}).") from None


def _cut(whole: _Shard, job: _Job, size: int) -> list[_Shard]:
    """The shards of a file; one that has changed since it was parsed is refused."""
    if whole.kind == "parquet":
        parts = list(_row_groups(whole, job, size))
    elif whole.size > size and whole.kind in ("text", "jsonl") and not whole.name.lower().endswith(_PACKINGS):
        try:
            parts = list(_ranges(whole, size, whole.kind == "jsonl" or job.one_per_line, job.errors))
        except FormatError as error:
            parts = [replace(whole, reason=error.reason)]
    else:
        parts = [whole]
    several = len(parts) > 1
    named = [replace(p, out=f"{p.out}{f'-{k:05}' if several else ''}.{job.to}") for k, p in enumerate(parts)]
    if "://" not in whole.name:
        changed = os.stat(whole.name).st_mtime
        for out in (f"{whole.out}.{job.to}", f"{whole.out}-00000.{job.to}"):
            answers = Path(job.folder, out)
            if answers.exists() and (answers.stat().st_mtime < changed or out not in {one.out for one in named}):
                raise ValueError(f"{whole.name} has changed since {answers} was written; remove that and its like.")
    return named


def _ranges(whole: _Shard, size: int, by_line: bool, errors: Errors) -> Iterator[_Shard]:
    """Ranges of bytes that end with a line, or with a blank one, where a sentence ends anyway."""
    decoder = Decoder(whole.name, errors if whole.kind == "text" else "replace")
    part, place, characters, lines = whole, 0, 0, 0

    def take(some: bytes) -> bytes:
        nonlocal place, characters, lines
        place, lines = place + len(some), lines + some.count(b"\n")
        characters += len(decoder.feed(some))
        return some

    with _opened(whole.name) as file:
        some = file.read(size)
        while some:
            ends = take(some).endswith(b"\n")
            while line := take(file.readline(_BLOCK)):
                blank, ends = ends and not line.strip(b" \t\r\n"), line.endswith(b"\n")
                if ends and (by_line or blank):
                    break
            some = file.read(size)
            yield replace(part, stop=place if some else None, size=place - part.start)
            part = replace(whole, start=place, line=lines, character=characters if whole.kind == "text" else 0)
    decoder.close()


def _row_groups(whole: _Shard, job: _Job, size: int) -> Iterator[_Shard]:
    with _parquet_file(whole.name) as file:
        for column in (job.text_field, *([job.id_field] if job.id_field else [])):
            if column not in file.schema_arrow.names:
                raise ValueError(
                    f"{whole.name} has no column {column!r}; it has {', '.join(file.schema_arrow.names)}. Name the one "
                    "with the text by --text-field, and the one with names of documents by --id-field."
                )
        part, rows = replace(whole, size=0), 0
        for k in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(k)
            if part.size and part.size + group.total_byte_size > size:
                yield replace(part, stop=k)
                part = replace(whole, start=k, line=rows, size=0)
            part = replace(part, size=part.size + group.total_byte_size)
            rows += group.num_rows
        yield replace(part, stop=file.metadata.num_row_groups)


def _documents(shard: _Shard, job: _Job) -> Iterator[_Document]:
    """The documents of a shard; each is to be read before the next."""
    if shard.reason:
        yield _Document(shard.name, reason=shard.reason)
        return
    read = {"text": _texts, "jsonl": _json_lines, "conllu": _blocks, "parquet": _rows}[shard.kind]
    try:
        yield from read(shard, job)
    except FormatError as error:
        yield _Document(f"{shard.name}:{shard.line + error.line}", shard.line + error.line, reason=error.reason)
    except ValueError as error:
        yield _Document(shard.name, reason=str(error))


def _texts(shard: _Shard, job: _Job) -> Iterator[_Document]:
    for _ in _text(shard, job):  # to the end, before anything of it is parsed: a document is whole or it is bad
        pass
    yield _Document(shard.name, pieces=_text(shard, job))


def _text(shard: _Shard, job: _Job) -> Iterator[str]:
    decoder = Decoder(shard.name, job.errors)
    with _opened(shard.name, shard.start) as file:
        for piece in _limited(file, shard):
            yield decoder.feed(piece)
    yield decoder.close()


def _limited(file: IO[bytes], shard: _Shard) -> Iterator[bytes]:
    left = None if shard.stop is None else shard.stop - shard.start
    while piece := file.read(_BLOCK if left is None else min(left, _BLOCK)):
        left = None if left is None else left - len(piece)
        yield piece


def _lines(shard: _Shard) -> Iterator[bytes]:
    with _opened(shard.name, shard.start) as file:
        rest: list[bytes] = []
        for piece in _limited(file, shard):
            *whole, last = piece.split(b"\n")
            for line in whole:
                yield b"".join((*rest, line, b"\n"))
                rest.clear()
            rest.append(last)
        if any(rest):
            yield b"".join(rest)


def _json_lines(shard: _Shard, job: _Job) -> Iterator[_Document]:
    for number, line in enumerate(_lines(shard), shard.line + 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield _json_document(line, f"{shard.name}:{number}", number, job)


def _json_document(line: bytes, name: str, number: int, job: _Job) -> _Document:
    try:
        record = json.loads(line.decode(errors=job.errors))
    except UnicodeDecodeError as error:
        return _Document(name, number, reason=f"byte 0x{line[error.start]:02x} of the line is not UTF-8.")
    except (ValueError, RecursionError) as error:
        return _Document(name, number, reason=f"the line is not JSON ({str(error) or type(error).__name__}).")
    if not isinstance(record, dict):
        return _Document(name, number, reason="the line is JSON, but no object with fields.")
    own = record.get(job.id_field or "id")
    if isinstance(own, str | int) and not isinstance(own, bool) and str(own):
        name = str(own)
    elif job.id_field is not None:
        return _Document(name, number, reason=f"the field {job.id_field!r} has no name of the document.")
    if job.text_field not in record:
        known = ", ".join(repr(key) for key in list(record)[:8]) or "none"
        reason = f"no field {job.text_field!r}; it has {known}. Name the one with the text by --text-field."
        return _Document(name, number, reason=reason)
    return _whole_text(name, record[job.text_field], number, f"the field {job.text_field!r}")


def _whole_text(name: str, text: object, number: int, called: str) -> _Document:
    if not isinstance(text, str):
        return _Document(name, number, reason=f"{called} is {type(text).__name__}, not text.")
    try:
        text.encode()
        name.encode()
    except UnicodeEncodeError:
        name = name.encode(errors="replace").decode()
        return _Document(name, number, reason=f"{called} has half of a surrogate pair, which no text has.")
    return _Document(name, number, (text,))


def _blocks(shard: _Shard, job: _Job) -> Iterator[_Document]:
    document = shard.name
    for raw in split_blocks(_lines(shard), shard.name):
        for line in (*raw.lead.splitlines(), *raw.lines):
            if not line.startswith(b"#"):
                break
            name, _, value = line[1:].partition(b"=")
            if name.split() == [b"newdoc", b"id"]:
                document = value.strip().decode(errors="replace")
        try:
            sentence = parse_conllu(decode(raw))
        except Malformed as error:
            number = raw.first + error.offset
            yield _Document(f"{shard.name}:{number}", number, reason=error.reason)
            continue
        named = sentence if sentence.id else replace(sentence, id=f"{shard.name}:{raw.first}")
        yield _Document(document, raw.first, sentence=named)


def _rows(shard: _Shard, job: _Job) -> Iterator[_Document]:
    with _parquet_file(shard.name) as file:
        named = job.id_field or ("id" if "id" in file.schema_arrow.names else None)
        columns = [job.text_field, *([named] if named else [])]
        groups, row = list(range(shard.start, shard.stop or 0)), shard.line
        for batch in file.iter_batches(batch_size=64, row_groups=groups, columns=columns):
            for values in batch.to_pylist():
                row += 1
                own = values.get(named) if named else None
                name = f"{shard.name}:{row}" if own in (None, "") else str(own)
                yield _whole_text(name, values[job.text_field], row, f"the column {job.text_field!r}")


def _sentences(document: _Document, shard: _Shard, job: _Job, parser: Parser) -> Iterator[_Placed]:
    if document.sentence is not None:
        yield _Placed(document.id, document.line, _checked(document.sentence))
        return
    place, opens = shard.character, not shard.character
    cut = parser.conventions.sentences(document.pieces, lines=job.one_per_line, tokenised=job.tokenised)
    for found in cut:
        spacing = found.source
        assert isinstance(spacing, Spacing)
        place += len(spacing.before)
        named = Sentence(_checked(found).forms, source=spacing, id=f"{document.id}:{place}")
        yield _Placed(document.id, document.line, named, place, opens)
        place += sum(map(len, found.forms)) + sum(map(len, spacing.after))
        opens = False


def _checked(sentence: Sentence) -> Sentence:
    if len(sentence) > _WIDEST:
        raise ValueError(f"a sentence of {len(sentence):,} words; at most {_WIDEST:,} are parsed. Divide it.")
    return sentence


# What is written


@contextlib.contextmanager
def _locked(folder: Path, asked: Mapping[str, Any], mark: str) -> Iterator[None]:
    """The folder of answers, which nobody else writes to meanwhile; refused if it has the answers to something else."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("ab") as file:
        if not lock(file):
            raise ValueError(f"another process is writing to {folder}; wait for it, or stop it.")
        known = folder / _ASKED
        if known.exists():
            try:
                before = json.loads(known.read_text(encoding="utf-8"))
            except ValueError:
                raise ValueError(f"{known} is damaged; choose another --out.") from None
            for name in {**asked, **before}:
                if before.get(name) != asked.get(name):
                    how = f"was {before.get(name)!r} and is {asked.get(name)!r}" if name != "model" else "is another"
                    raise ValueError(
                        f"{folder} has the answers to another command: {name} {how}; give that command, or another "
                        "--out."
                    )
        elif others := [name for name in sorted(os.listdir(folder)) if not name.startswith(".")]:
            raise ValueError(f"{folder} has other files in it, {others[0]} for one; choose an --out of its own.")
        for left in folder.rglob(".*.tmp"):
            left.unlink(missing_ok=True)
        for name, text in ((_ASKED, json.dumps(asked, indent=1)), (_MARK, mark)):
            with written(folder / name) as out:
                out.write(text.encode())
        try:
            yield
        finally:
            (folder / _MARK).unlink(missing_ok=True)


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _graph_of(parser: Parser, to: str, graph: bool, field: str | None) -> str | None:
    """The graph that is written where there is a place for one; refused if there is no place for any answer."""
    style = "jsonl" if to == "parquet" else to
    graphs = graphs_of(parser, style, field, graph=graph, one=True)
    kept_of(parser, style, graph=graph, graphs=graphs)
    return graphs[0] if graphs else None


@contextlib.contextmanager
def _opened_shard(path: Path, to: str, parser: Parser) -> Iterator[Callable[[Sequence[Any]], object]]:
    """What writes rows to a file that is there when it is complete, and survives the machine."""
    with written(path) as file:
        if to == "parquet":
            import pyarrow.parquet  # pyright: ignore[reportMissingImports]

            arrow, schema, waiting = _arrow("parquet"), _schema(parser), list[Any]()
            with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:

                def put(rows: Sequence[Any], least: int = _ROWS) -> None:
                    waiting.extend(rows)
                    if len(waiting) >= least:
                        writer.write_table(arrow.Table.from_pylist(waiting, schema=schema))
                        waiting.clear()

                yield put
                put((), 1)
        else:
            yield lambda texts: file.write("".join(texts).encode())
            if not file.tell():
                file.write(FORMATS[to].header.encode())
        file.flush()
        os.fsync(file.fileno())


def _renderer(job: _Job, parser: Parser) -> Callable[[_Placed, Sentence | None, bool], Any]:
    """What makes of a sentence and its answer that which is written: a row of parquet, or text."""
    names, classes = list(parser.annotations), parser.class_names
    if job.to == "parquet":
        return lambda placed, answer, opens: _row(placed, answer, names, classes)

    def render(placed: _Placed, answer: Sentence | None, opens: bool) -> str:
        if answer is None:
            return _bad_row(placed, job.to, opens)
        if job.graph is not None:
            answer = parser.annotations[job.graph].written(answer)
        elif job.to == "conllu":
            answer = answer.put("graph", None)
        if job.to != "sdp":
            answer = with_class(answer, classes)
        dressed = {"jsonl": _with_place, "conllu": _with_comments, "sdp": _with_line}[job.to](placed, answer)
        return FORMATS[job.to].render(dressed, opens)[0] + ("\n" if job.to == "jsonl" else "\n\n")

    return render


def _bad_row(placed: _Placed, to: str, opens: bool) -> str:
    if to == "jsonl":
        bad = {"error": placed.reason, "document": placed.document, "line": placed.line}
        return json.dumps(bad, ensure_ascii=False) + "\n"
    header = FORMATS[to].header if opens else ""
    return f"{header}# document = {_line(placed.document)}\n# error = {_line(placed.reason)}\n\n"


def _starts(placed: _Placed) -> tuple[int, ...] | None:
    """Where each word of a sentence begins in the text of its document; `None` if there is no such text."""
    spacing = None if placed.sentence is None else placed.sentence.source
    if placed.start is None or placed.sentence is None or not isinstance(spacing, Spacing):
        return None
    lengths = [len(form) + len(space) for form, space in zip(placed.sentence.forms, spacing.after, strict=True)]
    return tuple(itertools.accumulate(lengths[:-1], initial=placed.start))


def _with_place(placed: _Placed, answer: Sentence) -> Sentence:
    starts = _starts(placed)
    place = {"document": placed.document, **({} if starts is None else {"start": placed.start, "starts": starts})}
    return replace(answer, source=None, annotations={**answer.annotations, **place})


def _with_comments(placed: _Placed, answer: Sentence) -> Sentence:
    # As the ids of sentences may be in Universal Dependencies, and so that no two become one.
    id = _UNFIT.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), answer.id)
    answer = with_text(replace(answer, id=id))
    source = answer.source
    if placed.start is None or not isinstance(source, ConllSource):
        return answer
    opening = (f"# newdoc id = {_line(placed.document)}",) if placed.opens else ()
    comments = (*opening, f"# sent_id = {id}", f"# start = {placed.start}", *source.comments)
    return replace(answer, source=replace(source, comments=comments))


def _with_line(placed: _Placed, answer: Sentence) -> Sentence:
    return replace(answer, id=_line(answer.id))


def _line(name: str) -> str:
    """What stands on a line: what is white space in it is one space."""
    return " ".join(name.split())


def _row(placed: _Placed, answer: Sentence | None, names: Sequence[str], classes: Mapping[int, str]) -> dict[str, Any]:
    if answer is None:
        return {"document": placed.document, "error": placed.reason}
    starts = _starts(placed)
    row: dict[str, Any] = {"document": placed.document, "id": answer.id, "start": placed.start, "starts": starts}
    row["end"] = starts[-1] + len(answer.forms[-1]) if starts else None
    row["words"] = answer.forms
    row |= {name: getattr(answer, name) for name in (*COLUMNS, "heads", "relations", "label", "probabilities")}
    if "class" not in names:  # as an annotation may be called
        row["class"] = None if answer.label is None else classes.get(answer.label, str(answer.label))
    for name in names:
        value = answer.get(name)
        if name in row:
            continue
        if isinstance(value, Graph) or name == "graph":
            front, graph = "" if name == "graph" else f"{name}_", value or Graph()
            row[f"{front}arcs"], row[f"{front}tops"] = [arc._asdict() for arc in graph.arcs], graph.tops
        else:
            row[name] = None if value is None else json.dumps(value, ensure_ascii=False)
    return row


def _schema(parser: Parser) -> Any:
    """The columns of a system's answers, which are the same in every shard."""
    pa = _arrow("parquet")
    texts, places, numbers = pa.list_(pa.string()), pa.list_(pa.int64()), pa.list_(pa.int32())
    arcs = pa.list_(pa.struct([("predicate", pa.int32()), ("argument", pa.int32()), ("role", pa.string())]))
    columns: dict[str, Any] = {"document": pa.string(), "id": pa.string(), "start": pa.int64(), "end": pa.int64()}
    columns |= {"words": texts, "starts": places, **dict.fromkeys(("lemmas", "tags", "upos"), texts)}
    columns |= {"heads": numbers, "relations": texts, "label": pa.int32(), "probabilities": pa.list_(pa.float32())}
    if "class" not in parser.annotations:
        columns["class"] = pa.string()
    for name, annotation in parser.annotations.items():
        if name in columns:
            continue
        if type(annotation).name == "graph":
            front = "" if name == "graph" else f"{name}_"
            columns |= {f"{front}arcs": arcs, f"{front}tops": numbers}
        else:
            columns[name] = pa.string()
    return pa.schema([*columns.items(), ("error", pa.string())])


def _arrow(what: str) -> Any:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise ModuleNotFoundError(_NEEDED.format(what)) from None
    return pyarrow


@contextlib.contextmanager
def _parquet_file(name: str) -> Iterator[Any]:
    arrow = _arrow(name)
    import pyarrow.parquet  # pyright: ignore[reportMissingImports]

    with _opened(name) as stream:
        try:
            with pyarrow.parquet.ParquetFile(stream) as file:
                yield file
        except arrow.ArrowInvalid as error:
            raise ValueError(f"the parquet data are damaged ({error}).") from None


def _packed(folder: Path) -> dict[str, bytes]:
    """The files of a model that are needed to use it, under their paths in its folder."""
    paths = [folder / name for name in (CONFIG, VOCAB, TAGGER, LEMMAS, MODEL)]
    paths += sorted((folder / "encoders").rglob("*"))  # what transformers need beside their weights
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.is_file()}
