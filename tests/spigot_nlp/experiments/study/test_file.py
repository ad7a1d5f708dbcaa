"""Studies as files say them: what is read, laid over each other and refused."""

import pytest

from spigot_nlp.experiments.study.file import Study, load_study, make_study, shipped_studies
from spigot_nlp.experiments.study.plan import Planner
from spigot_nlp.experiments.study.values import Range


def study(**given) -> Study:
    return make_study({"config": "synthetic", **given}, "mine.toml")


def write(folder, name, text):
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", shipped_studies())
def test_what_comes_with_spigot_can_be_planned(name, tmp_path):
    planner = Planner(load_study(name), tmp_path)
    assert planner.study.title
    assert 0 < len(planner.trials({})) <= planner.size
    planner.check()


def test_settings_may_be_nested_or_dotted():
    nested = study(settings={"training": {"epochs": 3, "warm_up": 1}}, vary={"data": {"graphs": {"limit": [1, 2]}}})
    dotted = study(settings={"training.epochs": 3, "training": {"warm_up": 1}}, vary={"data.graphs.limit": [1, 2]})
    assert nested == dotted
    assert nested.settings == {"training.epochs": 3, "training.warm_up": 1}
    assert nested.vary == {"data.graphs.limit": (1, 2)}


def test_values_keep_their_kinds():
    tried = {"a": [1, 1.5, True, "x"], "b": {"c": {"low": 1, "high": 10, "log": True}}, "d": [["x", "y"], ["z"]]}
    found = study(systems={"ste": {"tune": tried}}, tune={"search": "random", "trials": 2}).systems["ste"].tune
    assert found == {"a": (1, 1.5, True, "x"), "b.c": Range(low=1, high=10, log=True), "d": (["x", "y"], ["z"])}
    assert [type(value) for value in found["a"]] == [int, float, bool, str]  # pyright: ignore[reportGeneralTypeIssues]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": 3}, "seeds: it should be a list"),
        ({"seeds": [-1]}, "seeds.0: it should be greater than or equal to 0"),
        ({"seeds": [1, 1]}, "the seed 1 is given twice"),
        ({"seeds": []}, "seeds is empty, so there is nothing to train"),
        ({"sedes": [1]}, "sedes: is not a known setting"),
        ({"config": "sintetic"}, "sintetic"),
        ({"name": "a/b"}, "name is 'a/b', and a folder is called so"),
        ({"retries": -1}, "retries: it should be greater"),
        ({"systems": ["ste"]}, "systems: it should be a table"),
        ({"systems": {"ste": 3}}, "systems.ste: it should be a table"),
        ({"systems": {"a b": {}}}, "'a b' cannot be a name in a study"),
        ({"systems": {"spigott": {}}}, "spigott has no settings, and is no system; did you mean spigot?"),
        ({"systems": {"STE": {}}}, "STE has no settings, and is no system; did you mean ste?"),
        ({"along": "words", "vary": {"a": [1], "b": [2]}}, "along is 'words', and vary has several settings"),
        ({"systems": {"p": {}}, "shared": {"p": {}}}, "p is a system and a shared training"),
        ({"points": {"p": {}}, "shared": {"p": {}}}, "p is a point and a shared training"),
        ({"against": ["ste"]}, "against names 'ste', and the systems are none"),
        ({"settings": {"training": {"share": 0.1}, "training.share": 0.2}}, "training.share is given twice"),
        ({"settings": {"seed": 3}}, "seed is for the study to say"),
        ({"systems": {"ste": {"settings": {"training": {"tests": True}}}}}, "training.tests is for the study to say"),
        ({"systems": {"ste": {"tune": {"seed": [1, 2]}}}}, "seed is for the study to say"),
        ({"systems": {"ste": {"tune": {"a": 5}}}}, "a is 5; give a list of values, or a range"),
        ({"systems": {"ste": {"tune": {"a": []}}}}, "there is no value of a to try"),
        ({"systems": {"ste": {"tune": {"a": [1, 1.0]}}}}, "a has the value 1.0 twice"),
        ({"systems": {"ste": {"tune": {"a": [[1]]}}}}, r"a cannot be \[1\]"),
        ({"systems": {"ste": {"tune": {"a": [1], "a.b": [2], "c": {"d": [1]}, "c.d": [2]}}}}, "c.d is given twice"),
        ({"systems": {"ste": {"tune": {"a": {"low": 1, "high": 2}}}}}, "systems.ste.tune.a is a range, and a grid"),
        ({"systems": {"ste": {"tune": {"a": {"low": 2, "high": 1}}}}}, "from 2 to 1 there is nothing to draw from"),
        ({"systems": {"ste": {"tune": {"a": {"low": 0, "high": 1, "log": True}}}}}, "low is 0, and with log"),
        ({"systems": {"ste": {"tune": {"a": {"low": 1.2, "high": 1.8, "whole": True}}}}}, "nothing to draw from"),
        ({"systems": {"ste": {"tune": {"a": {"low": 1}}}}}, "a.high: Field required"),
        (
            {"systems": {"ste": {"tune": {"a": {"low": 1, "high": 2, "lgo": 1}}}}},
            "a.lgo: is not a known setting of a range",
        ),
        ({"vary": {"a": []}}, "there is no value of a to try"),
        ({"vary": {"a": {"low": 1, "high": 2}}}, "vary.a must be a list"),
        ({"vary": {"a": [1]}, "points": {"p": {}}}, "points and vary both say"),
        ({"vary": {"a": [1]}, "systems": {"ste": {"tune": {"a": [2]}}}}, "systems.ste.tune.a varies from point to"),
        ({"tune": {"point": "x"}}, "tune.point is 'x', and the points are none"),
        ({"tune": {"search": "random"}}, "search = 'random' has no end of its own; say how many trials"),
        ({"tune": {"search": "bayes"}}, "search = 'bayes' has no end of its own"),
        ({"tune": {"trials": 3}}, "a grid is tried whole; leave out trials"),
        ({"tune": {"search": "random", "trials": 0}}, "tune.trials: it should be greater than 0"),
        ({"tune": {"seeds": []}}, "tune.seeds"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        study(**given)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize("table", ["systems", "points", "shared", "settings", "tune"])
def test_an_empty_table_takes_away_what_a_study_extends_has(tmp_path, table):
    write(
        tmp_path,
        "base",
        """
        config = "synthetic"
        settings = { training.epochs = 3 }
        shared.parser = { settings = { only = "syntax" } }
        systems = { ste = {}, spigot = {} }
        points = { few = {}, many = {} }
        tune = { seeds = [100] }
        """,
    )
    write(tmp_path, "less", f'extends = "base.toml"\n{table} = {{}}')
    whole, less = load_study(tmp_path / "base.toml"), load_study(tmp_path / "less.toml")
    assert getattr(whole, table) != getattr(make_study({"config": "synthetic"}), table)
    assert getattr(less, table) == getattr(make_study({"config": "synthetic"}), table)


def test_a_study_over_another(tmp_path):
    write(
        tmp_path,
        "base",
        """
        config = "synthetic"
        seeds = [0, 1]
        settings = { training.epochs = 3, training.warm_up = 1 }
        [tune]
        seeds = [100]
        search = "random"
        trials = 3
        settings = { "training.epochs" = 1 }
        [systems.ste]
        settings = { "syntax.mlp" = 8 }
        tune = { estimator.eta = { low = 0.1, high = 1.0 } }
        [systems.spigot]
        """,
    )
    path = write(
        tmp_path,
        "mine",
        """
        extends = "base.toml"
        settings = { "training.epochs" = 5 }
        [tune]
        trials = 4
        settings = { training.batch = 2 }
        [systems.ste]
        tune = { "estimator.eta" = { low = 0.2, high = 1.0 }, "syntax.mlp" = [4] }
        [systems.attention]
        """,
    )
    found = load_study(path)
    assert (found.name, found.seeds) == ("mine", (0, 1))
    assert found.settings == {"training.epochs": 5, "training.warm_up": 1}
    assert (found.tune.seeds, found.tune.trials) == ((100,), 4)
    assert found.tune.settings == {"training.epochs": 1, "training.batch": 2}
    assert list(found.systems) == ["ste", "spigot", "attention"]
    assert found.systems["ste"].settings == {"syntax.mlp": 8}
    assert found.systems["ste"].tune == {"estimator.eta": Range(low=0.2, high=1.0), "syntax.mlp": (4,)}
    plain = load_study(write(tmp_path, "plain", 'extends = "mine.toml"\n[systems.ste]\ntune = {}'))
    assert (plain.systems["ste"].tune, plain.systems["ste"].settings) == ({}, {"syntax.mlp": 8})


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "folder").mkdir()
    write(tmp_path, "broken", "config = ")
    write(tmp_path, "ring", f'extends = "../{tmp_path.name}/ring.toml"')
    write(tmp_path, "lost", 'extends = "nobody"')
    write(tmp_path, "own", 'config = "tiny.toml"')
    write(tmp_path, "tiny", "")
    with pytest.raises(ValueError, match=r"broken\.toml is not valid TOML"):
        load_study(tmp_path / "broken.toml")
    with pytest.raises(ValueError, match=r"ring\.toml extends itself"):
        load_study(tmp_path / "ring.toml")
    with pytest.raises(FileNotFoundError, match=r"lost\.toml extends nobody is no study; give a TOML file, or one of "):
        load_study(tmp_path / "lost.toml")
    with pytest.raises(FileNotFoundError, match="is a folder, not a study"):
        load_study(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match=r"nothing\.toml is no study; give a TOML file, or one of demo"):
        load_study("nothing.toml")
    assert load_study(tmp_path / "own.toml").config == str(tmp_path / "tiny.toml")  # beside it, wherever we are


@pytest.mark.parametrize("name", ["demo", "demo-quick"])
def test_all_rows_of_the_demo_learn_from_the_same_sentences(name, tmp_path) -> None:
    rows = [trial.config for trial in Planner(load_study(name), tmp_path).trials({}) if trial.role == "final"]
    assert [row.system for row in rows] == ["neurboparser", "freda3", "pipeline", "attention", "ste", "spigot"]
    assert len({row.data.model_dump_json() for row in rows}) == 1
    assert rows[1].stages["semantics"].model_dump()["graphs"][0] == "graph"  # what it is judged by, as the others are
