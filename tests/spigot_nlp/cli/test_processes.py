"""Several processes train the same model as one."""

import json

import pytest
import torch

from spigot_nlp import cli
from spigot_nlp.models import checkpoint
from tests.spigot_nlp import processes

# Few steps: what rounding does to two trainings grows with their number.
SETTINGS = ["--training.epochs", "1", "--syntax.loss", "crf", "--data.synthetic.train", "10", "--threads", "1"]


def test_two_processes_train_the_model_of_one(tiny, tmp_path, capsys):
    one, two = tmp_path / "one", tmp_path / "two"
    assert cli.main(["train", str(tiny), "--out", str(one), *SETTINGS]) == 0
    capsys.readouterr()
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = processes.run(
        *(*launcher, "-m", "spigot_nlp", "train", tiny, "--out", two, *SETTINGS, "--json"),
        environment={"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )
    assert done.returncode == 0, done.stderr
    # Only the first process prints: one JSON document, one line an epoch.
    assert json.loads(done.stdout)["run"] == str(two)
    lines = [line for line in done.stderr.splitlines() if line.startswith(("semantics.pruner", "joint", "The run"))]
    assert [line.split(":")[0] for line in lines] == ["semantics.pruner 1/1", "joint 1/1", f"The run is in {two}"]
    # The same global batches, in the same order, with the same losses.
    logs = [
        [json.loads(line) for line in (run / "steps.jsonl").read_text(encoding="utf-8").splitlines()]
        for run in (one, two)
    ]
    assert len(logs[0]) == len(logs[1]) == 9
    for mine, theirs in zip(*logs, strict=True):
        for name in ("phase", "epoch", "step", "task", "sentences", "tokens"):
            assert mine[name] == theirs[name]
        assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
    states = [checkpoint.read_tensors(run / "checkpoint.safetensors")[0] for run in (one, two)]
    assert states[0].keys() == states[1].keys()
    for name, value in states[0].items():
        # Sums are added up in another order. A number added to all scores of a tree changes nothing, so its gradient is
        # rounding alone, of which Adam makes full steps.
        if not name.partition("|")[2].startswith(("_stages.syntax.scorer.out.bias", "scorer.out.bias")):
            assert torch.allclose(value, states[1][name], rtol=1e-3, atol=1e-4), name
