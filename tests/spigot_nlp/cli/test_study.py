"""`spigot study`: what it trains, prints, writes and refuses."""

import json
import re

import pytest

from spigot_nlp import cli
from spigot_nlp.cli.study import narrowed
from tests.spigot_nlp.cli.taking_over import take_over
from tests.spigot_nlp.studying import planned

STUDY = """
title = "Does it pay?"
config = "{config}"
seeds = [0, 1]
against = ["neurboparser"]
[shared.parser]
settings = {{ only = "syntax", "training.pretrain" = 0 }}
[points.10]
settings = {{ "data.graphs.limit" = 10 }}
[points.all]
x = 30
settings = {{ "training.batch" = 5 }}
[systems.neurboparser]
[systems.spigot]
settings = {{ "syntax.start" = "{{parser}}" }}
tune = {{ "estimator.eta" = [0.5, 1.0] }}
[tune]
seeds = [9]
point = "10"
"""


@pytest.fixture
def file(tiny, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(STUDY.format(config=tiny), encoding="utf-8")
    return path


@pytest.fixture
def out(tmp_path, monkeypatch, trained, trained_without_syntax):
    """A folder for the runs, and studies that train them in no time."""
    take_over(tmp_path, monkeypatch, {"neurboparser": trained_without_syntax, "": trained})
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


def calls(out):
    return (out / "calls").read_text().splitlines()


def test_what_would_be_trained(file, tmp_path, capsys):
    words = ["study", str(file), "--out", str(tmp_path / "x"), "--plan"]
    assert cli.main(words) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == f"13 trainings in {tmp_path / 'x'}"
    assert "spigot,10,eta=0.5-9 tuning parser-9" in lines
    assert "6 more once tuning has chosen their values." in lines
    assert "Trainings to tune by: neurboparser 0, spigot 2" in lines
    assert cli.main([*words, "--json", "--systems", "neurboparser", "--points", "all", "--seeds", "4"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["trainings"], found["budget"]) == (1, {"neurboparser": 0})
    assert found["named"] == [
        {"name": "neurboparser,all-4", "role": "final", "seed": 4, "starts_from": [], "status": "waiting"}
    ]
    assert not (tmp_path / "x").exists()


def test_tables_page_and_tests(file, out, capsys):
    words = ["study", str(file), "--out", str(out)]
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert "spigot, 10: 2 combinations by LF on the development data, per cent" in printed.out
    assert "Chosen on the development data: --estimator.eta 0.5" in printed.out
    assert printed.err.splitlines()[0].startswith("13 trainings, ")
    for name in ("study.html", "study.md", "tuning.csv", "study.json"):
        assert (out / name).stat().st_size > 0
    assert "in domain" not in printed.out
    assert not any(call.endswith("tested") for call in calls(out))
    assert len(calls(out)) == 13
    # Once all is finished, the test sets, once.
    assert cli.main([*words, "--tests", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0].endswith("; 13 finished already")
    found = json.loads(printed.out)
    assert found["tests"]
    assert found["budget"] == {"neurboparser": 0, "spigot": 2}
    assert found["chosen"] == {"spigot,10": {"estimator.eta": 0.5}}
    tested = [call for call in calls(out) if call.endswith("tested")]
    finals = [f"{system},{point}-{k} tested" for k in (0, 1) for point in ("10", "all") for system in SYSTEMS]
    assert sorted(tested) == sorted(finals)
    assert cli.main([*words, "--tests"]) == 0
    assert "in domain" in capsys.readouterr().out
    assert len(calls(out)) == 13 + 8
    # Who does not ask is not shown.
    assert cli.main(words) == 0
    assert "in domain" not in capsys.readouterr().out


SYSTEMS = ("neurboparser", "spigot")


def test_a_part_first_and_the_rest_later(file, out, capsys):
    words = ["study", str(file), "--out", str(out)]
    assert cli.main([*words, "--systems", "neurboparser", "--points", "all", "--seeds", "1"]) == 0
    assert calls(out) == ["neurboparser,all-1 trained"]
    assert cli.main(words) == 0
    assert calls(out).count("neurboparser,all-1 trained") == 1
    assert len(calls(out)) == 13
    assert "; 1 finished already" in capsys.readouterr().err
    # And a part again, which leaves on record what it is not about.
    assert cli.main([*words, "--systems", "neurboparser"]) == 0
    assert len(json.loads((out / "study.json").read_text())["trainings"]) == 13


def test_what_failed(file, out, capsys):
    (out / "fail-neurboparser,10-0").touch()
    assert cli.main(["study", str(file), "--out", str(out), "--tests"]) == 1
    printed = capsys.readouterr()
    told = printed.err.splitlines()
    assert "neurboparser,10-0: failed, and is tried again. The loss is nan." in told
    assert "The test sets are not scored: neurboparser,10-0 is not finished." in told
    assert told[-1].startswith(f"spigot: 1 of 13 trainings failed; {out}/neurboparser,10-0.log says more, and ")
    assert not any(call.endswith("tested") for call in calls(out))
    assert (out / "study.html").exists()


def test_test_sets_that_are_not_there(tmp_path, capsys):
    config, path = tmp_path / "own.toml", tmp_path / "mine.toml"
    config.write_text('[data.trees]\ntrain = ["a.conllu"]\ndev = "b.conllu"\n[stages.syntax]\nannotation = "trees"\n')
    path.write_text(f"config = {str(config)!r}\n")
    assert cli.main(["study", str(path), "--out", str(tmp_path / "x"), "--tests"]) == 1
    told = capsys.readouterr().err
    assert told == ("spigot: --tests: seed-0 has no test sets; name some as data.NAME.tests, or leave --tests out.\n")
    assert not (tmp_path / "x").exists()


def test_what_is_known_is_shown_where_test_sets_cannot_be_scored(file, out, capsys):
    (out / "untestable").touch()
    assert cli.main(["study", str(file), "--out", str(out), "--tests"]) == 1
    printed = capsys.readouterr()
    assert "Graphs" in printed.out
    assert "in domain" not in printed.out
    assert (out / "study.html").exists()
    assert printed.err.splitlines()[-1] == "spigot: the test sets are not scored; the same command tries again."


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--systems", "spigott"], "--systems names 'spigott'; the study has neurboparser, spigot."),
        (["--systems", ""], "--systems names none; the study has neurboparser, spigot."),
        (["--points", "20"], "--points names '20'; the study has 10, all."),
        (["--points", ",,"], "--points names none; the study has 10, all."),
        (["--seeds", "x"], "--seeds is 'x'; write whole numbers with commas, such as --seeds 0,1,2."),
        (["--seeds", "1,1"], "--seeds is '1,1'; seeds are whole numbers from 0, each once."),
        (["--seeds", "0,1,"], "--seeds is '0,1,'; write whole numbers with commas, such as --seeds 0,1,2."),
        (["--processes", "0"], "processes is 0; it must be at least 1."),
        (["--processes", "many"], "processes"),
        (["--threads", "0"], "threads is 0; it must be at least 1."),
        (["--seed", "3"], "seed is for the study to say; leave out --seed, and give --seeds."),
        (["--system", "ste"], "system is what the study compares; leave out --system, or choose some by --systems."),
        (["--estimator.eta", "1"], "estimator.eta is tuned for spigot; leave out --estimator.eta."),
        (["--training.tests", "true"], "no training of a study reads its test sets; leave out --training.tests"),
        (["--training.epochs", "-1"], "--training.epochs -1: it should be greater than 0."),
        (["--training.epoch", "1"], "did you mean --training.epochs?"),
        (["--test"], "--tests"),
    ],
)
def test_mistakes_are_found_before_anything_starts(words, message, file, tmp_path, capsys):
    assert cli.main(["study", str(file), "--out", str(tmp_path / "x"), *words]) != 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err.splitlines()[-1]
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"mine\.toml: config: Field required\."),
        (
            "config = 'synthetic'\n[systems.ste]\nsettings = { estimator.etta = 1 }",
            r"systems\.ste\.settings: estimator",
        ),
        ("config = 'nowhere'", "nowhere"),
    ],
)
def test_files_that_say_something_impossible(text, message, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert cli.main(["study", str(path), "--out", str(tmp_path / "x")]) == 1
    printed = capsys.readouterr().err
    assert re.search(message, printed)
    assert printed.count("\n") == 1
    assert cli.main(["study", str(tmp_path / "nothing.toml")]) == 1
    assert "is no study; give a TOML file, or one of " in capsys.readouterr().err


def test_points_that_are_made_of_values_have_commas(tmp_path):
    planner = planned(tmp_path, vary={"syntax.mlp": [4, 8], "semantics.mlp": [2]})
    names = list(planner.points)
    assert names == ["syntax.mlp=4,semantics.mlp=2", "syntax.mlp=8,semantics.mlp=2"]
    assert list(narrowed(planner, None, ",".join(names)).points) == names
    assert list(narrowed(planner, None, names[1]).points) == names[1:]
    with pytest.raises(ValueError, match=r"--points names 'syntax\.mlp=5'; the study has "):
        narrowed(planner, None, "syntax.mlp=5")
    with pytest.raises(ValueError, match=r"--systems names 'ste'; the study has none\."):
        narrowed(planner, "ste", None)
