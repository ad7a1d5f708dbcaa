"""The search for good settings: its plan, its ranking, and the processes that train its trials."""

import csv
import json
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot.config import load_config
from spigot.experiments.sweep import Sweep, plan_sweep, short_names, shuffled
from spigot.experiments.sweep_results import Result, Steps, chosen_row, rank
from spigot.experiments.sweep_trials import known_results, run_trials
from tests.sweeping import stand_in

BASE = """
preset = "release"
[sweep]
"semantics.mlp" = [50, 100]
"estimator.eta" = [0.1, 1.0, 2.0]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(BASE, encoding="utf-8")
    return path


@pytest.fixture
def trainer(tmp_path: Path) -> list[str]:
    return stand_in(tmp_path)


def trial_names(sweep: Sweep) -> list[str]:
    return [trial.name for trial in sweep.trials]


def finish(sweep: Sweep, out: Path, trainer: list[str], **options: Any) -> list[Result]:
    *_, results = run_trials(sweep, out, command=trainer, pause=0.01, **options)
    return results


# The plan


def test_a_grid_has_every_combination_with_every_seed(file):
    sweep = plan_sweep(file, seeds=[4, 2])
    assert sweep.names == ("semantics.mlp", "estimator.eta")
    assert len(sweep.trials) == 12
    assert len(sweep.combinations) == 6
    found = {(t.config.value("semantics.mlp"), t.config.value("estimator.eta"), t.config.seed) for t in sweep.trials}
    assert found == {(mlp, eta, seed) for mlp in (50, 100) for eta in (0.1, 1.0, 2.0) for seed in (4, 2)}
    assert [trial.seed for trial in sweep.trials] == [4] * 6 + [2] * 6
    assert sweep.trials[0].name == "mlp=50,eta=0.1,seed=4"
    # An ordinary experiment: named after the file, with the preset below it, and nothing left to sweep over.
    config = sweep.trials[0].config
    assert (config.name, config.sweep, config.value("estimator.max_norm")) == ("mine", {}, 1.0)


def test_the_command_line_adds_replaces_and_fixes(file):
    sweep = plan_sweep(
        file, over={"estimator.eta": [5], "system": ["ste", "spigot"]}, overrides={"semantics.mlp": 7, "seed": 3}
    )
    assert trial_names(sweep) == ["eta=5,system=ste,seed=3", "eta=5,system=spigot,seed=3"]
    assert [trial.config.value("semantics.mlp") for trial in sweep.trials] == [7, 7]
    # What a preset says about a system holds in the trials of that system.
    assert [trial.config.value("estimator.max_norm") for trial in sweep.trials] == [None, 1.0]


def test_seeds_of_the_file(tmp_path):
    path = tmp_path / "seeds.toml"
    path.write_text("[sweep]\nseed = [1, 2]", encoding="utf-8")
    assert trial_names(plan_sweep(path)) == ["seed=1", "seed=2"]
    assert trial_names(plan_sweep(path, seeds=[5, 6, 7])) == ["seed=5", "seed=6", "seed=7"]


@given(total=st.integers(1, 10**9), count=st.integers(0, 40), more=st.integers(0, 20), seed=st.integers(0, 2**32))
def test_a_longer_draw_begins_with_the_shorter(total, count, more, seed):
    longer = list(shuffled(total, min(count + more, total), seed))
    assert longer[: min(count, total)] == list(shuffled(total, min(count, total), seed))
    assert len(set(longer)) == len(longer)
    assert all(0 <= number < total for number in longer)


def test_every_order_is_drawn_equally_often():
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(1200):
        order = tuple(shuffled(3, 3, seed))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(150 < count < 250 for count in counts.values())


def test_random_combinations(file):
    few, more, other = (trial_names(plan_sweep(file, random=n, sweep_seed=s)) for n, s in ((3, 0), (5, 0), (5, 1)))
    everything = trial_names(plan_sweep(file))
    assert few == more[:3]
    assert more != other
    assert len(set(more)) == 5
    assert set(more) < set(everything)
    assert sorted(trial_names(plan_sweep(file, random=100))) == sorted(everything)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"over": {"semantics.mpl": [3]}}, r"--over semantics.mpl=3: is not a known setting"),
        ({"over": {"semantics.mlp": [3, 0]}}, r"--over semantics.mlp=0: it should be greater than 0"),
        ({"over": {"semantics.mlp": ["many"]}}, r"--over semantics.mlp=many: it should be a valid integer"),
        ({"over": {"semantics.mlp": []}}, r"there is no value of semantics.mlp to try"),
        ({"over": {"estimator.eta": [1, 1.0]}}, r"the trial mlp=50,eta=1,seed=0 would be made twice"),
        ({"over": {"semantics": [1]}}, r"mine.toml with --over semantics=1: semantics and a part of it are both given"),
        ({"over": {"name": ["a"]}}, r"a sweep over 'name' changes no result"),
        ({"over": {"estimator.eta": [1]}, "overrides": {"estimator.eta": 2}}, r"estimator.eta is to vary and to be"),
        ({"overrides": {"semantics.mlp": 1, "estimator.eta": 2}}, r"has nothing to vary; give values by --over"),
        ({"seeds": [1, 1]}, r"the seed 1 is given twice"),
        ({"seeds": [-1]}, r"-1 is no seed"),
        ({"seeds": []}, r"there is no seed"),
        ({"random": 0}, r"random is 0; it must be at least 1"),
    ],
)
def test_wrong_plans_are_refused(options, message, file):
    with pytest.raises(ValueError, match=message):
        plan_sweep(file, **options)


texts_of = st.one_of(st.text("a+,=/ é", max_size=4), st.text("ab", min_size=100, max_size=130))


@given(
    texts=st.lists(texts_of, min_size=1, max_size=3, unique=True),
    lists=st.lists(st.lists(texts_of, min_size=1, max_size=2), min_size=1, max_size=3, unique_by=tuple),
)
def test_names_are_plain_and_differ(texts, lists, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "mine.toml"
    path.write_text("", encoding="utf-8")
    names = trial_names(plan_sweep(path, over={"data.root": texts, "data.trees.train": lists}))
    assert len(set(names)) == len(names) == len(texts) * len(lists)
    assert all(re.fullmatch(r"[\w.+=,-]{1,120}", name, re.ASCII) for name in names)


def test_short_names():
    names = ["syntax.mlp", "semantics.pruning.mlp", "estimator.eta", "data.synthetic.seed"]
    assert list(short_names(names).values()) == ["syntax.mlp", "pruning.mlp", "eta", "synthetic.seed"]


# The ranking


def results_of(sweep: Sweep, scores: list[float | None]) -> list[Result]:
    return [
        Result(trial, "failed", "It broke.") if score is None else Result(trial, "finished", score=score, seconds=60)
        for trial, score in zip(sweep.trials, scores, strict=True)
    ]


def test_ranking(file):
    sweep = plan_sweep(file, overrides={"semantics.mlp": 9}, seeds=[0, 1])
    results = results_of(sweep, [70.0, 99.0, 80.0, 72.0, None, 84.0])
    for result in results:
        result.tests = {"id": 100.0 - (result.score or 0)}
    rows = rank(sweep, results)
    assert [row.settings["estimator.eta"] for row in rows] == [2.0, 0.1, 1.0]
    assert [row.mean for row in rows] == [82.0, 71.0, 99.0]  # one seed of two is no basis to be chosen on
    assert [row.complete for row in rows] == [True, True, False]
    assert rows[0].sd == pytest.approx(2 * 2**0.5)
    assert rows[2].sd is None
    assert rows[2].failures == {1: "It broke."}
    assert rows[0].tests == {"id": 18.0}
    assert chosen_row(rows) is rows[0]


def test_nothing_is_chosen_without_scores(file):
    sweep = plan_sweep(file)
    assert chosen_row(rank(sweep, results_of(sweep, [None] * 6))) is None
    assert chosen_row(rank(sweep, [Result(trial, "finished") for trial in sweep.trials])) is None


def line(phase: str, epoch: int, dev: dict[str, float] | None, is_best: bool = False, step: int = 4) -> str:
    record = {"phase": phase, "epoch": epoch, "step": step, "of": 4, "dev": dev, "is_best": is_best}
    return json.dumps(record) + "\n"


def test_steps_are_read_as_they_come(tmp_path):
    path = tmp_path / "steps.jsonl"
    steps = Steps(path)
    assert (steps.place, steps.score) == ("", None)
    path.write_text(line("syntax", 1, {"UAS": 90.0}, True), encoding="utf-8")
    steps.update()
    assert (steps.place, steps.measure, steps.score) == ("syntax 1", "UAS", 90.0)
    with path.open("a", encoding="utf-8") as file:
        file.write(line("joint", 1, None, step=3))
        file.write(line("joint", 1, {"LF": 60.0, "UAS": 91.0}, True)[:-20])  # still being written
        file.flush()
        steps.update()
        assert (steps.place, steps.measure, steps.score) == ("joint 1 (3/4)", "", None)  # another phase, no score yet
        file.write(line("joint", 1, {"LF": 60.0, "UAS": 91.0}, True)[-20:])
        file.write("{}\nnull\n[]\n")  # nothing that a training writes
        file.write(line("joint", 2, {"LF": 64.0, "UAS": 90.0}, True) + line("joint", 3, {"LF": 62.0, "UAS": 92.0}))
    steps.update()
    assert (steps.place, steps.measure, steps.score, steps.epoch) == ("joint 3", "LF", 64.0, 2)
    # A resumed training writes the file anew, without what came after its saved state.
    beside = tmp_path / "new"
    beside.write_text(line("syntax", 1, {"UAS": 90.0}, True) + line("joint", 1, {"LF": 60.0}, True), encoding="utf-8")
    beside.replace(path)
    steps.update()
    assert (steps.score, steps.epoch) == (60.0, 1)
    path.unlink()
    steps.update()
    assert steps.score is None


def test_without_development_data_there_is_no_score(tmp_path):
    path = tmp_path / "steps.jsonl"
    path.write_text(line("joint", 5, {}, True), encoding="utf-8")
    steps = Steps(path)
    assert (steps.score, steps.epoch) == (None, 5)


# The processes


def test_trials_are_trained_and_then_left_alone(file, trainer, tmp_path):
    out = tmp_path / "out"
    sweep = plan_sweep(file, over={"estimator.eta": [1.0, 2.0]}, overrides={"semantics.mlp": 5}, seeds=[0, 1])
    results = finish(sweep, out, trainer, processes=2)
    assert [(result.status, result.score, result.epoch) for result in results] == [
        ("finished", 70 + eta + seed, 2) for seed in (0, 1) for eta in (1.0, 2.0)
    ]
    for trial in sweep.trials:
        assert load_config(out / f"{trial.name}.toml") == trial.config  # enough to repeat it by hand
        assert (out / f"{trial.name}.log").read_text(encoding="utf-8").startswith("hello from eta")
        calls = [json.loads(call) for call in (out / trial.name / "calls").read_text("utf-8").splitlines()]
        run = str(out / trial.name)
        assert calls == [[f"{run}.toml", "--out", run, "--threads", "1"]]
    record = json.loads((out / "sweep.json").read_bytes())
    assert record["chosen"] == {"estimator.eta": 2.0}
    assert record["measure"] == "LF"
    assert [row["mean"] for row in record["rows"]] == [72.5, 71.5]
    assert "tests" not in record["rows"][0]
    with (out / "sweep.csv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    assert [(row["estimator.eta"], row["dev_mean"], row["dev_seed_1"]) for row in rows] == [
        ("2", "72.5", "73.0"),
        ("1", "71.5", "72.0"),
    ]
    seconds = [result.seconds for result in results]
    # Once more: nothing is trained, and everything is still known.
    again = finish(sweep, out, ["false"], tests=True)
    assert [result.score for result in again] == [result.score for result in results]
    assert [result.seconds for result in again] == seconds
    assert [result.tests for result in again] == [{"id": 100 * (1 - eta / 10)} for eta in (1.0, 2.0)] * 2
    # The dev score chose, though the test set would choose the other.
    assert json.loads((out / "sweep.json").read_bytes())["chosen"] == {"estimator.eta": 2.0}
    # More values and seeds: only those are new.
    grown = plan_sweep(file, over={"estimator.eta": [1, 2, 3]}, overrides={"semantics.mlp": 5}, seeds=[0, 1, 2])
    assert sum(result.status == "waiting" for result in known_results(grown, out)) == 5
    assert {result.status for result in finish(grown, out, trainer, processes=2)} == {"finished"}
    assert len((out / sweep.trials[0].name / "calls").read_text("utf-8").splitlines()) == 1


def test_failures_do_not_stop_the_others(file, trainer, tmp_path):
    out = tmp_path / "out"
    plan = {"over": {"estimator.eta": [66, 67, 68, 1]}, "overrides": {"semantics.mlp": 5}}
    results = finish(plan_sweep(file, **plan), out, trainer)
    assert [result.status for result in results] == ["failed", "failed", "failed", "finished"]
    assert [result.reason for result in results[:3]] == [
        "The joint loss is nan at step 3.",
        "It was ended by SIGKILL, as the system does when memory runs out.",
        "It ended without a scores.json.",
    ]
    record = json.loads((out / "sweep.json").read_bytes())
    assert record["chosen"] == {"estimator.eta": 1}
    assert "seed 0: The joint loss is nan at step 3." in (out / "sweep.csv").read_text("utf-8")
    # They are tried again, from what they saved.
    results = finish(plan_sweep(file, **plan), out, trainer)
    assert [result.status for result in results] == ["failed", "failed", "failed", "finished"]
    assert (out / "eta=66,seed=0.log").read_text("utf-8").count("hello") == 2


def test_no_more_than_so_many_at_a_time(file, trainer, tmp_path):
    most = 0
    for results in run_trials(plan_sweep(file), tmp_path / "out", processes=2, command=trainer, pause=0.01):
        most = max(most, sum(result.status == "running" for result in results))
    assert most == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_stop(number, file, trainer, tmp_path, request):
    out = tmp_path / "out"
    plan = {"over": {"estimator.eta": [1, 99, 2, 3]}, "overrides": {"semantics.mlp": 5}}
    # Whoever runs the tests in the background may have these signals ignored.
    ours = signal.signal(number, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(number, ours))
    before = signal.getsignal(number)

    def stop() -> None:
        deadline = time.monotonic() + 30
        while not (out / "eta=99,seed=0" / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=stop)
    thread.start()
    message = "interrupted with 1 of 4 trials finished; run the same command again to go on"
    with pytest.raises(KeyboardInterrupt, match=message):
        finish(plan_sweep(file, **plan), out, trainer)
    thread.join()
    assert signal.getsignal(number) == before
    assert (out / "eta=99,seed=0" / "saved").exists()
    record = json.loads((out / "sweep.json").read_bytes())
    assert [trial["status"] for trial in record["trials"]] == ["finished", "interrupted", "waiting", "waiting"]
    results = finish(plan_sweep(file, **plan), out, trainer)
    assert {result.status for result in results} == {"finished"}
    calls = (out / "eta=99,seed=0" / "calls").read_text("utf-8").splitlines()
    assert json.loads(calls[1]) == ["--resume", str(out / "eta=99,seed=0"), "--threads", "1"]


def test_a_caller_who_gives_up_leaves_no_process(file, trainer, tmp_path):
    out = tmp_path / "out"
    looks = run_trials(
        plan_sweep(file, over={"estimator.eta": [99]}, overrides={"semantics.mlp": 5}), out, command=trainer, pause=0.01
    )
    for _ in looks:
        if (out / "eta=99,seed=0" / "ready").exists():
            break
    looks.close()
    assert (out / "eta=99,seed=0" / "saved").exists()


def test_one_sweep_at_a_time_in_a_folder(file, trainer, tmp_path):
    out = tmp_path / "out"
    plan = plan_sweep(file, over={"estimator.eta": [99]}, overrides={"semantics.mlp": 5})
    looks = run_trials(plan, out, command=trainer, pause=0.01)
    next(looks)
    with pytest.raises(ValueError, match=r"trainings are still running in .* \(process \d+\); wait for them"):
        next(run_trials(plan, out, command=trainer))
    looks.close()


def test_other_settings_are_refused(file, trainer, tmp_path):
    out = tmp_path / "out"
    over = {"estimator.eta": [1, 2]}
    finish(plan_sweep(file, over=over, overrides={"semantics.mlp": 5}), out, trainer)
    with pytest.raises(ValueError, match=r"was trained with semantics.mlp = 5, and this sweep has 6"):
        known_results(plan_sweep(file, over=over, overrides={"semantics.mlp": 6}), out)
    with pytest.raises(ValueError, match=r"holds another sweep, with trials such as eta=2,seed=0"):
        known_results(plan_sweep(file, over={"estimator.eta": [1]}, overrides={"semantics.mlp": 5}), out)
    (out / "eta=1,seed=0" / "scores.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"scores.json is damaged \(.*\); write it again with spigot train --resume"):
        known_results(plan_sweep(file, over=over, overrides={"semantics.mlp": 5}), out, tests=True)
    (out / "sweep.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"sweep.json is damaged"):
        known_results(plan_sweep(file, over=over, overrides={"semantics.mlp": 5}), out)
    with pytest.raises(ValueError, match="is the folder of one run"):
        known_results(plan_sweep(file), out / "eta=1,seed=0")
    with pytest.raises(NotADirectoryError, match="is a file"):
        known_results(plan_sweep(file), file)


@pytest.mark.parametrize("wrong", [{"processes": 0}, {"threads": 0}])
def test_counts_are_positive(wrong, file, tmp_path):
    with pytest.raises(ValueError, match="both must be at least 1"):
        next(run_trials(plan_sweep(file), tmp_path / "out", **wrong))
