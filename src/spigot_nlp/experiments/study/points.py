"""Where the systems of a study are compared."""

import itertools

from spigot_nlp.experiments.study.file import Point, Study
from spigot_nlp.experiments.study.trials import short_names, show_value
from spigot_nlp.experiments.study.values import Range


def points_of(study: Study) -> dict[str, Point]:
    """The points of a study by name: those that it lists, or every combination of what varies.

    Raises:
        ValueError: If two combinations would have one name.

    Example:
        >>> from spigot_nlp.experiments.study.file import make_study
        >>> points = points_of(make_study({"config": "synthetic", "vary": {"syntax.mlp": [32, 64]}}))
        >>> [(name, point.x) for name, point in points.items()]
        [('mlp=32', 32.0), ('mlp=64', 64.0)]
    """
    found: dict[str, Point] = {}
    for name, point in study.points.items():
        found[name] = point if point.x is not None else point.model_copy(update={"x": _number(name)})
    if not study.vary:
        return found
    labels = short_names(list(study.vary))
    lists = [values for values in study.vary.values() if not isinstance(values, Range)]
    for picked in itertools.product(*lists):
        settings = dict(zip(study.vary, picked, strict=True))
        name = ",".join(f"{labels[setting]}={show_value(value)}" for setting, value in settings.items())
        if name in found:
            raise ValueError(f"vary makes the point {name} twice; give values that look different.")
        alone = picked[0] if len(picked) == 1 and isinstance(picked[0], int | float) else None
        found[name] = Point(settings=settings, x=None if isinstance(alone, bool) else alone)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        return None
