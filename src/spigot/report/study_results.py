"""From the folders of a study's runs to its results: what everyone scored, who is better, and what it took."""

import gc
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

from spigot.annotations import Measure
from spigot.data.formats import read
from spigot.data.sentence import Sentence
from spigot.evaluation import Counts, Drawn, draw_scores, holm, seed_bootstrap, seed_interval
from spigot.report.material import Run, read_run
from spigot.report.results import checked_counts, own_judge, printed, score, stages_of
from spigot.report.study import Arm, Cost, Difference, Point, Results, Scores, Study
from spigot.training.judges import Judge

_SAMPLES = 10_000  # as `spigot compare` draws


def study_results(study: Study, *, tests: bool = False, told: Callable[[str], None] = lambda what: None) -> Results:
    """Read the runs of a study, and compare its systems.

    Nothing is read but the run folders, and nothing is written. Intervals and p are over seeds and sentences, from the
    predictions and the gold data that a run keeps; where these are missing they are over seeds alone.

    Args:
        study: The study.
        tests: Whether to look at test sets, if the runs have been scored on them; otherwise development data only.
        told: Called with a few words before each piece of work.

    Returns:
        All numbers; `spigot.report.study_tables` and `spigot.report.study_page` show them.

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
            if judge is end and part in compared:
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
