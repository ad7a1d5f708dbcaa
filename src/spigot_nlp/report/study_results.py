"""From the folders of a study's runs to its results: what everyone scored, who is better, and what it took."""

import gc
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from spigot_nlp.annotations import Measure
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation import Counts, Drawn, draw_scores, holm, seed_bootstrap, seed_interval
from spigot_nlp.report.material import Run, read_run
from spigot_nlp.report.results import checked_counts, own_judge, printed, score, stages_of
from spigot_nlp.report.study import Arm, Cost, Difference, Point, Results, Scores, Study
from spigot_nlp.training.judges import Judge

_SAMPLES = 10_000  # as `spigot compare` draws


def study_results(
    study: Study,
    *,
    tests: bool = False,
    sure: bool = True,
    told: Callable[[str], None] = lambda what: None,
) -> Results:
    """Read the runs of a study, and compare its systems.

    Nothing is read but the run folders, and nothing is written. Intervals and p are over seeds and sentences, from the
    predictions and the gold data that a run keeps; where these are missing they are over seeds alone.

    Args:
        study: The study.
        tests: Whether to look at test sets, if the runs have been scored on them; otherwise development data only.
        sure: Whether to find out how sure the numbers are, which takes most of the time: about a tenth of a second for
            every thousand predicted graphs. Without it there are means and standard deviations, for a table that is
            drawn anew every now and then.
        told: Called with a few words before each piece of work.

    Returns:
        All numbers; `spigot_nlp.report.study_tables` and `spigot_nlp.report.study_page` show them.

    Raises:
        FileNotFoundError: If a folder holds no finished run.
        ValueError: If no run is finished, or none has a score of these sentences.

    Example:
        >>> study_results(Study("nothing yet", [Arm("spigot")]))
        Traceback (most recent call last):
        ValueError: no run of the study nothing yet has finished; there is nothing to report yet.
    """
    told("reading scores")
    runs = [{seed: read_run(path) for seed, path in sorted(arm.runs.items())} for arm in study.arms]
    every = [run for some in runs for run in some.values()]
    if not every:
        raise ValueError(f"no run of the study {study.name} has finished; there is nothing to report yet.")
    parts = [part for part in dict.fromkeys(part for run in every for part in run.parts) if tests or part == "dev"]
    if not parts:
        raise ValueError(
            f"the runs of the study {study.name} have no scores of development data; ask for those of test sets."
        )
    compared = [part for part in parts if part != "dev"] or parts
    judges = stages_of(every)
    end = judges[0]
    scores: list[Scores] = []
    differences: list[Difference] = []
    golds: dict[bytes, list[Sentence]] = {}
    for judge in judges:
        for part in parts:
            plain = {measure.name: _plain_scores(study.arms, runs, judge, part, measure) for measure in printed(judge)}
            if sure and judge is end and part in compared:
                told(f"counting {judge.annotation.nouns} of {part}")
                drawn = _drawn(judge, part, runs, plain, golds)
                told(f"comparing systems on {part}")
                plain = {
                    name: [_with_interval(each, drawn[name][k]) for k, each in enumerate(column)]
                    for name, column in plain.items()
                }
                first = judge.annotation.measures[0].name
                differences += _differences(study, plain[first], drawn[first])
            scores += [each for column in plain.values() for each in column if each.values]
    return Results(
        study,
        parts,
        compared,
        {judge.title: [measure.name for measure in printed(judge)] for judge in judges},
        end.annotation.measures[0].name,
        {judge.title: _about(judge) for judge in judges},
        scores,
        differences,
        [_cost(arm, list(some.values())) for arm, some in zip(study.arms, runs, strict=True)],
    )


def _plain_scores(
    arms: Sequence[Arm], runs: Sequence[Mapping[int, Run]], judge: Judge, part: str, measure: Measure
) -> list[Scores]:
    """What each arm scored, as `scores.json` has it."""
    name = f"{part}{judge.ending}"
    return [
        Scores(
            arm,
            judge.title,
            part,
            measure.name,
            {
                seed: score(run, part, judge, measure)
                for seed, run in some.items()
                if name in run.scores and own_judge(run, judge)
            },
        )
        for arm, some in zip(arms, runs, strict=True)
    ]


def _drawn(
    judge: Judge,
    part: str,
    runs: Sequence[Mapping[int, Run]],
    plain: Mapping[str, Sequence[Scores]],
    golds: dict[bytes, list[Sentence]],
) -> dict[str, list[tuple[int, Drawn] | None]]:
    """The scores of each arm on resampled sentences, by measure, with a number that is the same for the same sentences.

    `None` stands for arms of which some run did not keep its sentences.
    """
    names = [measure.name for measure in judge.annotation.measures]
    found: dict[str, list[tuple[int, Drawn] | None]] = {name: [None] * len(runs) for name in names}
    groups: dict[bytes, list[tuple[int, dict[int, dict[str, Counts]]]]] = {}
    with _uncollected():
        for k, some in enumerate(runs):
            known = {
                seed: _counts(run, part, judge, {name: plain[name][k].values[seed] for name in names}, golds)
                for seed, run in some.items()
                if seed in plain[names[0]][k].values
            }
            wanted = {counts[names[0]].gold.tobytes() if counts else b"" for counts in known.values()}
            if len(wanted) == 1 and b"" not in wanted:
                groups.setdefault(wanted.pop(), []).append((k, known))
    for number, group in enumerate(groups.values()):
        systems = [{seed: counts[name] for seed, counts in known.items()} for name in names for _, known in group]
        drawn = iter(draw_scores(systems, samples=_SAMPLES))
        for name in names:
            for k, _ in group:
                found[name][k] = number, next(drawn)
    return found


def _counts(
    run: Run, part: str, judge: Judge, values: Mapping[str, float], golds: dict[bytes, list[Sentence]]
) -> dict[str, Counts]:
    """The counts behind the scores of a run by measure; none if it did not keep what they were computed from.

    Runs of a study have the same gold data, which are read once; predictions are forgotten when they are counted.
    """
    mine, path = own_judge(run, judge), run.gold_path(part)
    predictions = run.path / f"predictions.{part}.{mine.file}" if mine is not None and mine.file else None
    if mine is None or predictions is None or not path.exists() or not predictions.exists():
        return {}
    digest = hashlib.sha256(path.read_bytes()).digest()
    if digest not in golds:
        golds[digest] = list(read(path))
    predicted = list(map(mine.annotation.reread, read(predictions)))
    found: dict[str, Counts] = {}
    for measure in judge.annotation.measures:
        counts = checked_counts(mine, measure, golds[digest], predicted, values[measure.name])
        if counts is None:
            return {}
        found[measure.name] = counts
    return found


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for garbage: millions of small objects come and go, none of them in circles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _with_interval(scores: Scores, drawn: tuple[int, Drawn] | None) -> Scores:
    if drawn is not None:
        return replace(scores, interval=seed_interval(drawn[1]))
    if len(scores.values) > 1:
        return replace(scores, interval=seed_interval(Drawn.given(scores.values, samples=_SAMPLES)))
    return scores


def _differences(
    study: Study, scores: Sequence[Scores], drawn: Sequence[tuple[int, Drawn] | None]
) -> Iterator[Difference]:
    """The comparisons of a set of sentences, point by point; those of a point are corrected together."""
    for point in study.points:
        found: list[Difference] = []
        for pair in study.pairs:
            places = [_place(scores, system, point) for system in pair]
            if places[0] is not None and places[1] is not None:
                found.append(_difference(point, scores, drawn, places[0], places[1]))
        known = [(k, each.found) for k, each in enumerate(found) if each.found is not None]
        corrected = dict(zip((k for k, _ in known), holm([each.p for _, each in known]), strict=True))
        yield from (replace(each, corrected=corrected.get(k)) for k, each in enumerate(found))


def _place(scores: Sequence[Scores], system: str, point: Point) -> int | None:
    """Where a system at a point stands among the arms, if it was scored."""
    for k, each in enumerate(scores):
        if each.arm.system == system and dict(each.arm.point) == dict(point) and each.values:
            return k
    return None


def _difference(
    point: Point, scores: Sequence[Scores], drawn: Sequence[tuple[int, Drawn] | None], one: int, other: int
) -> Difference:
    first, second = scores[one], scores[other]
    sides = drawn[one], drawn[other]
    found = None
    if sides[0] is not None and sides[1] is not None and sides[0][0] == sides[1][0]:
        found = seed_bootstrap(sides[0][1], sides[1][1])
    elif max(len(first.values), len(second.values)) > 1:
        found = seed_bootstrap(*(Drawn.given(each.values, samples=_SAMPLES) for each in (first, second)))
    names = first.arm.system, second.arm.system
    return Difference(*names, point, first.part, first.measure, first.mean - second.mean, found)


def _about(judge: Judge) -> str:
    return " ".join(said for said in dict.fromkeys(m.about for m in judge.annotation.measures) if said)


def _cost(arm: Arm, runs: Sequence[Run]) -> Cost:
    kinds = ([run.processor for run in runs], [run.seconds for run in runs])
    processor, wall = ([value for value in some if value is not None] for some in kinds)
    return Cost(arm, processor, wall)
