"""Nested tables as TOML files have them: read, laid over each other, and quoted in short where one is refused."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEYS = ("name", "kind", "annotation", "model")
"""What tells one kind of thing from another in a table."""
USUAL_KIND = "bilstm"
"""The kind of an encoder whose table does not say."""


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables on top of each other. One that names another kind of thing replaces what is below it.

    Example:
        >>> merged({"eta": 1.0, "encoder": {"hidden": 8, "layers": 2}}, {"encoder": {"hidden": 4}})
        {'eta': 1.0, 'encoder': {'hidden': 4, 'layers': 2}}
        >>> merged({"estimator": {"name": "spigot", "eta": 1.0}}, {"estimator": {"name": "blackbox"}})
        {'estimator': {'name': 'blackbox'}}
        >>> merged({"encoder": {"kind": "transformer", "model": "small"}}, {"encoder": {"model": "large"}})
        {'encoder': {'kind': 'transformer', 'model': 'large'}}
        >>> merged({"encoder": {"hidden": 8}}, {"encoder": {"kind": "transformer", "model": "large"}})
        {'encoder': {'kind': 'transformer', 'model': 'large'}}
    """
    whole = dict(below)
    for key, value in above.items():
        under = whole.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping) and not _differ(under, value):
            value = merged(under, value)
        whole[key] = value
    return whole


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if "kind" in one or "kind" in other:  # an encoder, and its model is but one of its options
        return "kind" in other and one.get("kind", USUAL_KIND) != other["kind"]
    return any(key in one and key in other and one[key] != other[key] for key in KEYS)


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file; a file that is none is refused in a sentence."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # of TOML, of text, of numbers with thousands of digits
        raise ValueError(f"{path} is not valid TOML: {brief(error)}.") from None


def brief(message: object) -> str:
    """A message without the bulk of what it quotes, on one line.

    Example:
        >>> brief("no setting is called " + "x" * 5000)
        'no setting is called xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ...'
    """
    text = re.sub(r"\S{201,}", lambda found: f"{found[0][:40]} ...", " ".join(str(message).split()))
    return text if len(text) <= 600 else f"{text[:600]} ..."
