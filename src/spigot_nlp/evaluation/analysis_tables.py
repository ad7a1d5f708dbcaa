"""What differs between two systems, as tables (§5, Table 3): those of `spigot analyse` and of reports."""

from collections.abc import Iterator

from spigot_nlp.evaluation.analysis import Analysis, Paired
from spigot_nlp.evaluation.changes import GraphChanges, LabelChanges
from spigot_nlp.evaluation.heads import HeadChanges
from spigot_nlp.evaluation.relation_tables import labelled_examples, relation_tables
from spigot_nlp.tables import Cell, Table, TableRow, plain_table

_KINDS = {
    "to_semantic_head": "(a) new head is a semantic head",
    "to_semantic_modifier": "(b) new head is a semantic modifier",
    "from_semantic_modifier": "(c) old head was a semantic modifier",
    "any": "(a), (b) or (c)",
}
_MEASURES = {"UAS": "UAS", "LAS": "LAS", "LF": "LF", "accuracy": "Accuracy"}
_BY = {"distance": "distance", "relation": "relation", "role": "role", "length": "sentence length"}
_ABOUT = {
    ("LAS", "relation"): "F1 of words with this relation, right if their head is too.",
    ("UAS", "relation"): "Share of the words that should have this relation whose head is right.",
}
_ROLES = 12  # rows of a breakdown by role or relation; the rest is rare


def analysis_tables(analysis: Analysis, first: str, second: str) -> Iterator[Table]:
    """The analysis of one system against another, table by table.

    Args:
        analysis: What was found out.
        first: The name of system A.
        second: The name of system B.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
        >>> gold, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> tables = list(analysis_tables(analyse([gold], [gold], [other]), "pipeline", "ste"))
        >>> [row.name for row in tables[0].rows]
        ['all · pipeline', 'all · ste', 'different · pipeline', 'different · ste']
    """
    yield _split(analysis, first, second)
    relations = analysis.relations
    if analysis.heads is not None and analysis.heads.changed and (analysis.heads.judged or relations is None):
        yield _head_kinds(analysis.heads, first, second)
    if relations is not None and relations.differing:
        yield from relation_tables(relations, first, second)
        if examples := [*analysis.labelled_gains, *analysis.labelled_losses]:
            yield labelled_examples(examples, first, second)
    if analysis.labels is not None:
        yield from _flips(analysis.labels, first, second)
    if analysis.graphs is not None:
        yield from _graphs(analysis.graphs, first, second)
    yield from _breakdowns(analysis, first, second)


def _split(analysis: Analysis, first: str, second: str) -> Table:
    groups = [group for group in analysis.groups if group.sentences]
    names = list(dict.fromkeys(name for group in groups for name in group.scores))
    rows = []
    for group in groups:
        for system, side in ((first, "a"), (second, "b")):
            cells = [Cell(f"{group.sentences:,}")]
            cells += [_score(group.scores.get(name), side) for name in names]
            rows.append(TableRow(f"{group.name} · {system}", cells, aside=side == "a"))
    by = f" by whether their {analysis.split} are the same" if analysis.split else ""
    told = "relabelled: the same heads and other relations; " if any(g.name == "relabelled" for g in groups) else ""
    about = (
        f"Same: the sentences for which both systems have the same {analysis.split} inside; {told}"
        "different: the others. "
        if analysis.split
        else ""
    )
    note = (
        f"{about}Small numbers: difference to {first}, with its 95 % interval (paired bootstrap over sentences); bold "
        "where the interval leaves out 0."
    )
    return Table(["", "sentences", *names], rows, f"Sentences{by}, per cent", note, stacked=True)


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


def _head_kinds(heads: HeadChanges, first: str, second: str) -> Table:
    if not heads.judged:  # nothing changed, or there are no graphs to judge it by
        counts = {"sentences": heads.sentences, "heads": heads.words, "differ": heads.changed}
        if heads.wrong_to_right is not None:
            counts |= {"put right": heads.wrong_to_right, "made wrong": heads.right_to_wrong}
            counts |= {"from one wrong head to another": heads.wrong_to_wrong}
        return plain_table("Head changes", ["", *counts], [[second, *(f"{count:,}" for count in counts.values())]])
    rows = []
    for field, name in _KINDS.items():
        kind = getattr(heads, field)
        shares = (kind.share, kind.chance, kind.reverse)
        rows.append(TableRow(name, [Cell(f"{kind.count:,}"), *(Cell(f"{100 * share:.1f}") for share in shares)]))
    outcome = "."
    if heads.wrong_to_right is not None:
        outcome = (
            f": {heads.wrong_to_right:,} put right, {heads.right_to_wrong:,} made wrong, {heads.wrong_to_wrong:,} from "
            "one wrong head to another."
        )
    note = (
        f"{heads.changed:,} of {heads.words:,} heads in {heads.sentences:,} sentences differ{outcome} At random: old "
        f"and new head drawn at random. Other way: the share of the same kind from {second} to {first}."
    )
    title = f"Head changes by the {heads.against} graphs, per cent of {heads.judged:,} changes"
    return Table(["", "changes", "share", "at random", "other way"], rows, title, note)


def _graphs(graphs: GraphChanges, first: str, second: str) -> Iterator[Table]:
    arcs = (graphs.arcs_a, graphs.arcs_b, graphs.kept, graphs.relabelled, graphs.removed, graphs.added)
    tops = [f"{number:,}" for number in (graphs.tops_removed, graphs.tops_added)]
    yield plain_table(
        f"Graphs: {graphs.changed:,} of {graphs.sentences:,} sentences differ, "
        f"{graphs.per_sentence:.2f} changes a sentence",
        ["", first, second, "same", "relabelled", "removed", "added"],
        [["arcs", *(f"{number:,}" for number in arcs)], ["tops", "", "", "", "", *tops]],
    )
    roles = list(graphs.by_role.items())[:_ROLES]
    rows = [[role, f"{one.only_a:,}", f"{one.only_b:,}"] for role, one in roles]
    if rows:
        yield plain_table("Arcs of one system only, by role", ["", f"only {first}", f"only {second}"], rows)


def _flips(labels: LabelChanges, first: str, second: str) -> Iterator[Table]:
    if not labels.table:
        counts = (labels.flipped, labels.wrong_to_right, labels.right_to_wrong, labels.wrong_to_wrong)
        heads = ["", "flipped", "put right", "made wrong", "from one wrong class to another"]
        rows = [TableRow("classes", [Cell(f"{count:,}") for count in counts])]
        yield Table(heads, rows, f"Classes: {labels.sentences:,} sentences")
        return
    said = (
        f"{labels.flipped:,} of {labels.sentences:,} sentences flipped their class: {labels.wrong_to_right:,} put "
        f"right, {labels.right_to_wrong:,} made wrong, {labels.wrong_to_wrong:,} from one wrong class to another."
    )
    kind = labels.structure or ""
    rows = [
        TableRow(
            "changed" if cell.changed else "same",
            [
                Cell("flipped" if cell.flipped else "same"),
                Cell(f"{cell.sentences:,}"),
                _share(cell.a),
                _share(cell.b),
            ],
        )
        for cell in labels.table
    ]
    title = f"Classes and {kind}: {labels.sentences:,} sentences, accuracy in per cent"
    yield Table([kind, "class", "sentences", first, second], rows, title, said)


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
        note = " ".join(filter(None, (_ABOUT.get((part.measure, part.by), ""), more)))
        title = f"{_MEASURES[part.measure]} by {_BY[part.by]}, per cent"
        yield Table(["", part.items, first, second, "difference"], rows, title, note, narrow=True)
