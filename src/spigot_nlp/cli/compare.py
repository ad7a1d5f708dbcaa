"""`spigot compare`: whether one system is really better than another."""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spigot_nlp.cli.answers import Enhanced, answers, read_gold, shared
from spigot_nlp.cli.console import AsJson, Flag, FormatName, Skipped, percent, print_json, print_table
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.evaluation import SeedComparison


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

    A system may have several runs, one a seed, named by a pattern in quotes: 'runs/dm-ste-*'. Means over its runs are
    then compared, over seeds and sentences; runs of the same seeds are paired.

    Parameters
    ----------
    first
        The folder of a run, or a file with its predictions; or a pattern for several.
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
            {
                number: answers(run, gold, file=file, format=format, enhanced=graph, skip_bad=hook)
                for number, run in _runs(side).items()
            }
            for side in (first, second)
        ]
    results = compare_answers(gold, *systems, samples=samples, seed=seed)
    if as_json:
        print_json({"first": first, "second": second, "file": file, "results": results, "skipped": skipped.count})
    else:
        over = next(iter(results.values()))
        several = f": means of {over.seeds[0]} and {over.seeds[1]} runs, over {over.over}"
        print(f"{first} against {second}{several if max(over.seeds) > 1 else ''}")
        _print_results(f"{file}: {len(gold)} sentences, per cent", results)
    skipped.report()


def _runs(side: Path) -> dict[int, Path]:
    """What a path or a pattern stands for: by the seeds of runs if they have different ones, else by numbers."""
    from spigot_nlp.models.checkpoint import CONFIG, read_config

    if side.exists() or not glob.has_magic(str(side)):
        return {0: side}
    found = sorted(map(Path, glob.glob(str(side))))
    if not found:
        raise FileNotFoundError(f"no run folder and no file is called like {side}; put the pattern in quotes.")
    seeds = [read_config(run).seed if (run / CONFIG).exists() else None for run in found]
    if None in seeds or len(set(seeds)) < len(seeds):
        return dict(enumerate(found))
    return {seed: run for seed, run in zip(seeds, found, strict=True) if seed is not None}


def compare_answers(
    gold: Sequence[Sentence],
    first: Mapping[int, Sequence[Sentence]],
    second: Mapping[int, Sequence[Sentence]],
    *,
    samples: int = 10_000,
    seed: int = 0,
) -> "dict[str, SeedComparison]":
    """Compare two answers in every number that all three sides have the annotation for.

    Args:
        gold: Sentences with the right annotation.
        first: The same sentences as the runs of the first system see them, by seed.
        second: The same as those of the second one do.
        samples: How often the sentences are drawn anew.
        seed: Where the random numbers start.

    Returns:
        `accuracy` of classes, `LF` and `UF` of graphs with tops, `UAS` of trees with and without punctuation.

    Raises:
        ValueError: If there is no such annotation, or the sentences are not the same.

    Example:
        >>> right, wrong = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> compare_answers([right], {0: [right]}, {0: [wrong]}, samples=10)["UAS"].difference
        1.0
    """
    from spigot_nlp.annotations import nouns_in
    from spigot_nlp.evaluation import seed_bootstrap

    found = {}
    for field, annotation in shared(gold, *first.values(), *second.values()).items():
        for measure in (*annotation.measures, *(m for m in annotation.further_measures if "tops" not in m.key)):
            name = measure.name if type(annotation).name == field else f"{field} {measure.name}"
            a, b = ({number: measure.counts(gold, run) for number, run in side.items()} for side in (first, second))
            found[name] = seed_bootstrap(a, b, samples=samples, seed=seed)
    if not found:
        one, other = (nouns_in(next(iter(side.values()))) for side in (first, second))
        raise ValueError(
            f"there is no annotation that the gold file and both systems have: the gold file has {nouns_in(gold)}, the "
            f"first system {one}, the second {other}; give a file with what both systems find."
        )
    return found


def _print_results(title: str, results: "dict[str, SeedComparison]") -> None:
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
