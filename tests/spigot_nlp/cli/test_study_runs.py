"""A study with real trainings, from end to end, and one that is interrupted in the middle."""

import contextlib
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

from spigot_nlp import cli
from spigot_nlp.experiments.children import Status, Training, surroundings
from spigot_nlp.experiments.study import runner
from spigot_nlp.training import run as training_run

STUDY = """
config = "{config}"
seeds = [0, 1]
against = ["pipeline"]
[settings]
data.synthetic = {{ train = 12, dev = 4, test = 3 }}
data.tags = "predicted"
data.folds = 2
semantics.pruning.learned = false
training = {{ pretrain = 1, epochs = 2, batch = 4, save_seconds = 0.0 }}
[shared.parser]
settings = {{ only = "syntax", "training.pretrain" = 0 }}
[systems.pipeline]
settings = {{ "syntax.start" = "{{parser}}" }}
[systems.spigot]
settings = {{ "syntax.start" = "{{parser}}" }}
"""
FINAL = [f"{system}-{seed}" for seed in (0, 1) for system in ("pipeline", "spigot")]


class InThisProcess:
    """Trains as `spigot train` does, one after the other and without processes, which take longer to start than this.

    Attributes:
        said: The words of the commands, over all studies.
        at: Which run is asked to stop, when it saves its state for the second time.
    """

    said: list[list[str]]
    at: str

    def __init__(self, folder: Path, *, threads: int) -> None:
        self.stopped: list[int] = []
        self._environment = surroundings(folder, threads)
        self._ended: list[tuple[Training, Status]] = []

    def __enter__(self) -> "InThisProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __len__(self) -> int:
        return len(self._ended)

    def start(self, training: Training, words: list[str]) -> None:
        self.said.append(words)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SPIGOT_CACHE", self._environment["SPIGOT_CACHE"])
            if training.trial.name == self.at:
                patch.setattr(training_run, "save_state", self._interrupting(training_run.save_state))
            with contextlib.redirect_stdout(io.StringIO()):
                code = cli.main(words)
        training.status = "running"
        self._ended.append((training, "finished" if code == 0 else "interrupted" if code == 130 else "failed"))

    def _interrupting(self, save):
        calls = 0

        def counted(*arguments):
            nonlocal calls
            calls += 1
            save(*arguments)
            if calls == 2:
                self.stopped.append(signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGTERM)

        return counted

    def look(self) -> bool:
        ended, self._ended = self._ended, []
        for training, status in ended:
            training.status, training.seconds = status, training.seconds + 1.0
        return bool(ended)

    def heed(self) -> None:
        pass

    def raise_if_stopped(self, trainings, noun) -> None:
        if self.stopped:
            raise KeyboardInterrupt(noun)


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "Children", InThisProcess)
        patch.setattr(InThisProcess, "said", [], raising=False)
        patch.setattr(InThisProcess, "at", "", raising=False)
        yield patch


@pytest.fixture(scope="module")
def file(tiny, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "mine.toml"
    path.write_text(STUDY.format(config=tiny), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(file, tmp_path_factory, patch) -> Path:
    """A study that nobody interrupted."""
    out = tmp_path_factory.mktemp("whole")
    assert cli.main(["study", str(file), "--out", str(out)]) == 0
    return out


def test_from_end_to_end(whole, file, capsys):
    scores = {name: json.loads((whole / name / "scores.json").read_bytes()) for name in FINAL}
    assert all(part.split()[0] == "dev" for found in scores.values() for part in found)
    assert not list(whole.glob("*/gold.id*"))
    assert sorted(path.name for path in (whole / ".cache").iterdir())  # the tags of all were worked out once
    assert json.loads((whole / "parser-0" / "scores.json").read_bytes())
    before = {name: (whole / name / "model.safetensors").read_bytes() for name in FINAL}
    assert cli.main(["study", str(file), "--out", str(whole), "--tests", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [training["status"] for training in found["trainings"]] == ["finished"] * 6
    measured = {training["name"]: training["dev"] for training in found["trainings"]}
    for name in FINAL:
        tested = json.loads((whole / name / "scores.json").read_bytes())
        assert {part.split()[0] for part in tested} == {"dev", "id", "ood"}
        assert {part: tested[part] for part in scores[name]} == scores[name]
        assert measured[name] == pytest.approx(100 * tested["dev"]["labelled"]["f1"])
        assert (whole / name / "model.safetensors").read_bytes() == before[name]
    assert not (whole / "parser-0" / "gold.id.jsonl").exists()
    assert "spigot" in (whole / "study.md").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_an_interruption_changes_nothing(whole, file, tmp_path, capsys, patch):
    words = ["study", str(file), "--out", str(tmp_path)]
    patch.setattr(InThisProcess, "at", "spigot-0")
    assert cli.main(words) == 130
    assert (tmp_path / "spigot-0" / "steps.jsonl").exists()
    assert not (tmp_path / "spigot-0" / "scores.json").exists()
    patch.setattr(InThisProcess, "at", "")
    done = len(InThisProcess.said)
    assert cli.main(words) == 0
    assert InThisProcess.said[done][:3] == ["train", "--resume", str(tmp_path / "spigot-0")]
    assert "1 begun already" in capsys.readouterr().err
    for name in ("parser-0", "parser-1", *FINAL):
        for file_name in ("model.safetensors", "steps.jsonl"):
            assert (tmp_path / name / file_name).read_bytes() == (whole / name / file_name).read_bytes()
        dev, tested = (json.loads((folder / name / "scores.json").read_bytes()) for folder in (tmp_path, whole))
        assert dev == {part: tested[part] for part in dev}
