"""`spigot train`: what it makes, says and refuses."""

import json
import re
from pathlib import Path

import pytest
import torch

from spigot_nlp import cli, training
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models import checkpoint
from spigot_nlp.models.system import System


def test_a_run_has_everything(trained):
    files = {path.name for path in trained.iterdir()}
    assert files == {
        "config.toml",
        "vocab.json",
        "model.safetensors",
        "checkpoint.safetensors",
        "steps.jsonl",
        "times.jsonl",
        "scores.json",
        *(f"predictions.{part}.{kind}" for part in ("dev", "id", "ood") for kind in ("sdp", "conllu")),
        *(f"gold.{part}.jsonl" for part in ("train", "dev", "id", "ood")),
    }
    scores = json.loads((trained / "scores.json").read_text(encoding="utf-8"))
    assert list(scores) == ["dev", "id", "ood"]
    assert all(set(found) == {"graphs", "trees"} for found in scores.values())
    steps = [json.loads(line) for line in (trained / "steps.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [step["step"] for step in steps if step["phase"] == "semantics.pruner"] == list(range(1, 9))
    assert {step["task"] for step in steps if step["phase"] == "joint"} == {"syntax", "semantics"}
    assert sum(step["dev"] is not None for step in steps) == 6


def test_tables_and_messages(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    words = ["train", str(tiny), "--training.epochs=1", "--system", "neurboparser", "--seed", "3", "--threads", "1"]
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert re.search(r"^ *ood +8( +\d+\.\d\d){7}$", printed.out, re.MULTILINE)
    assert "Trees" not in printed.out
    lines = printed.err.splitlines()
    folder = Path("runs/tiny-neurboparser-3")
    assert lines[0] == f"The run goes to {folder}"
    assert lines[-1] == f"The run is in {folder}"
    assert [line.split(":")[0] for line in lines[1:-1]] == ["semantics.pruner 1/1", "semantics 1/1"]
    assert (folder / "scores.json").exists()
    assert torch.get_num_threads() == threads
    # The same again must not overwrite it.
    before = (folder / "model.safetensors").read_bytes()
    assert cli.main(words) == 1
    assert f"{folder} holds a run already; go on with it by spigot train --resume {folder}" in capsys.readouterr().err
    assert (folder / "model.safetensors").read_bytes() == before


def test_json_and_settings(tiny, tmp_path, capsys):
    out = tmp_path / "deep" / "run"
    settings = ["--training.epochs", "1", "--semantics.pruning.learned=false", "--estimator.eta", "0.25"]
    assert cli.main(["train", str(tiny), "--out", str(out), *settings, "--threads", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["run"] == str(out)
    assert record["scores"] == json.loads((out / "scores.json").read_text(encoding="utf-8"))
    config = checkpoint.read_config(out)
    assert (config.value("estimator.eta"), config.value("semantics.pruning.learned"), config.name) == (
        0.25,
        False,
        "tiny",
    )


def test_the_same_seed_gives_the_same_run(tiny, tmp_path):
    words = ["train", str(tiny), "--training.epochs", "1", "--threads", "1", "--semantics.pruning.learned=false"]
    for name in ("a", "b"):
        assert cli.main([*words, "--out", str(tmp_path / name)]) == 0
    assert cli.main([*words, "--out", str(tmp_path / "c"), "--seed", "1"]) == 0
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in "abc"]
    assert models[0] == models[1] != models[2]


def test_a_finished_run_can_be_resumed_and_stays_the_same(tiny, tmp_path, capsys):
    out = tmp_path / "run"
    assert cli.main(["train", str(tiny), "--out", str(out), "--training.epochs", "1", "--threads", "1"]) == 0
    table = capsys.readouterr().out
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert cli.main(["train", "--resume", str(out), "--threads", "1"]) == 0
    assert capsys.readouterr().out == table
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    del before["checkpoint.safetensors"], after["checkpoint.safetensors"]  # which counts the seconds
    assert after == before


def infinite_loss(model: System, loss: torch.Tensor) -> torch.Tensor:
    return loss / 0


def infinite_gradient(model: System, loss: torch.Tensor) -> torch.Tensor:
    """The right loss; its gradient is 1 / 0."""
    weight = next(model.stages["semantics"].encoder.parameters())
    return loss + (weight - weight.detach()).abs().sum().sqrt() - 0.0


@pytest.mark.parametrize("spoil", [infinite_loss, infinite_gradient])
def test_what_is_no_number_stops_the_training_with_the_last_state_kept(spoil, tiny, tmp_path, monkeypatch, capsys):
    out, calls, honest = tmp_path / "run", [], System.loss

    def loss(self, batch, task, **options):
        calls.append(task)
        value = honest(self, batch, task, **options)
        return spoil(self, value) if calls.count("semantics") == 3 else value

    monkeypatch.setattr(System, "loss", loss)
    assert cli.main(["train", str(tiny), "--out", str(out), "--threads", "1"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    message = printed.err.splitlines()[-1]
    assert re.match(
        r"spigot: The .* is (nan|inf) at step \d+ of epoch 1 \(joint\)\. Try a lower learning rate", message
    )
    tensors, about = checkpoint.read_tensors(out / "checkpoint.safetensors")
    assert (about["phase"], about["epoch"]) == (0, 1)  # the end of the pruner's training, the last good state
    assert all(torch.isfinite(value).all() for value in tensors.values() if value.is_floating_point())
    assert not (out / "model.safetensors").exists()
    assert cli.main(["evaluate", str(out), str(tiny)]) == 1
    assert "model.safetensors; the training has not got that far. Resume it first." in capsys.readouterr().err
    # With the cause gone, it goes on.
    monkeypatch.undo()
    assert cli.main(["train", "--resume", str(out), "--threads", "1"]) == 0


def test_what_does_nothing_is_said_first(tiny, tmp_path, capsys):
    words = ["train", str(tiny), "--out", str(tmp_path / "run"), "--training.epochs", "1", "--threads", "1"]
    assert cli.main([*words, "--only", "syntax", "--syntax.relation_mlp", "8", "--syntax.dropout", "0.1"]) == 0
    assert capsys.readouterr().err.splitlines()[:2] == [
        "syntax.relation_mlp does nothing with labelled = false; change that, or leave it out.",
        "syntax.dropout does nothing with scorer = 'mlp' and labelled = false; change that, or leave it out.",
    ]


def test_interrupted_by_hand(tiny, tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", interrupted)
    assert cli.main(["train", str(tiny), "--out", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err == "spigot: interrupted before the first step; nothing is kept.\n"


def test_files_are_looked_for_before_anything_else(tmp_path, monkeypatch, capsys):
    config = tmp_path / "mine.toml"
    write([Sentence(("Rain", "fell"), tags=("NN", "VBD"), heads=(2, 0))], tmp_path / "train.conllu")
    config.write_text(
        '[data]\nobtain = "Ask the rain maker."\ntrees = { train = ["train.conllu"], dev = "train.conllu" }\n'
        '[data.graphs]\ntrain = ["train.sdp"]\ntests = { id = "test.sdp" }\n'
    )
    monkeypatch.setenv("SPIGOT_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", str(config)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "The run goes to runs/mine-spigot-0"
    assert lines[1].startswith("syntax learns from scratch by a hinge")
    assert lines[2].startswith(f"spigot: {tmp_path / 'train.sdp'} is missing")
    assert lines[2].endswith("Ask the rain maker.")
    assert not (tmp_path / "runs").exists()


def test_failures(tiny, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("x")
    bad = tmp_path / "bad.toml"
    bad.write_text("[data\n")
    for words, message in (
        ([], "there is nothing to train; give a TOML file, a name such as synthetic, or --resume."),
        (
            ["no.toml"],
            "there is no configuration no.toml; give a TOML file, or one of english-joint, english-sentiment, ",
        ),
        ([str(bad)], f"{bad} is not valid TOML"),
        ([str(tiny), "--estimator.eta", "none"], "spigot: --estimator.eta none: it should be a valid number"),
        ([str(tiny), "--estimator.eta", "-1"], "spigot: --estimator.eta -1: eta is -1.0; "),
        (
            [str(tiny), "--training.epoch", "1"],
            "epoch 1: is not a known setting; did you mean --training.epochs?",
        ),
        ([str(tiny), "more"], "'more' belongs to no setting"),
        ([str(tiny), "--threads", "0"], "threads is 0; it must be at least 1."),
        ([str(tiny), "--out", str(file)], f"{file} cannot hold a run (file exists); choose another folder with --out."),
        (["--resume", str(tmp_path)], f"{tmp_path} has no config.toml: there is no run to resume."),
        ([str(tiny), "--resume", str(tmp_path)], f"--resume goes on with a run as it was; leave out {tiny}"),
    ):
        assert cli.main(["train", *words]) == 1, words
        printed = capsys.readouterr()
        assert printed.out == ""
        last = printed.err.splitlines()[-1]
        assert last.startswith("spigot: ")
        assert message in last
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.toml", "file"]


def test_predictions_of_a_run_are_files_of_the_library(trained):
    graphs = list(read(trained / "predictions.id.sdp"))
    trees = list(read(trained / "predictions.id.conllu"))
    assert [sentence.forms for sentence in graphs] == [sentence.forms for sentence in trees]
    assert all(sentence.graph is not None for sentence in graphs)
    assert all(sentence.heads is not None for sentence in trees)


@pytest.mark.parametrize("system", ["attention", "ste"])
def test_every_joint_system_trains(system, tiny, tmp_path, capsys):
    words = ["train", str(tiny), "--system", system, "--out", str(tmp_path / "run"), "--training.epochs", "1"]
    assert cli.main([*words, "--threads", "1", "--semantics.pruning.learned", "false"]) == 0
    assert "UAS" in capsys.readouterr().out


def test_the_pipeline_pretrains_and_freezes_its_parser(tiny, tmp_path, capsys):
    out = tmp_path / "run"
    words = ["train", str(tiny), "--system", "pipeline", "--out", str(out), "--training.pretrain", "2"]
    sizes = ["--data.synthetic.train", "10", "--data.synthetic.test", "2"]
    assert cli.main([*words, "--training.epochs", "2", "--threads", "1", *sizes]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [
        "semantics.pruner 1/1",
        "syntax 1/2",
        "syntax 2/2",
        "semantics 1/2",
        "semantics 2/2",
    ]
    found = [re.search(r"UAS (\d+\.\d\d)", line) for line in lines]
    uas = [match[1] for match in found if match]
    assert uas[2] == uas[3] == max(uas[:2], key=float)
