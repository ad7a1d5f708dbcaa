"""Configurations: defaults, presets, files and overrides, and what is refused."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.config import (
    Config,
    Data,
    find_config,
    load_config,
    make_config,
    resolved_config,
    shipped_configs,
    stage_class,
    systems,
)
from spigot_nlp.config.presets import TASKS, Inside, below
from spigot_nlp.wires import WireSettings

CONFIGS = list(shipped_configs().values())
PRESETS = ("paper", "release")


CLASSIFY = {"task": "classification"}


def flat(values: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Leaves by dotted name; wires have numbers."""
    leaves: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = {str(k): part for k, part in enumerate(value)}
        leaves |= flat(value, f"{before}{name}.") if isinstance(value, dict) else {before + name: value}
    return leaves


def full(short: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Settings by the names of a resolved configuration: those of stages, and of the wires that have them.

    What is about a stage that an experiment does not have, or has no such option, is left out.
    """
    found: dict[str, Any] = {}
    for name, value in short.items():
        group, _, option = name.partition(".")
        if group == "estimator":
            found |= {other: value for other in known if other.endswith(f".estimator.{option}")}
        elif group == "classifier" and option in Inside.model_fields:
            continue  # which stages there are
        elif group in ("syntax", "semantics", "classifier"):
            found |= {f"stages.{name}": value} if f"stages.{name}" in known else {}
        else:
            found[name] = value
    return found


def the_wire(config: Config) -> WireSettings:
    """The only one."""
    ((_, wire),) = config.wires
    return wire


def the_estimator(config: Config) -> Any:
    return the_wire(config).estimator


def test_precedence_is_defaults_preset_file_overrides() -> None:
    name = "syntax.optimiser.anneal_every"
    for given_values, overrides, expected in (
        ({}, {}, 5),
        ({"preset": "release"}, {}, 10),
        ({"preset": "release", "syntax": {"optimiser": {"anneal_every": 7}}}, {}, 7),
        ({"preset": "release", "syntax": {"optimiser": {"anneal_every": 7}}}, {name: 3}, 3),
        ({"preset": "release"}, {"preset": "paper"}, 5),
    ):
        assert make_config(given_values, overrides).stages["syntax"].optimiser.anneal_every == expected


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("task", "system"), [(task, system) for task in TASKS for system in systems(task)])
def test_a_preset_changes_only_what_it_says(
    preset: str, task: str, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {"semantics": {"determinism": False}} if task == "classification" else {}  # so that attention is possible
    chosen = {"preset": preset, "task": task, "system": system, **free}
    found = flat(make_config(chosen).model_dump(mode="json"))
    said = flat(below(preset, task, system, {})) | flat(chosen)
    monkeypatch.setattr("spigot_nlp.config.expansion.below", lambda *_: {})
    pretrain = {"training": {"pretrain": found["training.pretrain"]}} if system == "pipeline" else {}
    plain = flat(make_config({**chosen, **pretrain}).model_dump(mode="json"))
    said = full(said, plain)
    assert said.keys() <= plain.keys()
    assert found == plain | said
    if (task, system) == ("parsing", "pipeline"):
        assert found["training.pretrain"] == found["training.epochs"]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_field_of_a_preset_can_be_overridden(preset: str) -> None:
    plain = make_config({"preset": "paper", "system": "ste"})
    values = flat(plain.model_dump(mode="json"))
    said = flat(below(preset, "parsing", "ste", {}))
    back = {name: values[f"stages.{name}" if f"stages.{name}" in values else name] for name in said}
    assert make_config({"preset": preset, "system": "ste"}, back) == plain.model_copy(update={"preset": preset})


@given(st.floats(0.01, 10), st.integers(1, 50), st.sampled_from(["hinge", "log"]))
def test_overrides_by_dotted_name_are_nested_values(eta: float, epochs: int, loss: str) -> None:
    dotted = make_config({}, {"estimator.eta": eta, "training.epochs": epochs, "semantics.loss": loss})
    nested = make_config({"estimator": {"eta": eta}, "training": {"epochs": epochs}, "semantics": {"loss": loss}})
    assert dotted == nested


@pytest.mark.parametrize(
    ("given_values", "message"),
    [
        ({"sytem": "ste"}, r"mine: sytem: is not a known setting; did you mean system\?$"),
        ({"estimator": {"etta": 1}}, r"mine: estimator\.etta: is not a known setting; did you mean estimator\.eta\?$"),
        ({"estimator": {"width": 1}}, r"mine: estimator\.width: is not a known setting; the options .* eta, .*\.$"),
        ({"estimator": {"eta": -1}}, r"estimator: eta is -1\.0; .* zero or more"),
        ({"estimator": 3}, r"mine: estimator must be a table of options\.$"),
        ({"syntax": 3}, r"mine: syntax is 3; it must be a table of settings\.$"),
        ({"estimator": {"eta": float("nan")}}, r"estimator\.eta: .*finite"),
        ({"system": "magic"}, r"mine: system = 'magic' is none of task = 'parsing'; .* neurboparser, "),
        ({"preset": "magic"}, r"mine: preset: .*'paper'"),
        ({"training": 3}, r"mine: training is 3; it must be a table of settings\.$"),
        ({"training": {"epochs": 0}}, r"training\.epochs"),
        ({"seed": -1}, r"mine: seed: "),
        ({"data": {"synthetic": {"dev": 0}}}, r"data\.synthetic\.dev: "),
        ({"syntax": {"optimiser": {"beta1": 1.0}}}, r"syntax\.optimiser\.beta1: "),
        (
            {"system": "pipeline", "training": {"pretrain": 0}},
            r"mine: 'pipeline' freezes syntax, .*syntax\.start; or ",
        ),
        ({"system": "bilstm"}, r"mine: system = 'bilstm' is none of task = 'parsing'; choose one of neurboparser, "),
        ({**CLASSIFY, "system": "neurboparser"}, r"'neurboparser' is none of task = 'classification'; .* bilstm, "),
        ({**CLASSIFY, "system": "attention"}, r"mine: system = 'attention' needs marginals.*determinism = false\.$"),
        (
            {**CLASSIFY, "system": "pipeline", "training": {"pretrain": 0}},
            r"freezes semantics, .* training\.pretrain or semantics\.start; or ",
        ),
        (
            {**CLASSIFY, "system": "pipeline", "training": {"pretrain": 0}, "classifier": {"structure": "trees"}},
            r"freezes syntax, .* syntax\.start; or ",
        ),
        (
            {**CLASSIFY, "system": "pipeline", "classifier": {"latent": True}},
            r"mine: 'pipeline' never trains the latent semantics; .*semantics\.latent = false\.$",
        ),
        ({"estimator": {"polytope": "sequential"}}, r"'sequential' is about semantic graphs"),
        (
            {"task": "translation"},
            r"task is 'translation'; it must be one of parsing, classification, or name stages\.$",
        ),
        ({"training": {"share": 0}}, r"training\.share: .*greater than 0"),
        ({"training": {"share": 1.5}}, r"training\.share: "),
        ({"classifier": {"structure": "upwards"}}, r"classifier\.structure: .*'graphs'"),
        ({"classifier": {"reader": "none"}}, r"mine: classifier\.reader: there is no reader 'none'; .*heads, .*rounds"),
        ({"classifier": {"rounds": 0}}, r"classifier\.rounds: "),
        ({"classifier": {"roles": 0}}, r"classifier\.roles: "),
        ({"classifier": {"encoder": {"input_dropout": 1.0}}}, r"classifier\.encoder\.input_dropout: "),
        ({"classifier": {"encoder": {"layers": -1}}}, r"classifier\.encoder\.layers: "),
    ],
)
def test_what_cannot_be_is_named(given_values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_config(given_values, where="mine")


@pytest.mark.parametrize("overrides", [{"estimator": 3, "estimator.eta": 1.0}, {"estimator.eta": 1.0, "estimator": 3}])
def test_a_group_and_a_part_of_it_cannot_both_be_given(overrides: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="both given"):
        make_config({}, overrides)


def test_the_pipeline_may_take_its_parser_from_another_run() -> None:
    config = make_config({"system": "pipeline", "training": {"pretrain": 0}, "syntax": {"start": "runs/other"}})
    assert config.stages["syntax"].start == "runs/other"
    assert config.training.pretrain == 0


def test_the_pipelines_parser_is_pretrained_as_long_as_joint_ones_are_trained() -> None:
    assert make_config({"system": "pipeline", "training": {"epochs": 7}}).training.pretrain == 7
    assert make_config({"system": "pipeline", "training": {"epochs": 7, "pretrain": 2}}).training.pretrain == 2
    assert make_config({"system": "spigot", "training": {"epochs": 7}}).training.pretrain == 0


@pytest.mark.parametrize(
    ("given_values", "inside", "end", "latent", "joint"),
    [
        ({}, "syntax", "semantics", False, True),
        ({"system": "neurboparser"}, None, "semantics", False, False),
        ({"system": "pipeline"}, "syntax", "semantics", False, False),
        ({"classifier": {"latent": True}}, "syntax", "semantics", False, True),  # about the other task
        (CLASSIFY, "semantics", "classifier", False, True),
        ({**CLASSIFY, "system": "pipeline"}, "semantics", "classifier", False, False),
        ({**CLASSIFY, "system": "bilstm"}, None, "classifier", False, False),
        ({**CLASSIFY, "classifier": {"structure": "trees"}}, "syntax", "classifier", False, True),
        ({**CLASSIFY, "classifier": {"structure": "gold"}}, None, "classifier", False, False),
        ({**CLASSIFY, "classifier": {"latent": True}}, "semantics", "classifier", True, True),
        ({**CLASSIFY, "classifier": {"latent": True, "structure": "trees"}}, "syntax", "classifier", True, True),
        ({**CLASSIFY, "classifier": {"latent": True, "structure": "left"}}, None, "classifier", False, False),
        ({**CLASSIFY, "classifier": {"latent": True}, "system": "bilstm"}, None, "classifier", False, False),
    ],
)
def test_what_is_trained_follows_from_task_system_and_structure(
    given_values: dict[str, Any], inside: str | None, end: str, latent: bool, joint: bool
) -> None:
    config = make_config(given_values)
    learned = [name for name, stage in config.stages.items() if stage_class(stage).learns]
    assert learned == [*([] if inside is None else [inside]), end]
    assert config.end == end
    assert config.supervised == [name for name in learned if not latent or name == end]
    assert config.trained == (learned if joint else [end])


def test_structured_attention_is_possible_where_there_are_marginals() -> None:
    attention = {**CLASSIFY, "system": "attention"}
    for settings in (
        {"semantics": {"determinism": False}},
        {"classifier": {"structure": "trees"}},
        {"classifier": {"latent": True}},
        {"classifier": {"structure": "left"}},
    ):
        assert make_config({**attention, **settings}).system == "attention"


def test_a_parser_comes_from_the_run_of_its_own_kind() -> None:
    both = {"syntax": {"start": "trees"}, "semantics": {"start": "graphs"}}

    def starts(**given_values: Any) -> dict[str, str]:
        return {name: stage.start for name, stage in make_config({**both, **given_values}).stages.items()}

    assert starts() == {"syntax": "trees", "semantics": "graphs"}
    assert starts(task="classification") == {"semantics": "graphs", "classifier": ""}
    assert starts(task="classification", classifier={"structure": "trees"}) == {"syntax": "trees", "classifier": ""}
    assert starts(task="classification", system="bilstm") == {"classifier": ""}


def test_a_configuration_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().seed = 3


def test_a_resolved_configuration_says_everything() -> None:
    """No preset creeps in again where an override took it away."""
    config = make_config({"preset": "release"}, {"estimator.max_norm": None})
    assert the_estimator(config).max_norm is None
    assert resolved_config(config.model_dump(mode="json")) == config


def test_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('system = "ste"\n[training]\nepochs = 4\n')
    assert load_config(file).training.epochs == 4
    assert load_config(file, {"training.epochs": 9}) == make_config({"system": "ste", "training": {"epochs": 9}})
    with pytest.raises(FileNotFoundError, match=r"no configuration .*none\.toml"):
        load_config(tmp_path / "none.toml")
    file.write_text("system = ")
    with pytest.raises(ValueError, match=r"mine\.toml is not valid TOML"):
        load_config(file)
    file.write_bytes(b'name = "\xff"')
    with pytest.raises(ValueError, match=r"mine\.toml is not valid TOML"):
        load_config(file)
    file.write_text("[training]\nepoch = 4\n")
    with pytest.raises(ValueError, match=r"mine\.toml: training\.epoch: is not a known setting"):
        load_config(file)


def test_a_file_may_say_only_what_differs_from_another(tmp_path: Path) -> None:
    base, mine = tmp_path / "base.toml", tmp_path / "mine.toml"
    base.write_text('extends = "synthetic"\nsystem = "ste"\n[estimator]\neta = 0.5\n[training]\nepochs = 4\n')
    mine.write_text('extends = "base.toml"\n[training]\nbatch = 8\n')
    config = load_config(mine, {"training.epochs": 9})
    asked = {"system": "ste", "estimator.eta": 0.5, "training.batch": 8, "training.epochs": 9}
    assert config == load_config("synthetic", asked)
    for extended, said in (
        ("3", "extends is 3; it must name"),
        ('"mine.toml"', "extends mine.toml, which extends it"),
        ('"synthetics"', "extends: there is no configuration synthetics .did you mean synthetic.*"),
        ('"a\\nb"', "extends: there is no configuration a b; "),
        (f'"{"a" * 3000}"', "extends: there is no configuration aaa"),
    ):
        mine.write_text(f"extends = {extended}\n")
        with pytest.raises(ValueError, match=rf"mine\.toml:? {said}") as caught:
            load_config(mine)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_the_shipped_configurations_are_valid(path: Path) -> None:
    config = load_config(path)
    files = config.data.sets[config.data_of(config.end)] if config.data.source == "files" else None
    assert files is None or files.train or all(one.train for one in files.join.values())
    given_values = flat(tomllib.loads(path.read_text()))
    found = flat(config.model_dump(mode="json"))
    wanted = {name: value for name, value in full(given_values, found).items() if ".reads." not in name}
    assert {name: found[name] for name in wanted} == wanted


def test_paths_start_from_the_root_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPIGOT_DATA", raising=False)
    assert Data().path("a/b.sdp") == Path("a/b.sdp")
    monkeypatch.setenv("SPIGOT_DATA", "/corpora")
    assert Data().path("a/b.sdp") == Path("/corpora/a/b.sdp")
    assert Data(root="/mine").path("a/b.sdp") == Path("/mine/a/b.sdp")
    assert Data(root="/mine").path("/full/b.sdp") == Path("/full/b.sdp")


def test_a_preset_for_graphs_leaves_trees_alone() -> None:
    release = {**CLASSIFY, "preset": "release"}
    assert the_estimator(make_config(release)).polytope == "sequential"
    trees = make_config({**release, "classifier": {"structure": "trees"}})
    assert the_estimator(trees).polytope == "relaxation"


def test_perturbed_averages_over_draws_of_noise() -> None:
    for chosen in ({}, CLASSIFY):
        assert the_estimator(make_config({**chosen, "system": "perturbed"})).samples == 10
        with pytest.raises(ValueError, match=r"temperature is 0\.0; .* the gradient comes from the noise"):
            make_config({**chosen, "system": "perturbed", "estimator": {"temperature": 0}})


@pytest.mark.parametrize("given", ["synthetic", "synthetic.toml", "configs/synthetic.toml"])
def test_a_configuration_that_comes_with_the_package_is_found_by_name(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_config(given) == load_config(shipped_configs()["synthetic"])
    mine = tmp_path / given
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("name = 'mine'", encoding="utf-8")
    assert load_config(given).name == "mine"  # a file that exists wins


def test_a_folder_does_not_hide_a_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "synthetic").mkdir()
    (tmp_path / "run").mkdir()
    assert find_config("synthetic") == shipped_configs()["synthetic"]
    with pytest.raises(IsADirectoryError, match=r"run is a folder, not a configuration; give a TOML file, or one of "):
        find_config("run")


@pytest.mark.parametrize("given", ["synthetics", "elsewhere/synthetic.toml"])
def test_an_unknown_configuration_lists_those_there_are(given):
    with pytest.raises(FileNotFoundError, match="no configuration") as raised:
        find_config(given)
    assert all(name in str(raised.value) for name in shipped_configs())
    assert "did you mean synthetic?" in str(raised.value)
