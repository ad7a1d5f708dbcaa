"""What came out: one outcome for each contender on each task, and the experiment that makes them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import TypeAlias

import spigot
from research.latent.contenders import Contender, contenders
from research.latent.data import make_task
from research.latent.gradients import Comparison, compare
from research.latent.settings import Settings
from research.latent.tasks import AbstractTask
from research.latent.training import Measurement, choose, train


@dataclass(frozen=True)
class Outcome:
    """A contender on a task.

    Attributes:
        task: Name of the task.
        contender: Name of the contender.
        aside: Whether it is a bound or a floor.
        option: The value of its main option, as chosen; empty if it has none.
        refusal: Why it could not take part, or `None`. If it could not, there is nothing below.
        curve: What it could do in the course of training, on the test points.
        start: Its gradient beside the exact one at the initial parameters; `None` if the exact one is not known.
        near: The same halfway to the truth; `None` also where the truth is not a matter of parameters.
        seconds: What the layer took for a step, forward and back.
    """

    task: str
    contender: str
    aside: bool
    option: str = ""
    refusal: str | None = None
    curve: Sequence[Measurement] = ()
    start: Comparison | None = None
    near: Comparison | None = None
    seconds: float = 0.0


def run(settings: Settings, entrants: Iterable[Contender] | None = None) -> Iterator[Outcome]:
    """The experiment: every contender on every task.

    Args:
        settings: What to run.
        entrants: Who takes part; everyone if omitted.

    Example:
        >>> from research.latent.contenders import contender_of
        >>> tiny = Settings(tasks=("paths",), seeds=2, steps=2, tuning_seeds=0, train=40, test=20)
        >>> [(o.contender, o.refusal is None) for o in run(tiny, map(contender_of, ("spigot", "attention")))]
        [('Spigot', True), ('StructuredAttention', False)]
    """
    entrants = contenders() if entrants is None else list(entrants)
    for name in settings.tasks:
        task = make_task(name, settings, settings.reported())
        tuning = make_task(name, settings, settings.tuning()) if settings.tuning_seeds else None
        for contender in entrants:
            yield _outcome(task, tuning, contender, settings)


def _outcome(task: AbstractTask, tuning: AbstractTask | None, contender: Contender, settings: Settings) -> Outcome:
    refusal = contender.refusal(task)
    if refusal is not None:
        return Outcome(task.name, contender.name, contender.aside, refusal=refusal)
    method = contender.usual if tuning is None else choose(tuning, contender, settings)
    training = train(task, method, settings)
    batch = task.train[: settings.batch]
    places = [
        None if parameters is None or task.members is None else compare(task, method, parameters, batch, settings.draws)
        for parameters in (task.start, task.near)
    ]
    return Outcome(
        task.name,
        contender.name,
        contender.aside,
        method.option,
        curve=training.curve,
        start=places[0],
        near=places[1],
        seconds=training.seconds,
    )


Spread: TypeAlias = tuple[float, float]
"""Mean and standard deviation over seeds."""


@dataclass(frozen=True)
class Row:
    """A contender's final standing on a task.

    Attributes:
        task: Name of the task.
        contender: Name of the contender.
        aside: Whether it is a bound or a floor.
        option: The value of its main option, as chosen.
        refusal: Why it could not take part; then there are no numbers.
        quality: Of the final answers.
        found: The share of the parts of the hidden structures that are found.
        cosine: Between its mean gradient and the exact one, at the initial parameters.
        cosine_near: The same halfway to the truth.
        noise: The standard deviation of its gradient at the initial parameters, in lengths of the mean.
        milliseconds: What the layer took for a step.
        ratio: How many times what straight-through took, in the same run.
    """

    task: str
    contender: str
    aside: bool
    option: str = ""
    refusal: str | None = None
    quality: Spread | None = None
    found: Spread | None = None
    cosine: Spread | None = None
    cosine_near: Spread | None = None
    noise: Spread | None = None
    milliseconds: float | None = None
    ratio: float | None = None


def summarise(outcomes: Iterable[Outcome]) -> list[Row]:
    """Means and spreads over seeds, in the order of the outcomes.

    Example:
        >>> last = Measurement(9, quality=(1.0, 0.5), found=(0.5, 0.5), loss=(0.0, 0.0))
        >>> summarise([Outcome("trees", "Spigot", False, curve=[last])])[0].found
        (0.5, 0.0)
    """
    outcomes = list(outcomes)
    usual = {o.task: o.seconds for o in outcomes if o.contender == spigot.StraightThrough.__name__}
    rows = []
    for o in outcomes:
        if not o.curve:
            rows.append(Row(o.task, o.contender, o.aside, o.option, o.refusal))
            continue
        start, near, timed = o.start, o.near, o.seconds > 0
        moved = start is not None and any(start.cosine)  # without a gradient there is no direction to speak of
        rows.append(
            Row(
                o.task,
                o.contender,
                o.aside,
                o.option,
                quality=mean_and_spread(o.curve[-1].quality),
                found=mean_and_spread(o.curve[-1].found),
                cosine=mean_and_spread(start.cosine) if start is not None and moved else None,
                cosine_near=mean_and_spread(near.cosine) if near is not None and moved else None,
                noise=mean_and_spread(start.noise) if start is not None and moved else None,
                milliseconds=1000 * o.seconds if timed else None,
                ratio=o.seconds / usual[o.task] if timed and usual.get(o.task) else None,
            )
        )
    return rows


def plain_results(settings: Settings, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Settings, final rows and learning curves as plain values, ready for `json.dumps`.

    Example:
        >>> sorted(plain_results(Settings(), []))
        ['curves', 'rows', 'settings']
    """
    curves = [{"task": o.task, "contender": o.contender, **asdict(measured)} for o in outcomes for measured in o.curve]
    return {"settings": asdict(settings), "rows": [asdict(row) for row in summarise(outcomes)], "curves": curves}


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation; a single value has none, shown as 0.

    Example:
        >>> mean_and_spread([0.5])
        (0.5, 0.0)
    """
    return fmean(values), stdev(values) if len(values) > 1 else 0.0
