"""Configurations in stage form, their short forms, and what is refused in them."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.config import Config, load_config, make_config, resolved_config, shipped_configs
from spigot_nlp.config.presets import MULTITASK
from spigot_nlp.models.checkpoint import CONFIG, read_config, write_config
from tests.spigot_nlp.parsing import ALL_SYSTEMS, CLASSIFIERS

CONFIGS = list(shipped_configs().values())

THREE = """
[stages.syntax]
annotation = "trees"

[stages.semantics]
annotation = "graphs"
reads = { stage = "syntax", as = "heads", estimator = { name = "spigot", max_norm = 0.1 } }

[stages.sentiment]
annotation = "label"
reads = { stage = "semantics", as = "roles", estimator = "blackbox" }
"""

SHARED = """
[encoders.words]
encoder = { hidden = 8 }

[stages.dependencies]
annotation = "graphs"
field = "dependencies"
encoder = "words"

[stages.semantics]
annotation = "graphs"
encoder = "words"
"""

GIVEN = """
[stages.chain]
annotation = "trees"
model = "given"
rule = "left"

[stages.mood]
annotation = "label"
reads = [{ stage = "chain", as = { name = "rounds", rounds = 2 } }]
"""


def given(text: str, **tables: Any) -> dict[str, Any]:
    return {**tomllib.loads(text), **tables}


def estimators(config: Config) -> list[Any]:
    return [wire.estimator for _, wire in config.wires]


def wired(**wire: Any) -> dict[str, Any]:
    """Trees that a semantic parser reads."""
    reads = {"stage": "syntax", "as": "heads", **wire}
    return {"stages": {"syntax": {"annotation": "trees"}, "semantics": {"annotation": "graphs", "reads": reads}}}


def one(**settings: Any) -> dict[str, Any]:
    """A stage that nothing reads."""
    return {"stages": {"a": {"annotation": "trees", **settings}}}


def test_three_stages_are_read_in_the_order_of_the_file() -> None:
    config = make_config(given(THREE))
    assert list(config.stages) == config.trained == config.supervised == ["syntax", "semantics", "sentiment"]
    assert config.end == "sentiment"
    assert [(reader, wire.stage) for reader, wire in config.wires] == [
        ("semantics", "syntax"),
        ("sentiment", "semantics"),
    ]
    assert [one.name for one in estimators(config)] == ["spigot", "blackbox"]
    assert config.system == "spigot+blackbox"
    assert config.text == ("trees", "graphs", "labels")
    assert config.reached("sentiment") == ["syntax", "semantics", "sentiment"]
    assert config.reached("semantics") == ["syntax", "semantics"]


def test_a_pipeline_wire_stops_what_comes_back() -> None:
    config = make_config(given(THREE, training={"pretrain": 1}), {"stages.sentiment.reads": _wire("pipeline")})
    assert config.trained == config.reached("sentiment") == ["sentiment"]
    assert config.reached("semantics") == ["syntax", "semantics"]
    assert config.system == "spigot+pipeline"


def _wire(estimator: str) -> dict[str, Any]:
    return {"stage": "semantics", "as": "roles", "estimator": estimator}


@pytest.mark.parametrize(
    ("annotation", "data"), [("trees", "trees"), ("graphs", "graphs"), ("label", "labels"), ("tags", "trees")]
)
def test_one_stage_is_an_experiment(annotation: str, data: str) -> None:
    config = make_config({"stages": {"only": {"annotation": annotation}}})
    assert config.end == "only"
    assert config.text == (data,)
    assert config.system == annotation
    assert (list(config.wires), config.trained) == ([], ["only"])


def test_stages_share_an_encoder_by_name() -> None:
    config = make_config(given(SHARED))
    assert [stage.encoder for stage in config.stages.values()] == ["words", "words"]
    assert config.encoders["words"].encoder.model_dump()["hidden"] == 8
    assert config.text == ("graphs",)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"stages": {}}, r"mine: there are no stages; name one, .*annotation = 'trees'\.$"),
        ({"stages": 3}, r"mine: stages is 3; it must be a table of settings\.$"),
        ({"stages": {"a": 3}}, r"mine: a: a stage is a table with its annotation, e\.g\. annotation = 'trees'\.$"),
        ({"stages": {"a": {"mlp": 3}}}, r"mine: a: a stage is a table with its annotation"),
        (one(annotation="tree"), r"a: there is no kind of annotation 'tree'; did you mean trees\?$"),
        (one(annotation=["trees"]), r"mine: a: there is no kind of annotation \['trees'\]; "),
        (one(model="Given"), r"there is no stage 'Given'; did you mean given"),
        (wired(stage="tree"), r"stages\.semantics reads 'tree', which is no stage before it; those are syntax\.$"),
        (wired(stage="semantics"), r"stages\.semantics reads 'semantics', which is no stage before it"),
        (wired(**{"as": "head"}), r"semantics\.reads\.0\.as: there is no reader 'head'; did you mean heads\?$"),
        (wired(**{"as": {"name": "heads", "rounds": 2}}), r"heads has no option 'rounds'; it has relation_dim\.$"),
        (wired(**{"as": 3}), r"reads\.0\.as: a reader is its name, or a table with its name and options, not 3\.$"),
        (wired(estimator="spigott"), r"reads\.0\.estimator: there is no estimator 'spigott'; did you mean spigot\?$"),
        (wired(estimator=3), r"reads\.0\.estimator: an estimator is its name, or a table .* not 3\.$"),
        (wired(estimator={"name": ["ste"]}), r"reads\.0\.estimator: there is no estimator \['ste'\]"),
        (
            wired(estimator={"name": "ste", "strength": 3}),
            r"mine: semantics\.reads\.0\.estimator: ste has no option 'strength'; it has eta, max_norm, .*\.$",
        ),
        (wired(estimator={"name": "ste", "eta": "wide"}), r"reads\.0\.estimator\.eta: .* valid number"),
        (wired(estimator={"name": "spigot", "polytope": "sequential"}), r"'sequential' is about semantic graphs"),
        (wired(way="up"), r"semantics\.reads\.0\.way: is not a known setting"),
        (one(reads="b"), r"mine: a\.reads: a wire is a table such as .* 'b'\.$"),
        (one(reads=3), r"mine: a\.reads: a wire is a table such as .* 3\.$"),
        (one(encoder="words"), r"mine: stages\.a\.encoder names 'words', and there is no encoders\.words\.$"),
        (one(encoder={"kind": "gru"}), r"a\.encoder: there is no encoder 'gru'"),
        (one(encoder=3), r"a\.encoder: an encoder is a table .* not 3\.$"),
        (one(annotation="label", encoder={"hidden": 0}), r"mine: a\.encoder\.hidden: .*greater"),
        (one(latent=True), r"no stage reads the latent a, .*a\.latent = false"),
        ({"stages": {"a.b": {"annotation": "trees"}}}, r"mine: 'a\.b' cannot be the name of a stage or an encoder"),
        ({"stages": {"a/b": {"annotation": "trees"}}}, r"'a/b' cannot be the name"),
        ({"stages": {"training": {"annotation": "trees"}}}, r"'training' cannot be the name"),
        ({**one(), "a": 3}, r"mine: a must be a table with the settings of the stage"),
        ({**one(), "system": "magic"}, r"mine: there is no system 'magic'; choose one"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        make_config(tables, where="mine")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("system", ["pipeline", ""])
def test_a_latent_stage_is_not_trained_by_a_pipeline(system: str) -> None:
    tables = wired(estimator="pipeline" if not system else "ste")
    tables["stages"]["syntax"]["latent"] = True
    with pytest.raises(ValueError, match=r"'pipeline' never trains the latent syntax; .*syntax\.latent = false\.$"):
        make_config({**tables, "system": system} if system else tables)


def test_a_frozen_stage_has_to_be_trained_before() -> None:
    with pytest.raises(ValueError, match=r"'pipeline' freezes syntax, .*training\.pretrain or syntax\.start; or "):
        make_config(wired(estimator="pipeline"))
    assert make_config({**wired(estimator="pipeline"), "training": {"pretrain": 1}}).trained == ["semantics"]
    assert make_config({**wired(estimator="pipeline"), "syntax": {"start": "run"}}).trained == ["semantics"]


@pytest.mark.parametrize(
    ("tables", "meant"),
    [
        ({"syntax": {"mpl": 8}}, "syntax.mlp"),
        ({"syntax": {"encoder": {"hiden": 8}}}, "syntax.encoder.hidden"),
        ({"semantics": {"pruning": {"lerned": False}}}, "semantics.pruning.learned"),
        ({"sentiment": {"optimizer": {"max_norm": 1.0}}}, "sentiment.optimiser"),
        ({"training": {"epoch": 8}}, "training.epochs"),
        ({"syntax": {"strat": "run"}}, "syntax.start"),
        ({"data": {"trees": {"trian": "x"}}}, "data.trees.train"),
        ({"encoders": {"words": {"encoder": {"hiden": 8}}}}, "encoders.words.encoder.hidden"),
        ({"epochs": 8}, "training.epochs or semantics.pruning.epochs or syntax.pruning.epochs"),
        ({"trainning": {}}, "training"),
    ],
)
def test_what_is_misspelt_says_what_may_be_meant(tables: dict[str, Any], meant: str) -> None:
    with pytest.raises(ValueError, match=rf"is not a known setting; did you mean {meant}\?$"):
        make_config(given(THREE, **tables))


@pytest.mark.parametrize(
    ("tables", "name"),
    [
        ({"syntax": {"mlp": "many"}}, r"syntax\.mlp: "),
        ({"semantics": {"optimiser": 3}}, r"semantics\.optimiser: "),
        ({"sentiment": {"encoder": {"layers": "x"}}}, r"sentiment\.encoder\.layers: "),
        ({"syntax": {"loss": "quick"}}, r"syntax\.loss: "),
        ({"encoders": {"words": 3}}, r"encoders\.words: "),
        ({"encoders": 3}, r"encoders: "),
        ({"data": {"trees": 3}}, r"data\.trees: "),
        ({"training": {"batch": "x"}}, r"training\.batch: "),
        ({"seed": "x"}, r"seed: "),
    ],
)
def test_a_value_of_the_wrong_type_names_its_setting(tables: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"^mine: {name}"):
        make_config(given(THREE, **tables), where="mine")


def test_settings_of_a_stage_may_stand_under_its_own_name() -> None:
    short = make_config(given(THREE, syntax={"mlp": 8, "encoder": {"hidden": 9}}), {"sentiment.dropout": 0.1})
    inside = {"stages.syntax.mlp": 8, "stages.syntax.encoder.hidden": 9, "stages.sentiment.dropout": 0.1}
    assert short == make_config(given(THREE), inside)
    assert short.stages["syntax"].mlp == 8
    # Also in the paper's experiments, whichever way round.
    assert make_config({"syntax": {"mlp": 8}}) == make_config({}, {"stages.syntax.mlp": 8})


def test_a_stage_may_come_from_another_run() -> None:
    config = make_config(given(THREE, syntax={"start": "a"}), {"semantics.start": "b"})
    assert [stage.start for stage in config.stages.values()] == ["a", "b", ""]
    assert config == make_config(given(THREE), {"stages.syntax.start": "a", "semantics.start": "b"})


def test_what_is_asked_of_a_stage_stands_above_the_file_under_either_name() -> None:
    for name in ("syntax.mlp", "stages.syntax.mlp"):
        config = make_config({"syntax": {"mlp": 64, "loss": "crf"}}, {name: 16})
        assert (config.value("syntax.mlp"), config.value("syntax.loss")) == (16, "crf")


def test_a_system_stands_on_every_wire() -> None:
    for system in ALL_SYSTEMS[3:]:
        config = make_config(given(THREE), {"system": system})
        assert [one.name for one in estimators(config)] == [system, system]
        assert config.system == system
    spigot = make_config(given(THREE), {"system": "spigot"})
    assert [one.max_norm for one in estimators(spigot)] == [0.1, None]  # a wire keeps the options of its own estimator
    assert [one.max_norm for one in estimators(make_config(given(THREE), {"system": "ste"}))] == [None, None]
    asked = {"system": "ste", "estimator.max_norm": 2.0, "sentiment.reads.estimator.max_norm": 3.0}
    assert [one.max_norm for one in estimators(make_config(given(THREE), asked))] == [2.0, 3.0]
    with pytest.raises(ValueError, match=r"ste has no option 'rho'"):  # and is not left out in silence
        make_config(given(THREE), {"system": "ste", "stages.semantics.reads.estimator.rho": 3.0})
    for alone in ("neurboparser", "bilstm"):
        assert list(make_config(given(THREE), {"system": alone}).stages) == ["sentiment"]


def test_an_estimator_may_be_asked_for_on_a_wire() -> None:
    for name in ("semantics.reads.estimator", "stages.semantics.reads.estimator", "semantics.reads.estimator.name"):
        config = make_config(given(THREE), {"system": "ste", name: "lpgd"})
        assert [one.name for one in estimators(config)] == ["lpgd", "ste"]
        assert config.system == "lpgd+ste"
        # The paper's experiments have one wire, and what stands on it is the system, with all that goes with one.
        assert make_config({}, {name: "pipeline"}) == make_config({}, {"system": "pipeline"})
        assert make_config({"system": "ste"}, {name: "attention"}) == make_config({"system": "attention"})
    in_file = {"semantics": {"reads": {"estimator": "lpgd"}}}
    assert make_config(in_file).system == "lpgd"
    assert make_config(in_file, {"system": "ste"}) == make_config({"system": "ste"})
    with pytest.raises(ValueError, match=r"system = 'ste' and semantics\.reads\.estimator = 'lpgd' both say"):
        make_config({}, {"system": "ste", "semantics.reads.estimator": "lpgd"})


def test_shared_options_go_to_the_wires_that_have_them() -> None:
    spigot, blackbox = estimators(make_config(given(THREE, estimator={"eta": 0.5, "strength": 3.0, "max_norm": 2.0})))
    assert (spigot.eta, spigot.max_norm) == (0.5, 0.1)  # what a wire says itself stands above the group
    assert (blackbox.strength, blackbox.max_norm) == (3.0, 2.0)
    forced = estimators(make_config(given(THREE), {"estimator.max_norm": 2.0}))
    assert [one.max_norm for one in forced] == [2.0, 2.0]  # and below what somebody asks for


def test_an_option_that_nothing_takes_is_refused_when_it_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("system = 'ste'\n[estimator]\nstrength = 2.0\n")  # which is for when another system is chosen
    with pytest.raises(
        ValueError, match=r"^estimator\.strength would change nothing, .*: ste has eta, max_norm, .*\.$"
    ):
        load_config(file, {"estimator.strength": 3.0})
    assert load_config(file, {"estimator.strength": 3.0, "system": "blackbox"}).system == "blackbox"
    assert load_config(file, {"estimator.eta": 3.0}) == make_config({"system": "ste", "estimator": {"eta": 3.0}})
    with pytest.raises(ValueError, match=r"^estimator\.eta would change .*'neurboparser' has such an option\.$"):
        load_config(file, {"system": "neurboparser", "estimator.eta": 3.0})
    for asked in ({"semantics.reads.estimator.eta": 2.0}, {"stages.semantics.reads.estimator.max_norm": 1.0}):
        with pytest.raises(ValueError, match="would change nothing, since semantics reads no stage in system = 'neurb"):
            load_config(file, {"system": "neurboparser", **asked})
    assert (
        make_config({"system": "ste"}, {"estimator.strength": 3.0}).system == "ste"
    )  # a comparison has several systems
    file.write_text(THREE)
    assert [one.name for one in estimators(load_config(file, {"estimator.strength": 3.0}))] == ["spigot", "blackbox"]
    with pytest.raises(ValueError, match=r"samples would .* spigot has eta, polytope, .*; blackbox has strength"):
        load_config(file, {"estimator.samples": 3})


def same_after_writing(config: Config, folder: Path) -> None:
    write_config(folder / CONFIG, config)
    assert read_config(folder) == config
    assert load_config(folder / CONFIG) == config  # it is enough to repeat the run
    assert resolved_config(config.model_dump(mode="json")) == config


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_shipped_configurations_survive_being_written(path: Path, tmp_path: Path) -> None:
    config = load_config(path)
    same_after_writing(config, tmp_path)
    system = config.system if config.system in MULTITASK else "spigot"
    for preset in ("release", "paper"):
        same_after_writing(load_config(path, {"preset": preset, "system": system}), tmp_path)


@pytest.mark.parametrize("text", [THREE, SHARED, GIVEN], ids=["three", "shared", "given"])
def test_stages_survive_being_written(text: str, tmp_path: Path) -> None:
    config = make_config(given(text))
    same_after_writing(config, tmp_path)
    same_after_writing(config.model_copy(update={"name": "Café \N{SNOWMAN} 'quoted'"}), tmp_path)


@pytest.mark.parametrize("preset", ["paper", "release"])
def test_systems_of_the_paper_survive_being_written(preset: str, tmp_path: Path) -> None:
    for system in ALL_SYSTEMS:
        same_after_writing(make_config({"system": system, "preset": preset}), tmp_path)
    same_after_writing(make_config({"preset": "release"}, {"estimator.max_norm": None}), tmp_path)
    for system in CLASSIFIERS:
        for inside in ({}, {"structure": "trees"}, {"structure": "gold"}, {"structure": "trees", "reader": "rounds"}):
            classify = {"task": "classification", "system": system, "preset": preset, "classifier": inside}
            same_after_writing(make_config(classify), tmp_path)


def test_the_configuration_of_a_run_can_be_changed(tmp_path: Path) -> None:
    """The file of a run is a file like others: overrides and systems hold."""
    write_config(tmp_path / CONFIG, make_config({"system": "spigot", "preset": "release"}))
    other = load_config(tmp_path / CONFIG, {"estimator.eta": 0.5, "syntax.mlp": 7})
    assert (estimators(other)[0].eta, estimators(other)[0].max_norm, other.stages["syntax"].mlp) == (0.5, 1.0, 7)
    assert list(load_config(tmp_path / CONFIG, {"system": "neurboparser"}).stages) == ["semantics"]
    write_config(tmp_path / CONFIG, make_config(given(THREE)))
    assert load_config(tmp_path / CONFIG, {"system": "ste"}).system == "ste"


_TREES = {"annotation": "trees"}
_MOOD = {"annotation": "label", "reads": {"stage": "syntax", "as": "roles", "estimator": "pipeline"}}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"stages": {"one": _TREES, "two": _TREES}}, "stages.one and stages.two both find 'heads'"),
        ({"stages": {"chain": {**_TREES, "model": "given", "rule": "left"}}}, "stages.chain follows a rule"),
        (
            {
                "encoders": {"words": {}},
                "training": {"pretrain": 1},
                "stages": {"syntax": {**_TREES, "encoder": "words"}, "mood": {**_MOOD, "encoder": "words"}},
            },
            "encoders.words is trained by other stages",
        ),
    ],
    ids=["one name", "a rule alone", "a frozen stage's encoder"],
)
def test_stages_that_would_not_do_what_they_say_are_refused(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_config(tables)


# Some of the stages alone


def test_only_keeps_some_stages():
    whole, alone = make_config({"syntax": {"mlp": 7}}), make_config({"syntax": {"mlp": 7}, "only": "syntax"})
    assert list(alone.stages) == ["syntax"]
    assert alone.stages["syntax"] == whole.stages["syntax"]
    assert alone.system == "trees"
    assert list(make_config({"only": ["syntax", "semantics"]}).stages) == ["syntax", "semantics"]
    assert make_config(alone.model_dump(mode="json")) == alone  # as its run folder says it


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("syntaxe", "only names 'syntaxe', which is no stage; those are syntax, semantics"),
        (3, "only is 3; it must name stages"),
        (["semantics"], "only leaves out syntax, which semantics reads; name it too"),
    ],
)
def test_only_names_stages(only, message):
    with pytest.raises(ValueError, match=message):
        make_config({"only": only})
