"""What a training shows of itself."""

import io
import sys

import pytest

from spigot_nlp.cli.watch import Watch, duration, show_progress
from spigot_nlp.training import Step
from spigot_nlp.training.plan import Phase

PHASES = [Phase("semantics.pruner", ("semantics.pruner",), 1), Phase("joint", ("syntax", "semantics"), 2, "LF")]


def steps():
    yield Step("semantics.pruner", 1, 1, 2, "semantics.pruner", 5.0, 4, 40)
    yield Step("semantics.pruner", 1, 2, 2, "semantics.pruner", 3.0, 4, 40, {"parts_a_token": 5.5})
    for epoch in (1, 2):
        yield Step("joint", epoch, 1, 3, "syntax", 6.0, 1, 10)
        yield Step("joint", epoch, 2, 3, "syntax", 3.0, 2, 20)
        yield Step("joint", epoch, 3, 3, "semantics", 9.0, 4, 30, {"LF": 70.0 - epoch, "UAS": 80.0}, epoch == 1)


def show(taken):
    with show_progress(PHASES) as on_step:
        for step in taken:
            on_step(step)


def test_losses_are_means_of_sentences():
    watch = Watch(PHASES)
    for step in steps():
        watch.see(step)
    assert watch.losses == {"syntax": 4.0, "semantics": 9.0}
    assert watch.best == "best LF 69.00, UAS 80.00 (joint 1)"


def test_speed_and_time_left():
    """Two seconds a step; the last of an epoch, with its scoring, eight."""
    now = [100.0]
    watch = Watch(PHASES, clock=lambda: now[0])
    left = []
    for step in steps():
        now[0] += 8 if step.dev else 2
        watch.see(step)
        left.append(watch.left)
    assert left[0] is None  # nothing is known after one step, which came after the corpus was read
    assert left[1] == pytest.approx(32)  # an epoch of the pruner takes 16 seconds, and two more epochs may take as long
    assert left[4] == pytest.approx(12)  # an epoch takes 2 + 2 + 8 seconds
    assert left[5] == pytest.approx(8)
    assert left[-1] == 0
    assert watch.rate == pytest.approx(30 / 4)
    assert watch.line() == "joint 2/2: semantics 9.000, syntax 4.000; LF 68.00, UAS 80.00; 8 tokens/s"


def test_a_resumed_epoch_counts_only_what_was_seen():
    now = [0.0]
    watch = Watch([Phase("joint", ("syntax",), 1)], clock=lambda: now[0])
    for number in (7, 8, 9):
        now[0] += 2
        watch.see(Step("joint", 1, number, 10, "syntax", 1.0, 1, 10))
    assert watch.rate == 5
    assert watch.left == pytest.approx(2)


def test_a_line_an_epoch_without_a_terminal(capsys):
    show(steps())
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["semantics.pruner 1/1", "joint 1/2", "joint 2/2"]
    assert "LF 69.00, UAS 80.00 (best);" in lines[1]
    assert "parts a token 5.50" in lines[0]


def test_only_the_first_process_shows_anything(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    show(steps())
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_display(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    show(steps())
    text = screen.getvalue()
    assert "joint 1/2: semantics 9.000" in text
    assert "reading and tagging" in text
    assert capsys.readouterr().out == ""


def test_an_interruption_leaves_the_display(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())

    def interrupted():
        yield next(steps())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        show(interrupted())
    assert screen.getvalue().rstrip().endswith("\x1b[2K") or "\x1b[?25h" in screen.getvalue()  # the cursor is back


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59.4, "59 s"), (90, "2 min"), (3599, "1 h 0 min"), (3661, "1 h 1 min")]
)
def test_durations(seconds, words):
    assert duration(seconds) == words
