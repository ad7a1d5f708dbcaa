"""Test sets that are left for later, and scored when they are asked for."""

import json
import shutil
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.corpora import corpus as corpora
from spigot_nlp.models.checkpoint import read_config
from spigot_nlp.training import resume, score_tests, train
from spigot_nlp.training.packing import pack
from tests.spigot_nlp.training.test_run import config, data
from tests.spigot_nlp.training.trainings import begin

__all__ = ["data"]  # the fixture


def files(run: Path) -> dict[str, str]:
    """All that says how good a run is."""
    kinds = ("scores.json", "predictions.*", "gold.*")
    return {path.name: path.read_text() for kind in kinds for path in run.glob(kind)}


@pytest.fixture
def later(data: Path, tmp_path: Path) -> Path:
    """A finished run that has not looked at its tests."""
    train(config(data, training__tests=False), tmp_path / "later")
    return tmp_path / "later"


def test_a_training_may_leave_the_tests_unread(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, original = [], corpora.read
    monkeypatch.setattr(corpora, "read", lambda path, *rest: opened.append(path.name) or original(path, *rest))
    train(config(data, training__tests=False), tmp_path / "run")
    assert sorted(opened) == ["dev.conllu", "dev.sdp", "train.conllu", "train.sdp"]
    assert set(json.loads((tmp_path / "run" / "scores.json").read_text())) == {"dev"}
    assert not list((tmp_path / "run").glob("*.id.*"))
    assert read_config(tmp_path / "run").training.tests is False


def test_tests_scored_later_are_those_of_a_training_that_looks(data: Path, tmp_path: Path, later: Path) -> None:
    train(config(data), tmp_path / "now")
    before = files(later)
    scores = score_tests(later)
    assert list(scores) == ["dev", "id"]
    assert all(list(found) == ["graphs", "trees"] for found in scores.values())
    assert files(later) == files(tmp_path / "now")
    assert before.items() - {("scores.json", before["scores.json"])} <= files(later).items()
    assert score_tests(later) == scores
    resume(later)  # nothing is left to do, and nothing is lost
    assert files(later) == files(tmp_path / "now")


def test_an_interrupted_training_goes_on_without_its_tests(data: Path, tmp_path: Path, later: Path) -> None:
    begin(config(data, training__tests=False), tmp_path / "run", 3)
    with pytest.raises(FileNotFoundError, match=r"has no scores\.json: its training has not finished\. Finish it with"):
        score_tests(tmp_path / "run")
    resume(tmp_path / "run")
    assert files(tmp_path / "run") == files(later)


def test_what_cannot_be_scored(data: Path, tmp_path: Path, later: Path) -> None:
    (tmp_path / "bare").mkdir()
    with pytest.raises(FileNotFoundError, match="is no run folder"):
        score_tests(tmp_path / "bare")
    with pytest.raises(ValueError, match="small is a packed model, without test sets of its own; name files"):
        score_tests(pack(later, tmp_path / "small"))
    settings = (later / "config.toml").read_text()
    (later / "config.toml").write_text(settings.replace('id = "test.sdp"', "").replace('id = "test.conllu"', ""))
    with pytest.raises(ValueError, match="has no test sets; name files to evaluate it on"):
        score_tests(later)
    (later / "config.toml").write_text(settings)
    (later / "scores.json").write_text("{")
    with pytest.raises(ValueError, match=r"scores.json is damaged \(.*\); write it again with spigot train --resume"):
        score_tests(later)
    resume(later)
    assert set(json.loads((later / "scores.json").read_text())) == {"dev"}


def test_by_command(later: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    shutil.copytree(later, run)
    assert cli.main(["evaluate", str(run), "some.sdp", "--tests"]) == 1
    assert "--tests scores the run's own test sets; leave out some.sdp" in capsys.readouterr().err
    assert cli.main(["evaluate", str(run), "--tests", "--threads", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(line in printed for line in ("Graphs, per cent", "Trees, per cent", "  id "))
    assert cli.main(["evaluate", str(run), "--tests", "--threads", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == {"run": str(run), "scores": json.loads((run / "scores.json").read_text())}
    assert cli.main(["train", "--resume", str(run), "--no-tests", "--threads", "1"]) == 0
    assert set(json.loads((run / "scores.json").read_text())) == set(record["scores"])
