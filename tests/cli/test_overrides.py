"""Settings on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot.cli.overrides import parse_overrides, settings
from spigot.config import Config, Values, make_config


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--estimator.eta", "0.5"], {"estimator.eta": 0.5}),
        (["--estimator.eta=1e-3"], {"estimator.eta": 1e-3}),
        (["--system", "ste"], {"system": "ste"}),
        (["--system", '"ste"'], {"system": "ste"}),
        (["--semantics.determinism", "false"], {"semantics.determinism": False}),
        (["--semantics.pruning.rare-role", "3"], {"semantics.pruning.rare_role": 3}),
        (["--data.trees.train", '["a.conllu", "b.conllu"]'], {"data.trees.train": ["a.conllu", "b.conllu"]}),
        (["--data.trees.train", "a.conllu"], {"data.trees.train": ["a.conllu"]}),
        (["--data.graphs.tests.far-off", "x.sdp"], {"data.graphs.tests.far-off": "x.sdp"}),
        (["--data.graphs.tests", '{ id = "x.sdp" }'], {"data.graphs.tests": {"id": "x.sdp"}}),
        (["--name", "2018"], {"name": "2018"}),
        (["--name", "2018-07-15"], {"name": "2018-07-15"}),
        (["--name", "a = b"], {"name": "a = b"}),
        (["--name="], {"name": ""}),
        (["--data.root", "/some/where else"], {"data.root": "/some/where else"}),
        (["--training.end_weight", "0.25", "--training.epochs=3"], {"training.end_weight": 0.25, "training.epochs": 3}),
    ],
)
def test_values(words, expected):
    found = parse_overrides(words)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]
    make_config({}, found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--estimater.eta", "1"], "--estimater.eta is not a setting; did you mean --estimator.eta?"),
        (["--eta", "1"], "--eta is not a setting; did you mean --estimator.eta?"),
        (["--sytem", "ste"], "--sytem is not a setting; did you mean --system?"),
        (["--training.epoch", "1"], "--training.epoch is not a setting; did you mean --training.epochs?"),
        (["--qqq", "1"], "--qqq is not a setting; the groups of settings are name, task, system, "),
        (["--seed"], "--seed has no value; write --seed VALUE."),
        (["--seed", "--name", "x"], "--seed has no value"),
        (["--seed", "1", "--seed=2"], "--seed is given twice; give it once."),
        (["seed", "1"], "'seed' belongs to no setting; write settings as --name value"),
    ],
)
def test_failures(words, message):
    with pytest.raises(ValueError, match=f"^{message}".replace("?", r"\?")) as caught:
        parse_overrides(words)
    assert "\n" not in str(caught.value)


def test_a_line_break_smuggles_nothing_in():
    assert parse_overrides(["--name", "1\nseed = 2"]) == {"name": "1\nseed = 2"}


def test_every_field_has_a_name():
    def leaves(values: Values, above: str = ""):
        for name in type(values).model_fields:
            value = getattr(values, name)
            if isinstance(value, Values):
                yield from leaves(value, f"{above}{name}.")
            else:
                yield above + name, value

    names = dict(settings())
    for name, value in leaves(Config()):
        assert name in names
        if isinstance(value, bool | int | float):
            # A default given again changes nothing.
            assert make_config({}, parse_overrides([f"--{name}", str(value).lower()])) == make_config({})


@given(st.text(min_size=1).filter(lambda text: not text.startswith("--")))
def test_any_text_is_a_value(text):
    value = parse_overrides(["--data.root", text])["data.root"]
    assert isinstance(value, str)


def test_a_negative_number_is_a_value_and_no_option():
    assert parse_overrides(["--seed", "-1"]) == {"seed": -1}
