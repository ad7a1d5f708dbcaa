"""An analysis as tables on a terminal."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spigot.cli.console import counted, percent, print_table

if TYPE_CHECKING:
    from spigot.evaluation.analysis import Analysis, Group, Paired
    from spigot.evaluation.breakdowns import Breakdown
    from spigot.evaluation.changes import GraphChanges, LabelChanges
    from spigot.evaluation.examples import Answer, Example
    from spigot.evaluation.heads import HeadChanges

ROLES = 15
"""How many roles are printed, the most frequent or most changed ones; JSON has all of them."""

_MEASURES = {"UAS": "UAS", "LF": "LF", "accuracy": "Accuracy"}
_BY = {"distance": "distance", "role": "role", "length": "sentence length"}
_GAINS = {"arcs": "right minus wrong labelled arcs and tops", "heads": "words with the right head"}


def print_overview(first: str, results: "Mapping[str, Analysis]") -> None:
    """Print the scores of several systems: the trees inside them before and after, and what was made of them.

    Args:
        first: The system that all others are held against.
        results: The others, by name.

    Example:
        >>> from spigot.data.sentence import Sentence
        >>> from spigot.evaluation.analysis import analyse
        >>> gold, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> print_overview("pipeline", {"ste": analyse([gold], [gold], [other])})  # doctest: +ELLIPSIS
        All systems, per cent
        ...
    """
    scores = {name: result.groups[0].scores for name, result in results.items()}
    rows = []
    for measure in dict.fromkeys(measure for one in scores.values() for measure in one):
        known = {name: one[measure] for name, one in scores.items() if measure in one}
        rows.append([measure, _plain(first), percent(next(iter(known.values())).a), "", ""])
        rows += [
            ["", _plain(name), percent(score.b), _signed(score.difference), _range(score)]
            for name, score in known.items()
        ]
    if rows:
        print_table("All systems, per cent", ["", "system", "score", "difference", "95 % interval"], rows)


def print_analysis(analysis: "Analysis") -> None:
    """Print everything that there is to say about two systems.

    Args:
        analysis: What was found.

    Example:
        >>> from spigot.data.sentence import Sentence
        >>> from spigot.evaluation.analysis import analyse
        >>> gold, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> print_analysis(analyse([gold], [gold], [other]))  # doctest: +ELLIPSIS
        Sentences by whether their trees are the same, per cent
        ...
    """
    _print_groups(analysis)
    if analysis.heads is not None:
        _print_heads(analysis.heads)
    if analysis.graphs is not None:
        _print_graphs(analysis.graphs)
    if analysis.labels is not None:
        _print_labels(analysis.labels)
    for breakdown in analysis.breakdowns:
        _print_breakdown(breakdown)
    if analysis.gained is not None:
        unit = _GAINS[analysis.gained]
        _print_examples(f"Largest gains of B over A, in {unit}", analysis.gains)
        _print_examples(f"Largest losses of B against A, in {unit}", analysis.losses)
    _print_examples("Flipped classes", analysis.flips)
    _print_examples("Most changed structures", analysis.most_changed)


def _print_groups(analysis: "Analysis") -> None:
    measures = list(analysis.groups[0].scores)
    if not measures:
        return
    rows: list[list[str]] = []
    for group in analysis.groups:
        rows += _group_rows(group, measures)
    what = f"by whether their {analysis.split} are the same" if analysis.split else ""
    title = " ".join(filter(None, ("Sentences", what)))
    ignored = "" if analysis.punctuation else ", trees without punctuation"
    print_table(f"{title}{ignored}, per cent", ["", "sentences", "", *measures], rows)


def _group_rows(group: "Group", measures: Sequence[str]) -> list[list[str]]:
    scores = [group.scores.get(name) for name in measures]

    def cells(of: str) -> list[str]:
        texts = {
            "A": lambda score: percent(score.a),
            "B": lambda score: percent(score.b),
            "B - A": lambda score: _signed(score.difference),
            "95 %": _range,
        }
        return ["" if score is None else texts[of](score) for score in scores]

    rows = [["", "", of, *cells(of)] for of in ("A", "B", "B - A", "95 %")]
    rows[0][:2] = [group.name, f"{group.sentences:,}"]
    return rows


def _print_heads(changes: "HeadChanges") -> None:
    share = percent(changes.changed / changes.words) if changes.words else percent(0.0)
    outcomes = "."
    if changes.right_to_wrong is not None:
        outcomes = (
            f": {changes.wrong_to_right:,} put right, {changes.right_to_wrong:,} made wrong, "
            f"{changes.wrong_to_wrong:,} from one wrong head to another."
        )
    where = f"in {counted(changes.sentences, 'sentence')}"
    print(f"{changes.changed:,} of {counted(changes.words, 'head')} ({share} per cent) {where} differ{outcomes}\n")
    if changes.judged:
        kinds = {
            "(a) new head is a semantic head": changes.to_semantic_head,
            "(b) new head is a semantic modifier": changes.to_semantic_modifier,
            "(c) old head was a semantic modifier": changes.from_semantic_modifier,
            "(a), (b) or (c)": changes.any,
        }
        print_table(
            f"Head changes by the {changes.against} graphs, per cent of {counted(changes.judged, 'change')}",
            ["", "changes", "share", "at random", "other way"],
            [
                [name, f"{kind.count:,}", *map(percent, (kind.share, kind.chance, kind.reverse))]
                for name, kind in kinds.items()
            ],
        )
        print("At random: old and new head drawn at random. Other way: the share of the same kind from B to A.\n")


def _print_graphs(changes: "GraphChanges") -> None:
    print_table(
        f"Graphs: {changes.changed:,} of {counted(changes.sentences, 'sentence')} differ, "
        f"{changes.per_sentence:.2f} changes a sentence",
        ["", "A", "B", "same", "relabelled", "removed", "added"],
        [
            ["arcs", *_numbers(changes.arcs_a, changes.arcs_b, changes.kept, changes.relabelled),
             *_numbers(changes.removed, changes.added)],
            ["tops", "", "", "", "", *_numbers(changes.tops_removed, changes.tops_added)],
        ],
    )  # fmt: skip
    if changes.by_role:
        print_table(
            "Arcs of one system only, by role",
            ["", "only A", "only B"],
            [
                [_plain(role), *_numbers(one.only_a, one.only_b)]
                for role, one in itertools.islice(changes.by_role.items(), ROLES)
            ],
        )


def _print_labels(changes: "LabelChanges") -> None:
    if changes.table:
        print_table(
            f"Classes and {changes.structure}: {counted(changes.sentences, 'sentence')}, accuracy in per cent",
            [changes.structure or "", "class", "sentences", "A", "B"],
            [
                [
                    "changed" if cell.changed else "same",
                    "flipped" if cell.flipped else "same",
                    f"{cell.sentences:,}",
                    *("" if value is None else percent(value) for value in (cell.a, cell.b)),
                ]
                for cell in changes.table
            ],
        )
    print(
        f"{changes.flipped:,} of {counted(changes.sentences, 'sentence')} flipped their class: "
        f"{changes.wrong_to_right:,} put right, {changes.right_to_wrong:,} made wrong, "
        f"{changes.wrong_to_wrong:,} from one wrong class to another.\n"
    )


def _print_breakdown(breakdown: "Breakdown") -> None:
    rows = breakdown.rows
    shown = rows[:ROLES] if breakdown.by == "role" else rows
    rest = f", the {ROLES} most frequent of {len(rows)}" if len(shown) < len(rows) else ""
    print_table(
        f"{_MEASURES[breakdown.measure]} by {_BY[breakdown.by]}{rest}, per cent",
        ["", breakdown.items, "A", "B", "B - A"],
        [
            [_plain(row.name), f"{row.items:,}", percent(row.a), percent(row.b), _signed(row.difference)]
            for row in shown
        ],
    )


def _print_examples(title: str, examples: "Sequence[Example]") -> None:
    if not examples:
        return
    print(title)
    for example in examples:
        name = f"sentence {example.index + 1}" + (f" ({example.id})" if example.id else "")
        start = name if example.gain is None else f"{example.gain:+d}  {name}"
        print(f"\n  {_printable(start)}: {'; '.join(_facts(example))}")
        print(f"    {_printable(' '.join(example.words))}")
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


def _numbers(*values: int) -> list[str]:
    return [f"{value:,}" for value in values]


def _signed(difference: float) -> str:
    return f"{round(100 * difference, 2) + 0.0:+.2f}"  # no -0.00


def _range(score: "Paired") -> str:
    return f"{_signed(score.low)} to {_signed(score.high)}"


def _plain(text: str) -> str:
    """Text from outside, for a table: brackets are no markup."""
    from rich.markup import escape

    return escape(_printable(text))


def _printable(text: str) -> str:
    """Text from outside, without characters that would move the cursor or colour the screen."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
