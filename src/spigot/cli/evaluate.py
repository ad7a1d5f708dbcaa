"""`spigot evaluate`: a trained system against gold files."""

from pathlib import Path
from typing import TYPE_CHECKING

from spigot.cli.answers import Enhanced, parsed, read_gold
from spigot.cli.console import AsJson, Flag, Skipped, print_json, use_threads
from spigot.cli.score import intervals_of, print_scores, score_files

if TYPE_CHECKING:
    from spigot.data.sentence import Sentence


def evaluate(
    run: Path,
    /,
    *files: Path,
    labels: Flag = False,
    graph: Enhanced = False,
    samples: int = 10_000,
    seed: int = 0,
    threads: int | None = None,
    format: str | None = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Parse gold files with a trained system and score what it finds: trees, graphs, whatever a file has.

    Graphs get labelled and unlabelled precision, recall and F1, with and without tops; trees get attachment scores
    (UAS), with and without punctuation; both get exact match and 95 % confidence intervals by the bootstrap over
    sentences.

    Parameters
    ----------
    run
        The folder that spigot train made.
    files
        Gold files: CoNLL-X and CoNLL-U have trees, SDP has graphs.
    labels
        Print the numbers of every role too; with --json they are always there.
    graph
        Score the enhanced column of CoNLL-U too: it holds semantic graphs.
    samples
        How often the bootstrap draws the sentences anew.
    seed
        Where the random numbers of the bootstrap start.
    threads
        How many threads torch may use; by default one for each core, up to four.
    format
        The format of the files, if their names do not tell: conllu, conllx, sdp, sdp2014.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    as_json
        Print the numbers as JSON instead of tables.
    """
    from spigot.training import checkpoint

    if not files:
        raise ValueError("there is nothing to evaluate on; give one gold file or more after the run.")
    parser = checkpoint.load(run)
    results = {}
    for path in files:
        skipped = Skipped()
        gold = read_gold(path, format, enhanced=graph, skip_bad=skipped if skip_bad else None)
        with use_threads(threads):
            predicted = parsed(parser, gold)
        _check_trees(run, path, gold, predicted)
        scores = score_files(gold, predicted)
        bounds = intervals_of(gold, predicted, scores, samples=samples, seed=seed)
        results[str(path)] = {"scores": scores, "intervals": bounds, "skipped": skipped.count}
        if not as_json:
            print(path)
            print_scores(scores, bounds, labels=labels)
        skipped.report()
    if as_json:
        print_json(results)


def _check_trees(run: Path, path: Path, gold: "list[Sentence]", predicted: "list[Sentence]") -> None:
    if gold[0].graph is None and predicted[0].heads is None:
        raise ValueError(
            f"{run} has no syntactic parser, and {path} has trees only; give a file with graphs, or --graph if they "
            "are in its enhanced column."
        )
