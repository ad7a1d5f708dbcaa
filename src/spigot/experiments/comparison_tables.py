"""What came of a comparison: the paper's Table 1 and Table 3, from run folders alone."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

from spigot.data.formats import read
from spigot.data.merge import merge
from spigot.data.sentence import Sentence
from spigot.evaluation.analysis import Analysis, analyse
from spigot.evaluation.counts import Counts
from spigot.evaluation.metrics import graph_counts, tree_counts
from spigot.evaluation.significance import Comparison, bootstrap, interval

PARTS = {"id": "in domain", "ood": "out of domain"}
"""The test sets of Table 1, and what to call them."""

MEASURES = ("UF", "LF", "UAS")
PAIRS = (("pipeline", "neurboparser"), ("spigot", "neurboparser"), ("spigot", "pipeline"), ("spigot", "ste"))
"""Differences worth knowing: what syntax brings, what the gradient through it brings, and what the projection does."""

SAMPLES = 2000


@dataclass(frozen=True)
class Cell:
    """One score of a system.

    Attributes:
        mean: The mean over seeds.
        sd: The standard deviation over seeds; `None` if there is one only.
        low: Where the 95 % bootstrap interval over sentences begins, the seeds taken together.
        high: Where it ends.
        values: The score of each seed.

    Example:
        >>> Cell(0.8, None, 0.78, 0.82, (0.8,)).high
        0.82
    """

    mean: float
    sd: float | None
    low: float
    high: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """A system's row of Table 1.

    Attributes:
        system: Its name.
        seeds: How many runs it has.
        scores: By test set, `UF` and `LF` of the graphs with tops, and `UAS` of the parser inside if there is one.

    Example:
        >>> Row("ste", 1, {"id": {"LF": Cell(0.8, None, 0.78, 0.82, (0.8,))}}).scores["id"]["LF"].mean
        0.8
    """

    system: str
    seeds: int
    scores: dict[str, dict[str, Cell]]


@dataclass(frozen=True)
class Difference:
    """How much better one system is than another on a test set, in LF.

    Attributes:
        system: The one.
        other: The other.
        part: The test set.
        result: `first` is the one's score, and `difference` is positive if it is better.

    Example:
        >>> from spigot.evaluation.significance import Comparison
        >>> result = Comparison(0.82, 0.8, 0.02, 0.01, 0.03, 0.001, 0.95, 2000)
        >>> Difference("spigot", "pipeline", "id", result).is_sure
        True
    """

    system: str
    other: str
    part: str
    result: Comparison

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.result.low > 0 or self.result.high < 0


@dataclass(frozen=True)
class Outcome:
    """What came of a comparison.

    Attributes:
        sentences: How many sentences each test set has.
        rows: Table 1.
        differences: Between some of its rows.
        analysis: Pipeline (A) and SPIGOT (B) of the first seed that both have, on the development data, as in Table 3;
            `None` without one.

    Example:
        >>> Outcome({}, (), (), None).rows
        ()
    """

    sentences: dict[str, int]
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    analysis: Analysis | None


def outcome(runs: Mapping[str, Sequence[Path]], *, samples: int = SAMPLES) -> Outcome:
    """Put finished runs side by side.

    Args:
        runs: The run folders of each system, one for each seed; all of the same data.
        samples: How often the bootstrap draws the sentences anew.

    Raises:
        ValueError: If runs were judged by different sentences.

    Example:
        >>> outcome({})
        Outcome(sentences={}, rows=(), differences=(), analysis=None)
    """
    runs = {system: list(folders) for system, folders in runs.items() if folders}
    sentences: dict[str, int] = {}
    scores: dict[str, dict[str, dict[str, Cell]]] = {system: {} for system in runs}
    differences: list[Difference] = []
    for part in PARTS:
        counts = {system: _counts(folders, part) for system, folders in runs.items()}
        labelled = {system: reduce(add, found["LF"]) for system, found in counts.items() if "LF" in found}
        for system, found in counts.items():
            scores[system][part] = {name: _cell(seeds, samples) for name, seeds in found.items()}
        if labelled:
            sentences[part] = len(next(iter(labelled.values())))
        for one, other in PAIRS:
            if one in labelled and other in labelled and len(runs[one]) == len(runs[other]):
                result = bootstrap(labelled[one], labelled[other], samples=samples)
                differences.append(Difference(one, other, part, result))
    rows = tuple(Row(system, len(runs[system]), found) for system, found in scores.items())
    return Outcome(sentences, rows, tuple(differences), _table_3(runs, samples))


def remarks(found: Outcome) -> list[str]:
    """What the tables show and what they do not, in sentences.

    Args:
        found: The tables.

    Example:
        >>> result = Comparison(0.82, 0.8, 0.02, -0.01, 0.05, 0.2, 0.95, 2000)
        >>> remarks(Outcome({"id": 300}, (), (Difference("spigot", "pipeline", "id", result),), None))[0]
        'spigot against pipeline: LF +2.0 in domain (-1.0 to +5.0, may be chance).'
    """
    pairs: dict[tuple[str, str], list[str]] = {}
    for difference in found.differences:
        pairs.setdefault((difference.system, difference.other), []).append(_remark(difference))
    said = [f"{one} against {other}: LF {', '.join(parts)}." for (one, other), parts in pairs.items()]
    systems = {row.system: row for row in found.rows}
    if joint := [name for name in systems if name not in ("neurboparser", "pipeline")]:
        several = len(joint) > 1
        said.append(
            f"{_listed(joint)} {'start' if several else 'starts'} from the pipeline's parser and "
            f"{'see' if several else 'sees'} trees for longer than it, so a lead over the pipeline would not be due "
            "to the gradient through the trees alone."
        )
    if systems and max(row.seeds for row in systems.values()) == 1:
        said.append("Each system was trained once; another seed moves its numbers too, and --seeds 3 says how far.")
    return said


def _remark(difference: Difference) -> str:
    result, place = difference.result, PARTS.get(difference.part, difference.part)
    chance = "" if difference.is_sure else ", may be chance"
    shown = (round(100 * value, 1) + 0.0 for value in (result.difference, result.low, result.high))  # there is no -0.0
    middle, low, high = (f"{value:+.1f}" for value in shown)
    return f"{middle} {place} ({low} to {high}{chance})"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def answers(run: Path, part: str) -> tuple[list[Sentence], list[Sentence]]:
    """Gold sentences of a run, and the same as the system sees them: with its graphs, and trees if it has any.

    Args:
        run: The run folder.
        part: The set of sentences, e.g. `dev` or `ood`.

    Raises:
        FileNotFoundError: If the run has no such sentences; it says what to do.

    Example:
        >>> answers(Path("nowhere"), "dev")
        Traceback (most recent call last):
        FileNotFoundError: nowhere has no gold.dev.jsonl; finish it with: spigot train --resume nowhere
    """
    graphs, trees = run / f"predictions.{part}.sdp", run / f"predictions.{part}.conllu"
    for needed in (run / f"gold.{part}.jsonl", graphs):
        if not needed.exists():
            raise FileNotFoundError(f"{run} has no {needed.name}; finish it with: spigot train --resume {run}")
    found: Iterator[Sentence] = iter(read(graphs))
    if trees.exists():
        found = merge(read(trees), found)
    return list(read(run / f"gold.{part}.jsonl")), list(found)


def _counts(folders: Sequence[Path], part: str) -> dict[str, list[Counts]]:
    """The counts of each run on a test set, by measure."""
    found: dict[str, list[Counts]] = {}
    for folder in folders:
        gold, predicted = answers(folder, part)
        found.setdefault("UF", []).append(graph_counts(gold, predicted, labelled=False))
        found.setdefault("LF", []).append(graph_counts(gold, predicted))
        if all(sentence.heads is not None for side in (gold, predicted) for sentence in side):
            found.setdefault("UAS", []).append(tree_counts(gold, predicted))
    return found


def _cell(seeds: Sequence[Counts], samples: int) -> Cell:
    values = tuple(counts.f1() for counts in seeds)
    around = interval(reduce(add, seeds), samples=samples)
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Cell(statistics.fmean(values), sd, around.low, around.high, values)


def _table_3(runs: Mapping[str, Sequence[Path]], samples: int) -> Analysis | None:
    seeds = [{run.name.rpartition("-")[2]: run for run in runs.get(system, ())} for system in ("pipeline", "spigot")]
    shared = [seed for seed in seeds[0] if seed in seeds[1]]  # some training may have failed
    if not shared:
        return None
    (gold, pipeline), (_, spigot) = (answers(found[shared[0]], "dev") for found in seeds)
    return analyse(gold, pipeline, spigot, samples=samples)
