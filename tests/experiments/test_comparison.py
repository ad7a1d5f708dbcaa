"""The paper's systems side by side: which trainings, in what order, and what comes of them."""

import json
import os
import signal
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spigot.config import make_config
from spigot.data.formats import write
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.evaluation import score_graphs, score_trees
from spigot.experiments.comparison import run_comparison
from spigot.experiments.comparison_plan import SYSTEMS, check_folder, plan_comparison
from spigot.experiments.comparison_progress import Follower, Progress, time_left
from spigot.experiments.comparison_tables import answers, outcome, remarks
from spigot.training.checkpoint import MODEL, read_tensors
from spigot.training.run import train

# The words, files and signals of `spigot train`, without a network. Files beside the runs say what happens.
TRAINER = """
import json, pathlib, shutil, signal, sys, time, tomllib
words = dict(zip(sys.argv, sys.argv[1:]))
run = pathlib.Path(words.get("--resume") or words["--out"])
out = run.parent
run.mkdir(exist_ok=True)
if "--out" in words:
    shutil.copy(sys.argv[1], run / "config.toml")
config = tomllib.loads((run / "config.toml").read_text())
system = config["system"]
def note(word):
    with (out / "calls").open("a") as calls:
        calls.write(f"{run.name} {word}\\n")
def step(phase, **more):
    values = {"phase": phase, "epoch": 1, "step": 1, "of": 1, "task": "syntax", "loss": 2.0, "sentences": 8}
    with (run / "steps.jsonl").open("a") as steps:
        steps.write(json.dumps({**values, "tokens": 9, "dev": None, "is_best": False, **more}) + "\\n")
def wait(condition):
    for _ in range(12000):
        if condition():
            return
        time.sleep(0.01)
    sys.exit("spigot: It waited in vain.")
note("resumed" if "--resume" in words else "started")
if (out / f"fail-{system}").exists():
    sys.exit("spigot: The joint loss is nan at step 3. Try a lower learning rate.")
if (out / f"hang-{system}").exists() and "--resume" not in words:
    def stop(number, frame):
        note("saved")
        sys.exit(130)
    signal.signal(signal.SIGTERM, stop)
    note("hangs")
    time.sleep(60)
if system == "pipeline":
    step("syntax", dev={"UAS": 90.0}, is_best=True)
    if (out / "patient").exists():
        time.sleep(0.2)
        note("parses")
    (run / "model.safetensors").touch()
    step("semantics")
    if (out / "patient").exists():
        wait(lambda: "spigot-0 started" in (out / "calls").read_text())
source = config["stages"].get("syntax", {}).get("start")
if source and not pathlib.Path(source, "model.safetensors").exists():
    sys.exit("spigot: There is no parser.")
step("joint", dev={"LF": 70.0, "UAS": 91.0}, is_best=True)
(run / "scores.json").write_text("{}")
note("finished")
"""


@pytest.fixture
def command(tmp_path):
    path = tmp_path / "trainer.py"
    path.write_text(TRAINER, encoding="utf-8")
    return [sys.executable, "-I", "-S", str(path)]


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


def calls(out):
    return (out / "calls").read_text().splitlines()


def finish(plan, out, command, processes=2):
    *_, known = run_comparison(plan, out, processes=processes, command=command, pause=0.01)
    return {progress.trial.name: progress for progress in known}


# ------------------------------------------------------------------------------------------------------------ the plan


def test_every_system_has_the_same_settings_but_for_what_it_is():
    plan = plan_comparison("runs/x", seeds=[4, 5])
    configs = [trial.config for trial in plan.trials]
    assert {(c.system, c.seed) for c in configs} == {(system, seed) for system in SYSTEMS for seed in (4, 5)}
    assert len({c.data.model_dump_json() for c in configs}) == 1
    assert len({c.stages["semantics"].model_dump_json(exclude={"reads"}) for c in configs}) == 1
    assert len({(c.training.epochs, c.training.batch, c.training.pretrain) for c in configs}) == 1
    starts = {t.name: t.config.stages["syntax"].start if "syntax" in t.config.stages else "" for t in plan.trials}
    assert starts["spigot-5"] == starts["ste-5"] == starts["attention-5"] == str(Path("runs/x/pipeline-5"))
    assert starts["pipeline-5"] == starts["neurboparser-5"] == ""
    assert plan.runs(Path("a"))["ste"] == [Path("a/ste-4"), Path("a/ste-5")]


def test_a_system_that_starts_from_a_parser_brings_the_pipeline():
    assert plan_comparison("x", systems=["spigot"]).systems == ("pipeline", "spigot")
    assert plan_comparison("x", systems=["spigot", "neurboparser"]).systems == ("neurboparser", "pipeline", "spigot")
    assert plan_comparison("x", systems=["neurboparser"]).systems == ("neurboparser",)


def test_quick_is_smaller_and_settings_win():
    full, quick = plan_comparison("x"), plan_comparison("x", quick=True, overrides={"training.epochs": 3})
    assert Progress(quick.trials[0]).work < Progress(full.trials[0]).work / 3
    assert {trial.config.training.epochs for trial in quick.trials} == {3}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"systems": []}, "there is no system to train"),
        ({"systems": ["bilstm"]}, "there is no system 'bilstm'; choose from neurboparser"),
        ({"seeds": []}, "there is no seed"),
        ({"overrides": {"system": "ste"}}, "system is for the comparison to say; leave out --system"),
        ({"overrides": {"data.source": "files"}}, "the demo is about the built-in corpus"),
        ({"overrides": {"training.epochs": 0}}, r"--training\.epochs 0: it should be greater than 0"),
    ],
)
def test_impossible_plans_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan_comparison("x", **arguments)


# --------------------------------------------------------------------------------------------------------- the training


def test_a_parser_is_taken_over_as_soon_as_it_is_frozen(out, command):
    (out / "patient").touch()  # the pipeline ends only after spigot has started
    known = finish(plan_comparison(out, systems=["spigot"]), out, command)
    assert [progress.status for progress in known.values()] == ["finished", "finished"]
    said = calls(out)
    assert said.index("pipeline-0 parses") < said.index("spigot-0 started") < said.index("pipeline-0 finished")


def test_the_parser_of_a_pipeline_never_changes_once_it_is_frozen(tmp_path):
    """What `run_comparison` relies on, with a real training."""
    small = {"encoder": {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}, "mlp": 8}
    given = {
        "system": "pipeline",
        "data": {"source": "synthetic", "synthetic": {"train": 16, "dev": 4, "test": 2}, "tags": "columns"},
        "syntax": {**small, "optimiser": {"learning_rate": 0.1}},
        "semantics": {**small, "pruning": {"learned": False, "rare_role": 0}},
        "training": {"epochs": 3, "pretrain": 4, "batch": 4, "patience": 0},
    }
    first = None
    for step in train(make_config(given), tmp_path / "run"):
        if step.phase == "semantics" and first is None:
            first, _ = read_tensors(tmp_path / "run" / MODEL)
    last, _ = read_tensors(tmp_path / "run" / MODEL)
    assert first is not None
    syntax = [name for name in last if name.startswith("_stages.syntax.")]
    assert syntax
    assert all(first[name].equal(last[name]) for name in syntax)
    assert not all(first[name].equal(last[name]) for name in last)


def test_a_failure_does_not_stop_the_others(out, command):
    (out / "fail-attention").touch()
    known = finish(plan_comparison(out), out, command)
    assert known["attention-0"].status == "failed"
    assert known["attention-0"].reason == "The joint loss is nan at step 3."
    assert {name for name, progress in known.items() if progress.status == "finished"} == {
        "neurboparser-0", "pipeline-0", "ste-0", "spigot-0"
    }  # fmt: skip
    (out / "fail-attention").unlink()
    (out / "calls").unlink()
    assert finish(plan_comparison(out), out, command)["attention-0"].status == "finished"
    assert calls(out) == ["attention-0 resumed", "attention-0 finished"]  # nothing else is trained again


def test_without_the_parser_nothing_starts_from_it(out, command):
    (out / "fail-pipeline").touch()
    known = finish(plan_comparison(out, systems=["neurboparser", "spigot"]), out, command)
    assert known["neurboparser-0"].status == "finished"
    assert known["spigot-0"].status == "failed"
    assert known["spigot-0"].reason == "It starts from the parser of pipeline-0, which failed."
    assert not any("spigot-0" in call for call in calls(out))


@pytest.mark.skipif(not hasattr(signal, "SIGTERM") or os.name == "nt", reason="signals are those of POSIX")
def test_an_interruption_saves_and_the_same_command_goes_on(out, command):
    (out / "hang-neurboparser").touch()
    plan = plan_comparison(out, systems=["neurboparser", "pipeline"])

    places = []

    def interrupted():
        sent = False
        for known in run_comparison(plan, out, processes=2, command=command, pause=0.01):
            hangs = (out / "calls").exists() and "neurboparser-0 hangs" in calls(out)
            if not sent and hangs and known[0].status == "finished":
                os.kill(os.getpid(), signal.SIGINT)
                sent = True
            places.append(known[1].place)

    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run with it ignored
    try:
        with pytest.raises(KeyboardInterrupt, match="1 of 2 trainings finished; run the same command again"):
            interrupted()
    finally:
        signal.signal(signal.SIGINT, ours)
    assert places[-1] == "interrupted"
    assert "saving" in places
    assert "neurboparser-0 saved" in calls(out)
    known = finish(plan, out, command)
    assert {progress.status for progress in known.values()} == {"finished"}
    assert calls(out).count("pipeline-0 started") == 1
    assert "neurboparser-0 resumed" in calls(out)


def test_other_settings_are_refused(out, command):
    finish(plan_comparison(out, systems=["neurboparser"]), out, command)
    check_folder(plan_comparison(out, seeds=[0, 1]), out)  # more systems and seeds are welcome
    check_folder(plan_comparison("elsewhere"), out)
    check_folder(plan_comparison(out, overrides={"estimator.eta": 0.5}), out)  # which a system without wires lacks
    other = plan_comparison(out, overrides={"semantics.mlp": 5})
    with pytest.raises(ValueError, match=r"neurboparser-0 was trained with semantics.mlp = 64, not 5; .* afresh"):
        next(run_comparison(other, out, command=command))
    with pytest.raises(ValueError, match="is the folder of one run; choose another --out"):
        check_folder(other, out / "neurboparser-0")
    with pytest.raises(NotADirectoryError, match="is a file"):
        check_folder(other, out / "calls")
    with pytest.raises(ValueError, match="processes is 0"):
        next(run_comparison(other, out, processes=0))


def test_two_at_once_do_not_share_a_folder(out, command):
    plan = plan_comparison(out, systems=["neurboparser"])
    first = run_comparison(plan, out, command=command, pause=0.01)
    next(first)
    with pytest.raises(ValueError, match=r"trainings are still running in .*; wait for them, or stop them"):
        next(run_comparison(plan, out, command=command))
    *_, known = first
    assert known[0].status == "finished"


# --------------------------------------------------------------------------------------------------------- the progress


def line(phase, epoch, step, task, loss, sentences=8, dev=None, best=False):
    values = {"phase": phase, "epoch": epoch, "step": step, "of": 4, "task": task, "loss": loss, "tokens": 80}
    return json.dumps({**values, "sentences": sentences, "dev": dev, "is_best": best}) + "\n"


def test_steps_are_followed_as_they_come(tmp_path):
    trial = plan_comparison("x").trials[-1]
    progress = Progress(trial, "running")
    follower = Follower(progress, tmp_path)
    follower.update()
    assert (progress.place, progress.share) == ("reading", 0.0)
    file = tmp_path / "steps.jsonl"
    epochs = trial.config.training.epochs
    file.write_text(line("joint", 1, 1, "syntax", 2.0) + line("joint", 1, 2, "syntax", 5.0, 4))
    follower.update()
    first = progress.done
    assert progress.place == f"joint 1/{epochs}"
    assert progress.losses == {"syntax": 3.0}  # a mean of sentences, not of steps
    with file.open("a") as more:
        more.write(line("joint", 1, 4, "semantics", 9.0, dev={"LF": 50.0}, best=True))
        more.write(line("joint", 2, 4, "semantics", 8.0, dev={"LF": 40.0}) + '{"phase": "joint", "epo')
    follower.update()
    assert progress.losses == {"semantics": 8.0}
    assert progress.dev == {"LF": 50.0}
    assert first < progress.done < progress.work
    with file.open("a") as more:  # the rest of the line, and the end
        more.write('ch": 1}\n' + "null\n[]\n" + line("joint", epochs, 4, "semantics", 1.0, dev={"LF": 60.0}, best=True))
    follower.update()
    assert (progress.place, progress.dev) == ("scoring", {"LF": 60.0})
    assert 0.8 < progress.share < 1
    file.unlink()
    file.write_text(line("joint", 1, 1, "syntax", 2.0))  # begun again
    follower.update()
    assert progress.place == f"joint 1/{epochs}"
    assert progress.done < first


def test_time_left_waits_for_the_parser():
    pipeline, spigot = plan_comparison("x", systems=["spigot"]).trials
    at_once = [Progress(pipeline, "running", seconds=10, work=3000, done=500), Progress(spigot, work=3000)]
    alone = time_left(at_once[:1], {}, 2)
    assert alone == pytest.approx(2500 / 50)
    free, waiting = time_left(at_once, {}, 2), time_left(at_once, {"spigot-0": "pipeline-0"}, 2)
    assert free == pytest.approx(3000 / 50)
    assert waiting is not None
    assert 60 < waiting < 110  # longer than side by side, shorter than one after the other
    assert time_left(at_once, {}, 1) == pytest.approx(110)
    assert time_left([Progress(pipeline)], {}, 2) is None
    # What an earlier command did says nothing about the pace.
    resumed = Progress(pipeline, "running", seconds=10, work=3000, done=2500, before=2000)
    assert time_left([resumed], {}, 1) == pytest.approx(10)


# ----------------------------------------------------------------------------------------------------------- the tables

WORDS = ("a", "quiet", "fox", "waits", ".")
RIGHT = Sentence(
    WORDS,
    heads=(3, 3, 4, 0, 4),
    graph=Graph.of([Arc(1, 3, "BV"), Arc(2, 3, "ARG1"), Arc(4, 3, "ARG1")], tops=[4]),
)
NO_ROLE = replace(RIGHT, graph=Graph.of([Arc(1, 3, "BV"), Arc(2, 3, "ARG2"), Arc(4, 3, "ARG1")], tops=[4]))
NO_ARC = replace(RIGHT, heads=(2, 3, 4, 0, 4), graph=Graph.of([Arc(1, 3, "BV")], tops=[3]))


def make_run(folder, found, *, trees=True):
    """What a finished training leaves behind, as far as the tables look at it."""
    folder.mkdir(parents=True)
    for part in ("dev", "id", "ood"):
        write([RIGHT] * len(found), folder / f"gold.{part}.jsonl")
        write([replace(sentence, heads=None) for sentence in found], folder / f"predictions.{part}.sdp")
        if trees:
            write([replace(sentence, graph=None) for sentence in found], folder / f"predictions.{part}.conllu")
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "neurboparser": [make_run(folder / "neurboparser-0", [NO_ARC] * 8, trees=False)],
        "pipeline": [make_run(folder / "pipeline-0", [NO_ROLE] * 4 + [NO_ARC] * 4)],
        "spigot": [make_run(folder / "spigot-0", [RIGHT] * 4 + [NO_ROLE] * 4)],
    }


def test_table_1_is_what_the_scorer_says(runs):
    found = outcome(runs, samples=200)
    assert found.sentences == {"id": 8, "ood": 8}
    assert [row.system for row in found.rows] == ["neurboparser", "pipeline", "spigot"]
    for row in found.rows:
        gold, predicted = answers(runs[row.system][0], "ood")
        graphs, cells = score_graphs(gold, predicted), row.scores["ood"]
        assert cells["LF"].mean == pytest.approx(graphs.labelled.f1)
        assert cells["UF"].mean == pytest.approx(graphs.unlabelled.f1)
        assert cells["LF"].low <= cells["LF"].mean <= cells["LF"].high
        assert cells["LF"].sd is None
        if row.system == "neurboparser":
            assert "UAS" not in cells
        else:
            assert cells["UAS"].mean == pytest.approx(score_trees(gold, predicted).uas)


def test_table_3_divides_the_sentences_by_their_trees(runs, tmp_path):
    analysis = outcome(runs, samples=50).analysis
    assert analysis is not None
    groups = {group.name: group for group in analysis.groups}
    assert (groups["same"].sentences, groups["different"].sentences) == (4, 4)
    assert groups["different"].scores["UAS"].difference == pytest.approx(0.2)
    assert outcome({"spigot": runs["spigot"]}, samples=50).analysis is None
    # Only runs of the same seed belong together, whichever of them failed.
    other = make_run(tmp_path / "pipeline-1", [NO_ARC] * 8)
    assert outcome({**runs, "pipeline": [other]}, samples=50).analysis is None
    assert outcome({**runs, "pipeline": [other, *runs["pipeline"]]}, samples=50).analysis == analysis


def test_several_seeds_give_mean_and_deviation(runs, tmp_path):
    second = make_run(tmp_path / "spigot-1", [RIGHT] * 2 + [NO_ARC] * 6)
    cell = outcome({"spigot": [runs["spigot"][0], second]}, samples=50).rows[0].scores["id"]["LF"]
    each = [score_graphs(*answers(run, "id")).labelled.f1 for run in (runs["spigot"][0], second)]
    assert cell.values == pytest.approx(each)
    assert cell.mean == pytest.approx(statistics.fmean(each))
    assert cell.sd == pytest.approx(statistics.stdev(each))


def test_remarks_are_careful(runs):
    found = outcome(runs, samples=200)
    said = remarks(found)
    assert any(remark.startswith("spigot against pipeline: LF +") for remark in said)
    assert "not be due to the gradient through the trees alone" in " ".join(said)
    assert "trained once" in said[-1]
    level = replace(found.differences[0], result=replace(found.differences[0].result, low=-0.01, high=0.02))
    assert "may be chance" in remarks(replace(found, differences=(level,)))[0]


def test_missing_files_say_what_to_do(runs, tmp_path):
    run = make_run(tmp_path / "old", [RIGHT])
    (run / "gold.dev.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no gold\.dev\.jsonl; finish it with: spigot train --resume"):
        answers(run, "dev")
