"""`spigot score`: two files, one right and one predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spigot_nlp.cli.answers import all_classed, format_beside, has, shared
from spigot_nlp.cli.console import AsJson, Flag, FormatName, Skipped, print_json, say, show_table
from spigot_nlp.cli.raw import check_raw, plain_raw, print_raw
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence

if TYPE_CHECKING:
    from spigot_nlp.annotations import AbstractAnnotation


def score(
    gold: Path,
    predicted: Path,
    /,
    *,
    raw: Flag = False,
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
    raw
        The files have the same text, but perhaps not the same sentences and words: the measures of CoNLL 2018, which
        need CoNLL-U. The names of both files, or --format, must say so.
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
    if raw:
        check_raw((gold, predicted), format, {"--labels": labels, "--intervals": intervals})
    skipped = Skipped()
    right, answer = (
        all_classed(list(read(path, format_beside(path, gold, format), skip_bad=skipped if skip_bad else None)), path)
        for path in (gold, predicted)
    )
    if raw:
        from spigot_nlp.evaluation import score_raw

        found = score_raw(right, answer)
        if as_json:
            print_json({"scores": plain_raw(found), "skipped": skipped.count})
        else:
            print_raw(found)
        skipped.report()
        return
    scores = score_files(right, answer)
    bounds = intervals_of(right, answer, scores, seed=seed) if intervals else {}
    if as_json:
        print_json({"scores": plain_scores(scores), "intervals": bounds, "skipped": skipped.count})
    else:
        print_scores(scores, bounds, every=labels)
    for missing in _one_sided(right, answer):
        say(missing)
    skipped.report()


@dataclass(frozen=True)
class Scored:
    """How one annotation was found.

    Attributes:
        annotation: The annotation.
        scores: Everything there is to say, as JSON has it.
    """

    annotation: "AbstractAnnotation"
    scores: dict[str, Any]


Scores: TypeAlias = dict[str, Scored]
"""By the name of the annotation."""


def score_files(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], wanted: "Mapping[str, AbstractAnnotation] | None" = None
) -> Scores:
    """Score every kind of annotation that occurs on both sides.

    Args:
        gold: Sentences with the right annotation.
        predicted: The same sentences with the predicted one.
        wanted: Columns of words that are to be scored too, if both have them: `tags`, `upos`.

    Raises:
        ValueError: If they have no kind of annotation in common, or are not the same sentences.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> score_files([sentence], [sentence])["heads"].scores["uas"]
        1.0
    """
    from spigot_nlp.annotations import nouns_in

    found = shared(gold, predicted)
    for name, kind in (wanted or {}).items():
        if name not in found and has(gold, name) and has(predicted, name):
            found[name] = kind
    if not found:
        raise ValueError(f"the files have {nouns_in(gold)} and {nouns_in(predicted)}: there is nothing to compare.")
    return {name: Scored(kind, asdict(kind.score(gold, predicted))) for name, kind in found.items()}


def plain_scores(scores: Scores) -> dict[str, Any]:
    """Scores for JSON, under the usual name of each kind, or of the annotation if it has another.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> list(plain_scores(score_files([sentence], [sentence])))
        ['trees']
    """
    return {
        (one.annotation.key if type(one.annotation).name == name else name): one.scores for name, one in scores.items()
    }


def _one_sided(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[str]:
    """What was not scored because only one file has it."""
    from spigot_nlp.annotations import annotations_in

    return [
        f"Only the {side} file has {kind.nouns if kind.is_usual else f'{name} {kind.nouns}'}; they were not scored."
        for side, mine, other in (("gold", gold, predicted), ("predicted", predicted, gold))
        for name, kind in annotations_in(mine).items()
        if not has(other, name)
    ]


def intervals_of(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], scores: Scores, *, samples: int = 10_000, seed: int = 0
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
    from spigot_nlp.evaluation import interval

    found = {}
    for name, one in scores.items():
        for measure in (*one.annotation.measures, *one.annotation.further_measures):
            bounds = interval(measure.counts(gold, predicted), samples=samples, seed=seed)
            found[bound_key(name, one.annotation, measure.key)] = (bounds.low, bounds.high)
    return found


def bound_key(name: str, annotation: "AbstractAnnotation", key: str) -> str:
    """What the interval of a number is called: as the number, behind the annotation's name if that is unusual."""
    return key if type(annotation).name == name else f"{name}.{key}"


def print_scores(scores: Scores, bounds: dict[str, tuple[float, float]], *, every: bool = False) -> None:
    """Print tables of what there is.

    Args:
        scores: The numbers.
        bounds: The confidence intervals of some of them.
        every: Whether to print those of every role and of every class too.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> print_scores(score_files([sentence], [sentence]), {})  # doctest: +ELLIPSIS
        Trees: 1 sentences, per cent
        ...
    """
    for name, one in scores.items():
        prefix = bound_key(name, one.annotation, "")
        mine = {key.removeprefix(prefix): value for key, value in bounds.items() if key.startswith(prefix)}
        for table in one.annotation.tables(one.scores, mine, every=every):
            show_table(table if not prefix else replace(table, title=f"{name}: {table.title}"))
