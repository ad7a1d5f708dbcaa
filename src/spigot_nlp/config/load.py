"""From a TOML file to an experiment: defaults, what the task and the preset say, the file, overrides by dotted name."""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from spigot import ESTIMATORS
from spigot_nlp.config.expansion import Refused, expanded, first_error
from spigot_nlp.config.experiment import Config, SharedEncoder
from spigot_nlp.config.presets import Table
from spigot_nlp.configs import find_config
from spigot_nlp.corpora.settings import Data, Files
from spigot_nlp.encoders import ENCODERS
from spigot_nlp.stages.stage import STAGES
from spigot_nlp.toml import brief, merged, read_toml
from spigot_nlp.wires.estimators import settings_class


def settings(tables: Mapping[str, Any]) -> Iterator[str]:
    """Every setting of an experiment by its dotted name; those of a stage without `stages.`.

    Args:
        tables: The experiment, as far as its stages go.

    Example:
        >>> names = list(settings({"stages": {"syntax": {"annotation": "trees"}}}))
        >>> "training.epochs" in names, "syntax.encoder.hidden" in names, "estimator.eta" in names
        (True, True, True)
    """
    yield from _fields(Config, "")
    for name in _names(tables.get("data")):
        if name not in Data.model_fields:
            yield from _fields(Files, f"data.{name}.")
    for name in _names(tables.get("encoders")):
        yield from _with_encoder(SharedEncoder(), tables["encoders"][name], f"encoders.{name}.")
    for name in _names(tables.get("stages")):
        table = tables["stages"][name]
        model = table.get("model") or table.get("annotation") if isinstance(table, Mapping) else None
        if isinstance(model, str) and model in STAGES:
            settings_of = STAGES[model].Settings(annotation=str(table["annotation"]))
            yield from _with_encoder(settings_of, table, f"{name}.")
    yield from dict.fromkeys(
        f"estimator.{field}" for name in ESTIMATORS for field in settings_class(name).model_fields if field != "name"
    )


def suggestion(name: str, tables: Mapping[str, Any], before: str = "") -> str:
    """The end of a sentence that says what may be meant by a setting that does not exist.

    Args:
        name: The setting.
        tables: The experiment, as far as its stages go.
        before: What to write before the names of settings: `--` on a command line.

    Example:
        >>> suggestion("epochs", {"stages": {}})
        '; did you mean training.epochs?'
    """
    group, _, last = name.rpartition(".")
    known = [full for full in settings(tables) if full != group]
    leaves = {full: full.rpartition(".")[2] for full in known}
    inside = [leaf for full, leaf in leaves.items() if full == f"{group}.{leaf}"]
    # Of settings with the right last word, those nearest to the top first.
    close = sorted((full for full, leaf in leaves.items() if leaf == last), key=lambda full: (full.count("."), full))
    close = close or [f"{group}.{leaf}" for leaf in difflib.get_close_matches(last, inside, n=1)]
    close = close or ([] if inside else difflib.get_close_matches(name, known, n=1, cutoff=0.7))
    near = difflib.get_close_matches(last, leaves.values(), n=1)
    close = close or [full for full, leaf in leaves.items() if leaf in near]
    if not close and inside:
        return f"; {before}{group} has {', '.join(inside)}."
    if not close:
        return f"; the groups of settings are {', '.join(full for full in known if '.' not in full)}."
    return f"; did you mean {' or '.join(before + full for full in close[:3])}?"


def _with_encoder(group: BaseModel, table: Any, above: str) -> Iterator[str]:
    """The settings of a stage, or of a shared encoder, with those that its kind of encoder has."""
    encoder = table.get("encoder") if isinstance(table, Mapping) else None
    kind = encoder.get("kind") if isinstance(encoder, Mapping) else None
    if not isinstance(kind, str) or kind not in ENCODERS:
        yield from _values(group, above)
        return
    yield from (name for name in _values(group, above) if not name.startswith(f"{above}encoder."))
    yield from _fields(ENCODERS[kind].Settings, f"{above}encoder.")


def _names(table: Any) -> Iterator[str]:
    return iter(table if isinstance(table, Mapping) else ())


def _fields(group: type[BaseModel], above: str) -> Iterator[str]:
    for name, field in group.model_fields.items():
        yield above + name
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _fields(kind, f"{above}{name}.")


def _values(group: BaseModel, above: str) -> Iterator[str]:
    for name in type(group).model_fields:
        yield above + name
        value = getattr(group, name)
        if isinstance(value, BaseModel):
            yield from _values(value, f"{above}{name}.")


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
    config = make_config(read_tables(path), overrides, where=str(path), options=as_options(overrides or {}))
    check_useful([config], overrides or {})
    return config


def read_tables(path: Path, above: Sequence[Path] = ()) -> Table:
    """The tables of a configuration file, laid over those of the one that it `extends`.

    Args:
        path: The file.
        above: The files that extend it.

    Raises:
        ValueError: If the file is no TOML, or extends what is no configuration, or itself.
    """
    given = read_toml(path)
    if "extends" not in given:
        return given
    extended = given.pop("extends")
    if not isinstance(extended, str):
        raise ValueError(f"{path}: extends is {brief(extended)}; it must name one configuration.")
    beside = path.parent / extended
    try:
        below = beside if os.path.isfile(beside) else find_config(extended)
    except OSError as error:
        raise ValueError(f"{path}: extends: {error}") from None
    if below.resolve() in (seen := [*above, path.resolve()]):
        raise ValueError(f"{path} extends {below.name}, which extends it in turn; leave out one extends.")
    return merged(read_tables(below, seen), given)


def as_options(overrides: Mapping[str, Any]) -> dict[str, str]:
    """Overrides as they stand on a command line, by dotted name, for errors to name.

    Example:
        >>> as_options({"estimator.eta": -1.0})
        {'estimator.eta': '--estimator.eta -1.0'}
    """
    return {name: f"--{name} {'none' if value is None else value}" for name, value in overrides.items()}


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
        end = "" if str(error).endswith(("?", ".")) else "."
        raise ValueError(f"{_with(where, options)}: {brief(error)}{end}") from None


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
    names = [name, f"stages.{name}", f"estimator.{name.rpartition('.estimator.')[2]}"]
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
