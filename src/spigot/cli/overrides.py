"""Settings on the command line: any field of a configuration by its dotted name."""

import difflib
import tomllib
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from spigot.cli.options import suggestion
from spigot.config import Config, Values


def parse_overrides(words: Sequence[str], options: Sequence[str] = ()) -> dict[str, Any]:
    """Read `--name value` and `--name=value` into values by dotted name.

    A value is read as TOML, and as plain text where it is none or where the setting is text. A setting that holds
    several texts takes one as well as a list.

    Args:
        words: What stands on the command line.
        options: What the command takes beside settings, such as `--threads`, for misspelt ones to be told.

    Returns:
        What `load_config` takes as its overrides.

    Raises:
        ValueError: If a word is no option, has no value, or names no setting; it says which one may be meant.

    Example:
        >>> parse_overrides(["--estimator.eta", "0.5", "--system=ste", "--data.trees.train", "a.conllu"])
        {'estimator.eta': 0.5, 'system': 'ste', 'data.trees.train': ['a.conllu']}
        >>> parse_overrides(["--epochs", "3"])
        Traceback (most recent call last):
        ValueError: --epochs is not a setting; did you mean --training.epochs or --semantics.pruning.epochs?
    """
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            raise ValueError(f"{word!r} belongs to no setting; write settings as --name value, after the file.")
        name, equals, text = word[2:].partition("=")
        name, kind = _resolve(name, options)
        if not equals:
            text = next(rest, None)
            if text is None or text.startswith("--"):
                raise ValueError(f"--{name} has no value; write --{name} VALUE.")
        if name in found:
            raise ValueError(f"--{name} is given twice; give it once.")
        found[name] = _value(text, kind)
    return found


def settings(group: type[Values] = Config, above: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting and group of settings by its dotted name, with its type.

    Example:
        >>> dict(settings())["estimator.eta"]
        <class 'float'>
    """
    for name, field in group.model_fields.items():
        kind = field.annotation
        yield above + name, kind
        if isinstance(kind, type) and issubclass(kind, Values):
            yield from settings(kind, f"{above}{name}.")


def _resolve(name: str, options: Sequence[str]) -> tuple[str, Any]:
    """The full name and the type of a setting; hyphens stand for underscores."""
    known = dict(settings())
    plain = name.replace("-", "_")
    if plain in known:
        return plain, known[plain]
    group, _, key = name.rpartition(".")
    if key and typing.get_origin(known.get(group)) is dict:  # test sets have names of the user's choice
        return name, typing.get_args(known[group])[1]
    if meant := suggestion(f"--{name}", options):
        raise ValueError(f"there is no option or setting --{name}{meant}")
    raise ValueError(f"--{name} is not a setting{_suggestion(plain, list(known))}")


def _suggestion(name: str, known: list[str]) -> str:
    last = name.rpartition(".")[2]
    leaves = {full: full.rpartition(".")[2] for full in known}
    # Of settings with the right last word, those nearest to the top first.
    close = sorted((full for full, leaf in leaves.items() if leaf == last), key=lambda full: (full.count("."), full))
    close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    near = difflib.get_close_matches(last, leaves.values(), n=1)
    close = close or [full for full, leaf in leaves.items() if leaf in near]
    if not close:
        return f"; the groups of settings are {', '.join(full for full in known if '.' not in full)}."
    return f"; did you mean {' or '.join(f'--{full}' for full in close[:3])}?"


def _value(text: str, kind: Any) -> Any:
    value = _toml(text)
    if isinstance(value, str):
        return [value] if typing.get_origin(kind) is tuple else value
    wants_text = kind is str or typing.get_origin(kind) is typing.Literal
    return text if wants_text else value


def _toml(text: str) -> Any:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = read["value"]
    # Not a second setting behind a line break, and not a date.
    return value if len(read) == 1 and isinstance(value, bool | int | float | str | list | dict) else text
