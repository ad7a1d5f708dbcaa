"""What a study shows of its trainings, on screens of all sizes and where there is none."""

import io
import re
import sys

import pytest
from rich.console import Console

from spigot_nlp.cli.study_display import EVERY, Lines, shown, table
from spigot_nlp.config import Config
from spigot_nlp.experiments.study.progress import Progress
from spigot_nlp.experiments.study.trials import Trial

SYSTEMS = ["neurboparser", "pipeline", "attention", "ste", "spigot"]


def some_progress():
    """Five trainings in all states there are."""
    known = {name: Progress(Trial(f"{name}-0", name, "", 0, Config())) for name in SYSTEMS}
    for name, share, seconds in (("pipeline", 1, 60), ("neurboparser", 1, 30), ("attention", 0.4, 14), ("ste", 0, 3)):
        known[name].share, known[name].seconds = share, seconds
    known["pipeline"].status = known["neurboparser"].status = "finished"
    known["pipeline"].dev = {"LF": 81.25, "UF": 88.0, "UAS": 95.0}
    running = known["attention"]
    running.status, running.phase, running.epoch, running.epochs = "running", "joint", 7, 18
    running.losses, running.dev = {"semantics": 8.23, "syntax": 0.51}, {"LF": 76.0, "UAS": 94.5}
    known["ste"].status, known["ste"].reason = "failed", "The [bold]loss[/bold] is nan."
    return list(known.values())


def drawn(known, width=80, height=None, size=5):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(table(known, size, 2, spent=70, width=width, height=height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_display_has_a_row_for_each_system():
    known = some_progress()
    lines = drawn(known)
    assert max(map(len, lines)) <= 80
    assert [line.split()[1] for line in lines[1:6]] == SYSTEMS
    assert lines[2].split()[:3] == ["✓", "pipeline", "finished"]
    assert "LF 81.2 UAS 95.0" in lines[2]
    assert lines[3].startswith("▸ attention")
    assert "joint 7/18" in lines[3]
    assert "8.2 0.5" in lines[3]
    assert "2 of 5 trained" in lines[6]
    assert "left" in lines[6]
    assert lines[6].endswith("1:10")
    assert lines[7] == "✗ ste-0: The [bold]loss[/bold] is nan."
    assert any("semantics 8.2 syntax 0.5" in line for line in drawn(known, 110))


@pytest.mark.parametrize("width", [40, 58, 79, 80])
def test_a_narrow_screen_has_what_matters(width):
    known = some_progress()
    lines = drawn(known, width)
    assert max(map(len, lines)) <= width
    assert "joint 7/18" in lines[3]
    assert lines[3].endswith("0:14")
    assert lines[6].split()[:4] == ["2", "of", "5", "trained"]
    assert re.search(r"about \d+:\d\d left +1:10$", lines[6])
    assert ("LF 76.0" in lines[3], "8.2 0.5" in lines[3]) == (width >= 58, width >= 80)


def test_a_low_screen_has_what_runs():
    known = some_progress()
    head, running, last, failed = drawn(known, height=8)
    assert head.split()[0] == "system"
    assert running.startswith("▸ attention")
    assert "2 of 5 trained" in last
    assert failed.startswith("✗ ste-0")


def test_several_seeds_are_told_apart():
    known = [Progress(Trial(f"ste-{seed}", "ste", "", seed, Config())) for seed in (1, 2)]
    assert [line.split()[1] for line in drawn(known, size=2)[1:3]] == ["ste-1", "ste-2"]
    assert drawn(known[:1], size=1)[1].split()[1] == "ste"


def test_a_part_that_nobody_can_name_yet_counts():
    assert drawn(some_progress(), size=9)[6].split()[:4] == ["2", "of", "9", "trained"]


def test_hundreds_fit_on_a_screen():
    """What runs, what failed and the total are always to be seen."""
    known = [Progress(Trial(f"ste-{seed}", "ste", "", seed, Config()), "failed", "It broke.") for seed in range(100)]
    lines = drawn([*some_progress(), *known], height=20, size=105)
    assert len(lines) < 20
    assert any(line.startswith("▸ attention") for line in lines)
    assert any("2 of 105 trained" in line for line in lines)
    assert lines[-1].endswith("more failed")


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_display(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    known = some_progress()
    assert shown([known, known], 5, 2) is known
    assert "\x1b" in screen.getvalue()
    assert "joint 7/18" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_lines_come_now_and_then():
    known = some_progress()
    now = [0.0]
    lines = Lines(5, 2, clock=lambda: now[0])
    assert lines.news(known) == ["attention-0: starts", "ste-0: failed. The [bold]loss[/bold] is nan."]
    assert lines.news(known) == []
    now[0] += EVERY
    place, left = lines.news(known)
    assert place == "attention-0: joint 7/18, LF 76.0, UAS 94.5"
    assert left.startswith("about ")
    assert lines.news(known) == []
    running = next(progress for progress in known if progress.status == "running")
    running.is_stopping = True
    assert running.place == "saving"
    assert lines.news(known) == ["attention-0: saves its state, unless it is interrupted again"]
    assert lines.news(known) == []
    running.status = "finished"
    assert lines.news(known) == ["attention-0: finished, LF 76.0, UAS 94.5, after 14 s"]


def test_what_is_tried_again_is_news():
    progress = Progress(Trial("ste-0", "ste", "", 0, Config()), "running", attempts=1)
    lines = Lines(1, 1)
    assert lines.news([progress]) == ["ste-0: starts"]
    progress.attempts, progress.setback = 2, "It broke."
    assert lines.news([progress]) == ["ste-0: failed, and is tried again. It broke."]
    assert lines.news([progress]) == []
    progress.status, progress.reason = "failed", "It broke."
    assert lines.news([progress]) == ["ste-0: failed. It broke."]
    begun = Progress(Trial("ste-1", "ste", "", 1, Config()), "running", attempts=1, before=0.4)
    assert lines.news([begun]) == ["ste-1: goes on"]


def test_what_is_known_from_before_is_no_news():
    finished = Progress(Trial("ste-0", "ste", "", 0, Config()), "finished")
    assert Lines(1, 1).news([finished]) == []
