"""What a study found: finished runs of several systems, seeds and settings, as numbers that tables are made of."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spigot_nlp.evaluation import SeedComparison, SeedInterval

Value = str | int | float | bool | None
"""What a varied setting may be."""

Point = Mapping[str, Value]
"""The settings of one place of a study, by their dotted names."""


@dataclass(frozen=True)
class Arm:
    """One system at one point: runs that differ in nothing but their seed.

    Attributes:
        system: What the system is called in tables.
        point: The settings that vary between points, with their values here; empty if none do.
        runs: The folders of its finished runs, by seed.
        complete: Whether no further runs are to come.

    Example:
        >>> Arm("spigot", {"data.graphs.limit": 250}, {0: Path("runs/spigot-250-0")}).complete
        True
    """

    system: str
    point: Point = field(default_factory=dict)
    runs: Mapping[int, Path] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True)
class Study:
    """What there is to report on.

    Attributes:
        name: What it is called.
        arms: Its systems at its points. Points stand in the tables in the order in which they first come here.
        systems: The systems in the order of the tables; by default that in which they first come among the arms.
        comparisons: Pairs of a system and the one that it is compared with; by default each with `against`.
        against: The baseline; by default the first system.
        about: What it is about, in a sentence or two.
        places: Where values that are no numbers stand on the axis of a setting, by setting and by the value as text:
            `{"data.graphs.limit": {"all": 8000}}`.
        names: What settings are called on an axis, where their own names do not say.

    Example:
        >>> study = Study("curve", [Arm(name, {"limit": n}) for n in (250, 500) for name in ("pipeline", "spigot")])
        >>> study.order, study.points, study.pairs
        (['pipeline', 'spigot'], [{'limit': 250}, {'limit': 500}], [('spigot', 'pipeline')])
    """

    name: str
    arms: Sequence[Arm]
    systems: Sequence[str] = ()
    comparisons: Sequence[tuple[str, str]] | None = None
    against: str | None = None
    about: str = ""
    places: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {arm.system for arm in self.arms}
        if not known:
            raise ValueError(f"the study {self.name} has no arms; give one or more.")
        asked = [*self.systems, *(name for pair in self.comparisons or () for name in pair)]
        for name in [*asked, *([] if self.against is None else [self.against])]:
            if name not in known:
                raise ValueError(f"the study {self.name} has no system {name!r}; it has {', '.join(sorted(known))}.")
        seen: list[tuple[str, Point]] = []
        for arm in self.arms:
            if (arm.system, dict(arm.point)) in seen:
                where = f" at {point_name(arm.point)}" if arm.point else ""
                raise ValueError(f"the study {self.name} has {arm.system}{where} twice; give all its runs in one arm.")
            seen.append((arm.system, dict(arm.point)))

    @property
    def order(self) -> list[str]:
        """The systems as tables have them."""
        return list(dict.fromkeys([*self.systems, *(arm.system for arm in self.arms)]))

    @property
    def points(self) -> list[Point]:
        """The points, each once."""
        found: list[Point] = []
        for arm in self.arms:
            if dict(arm.point) not in found:
                found.append(dict(arm.point))
        return found

    @property
    def baseline(self) -> str:
        """The system that the others are compared with."""
        return self.order[0] if self.against is None else self.against

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Who is compared with whom."""
        if self.comparisons is not None:
            return list(self.comparisons)
        return [(system, self.baseline) for system in self.order if system != self.baseline]

    def arm(self, system: str, point: Point) -> Arm | None:
        """A system at a point; `None` if it is not there."""
        found = (arm for arm in self.arms if arm.system == system and dict(arm.point) == dict(point))
        return next(found, None)


@dataclass(frozen=True)
class Scores:
    """What the runs of an arm scored.

    Attributes:
        arm: The arm.
        stage: Whose score it is: what its answers are called in print.
        part: The set of sentences.
        measure: The name of the score.
        values: The score of each seed, between 0 and 1; empty if none is known.
        interval: How sure the mean is; `None` if nothing is known about that, or it was not asked for.

    Example:
        >>> scores = Scores(Arm("spigot"), "Graphs", "dev", "LF", {0: 0.75, 1: 0.7})
        >>> round(scores.mean, 3), round(scores.deviation, 4)
        (0.725, 0.0354)
    """

    arm: Arm
    stage: str
    part: str
    measure: str
    values: Mapping[int, float]
    interval: SeedInterval | None = None

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.values.values())

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; `None` if there is only one."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Difference:
    """How much better a system is than another, at one point, on one set of sentences.

    Attributes:
        system: The one.
        against: The other.
        point: Where.
        part: The set of sentences.
        measure: The name of the score.
        value: The difference of the means.
        found: How sure it is; `None` if nothing is known about that.
        corrected: Its p, corrected for all that stand in one table: those of the same point and set.

    Example:
        >>> Difference("spigot", "ste", {}, "dev", "LF", 0.01).corrected is None
        True
    """

    system: str
    against: str
    point: Point
    part: str
    measure: str
    value: float
    found: SeedComparison | None = None
    corrected: float | None = None


@dataclass(frozen=True)
class Cost:
    """What the trainings of an arm took.

    Attributes:
        arm: The arm.
        processor: Seconds of processor time of each run, where that is known.
        wall: Seconds that each took, where that is known.

    Example:
        >>> Cost(Arm("spigot"), (120.0, 130.0), (70.0, 80.0)).mean("processor")
        125.0
    """

    arm: Arm
    processor: Sequence[float]
    wall: Sequence[float]

    def mean(self, kind: str) -> float | None:
        """The mean of a kind; `None` if no run knows it."""
        known = self.processor if kind == "processor" else self.wall
        return statistics.fmean(known) if known else None


@dataclass(frozen=True)
class Results:
    """What a study found.

    Attributes:
        study: The study.
        parts: The sets of sentences that are shown.
        compared: Those of them that differences and pictures are of.
        stages: What was judged, the last stage first: what its answers are called, and its measures in table order.
        measure: What the systems are compared by: the first measure of the last stage.
        about: What the measures are, in words.
        scores: The scores of every arm.
        differences: The comparisons.
        costs: What the trainings took.

    Example:
        >>> study = Study("nothing yet", [Arm("spigot")])
        >>> results = Results(study, ["dev"], ["dev"], {"Graphs": ["UF", "LF"]}, "LF", {}, [], [], [])
        >>> results.score("spigot", {}, "dev") is None
        True
    """

    study: Study
    parts: Sequence[str]
    compared: Sequence[str]
    stages: Mapping[str, Sequence[str]]
    measure: str
    about: Mapping[str, str]
    scores: Sequence[Scores]
    differences: Sequence[Difference]
    costs: Sequence[Cost]

    def score(
        self, system: str, point: Point, part: str, measure: str | None = None, stage: str | None = None
    ) -> Scores | None:
        """The scores of a system somewhere; `None` if it has none there.

        Args:
            system: The system.
            point: Where.
            part: The set of sentences.
            measure: The score; by default the one that systems are compared by.
            stage: Whose; by default the last stage's.
        """
        wanted = (system, dict(point), part, measure or self.measure, stage or next(iter(self.stages)))
        for scores in self.scores:
            if (scores.arm.system, dict(scores.arm.point), scores.part, scores.measure, scores.stage) == wanted:
                return scores
        return None


def point_name(point: Point) -> str:
    """A point in words: each setting by the last word of its name.

    Example:
        >>> point_name({"data.graphs.limit": 1000, "training.share": 0.5})
        'limit 1,000, share 0.5'
    """
    return ", ".join(f"{key.rpartition('.')[2]} {value_text(value)}" for key, value in point.items())


def value_text(value: Value) -> str:
    """A value of a setting as tables show it.

    Example:
        >>> value_text(10000), value_text(0.001), value_text(True), value_text(None)
        ('10,000', '0.001', 'yes', 'none')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if value is None else str(value)
