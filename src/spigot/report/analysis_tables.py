"""What differs between two systems, as the tables of a report (§5, Table 3)."""

from collections.abc import Iterator

from spigot.evaluation.analysis import Analysis, Paired
from spigot.evaluation.changes import LabelChanges
from spigot.evaluation.heads import HeadChanges
from spigot.report.page import Cell, Table, TableRow

_GROUPS = {"all": "all", "same": "SAME", "different": "DIFF"}
_KINDS = {
    "to_semantic_head": "(a) the new head is a semantic head of the word",
    "to_semantic_modifier": "(b) the new head is a semantic modifier of the word",
    "from_semantic_modifier": "(c) the old head was a semantic modifier of the word",
    "any": "at least one of them",
}
_BY = {"distance": "distance", "role": "role", "length": "length of the sentence"}
_ROLES = 12  # rows of a breakdown by role; the rest is rare


def analysis_tables(analysis: Analysis, first: str, second: str) -> Iterator[Table]:
    """The analysis of one system against another, table by table.

    Args:
        analysis: What was found out.
        first: The name of system A.
        second: The name of system B.

    Example:
        >>> from spigot.data.sentence import Sentence
        >>> from spigot.evaluation.analysis import analyse
        >>> gold, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> tables = list(analysis_tables(analyse([gold], [gold], [other]), "Pipeline", "STE"))
        >>> [row.name for row in tables[0].rows]
        ['all · Pipeline', 'all · STE', 'DIFF · Pipeline', 'DIFF · STE']
    """
    yield _split(analysis, first, second)
    if analysis.heads is not None and analysis.heads.changed:
        yield _head_kinds(analysis.heads)
    if analysis.labels is not None:
        yield from _flips(analysis.labels, first, second)
    if analysis.graphs is not None:
        graphs = analysis.graphs
        cells = [graphs.changed, graphs.kept, graphs.relabelled, graphs.added, graphs.removed]
        yield Table(
            ["", "sentences changed", "arcs kept", "relabelled", "added", "removed", "changes a sentence"],
            [TableRow("graphs", [*(Cell(f"{n:,}") for n in cells), Cell(f"{graphs.per_sentence:.2f}")])],
            "How the graphs differ",
        )
    yield from _breakdowns(analysis, first, second)


def _split(analysis: Analysis, first: str, second: str) -> Table:
    names = list(dict.fromkeys(name for group in analysis.groups for name in group.scores))
    rows = []
    for group in analysis.groups:
        if not group.sentences:
            continue
        for system, side in ((first, "a"), (second, "b")):
            cells = [Cell(f"{group.sentences:,}")]
            cells += [_score(group.scores.get(name), side) for name in names]
            rows.append(TableRow(f"{_GROUPS[group.name]} · {system}", cells, aside=side == "a"))
    kind = {"trees": "trees", "graphs": "graphs", None: "structures"}[analysis.split]
    note = (
        f"SAME: the sentences for which both systems have the same {kind} inside; DIFF: the others. Small numbers: "
        "difference to the system compared with, with its 95 % interval (paired bootstrap over sentences); bold where "
        "the interval leaves out 0."
    )
    return Table(["", "sentences", *names], rows, f"{second} against {first}", note, stacked=True)


def _score(paired: Paired | None, side: str) -> Cell:
    if paired is None:
        return Cell("–")
    if side == "a":
        return Cell(f"{100 * paired.a:.2f}")
    detail = f"{_signed(paired.difference)} ({_signed(paired.low)} to {_signed(paired.high)})"
    return Cell(f"{100 * paired.b:.2f}", detail, best=paired.low > 0 or paired.high < 0)


def _signed(share: float, digits: int = 2) -> str:
    text = f"{100 * share:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]  # what is rounded to zero has no sign


def _head_kinds(heads: HeadChanges) -> Table:
    rows = []
    for field, name in _KINDS.items():
        kind = getattr(heads, field)
        shares = (kind.share, kind.chance, kind.reverse)
        rows.append(TableRow(name, [Cell(f"{kind.count:,}"), *(Cell(f"{100 * share:.1f}") for share in shares)]))
    judged = "" if heads.judged == heads.changed else f", {heads.judged:,} of them in sentences with a graph"
    outcome = ""
    if heads.wrong_to_right is not None:
        outcome = (
            f" {heads.wrong_to_right:,} went from wrong to right, {heads.right_to_wrong:,} from right to wrong, "
            f"{heads.wrong_to_wrong:,} from one wrong head to another."
        )
    whose = "the right" if heads.against == "gold" else "the predicted"
    note = (
        f"{heads.changed:,} of {heads.words:,} words have another head, in {heads.sentences:,} sentences{judged}."
        f"{outcome} Shares in per cent of these changes, judged by {whose} graphs. By chance: both heads drawn at "
        "random; backwards: the share if the two systems changed places."
    )
    return Table(["", "changes", "share", "by chance", "backwards"], rows, "Kinds of head change", note)


def _flips(labels: LabelChanges, first: str, second: str) -> Iterator[Table]:
    counts = (labels.flipped, labels.wrong_to_right, labels.right_to_wrong, labels.wrong_to_wrong)
    yield Table(
        ["", "flipped", "wrong to right", "right to wrong", "wrong to wrong"],
        [TableRow("classes", [Cell(f"{count:,}") for count in counts])],
        "How the classes differ",
    )
    if labels.table:
        rows = [
            TableRow(
                f"{labels.structure or 'structure'} {'changed' if cell.changed else 'the same'}, "
                f"class {'flipped' if cell.flipped else 'kept'}",
                [Cell(f"{cell.sentences:,}"), _share(cell.a), _share(cell.b)],
            )
            for cell in labels.table
        ]
        yield Table(["", "sentences", f"accuracy {first}", f"accuracy {second}"], rows, "Did the structure matter?")


def _share(value: float | None) -> Cell:
    return Cell("–" if value is None else f"{100 * value:.1f}")


def _breakdowns(analysis: Analysis, first: str, second: str) -> Iterator[Table]:
    for part in analysis.breakdowns:
        rows = [
            TableRow(
                row.name,
                [
                    Cell(f"{row.items:,}"),
                    Cell(f"{100 * row.a:.1f}"),
                    Cell(f"{100 * row.b:.1f}"),
                    Cell(_signed(row.difference, 1)),
                ],
            )
            for row in part.rows[:_ROLES]
        ]
        more = f"The {_ROLES} most frequent of {len(part.rows)}." if len(part.rows) > _ROLES else ""
        title = f"{part.measure} by {_BY[part.by]}"
        yield Table(["", part.items, first, second, "difference"], rows, title, more, narrow=True)
