"""In what two configurations differ, so that a folder never mixes the trainings of two experiments."""

from collections.abc import Collection
from typing import Any

from spigot.config import Config


def difference(then: Config, now: Config, *, but: Collection[str] = ()) -> tuple[str, Any, Any] | None:
    """The first setting that differs, with both values.

    Args:
        then: A configuration.
        now: Another.
        but: Settings that do not matter, by dotted name.

    Example:
        >>> from spigot.config import make_config
        >>> then, now = make_config({}), make_config({"name": "mine"}, {"estimator.eta": 0.5})
        >>> difference(then, now, but=["name"])
        ('estimator.eta', 1.0, 0.5)
        >>> difference(now, now) is None
        True
    """
    before, after = then.by_name(), now.by_name()
    for name in before | after:
        if name not in but and before.get(name) != after.get(name):
            return name, before.get(name), after.get(name)
    return None
