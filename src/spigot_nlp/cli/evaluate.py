"""`spigot evaluate`: a trained system, or a file of predictions, against gold files."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as field_of
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spigot_nlp.bundled import run_folder
from spigot_nlp.cli.answers import (
    Enhanced,
    all_classed,
    check_values,
    format_beside,
    has,
    read_gold,
    shared,
)
from spigot_nlp.cli.console import (
    AsJson,
    Device,
    Flag,
    FormatName,
    Precision,
    Skipped,
    print_json,
    progress,
    say,
    torch_device,
)
from spigot_nlp.cli.raw import check_raw, evaluate_raw, plain_raw, print_raw
from spigot_nlp.cli.scores import print_scores, print_summary
from spigot_nlp.data.formats import read
from spigot_nlp.data.formats.files import require
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.evaluation import RawScores
    from spigot_nlp.models.parser import Parser
    from spigot_nlp.scoring import Target

LABELS = {"graphs": "roles", "trees": "relations"}
"""What the labels of arcs are called, by what the scores of their annotations stand under."""


def evaluate(
    run: Path,
    /,
    *files: Path,
    tests: Flag = False,
    raw: Flag = False,
    labels: Flag = False,
    graph: Enhanced = False,
    field: str = "",
    samples: int = 10_000,
    seed: int = 0,
    threads: int | None = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    format: FormatName = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Score a trained system on gold files, or a file of predictions against the gold file, which comes first.

    spigot evaluate RUN GOLD... has the system parse the sentences of gold files, and scores whatever they have: classes
    by accuracy; graphs by labelled and unlabelled precision, recall and F1, with and without tops; trees by attachment
    scores (UAS, and LAS where relations are found), with and without punctuation; all with 95 % confidence intervals by
    the bootstrap over sentences. Of systems that join graphs it is said for which fraction of the sentences the answer
    has a certificate of optimality.

    spigot evaluate GOLD PREDICTED compares two files in the same way.

    With --raw the system gets the plain text of CoNLL-U files, and has to find sentences and words as well: precision,
    recall and F1 of tokens, sentences, words, tags, lemmas, UAS, LAS, CLAS and BLEX, as in the CoNLL 2018 shared task.

    Parameters
    ----------
    run
        The folder that spigot train made, or the name of a model that comes with spigot; or the gold file.
    files
        Gold files; or, after the gold file, the one with predictions. CoNLL-X and CoNLL-U have trees, SDP has graphs,
        labelled text (.tsv) and sentiment trees (--format sst-binary) have classes, JSON lines have any of them.
    tests
        Score the run's own test sets, which its training left out (--no-tests), and keep that in the run folder as the
        training would have. In place of FILES.
    raw
        Give the system the text of the files, with nothing divided, tagged or parsed; of two files, compare what may be
        divided otherwise. They must be CoNLL-U.
    labels
        Print the numbers of every role and of every class too, and which classes were taken for which; with --json
        they are always there.
    graph
        Score the enhanced column of CoNLL-U too: it holds semantic graphs.
    field
        What the graphs of the files are called, if the system finds several or calls them otherwise.
    samples
        How often the bootstrap draws the sentences anew.
    seed
        Where the random numbers of the bootstrap start.
    threads
        How many threads torch may use; by default one for each core, up to four.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    as_json
        Print the numbers as JSON instead of tables, under the names that scores.json has for them.
    """
    if raw:
        others = {"--tests": tests, "--labels": labels, "--graph": graph, "--field": bool(field)}
        check_raw((*((run,) if run.is_file() else ()), *files), format, others)
    if tests:
        if files:
            raise ValueError(f"--tests scores the run's own test sets; leave out {files[0]}, or leave out --tests.")
        _score_tests(run, threads, device, precision, as_json=as_json)
        return
    if run.is_file() and len(files) != 1:
        raise ValueError(f"{run} is a file: after the gold file give one file of predictions, or name a run before it.")
    if not files:
        raise ValueError(
            "there is nothing to evaluate on; give one gold file or more after the run, or --tests for its own."
        )
    report = _Report(samples, seed, labels, as_json)
    skipped = Skipped()
    hook = skipped if skip_bad else None
    if run.is_file():
        gold, predicted = (
            all_classed(list(read(path, format_beside(path, run, format), skip_bad=hook)), path)
            for path in (run, *files)
        )
        _compare_files(report, run, files[0], gold, predicted, raw=raw)
        report.finish(skipped)
        return
    run_folder(run)  # refused before torch is loaded, as are files that are not there
    for path in files:
        require(path)
    from spigot_nlp.models import Parser

    parser = Parser.load(run, device=torch_device(device), precision=precision)
    with use_threads(threads):
        for path in files:
            if raw:
                report.add_raw(path, evaluate_raw(parser, run, path, format, hook))
            else:
                gold = read_gold(path, format, enhanced=graph, skip_bad=hook)
                gold = [_called(parser, sentence, field) for sentence in gold] if field else gold
                _check_fields(parser, gold, run, path)
                check_values(parser, gold, run=run, file=path, format=format)
                _evaluate_file(report, parser, run, path, gold)
    report.finish(skipped, run)


@dataclass
class _Report:
    """Prints what is found as it comes, or all of it as JSON in the end."""

    samples: int
    seed: int
    labels: bool
    as_json: bool
    found: dict[str, dict[str, Any]] = field_of(default_factory=lambda: {"scores": {}, "intervals": {}})

    def add(
        self,
        path: Path,
        gold: Sequence[Sentence],
        predicted: Sequence[Sentence],
        wanted: "Sequence[Target]",
        scores: dict[str, Any],
    ) -> None:
        """What a set of sentences scored, with intervals."""
        from spigot_nlp.evaluation import interval

        bounds: dict[str, dict[str, tuple[float, float]]] = {}
        for target in wanted:
            right, answers = target.judged(gold, predicted)
            for measure in target.measures if target.key in scores else ():
                counts = measure.counts(right, answers)
                found = interval(counts, samples=self.samples, seed=self.seed)
                bounds.setdefault(target.key, {})[measure.key] = (found.low, found.high)
        self.found["scores"][str(path)], self.found["intervals"][str(path)] = scores, bounds
        if not self.as_json:
            print(path)
            print_scores(scores, wanted, bounds, every=self.labels)

    def add_raw(self, path: Path, scores: "RawScores") -> None:
        """What was found in plain text."""
        self.found["scores"][str(path)] = {"raw": plain_raw(scores)}
        if not self.as_json:
            print(path)
            print_raw(scores)

    def add_decoding(self, path: Path, shares: dict[str, dict[str, float]], sentences: int) -> None:
        """How often answers are known to be the best."""
        self.found.setdefault("decoding", {})[str(path)] = shares
        for stage, some in () if self.as_json else shares.items():
            said = ", ".join(f"{what} {100 * share:.1f} %" for what, share in some.items())
            print(f"Decoding of {stage}: {said} of {sentences} sentences.")

    def finish(self, skipped: Skipped, run: Path | None = None) -> None:
        """The end of it."""
        if self.as_json:
            print_json({**({} if run is None else {"run": run}), **self.found, "skipped": skipped.count})
        skipped.report()


def _evaluate_file(report: _Report, parser: "Parser", run: Path, path: Path, gold: Sequence[Sentence]) -> None:
    """Have a system parse the sentences of a gold file."""
    from spigot_nlp.models.inspection import certificates
    from spigot_nlp.scoring import evaluate as evaluate_sets
    from spigot_nlp.scoring import fitting, targets, unknown_labels

    wanted = [fitting(target, gold) for target in targets(parser.config, parser.model.annotations)]
    for target in wanted:
        strange, total = unknown_labels(target.annotation, gold)
        if strange:
            names = ", ".join([name for name, _ in strange.most_common(5)] + ["..."] * (len(strange) > 5))
            kind, share = LABELS[target.annotation.key], 100 * strange.total() / total
            say(
                f"{run} cannot find {len(strange)} of the {kind} in {path}, which it was not trained on: {names}; "
                f"{share:.1f} % of the arcs have them."
            )
    predicted: list[Sentence] = []
    scores = evaluate_sets(
        parser,
        {str(path): gold},
        wanted=wanted,
        watch=lambda found, total: progress(found, "parsing", total=total),
        keep=lambda _, gold, found: predicted.extend(found),
    )
    report.add(path, gold, predicted, wanted, scores[str(path)])
    if sure := certificates(parser, gold):
        report.add_decoding(path, sure, len(gold))


def _compare_files(
    report: _Report, gold_file: Path, file: Path, gold: list[Sentence], predicted: list[Sentence], *, raw: bool
) -> None:
    """Compare a file with the gold file."""
    from spigot_nlp.annotations import annotations_in, nouns_in
    from spigot_nlp.evaluation.counts import aligned
    from spigot_nlp.scoring import Target, key_of, score

    if reason := _swapped(gold, predicted, alike=gold_file.suffix == file.suffix):
        say(f"{gold_file} {reason} and {file} does not: the gold file comes first, and the predicted one behind it.")
    if raw:
        from spigot_nlp.evaluation import score_raw

        report.add_raw(gold_file, score_raw(gold, predicted))
        return
    for _ in aligned(gold, predicted):  # which complains about other words
        pass
    wanted = [Target(key_of(kind), kind) for kind in shared(gold, predicted).values()]
    if not wanted:
        raise ValueError(f"the files have {nouns_in(gold)} and {nouns_in(predicted)}: there is nothing to compare.")
    report.add(gold_file, gold, predicted, wanted, score(gold, predicted, wanted))
    for side, mine, other in (("gold", gold, predicted), ("predicted", predicted, gold)):
        for name, kind in annotations_in(mine).items():
            if not has(other, name):
                nouns = kind.nouns if kind.is_usual else f"{name} {kind.nouns}"
                say(f"Only the {side} file has {nouns}; they were not scored.")


def _swapped(gold: Sequence[Sentence], predicted: Sequence[Sentence], *, alike: bool) -> str:
    """What shows that two files are in the wrong order; empty if nothing does."""

    def says_how_sure(sentence: Sentence) -> bool:
        return sentence.probabilities is not None

    def finds_nothing(sentence: Sentence) -> bool:
        return sentence.graph is not None and not sentence.graph.arcs

    def has_no_name(sentence: Sentence) -> bool:
        return alike and not sentence.id  # some formats have none

    for sign, said in (
        (says_how_sure, "says how sure it is of its answers"),
        (finds_nothing, "has no arc in any graph"),
        (has_no_name, "has no names of sentences"),
    ):
        if gold and all(map(sign, gold)) and not any(map(sign, predicted)):
            return said
    return ""


def _called(parser: "Parser", sentence: Sentence, field: str) -> Sentence:
    """A sentence whose graph stands under another name, as the data that the system was trained on have it."""
    from spigot_nlp.data.enhanced import enhanced_graph
    from spigot_nlp.data.formats.conll import ConllSource

    if field not in parser.finds:
        raise ValueError(f"--field is {field}; this system finds {', '.join(parser.finds)}.")
    if sentence.graph is None or field == "graph":
        return sentence
    graph = sentence.graph
    joined = [files.join[field] for files in parser.config.data.sets.values() if field in files.join]
    if joined and isinstance(sentence.source, ConllSource):
        graph, _ = enhanced_graph(sentence, joined[0].relations)
    return sentence.put("graph", None).put(field, graph)


def _score_tests(run: Path, threads: int | None, device: str, precision: Precision, *, as_json: bool) -> None:
    from spigot_nlp.models import checkpoint
    from spigot_nlp.training import score_tests

    with use_threads(threads):
        scores = score_tests(
            run,
            torch_device(device),
            precision=precision,
            watch=lambda found, total: progress(found, "parsing", total=total),
        )
    if as_json:
        print_json({"run": run, "scores": scores})
    else:
        print_summary(scores, checkpoint.read_config(run))


def _check_fields(parser: "Parser", gold: Sequence[Sentence], run: Path, path: Path) -> None:
    """Complain before the work if the file has nothing that the system can be judged by."""
    from spigot_nlp.annotations import nouns_in

    if any(has(gold, name) for name in parser.finds):
        return
    kinds = [parser.annotations[name] for name in parser.finds]
    wanted = " or ".join(dict.fromkeys(kind.nouns if kind.is_usual else f"{kind.name} {kind.nouns}" for kind in kinds))
    column = ", or --graph if they are in its enhanced column" if "graph" in parser.finds and has(gold, "heads") else ""
    raise ValueError(f"{run} finds {wanted}, and {path} has {nouns_in(gold)} only; give a file with {wanted}{column}.")
