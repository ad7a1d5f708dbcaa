"""An analysis on a terminal: its tables, and the sentences that it picked out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spigot_nlp.cli.console import counted, percent, printable, show_table
from spigot_nlp.tables import plain_table

if TYPE_CHECKING:
    from spigot_nlp.evaluation.analysis import Analysis, Paired
    from spigot_nlp.evaluation.examples import Answer, Example

_GAINS = {"arcs": "right minus wrong labelled arcs and tops", "heads": "words with the right head"}


def print_overview(first: str, results: "Mapping[str, Analysis]") -> None:
    """Print the scores of several systems: the trees inside them before and after, and what was made of them.

    Args:
        first: The system that all others are held against.
        results: The others, by name.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
        >>> gold, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> print_overview("pipeline", {"ste": analyse([gold], [gold], [other])})  # doctest: +ELLIPSIS
        All systems, per cent
        ...
    """
    scores = {name: result.groups[0].scores for name, result in results.items()}
    rows = []
    for measure in dict.fromkeys(measure for one in scores.values() for measure in one):
        known = {name: one[measure] for name, one in scores.items() if measure in one}
        rows.append([measure, first, percent(next(iter(known.values())).a), "", ""])
        rows += [
            ["", name, percent(score.b), _signed(score.difference), _range(score)] for name, score in known.items()
        ]
    if rows:
        show_table(plain_table("All systems, per cent", ["", "system", "score", "difference", "95 % interval"], rows))


def print_analysis(analysis: "Analysis") -> None:
    """Print everything that there is to say about two systems.

    Args:
        analysis: What was found.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
        >>> gold, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> print_analysis(analyse([gold], [gold], [other]))  # doctest: +ELLIPSIS
        Sentences by whether their trees are the same, per cent
        ...
    """
    from spigot_nlp.evaluation.analysis_tables import analysis_tables

    for table in analysis_tables(analysis, "A", "B"):
        show_table(table)
    if analysis.gained is not None:
        unit = _GAINS[analysis.gained]
        _print_examples(f"Largest gains of B over A, in {unit}", analysis.gains)
        _print_examples(f"Largest losses of B against A, in {unit}", analysis.losses)
    _print_examples("Flipped classes", analysis.flips)
    _print_examples("Most changed structures", analysis.most_changed)


def _print_examples(title: str, examples: "Sequence[Example]") -> None:
    if not examples:
        return
    print(title)
    for example in examples:
        name = f"sentence {example.index + 1}" + (f" ({example.id})" if example.id else "")
        start = name if example.gain is None else f"{example.gain:+d}  {name}"
        print(f"\n  {printable(start)}: {'; '.join(_facts(example))}")
        print(f"    {printable(' '.join(example.words))}")
    print()


def _facts(example: "Example") -> Iterable[str]:
    for side, answer in (("A", example.a), ("B", example.b)):
        if facts := list(_answer_facts(answer)):
            yield f"{side} {', '.join(facts)}"
    if example.label is not None:
        yield f"gold class {example.label}"
    if example.heads_changed is not None:
        yield counted(example.heads_changed, "different head")
    if example.arcs_changed is not None:
        yield counted(example.arcs_changed, "different arc")


def _answer_facts(answer: "Answer") -> Iterable[str]:
    if answer.correct is not None:
        yield f"{answer.correct} right {answer.wrong} wrong {answer.missed} missed"
    if answer.heads_right is not None:
        yield f"{counted(answer.heads_right, 'head')} right"
    if answer.label is not None:
        yield f"class {answer.label}" + ("" if answer.probability is None else f" ({percent(answer.probability)} %)")


def _signed(difference: float) -> str:
    return f"{round(100 * difference, 2) + 0.0:+.2f}"  # no -0.00


def _range(score: "Paired") -> str:
    return f"{_signed(score.low)} to {_signed(score.high)}"
