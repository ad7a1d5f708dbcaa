"""From what people write to stages and wires: short forms spelt out, presets filled in, a system put on every wire."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from spigot import ESTIMATORS
from spigot_nlp.config.experiment import Config
from spigot_nlp.config.presets import (
    CONSUMED,
    MULTITASK,
    POSSIBLE,
    TASKS,
    UNWIRED,
    Table,
    below,
    is_multitask,
    multitask,
    multitask_name,
    systems,
)
from spigot_nlp.stages.stage import stage_settings
from spigot_nlp.toml import merged
from spigot_nlp.wires.estimators import settings_class


class Refused(ValueError):
    """A table that says something impossible."""


def expanded(chosen: Table, overrides: Table) -> Table:
    """A file as stages and wires.

    Args:
        chosen: The file, with the overrides in it.
        overrides: These, nested. What they say of estimators holds whichever of them the system puts on the wires.
    """
    task = chosen.get("task") or ("" if names_stages(chosen) else "parsing")
    if task and task not in TASKS:
        raise Refused(f"task is {task!r}; it must be one of {', '.join(TASKS)}, or name stages")
    for group in ("training", "data", "stages", *(POSSIBLE if task else ())):
        if not isinstance(chosen.get(group, {}), Mapping):
            raise Refused(f"{group} is {chosen[group]!r}; it must be a table of settings")
    values, spare = dict(chosen), {}
    asked = {name: found for name in _stage_names(chosen) if (found := _named(overrides, name))}
    system = _system(chosen, overrides, asked) if task else str(chosen.get("system", ""))
    if not task and system == _label(chosen["stages"]):
        system = ""  # what its wires say, written down by an earlier expansion
    known = systems(task, several=not task and any(map(is_multitask, chosen["stages"].values())))
    if system and system not in known:
        raise Refused(
            f"system = {system!r} is none of task = {task!r}; choose one of {', '.join(known)}"
            if task
            else f"there is no system {system!r}; choose one of {', '.join(known)}"
        )
    if task:
        values, spare = _preset(chosen, task, system)
    elif not chosen["stages"]:
        raise Refused("there are no stages; name one, such as [stages.syntax] with annotation = 'trees'")
    stages = _lifted(values)
    for name, table in _table(overrides.get("stages")).items():  # above what the file says under a stage's own name
        if name in stages and isinstance(table, Mapping) and isinstance(stages[name], Mapping):
            stages[name] = merged(stages[name], table)
    for name in spare:
        _checked(name, stage_settings, stages.pop(name))  # nothing reads it here
    if only := values.pop("only", None):
        stages, system = _only(stages, only), ""
        values["task"] = ""  # of which these stages would be a part
    stages = multitask(stages, system)
    if (
        system
        and system not in (*MULTITASK, *UNWIRED)
        and multitask_name(stages)
        and not any(map(_wires, stages.values()))
    ):
        raise Refused(
            f"system = {system!r} says what stands on wires, and there are none; choose one of "
            f"{', '.join((*UNWIRED, *MULTITASK))}, or let a stage read another"
        )
    _wire(stages, system, values.pop("estimator", {}), overrides, asked)
    training = values.get("training", {})
    if training.get("pretrain") == "epochs":
        training = {**training, "pretrain": training.get("epochs", Config().training.epochs)}
    # A stage that finds several graphs is a part of the name, and so is a wire that was asked to be otherwise.
    called = "" if multitask_name(stages) or not {*asked.values()} <= {system} else system
    return {**values, "system": called or _label(stages), "stages": stages, "training": training}


def _only(stages: Table, only: Any) -> Table:
    """Some of the stages, by themselves: what they learn without the others."""
    wanted = [only] if isinstance(only, str) else only
    if not isinstance(wanted, list | tuple) or not all(isinstance(name, str) for name in wanted):
        raise Refused(f"only is {only!r}; it must name stages")
    for name in wanted:
        if name not in stages:
            raise Refused(f"only names {name!r}, which is no stage; those are {', '.join(stages)}")
    for name in wanted:
        if missing := [wire["stage"] for wire in _wires(stages[name]) if _table(wire).get("stage") not in wanted]:
            raise Refused(f"only leaves out {missing[0]}, which {name} reads; name it too")
    return {name: table for name, table in stages.items() if name in wanted}


def names_stages(chosen: Table) -> bool:
    """Whether a file has stages of its own, and not only settings for those of the paper's experiments."""
    settings = [name in POSSIBLE and "annotation" not in _table(t) for name, t in _table(chosen.get("stages")).items()]
    return "stages" in chosen and not (settings and all(settings))


def _preset(chosen: Table, task: str, system: str) -> tuple[Table, Table]:
    """A file over the stages of its task, and those of them that the task does not have."""
    for group, kind in CONSUMED.items():
        own = chosen.get(group, {})
        _checked(group, kind.model_validate, {name: own[name] for name in kind.model_fields if name in own})
    made = TASKS[task](chosen, system)
    if "annotation" in _table(chosen.get("stages", {}).get(list(made.stages)[-1])):
        return dict(chosen), {}  # all that the task says is in the file already, as in that of a run
    values = dict(chosen)
    for group, kind in CONSUMED.items():
        values[group] = {name: value for name, value in chosen.get(group, {}).items() if name not in kind.model_fields}
    spare = {name: table for name, table in POSSIBLE.items() if name not in made.stages}
    under = merged({"task": task, "stages": {**made.stages, **spare}}, made.below)
    return merged(merged(under, below(str(chosen.get("preset", "paper")), task, system, chosen)), values), spare


def _checked(group: str, check: Callable[[Any], object], table: Any) -> None:
    """What a table says must make sense, whether the experiment has a use for it or not."""
    try:
        check(table)
    except ValidationError as error:
        path, reason = first_error(error)
        known = "is not a known setting" if reason == "extra_forbidden" else reason
        raise Refused(f"{'.'.join(map(str, (group, *path)))}: {known}") from None


def _table(value: Any) -> Mapping[str, Any]:
    """A value if it is a table, and otherwise an empty one."""
    return value if isinstance(value, Mapping) else {}


def _lifted(values: Table) -> Table:
    """The tables of the stages, with what stands under their own names outside `stages` laid over them."""
    stages = {name: dict(table) if isinstance(table, Mapping) else table for name, table in values["stages"].items()}
    for name in list(stages):
        if name in values and name not in Config.model_fields:
            outside = values.pop(name)
            if not isinstance(outside, Mapping):
                raise Refused(f"{name} must be a table with the settings of the stage")
            stages[name] = merged(stages[name], outside)
    return stages


def _stage_names(chosen: Table) -> list[str]:
    """The stages that a file has or may have."""
    return [*dict.fromkeys((*POSSIBLE, *_table(chosen.get("stages"))))]


def _system(chosen: Table, overrides: Table, asked: Mapping[str, str]) -> str:
    """The system of one of the paper's experiments, which have one wire: what stands on it is the system.

    What is asked for stands above the file, under either name, and what the file calls the system above its wire.
    """
    stage, name = next(iter(asked.items()), ("", ""))
    wanted = str(overrides.get("system", name))
    if name and wanted != name:
        raise Refused(
            f"system = {wanted!r} and {stage}.reads.estimator = {name!r} both say what stands on the wire; give one"
        )
    of_file = (found for name in POSSIBLE if (found := _named(chosen, name)))
    return wanted or str(chosen.get("system", "")) or next(of_file, "spigot")


def _wire(stages: Table, system: str, options: Any, overrides: Table, asked: Mapping[str, str]) -> None:
    """Put the system's estimator on every wire, with the options that it has; what is asked of one wire comes first."""
    known = {field for name in ESTIMATORS for field in settings_class(name).model_fields if field != "name"}
    if not isinstance(options, Mapping):
        raise Refused("estimator must be a table of options")
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            meant = f"did you mean estimator.{near[0]}?" if near else f"the options are {', '.join(sorted(known))}"
            raise Refused(f"estimator.{name}: is not a known setting; {meant}")
    if system in UNWIRED:
        end = list(stages)[-1]
        for name in [name for name in stages if name != end]:
            del stages[name]
        stages[end] = {name: value for name, value in _table(stages[end]).items() if name != "reads"}
        return
    everywhere = "" if system in MULTITASK else system
    for name, table in stages.items():
        if wires := _wires(table):
            forced, own = _table(overrides.get("estimator")), _wire_options(overrides, name)
            estimator = asked.get(name, everywhere)
            stages[name] = {**table, "reads": [_wired(wire, estimator, options, forced, own) for wire in wires]}


def _wire_options(tables: Table, stage: str) -> dict[str, Any]:
    """The options that tables have for the estimator of a stage's wire: `semantics.reads.estimator.eta`."""
    return {name: value for name, value in _on_wire(tables, stage).items() if name != "name"}


def _named(tables: Table, stage: str) -> str:
    """The estimator that tables put on a stage's wire: `semantics.reads.estimator`; empty if none."""
    return str(_on_wire(tables, stage).get("name", ""))


def _on_wire(tables: Table, stage: str) -> Table:
    """What tables say of the estimator of a stage's wire, under either name of the stage."""
    found: Table = {}
    for table in (_table(_table(tables.get("stages")).get(stage)), _table(tables.get(stage))):
        given = _table(table.get("reads")).get("estimator")
        found.update({"name": given} if isinstance(given, str) else _table(given))
    return found


def _wires(stage: Any) -> list[Any]:
    """What a stage reads by; nothing where that makes no sense, which is refused later, with its place."""
    reads = _table(stage).get("reads")
    return [reads] if isinstance(reads, Mapping) else [*reads] if isinstance(reads, list | tuple) else []


def _wired(wire: Any, system: str, options: Mapping[str, Any], forced: Mapping[str, Any], asked: Table) -> Any:
    """A wire with its estimator; of `options` and `forced` it has what it has a use for, and all that was `asked`."""
    own = _table(wire).get("estimator", {})
    own = {"name": own} if isinstance(own, str) else own
    if not isinstance(wire, Mapping) or not isinstance(own, Mapping):
        return wire  # which is refused later, with its place, as is a name that no estimator has
    name = system or own.get("name", "spigot")
    fields = settings_class(name).model_fields if isinstance(name, str) and name in ESTIMATORS else {}
    shared, above = ({key: value for key, value in some.items() if key in fields} for some in (options, forced))
    same = own.get("name", name) == name
    return {**wire, "estimator": {"name": name, **shared, **(own if same else {}), **above, **asked}}


def _label(stages: Mapping[str, Any]) -> str:
    """What reports call a system that has no name: what stands on its wires, or what it finds."""
    wires = [_table(wire) for table in stages.values() for wire in _wires(table)]
    names = dict.fromkeys(str(_table(wire.get("estimator")).get("name")) for wire in wires)
    if several := multitask_name(stages):
        return "+".join((several, *names))
    return "+".join(names or dict.fromkeys(str(_table(table).get("annotation")) for table in stages.values()))


def first_error(error: ValidationError) -> tuple[tuple[str | int, ...], str]:
    """Where the first thing is wrong, however deep, and what."""
    first = error.errors()[0]
    path = tuple(first["loc"])
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, ValidationError):
        below, reason = first_error(inner)
        return (*path, *below), reason
    if first["type"] == "extra_forbidden":
        return path, "extra_forbidden"
    return path, first["msg"].removeprefix("Value error, ")
