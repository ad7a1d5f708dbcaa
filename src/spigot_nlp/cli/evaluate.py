"""`spigot evaluate`: a trained system against gold files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spigot_nlp.cli.answers import Enhanced, check_values, has, parsed, read_gold
from spigot_nlp.cli.console import (
    AsJson,
    Device,
    Flag,
    FormatName,
    Precision,
    Skipped,
    print_json,
    progress,
    torch_device,
)
from spigot_nlp.cli.raw import check_raw, evaluate_raw, plain_raw, print_raw
from spigot_nlp.cli.score import Scored, Scores, intervals_of, plain_scores, print_scores, score_files
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.data.sentence import Sentence
    from spigot_nlp.models.parser import Parser


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
    """Give gold files to a trained system and score what it finds: classes, trees, graphs, whatever a file has.

    Classes get accuracy; graphs get labelled and unlabelled precision, recall and F1, with and without tops; trees get
    attachment scores (UAS, and LAS where relations are found), with and without punctuation; all get 95 % confidence
    intervals by the bootstrap over sentences. Of systems that join graphs it is said for which share of the sentences
    the relaxation was integral, and the answer is proven to be optimal.

    With --raw the system gets the plain text of CoNLL-U files, and has to find sentences and words as well: precision,
    recall and F1 of tokens, sentences, words, tags, lemmas, UAS, LAS, CLAS and BLEX, as in the CoNLL 2018 shared task.

    Parameters
    ----------
    run
        The folder that spigot train made, or the name of a model that comes with spigot.
    files
        Gold files: CoNLL-X and CoNLL-U have trees, SDP has graphs, labelled text (.tsv) and sentiment trees (--format
        sst-binary) have classes, JSON lines have any of them.
    tests
        Score the run's own test sets, which its training left out (--no-tests), and keep that in the run folder as the
        training would have. In place of FILES.
    raw
        Give the system the text of the files, with nothing divided, tagged or parsed. They must be CoNLL-U.
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
        Print the numbers as JSON instead of tables.
    """
    from spigot_nlp.models import Parser
    from spigot_nlp.models.inspection import certificates

    others = {"--tests": tests, "--labels": labels, "--graph": graph, "--field": bool(field)}
    if raw:
        check_raw(files, format, others)
    if tests:
        if files:
            raise ValueError(f"--tests scores the run's own test sets; leave out {files[0]}, or leave out --tests.")
        _score_tests(run, threads, device, precision, as_json=as_json)
        return
    if not files:
        raise ValueError(
            "there is nothing to evaluate on; give one gold file or more after the run, or --tests for its own."
        )
    parser = Parser.load(run, device=torch_device(device), precision=precision)
    results = {}
    for path in files:
        skipped = Skipped()
        if raw:
            with use_threads(threads):
                found = evaluate_raw(parser, run, path, format, skipped if skip_bad else None)
            results[str(path)] = {"scores": plain_raw(found), "skipped": skipped.count}
            if not as_json:
                print(path)
                print_raw(found)
            skipped.report()
            continue
        gold = read_gold(path, format, enhanced=graph, skip_bad=skipped if skip_bad else None)
        gold = [_called(parser, sentence, field) for sentence in gold] if field else gold
        _check_fields(parser, gold, run, path)
        check_values(parser, gold, run=run, file=path, format=format)
        with use_threads(threads):
            predicted = parsed(parser, gold)
            sure = certificates(parser, gold)
        scores = {**_together(parser, gold, predicted), **_each(parser, gold, predicted)}
        bounds = intervals_of(gold, predicted, scores, samples=samples, seed=seed)
        results[str(path)] = {"scores": plain_scores(scores), "intervals": bounds, "skipped": skipped.count}
        if sure:
            results[str(path)]["decoding"] = sure
        if not as_json:
            print(path)
            print_scores(scores, bounds, every=labels)
            for stage, shares in sure.items():
                said = ", ".join(f"{what} {100 * share:.1f} %" for what, share in shares.items())
                print(f"Decoding of {stage}: {said} of {len(gold)} sentences.")
        skipped.report()
    if as_json:
        print_json(results)


def _called(parser: "Parser", sentence: "Sentence", field: str) -> "Sentence":
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


def _together(parser: "Parser", gold: "Sequence[Sentence]", predicted: "Sequence[Sentence]") -> Scores:
    """The scores of stages that find several annotations, of all of them together."""
    from dataclasses import asdict

    from spigot_nlp.training.judges import TOGETHER

    found: Scores = {}
    for annotation in parser.model.annotations.values():
        if sum(has(gold, one.name) for one in annotation.members) > 1:
            found[TOGETHER] = Scored(annotation, asdict(annotation.score(gold, predicted)))
    return found


def _each(parser: "Parser", gold: "Sequence[Sentence]", predicted: "Sequence[Sentence]") -> Scores:
    """The scores of each annotation; of several that a stage finds, those that only some sentences have are left out,
    since they are among the scores of all together."""
    members = {one.name for a in parser.model.annotations.values() if len(a.members) > 1 for one in a.members}
    some = [name for name in members if has(gold, name) and any(sentence.get(name) is None for sentence in gold)]
    for name in some:
        predicted = [sentence.put(name, None) for sentence in predicted]
    if some and not any(has(gold, name) for name in parser.finds if name not in some):
        return {}
    return score_files(gold, predicted, {name: a for name, a in parser.annotations.items() if name in parser.finds})


def _score_tests(run: Path, threads: int | None, device: str, precision: Precision, *, as_json: bool) -> None:
    from spigot_nlp.cli.train import print_run
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
        print_run(scores, checkpoint.read_config(run))


def _check_fields(parser: "Parser", gold: "Sequence[Sentence]", run: Path, path: Path) -> None:
    """Complain before the work if the file has nothing that the system can be judged by."""
    from spigot_nlp.annotations import nouns_in

    if any(has(gold, name) for name in parser.finds):
        return
    kinds = [parser.annotations[name] for name in parser.finds]
    wanted = " or ".join(dict.fromkeys(kind.nouns if kind.is_usual else f"{kind.name} {kind.nouns}" for kind in kinds))
    column = ", or --graph if they are in its enhanced column" if "graph" in parser.finds and has(gold, "heads") else ""
    raise ValueError(f"{run} finds {wanted}, and {path} has {nouns_in(gold)} only; give a file with {wanted}{column}.")
