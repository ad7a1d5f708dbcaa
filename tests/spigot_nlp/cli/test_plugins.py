"""Kinds that users bring: the example of a task of one's own, through every command, and what `--plugin` refuses."""

import contextlib
import importlib
import io
import json
import os
import re
import runpy
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spigot import ESTIMATORS
from spigot_nlp import cli
from spigot_nlp.annotations import ANNOTATIONS
from spigot_nlp.cli.watch import Watch
from spigot_nlp.config import load_config
from spigot_nlp.data.formats import FORMATS, read
from spigot_nlp.encoders import ENCODERS
from spigot_nlp.plugins import PLUGINS
from spigot_nlp.serve import Api, Served
from spigot_nlp.stages import STAGES
from spigot_nlp.training.loop import Step
from spigot_nlp.wires import READERS
from tests.spigot_nlp import processes
from tests.spigot_nlp.parsing import load

EXAMPLES = Path(__file__).parents[3] / "examples"
TASK = EXAMPLES / "own_task.py"
SMALL = ["--data.focus.limit", "40", "--training.epochs", "2", "--threads", "1"]


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    """What the plug-ins of these tests register is there for these tests only."""
    kept = [(table, dict(table)) for table in (FORMATS, *_tables())]
    modules = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PLUGINS, "")  # which the training below leaves behind
        yield
    for table, before in kept:
        table.clear()
        table.update(before)
    for name in set(sys.modules) - modules:
        if name.startswith("spigot_plugin_"):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def _no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command leaves the names of its plug-ins to the processes that it starts."""
    monkeypatch.setenv(PLUGINS, "")


def _tables() -> list[dict]:
    return [registry._kinds for registry in (ANNOTATIONS, STAGES, ESTIMATORS, ENCODERS, READERS)]


def spigot(*words: str | Path, plugin: Path | str = TASK) -> int:
    return cli.main([*map(str, words), "--plugin", str(plugin)])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the second example makes."""
    folder = tmp_path_factory.mktemp("own") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["own_task_data.py", str(folder)])
        runpy.run_path(str(EXAMPLES / "own_task_data.py"))
    return folder


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, interrupted after its third step, and resumed."""
    out = tmp_path_factory.mktemp("runs") / "focus"
    see, taken, said = Watch.see, [], io.StringIO()

    def seen(self: Watch, step: Step) -> None:
        see(self, step)
        taken.append(step)
        if len(taken) == 3:
            signal.raise_signal(signal.SIGINT)

    words = ["train", EXAMPLES / "own_task.toml", "--data.root", data.parent, "--out", out, *SMALL]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
        patch.setenv(PLUGINS, "")
        patch.setattr(Watch, "see", seen)
        assert spigot(*words) == 130
    last = said.getvalue().splitlines()[-1]
    assert last == f"spigot: interrupted; go on with: spigot train --resume {out} --plugin {TASK}"
    assert not (out / "scores.json").exists()
    assert spigot("train", "--resume", out, "--threads", "1") == 0
    return out


def test_the_task_is_trained_and_judged_by_its_own_measure(trained: Path) -> None:
    scores = json.loads((trained / "scores.json").read_text(encoding="utf-8"))
    assert set(scores["dev"]) == {"focus"}
    assert scores["dev"]["focus"]["sentences"] == 100
    steps = [json.loads(line) for line in (trained / "steps.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [step["step"] for step in steps] == [1, 2, 3, 1, 2, 3]  # nothing twice, nothing lost
    assert {step["task"] for step in steps} == {"focus"}
    assert [set(step["dev"]) for step in steps if step["dev"]] == [{"focus"}, {"focus", "changed"}]
    found = list(read(trained / "predictions.dev.focus"))
    right = list(read(trained / "gold.dev.jsonl"))
    share = sum(a.get("focus") == b.get("focus") for a, b in zip(found, right, strict=True)) / 100
    assert scores["dev"]["focus"]["accuracy"] == pytest.approx(share)


def test_interrupted_and_resumed_it_is_as_without_an_interruption(trained: Path, data: Path, tmp_path: Path) -> None:
    words = ["train", EXAMPLES / "own_task.toml", "--data.root", data.parent, "--out", tmp_path / "run", *SMALL]
    assert spigot(*words) == 0
    for name in ("model.safetensors", "scores.json", "predictions.dev.focus"):
        assert (tmp_path / "run" / name).read_bytes() == (trained / name).read_bytes(), name


def test_evaluated_scored_and_compared(
    trained: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold, fast = data / "dev.focus", ["--threads", "1", "--samples", "20"]
    assert spigot("evaluate", trained, gold, *fast, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    scores = json.loads((trained / "scores.json").read_text(encoding="utf-8"))
    assert record["scores"][str(gold)]["focus"] == scores["dev"]["focus"]
    assert list(record["intervals"][str(gold)]["focus"]) == ["accuracy"]
    assert spigot("evaluate", trained, gold, *fast) == 0
    share = f"{100 * scores['dev']['focus']['accuracy']:.2f}"
    out = capsys.readouterr().out
    assert "Focuses: 100 sentences, per cent" in out
    assert re.search(rf"^ *focus +{share} +\d+\.\d\d to \d+\.\d\d$", out, re.MULTILINE)
    for name in ("out.focus", "out.jsonl"):
        words = ["-o", tmp_path / name, "--threads", "1", "--precision", "float32"]
        assert spigot("parse", trained, gold, *words) == 0
        assert spigot("evaluate", gold, tmp_path / name) == 0
        assert re.search(rf"^ *focus +{share} ", capsys.readouterr().out, re.MULTILINE)
    assert spigot("compare", tmp_path / "out.jsonl", tmp_path / "out.focus", gold, *fast) == 0
    assert re.search(rf"^ *focus +{share} +{share} +\+0\.00 ", capsys.readouterr().out, re.MULTILINE)
    # Its own format has no place for the trees inside; JSON lines have.
    assert all(sentence.heads is None for sentence in read(tmp_path / "out.focus"))
    assert all(sentence.heads is not None for sentence in read(tmp_path / "out.jsonl"))


def test_parsed_and_drawn(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "out.jsonl"
    text.write_text("The quiet fox waits.\n", encoding="utf-8")
    assert spigot("parse", trained, text, "-o", out, "--threads", "1") == 0
    (sentence,) = read(out)
    focus = sentence.get("focus")
    assert focus in range(1, 6)
    assert spigot("draw", out, "--json") == 0
    drawn = json.loads(capsys.readouterr().out)
    assert [(arc["start"], arc["end"], arc["label"]) for arc in drawn["above"]] == [(0, focus, "focus")]
    assert [arc["start"] for arc in drawn["below"]] == list(sentence.heads or ())
    assert spigot("draw", out) == 0
    shown = capsys.readouterr().out
    assert "▼" in shown  # above the word
    assert spigot("parse", trained, text, "--to", "text", "--threads", "1") == 0
    assert capsys.readouterr().out.strip() == shown.strip()


def test_served(trained: Path) -> None:
    with Api([Served("focus", load(trained))]) as api:
        (one,) = api.parse({"text": "The quiet fox waits."}).sentences
    answer = one.answers[0]
    assert answer.forms == ["The", "quiet", "fox", "waits", "."]
    assert answer.annotations["focus"].value in range(1, 6)
    assert answer.heads is not None
    assert len(answer.heads) == 5


def test_other_processes_have_the_plugins_they_are_left_and_say_what_to_do_without(trained: Path, data: Path) -> None:
    """Whoever starts trainings in processes of their own does not tell them again."""
    code = f"""
import os
from spigot_nlp import cli
words = ["evaluate", {str(trained)!r}, {str(data / "dev.focus")!r}, "--threads", "1", "--samples", "20"]
first = cli.main(words)
os.environ[{PLUGINS!r}] = {str(TASK)!r}
raise SystemExit((first, cli.main(words)) != (1, 0))
"""
    done = processes.run("-c", code)
    assert done.returncode == 0, done.stderr
    assert "Focuses: 100 sentences, per cent" in done.stdout
    known = "there are trees, graphs, label, tags, formalisms, and those of plug-ins (--plugin)."
    assert done.stderr == f"spigot: {trained / 'config.toml'}: focus: there is no kind of annotation 'focus'; {known}\n"


# What `--plugin` refuses


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.py", None, "there is no plug-in {}; give a Python file, or the name of a module."),
        ("bad.py", "x = 1\ny = z\n", "the plug-in {} cannot be loaded: NameError in line 2: name 'z' is not defined."),
        ("half.py", "def f(:\n", "the plug-in {} cannot be loaded: SyntaxError in line 1: invalid syntax."),
        (
            "lacks.py",
            "import no_such_module_at_all",
            "the plug-in {} cannot be loaded: ModuleNotFoundError in line 1: No module named 'no_such_module_at_all'.",
        ),
        (
            "again.py",
            "from spigot_nlp.stages import STAGES\n\n@STAGES.register('trees')\nclass Mine: ...\n",
            "the plug-in {} cannot be loaded: ValueError in line 3: there is a stage 'trees' already, TreeStage; "
            "choose another name.",
        ),
    ],
)
def test_files_that_are_no_plugins(
    name: str, text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert spigot("train", "synthetic", "--out", tmp_path / "run", plugin=path) == 1
    assert capsys.readouterr().err == f"spigot: {message.format(path)}\n"
    assert not os.environ[PLUGINS]  # and no process is told of it
    assert f"spigot_plugin_{path.stem}" not in sys.modules


def test_modules_that_are_no_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spigot("train", "synthetic", plugin="no_such_task") == 1
    assert capsys.readouterr().err == (
        "spigot: the plug-in no_such_task cannot be imported (No module named 'no_such_task'); give a Python file or "
        "a module.\n"
    )
    (tmp_path / "broken_task.py").write_text("import no_such_module_at_all\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert spigot("train", "synthetic", plugin="broken_task") == 1
    message = "spigot: the plug-in broken_task cannot be loaded: ModuleNotFoundError"
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize("words", [["train", "synthetic", "--plugin"], ["evaluate", "a.sdp", "b.sdp", "--plugin"]])
def test_an_option_without_a_file(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr().err == f"spigot: --plugin has no value. See spigot {words[0]} --help.\n"


def test_a_misspelt_option_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "run", "a.sdp", "--plugn", "x.py"]) == 2
    assert "there is no option --plugn; did you mean --plugin?" in capsys.readouterr().err


def test_an_equals_sign_will_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "synthetic", f"--plugin={tmp_path / 'none.py'}"]) == 1
    assert f"there is no plug-in {tmp_path / 'none.py'}" in capsys.readouterr().err


def test_an_estimator_of_a_plugin_is_a_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also without a file that names it, and with options of its own."""
    path = tmp_path / "halved.py"
    path.write_text(
        "from dataclasses import dataclass\n"
        "import spigot\n"
        "from spigot import ESTIMATORS\n"
        "@ESTIMATORS.register('halved')\n"
        "@dataclass(frozen=True)\n"
        "class Halved(spigot.StraightThrough):\n"
        "    share: float = 0.5\n",
        encoding="utf-8",
    )
    assert spigot("train", "synthetic", "--system", "halfed", plugin=path) == 1
    assert "halved" in capsys.readouterr().err
    config = load_config("synthetic", {"system": "halved", "estimator.share": 0.25})
    assert config.value("estimator.share") == 0.25
