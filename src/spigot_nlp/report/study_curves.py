"""Which settings of a study make curves: those that are numbers, with three values or more."""

from collections.abc import Sequence
from dataclasses import dataclass

from spigot_nlp.report.study import Point, Study, Value, point_name

_LEAST = 3  # values that make a curve


@dataclass(frozen=True)
class StudyCurve:
    """The points of a study along one setting, where the others stay as they are.

    Attributes:
        setting: The dotted name of the setting.
        points: The points, by their place on the axis.
        places: Where each stands.
        rest: The other settings, in words; empty if there are none.
        called: What the axis is called; the last word of the setting if empty.

    Example:
        >>> StudyCurve("data.graphs.limit", [], [], "").name
        'limit'
    """

    setting: str
    points: Sequence[Point]
    places: Sequence[float]
    rest: str
    called: str = ""

    @property
    def name(self) -> str:
        """The setting in a word or two."""
        return self.called or self.setting.rpartition(".")[2]

    @property
    def is_wide(self) -> bool:
        """Whether the places are spread so widely that their logarithms are better drawn."""
        return self.places[0] > 0 and self.places[-1] / self.places[0] >= 10


def curves_of(study: Study) -> list[StudyCurve]:
    """The curves of a study.

    Args:
        study: The study; its `places` say where values that are no numbers stand.

    Example:
        >>> from spigot_nlp.report.study import Arm
        >>> arms = [Arm("spigot", {"data.limit": size}) for size in (500, "all", 250)]
        >>> curve, = curves_of(Study("curve", arms, places={"data.limit": {"all": 2000}}))
        >>> curve.places, curve.name, curve.is_wide
        ([250.0, 500.0, 2000.0], 'limit', False)
        >>> curves_of(Study("curve", arms))
        []
    """
    settings = dict.fromkeys(key for point in study.points for key in point)
    found = []
    for setting in settings:
        groups: dict[str, list[tuple[float, Point]]] = {}
        for point in study.points:
            if setting not in point:
                continue
            place = _place(study, setting, point[setting])
            if place is None:
                groups = {}
                break
            rest = point_name({key: value for key, value in point.items() if key != setting})
            groups.setdefault(rest, []).append((place, point))
        for rest, group in groups.items():
            if len(group) >= _LEAST:
                group.sort(key=lambda pair: pair[0])
                places, points = zip(*group, strict=True)
                found.append(StudyCurve(setting, list(points), list(places), rest, study.names.get(setting, "")))
    return found


def _place(study: Study, setting: str, value: Value) -> float | None:
    known = study.places.get(setting, {})
    if str(value) in known:
        return float(known[str(value)])
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
