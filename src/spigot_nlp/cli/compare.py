"""`spigot compare`: whether one system is really better than another."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spigot_nlp.cli.answers import Enhanced, answers, read_gold, shared
from spigot_nlp.cli.console import AsJson, Flag, FormatName, Skipped, percent, print_json, print_table
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.evaluation import Comparison


def compare(
    first: Path,
    second: Path,
    file: Path,
    /,
    *,
    graph: Enhanced = False,
    samples: int = 10_000,
    seed: int = 0,
    threads: int | None = None,
    format: FormatName = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Compare two systems on a gold file: differences, confidence intervals and p, by the paired bootstrap.

    Parameters
    ----------
    first
        The folder of a run, or a file with its predictions.
    second
        Another one. Differences are first minus second.
    file
        The gold file: CoNLL-X and CoNLL-U have trees, SDP has graphs, labelled text (.tsv) and sentiment trees
        (--format sst-binary) have classes, JSON lines have any of them.
    graph
        Compare the enhanced column of CoNLL-U too: it holds semantic graphs.
    samples
        How often the bootstrap draws the sentences anew.
    seed
        Where the random numbers of the bootstrap start.
    threads
        How many threads torch may use; by default one for each core, up to four.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    as_json
        Print the numbers as JSON instead of a table.
    """
    skipped = Skipped()
    hook = skipped if skip_bad else None
    gold = read_gold(file, format, enhanced=graph, skip_bad=hook)
    with use_threads(threads):
        systems = [
            answers(side, gold, file=file, format=format, enhanced=graph, skip_bad=hook) for side in (first, second)
        ]
    results = compare_answers(gold, *systems, samples=samples, seed=seed)
    if as_json:
        print_json({"first": first, "second": second, "file": file, "results": results, "skipped": skipped.count})
    else:
        print(f"{first} against {second}")
        _print_results(f"{file}: {len(gold)} sentences, per cent", results)
    skipped.report()


def compare_answers(
    gold: Sequence[Sentence],
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    *,
    samples: int = 10_000,
    seed: int = 0,
) -> "dict[str, Comparison]":
    """Compare two answers in every number that all three sides have the annotation for.

    Args:
        gold: Sentences with the right annotation.
        first: The same sentences as the first system sees them.
        second: The same as the second one does.
        samples: How often the sentences are drawn anew.
        seed: Where the random numbers start.

    Returns:
        `accuracy` of classes, `LF` and `UF` of graphs with tops, `UAS` of trees with and without punctuation.

    Raises:
        ValueError: If there is no such annotation, or the sentences are not the same.

    Example:
        >>> right, wrong = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> compare_answers([right], [right], [wrong], samples=10)["UAS"].difference
        1.0
    """
    from spigot_nlp.annotations import nouns_in
    from spigot_nlp.evaluation import bootstrap

    found = {}
    for field, annotation in shared(gold, first, second).items():
        for measure in (*annotation.measures, *(m for m in annotation.further_measures if "tops" not in m.key)):
            name = measure.name if type(annotation).name == field else f"{field} {measure.name}"
            counts = [measure.counts(gold, side) for side in (first, second)]
            found[name] = bootstrap(*counts, samples=samples, seed=seed)
    if not found:
        raise ValueError(
            f"there is no annotation that the gold file and both systems have: the gold file has {nouns_in(gold)}, the "
            f"first system {nouns_in(first)}, the second {nouns_in(second)}; give a file with what both systems find."
        )
    return found


def _print_results(title: str, results: "dict[str, Comparison]") -> None:
    print_table(
        title,
        ["", "first", "second", "difference", "95 % interval", "p"],
        [
            [
                name,
                percent(result.first),
                percent(result.second),
                f"{100 * result.difference:+.2f}",
                f"{100 * result.low:+.2f} to {100 * result.high:+.2f}",
                f"{result.p:.4f}",
            ]
            for name, result in results.items()
        ],
    )
