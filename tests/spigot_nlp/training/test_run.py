"""Runs in a folder: training, interruption, resumption, and what is left on disk."""

import itertools
import json
import signal
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from spigot_nlp.config import Config
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.metrics import score_graphs
from spigot_nlp.models import checkpoint
from spigot_nlp.models.checkpoint import read_config, read_tensors, write_tensors
from spigot_nlp.models.parser import Parser
from spigot_nlp.training import Diverged, Step, resume, train
from spigot_nlp.training.lock import RunLocked, lock_run
from spigot_nlp.training.start import build
from tests.spigot_nlp.parsing import classification, experiment, load, parser, sentences, syntax
from tests.spigot_nlp.training.trainings import begin, rest_of, steps_of


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, size, seed in (("train", 8, 1), ("dev", 3, 2), ("test", 4, 3)):
        chosen = sentences(size, seed)
        write([replace(sentence, graph=None) for sentence in chosen], folder / f"{name}.conllu")
        write(chosen, folder / f"{name}.sdp")
    return folder


def config(data: Path, system: str = "spigot", **overrides: Any) -> Config:
    files = {
        f"data__{task}": {"train": [f"train.{end}"], "dev": f"dev.{end}", "tests": {"id": f"test.{end}"}}
        for task, end in (("trees", "conllu"), ("graphs", "sdp"))
    }
    return experiment(system, data__root=str(data), **files, **overrides)


def finished(folder: Path) -> dict[str, Any]:
    """Everything of a run that must not depend on when it was interrupted."""
    steps = (folder / "steps.jsonl").read_text().splitlines()
    state, about = read_tensors(folder / "checkpoint.safetensors")
    return {
        "model": {name: value.tolist() for name, value in load_file(folder / "model.safetensors").items()},
        "state": {name: value.tolist() for name, value in state.items()},
        "about": {name: value for name, value in about.items() if name not in ("seconds", "processor")},
        "steps": [json.loads(line) for line in steps],
        "scores": json.loads((folder / "scores.json").read_text()),
        "predictions": [path.read_text() for path in sorted(folder.glob("predictions.*"))],
    }


def test_a_run_folder_holds_all_that_is_needed(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "one"
    chosen = config(data)
    steps = steps_of(chosen, out)
    names = {path.name for path in out.iterdir()}
    assert names == {
        "config.toml",
        "vocab.json",
        "model.safetensors",
        "checkpoint.safetensors",
        "steps.jsonl",
        "times.jsonl",
        "scores.json",
        *(f"predictions.{name}.{end}" for name in ("dev", "id") for end in ("sdp", "conllu")),
        *(f"gold.{name}.jsonl" for name in ("train", "dev", "id")),
    }
    assert read_config(out) == chosen
    logged = [json.loads(line) for line in (out / "steps.jsonl").read_text().splitlines()]
    assert [(line["phase"], line["epoch"], line["step"], line["loss"]) for line in logged] == [
        (step.phase, step.epoch, step.step, step.loss) for step in steps
    ]
    assert list(load(out).pipe(read(data / "test.sdp")))  # usable
    gold, predicted = list(read(data / "test.sdp")), list(read(out / "predictions.id.sdp"))
    scores = json.loads((out / "scores.json").read_text())
    assert list(scores) == ["dev", "id"]
    assert all(set(found) == {"graphs", "trees"} for found in scores.values())
    assert scores["id"]["graphs"] == json.loads(json.dumps(asdict(score_graphs(gold, predicted))))
    assert [s.graph and s.graph.arcs for s in load(out).pipe(gold)] == [s.graph and s.graph.arcs for s in predicted]


def test_the_model_on_disk_is_the_best_one(data: Path, tmp_path: Path) -> None:
    out, best = tmp_path / "run", dict[str, torch.Tensor]()
    parsers: list[Parser] = []
    original = build

    def keep(*arguments: Any) -> Parser:
        parsers.append(original(*arguments))
        return parsers[-1]

    def taken(step: Step) -> None:
        if step.is_best:
            best.update({name: value.clone() for name, value in parsers[0].model.state_dict().items()})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spigot_nlp.training.loop.build", keep)
        train(config(data, training__epochs=4), out, taken)
    found = load_file(out / "model.safetensors")
    assert found.keys() == best.keys()
    assert all(torch.equal(value, best[name]) for name, value in found.items())


def test_an_interrupted_run_ends_like_one_that_was_not(data: Path, tmp_path: Path) -> None:
    """Every step of the trainer is interrupted in `test_loop.py`; this is about what a folder keeps."""
    chosen = config(data, "pipeline", training__save_seconds=0.0)
    total = len(steps_of(chosen, tmp_path / "whole"))
    expected = finished(tmp_path / "whole")
    for stop in (1, total // 2, total):
        out = tmp_path / f"cut{stop}"
        begin(chosen, out, stop)
        assert len(rest_of(out)) == total - stop
        assert finished(out) == expected


def test_processor_time_adds_up_over_interruptions(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that ticks once a step, wherever it starts."""
    chosen, out = config(data, "neurboparser", training__save_seconds=0.0), tmp_path / "cut"
    monkeypatch.setattr("time.process_time", itertools.count(100).__next__)
    begin(chosen, out, 3)
    assert read_tensors(out / checkpoint.STATE)[1]["processor"] == 3
    monkeypatch.setattr("time.process_time", itertools.count(7).__next__)
    rest = len(rest_of(out))
    assert read_tensors(out / checkpoint.STATE)[1]["processor"] == 3 + rest
    last = json.loads((out / checkpoint.TIMES).read_text().splitlines()[-1])
    assert last["processor"] == 3 + rest


def test_steps_since_the_last_save_are_taken_again(data: Path, tmp_path: Path) -> None:
    chosen = config(data, "neurboparser", training__save_seconds=1000.0)
    total = len(steps_of(chosen, tmp_path / "whole"))
    taken = begin(chosen, tmp_path / "cut", total - 1)
    saved = max(k + 1 for k, step in enumerate(taken) if step.dev is not None)
    assert len(rest_of(tmp_path / "cut")) == total - saved
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")
    assert rest_of(tmp_path / "cut") == []  # a finished run has nothing left to do
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")


def test_a_run_stopped_before_its_first_epoch_ended_begins_again(data: Path, tmp_path: Path) -> None:
    """It has saved how it began."""
    chosen = config(data, "neurboparser", training__save_seconds=1000.0)
    train(chosen, tmp_path / "whole")
    begin(chosen, tmp_path / "cut", 1)
    assert read_tensors(tmp_path / "cut" / "checkpoint.safetensors")[1]["step"] == 0
    resume(tmp_path / "cut")
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")


def test_a_run_killed_while_it_is_begun_is_none(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a configuration has a state, and what is half written does not stay."""
    chosen, run = config(data, "neurboparser", training__epochs=1), tmp_path / "run"

    def killed(*arguments: Any) -> None:
        (run / ".vocab.json.half.tmp").touch()
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_start", killed)
        with pytest.raises(SystemExit):
            train(chosen, run)
    assert (run / checkpoint.STATE).exists()
    with pytest.raises(FileNotFoundError, match="is no run folder"):
        resume(run)
    train(chosen, run)
    assert not list(run.glob(".*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_the_step_under_way(data: Path, tmp_path: Path, number: signal.Signals) -> None:
    chosen = config(data, "neurboparser", training__save_seconds=1000.0)
    train(chosen, tmp_path / "whole")
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        train(chosen, tmp_path / "cut", lambda step: signal.raise_signal(number))
    assert signal.getsignal(number) is before
    assert read_tensors(tmp_path / "cut" / "checkpoint.safetensors")[1]["epoch"] == 1  # two steps: the first epoch
    resume(tmp_path / "cut")
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")


def test_a_log_line_cut_short_is_forgotten(data: Path, tmp_path: Path) -> None:
    chosen = config(data, "neurboparser", training__save_seconds=0.0)
    train(chosen, tmp_path / "whole")
    begin(chosen, tmp_path / "cut", 3)
    with (tmp_path / "cut" / "steps.jsonl").open("a") as file:
        file.write('{"phase": "semantics", "epo')
    resume(tmp_path / "cut")
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")


def test_a_log_of_another_training_is_named(data: Path, tmp_path: Path) -> None:
    begin(config(data, "neurboparser", training__save_seconds=0.0), tmp_path, 2)
    with (tmp_path / "steps.jsonl").open("a") as file:
        file.write('{"phase": "old", "epoch": 1, "step": 1}\n')
    with pytest.raises(ValueError, match=r"a phase 'old', and this training has .*: its files do not belong together"):
        resume(tmp_path)


def test_what_diverges_leaves_the_last_good_state(data: Path, tmp_path: Path) -> None:
    chosen = config(data, "neurboparser", semantics__loss="log", training__epochs=3)
    good: dict[str, torch.Tensor] = {}
    with pytest.MonkeyPatch.context() as patch:

        def spoil(step: Step) -> None:
            if step.phase == "semantics" and step.dev is not None:
                good.update(read_tensors(tmp_path / "run" / "checkpoint.safetensors")[0])
                patch.setattr("spigot_nlp.stages.graphs.graph_log_loss", lambda scored, *rest: scored.arcs * torch.nan)

        with pytest.raises(Diverged, match="loss is nan"):
            train(chosen, tmp_path / "run", spoil)
    found = read_tensors(tmp_path / "run" / "checkpoint.safetensors")[0]
    assert all(torch.equal(value, good[name]) for name, value in found.items())
    assert all(value.isfinite().all() for value in found.values())


def test_a_parser_can_be_taken_from_another_run(data: Path, tmp_path: Path) -> None:
    train(config(data, "pipeline", training__pretrain=2), tmp_path / "first")
    chosen = config(data, "pipeline", training__pretrain=0, syntax__start=str(tmp_path / "first"))
    assert {step.phase for step in steps_of(chosen, tmp_path / "second")} == {"semantics.pruner", "semantics"}
    first, second = syntax(load(tmp_path / "first")), syntax(load(tmp_path / "second"))
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name])
    scores = [json.loads((tmp_path / run / "scores.json").read_text()) for run in ("first", "second")]
    assert scores[0]["dev"]["trees"] == scores[1]["dev"]["trees"]


def test_a_parser_of_another_vocabulary_is_refused(data: Path, tmp_path: Path) -> None:
    train(config(data, "pipeline"), tmp_path / "first")
    write(
        [replace(s, graph=None) for s in sentences(9, seed=8)]
        + [replace(sentences(1)[0], forms=("q",) * len(sentences(1)[0]))],
        data / "train.conllu",
    )
    chosen = config(data, "spigot", syntax__start=str(tmp_path / "first"))
    with pytest.raises(ValueError, match="trained with other words"):
        train(chosen, tmp_path / "second")
    train(config(data, "neurboparser"), tmp_path / "none")
    with pytest.raises(ValueError, match="none has no stage syntax; it has semantics"):
        train(config(data, "spigot", syntax__start=str(tmp_path / "none")), tmp_path / "third")


def test_a_parser_of_another_size_is_refused(data: Path, tmp_path: Path) -> None:
    train(config(data, "pipeline"), tmp_path / "first")
    chosen = config(data, "spigot", syntax__start=str(tmp_path / "first"), syntax__mlp=9)
    with pytest.raises(ValueError, match="another size"):
        train(chosen, tmp_path / "second")


def test_a_run_goes_on_with_the_data_it_was_begun_with(data: Path, tmp_path: Path) -> None:
    begin(config(data, "neurboparser"), tmp_path / "run", 1)
    write(sentences(9, seed=1), data / "train.sdp")
    with pytest.raises(ValueError, match=r"The training data have \d+ words, and had \d+ when"):
        resume(tmp_path / "run")


def test_a_folder_is_used_once(data: Path, tmp_path: Path) -> None:
    begin(config(data, "neurboparser"), tmp_path / "run", 1)
    with pytest.raises(FileExistsError, match="holds a run already"):
        train(config(data, "neurboparser"), tmp_path / "run")
    with lock_run(tmp_path / "run"), pytest.raises(RunLocked, match="is being trained by another process"):
        resume(tmp_path / "run")


def test_damage_is_named(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(FileNotFoundError, match="is no run folder"):
        load(run)
    train(config(data, "neurboparser"), run)
    for name, content, message in (
        ("model.safetensors", (run / "model.safetensors").read_bytes()[:-7], "not a whole checkpoint"),
        ("model.safetensors", b"", "not a whole checkpoint"),
        ("vocab.json", b'{"words": [', "damaged"),
        ("vocab.json", b'{"words": {}, "annotations": {}}', "damaged"),
        ("vocab.json", b"3", "damaged"),
        ("config.toml", b"system = ", "damaged"),
    ):
        whole = (run / name).read_bytes()
        (run / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load(run)
        (run / name).write_bytes(whole)
    (run / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="not got that far"):
        load(run)
    (run / "vocab.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"vocab\.json"):
        load(run)


def test_parameters_that_do_not_fit_or_are_no_numbers_are_refused(tmp_path: Path) -> None:
    small = parser("neurboparser", semantics__pruning__learned=False)
    checkpoint.save_start(tmp_path, small)
    values = dict(small.model.state_dict())
    write_tensors(tmp_path / checkpoint.MODEL, values)
    assert load(tmp_path).vocab == small.vocab
    name = next(name for name, value in values.items() if value.is_floating_point())
    write_tensors(tmp_path / checkpoint.MODEL, {**values, name: values[name] * torch.nan})
    with pytest.raises(ValueError, match="not numbers"):
        load(tmp_path)
    write_tensors(tmp_path / checkpoint.MODEL, {**values, name: values[name][:1]})
    with pytest.raises(ValueError, match="differs"):
        load(tmp_path)
    del values[name]
    write_tensors(tmp_path / checkpoint.MODEL, values)
    with pytest.raises(ValueError, match="differs"):
        load(tmp_path)


def test_the_configuration_of_a_run_is_the_resolved_one(tmp_path: Path) -> None:
    small = parser("spigot", preset="release", estimator__max_norm=None)
    checkpoint.save_start(tmp_path, small)
    assert read_config(tmp_path) == small.config
    ((_, wire),) = read_config(tmp_path).wires
    assert wire.estimator.model_dump()["max_norm"] is None
    assert tomllib.loads((tmp_path / "config.toml").read_text())["system"] == "spigot"


def test_predicted_tags_bring_their_tagger_along(data: Path, tmp_path: Path) -> None:
    train(config(data, "neurboparser", data__tags="predicted", data__folds=2), tmp_path / "run")
    system = load(tmp_path / "run")
    assert system.tagger is not None
    bare = [replace(s, tags=None, lemmas=None, heads=None, graph=None) for s in read(data / "test.sdp")]
    predicted = list(read(tmp_path / "run" / "predictions.id.sdp"))
    assert [s.graph and s.graph.arcs for s in system.pipe(bare)] == [s.graph and s.graph.arcs for s in predicted]


def test_equal_seeds_build_equal_parsers_and_leave_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    one, two = parser(seed=3), parser(seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, value in one.model.state_dict().items():
        assert torch.equal(value, two.model.state_dict()[name])


def test_without_development_data_a_run_ends_all_the_same(data: Path, tmp_path: Path) -> None:
    files = {f"data__{task}": {"train": [f"train.{end}"]} for task, end in (("trees", "conllu"), ("graphs", "sdp"))}
    train(experiment("ste", data__root=str(data), **files), tmp_path / "run")
    assert list(load(tmp_path / "run").pipe(sentences(2)))


def test_each_file_is_read_once(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first step to the scores; also a file that several tasks share."""
    opened: list[str] = []

    def counted(path: Path, *options: Any) -> Iterator[Sentence]:
        opened.append(path.name)
        return read(path, *options)

    for module in list(sys.modules.values()):
        if module.__name__.startswith(("spigot.", "spigot_nlp.")) and getattr(module, "read", None) is read:
            monkeypatch.setattr(module, "read", counted)
    train(config(data, data__tags="predicted", data__folds=2), tmp_path / "one")
    assert sorted(opened) == sorted(f"{part}.{end}" for part in ("train", "dev", "test") for end in ("conllu", "sdp"))
    opened.clear()
    for k, part in enumerate(("train", "dev", "test")):
        write([replace(s, label=n % 2) for n, s in enumerate(sentences(4, seed=k))], data / f"{part}.jsonl")
    shared = {"train": ["train.jsonl"], "dev": "dev.jsonl", "tests": {"id": "test.jsonl"}}
    tasks: dict[str, Any] = {f"data__{task}": shared for task in ("trees", "graphs", "labels")}
    train(classification(data__root=str(data), **tasks), tmp_path / "two")
    assert opened == ["train.jsonl", "dev.jsonl", "test.jsonl"]
    kept = {part: list(read(tmp_path / "two" / f"gold.{part}.jsonl")) for part in ("train", "dev", "id")}
    assert [len(some) for some in kept.values()] == [4, 4, 4]
    assert all(sentence.heads is not None for some in kept.values() for sentence in some)
