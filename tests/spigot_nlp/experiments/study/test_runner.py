"""A study from its first training to its last: with failures, interruptions, and whatever stands in its folder."""

import json
import os
import signal
import threading

import pytest

from spigot_nlp.config import load_config
from spigot_nlp.experiments.study.arms import reported, tuning_rows, write_tuning
from spigot_nlp.experiments.study.record import read_record
from spigot_nlp.experiments.study.runner import run_study, score_tests, survey, untested
from tests.spigot_nlp.studying import calls, finish, planned, score, stand_in

ETAS = {"tune": {"estimator.eta": [0.5, 2.0]}}
PARSER = {"parser": {"settings": {"only": "syntax", "training.pretrain": 0}}}
FROM_PARSER = {"settings": {"syntax.start": "{parser}"}}
posix = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def team(tmp_path):
    return stand_in(tmp_path)


def statuses(known):
    return {name: progress.status for name, progress in known.items()}


# ------------------------------------------------------------------------------------------------ one after another


def test_from_the_parser_to_the_test_sets(out, team):
    systems = {"ste": FROM_PARSER, "spigot": {**FROM_PARSER, **ETAS}}
    planner = planned(out, seeds=[0, 1], shared=PARSER, systems=systems, tune={"seeds": [9]})
    (out / "dev-spigot,eta=2-9").write_text("71.5")
    known = finish(planner, team)
    assert len(known) == planner.size == 9
    assert set(statuses(known).values()) == {"finished"}
    assert known["spigot-1"].trial.values == {"estimator.eta": 2.0}
    assert load_config(out / "spigot-1.toml") == known["spigot-1"].trial.config  # enough to repeat it by hand
    said = calls(out)
    assert [sum(call == f"parser-{seed} started" for call in said) for seed in (0, 1, 9)] == [1, 1, 1]
    for later, sooner in [("ste-0", "parser-0"), ("spigot,eta=2-9", "parser-9"), ("spigot-0", "spigot,eta=0.5-9")]:
        assert said.index(f"{sooner} finished") < said.index(f"{later} started")
    assert (out / "ste-0.log").read_text() == "hello from ste-0\n"
    # Nothing has looked at a test set; what does so looks once, and at the trainings that count.
    assert not any("tested" in call for call in said)
    assert read_record(out).tests == ""
    assert score(planner, list(known.values()), team)[-1] == (4, 4)
    tested = [call for call in calls(out) if "tested" in call]
    assert sorted(tested) == [f"{name}-{seed} tested" for name in ("spigot", "ste") for seed in (0, 1)]
    record = read_record(out)
    assert record.tests
    assert record.budget == {"ste": 0, "spigot": 2}
    assert list(score(planner, list(known.values()), team)) == []
    assert (len(calls(out)), read_record(out).tests) == (len(said) + 4, record.tests)
    # The same command trains nothing, and knows all.
    again = finish(planner, team)
    assert len(calls(out)) == len(said) + 4
    assert [(p.score, p.best_epoch) for p in again.values()] == [(p.score, p.best_epoch) for p in known.values()]
    assert [p.seconds for p in again.values()] == pytest.approx([p.seconds for p in known.values()], abs=0.06)


def test_tuning_that_was_finished_before_goes_on(out, team):
    finish(planned(out, systems={"ste": ETAS}, seeds=[]), team)  # as by an earlier command
    known = finish(planned(out, systems={"ste": ETAS}, seeds=[3]), team)
    assert statuses(known) == dict.fromkeys(["ste,eta=0.5-0", "ste,eta=2-0", "ste-3"], "finished")
    assert known["ste-3"].trial.values == {"estimator.eta": 0.5}


def test_a_study_grows(out, team):
    finish(planned(out, systems={"ste": ETAS}), team)
    before = len(calls(out))
    more = {"ste": {"tune": {"estimator.eta": [0.5, 2.0, 3.0]}}, "spigot": {}}
    planner = planned(out, systems=more, seeds=[0, 1])
    assert sum(progress.status == "waiting" for progress in survey(planner)) == 3  # and two that nobody can name yet
    finish(planner, team)
    assert sorted(call for call in calls(out)[before:] if "started" in call) == [
        f"{name} started" for name in ("spigot-0", "spigot-1", "ste,eta=3-0", "ste-1")
    ]


def test_no_more_than_so_many_at_a_time(out, team):
    most = 0
    for known in run_study(planned(out, seeds=[0, 1, 2, 3]), processes=2, team=team, pause=0.005):
        most = max(most, sum(progress.status == "running" for progress in known))
    assert most == 2


# ------------------------------------------------------------------------------------------------ failures


def test_a_failure_stops_none_but_what_starts_from_it(out, team):
    shared = {**PARSER, "again": {"settings": {"only": "syntax", "syntax.start": "{parser}"}}}
    systems = {"neurboparser": {}, "ste": {"settings": {"syntax.start": "{again}"}}}
    (out / "fail-parser-0").touch()
    planner = planned(out, shared=shared, systems=systems, seeds=[0, 1])
    known = finish(planner, team, processes=1)
    bad = ["parser-0", "again-0", "ste-0"]
    assert statuses(known) == {name: "failed" if name in bad else "finished" for name in known}
    assert [known[name].reason for name in bad] == [
        "The joint loss is nan at step 3.",
        "It starts from parser-0, which failed.",
        "It starts from again-0, which failed.",
    ]
    said = calls(out)
    assert not any(call.startswith(("again-0", "ste-0")) for call in said)
    # It was tried again, from what it had saved, when all others were through.
    assert (said.count("parser-0 started"), said.count("parser-0 resumed"), said[-1]) == (1, 1, "parser-0 resumed")
    assert untested(planner, list(known.values())) == "parser-0 is not finished"
    with pytest.raises(ValueError, match="parser-0 is not finished; the test sets are scored once, when all trainings"):
        score(planner, list(known.values()), team)
    # The same command tries once more, and trains nothing else again.
    (out / "fail-parser-0").unlink()
    assert set(statuses(finish(planner, team)).values()) == {"finished"}
    assert {call.split()[0] for call in calls(out)[len(said) :]} == set(bad)


@pytest.mark.parametrize("retries", [0, 2])
def test_how_often_is_for_the_study_to_say(out, team, retries):
    (out / "fail-ste-0").touch()
    known = finish(planned(out, systems={"ste": {}}, retries=retries), team)
    assert len(calls(out)) == known["ste-0"].attempts == 1 + retries


def test_how_a_training_ended(out, team):
    for how in ("kill", "empty"):
        (out / f"{how}-{how}-0").touch()
    known = finish(planned(out, settings={"system": "ste"}, systems={"kill": {}, "empty": {}}, retries=0), team)
    assert known["kill-0"].reason == "It was ended by SIGKILL, as the system does when memory runs out."
    assert known["empty-0"].reason == "It ended without a scores.json."


def test_values_that_cannot_be_trained_are_no_choice(out, team):
    (out / "fail-ste,eta=2-0").touch()
    (out / "dev-ste,eta=2-0").write_text("99.0")
    planner = planned(out, systems={"ste": ETAS})
    known = finish(planner, team)
    assert known["ste-0"].trial.values == {"estimator.eta": 0.5}
    assert untested(planner, list(known.values())) == ""  # what failed was not chosen
    rows = tuning_rows(planner, list(known.values()))
    assert [(row.values["estimator.eta"], row.mean, row.chosen) for row in rows] == [
        (0.5, 70.0, True),
        (2.0, None, False),
    ]
    write_tuning(rows, out / "tuning.csv")
    assert (out / "tuning.csv").read_text().splitlines()[2] == (
        "ste,,2,,,,,,False,seed 0: The joint loss is nan at step 3."
    )
    (out / "dev-ste,eta=0.5-0").write_text("null")
    for path in (out / "ste,eta=0.5-0").iterdir():
        path.unlink()
    known = finish(planner, team)
    assert "ste-0" not in known  # one failed, the other has no score
    assert untested(planner, list(known.values())) == "no values are chosen for ste"


def test_another_choice_than_before(out, team):
    finish(planned(out, systems={"ste": ETAS}), team)
    (out / "dev-ste,eta=3-0").write_text("80")
    planner = planned(out, systems={"ste": {"tune": {"estimator.eta": [0.5, 2.0, 3.0]}}, "spigot": {}}, seeds=[0, 1])
    known = finish(planner, team)
    assert known["ste-0"].status == "failed"  # while others are trained, that is no reason to stop
    assert (
        "ste-0 was trained with estimator.eta = 0.5, and tuning now chooses 3.0; remove that" in known["ste-0"].reason
    )
    assert {status for name, status in statuses(known).items() if name != "ste-0"} == {"finished"}
    with pytest.raises(ValueError, match=r"tuning now chooses 3\.0"):
        survey(planner)


# ------------------------------------------------------------------------------------------------ interruptions


def interrupted(looks, number, when):
    """Take looks until a signal that is sent when something is so has ended them."""
    places = []

    def take():
        sent = False
        for known in looks:
            if not sent and when(known):
                os.kill(os.getpid(), number)
                sent = True
            places.append([progress.place for progress in known])

    before = signal.signal(number, signal.default_int_handler)  # also where the tests run with it ignored
    try:
        with pytest.raises(KeyboardInterrupt) as error:
            take()
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    return str(error.value), places


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_stop(number, out, team):
    (out / "hang-b-0").touch()
    planner = planned(out, settings={"system": "ste"}, systems={"a": {}, "b": {}, "c": {}})
    looks = run_study(planner, team=team, pause=0.005)
    message, places = interrupted(looks, number, lambda known: "b-0 hangs" in calls(out))
    assert message == "interrupted with 1 of 3 trainings finished; run the same command again to go on."
    assert places[-1] == ["finished", "interrupted", "waiting"]
    assert ["finished", "saving", "waiting"] in places
    record = json.loads((out / "study.json").read_bytes())
    assert [training["status"] for training in record["trainings"]] == ["finished", "interrupted", "waiting"]
    assert read_record(out).seconds["b-0"] >= 0
    assert calls(out)[-1] == "b-0 saved"
    assert set(statuses(finish(planner, team)).values()) == {"finished"}
    assert sorted(calls(out)[5:]) == ["b-0 finished", "b-0 resumed", "c-0 finished", "c-0 started"]


@posix
def test_asked_to_stop_while_test_sets_are_scored(out, team):
    planner = planned(out, seeds=[0, 1])
    known = list(finish(planner, team).values())
    looks = (known for _ in score_tests(planner, known, team=team, pause=0.005))
    message, _ = interrupted(looks, signal.SIGINT, lambda known: True)
    assert "test scores finished; run the same command again" in message
    assert read_record(out).tests == ""
    score(planner, known, team)
    assert read_record(out).tests


def test_a_caller_who_gives_up_leaves_no_process(out, team):
    (out / "hang-seed-0").touch()
    looks = run_study(planned(out), team=team, pause=0.005)
    for _ in looks:
        if "seed-0 hangs" in calls(out):
            break
    looks.close()
    assert calls(out)[-1] == "seed-0 saved"


def test_one_study_at_a_time_in_a_folder(out, team):
    (out / "hang-seed-0").touch()
    looks = run_study(planned(out), team=team, pause=0.005)
    next(looks)
    with pytest.raises(ValueError, match=r"trainings are still running in .* \(process \d+\); wait for them, or stop"):
        next(run_study(planned(out), team=team))
    looks.close()


def test_outside_the_main_thread(out, team):
    found = []
    thread = threading.Thread(target=lambda: found.append(finish(planned(out), team)))
    thread.start()
    thread.join()
    assert statuses(found[0]) == {"seed-0": "finished"}


# ------------------------------------------------------------------------------------------------ what is in the folder


def test_other_settings_are_refused(out, team):
    systems = {"ste": FROM_PARSER}
    shared = {**PARSER, "other": PARSER["parser"]}
    finish(planned(out, shared=shared, systems=systems), team)
    before = len(calls(out))
    with pytest.raises(
        ValueError, match=r"parser-0 was trained with syntax.mlp = 64, not 6; give the settings as they"
    ):
        next(run_study(planned(out, shared=shared, systems=systems, settings={"syntax.mlp": 6}), team=team))
    other = {"ste": {"settings": {"syntax.start": "{other}"}}}
    with pytest.raises(ValueError, match=r"ste-0 was trained with syntax.start = '.*parser-0', not '.*other-0'"):
        next(run_study(planned(out, shared=shared, systems=other), team=team))
    assert len(calls(out)) == before
    out.rename(moved := out.with_name("moved"))  # to another place
    assert statuses(finish(planned(moved, shared=shared, systems=systems), team)) == {
        "parser-0": "finished",
        "ste-0": "finished",
    }
    with pytest.raises(ValueError, match="is the folder of one run; choose another --out"):
        survey(planned(moved / "ste-0"))
    with pytest.raises(NotADirectoryError, match="is a file; choose another --out"):
        survey(planned(moved / "calls"))


@pytest.mark.parametrize("text", ["{", "[]", '{"seconds": 3}', '{"seconds": {"a": "b"}, "suggested": {}, "tests": ""}'])
def test_a_damaged_record(out, text):
    (out / "study.json").write_text(text)
    with pytest.raises(ValueError, match=r"study\.json is damaged \(.*\); restore it, or remove it"):
        survey(planned(out))


def test_a_part_of_a_study_leaves_the_budget_of_the_rest(out, team):
    systems = {"ste": ETAS, "spigot": ETAS}
    finish(planned(out, systems=systems), team)
    finish(planned(out, systems={"ste": ETAS}), team)
    assert read_record(out).budget == {"ste": 2, "spigot": 2}


def test_counts_are_positive(out):
    with pytest.raises(ValueError, match="processes is 0 and threads is 1; both must be at least 1"):
        next(run_study(planned(out), processes=0))
    with pytest.raises(ValueError, match="processes is 1 and threads is 0; both must be at least 1"):
        next(run_study(planned(out), threads=0))


def test_what_is_reported(out, team):
    points = {"250": {}, "all": {"x": 900, "settings": {"training.epochs": 3}}}
    planner = planned(out, systems={"pipeline": {}, "ste": {}}, points=points, seeds=[0, 1], against=["pipeline"])
    (out / "fail-ste,all-1").touch()
    found = reported(planner, list(finish(planner, team).values()))
    assert found is not None
    assert [(arm.system, dict(arm.point), sorted(arm.runs), arm.complete) for arm in found.arms] == [
        ("pipeline", {"at": 250}, [0, 1], True),
        ("ste", {"at": 250}, [0, 1], True),
        ("pipeline", {"at": "all"}, [0, 1], True),
        ("ste", {"at": "all"}, [0], False),
    ]
    assert found.pairs == [("ste", "pipeline")]
    assert found.places == {"at": {"250": 250.0, "all": 900.0}}
