"""One training of a study, and what its folder is called."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from spigot_nlp.config import Config

_LONGEST = 120  # of a folder's name, in characters

Role = Literal["shared", "tuning", "final"]


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        name: Names its folder, and says what is particular to it.
        system: The system, or the shared training.
        point: Where it is compared.
        seed: Where its random numbers start.
        config: The whole experiment.
        role: Whether others start from it, values are tried by it, or it counts.
        values: The values that are tried by it, or were chosen.
        needs: The names of the trainings that it starts from.

    Example:
        >>> Trial("spigot-0", "spigot", "", 0, Config()).role
        'final'
    """

    name: str
    system: str
    point: str
    seed: int
    config: Config = field(repr=False)
    role: Role = "final"
    values: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


def trial_name(parts: Sequence[str], values: Mapping[str, Any], labels: Mapping[str, str], seed: int) -> str:
    """A folder's name. It depends on nothing else, so that a study can grow.

    Args:
        parts: The system and the point, as far as they have names.
        values: Values that are tried.
        labels: What to call the settings that they are values of.
        seed: The seed.

    Example:
        >>> trial_name(["spigot", "500"], {"estimator.eta": 0.5}, {"estimator.eta": "eta"}, 3)
        'spigot,500,eta=0.5-3'
    """
    words = [*filter(None, parts), *(f"{labels[name]}={show_value(value)}" for name, value in values.items())]
    full = f"{','.join(words) or 'seed'}-{seed}"
    texts = [text for value in values.values() for text in (value if isinstance(value, list | tuple) else [value])]
    is_plain = all(re.fullmatch(r"[\w.-]*", text, re.ASCII) for text in texts if isinstance(text, str))
    if is_plain and len(full) <= _LONGEST and all(re.fullmatch(r"[\w.+=,-]*", part, re.ASCII) for part in parts):
        return full
    kept = re.sub(r"[^\w.+=,-]", "_", full, flags=re.ASCII)[: _LONGEST - 20]
    # The values themselves, as the shown text of two may be the same.
    return f"{kept},{hashlib.sha256(json.dumps([*parts, dict(values), seed]).encode()).hexdigest()[:12]}"


def short_names(names: Sequence[str]) -> dict[str, str]:
    """The shortest ends of dotted names that still tell them apart.

    Example:
        >>> list(short_names(["estimator.eta", "semantics.mlp", "syntax.mlp"]).values())
        ['eta', 'semantics.mlp', 'syntax.mlp']
    """

    def ends(name: str) -> list[str]:
        words = name.split(".")
        return [".".join(words[k:]) for k in range(len(words))]

    uses = [end for name in names for end in ends(name)]
    return {name: next((end for end in reversed(ends(name)) if uses.count(end) == 1), name) for name in names}


def show_value(value: Any) -> str:
    """A value as a reader would write it.

    Example:
        >>> show_value(True), show_value(1.0), show_value(["a.conllu", "b.conllu"])
        ('true', '1', 'a.conllu+b.conllu')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
