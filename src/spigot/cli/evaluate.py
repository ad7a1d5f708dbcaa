"""`spigot evaluate`: a trained system against gold files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spigot.cli.answers import KINDS, OWNERS, Enhanced, check_classes, has, kinds, parsed, read_gold
from spigot.cli.console import AsJson, Flag, FormatName, Skipped, print_json, use_threads
from spigot.cli.score import intervals_of, print_scores, score_files

if TYPE_CHECKING:
    from spigot.data.sentence import Sentence
    from spigot.models.parser import Parser


def evaluate(
    run: Path,
    /,
    *files: Path,
    labels: Flag = False,
    graph: Enhanced = False,
    samples: int = 10_000,
    seed: int = 0,
    threads: int | None = None,
    format: FormatName = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Give gold files to a trained system and score what it finds: classes, trees, graphs, whatever a file has.

    Classes get accuracy; graphs get labelled and unlabelled precision, recall and F1, with and without tops; trees get
    attachment scores (UAS), with and without punctuation; all get 95 % confidence intervals by the bootstrap over
    sentences.

    Parameters
    ----------
    run
        The folder that spigot train made.
    files
        Gold files: CoNLL-X and CoNLL-U have trees, SDP has graphs, labelled text (.tsv) and sentiment trees (--format
        sst-binary) have classes, JSON lines have any of them.
    labels
        Print the numbers of every role and of every class too, and which classes were taken for which; with --json
        they are always there.
    graph
        Score the enhanced column of CoNLL-U too: it holds semantic graphs.
    samples
        How often the bootstrap draws the sentences anew.
    seed
        Where the random numbers of the bootstrap start.
    threads
        How many threads torch may use; by default one for each core, up to four.
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
        _check_fields(parser, gold, run, path)
        check_classes(parser, gold, run=run, file=path, format=format)
        with use_threads(threads):
            predicted = parsed(parser, gold)
        scores = score_files(_judged(parser, gold), predicted)
        bounds = intervals_of(gold, predicted, scores, samples=samples, seed=seed)
        results[str(path)] = {"scores": scores, "intervals": bounds, "skipped": skipped.count}
        if not as_json:
            print(path)
            print_scores(scores, bounds, labels=labels)
        skipped.report()
    if as_json:
        print_json(results)


def _judged(parser: "Parser", gold: "Sequence[Sentence]") -> "list[Sentence]":
    """The right answers to the questions that the system was asked."""
    other = {field: None for field in KINDS if field not in parser.finds}
    return [replace(sentence, **other) for sentence in gold]


def _check_fields(parser: "Parser", gold: "Sequence[Sentence]", run: Path, path: Path) -> None:
    """Complain before the work if the file has nothing that the system can be judged by."""
    fields = parser.finds
    if any(has(gold, field) for field in fields):
        return
    lacks = " and ".join(f"no {owner}" for field, owner in OWNERS.items() if field not in fields and has(gold, field))
    wanted = " or ".join(KINDS[field] for field in fields)
    column = ", or --graph if they are in its enhanced column" if "graph" in fields and has(gold, "heads") else ""
    raise ValueError(f"{run} has {lacks}, and {path} has {kinds(gold)} only; give a file with {wanted}{column}.")
