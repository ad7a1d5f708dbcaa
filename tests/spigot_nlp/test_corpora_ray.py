"""A corpus becomes a folder of answers: every document once, whatever is interrupted, lost or bad."""

import gzip
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spigot_nlp import corpora_ray
from spigot_nlp.config import make_config
from spigot_nlp.corpora_ray import Counts, parse_corpus
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.locks import lock
from spigot_nlp.models import Parser, checkpoint
from spigot_nlp.models.build import fresh
from spigot_nlp.parallel import can_fork
from tests.spigot_nlp.processes import Python
from tests.spigot_nlp.transformers import bert

MODEL = {"mlp": 8, "encoder": {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}}
RAIN = Sentence(
    ("Rain", "fell", "on", "the", "old", "house", "."),
    heads=(2, 0, 6, 6, 6, 2, 2),
    relations=("nsubj", "root", "case", "det", "amod", "obl", "punct"),
    graph=Graph.of([Arc(2, 1, "ARG1"), Arc(3, 6, "ARG2")], tops=[2]),
)
TEXTS = {
    "one": "Rain fell on the old house. Nobody knew why?\n\nIt didn't stop.",
    "two": "The house fell.",
    "none": " \n ",
    "three": "Über Nacht fell rain.  The rain\nfell on\n\n\nthe house, and the house fell. Mr. Poe was not in it.",
}
TINY = 2e-5  # megabytes, so that every document is a file


def save_model(folder: Path, more: float = 0.0) -> Path:
    """A system that nobody trained, which finds trees and graphs all the same."""
    settings = {"data": {"tags": "columns"}, "syntax": {**MODEL, "labelled": True}}
    config = make_config({**settings, "system": "pipeline", "semantics": {**MODEL, "pruning": {"learned": False}}})
    parser = fresh(config, {"graphs": [RAIN], "trees": [RAIN]})
    for parameter in parser.model.parameters():
        parameter.data += more
    checkpoint.save_start(folder, parser)
    checkpoint.write_tensors(folder / checkpoint.MODEL, parser.model.state_dict())
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "rain")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    file = tmp_path / "docs.jsonl"
    lines = [json.dumps({"id": name, "text": text}, ensure_ascii=False) for name, text in TEXTS.items()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def expected(model: Path) -> list[tuple[str, Sentence]]:
    parser = Parser.load(model)
    return [(name, sentence.found) for name, text in TEXTS.items() for sentence in parser(text)]


def answers(out: Path, ending: str = ".jsonl") -> list[Path]:
    return sorted(path for path in out.rglob(f"*{ending}") if not path.name.startswith("."))


def sentences(out: Path) -> list[Sentence]:
    return [sentence for file in answers(out) for sentence in read(file)]


def check(model: Path, out: Path) -> None:
    """Nothing is lost, nothing is there twice, and all is as it should be."""
    wanted = [(name, s.forms, s.heads, s.relations, s.graph) for name, s in expected(model)]
    assert [(s.get("document"), s.forms, s.heads, s.relations, s.graph) for s in sentences(out)] == wanted


def test_answers_are_what_the_model_finds_and_where(model: Path, docs: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    out = tmp_path / "out"
    counts = parse_corpus(
        model, [docs], out, shard_megabytes=TINY, processes=1, watch=lambda done, total, _: told.append((done, total))
    )
    check(model, out)
    for sentence in sentences(out):
        text, starts = TEXTS[sentence.get("document")], sentence.get("starts")
        assert sentence.id == f"{sentence.get('document')}:{sentence.get('start')}"
        assert [text[k : k + len(form)] for k, form in zip(starts, sentence.forms, strict=True)] == [*sentence.forms]
    words = sum(len(sentence) for _, sentence in expected(model))
    assert (counts.documents, counts.sentences, counts.words, counts.errors) == (4, len(expected(model)), words, 0)
    assert len(answers(out)) == counts.shards == 4
    assert told == [(k, 4) for k in range(5)]
    assert not list(out.rglob(".*.tmp"))
    before = {path: path.stat().st_mtime_ns for path in answers(out)}
    answers(out)[1].unlink()
    assert parse_corpus(model, [docs], out, shard_megabytes=TINY).shards == 1  # what is there is not parsed again
    check(model, out)
    assert {path: path.stat().st_mtime_ns for path in answers(out)}.items() & before.items() == {
        (path, before[path]) for path in (answers(out)[0], answers(out)[2], answers(out)[3])
    }


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_what_is_interrupted_goes_on(
    model: Path, docs: Path, tmp_path: Path, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, begun = corpora_ray._write, []

    def interrupted(*arguments: Any) -> Counts:
        begun.append(1)
        counts = whole(*arguments)
        if len(begun) == moment:
            raise KeyboardInterrupt
        return counts

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(corpora_ray, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            parse_corpus(model, [docs], out, shard_megabytes=TINY, processes=1)
    assert len(answers(out)) == moment
    assert parse_corpus(model, [docs], out, shard_megabytes=TINY, processes=1).shards == 4 - moment
    check(model, out)


@pytest.mark.skipif(not can_fork(), reason="processes cannot be forked here")
def test_a_worker_that_is_killed_loses_nothing(
    model: Path, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, here = corpora_ray._write, os.getpid()

    def deadly(shard: Any, *rest: Any) -> Counts:
        if os.getpid() != here and shard.start:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(shard, *rest)

    monkeypatch.setattr(corpora_ray, "_write", deadly)
    assert parse_corpus(model, [docs], tmp_path / "out", shard_megabytes=TINY, processes=2).documents == 4
    check(model, tmp_path / "out")


def test_a_file_that_cannot_be_read_stops_no_other(
    model: Path, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = corpora_ray._write

    def gone(shard: Any, *rest: Any) -> Counts:
        if shard.start and shard.stop:
            raise OSError("the disk is gone")
        return whole(shard, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(corpora_ray, "_write", gone)
        with pytest.raises(RuntimeError, match=r"2 of 4 shards could not be parsed.*: the disk is gone"):
            parse_corpus(model, [docs], tmp_path / "out", shard_megabytes=TINY, processes=1)
    assert parse_corpus(model, [docs], tmp_path / "out", shard_megabytes=TINY, processes=1).shards == 2
    check(model, tmp_path / "out")


@pytest.mark.parametrize("to", ["jsonl", "conllu", "sdp"])
def test_a_bad_document_becomes_a_row_with_its_error(
    model: Path, tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b"{", b'{"id": "a", "text": "Rain fell."}', b'{"id": "c"}', b'{"id": 4, "text": 5}', b'{"text": "\xff"}']
    lines += [b'{"id": "f", "text": "The house is cursed."}', b"", b'{"id": "h", "text": "It stopped."}']
    (tmp_path / "docs.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "latin.txt").write_bytes(b"It rained.\n\ncaf\xe9")
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"It rained. " * 999)[:50])
    (tmp_path / "long.jsonl").write_text(json.dumps({"id": "long", "text": "Rain " * 1500}), encoding="utf-8")
    whole = Parser.pipe

    def pipe(self: Parser, given: Any, **options: Any) -> Any:
        given = list(given)
        if any("cursed" in sentence.forms for sentence in given):
            raise RuntimeError("it is cursed")
        return whole(self, given, **options)

    monkeypatch.setattr(Parser, "pipe", pipe)
    files = [tmp_path / name for name in ("docs.jsonl", "latin.txt", "cut.txt.gz", "long.jsonl")]
    counts = parse_corpus(model, files, tmp_path / "out", to=to, one_per_line=True, processes=1)
    assert (counts.documents, counts.sentences, counts.errors) == (2, 2, 8)
    found = [sentence for file in answers(tmp_path / "out", f".{to}") for sentence in read(file)]
    good = [sentence for sentence in found if len(sentence)]
    assert [sentence.id for sentence in good] == ["a:0", "h:0"]
    said = "".join(file.read_text("utf-8") for file in answers(tmp_path / "out", f".{to}"))
    for reason in ("not JSON", "no field", "not text", "0xff", "cursed", "0xe9", "too early", "1,500 words"):
        assert said.count(reason) == 1
    if to == "jsonl":
        bad = [json.loads(line) for line in said.splitlines() if '"error"' in line]
        assert [(Path(row["document"]).name, row["line"]) for row in bad][1:] == [
            *(("docs.jsonl:1", 1), ("c", 3), ("4", 4), ("docs.jsonl:5", 5), ("f", 6), ("latin.txt:3", 3), ("long", 1)),
        ]


def test_another_command_is_refused(model: Path, docs: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other.txt"
    other.write_text("It rained.", encoding="utf-8")
    parse_corpus(model, [docs], out, processes=1)
    different = save_model(tmp_path / "model", 1)
    cases: list[tuple[Path, dict[str, Any], str]] = [
        (different, {}, "the answers to another command: model is another"),
        (model, {"tokenised": True}, "the answers to another command: tokenised was False and is True"),
        (model, {"to": "sdp"}, "the answers to another command: to was 'jsonl' and is 'sdp'"),
    ]
    for run, options, said in cases:
        with pytest.raises(ValueError, match=said):
            parse_corpus(run, [docs], out, **options)
    assert parse_corpus(model, [docs, other], out, processes=1).documents == 1  # more of the same goes on
    later = time.time() + 10
    os.utime(docs, (later, later))
    with pytest.raises(ValueError, match=r"docs\.jsonl has changed since"):
        parse_corpus(model, [docs], out)
    with pytest.raises(ValueError, match=r"has other files in it, .* choose an --out of its own"):
        parse_corpus(model, [other], different)
    with (out / ".lock").open("ab") as file:
        assert lock(file)
        with pytest.raises(ValueError, match="another process is writing to"):
            parse_corpus(model, [other], out)
    with pytest.raises(ValueError, match="would both be written as"):
        parse_corpus(model, [other, other], tmp_path / "twice")


def test_formats_of_answers(model: Path, docs: Path, tmp_path: Path) -> None:
    wanted = expected(model)
    parse_corpus(model, [docs], tmp_path / "u", to="conllu", graph=True, processes=1)
    (file,) = answers(tmp_path / "u", ".conllu")
    found = list(read(file))
    assert [(s.forms, s.heads, s.relations) for s in found] == [(s.forms, s.heads, s.relations) for _, s in wanted]
    assert [s.graph and s.graph.arcs for s in found] == [s.graph and s.graph.arcs for _, s in wanted]
    assert file.read_text("utf-8").count("# newdoc id = ") == 3
    parse_corpus(model, [docs], tmp_path / "s", to="sdp", processes=1)
    (file,) = answers(tmp_path / "s", ".sdp")
    assert [s.graph and s.graph.arcs for s in read(file)] == [s.graph and s.graph.arcs for _, s in wanted]


def test_parquet(model: Path, docs: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    rows = [{"url": name, "body": text} for name, text in TEXTS.items()] + [{"url": "bad", "body": None}]
    pq.write_table(arrow.Table.from_pylist(rows), tmp_path / "docs.parquet", row_group_size=2)
    named = {"text_field": "body", "id_field": "url", "to": "parquet", "processes": 1}
    counts = parse_corpus(model, [tmp_path / "docs.parquet"], tmp_path / "out", **named, shard_megabytes=TINY)
    assert (counts.documents, counts.errors, counts.shards) == (4, 1, 3)
    found = [row for file in answers(tmp_path / "out", ".parquet") for row in pq.read_table(file).to_pylist()]
    good = [row for row in found if row["error"] is None]
    assert [(r["document"], tuple(r["words"]), tuple(r["heads"])) for r in good] == [
        (name, s.forms, s.heads) for name, s in expected(model)
    ]
    assert [(r["document"], r["words"]) for r in found if r["error"]] == [("bad", None)]
    with pytest.raises(ValueError, match=r"has no column 'text'; it has url, body"):
        parse_corpus(model, [tmp_path / "docs.parquet"], tmp_path / "other", processes=1)


def test_folders_of_files_in_conllu_and_packed(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "below"
    folder.mkdir(parents=True)
    write([RAIN, RAIN], folder / "a.conllu")
    (folder / "b.txt.gz").write_bytes(gzip.compress(TEXTS["one"].encode()))
    (folder / ".hidden").write_text("It rained.")
    out = tmp_path / "out"
    assert parse_corpus(model, [tmp_path / "in"], out, processes=1).sentences == 5
    assert [path.relative_to(out).as_posix() for path in answers(out)] == [
        "below/a.conllu.jsonl",
        "below/b.txt.gz.jsonl",
    ]
    (tmp_path / "x.dat").write_text("It rained.")
    with pytest.raises(ValueError, match="the name does not tell what it holds"):
        parse_corpus(model, [tmp_path / "x.dat"], out)
    if "pyarrow" in sys.modules:
        import pyarrow  # pyright: ignore[reportMissingImports]

        packed = pyarrow.compress(TEXTS["one"].encode(), codec="zstd", asbytes=True)
        (tmp_path / "c.txt.zst").write_bytes(packed)
        assert parse_corpus(model, [tmp_path / "c.txt.zst"], out, processes=1).sentences == 3


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("size", [1, 7, 40, 10_000])
def test_a_text_that_is_cut_has_the_same_sentences_in_the_same_places(
    model: Path, tmp_path: Path, size: int, lines: bool
) -> None:
    text = "Ünder rain.\n\n\u3000It fell\non\r\n \t\r\nThe house.\n\n\n\nEnd.\n" + "Nobody knew why. " * 3
    (tmp_path / "a.txt").write_text(text, encoding="utf-8", newline="")
    parse_corpus(model, [tmp_path / "a.txt"], tmp_path / "out", shard_megabytes=size / 1e6, one_per_line=lines)
    wanted = [s.found for s in Parser.load(model)(text, lines=lines)]
    found = sentences(tmp_path / "out")
    assert [s.forms for s in found] == [s.forms for s in wanted]
    for sentence in found:
        assert [text[k : k + len(f)] for k, f in zip(sentence.get("starts"), sentence.forms, strict=True)] == [
            *sentence.forms
        ]


def test_urls(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(TEXTS["one"], encoding="utf-8")
    assert parse_corpus(model, [(tmp_path / "in").as_uri()], tmp_path / "out", processes=1).sentences == 3
    with pytest.raises(ValueError, match="cannot be read"):
        parse_corpus(model, ["nothing://there/x.txt"], tmp_path / "out", processes=1)


def test_a_transformer_is_handed_to_other_machines_with_its_files(tmp_path: Path) -> None:
    encoder = {"kind": "transformer", "model": str(bert(tmp_path / "bert"))}
    stage = {"annotation": "trees", "mlp": 8, "encoder": encoder}
    parser = fresh(make_config({"data": {"tags": "columns"}, "stages": {"syntax": stage}}), {"trees": [RAIN]})
    folder = tmp_path / "run"
    checkpoint.save_start(folder, parser)
    assert any(name.startswith("encoders/") for name in corpora_ray._packed(folder))


LINE = "Rain {0} fell on the old house. Nobody knew why?"


@pytest.mark.slow
def test_a_command_that_is_killed_goes_on(model: Path, tmp_path: Path) -> None:
    """With all its processes."""
    docs, out = tmp_path / "docs.jsonl", tmp_path / "out"
    docs.write_text("\n".join(json.dumps({"id": str(k), "text": LINE.format(k)}) for k in range(400)), encoding="utf-8")
    out.mkdir()
    words = ["-m", "spigot_nlp", "parse", model, docs, "-o", out, "--processes", "2", "--shard-megabytes", "0.002"]
    with Python(*words) as first:
        while len(answers(out)) < 2 and first.running:
            time.sleep(0.01)
    assert 2 <= len(answers(out)) < 16
    with Python(*words) as second:
        ended = second.wait()
    assert ended.returncode == 0, ended.stderr
    assert [sentence.get("document") for sentence in sentences(out)] == [str(k) for k in range(400) for _ in range(2)]


# On a Ray cluster

ray_only = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    # Ray leaves sockets and files to the end of the process, and says of some of its own names that they will go.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Any, Any]]:
    """A cluster of a head without room for workers, and two nodes with room for one each; and the second of these."""
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'torch-spigot[ray]'")
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]  # an extra

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("USAGE_STATS_ENABLED", "0"), ("worker_niceness", "0"), ("health_check_period_ms", "500")):
            patch.setenv(f"RAY_{name}", value)
        patch.setenv("RAY_health_check_failure_threshold", "20")
        cluster = Cluster()
        try:
            cluster.add_node(num_cpus=0, include_dashboard=False)
            cluster.add_node(num_cpus=1)
            second = cluster.add_node(num_cpus=1)
            ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        except Exception:
            ray.shutdown()
            cluster.shutdown()
            pytest.skip("Ray does not start on this machine")
        yield cluster, second
        ray.shutdown()
        cluster.shutdown()


def on_cluster(model: Path, tmp_path: Path, accident: Any) -> None:
    """Parse, and have an accident when some files are done and others are not."""
    folder, told = tmp_path / "many", []
    folder.mkdir()
    for k in range(15):
        lines = [json.dumps({"id": f"{k:02}-{name}", "text": text}) for name, text in TEXTS.items()]
        (folder / f"{k:02}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def watch(done: int, total: int, _: Counts) -> None:
        if done >= 3 and not told:
            told.append(done)
            accident()

    counts = parse_corpus(model, [folder], tmp_path / "out", ray="auto", shard_megabytes=3e-4, watch=watch)
    assert told[0] < counts.shards == len(answers(tmp_path / "out"))
    wanted = [(f"{k:02}-{name}", s.forms, s.heads) for k in range(15) for name, s in expected(model)]
    assert [(s.get("document"), s.forms, s.heads) for s in sentences(tmp_path / "out")] == wanted


def kill_worker() -> None:
    """Ray calls a process by the function that it runs."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes().startswith(b"ray::_ray_task"):
                os.kill(int(path.name), signal.SIGKILL)
                return
        except OSError:
            continue
    raise AssertionError("nobody works")


class TestOnRay:
    pytestmark = ray_only

    def test_a_worker_is_killed(self, nodes: Any, model: Path, tmp_path: Path) -> None:
        on_cluster(model, tmp_path, kill_worker)

    def test_a_node_is_lost(self, nodes: Any, model: Path, tmp_path: Path) -> None:
        cluster, second = nodes
        on_cluster(model, tmp_path, lambda: cluster.remove_node(second, allow_graceful=False))
