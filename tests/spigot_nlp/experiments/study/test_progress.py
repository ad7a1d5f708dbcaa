"""How far trainings are, and how long they still take."""

import json

import pytest

from spigot_nlp.config import make_config
from spigot_nlp.experiments.study.progress import Follower, Progress, time_left
from spigot_nlp.experiments.study.trials import Role, Trial


def line(phase, epoch, step, task, loss, sentences=8, dev=None, best=False):
    values = {"phase": phase, "epoch": epoch, "step": step, "of": 4, "task": task, "loss": loss, "tokens": 80}
    return json.dumps({**values, "sentences": sentences, "dev": dev, "is_best": best}) + "\n"


@pytest.fixture
def progress():
    config = make_config({"training": {"pretrain": 2, "epochs": 6}, "semantics": {"pruning": {"learned": False}}})
    return Progress(Trial("spigot-0", "spigot", "", 0, config), "running")


def test_steps_are_followed_as_they_come(progress, tmp_path):
    follower = Follower(progress, tmp_path)
    follower.update()
    assert (progress.place, progress.share) == ("reading", 0.0)
    file = tmp_path / "steps.jsonl"
    file.write_text(line("syntax", 1, 1, "syntax", 2.0) + line("syntax", 1, 2, "syntax", 5.0, 4))
    follower.update()
    first = progress.share
    assert progress.place == "syntax 1/2"
    assert progress.losses == {"syntax": 3.0}  # a mean of sentences, not of steps
    with file.open("a") as more:
        more.write(line("syntax", 2, 4, "syntax", 3.0, dev={"UAS": 90.0}, best=True))
        more.write(line("joint", 1, 4, "semantics", 9.0, dev={"LF": 50.0}, best=True))
        more.write(line("joint", 2, 4, "semantics", 8.0, dev={"LF": 40.0}) + '{"phase": "joint", "epo')
    follower.update()
    assert progress.losses == {"semantics": 8.0}
    assert (progress.dev, progress.measure, progress.best_epoch) == ({"LF": 50.0}, "LF", 1)
    assert first < progress.share < 0.95
    assert progress.score is None  # there may be a better one
    with file.open("a") as more:  # the rest of the line, what no training writes, and the end
        more.write('ch": 1}\nnull\n[]\n{}\n' + line("joint", 6, 4, "semantics", 1.0, dev={"LF": 60.0}, best=True))
    follower.update()
    assert (progress.place, progress.dev) == ("scoring", {"LF": 60.0})
    assert 0.8 < progress.share < 1
    progress.status = "finished"
    assert progress.score == 60.0
    progress.status = "running"
    # A resumed training writes the file anew, without what came after its saved state.
    beside = tmp_path / "new"
    beside.write_text(line("syntax", 1, 1, "syntax", 2.0))
    beside.replace(file)
    follower.update()
    assert (progress.place, progress.dev, progress.best_epoch) == ("syntax 1/2", {}, None)
    assert progress.share < first
    file.unlink()
    follower.update()
    assert progress.place == "reading"


def test_without_development_data_there_is_no_score(progress, tmp_path):
    (tmp_path / "steps.jsonl").write_text(line("joint", 5, 4, "semantics", 1.0, dev={}, best=True))
    Follower(progress, tmp_path).update()
    progress.status = "finished"
    assert (progress.score, progress.best_epoch) == (None, 5)


def test_of_a_long_training_what_matters_is_read(progress, tmp_path):
    """A study that goes on looks at hundreds of such files."""
    steps = [line("joint", k // 2000 + 1, k % 4 + 1, "semantics", 1.0 + k % 2) for k in range(12000)]
    for epoch in range(1, 6):
        steps[2000 * epoch - 1] = line("joint", epoch, 4, "semantics", 1.0, dev={"LF": 50.0 + epoch}, best=epoch < 4)
    (tmp_path / "steps.jsonl").write_text("".join(steps))
    read = []
    follower = Follower(progress, tmp_path)
    follower._see = lambda step, see=follower._see: (read.append(step), see(step))[-1]
    follower.update()
    assert (progress.dev, progress.best_epoch, progress.place) == ({"LF": 53.0}, 3, "joint 6/6")
    assert progress.losses == {"semantics": 1.5}
    assert len(read) <= 205


def about(name, *known, system="ste", role: Role = "final", share=0.0, before=0.0, earlier=0.0):
    trial = Trial(name, system, "", 0, make_config({}), role)
    return Progress(trial, *known, share=share, before=before, earlier=earlier)


def test_time_left():
    waiting, running = about("a"), about("b", "running", "", 50.0)
    assert time_left([waiting, running, about("c", "failed", "", 3.0)], 3, 2) is None
    done = about("d", "finished", "", 100.0)
    assert time_left([waiting, running, done], 3, 2) == 100  # side by side
    assert time_left([waiting, running, done], 3, 1) == 150
    assert time_left([waiting, running, done], 5, 1) == 350  # two that nobody can name yet
    assert time_left([done, about("e", "running", "", 130.0)], 2, 2) == 0
    assert time_left([done], 1, 2) == 0


def test_the_pace_is_that_of_trainings_like_it():
    quick, slow = about("a", "finished", "", 10.0, system="ste"), about("b", "finished", "", 90.0, system="spigot")
    parser = about("p", "finished", "", 500.0, system="parser", role="shared")
    known = [quick, slow, parser]
    assert time_left([*known, about("c", system="spigot")], 4, 1) == 90
    assert time_left([*known, about("c", system="pipeline")], 4, 1) == 50  # the others that count
    assert time_left([*known, about("c", "interrupted", "", 45.0, system="spigot", share=0.5)], 4, 1) == 45


def test_what_was_done_before_says_nothing_of_the_pace():
    alone = about("a", "running", "", 50.0, share=0.5)
    assert time_left([alone], 1, 1) == pytest.approx(50)
    # An hour for nine tenths, and ten seconds for half of the rest.
    resumed = about("a", "running", "", 3615.0, share=0.95, before=0.8, earlier=3600.0)
    assert time_left([resumed], 1, 1) == pytest.approx(5)
