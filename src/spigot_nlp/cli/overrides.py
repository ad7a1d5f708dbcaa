"""Settings on the command line: any field of a configuration by its dotted name."""

import tomllib
from collections.abc import Sequence
from typing import Any

from spigot_nlp.cli.options import suggestion
from spigot_nlp.config import Config, Data, Files
from spigot_nlp.stages.stage import StageSettings

_NAMED = ("stages", "encoders", "tests", "names")
"""The groups whose members the user names; beside the data sets, and the stages where `stages.` is left out."""
_TEXTS = ("tests", "names")
"""Those whose members are text."""


def parse_overrides(words: Sequence[str], options: Sequence[str] = ()) -> dict[str, Any]:
    """Read `--name value` and `--name=value` into values by dotted name.

    A value is read as TOML, and as plain text where it is no TOML or where the setting is text; `none` unsets what is
    optional. Hyphens stand for underscores, but not in names that the user gives: those of stages, shared encoders,
    data sets and test sets.

    Args:
        words: What stands on the command line.
        options: What the command takes beside settings, such as `--threads`, for misspelt ones to be told.

    Returns:
        What `load_config` takes as its overrides; it says which ones name no setting.

    Raises:
        ValueError: If a word is no option, or has no value.

    Example:
        >>> parse_overrides(["--estimator.eta", "0.5", "--system=ste", "--data.trees.train", "a.conllu"])
        {'estimator.eta': 0.5, 'system': 'ste', 'data.trees.train': 'a.conllu'}
        >>> parse_overrides(["epochs", "3"])
        Traceback (most recent call last):
        ValueError: 'epochs' belongs to no setting; write settings as --name value, after the file.
    """
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            raise ValueError(f"{word!r} belongs to no setting; write settings as --name value, after the file.")
        name, equals, text = word[2:].partition("=")
        if "." not in name and options and name not in Config.model_fields and (meant := suggestion(word, options)):
            raise ValueError(f"there is no option or setting --{name}{meant}")
        name = _underscored(name)
        if not equals:
            text = next(rest, None)
            if text is None or text.startswith("--"):
                raise ValueError(f"--{name} has no value; write --{name} VALUE.")
        if name in found:
            raise ValueError(f"--{name} is given twice; give it once.")
        value = _value(text)
        if _is_text(name) and not isinstance(value, str):
            value = text
        elif text == "none" and not _is_text(name):
            value = None
        found[name] = value
    return found


def _underscored(name: str) -> str:
    """The dotted name of a setting as files have it."""
    words = name.split(".")
    own = [not above or above[-1] in _NAMED or above == ["data"] for above in (words[:k] for k in range(len(words)))]
    return ".".join(word if mine else word.replace("-", "_") for word, mine in zip(words, own, strict=True))


def _is_text(name: str) -> bool:
    """Whether a setting is text, so that what looks like a number in it is none: a run may be called 1e3 or true."""
    *above, last = name.split(".")
    if above and above[-1] in _TEXTS:
        return True
    group = {0: Config, 1: Data if above == ["data"] else StageSettings}.get(len(above), Files)
    field = group.model_fields.get(last)
    return field is not None and field.annotation is str


def _value(text: str) -> Any:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = read["value"]
    # Not a second setting behind a line break, and not a date.
    return value if len(read) == 1 and isinstance(value, bool | int | float | str | list | dict) else text
