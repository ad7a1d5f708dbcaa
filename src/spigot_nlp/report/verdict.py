"""The verdict of a report: which system is best, by how much, and whether that is beyond chance."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spigot_nlp.annotations import Measure
from spigot_nlp.evaluation import Counts, SeedComparison, SeedInterval, seed_bootstrap, seed_interval
from spigot_nlp.report.dot_chart import Dot, dot_chart
from spigot_nlp.report.material import Contender, Experiment, Run
from spigot_nlp.report.page import Picture, Section
from spigot_nlp.report.results import SAMPLES, kept_counts, place, score

_DRAWS = 10_000  # as `spigot compare` and studies draw, so that all say the same


@dataclass(frozen=True)
class Standing:
    """Where a system stands on a set of sentences.

    Attributes:
        contender: The system.
        values: What each of its runs scored, between 0 and 1.

    Example:
        >>> Standing(Contender("spigot", (), 0), (0.5, 0.75)).mean
        0.625
    """

    contender: Contender
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over its runs."""
        return statistics.fmean(self.values)


def verdict(experiment: Experiment, name: str = "") -> Section | None:
    """What an experiment showed, in a heading, a sentence or two, and a picture for each test set.

    Args:
        experiment: The systems.
        name: What to put before the heading where a page has several experiments.

    Returns:
        The opening of a report; `None` if nothing was scored.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> run = Run(Path("runs/dm"), make_config({}), {"id": {"graphs": {"labelled": {"f1": 0.75}}}})
        >>> verdict(Experiment("dm", (Contender("spigot", (run,), 0),), None)).title
        'spigot scored LF 75.00 in domain.'
    """
    parts = [part for part in experiment.parts if part != "dev"] or experiment.parts
    if not parts:
        return None
    measure = experiment.end.annotation.measures[0]
    ranked = _ranked(experiment, parts[0], measure)
    said = (
        _alone(ranked[0], parts[0], measure) if len(ranked) == 1 else _compared(experiment, ranked, parts[0], measure)
    )
    return Section(
        f"{name}: {said[0]}" if name else said[0],
        said[1:],
        [_picture(_ranked(experiment, part, measure), part, measure) for part in parts],
        notes=list(_caveats(experiment)),
    )


def _ranked(experiment: Experiment, part: str, measure: Measure) -> list[Standing]:
    """The systems that were judged by a set of sentences, the best first."""
    found = [
        Standing(contender, tuple(score(run, part, run.targets[0], measure) for run in _judged(contender, part)))
        for contender in experiment.contenders
    ]
    return sorted((standing for standing in found if standing.values), key=lambda standing: -standing.mean)


def _alone(only: Standing, part: str, measure: Measure) -> list[str]:
    headline = f"{only.contender.name} scored {measure.name} {100 * only.mean:.2f} {place(part)}."
    around = _interval(only.contender, part, measure, _DRAWS)
    if around is None:
        return [headline, _unknown(only.contender.first, part)]
    evidence = (
        f"The 95\u00a0% interval, by the bootstrap over {_drawn((around.seeds,), around.sentences)}, is "
        f"{100 * around.low:.1f} to {100 * around.high:.1f}."
    )
    return [headline, f"{evidence} There is nothing to compare it with: name further runs to see which is better."]


def _compared(experiment: Experiment, ranked: Sequence[Standing], part: str, measure: Measure) -> list[str]:
    best, second = ranked[:2]
    value, other = (f"{100 * standing.mean:.2f}" for standing in (best, second))
    names, where = (best.contender.name, second.contender.name), place(part)
    if value == other:
        level = [standing.contender.name for standing in ranked if f"{100 * standing.mean:.2f}" == value]
        return [f"{_listed(level)} are level {where}: {measure.name} {value}."]
    found = _difference(best, second, part, measure)
    start = f"{names[0]} is best {where}: {measure.name} {value}"
    if found is None:
        lead = f"{100 * (best.mean - second.mean):.2f}"
        missing = (run for each in (best, second) for run in _judged(each.contender, part))
        run = next((run for run in missing if _counts(run, part, measure) is None), None)
        why = "They were not judged by the same sentences." if run is None else _unknown(run, part)
        return [f"{start}, {lead} above {names[1]}; whether by chance is not known.", why]
    lead = f"{100 * found.difference:.2f}"
    if found.low > 0:
        headline = f"{start}, {lead} above {names[1]}, which is beyond chance."
    else:
        headline = f"{start}, but its lead of {lead} over {names[1]} may be chance."
    evidence = (
        f"Paired bootstrap over {_drawn(found.seeds, found.sentences)}: {_against(best, second, found, measure)}; "
        f"the interval {'leaves out' if found.low > 0 else 'includes'} 0."
    )
    return [headline, " ".join([evidence, *_baseline(experiment, ranked, part, measure)])]


def _baseline(experiment: Experiment, ranked: Sequence[Standing], part: str, measure: Measure) -> Iterator[str]:
    """How the best stands to the system that the others are compared with, if that is neither of the first two."""
    base = next((standing for standing in ranked[2:] if standing.contender == experiment.baseline), None)
    found = None if base is None else _difference(ranked[0], base, part, measure)
    if base is not None and found is not None:
        sure = "beyond chance" if found.low > 0 else "may be chance"
        yield f"Against the baseline, {_against(ranked[0], base, found, measure)}: {sure}."


def _against(one: Standing, other: Standing, found: SeedComparison, measure: Measure) -> str:
    low, high = (f"{100 * value:+.2f}".replace("-", "−") for value in (found.low, found.high))
    return (
        f"{one.contender.name} against {other.contender.name}, {measure.name} difference "
        f"{100 * found.difference:+.2f}, 95\u00a0% interval {low} to {high}, p {found.p:.4f}"
    ).replace(" -", " −")


def _difference(one: Standing, other: Standing, part: str, measure: Measure) -> SeedComparison | None:
    """How much better one system is, over all seeds and the sentences that both were judged by."""
    sides = [_by_seed(standing.contender, part, measure) for standing in (one, other)]
    if not sides[0] or not sides[1]:
        return None
    try:
        return seed_bootstrap(sides[0], sides[1], samples=_DRAWS)
    except ValueError:  # judged by other sentences
        return None


def _interval(contender: Contender, part: str, measure: Measure, samples: int) -> SeedInterval | None:
    """How sure the mean of a system is; `None` if any run did not keep its sentences."""
    counts = _by_seed(contender, part, measure)
    try:
        return seed_interval(counts, samples=samples) if counts else None
    except ValueError:  # its runs were judged by different sentences
        return None


def _by_seed(contender: Contender, part: str, measure: Measure) -> dict[int, Counts]:
    """The counts of each run of a system; none if any did not keep its sentences."""
    found = {run.config.seed: _counts(run, part, measure) for run in _judged(contender, part)}
    known = {seed: counts for seed, counts in found.items() if counts is not None}
    return known if len(known) == len(found) else {}


def _judged(contender: Contender, part: str) -> list[Run]:
    return [run for run in contender.runs if run.targets[0].key in run.scores.get(part, {})]


def _counts(run: Run, part: str, measure: Measure) -> Counts | None:
    return kept_counts(run, part, run.targets[0], measure, score(run, part, run.targets[0], measure))


def _drawn(seeds: Sequence[int], sentences: int) -> str:
    """What was drawn, in words."""
    several = f"{' and '.join(str(number) for number in dict.fromkeys(seeds))} seeds and " if max(seeds) > 1 else ""
    return f"{several}{sentences:,} sentences"


def _picture(ranked: Sequence[Standing], part: str, measure: Measure) -> Picture:
    dots = []
    for standing in sorted(ranked, key=lambda standing: standing.contender.series):  # as in the tables
        around = _interval(standing.contender, part, measure, SAMPLES)
        dots.append(
            Dot(
                standing.contender.name,
                100 * standing.mean,
                None if around is None else 100 * around.low,
                None if around is None else 100 * around.high,
                standing.contender.series,
                tuple(100 * value for value in standing.values),
            )
        )
    title = f"{measure.name} {place(part)}"
    judged = _sentences(ranked[0], part)
    known = any(dot.low is not None for dot in dots)
    several = any(len(dot.each) > 1 for dot in dots)
    lines = "; lines are 95 % intervals" if known else ""
    drawn = f"seeds and {judged}" if several else judged
    caption = f"{title}, {judged}." if not known else f"Lines: 95 % bootstrap intervals over {drawn}."
    caption += " Rings: seeds; the dot is their mean." if several else ""
    return Picture(
        dot_chart(dots, title=f"{title[0].upper()}{title[1:]}", x_label=f"{measure.name}, per cent{lines}"), caption
    )


def _caveats(experiment: Experiment) -> Iterator[str]:
    runs = [len(contender.runs) for contender in experiment.contenders]
    if max(runs) == 1:
        several = "Each system was trained once; another seed moves its numbers too."
        yield several if len(runs) > 1 else "It was trained once; another seed moves its numbers too."
    elif len(set(runs)) == 1:
        yield f"Means of {runs[0]} seeds. Intervals and p account for the choice of seeds and of sentences."
    else:
        yield (
            "Means over seeds, of which some systems have more than others. Intervals and p account for the choice of "
            "seeds and of sentences; systems with other seeds are not paired."
        )


def _unknown(run: Run, part: str) -> str:
    return (
        f"How sure that is cannot be said: {run.path} does not keep {run.gold_path(part).name} or the predictions that "
        "belong to it."
    )


def _sentences(standing: Standing, part: str) -> str:
    gold = standing.contender.first.gold(part)
    return f"{len(gold):,} sentences" if gold else "sentences"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
