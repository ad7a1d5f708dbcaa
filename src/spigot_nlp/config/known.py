"""Which settings there are, so that a misspelt one can be told from what may be meant."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from spigot import ESTIMATORS
from spigot_nlp.config.experiment import Config, SharedEncoder
from spigot_nlp.corpora.settings import Data, Files
from spigot_nlp.encoders import ENCODERS
from spigot_nlp.stages.stage import STAGES
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
        yield f"training.{name}_from"
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
