"""From a TOML file to an experiment: defaults, what the task and the preset say, the file, overrides by dotted name."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spigot.config.experiment import Config
from spigot.config.shipped import find_config

PRESET_TASKS: dict[tuple[str, str], dict[str, Any]] = {
    ("paper", "classification"): {
        "semantics": {"optimiser": {"max_norm": 5.0, "anneal_every": 5}},
        "estimator": {"eta": 5 / 32},
        "training": {"batch": 32, "pretrain": 7, "share": 0.2},
    },
    ("release", "classification"): {
        "semantics": {
            "encoder": {"lemma_from_form": True, "drop_all": True},
            "optimiser": {"max_norm": 5.0, "anneal_every": 5},
        },
        "training": {"batch": 32, "pretrain": 7, "share": 0.2},
    },
}
"""What a preset says about the second task: batches of 32, a pretrained parser, a fifth of its data an epoch."""

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "release": {
        "syntax": {
            "mlp_layers": 2,
            "keep": 10,
            "encoder": {"lemma_from_form": True, "drop_all": True},
            "optimiser": {"anneal_every": 10},
        },
        "training": {"epochs": 100},
    },
}
"""Where the paper and the published program differ. Fields of a file override them one by one."""

PRESET_SYSTEMS: dict[tuple[str, str, str], dict[str, Any]] = {
    ("paper", "parsing", "attention"): {
        "syntax": {"loss": "crf", "optimiser": {"learning_rate": 5e-4, "anneal_every": 4}},
    },
    ("release", "parsing", "attention"): {"syntax": {"loss": "crf"}},
    ("release", "parsing", "spigot"): {"estimator": {"max_norm": 1.0}},
    ("release", "classification", "spigot"): {"estimator": {"max_norm": 5 / 32, "polytope": "sequential"}},
    **{
        (preset, task, "perturbed"): {"estimator": {"samples": 10}}  # one draw would be no mean
        for preset in ("paper", "release")
        for task in ("parsing", "classification")
    },
}
"""What a preset says about one system of a task: structured attention has its own loss and schedule."""


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read an experiment from a TOML file.

    Args:
        path: The file, or the name of a configuration that comes with spigot; see `find_config`.
        overrides: Values by dotted name, e.g. `{"estimator.eta": 0.5}`. They win over the file.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = file.write_text("system = 'attention'")
        >>> load_config(file, {"training.epochs": 3}).syntax.loss
        'crf'
        >>> load_config("synthetic").data.source
        'synthetic'
    """
    path = find_config(path)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from None
    return make_config(given, overrides, where=str(path), options=as_options(overrides or {}))


def as_options(overrides: Mapping[str, Any]) -> dict[str, str]:
    """Overrides as they stand on a command line, by dotted name, for errors to name.

    Example:
        >>> as_options({"estimator.eta": -1.0})
        {'estimator.eta': '--estimator.eta -1.0'}
    """
    return {name: f"--{name} {value}" for name, value in overrides.items()}


def make_config(
    given: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    where: str = "the configuration",
    *,
    options: Mapping[str, str] | None = None,
) -> Config:
    """An experiment from nested values, with its preset filled in below them.

    Args:
        given: The values.
        overrides: More of them, by dotted name; they win.
        where: What an error blames.
        options: What it blames instead for some of the overrides, by dotted name.

    Example:
        >>> make_config({"preset": "release"}).estimator.max_norm
        1.0
    """
    changes: dict[str, Any] = {}
    for name, value in (overrides or {}).items():
        place = changes
        *groups, last = name.split(".")
        for group in groups:
            place = place.setdefault(group, {})
            if not isinstance(place, dict):
                raise ValueError(f"{where}: {name} and a part of it are both given; give one of them.")
        if isinstance(place.get(last), dict):
            raise ValueError(f"{where}: {name} and a part of it are both given; give one of them.")
        place[last] = value
    chosen = _merge(dict(given), changes)
    preset, system, task = (str(chosen.get(name, Config.model_fields[name].default)) for name in _CHOICES)
    values = _merge(Config().model_dump(), PRESETS.get(preset, {}))
    values = _merge(values, PRESET_TASKS.get((preset, task), {}))
    values = _merge(values, PRESET_SYSTEMS.get((preset, task, system), {}))
    classifier = chosen.get("classifier", {})
    if isinstance(classifier, dict) and classifier.get("structure", "graphs") != "graphs":
        values["estimator"]["polytope"] = "relaxation"  # the program knew no other structure here
    values = _merge(values, chosen)
    training = values["training"]
    if system == "pipeline" and task == "parsing" and isinstance(training, dict) and not training["syntax_from"]:
        named = chosen.get("training", {})
        if "pretrain" not in named:  # its parser gets as many passes as the joint ones give theirs
            training["pretrain"] = training["epochs"]
    return resolved_config(values, where, options=options)


def resolved_config(
    values: Mapping[str, Any], where: str = "the configuration", *, options: Mapping[str, str] | None = None
) -> Config:
    """An experiment from values that need no preset below them, such as those of a finished run.

    Args:
        values: All that is not as by default.
        where: What an error blames.
        options: What it blames instead for some values, by dotted name.

    Example:
        >>> resolved_config({"preset": "release", "estimator": {"eta": 2.0}}).estimator.max_norm is None
        True
    """
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        kind = "is not a known setting" if first["type"] == "extra_forbidden" else first["msg"]
        reason = kind.removeprefix("Value error, ").rstrip(".")
        options = options or {}
        if name in options:
            raise ValueError(f"{options[name]}: {reason.replace('Input should', 'it should')}.") from None
        if options and first["type"] == "value_error":  # about several settings: who knows which one is to blame
            where = f"{where} with {' '.join(options.values())}"
        raise ValueError(f"{where}: {name + ': ' if name else ''}{reason}.") from None


_CHOICES = ("preset", "system", "task")


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dictionaries on top of each other."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        merged[name] = _merge(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return merged
