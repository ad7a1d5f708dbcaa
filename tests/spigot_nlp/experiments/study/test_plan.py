"""From a study to its trainings: which there are, what they start from, and what tuning chooses."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.experiments.study import plan
from spigot_nlp.experiments.study.plan import Planner
from spigot_nlp.experiments.study.progress import Progress
from spigot_nlp.experiments.study.search import unseen
from spigot_nlp.experiments.study.trials import short_names, trial_name
from tests.spigot_nlp.studying import names, planned

OUT = Path("runs/mine")
ETAS = {"tune": {"estimator.eta": [0.1, 1.0, 2.0]}}
PARSER = {"parser": {"settings": {"only": "syntax", "training.epochs": 2, "training.pretrain": 0}}}
FROM_PARSER = {"settings": {"syntax.start": "{parser}"}}


def ended(planner: Planner, scores: dict[str, float | None]) -> dict[str, Progress]:
    """All trainings that can be named, finished with some score, or failed."""
    known: dict[str, Progress] = {}
    for trial in planner.trials({}):
        score = scores.get(trial.name, 50.0)
        known[trial.name] = (
            Progress(trial, "failed") if score is None else Progress(trial, "finished", dev={"LF": score, "UAS": 1.0})
        )
    return known


def finals(planner: Planner, known: dict[str, Progress]) -> dict[str, object]:
    return {t.name: t.config.value("estimator.eta") for t in planner.trials(known) if t.role == "final"}


# ----------------------------------------------------------------------------------------------- systems, points, seeds


def test_seeds_come_first_then_points_then_systems():
    study = {"points": {"few": {}, "many": {"settings": {"training.epochs": 9}}}, "systems": {"ste": {}, "spigot": {}}}
    planner = planned(OUT, seeds=[4, 2], **study)
    each = ["ste,few", "spigot,few", "ste,many", "spigot,many"]
    assert names(planner) == [f"{name}-4" for name in each] + [f"{name}-2" for name in each]
    assert planner.size == 8
    configs = {trial.name: trial.config for trial in planner.trials({})}
    assert (configs["ste,few-4"].system, configs["ste,few-4"].seed) == ("ste", 4)
    assert configs["spigot,many-2"].training.epochs == 9
    assert not any(config.training.tests for config in configs.values())
    assert len({config.data.model_dump_json() for config in configs.values()}) == 1


def test_a_system_that_nothing_tells_from_the_default_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^systems\.mine has no settings, and mine is no system"):
        planned(OUT, systems={"ste": {}, "mine": {}})
    assert planned(OUT, settings={"system": "ste"}, systems={"mine": {}}).size == 1  # as the study says
    file = tmp_path / "stages.toml"
    file.write_text("stages.syntax = { annotation = 'trees' }")
    assert planned(OUT, config=str(file), systems={"mine": {}, "other": {"settings": {"syntax.mlp": 8}}}).size == 2


@pytest.mark.parametrize(
    ("study", "where"),
    [
        ({"systems": {"ste": {"settings": {"estimator.rho": 1.0}}}}, r"systems\.ste: "),
        ({"systems": {"ste": {"tune": {"estimator.rho": [1.0, 2.0]}}}}, r"systems\.ste: "),
        ({"systems": {"ste": {}}, "settings": {"estimator.rho": 1.0}}, "settings: "),
        ({"systems": {"ste": {}}, "points": {"p": {"settings": {"estimator.rho": 1.0}}}}, r"points\.p\.settings: "),
    ],
)
def test_an_option_that_no_wire_has_is_refused(study, where):
    with pytest.raises(ValueError, match=rf"^{where}estimator\.rho would change nothing, .*: ste has eta, "):
        planned(OUT, **study).check()
    with pytest.raises(ValueError, match=r"^estimator\.rho would change nothing"):
        replace(planned(OUT, systems={"ste": {}}), overrides={"estimator.rho": 1.0}).check()
    # What stands for all systems may be of use to some.
    replace(planned(OUT, systems={"ste": {}, "lpgd": {}}), overrides={"estimator.rho": 1.0}).check()
    planned(OUT, systems={"": {"tune": {"system": ["ste", "lpgd"], "estimator.rho": [1.0, 2.0]}}}).check()


def test_what_stands_above_what():
    study = {
        "settings": {"training.epochs": 1, "training.batch": 1, "training.warm_up": 1, "syntax.mlp": 1},
        "points": {"p": {"settings": {"training.batch": 2, "training.warm_up": 2, "syntax.mlp": 2}}},
        "systems": {"ste": {"settings": {"training.warm_up": 3, "syntax.mlp": 3}, "tune": {"semantics.mlp": [7]}}},
        "tune": {"settings": {"training.patience": 5}},
    }
    (trial,) = planned(OUT, overrides={"syntax.mlp": 4}, **study).trials({})
    training = trial.config.training
    assert (training.epochs, training.batch, training.warm_up, training.patience) == (1, 2, 3, 5)
    assert (trial.config.value("syntax.mlp"), trial.config.value("semantics.mlp")) == (4, 7)


def test_every_combination_that_varies_is_a_point():
    planner = planned(OUT, vary={"syntax.mlp": [4, 8], "data": {"graphs": {"limit": [10]}}})
    assert names(planner) == ["mlp=4,limit=10-0", "mlp=8,limit=10-0"]
    assert [point.x for point in planner.points.values()] == [None, None]
    alone = planned(OUT, vary={"data.graphs.limit": [10, 20]}, tune={"point": "limit=20"})
    assert [(name, point.x) for name, point in alone.points.items()] == [("limit=10", 10), ("limit=20", 20)]
    texts = planned(OUT, vary={"data.root": ["a/b", "a b"]})
    assert all(re.fullmatch(r"[\w.+=,-]+", name) for name in names(texts))
    assert len(set(names(texts))) == 2


def test_numbers_say_where_points_stand():
    points = {"250": {}, "all": {"x": 9.0, "settings": {"syntax.mlp": 1}}}
    assert [point.x for point in planned(OUT, points=points).points.values()] == [250.0, 9.0]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"seed": 3}, "seed is for the study to say; leave out --seed, and give --seeds"),
        ({"training.tests": True}, "no training of a study reads its test sets"),
        ({"system": "ste"}, "system is what the study compares; leave out --system"),
        ({"estimator.eta": 1}, "estimator.eta is tuned for ste; leave out --estimator.eta"),
        ({"data.graphs.limit": 1}, "--data.graphs.limit makes the points 5 and 6 the same"),
        ({"training.epochs": 0}, "--training.epochs 0: it should be greater than 0"),
        ({"training.epoch": 1}, r"--training.epoch 1: is not a known setting; did you mean --training.epochs\?"),
    ],
)
def test_settings_that_would_undo_the_study(overrides, message):
    points = {name: {"settings": {"data.graphs.limit": int(name)}} for name in ("5", "6")}
    with pytest.raises(ValueError, match=message):
        planned(OUT, overrides=overrides, systems={"ste": ETAS}, points=points).trials({})


def test_what_varies_cannot_be_fixed():
    with pytest.raises(ValueError, match=r"syntax\.mlp varies from point to point; leave out --syntax\.mlp"):
        planned(OUT, overrides={"syntax.mlp": 3}, vary={"syntax.mlp": [1, 2]})


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"settings": {"training.epochs": 0}}, "settings: training.epochs: .* greater than 0"),
        ({"points": {"p": {"settings": {"syntax.mpl": 0}}}}, "points.p.settings: syntax.mpl: is not a known setting"),
        ({"systems": {"ste": {"settings": {"estimator.etta": 1}}}}, "systems.ste.settings: estimator.etta: is not a"),
        (
            {"points": {"p": {"settings": {"nope": 1}}}, "systems": {"ste": {}}},
            "^points.p.settings: nope: is not a known",
        ),
        ({"systems": {"a": {"settings": {"system": "sponge"}}}}, "systems.a.settings: system = 'sponge' is none"),
        ({"systems": {"ste": {"tune": {"estimator.eta": [1, -1]}}}}, "estimator.eta = -1: eta is -1.0"),
        ({"systems": {"ste": {"tune": {"name": ["a"]}}}}, "name is for the study to say"),
    ],
)
def test_every_configuration_is_checked(study, message):
    with pytest.raises(ValueError, match=message):
        planned(OUT, **study).trials({})


def test_also_those_that_are_trained_later():
    points = {"good": {}, "bad": {"settings": {"training.epochs": 0}}}
    planner = planned(OUT, systems={"ste": ETAS}, points=points, tune={"point": "good"})
    assert len(planner.trials({})) == 3
    with pytest.raises(ValueError, match=r"points\.bad\.settings: training\.epochs"):
        planner.check()


# ---------------------------------------------------------------------------------------------- what others start from


def test_a_shared_training_is_there_once_for_each_seed():
    planner = planned(OUT, seeds=[0, 1], shared=PARSER, systems={"ste": FROM_PARSER, "spigot": FROM_PARSER})
    assert names(planner) == ["parser-0", "parser-1", "ste-0", "spigot-0", "ste-1", "spigot-1"]
    trials = {trial.name: trial for trial in planner.trials({})}
    assert trials["parser-1"].role == "shared"
    assert list(trials["parser-1"].config.stages) == ["syntax"]
    assert trials["spigot-1"].needs == ("parser-1",)
    assert trials["spigot-1"].config.value("syntax.start") == str(OUT / "parser-1")
    assert planner.size == 6


@pytest.mark.parametrize(("each_point", "shared"), [(False, ["parser-0"]), (True, ["parser,a-0", "parser,b-0"])])
def test_one_for_each_point_if_it_says_so(each_point, shared):
    points = {"a": {"settings": {"syntax.mlp": 5}}, "b": {"settings": {"syntax.mlp": 6}}}
    parser = {"parser": {**PARSER["parser"], "each_point": each_point}}
    planner = planned(OUT, shared=parser, systems={"ste": FROM_PARSER}, points=points)
    found = [trial for trial in planner.trials({}) if trial.role == "shared"]
    assert [trial.name for trial in found] == shared
    assert [trial.config.value("syntax.mlp") for trial in found][-1] == (6 if each_point else 64)
    assert planner.size == len(planner.trials({}))


def test_chains():
    shared = {**PARSER, "better": {"settings": {"only": "syntax", "syntax.start": "{parser}"}}}
    systems = {"ste": {"settings": {"syntax.start": "{better}"}}, "spigot": {"settings": {"syntax.start": "{ste}"}}}
    planner = planned(OUT, shared=shared, systems=systems)
    assert names(planner) == ["parser-0", "better-0", "ste-0", "spigot-0"]
    assert planner.trials({})[-1].needs == ("ste-0",)
    assert planner.size == 4


def test_what_is_tuned_with_another_seed_starts_from_that_seed():
    systems = {
        "pipeline": {},
        "spigot": {"settings": {"syntax.start": "{pipeline}"}, "tune": {"estimator.eta": [1, 2]}},
    }
    planner = planned(OUT, systems=systems, tune={"seeds": [100]})
    trials = planner.trials({})
    assert [(t.name, t.role) for t in trials] == [
        ("pipeline-100", "shared"),
        ("spigot,eta=1-100", "tuning"),
        ("spigot,eta=2-100", "tuning"),
        ("pipeline-0", "final"),
    ]
    assert planner.size == 5
    shared = planned(OUT, shared=PARSER, systems={"ste": {**FROM_PARSER, **ETAS}}, tune={"seeds": [100]}, seeds=[0, 1])
    assert shared.size == 3 + 2 + 3  # the parsers of the seeds that tables have are needed, too, though not yet


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (
            "{parsre}",
            r"ste: syntax.start is '\{parsre\}', and there is no such training; there are parser, ste, spigot",
        ),
        ("{spigot}", "ste: syntax.start starts from spigot, which is tuned; make it a shared training instead"),
        ("{ste}", "ste starts from itself"),
    ],
)
def test_references_that_lead_nowhere(start, message):
    systems = {"ste": {"settings": {"syntax.start": start}}, "spigot": ETAS}
    for _ in range(2):  # also if asked again
        with pytest.raises(ValueError, match=message):
            planned(OUT, shared=PARSER, systems=systems).trials({})


# ------------------------------------------------------------------------------------------------ tuning


def test_the_best_dev_score_is_taken():
    planner = planned(OUT, systems={"ste": {}, "spigot": ETAS}, seeds=[0, 1], tune={"seeds": [5, 6]})
    assert planner.budget() == {"ste": 0, "spigot": 6}
    assert planner.size == 6 + 4
    scores = {f"spigot,eta={eta}-{seed}": score for eta, seed, score in [("0.1", 5, 60.0), ("1", 5, 90.0)]}
    known = ended(planner, {**scores, "spigot,eta=1-6": 30.0, "spigot,eta=2-5": 61.0, "spigot,eta=2-6": 62.0})
    choice = planner.choice("spigot", "", known)
    assert [mean for _, mean in choice.tried] == [55.0, 60.0, 61.5]
    assert finals(planner, known) == {"ste-0": 1.0, "spigot-0": 2.0, "ste-1": 1.0, "spigot-1": 2.0}
    one_is_missing = {name: progress for name, progress in known.items() if name != "spigot,eta=0.1-6"}
    assert not planner.choice("spigot", "", one_is_missing).is_over
    assert list(finals(planner, one_is_missing)) == ["ste-0", "ste-1"]


def test_of_equals_the_first():
    planner = planned(OUT, systems={"spigot": ETAS})
    assert planner.choice("spigot", "", ended(planner, {"spigot,eta=0.1-0": 40.0})).chosen == {"estimator.eta": 1.0}


def test_what_failed_is_never_chosen():
    planner = planned(OUT, systems={"spigot": ETAS}, tune={"seeds": [0, 1]})
    known = ended(planner, {"spigot,eta=2-0": 99.0, "spigot,eta=2-1": None, "spigot,eta=0.1-0": 51.0})
    assert planner.choice("spigot", "", known).chosen == {"estimator.eta": 0.1}
    known["spigot,eta=1-0"].dev = {}  # finished, and without a score
    known["spigot,eta=0.1-1"].status = "failed"
    choice = planner.choice("spigot", "", known)
    assert (choice.chosen, choice.is_over) == (None, True)
    assert finals(planner, known) == {}


def test_each_point_has_its_own_choice_unless_one_is_named():
    points = {"a": {}, "b": {"settings": {"training.epochs": 3}}}
    planner = planned(OUT, systems={"spigot": ETAS}, points=points)
    known = ended(planner, {"spigot,a,eta=2-0": 99.0, "spigot,b,eta=0.1-0": 98.0})
    assert finals(planner, known) == {"spigot,a-0": 2.0, "spigot,b-0": 0.1}
    assert planner.size == 8
    planner = planned(OUT, systems={"spigot": ETAS}, points=points, tune={"point": "b"})
    assert names(planner) == ["spigot,b,eta=0.1-0", "spigot,b,eta=1-0", "spigot,b,eta=2-0"]
    assert planner.trials({})[0].config.training.epochs == 3
    assert finals(planner, ended(planner, {"spigot,b,eta=0.1-0": 98.0})) == {"spigot,a-0": 0.1, "spigot,b-0": 0.1}
    assert planner.size == 5


def test_a_part_of_a_study_is_what_it_is_in_the_whole():
    points = {"a": {}, "b": {"settings": {"training.epochs": 3}}}
    systems = {"pipeline": {}, "ste": {"settings": {"syntax.start": "{pipeline}"}}, "spigot": ETAS}
    whole = planned(OUT, systems=systems, points=points, tune={"point": "b"})
    part = replace(whole, only_systems=["ste", "spigot"], only_points=["a"])
    assert [(t.name, t.role) for t in part.trials({})] == [
        ("pipeline,a-0", "shared"),
        *((f"spigot,b,eta={eta}-0", "tuning") for eta in ("0.1", "1", "2")),
        ("ste,a-0", "final"),
    ]
    assert part.size == 6
    configs = {trial.name: trial.config for trial in whole.trials({})}
    assert all(trial.config == configs[trial.name] for trial in part.trials({}))
    with pytest.raises(ValueError, match="there is no system 'best'; the study has pipeline, ste, spigot"):
        replace(whole, only_systems=["best"])
    with pytest.raises(ValueError, match="there is no point 'c'; the study has a, b"):
        replace(whole, only_points=["c"])


def test_a_study_grows():
    small = planned(OUT, systems={"ste": ETAS}, seeds=[0])
    large = planned(OUT, systems={"ste": {"tune": {"estimator.eta": [0.1, 1.0, 2.0, 3.0]}}, "spigot": {}}, seeds=[0, 1])
    assert set(names(small)) < set(names(large))
    few, more = (
        names(planned(OUT, systems={"ste": ETAS}, tune={"search": "random", "trials": n, "seed": 3})) for n in (1, 2)
    )
    assert few == more[:1]


def test_a_search_that_learns_looks_no_further_than_it_must(monkeypatch):
    monkeypatch.setattr(plan, "suggestion", lambda tried, seen, seed: {"estimator.eta": 1.0})  # always the same
    planner = planned(OUT, systems={"ste": ETAS}, tune={"search": "bayes", "trials": 9, "seeds": [0, 1]})
    assert planner.size == 3 * 2 + 1  # there are no more values
    known: dict[str, Progress] = {}
    seen: list[int] = []
    while new := [t for t in planner.trials(known, parallel=2) if t.name not in known]:
        seen.append(len(new))
        known.update({t.name: Progress(t, "finished", dev={"LF": float(t.values["estimator.eta"])}) for t in new})
    assert seen == [4, 2, 1]
    assert planner.suggested == {"ste,": [{"estimator.eta": eta} for eta in (1.0, 0.1, 2.0)]}
    assert finals(planner, known) == {"ste-0": 2.0}
    # What was suggested for other values does not count.
    again = planned(OUT, systems={"ste": {"tune": {"estimator.eta": [2.0, 5.0]}}}, tune=planner.study.tune.model_dump())
    again.suggested.update(planner.suggested)
    assert names(again) == ["ste,eta=2-0", "ste,eta=2-1"]
    assert unseen(again.study.systems["ste"].tune, [{"estimator.eta": 2.0}], 0) == {"estimator.eta": 5.0}


# ------------------------------------------------------------------------------------------------ names

texts_of = st.one_of(st.text("a+,=/ é", max_size=4), st.sampled_from(["a" * 100, "a" * 130, "a" * 129 + "b"]))


@given(
    texts=st.lists(texts_of, min_size=1, max_size=3, unique=True),
    lists=st.lists(st.lists(texts_of, min_size=1, max_size=2), min_size=1, max_size=3, unique_by=tuple),
    point=st.sampled_from(["", "p", "a/b", "x" * 130]),
)
def test_names_are_plain_and_differ(texts, lists, point):
    labels = {"data.root": "root", "data.trees.train": "train"}
    found = {
        trial_name(["ste", point], {"data.root": text, "data.trees.train": some}, labels, seed)
        for text in texts
        for some in lists
        for seed in (0, 1)
    }
    assert len(found) == 2 * len(texts) * len(lists)
    assert all(re.fullmatch(r"[\w.+=,-]{1,120}", name, re.ASCII) for name in found)


def test_long_points_differ():
    assert len({trial_name(["ste", "x" * 130 + end], {}, {}, 0) for end in "ab"}) == 2


def test_short_names():
    given = ["syntax.mlp", "semantics.pruning.mlp", "estimator.eta", "data.synthetic.dev"]
    assert list(short_names(given).values()) == ["syntax.mlp", "pruning.mlp", "eta", "dev"]
