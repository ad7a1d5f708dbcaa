"""`spigot score`: two files, one right and one predicted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spigot.cli.answers import KINDS, format_beside, has, kinds
from spigot.cli.console import AsJson, Flag, FormatName, Skipped, percent, print_json, print_table, say
from spigot.data.formats import read
from spigot.data.sentence import Sentence

if TYPE_CHECKING:
    from spigot.evaluation import Counts, GraphScores, Score, TreeScores
    from spigot.evaluation.labels import LabelScores

_GRAPH_ROWS = {
    "labelled": "labelled",
    "unlabelled": "unlabelled",
    "labelled_without_tops": "labelled, no tops",
    "unlabelled_without_tops": "unlabelled, no tops",
    "tops": "tops",
}


@dataclass(frozen=True)
class FileScores:
    """What two files have in common; `None` where one of them lacks it."""

    trees: "TreeScores | None" = None
    graphs: "GraphScores | None" = None
    labels: "LabelScores | None" = None


def score(
    gold: Path,
    predicted: Path,
    /,
    *,
    labels: Flag = False,
    intervals: Flag = False,
    seed: int = 0,
    format: FormatName = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Compare a predicted file with the right one: trees, graphs and classes, whatever both have.

    Parameters
    ----------
    gold
        The file with the right annotation.
    predicted
        The file with the predicted annotation of the same sentences.
    labels
        Print the numbers of every role and of every class too, and which classes were taken for which; with --json
        they are always there.
    intervals
        Add 95 % confidence intervals: a bootstrap over sentences, 10,000 times.
    seed
        Where the random numbers of the bootstrap start.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    as_json
        Print the numbers as JSON instead of tables.
    """
    skipped = Skipped()
    right, answer = (
        list(read(path, format_beside(path, gold, format), skip_bad=skipped if skip_bad else None))
        for path in (gold, predicted)
    )
    scores = score_files(right, answer)
    bounds = intervals_of(right, answer, scores, seed=seed) if intervals else {}
    if as_json:
        print_json({"scores": scores, "intervals": bounds, "skipped": skipped.count})
    else:
        print_scores(scores, bounds, labels=labels)
    for missing in _one_sided(right, answer):
        say(missing)
    skipped.report()


def score_files(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> FileScores:
    """Score every kind of annotation that occurs on both sides.

    Args:
        gold: Sentences with the right annotation.
        predicted: The same sentences with the predicted one.

    Raises:
        ValueError: If they have no kind of annotation in common, or are not the same sentences.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> scores = score_files([sentence], [sentence])
        >>> scores.trees.uas, scores.graphs
        (1.0, None)
    """
    from spigot.evaluation import score_graphs, score_trees
    from spigot.evaluation.labels import score_labels

    def both(field: str) -> bool:
        return has(gold, field) and has(predicted, field)

    if not any(both(field) for field in KINDS):
        raise ValueError(f"the files have {kinds(gold)} and {kinds(predicted)}: there is nothing to compare.")
    return FileScores(
        trees=score_trees(gold, predicted) if both("heads") else None,
        graphs=score_graphs(gold, predicted) if both("graph") else None,
        labels=score_labels(gold, predicted) if both("label") else None,
    )


def _one_sided(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[str]:
    """What was not scored because only one file has it."""
    return [
        f"Only the {'gold' if has(gold, field) else 'predicted'} file has {name}; they were not scored."
        for field, name in KINDS.items()
        if has(gold, field) != has(predicted, field)
    ]


def intervals_of(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], scores: FileScores, *, samples: int = 10_000, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """The 95 % confidence interval of each main number, by its name.

    Args:
        gold: Sentences with the right annotation.
        predicted: The same sentences with the predicted one.
        scores: What `score_files` found.
        samples: How often the sentences are drawn anew.
        seed: Where the random numbers start.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> intervals_of([sentence], [sentence], score_files([sentence], [sentence]), samples=10)["uas"]
        (1.0, 1.0)
    """
    from spigot.evaluation import graph_counts, interval, label_counts, tree_counts

    wanted: dict[str, Callable[[], Counts]] = {}
    if scores.trees is not None:
        wanted["uas"] = lambda: tree_counts(gold, predicted)
        wanted["uas_without_punctuation"] = lambda: tree_counts(gold, predicted, punctuation=False)
    if scores.graphs is not None:
        wanted["labelled"] = lambda: graph_counts(gold, predicted)
        wanted["unlabelled"] = lambda: graph_counts(gold, predicted, labelled=False)
        wanted["labelled_without_tops"] = lambda: graph_counts(gold, predicted, tops=False)
        wanted["unlabelled_without_tops"] = lambda: graph_counts(gold, predicted, labelled=False, tops=False)
    if scores.labels is not None:
        wanted["accuracy"] = lambda: label_counts(gold, predicted)
    found = {name: interval(counts(), samples=samples, seed=seed) for name, counts in wanted.items()}
    return {name: (bounds.low, bounds.high) for name, bounds in found.items()}


def print_scores(scores: FileScores, bounds: dict[str, tuple[float, float]], *, labels: bool = False) -> None:
    """Print tables of what there is.

    Args:
        scores: The numbers.
        bounds: The confidence intervals of some of them.
        labels: Whether to print those of every role and of every class too.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> print_scores(score_files([sentence], [sentence]), {})  # doctest: +ELLIPSIS
        Trees: 1 sentences, per cent
        ...
    """

    def line(name: str, key: str, *cells: str) -> list[str]:
        return [name, *cells, *([_range(bounds.get(key))] if bounds else [])]

    last = ["95 % interval"] if bounds else []
    if scores.labels is not None:
        _print_classes(scores.labels, line("all sentences", "accuracy", percent(scores.labels.accuracy)), last, labels)
    if (trees := scores.trees) is not None:
        print_table(
            f"Trees: {trees.sentences} sentences, per cent",
            ["", "words", "exact", "UAS", *last],
            [
                line("all words", "uas", str(trees.words), percent(trees.exact), percent(trees.uas)),
                line(
                    "without punctuation",
                    "uas_without_punctuation",
                    str(trees.words_without_punctuation),
                    percent(trees.exact_without_punctuation),
                    percent(trees.uas_without_punctuation),
                ),
            ],
        )
    if (graphs := scores.graphs) is not None:
        print_table(
            f"Graphs: {graphs.sentences} sentences, per cent",
            ["", "gold", "predicted", "exact", "P", "R", "F1", *last],
            [
                line(name, key, *_counted(getattr(graphs, key), getattr(graphs, f"exact_{key}", None)))
                for key, name in _GRAPH_ROWS.items()
            ],
        )
        if labels:
            print_table(
                "Roles, per cent",
                ["", "gold", "predicted", "P", "R", "F1"],
                [
                    [role, *(cell for cell in _counted(numbers, None) if cell)]
                    for role, numbers in sorted(graphs.by_label.items(), key=lambda item: (-item[1].gold, item[0]))
                ],
            )


def _print_classes(scores: "LabelScores", accuracy: list[str], last: list[str], every: bool) -> None:
    print_table(f"Classes: {scores.sentences} sentences, per cent", ["", "accuracy", *last], [accuracy])
    if every:
        given = {label: sum(row.get(label, 0) for row in scores.confusion.values()) for label in scores.classes}
        print_table(
            "Each class, per cent",
            ["class", "gold", "predicted", "P", "R", "F1"],
            [
                [label, str(one.sentences), str(given[label]), *map(percent, (one.precision, one.recall, one.f1))]
                for label, one in scores.classes.items()
            ],
        )
        print_table(
            "Sentences of a class (row) by what they were taken for (column)",
            ["", *scores.classes],
            [
                [label, *(str(scores.confusion.get(label, {}).get(other, 0)) for other in scores.classes)]
                for label in scores.classes
            ],
        )


def _counted(score: "Score", exact: float | None) -> list[str]:
    shares = [percent(value) for value in (score.precision, score.recall, score.f1)]
    return [str(score.gold), str(score.predicted), "" if exact is None else percent(exact), *shares]


def _range(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"
