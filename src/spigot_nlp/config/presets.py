"""The paper's two experiments as stages and wires, and what the paper and its published program say about them.

This is the only place that knows them by name: everything else sees stages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from spigot import ESTIMATORS
from spigot_nlp.toml import merged, read_toml
from spigot_nlp.values import Layers, Size, Values
from spigot_nlp.wires.readers import READERS

Table = dict[str, Any]

UNWIRED = ("neurboparser", "bilstm")
"""The systems without wires: the last stage alone."""

MULTITASK: dict[str, Table] = {
    "shared1": {"own": False, "order": 1},
    "freda1": {"own": True, "order": 1},
    "shared3": {"own": False, "order": 3},
    "freda3": {"own": True, "order": 3},
}
"""The systems that find graphs of several formalisms (Peng et al., 2017): one encoder for all, or one of its own for
each beside it; each graph by itself, or with parts that join arcs of two and three."""

_SEVERAL = "formalisms"

_GIVEN = ("gold", "left", "right", "random")

POSSIBLE: dict[str, Table] = {
    "syntax": {"annotation": "trees"},
    "semantics": {"annotation": "graphs"},
    "classifier": {"annotation": "label"},
}
"""The stages of the paper's experiments. A file may have a table for each, whether its experiment has it or not."""

_FOLDER = Path(__file__).parents[1] / "configs" / "presets"
"""What the paper and the published program say, a file each. Fields of a file of the user override them one by one."""


@dataclass(frozen=True)
class Preset:
    """An experiment of the paper, before its file is laid over it.

    Attributes:
        stages: Its stages.
        below: Values below those of the file.
    """

    stages: Table
    below: Table = field(default_factory=dict)


def parsing(chosen: Mapping[str, Any], system: str) -> Preset:
    """Syntactic trees inside a semantic parser (§3), or a parser into several formalisms, which reads no trees.

    Example:
        >>> list(parsing({}, "spigot").stages)
        ['syntax', 'semantics']
        >>> parsing({}, "freda3").stages
        {'semantics': {'annotation': 'formalisms'}}
    """
    if system in MULTITASK:
        return Preset({"semantics": {"annotation": _SEVERAL}}, {"data": {"text": ("trees", "graphs")}})
    stages = {
        "syntax": {"annotation": "trees"},
        "semantics": {"annotation": "graphs", "reads": {"stage": "syntax", "as": "heads"}},
    }
    below: Table = {"data": {"text": ("trees", "graphs")}}
    training, syntax = chosen.get("training", {}), _settings(chosen, "syntax")
    begun = syntax.get("start") or not syntax.get("freeze", True)
    if system == "pipeline" and not begun and "pretrain" not in training:
        # Its parser gets as many passes as the joint ones give theirs.
        below["training"] = {"pretrain": "epochs"}
    return Preset(stages, below)


def _settings(chosen: Mapping[str, Any], stage: str) -> Table:
    """What a file says of a stage, under `stages` or under its own name."""
    stages = chosen.get("stages")
    tables = (stages.get(stage) if isinstance(stages, Mapping) else None), chosen.get(stage)
    return {name: value for table in tables if isinstance(table, Mapping) for name, value in table.items()}


class Inside(Values):
    """What a file says in `[classifier]` about the structure inside: which stages there are, and the wire.

    Attributes:
        structure: What it is; a learned one, or trees by rule.
        latent: Whether nobody annotated it.
        roles: How many roles latent graphs have.
        reader: How it is read; `heads` is the reader that is called `roles` elsewhere.
        rounds: How many rounds of messages the reader `rounds` has.
    """

    structure: Literal["graphs", "trees", "gold", "left", "right", "random"] = "graphs"
    latent: bool = False
    roles: Size = 4
    reader: str = "heads"
    rounds: Annotated[Layers, Field(gt=0)] = 5

    @field_validator("reader")
    @classmethod
    def _known(cls, reader: str) -> str:
        READERS.find(reader)
        return reader


def classification(chosen: Mapping[str, Any], system: str) -> Preset:
    """A structure inside a sentence classifier (§4); what it is stands in `[classifier]`.

    Example:
        >>> preset = classification({"classifier": {"structure": "trees", "latent": True}}, "ste")
        >>> preset.stages["syntax"], preset.stages["classifier"]["reads"]
        ({'annotation': 'trees', 'latent': True}, {'stage': 'syntax', 'as': {'name': 'roles'}})
    """
    options = chosen.get("classifier", {})
    inside = Inside.model_validate({name: options[name] for name in Inside.model_fields if name in options})
    latent = inside.latent
    wire: Table = {"name": "roles" if inside.reader == "heads" else inside.reader}
    if inside.reader == "rounds" and "rounds" in options:
        wire["rounds"] = inside.rounds
    if inside.structure in _GIVEN:
        read, stages = "trees", {"trees": {"annotation": "trees", "model": "given", "rule": inside.structure}}
        latent = False
    else:
        read = "semantics" if inside.structure == "graphs" else "syntax"
        stages = {read: {**POSSIBLE[read], **({"latent": True} if latent else {})}}
        if latent and read == "semantics" and "roles" in options:
            stages[read]["roles"] = inside.roles
    stages["classifier"] = {"annotation": "label", "reads": {"stage": read, "as": wire}}
    annotated = "trees" if inside.structure == "trees" else "graphs"
    words = ("labels",) if latent and system not in UNWIRED else (annotated, "labels")
    return Preset(stages, {"data": {"text": words}})


def multitask(stages: Mapping[str, Any], system: str) -> Table:
    """Stages with the last one that finds several graphs as a system says; of `neurboparser`, its first graph alone.

    Example:
        >>> stages = {"semantics": {"annotation": "formalisms", "graphs": ["dm", "psd"], "mlp": 8}}
        >>> multitask(stages, "shared1")["semantics"]["own"]
        False
        >>> multitask(stages, "neurboparser")["semantics"]
        {'annotation': 'graphs', 'mlp': 8, 'field': 'dm'}
    """
    name = next((name for name in reversed(list(stages)) if is_multitask(stages[name])), None)
    if name is None:
        return dict(stages)
    table = stages[name]
    if system in MULTITASK:
        return {**stages, name: {**table, **MULTITASK[system]}}
    if system in UNWIRED and table.get("graphs"):
        joint = ("graphs", "own", "order", "rank", "minimum", "costs")
        alone = {key: value for key, value in table.items() if key not in joint}
        return {**stages, name: {**alone, "annotation": "graphs", "field": table["graphs"][0]}}
    return dict(stages)


def multitask_name(stages: Mapping[str, Any]) -> str:
    """What the system of the last stage that finds several graphs is called; empty if there is none.

    Example:
        >>> multitask_name({"semantics": {"annotation": "formalisms", "own": False, "order": 1}})
        'shared1'
    """
    for table in reversed(list(stages.values())):
        if is_multitask(table):
            return f"{'freda' if table.get('own', True) else 'shared'}{table.get('order', 3)}"
    return ""


def is_multitask(table: Any) -> bool:
    """Whether a stage finds graphs of several formalisms.

    Example:
        >>> is_multitask({"annotation": "graphs"})
        False
    """
    return isinstance(table, Mapping) and table.get("annotation") == _SEVERAL


TASKS = {"parsing": parsing, "classification": classification}
"""The experiments of the paper."""

CONSUMED: dict[str, type[Values]] = {"classifier": Inside}
"""Settings of a file that say which stages there are, and are no settings of any."""

_FIRST = (
    *("pipeline", "attention", "ste", "spigot", "lpgd", "spigot-ce", "spigot-eg", "sparsemap", "identity", "blackbox"),
    *("imle", "adaptive-imle", "perturbed", "marginal-ste", "score-function", "reinmax"),
)


def systems(task: str = "", *, several: bool = False) -> tuple[str, ...]:
    """The systems of a task, simple ones first: the one without wires, and an estimator on them.

    Args:
        task: The task; empty for stages that are named.
        several: Whether a stage finds graphs of several formalisms, as that of parsing may.

    Example:
        >>> systems("classification")[:5]
        ('bilstm', 'pipeline', 'attention', 'ste', 'spigot')
        >>> systems("parsing")[:3]
        ('neurboparser', 'shared1', 'freda1')
    """
    alone = {"parsing": UNWIRED[:1], "classification": UNWIRED[1:]}.get(task, UNWIRED)
    several = several or task == "parsing"
    return (*alone, *(MULTITASK if several else ()), *_FIRST, *(name for name in ESTIMATORS if name not in _FIRST))


def below(preset: str, task: str, system: str, chosen: Mapping[str, Any]) -> Table:
    """What a preset says about a task and a system, as values below those of a file.

    Example:
        >>> below("release", "parsing", "spigot", {})["estimator"]
        {'max_norm': 1.0}
    """
    files = {path.stem: path for path in _FOLDER.glob("*.toml")}
    said = read_toml(files[preset]) if preset in files else {}  # what is no preset is refused with the other settings
    of_both = {name: table for name, table in said.items() if name not in TASKS}
    of_task = said.get(task, {})
    values = merged(merged(of_both, of_task), of_task.get("systems", {}).get(system, {}))
    values.pop("systems", None)
    clipped = chosen.get("estimator", {})
    if isinstance(clipped, Mapping) and "max_norm" in clipped:  # which says how long a step is
        values = {**values, "estimator": {k: v for k, v in values.get("estimator", {}).items() if k != "eta"}}
    options = chosen.get("classifier", {})
    if isinstance(options, Mapping) and options.get("structure", "graphs") != "graphs":
        # The program knew no other structure here.
        known = {name: value for name, value in values.get("estimator", {}).items() if name != "polytope"}
        values = {**values, "estimator": known}
    return values
