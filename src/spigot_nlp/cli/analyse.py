"""`spigot analyse`: what the end task changed in the structures inside, and whether it helped."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from spigot_nlp.cli.analysis_tables import print_analysis, print_overview
from spigot_nlp.cli.answers import Enhanced, answers, format_beside, read_answers, read_gold
from spigot_nlp.cli.console import AsJson, Flag, FormatName, Skipped, counted, print_json, progress, say
from spigot_nlp.data.formats import FormatError
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.threads import use_threads


def analyse(
    first: Path,
    /,
    *others: Path,
    trees: Path | None = None,
    part: str | None = None,
    against: Literal["gold", "predicted"] = "gold",
    punctuation: bool = True,
    sample: int = 5,
    graph: Enhanced = False,
    samples: int = 2000,
    seed: int = 0,
    threads: int | None = None,
    format: FormatName = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Find out what differs between the structures inside two systems or more, and whether it helped.

    spigot analyse RUN_A RUN_B [RUN_C ...] [FILE]: each further run is held against the first one, usually the
    pipeline, whose parser never felt the end task. The sentences are divided by whether the two have the same
    intermediate structure; then come kinds of head change, what changed in relations, graphs and classes, scores by
    distance, relation, role and length of sentence, and the sentences that gained and lost most.

    Parameters
    ----------
    first
        The folder of a run, or a file with its predictions.
    others
        The systems to hold against it, and last the gold FILE: CoNLL-X and CoNLL-U have trees, SDP has graphs, labelled
        text (.tsv) and sentiment trees (--format sst-binary) have classes, JSON lines have any of them. Without a file,
        the gold sentences that are kept in the run are taken, see --part.
    trees
        A file with gold trees for the sentences of FILE, which are found by their words.
    part
        Which of the gold sentences that are kept in the run to take if no FILE is given: dev, or a test set such as id
        or ood. By default dev.
    against
        Whether kinds of head change are judged by the gold graphs or by those that the further run predicts.
    punctuation
        Whether punctuation counts in everything about trees.
    sample
        How many sentences of each sort to show.
    graph
        The enhanced column of CoNLL-U holds the semantic graphs.
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
    from spigot_nlp.annotations import further_judges
    from spigot_nlp.evaluation.analysis import analyse as analysed

    systems, file = _divided((first, *others))
    if file is not None and part is not None:
        raise ValueError(f"both the file {file} and --part {part} are given; give one of them.")
    skipped = Skipped()
    hook = skipped if skip_bad else None
    if file is None:
        if format is not None:
            raise ValueError(f"--format {format} is about a gold FILE, and none is given; add one, or leave it out.")
        file, gold = _kept(systems, part or "dev")
    else:
        gold = read_gold(file, format, enhanced=graph, skip_bad=hook)
    if trees is not None:
        gold = _with_trees(gold, trees, format, file, hook)
    with use_threads(threads):
        found = [answers(side, gold, file=file, format=format, enhanced=graph, skip_bad=hook) for side in systems]
    pairs = list(zip(systems[1:], found[1:], strict=True))
    results = {
        str(system): analysed(
            gold,
            found[0],
            answer,
            against=against,
            sample=sample,
            punctuation=punctuation,
            samples=samples,
            seed=seed,
            more=further_judges(gold, found[0], answer),
        )
        for system, answer in progress(pairs, "comparing", total=len(pairs))
    }
    if as_json:
        print_json({"first": first, "file": file, "results": results, "skipped": skipped.count})
    else:
        print(f"{file}: {counted(len(gold), 'sentence')}")
        if len(results) > 1:
            print_overview(str(first), results)
        for system, result in results.items():
            print(f"A = {first}\nB = {system}\n")
            print_analysis(result)
    skipped.report()


def _divided(paths: Sequence[Path]) -> tuple[list[Path], Path | None]:
    """The systems, and the gold file: the last path, unless it is a run."""
    *systems, last = paths
    file = None if last.is_dir() else last
    if file is None:
        systems.append(last)
    if len(systems) < 2:
        raise ValueError(
            f"there is only {'one system' if systems else 'a file'}; give two runs or more and then the gold file: "
            "spigot analyse RUN_A RUN_B FILE."
        )
    if len(set(systems)) < len(systems):
        raise ValueError("the same system is given twice; give different ones.")
    return systems, file


def _kept(systems: Sequence[Path], part: str) -> tuple[Path, list[Sentence]]:
    """The gold sentences that are kept in runs, which must be the same in all of them."""
    from spigot_nlp.annotations import annotations_in

    name = f"gold.{part}.jsonl"
    there = [run / name for run in systems if (run / name).is_file()]
    if not there:
        runs = [run for run in systems if run.is_dir()]
        parts = sorted({path.name.split(".", 1)[1].removesuffix(".jsonl") for path in runs[0].glob("gold.*.jsonl")})
        advice = f"it has {', '.join(parts)}; choose one with --part" if parts else "name a gold FILE after the runs"
        raise FileNotFoundError(f"{runs[0]} keeps no gold sentences of the part {part}: {advice}.")
    gold = read_gold(there[0], None, enhanced=False, skip_bad=None)
    for path in there[1:]:
        other = read_gold(path, None, enhanced=False, skip_bad=None)
        if [sentence.forms for sentence in other] != [sentence.forms for sentence in gold]:
            raise ValueError(f"{there[0]} and {path} have different sentences; name the gold FILE after the runs.")
        for field, kind in annotations_in(gold).items():
            pairs = (
                (x.get(name), y.get(name)) for x, y in zip(gold, other, strict=True) for name in (field, *kind.beside)
            )
            if any(_differ(first, second) for first, second in pairs):
                raise ValueError(
                    f"{there[0]} and {path} have different {kind.nouns}; name the gold FILE after the runs."
                )
    return there[0], gold


def _differ(first: object, second: object) -> bool:
    return first is not None and second is not None and first != second


def _with_trees(
    gold: Sequence[Sentence],
    trees: Path,
    format: str | None,
    file: Path,
    skip_bad: Callable[[FormatError], None] | None,
) -> list[Sentence]:
    from spigot_nlp.evaluation.joined import add_trees

    known = read_answers(trees, format_beside(trees, file, format), enhanced=False, skip_bad=skip_bad)
    found, count = add_trees([replace(sentence, heads=None, relations=None) for sentence in gold], known)
    if not count:
        raise ValueError(f"{trees} has a tree for none of the sentences of {file}; give a file with the same words.")
    say(f"Found trees for {count:,} of {counted(len(found), 'sentence')} in {trees}.")
    return found
