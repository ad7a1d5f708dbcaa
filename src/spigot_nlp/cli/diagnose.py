"""`spigot diagnose`: whether the structures of a trained system are more than trivial."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spigot_nlp.cli.answers import Enhanced, dev_sentences, read_answers
from spigot_nlp.cli.console import AsJson, Flag, FormatName, Skipped, percent, print_json, print_table, progress
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.evaluation.induced import Field, Induced
    from spigot_nlp.models.parser import Parser

NAMES = {
    "answer": "this run",
    "left": "left-branching",
    "right": "right-branching",
    "flat": "flat",
    "random": "random",
    "gold": "gold",
    "parser": "the other parser",
}
"""What each list of structures is called in tables."""

NOUNS = {"heads": "trees", "graph": "graphs"}
"""The structures that can be held against trivial ones."""


@dataclass(frozen=True)
class Certainty:
    """How sure a parser is of its trees, in bits a word.

    Attributes:
        entropy: The mean entropy of the head of a word, see `spigot_nlp.models.inspection.head_entropy`.
        most: What it would be if every head were as likely as any other.
    """

    entropy: float
    most: float


def diagnose(
    run: Path,
    file: Path | None = None,
    /,
    *,
    parser: Path | None = None,
    graph: Enhanced = False,
    seed: int = 0,
    threads: int | None = None,
    format: FormatName = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Describe the trees or graphs of a trained system beside trivial ones: are they more than that?

    Structures that were learned without any right ones to learn from may turn out to be chains, or noise. The tables
    hold them against left- and right-branching chains, flat and random structures, against the right ones where the
    file has them, and against those of another parser (--parser). Structures that length and place alone predict, or
    that agree with the right ones no better than a trivial list does, have found nothing.

    Parameters
    ----------
    run
        The folder that spigot train made, or the name of a model that comes with spigot.
    file
        The sentences to look at; by default those of the run's own development set.
    parser
        A second run, to compare with: one whose parser was trained on right trees or graphs, say.
    graph
        The enhanced column of CoNLL-U holds the right graphs.
    seed
        Of the random structures.
    threads
        How many threads torch may use; by default one for each core, up to four.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    as_json
        Print the numbers as JSON instead of tables.
    """
    from spigot_nlp.evaluation import describe
    from spigot_nlp.models import Parser

    system = Parser.load(run, precision="float32")
    field = _field(system, run)
    other = None if parser is None else Parser.load(parser, precision="float32")
    if other is not None and field not in other.gives:
        raise ValueError(
            f"{parser} finds no {NOUNS[field]}, and {run} finds nothing else; give a --parser that does the same."
        )
    skipped = Skipped()
    tagged = file is None
    if file is None:
        sentences = _dev_sentences(system, field, run)
    else:
        sentences = read_answers(file, format, enhanced=graph, skip_bad=skipped if skip_bad else None)
        if not sentences:
            raise ValueError(f"{file} has no sentences.")
    with use_threads(threads):
        answer = _parsed(system, sentences, tagged=tagged)
        references = {} if other is None else {"parser": _parsed(other, sentences)}
        certainty = _certainty(system, sentences, tagged=tagged) if "heads" in system.finds else None
    known = all(sentence.get(field) is not None for sentence in sentences)
    induced = describe(answer, sentences if known else None, references, seed=seed, field=field)
    changes = changes_in(run)
    if as_json:
        print_json({"run": run, "file": file, "structures": induced, "changed": changes, "certainty": certainty})
    else:
        _print_induced(induced, "dev" if file is None else str(file))
        for line in (*_change_lines(changes), *_certainty_lines(certainty)):
            print(line)
    skipped.report()


def _field(parser: "Parser", run: Path) -> "Field":
    """The structures to look at: those that the end model reads, or else those that it finds."""
    if parser.reads_gold:
        names = " and ".join(NOUNS.get(name, name) for name in parser.reads_gold)
        raise ValueError(
            f"{run} reads the right {names} and has no structures of its own; give a run that has a parser."
        )
    for field in ("heads", "graph"):
        if field in parser.gives:
            return field
    raise ValueError(
        f"{run} has no structures inside, its system is {parser.config.system}; give a run that has a parser."
    )


def _dev_sentences(parser: "Parser", field: "Field", run: Path) -> list[Sentence]:
    """The development set of the last stage, or, where that has structures itself, of those in question."""
    stage = parser.stage_of(field)
    structured = parser.end.arc_labels is not None and stage is not None and not stage.settings.latent
    data = parser.config.data_of(stage.name if structured and stage is not None else parser.config.end)
    return dev_sentences(parser, data, run)


def _parsed(parser: "Parser", sentences: Sequence[Sentence], *, tagged: bool = False) -> list[Sentence]:
    return list(progress(parser.pipe(sentences, tagged=tagged), "parsing", total=len(sentences)))


def _certainty(parser: "Parser", sentences: Sequence[Sentence], *, tagged: bool) -> Certainty:
    from spigot_nlp.models.inspection import head_entropy

    words = sum(map(len, sentences))
    most = sum(len(sentence) * math.log2(len(sentence)) for sentence in sentences if len(sentence)) / max(words, 1)
    return Certainty(head_entropy(parser, sentences, tagged=tagged), most)


def changes_in(run: Path) -> list[float]:
    """How much of the structures of the development sentences changed from each epoch of a training to the next.

    Args:
        run: The run folder.

    Returns:
        Shares, from 0 to 1, of all epochs after the first; none where the training kept no account of it.

    Example:
        >>> import tempfile
        >>> run = Path(tempfile.mkdtemp())
        >>> _ = (run / "steps.jsonl").write_text('{"dev": null}\\n{"dev": {"accuracy": 50.0, "changed": 25.0}}\\n')
        >>> changes_in(run)
        [0.25]
    """
    from spigot_nlp.models.checkpoint import STEPS
    from spigot_nlp.training.development import CHANGED

    try:
        lines = (run / STEPS).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            dev: dict[str, Any] = json.loads(line).get("dev") or {}
        except ValueError:  # a line cut short by a crash
            continue
        if CHANGED in dev:
            found.append(dev[CHANGED] / 100)
    return found


def _print_induced(induced: "Induced", where: str) -> None:
    profiles = {"answer": induced.answer, **induced.others}
    kind = NOUNS[induced.field].capitalize()
    print_table(
        f"{kind} of {where}: {induced.sentences} sentences, {induced.words} words; agreement with each other, per cent",
        ["", *(NAMES[name] for name in profiles)],
        [
            [
                NAMES[name],
                *("" if other == name else percent(profile.agreement[other]) for other in profiles),
            ]
            for name, profile in profiles.items()
        ],
    )
    shares = ("predictable", "distinct", "left", "right", "flat")
    numbers = ("depth", "arc_length", "entropy", "arcs_per_word")
    columns = ["predictable %", "distinct %", "left %", "right %", "flat %"]
    print_table(
        "What they look like",
        ["", *columns, "depth", "arc length", "entropy", "arcs a word"],
        [
            [
                NAMES[name],
                *(percent(getattr(profile, share)) for share in shares),
                *(f"{getattr(profile, number):.2f}" for number in numbers),
            ]
            for name, profile in profiles.items()
        ],
    )


def _change_lines(changes: Sequence[float]) -> list[str]:
    return [f"Changed from epoch to epoch in training, per cent: {', '.join(map(percent, changes))}"] if changes else []


def _certainty_lines(certainty: Certainty | None) -> list[str]:
    if certainty is None:
        return []
    return [
        "Entropy of the head of a word under the parser's own scores, in bits: "
        f"{certainty.entropy:.2f}; {certainty.most:.2f} if every head were as likely as any other"
    ]
