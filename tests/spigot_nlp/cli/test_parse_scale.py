"""`spigot parse` of a corpus: what the command understands, and that processes may be killed."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.data.formats import read
from spigot_nlp.models import checkpoint
from spigot_nlp.scale import Counts, Manifest, read_manifest
from tests.spigot_nlp.processes import Python

LINE = "Rain {0} fell on the old house. Nobody knew why?"


def _fails(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert cli.main(["parse", *map(str, words)]) == 1
    return capsys.readouterr().err


def test_what_makes_no_sense_is_said(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "story.txt"
    text.write_text("It rained.", encoding="utf-8")
    out = tmp_path / "out"
    assert "--to parquet is about a corpus; add --on processes" in _fails(capsys, trained, text, "--to", "parquet")
    assert "--text-field is about a corpus" in _fails(capsys, trained, text, "--text-field", "body")
    assert "there are none; give some" in _fails(capsys, trained, "-o", out, "--on", "processes")
    assert "written to a folder" in _fails(capsys, trained, text, "--on", "processes")
    assert "shards are parquet" in _fails(capsys, trained, text, "-o", out, "--on", "processes", "--to", "text")
    assert "give 'ray' for this machine" in _fails(capsys, trained, text, "-o", out, "--on", "slurm")
    missing = _fails(capsys, trained, "s3:/bucket/x", "-o", out, "--on", "processes", "--workers", "0")
    assert "workers is 0" in missing
    assert not out.exists() or not list(out.glob("part-*"))


def _workers(command: int) -> list[int]:
    """The processes that work for a command, where one can see them: the children of one of its children."""
    return [worker for child in _children(command) for worker in _children(child)]


def _children(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    return list(map(int, path.read_text().split())) if path.exists() else []


@pytest.mark.slow
def test_a_command_that_is_killed_goes_on(trained: Path, tmp_path: Path) -> None:
    """With all its processes, and then with one of them."""
    docs, out = tmp_path / "docs.jsonl", tmp_path / "out"
    lines = [json.dumps({"id": str(k), "text": LINE.format(k)}) for k in range(400)]
    docs.write_text("\n".join(lines), encoding="utf-8")
    words = ["-m", "spigot_nlp", "parse", trained, docs, "-o", out, "--on", "processes"]
    words += ["--workers", "2", "--piece", "0.002"]

    def done() -> int:
        return len((out / "done.jsonl").read_bytes().splitlines()) if (out / "done.jsonl").exists() else 0

    def wait_for(pieces: int, process: Python) -> None:
        while done() < pieces and process.running:
            time.sleep(0.01)

    with Python(*words) as first:
        wait_for(2, first)
        workers = _workers(first.pid)
    assert 2 <= done() < 20
    while any(Path(f"/proc/{worker}").exists() for worker in workers):  # nobody hands out work to them any longer
        time.sleep(0.01)
    with Python(*words) as second:
        wait_for(done() + 1, second)
        for worker in _workers(second.pid)[-1:]:
            os.kill(worker, signal.SIGKILL)
        ended = second.wait()
    assert ended.returncode == 0, ended.stderr
    manifest = read_manifest(out)
    assert manifest.complete
    assert (manifest.counts.documents, manifest.counts.sentences, manifest.counts.errors) == (400, 800, 0)
    found = [sentence for shard in sorted(out.glob("part-*.jsonl")) for sentence in read(shard)]
    assert [sentence.get("document") for sentence in found] == [str(k) for k in range(400) for _ in range(2)]
    parser = checkpoint.load(trained, precision="int16")
    text = "\n\n".join(LINE.format(k) for k in range(20))
    assert [sentence.heads for sentence in found[:40]] == [sentence.heads for sentence in parser.parse_text(text)]


@pytest.mark.parametrize(("documents", "ends"), [(0, 1), (3, 0)])
def test_a_corpus_of_which_nothing_could_be_parsed_is_a_failure(
    documents: int, ends: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counts(documents, documents, words=8, errors=2, lettered=8, new=5)
    monkeypatch.setattr("spigot_nlp.scale.parse_corpus", lambda *_, **__: Manifest({}, True, counts, ()))
    (tmp_path / "a.txt").write_text("Zork.", encoding="utf-8")
    words = ["parse", str(tmp_path / "a.txt"), "-o", str(tmp_path / "out"), "--on", "processes"]
    assert cli.main(words) == ends
    said = capsys.readouterr().err
    assert "2 documents could not be parsed" in said
    assert "62 % of these words are new to this model" in said


def test_sentences_that_are_read_as_text_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.conllu").write_text("1\tGo\t_\t_\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    assert cli.main(["parse", str(tmp_path / "a.conllu"), "-o", str(tmp_path / "a.jsonl")]) == 0
    assert "a.conllu is read as plain text, though its name stands for conllu" in capsys.readouterr().err
