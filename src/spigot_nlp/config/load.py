"""From a TOML file to an experiment: defaults, what the task and the preset say, the file, overrides by dotted name."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spigot_nlp.config.expansion import Refused, expanded, first_error
from spigot_nlp.config.experiment import Config
from spigot_nlp.config.known import suggestion
from spigot_nlp.config.presets import Table
from spigot_nlp.config.shipped import find_config
from spigot_nlp.values import brief, merged


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read an experiment from a TOML file.

    Args:
        path: The file, or the name of a configuration that comes with spigot; see `find_config`.
        overrides: Values by dotted name, e.g. `{"estimator.eta": 0.5}`. They win over the file.

    Raises:
        ValueError: If a value cannot be, or is an option that no estimator of the experiment has.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = file.write_text("system = 'attention'")
        >>> load_config(file, {"training.epochs": 3}).stages["syntax"].loss
        'crf'
        >>> load_config("synthetic").data.source
        'synthetic'
    """
    path = find_config(path)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {brief(error)}.") from None
    config = make_config(given, overrides, where=str(path), options=as_options(overrides or {}))
    check_useful([config], overrides or {})
    return config


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

    A table that names no stages is one of the paper's experiments: `task` says which, `system` what stands on the wire.
    The settings of a stage may be written under its own name instead of below `stages`, and those of `[estimator]`
    hold for every wire whose estimator has them; a wire's own stand above those of the file, and below the overrides.

    Args:
        given: The values of a file.
        overrides: Values by dotted name that win over them.
        where: What messages call the file.
        options: What they blame instead for some of the overrides, by dotted name.

    Example:
        >>> config = make_config({"preset": "release"})
        >>> list(config.stages), config.stages["semantics"].reads[0].estimator.max_norm
        (['syntax', 'semantics'], 1.0)
        >>> make_config({"system": "sponge"})
        Traceback (most recent call last):
        ValueError: the configuration: system = 'sponge' is none of task = 'parsing'; choose one of neurboparser, \
shared1, ...
    """
    try:
        above = _nested(overrides or {})
        spelt_out = expanded(merged(given, above), above)
        return resolved_config(spelt_out, where, options=options)
    except Refused as error:
        raise ValueError(f"{_with(where, options)}: {brief(error).rstrip('.')}.") from None


def resolved_config(
    values: Mapping[str, Any], where: str = "the configuration", *, options: Mapping[str, str] | None = None
) -> Config:
    """An experiment from values that need no preset below them, such as those of a finished run.

    Args:
        values: The stages and all that is not as by default.
        where: What messages call the file.
        options: What they blame instead for some values, by dotted name.

    Example:
        >>> resolved_config({"stages": {"syntax": {"annotation": "trees", "mlp": 8}}}).stages["syntax"].mlp
        8
    """
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        path, reason = first_error(error)
        name = ".".join(map(str, path)).removeprefix("stages.").replace(".estimator.estimator", ".estimator")
        option = _option(name, options or {}) or _option(f"{name}.{reason.partition(' ')[0]}", options or {})
        if reason == "extra_forbidden":
            # Of an unknown group the setting in it says more.
            whole = next((given for given in options or {} if given.startswith(f"{name}.")), name)
            reason = f"is not a known setting{suggestion(whole, values, '--' if option.startswith('--') else '')}"
        end = "" if reason.endswith(("?", ".")) else "."
        if option:
            raise ValueError(f"{option}: {brief(reason.replace('Input should', 'it should'))}{end}") from None
        if not name:  # about several settings: who knows which one is to blame
            where = _with(where, options)
        raise ValueError(f"{where}: {brief(name) + ': ' if name else ''}{brief(reason)}{end}") from None


def _with(where: str, options: Mapping[str, str] | None) -> str:
    return f"{where} with {' '.join(options.values())}" if options else where


def _option(name: str, options: Mapping[str, str]) -> str:
    """The option that a setting came by, under whichever of its names; empty if it came by none."""
    stage, _, rest = name.partition(".")
    names = [name, f"stages.{name}", f"estimator.{name.rpartition('.estimator.')[2]}"]
    names += [f"training.{stage}_from"] if rest == "start" else []
    found = next((options[known] for known in names if known in options), "")
    return found or next((text for full, text in options.items() if full.startswith(f"{name}.")), "")


def _nested(overrides: Mapping[str, Any]) -> Table:
    changes: Table = {}
    for name, value in overrides.items():
        place = changes
        *groups, last = name.split(".")
        for group in groups:
            place = place.setdefault(group, {})
            if not isinstance(place, dict):
                raise Refused(f"{name} and a part of it are both given; give one of them")
        if isinstance(place.get(last), dict):
            raise Refused(f"{name} and a part of it are both given; give one of them")
        place[last] = value
    return changes


def check_useful(configs: Sequence[Config], asked: Iterable[str], where: str = "") -> None:
    """Complain about an option of estimators that somebody asked for and that no wire has, or of a wire that is not.

    Args:
        configs: The experiments that it was asked of; one that has it is enough.
        asked: Settings by dotted name.
        where: The table that they stand in, for the message.

    Raises:
        ValueError: If there is such an option; it says which there are.

    Example:
        >>> check_useful([make_config({"system": "ste"})], ["estimator.rho"])
        Traceback (most recent call last):
        ValueError: estimator.rho would change nothing, since no wire of system = 'ste' has such an option: ste has ...
    """
    wires = [wire for config in configs for _, wire in config.wires]
    estimators = {wire.estimator.name: type(wire.estimator).model_fields for wire in wires}
    systems = ", ".join(dict.fromkeys(repr(config.system) for config in configs))
    read_by = {f"{name}.reads.estimator" for config in configs for name, _ in config.wires}
    for name in asked:
        wire, on_wire, _ = name.removeprefix("stages.").partition(".reads.estimator")
        if on_wire and wire + on_wire not in read_by:
            raise ValueError(
                f"{where and where + ': '}{name} would change nothing, since {wire} reads no stage in system = "
                f"{systems}."
            )
        group, _, option = name.partition(".")
        if group == "estimator" and option and not any(option in fields for fields in estimators.values()):
            known = "; ".join(f"{name} has {', '.join([*fields][1:]) or 'none'}" for name, fields in estimators.items())
            raise ValueError(
                f"{where and where + ': '}{name} would change nothing, since no wire of system = {systems} has such an "
                f"option{known and ': ' + known}."
            )
