"""Settings on the command line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.cli.overrides import parse_overrides
from spigot_nlp.config import load_config, make_config
from spigot_nlp.values import Values


@pytest.mark.parametrize(
    ("words", "expected", "held"),
    [
        (["--estimator.eta", "0.5"], {"estimator.eta": 0.5}, None),
        (["--estimator.eta=1e-3"], {"estimator.eta": 1e-3}, None),
        (["--system", "ste"], {"system": "ste"}, None),
        (["--system", '"ste"'], {"system": "ste"}, None),
        (["--semantics.determinism", "false"], {"semantics.determinism": False}, None),
        (["--semantics.pruning.rare-role", "3"], {"semantics.pruning.rare_role": 3}, None),
        (["--data.trees.train", '["a.conllu", "b.conllu"]'], {"data.trees.train": ["a.conllu", "b.conllu"]}, None),
        (["--data.trees.train", "a.conllu"], {"data.trees.train": "a.conllu"}, ["a.conllu"]),
        (["--data.trees.train-format", "conllu"], {"data.trees.train_format": "conllu"}, None),
        (["--data.graphs.tests.far-off", "x.sdp"], {"data.graphs.tests.far-off": "x.sdp"}, None),
        (["--data.my-trees.dev", "x.conllu"], {"data.my-trees.dev": "x.conllu"}, None),
        (["--encoders.my-own.optimiser.anneal-every", "3"], {"encoders.my-own.optimiser.anneal_every": 3}, None),
        (["--name", "2018"], {"name": "2018"}, None),
        (["--name", "1e3"], {"name": "1e3"}, None),
        (["--name", "true"], {"name": "true"}, None),
        (["--data.graphs.dev", "1_0"], {"data.graphs.dev": "1_0"}, None),
        (["--data.graphs.tests.id", "[]"], {"data.graphs.tests.id": "[]"}, None),
        (["--semantics.start", "0x1"], {"semantics.start": "0x1"}, None),
        (["--name", "2018-07-15"], {"name": "2018-07-15"}, None),
        (["--name", "a = b"], {"name": "a = b"}, None),
        (["--name="], {"name": ""}, None),
        (["--name", "none"], {"name": "none"}, None),
        (["--estimator.max-norm", "none"], {"estimator.max_norm": None}, None),
        (["--training.end_weight=none"], {"training.end_weight": None}, None),
        (["--data.root", "/some/where else"], {"data.root": "/some/where else"}, None),
        (
            ["--training.end_weight", "0.25", "--training.epochs=3"],
            {"training.end_weight": 0.25, "training.epochs": 3},
            None,
        ),
    ],
)
def test_values(words, expected, held):
    """What is read, and what the experiment then has, where that is something else."""
    found = parse_overrides(words)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]
    config = make_config({}, found)
    for name, value in expected.items():
        assert config.value(name) == (value if held is None else held)


def test_a_table_is_a_value():
    words = ["--data.graphs.tests", '{ far-off = "x.sdp" }', "--semantics.encoder", "{ hidden = 7 }"]
    config = make_config({}, parse_overrides(words))
    assert config.data.sets["graphs"].tests == {"far-off": "x.sdp"}
    assert config.value("semantics.encoder.hidden") == 7


def test_a_stage_with_a_hyphen_has_settings_like_any_other():
    given = {"stages": {"my-trees": {"annotation": "trees"}}}
    config = make_config(given, parse_overrides(["--my-trees.mlp-layers", "2", "--stages.my-trees.mlp", "7"]))
    assert (config.value("my-trees.mlp_layers"), config.value("my-trees.mlp")) == (2, 7)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--estimater.eta", "1"], "--estimater.eta 1: is not a known setting; did you mean --estimator.eta?"),
        (["--eta", "1"], "--eta 1: is not a known setting; did you mean --estimator.eta?"),
        (["--sytem", "ste"], "--sytem ste: is not a known setting; did you mean --system?"),
        (["--training.epoch", "1"], "--training.epoch 1: is not a known setting; did you mean --training.epochs?"),
        (["--syntax.mpl", "1"], "--syntax.mpl 1: is not a known setting; did you mean --syntax.mlp?"),
        (["--training.foo", "1"], "--training.foo 1: is not a known setting; --training has "),
        (["--qqq", "1"], "--qqq 1: is not a known setting; the groups of settings are name, task, system, "),
        (["--estimator.eta", "-1"], "--estimator.eta -1: eta is -1.0; it must be a finite number"),
        (["--estimator.polytope", "ball"], "--estimator.polytope ball: it should be 'relaxation', 'hull' or "),
        (["--semantics.encoder.layers", "x"], "--semantics.encoder.layers x: it should be a valid integer"),
        (["--syntax.mlp", "none"], "--syntax.mlp none: it should be a valid integer"),
        (["--seed"], "--seed has no value; write --seed VALUE."),
        (["--seed", "--name", "x"], "--seed has no value"),
        (["--seed", "1", "--seed=2"], "--seed is given twice; give it once."),
        (["seed", "1"], "'seed' belongs to no setting; write settings as --name value"),
    ],
)
def test_failures(words, message):
    """Whoever finds it, the parser of options or the experiment: the message names the option."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        load_config("synthetic", parse_overrides(words))
    assert "\n" not in str(caught.value)


def test_settings_of_another_kind_of_encoder_are_not_suggested():
    given = {"stages": {"syntax": {"annotation": "trees", "encoder": {"kind": "transformer", "model": "m"}}}}
    words = ["--syntax.encoder.word_dim", "3"]
    options = {"syntax.encoder.word_dim": " ".join(words)}
    with pytest.raises(ValueError, match=r"^--syntax\.encoder\.word_dim 3: is not a known setting") as caught:
        make_config(given, parse_overrides(words), options=options)
    assert "did you mean --syntax.encoder.word_dim" not in str(caught.value)


def test_an_option_that_no_estimator_has_is_told_with_the_nearest_one():
    with pytest.raises(
        ValueError, match=r"with --estimator\.eat 1: estimator\.eat: is not .* did you mean estimator\.eta\?"
    ):
        load_config("synthetic", parse_overrides(["--estimator.eat", "1"]))


def test_a_line_break_smuggles_nothing_in():
    assert parse_overrides(["--name", "1\nseed = 2"]) == {"name": "1\nseed = 2"}


def test_every_field_has_a_name():
    def leaves(values: Values, above: str = ""):
        for name in type(values).model_fields:
            value = getattr(values, name)
            if isinstance(value, Values):
                yield from leaves(value, f"{above}{name}.")
            elif name == "stages":
                for stage, settings in value.items():
                    yield from leaves(settings, f"{stage}.")
            else:
                yield above + name, value

    config = make_config({})
    names = config.by_name()
    for name, value in leaves(config):
        assert name in names or not isinstance(value, bool | int | float)
    for name, value in names.items():
        if isinstance(value, bool | int | float) and ".reads." not in name:  # a wire is given whole
            # A default given again changes nothing.
            assert make_config({}, parse_overrides([f"--{name}", str(value).lower()])) == config, name


@given(st.text(min_size=1).filter(lambda text: not text.startswith("--")))
def test_any_text_is_a_value(text):
    value = parse_overrides(["--data.root", text])["data.root"]
    assert isinstance(value, str)


def test_a_negative_number_is_a_value_and_no_option():
    assert parse_overrides(["--seed", "-1"]) == {"seed": -1}


def test_what_a_preset_sets_can_be_unset():
    release = {"preset": "release"}
    assert make_config(release).value("estimator.max_norm") == 1.0
    assert make_config(release, parse_overrides(["--estimator.max_norm", "none"])).value("estimator.max_norm") is None
