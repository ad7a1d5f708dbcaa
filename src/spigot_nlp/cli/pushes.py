"""`spigot pushes`: what estimators send to the structures inside a trained system, and where it pushes them."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot_nlp.cli.answers import Enhanced, dev_sentences, read_answers
from spigot_nlp.cli.console import AsJson, Flag, FormatName, Skipped, percent, print_json, print_table, progress
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.models.accounts import Pushes
    from spigot_nlp.models.parser import Parser
    from spigot_nlp.wires.estimators import EstimatorSettings

OWN = "its own"
"""How the estimator that the system was trained with is called in tables."""


def pushes(
    run: Path,
    file: Path | None = None,
    /,
    *,
    estimators: Annotated[tuple[str, ...], cyclopts.Parameter(name=("--estimator", "-e"), negative="")] = (),
    sentences: int = 100,
    graph: Enhanced = False,
    threads: int | None = None,
    format: FormatName = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Say whom estimators push, and where, at the structures that a trained system has inside.

    An estimator turns the gradient of the end task into one of scores. On parts that are not in the structure it may
    push both ways, so that what is not meant cancels out, or one way only; then it fills graphs with arcs, whatever the
    sentence says. The table has, for each estimator, the sum of the absolute gradients of all parts, and how much of it
    pushes parts that are absent or present up or down. All estimators see the same losses at the same parameters, and
    no words or units are dropped.

    Parameters
    ----------
    run
        The folder that spigot train made: a system with a wire that a gradient passes.
    file
        Sentences with what the last stage learns from; by default those of the run's own development set.
    estimators
        A name, such as ste, or a table, such as '{ name = "lpgd", rho = 30.0 }'; as often as you like. By default the
        system's own.
    sentences
        How many to look at, from the first on; 0 for all.
    graph
        The enhanced column of CoNLL-U holds the right graphs.
    threads
        How many threads torch may use; by default one for each core, up to four.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    as_json
        Print the numbers as JSON instead of tables.
    """
    from spigot_nlp.models import checkpoint

    if sentences < 0:
        raise ValueError(f"--sentences is {sentences}; give how many to look at, or 0 for all.")
    parser = checkpoint.load(run)
    watched = {text: _settings(text) for text in estimators} or {OWN: None}
    skipped = Skipped()
    if file is None:
        given = dev_sentences(parser, parser.config.data_of(parser.config.end), run)
    else:
        given = read_answers(file, format, enhanced=graph, skip_bad=skipped if skip_bad else None)
    given = [sentence for sentence in given if _teaches(parser, sentence)][: sentences or None]
    if not given:
        noun = parser.end.annotation.noun
        raise ValueError(f"{file or run} has no sentence with a {noun} that {parser.config.end} could learn from.")
    with use_threads(threads):
        found = _watched(parser, given, watched)
    if as_json:
        print_json({"run": run, "file": file, "sentences": len(given), "pushes": found})
    else:
        for wire in dict.fromkeys(wire for told in found.values() for wire in told):
            _print(wire, {name: told[wire] for name, told in found.items() if wire in told}, len(given))
    skipped.report()


def _teaches(parser: "Parser", sentence: Sentence) -> bool:
    """Whether the last stage could learn from a sentence, and knows what it says."""
    end = parser.end
    return end.usable(sentence) and end.name in parser.encoded(sentence, {end.name: end.annotation}).gold


def _settings(text: str) -> "EstimatorSettings":
    """An estimator by its name, or by its table in TOML."""
    from spigot_nlp.wires.estimators import estimator_settings

    try:
        table = tomllib.loads(f"table = {text}")["table"] if text.lstrip().startswith("{") else text
    except tomllib.TOMLDecodeError as error:
        example = '{ name = "lpgd", rho = 30.0 }'
        raise ValueError(f"--estimator {text!r} is no table of TOML ({error}); write one such as {example}.") from None
    return estimator_settings(table)


def _watched(
    parser: "Parser", sentences: Sequence[Sentence], estimators: "Mapping[str, EstimatorSettings | None]"
) -> "dict[str, dict[str, Pushes]]":
    """What each estimator does on each wire, summed over the sentences."""
    from spigot_nlp.models.accounts import pushes as pushed
    from spigot_nlp.wires.estimators import build_estimator

    model, seed = parser.model, parser.config.seed
    wires = [wire for wire in model.all_wires() if model.stages[wire.source].learns]
    found = {}
    for name, settings in estimators.items():
        instead = settings and {
            wire.name: build_estimator(settings, model.stages[wire.source].structure, seed) for wire in wires
        }
        found[name] = pushed(parser, progress(sentences, name, total=len(sentences)), instead)
    return found


def _print(wire: str, told: "Mapping[str, Pushes]", sentences: int) -> None:
    first = next(iter(told.values()))
    print_table(
        f"{wire}: {sentences} sentences, {first.present} parts in the structures and {first.absent} not; "
        "shares of what is sent, per cent",
        ["", "sent in all", "absent, up", "absent, down", "present, up", "present, down"],
        [[name, f"{pushed.total:.4g}", *map(percent, pushed.shares().values())] for name, pushed in told.items()],
    )
