"""What changed in labelled trees as tables: how many heads and relations, which relations, and in which sentences."""

import textwrap
from collections.abc import Iterator, Sequence

from spigot_nlp.evaluation.examples import Example
from spigot_nlp.evaluation.relation_changes import RelationChanges
from spigot_nlp.tables import Table, plain_table

_PAIRS = 12  # changes of one relation into another that are shown; the rest is rare
_WIDTH = 40  # letters of a sentence that stands in a table


def relation_tables(changes: RelationChanges, first: str, second: str) -> Iterator[Table]:
    """What became of heads and relations, and which relation became which.

    Args:
        changes: What was found out.
        first: The name of system A.
        second: The name of system B.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
        >>> gold = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))
        >>> other = Sentence(("Rain", "fell"), heads=(2, 0), relations=("obj", "root"))
        >>> changes = analyse([gold], [other], [gold]).relations
        >>> tables = list(relation_tables(changes, "pipeline", "ste"))
        >>> tables[0].title, [row.name for row in tables[1].rows]
        ('Trees: 1 of 1 sentences differ, 1 of them in relations alone', ['obj → nsubj'])
    """
    rows = []
    for name in ("heads", "relations", "either"):
        part = getattr(changes, name)
        outcomes = (part.wrong_to_right, part.right_to_wrong, part.wrong_to_wrong)
        rows.append([name, f"{part.changed:,}", *map(_count, outcomes)])
    yield plain_table(
        f"Trees: {changes.differing:,} of {changes.sentences:,} sentences differ, "
        f"{changes.relabelled:,} of them in relations alone",
        ["", "differ", "put right", "made wrong", "wrong in both"],
        rows,
        f"Of {changes.words:,} words. Either: head, relation or both differ; right where both are.",
    )
    if changes.by_pair:
        rows = []
        for pair in changes.by_pair[:_PAIRS]:
            numbers = (pair.words, pair.same_head, pair.right_a, pair.right_b)
            rows.append([f"{pair.before} → {pair.after}", *map(_count, numbers)])
        shown = f"The {_PAIRS} most frequent of {len(changes.by_pair):,}. " if len(changes.by_pair) > _PAIRS else ""
        yield plain_table(
            f"Relations of {first} that are others in {second}",
            ["", "words", "same head", f"right in {first}", f"right in {second}"],
            rows,
            f"{shown}Right: the relation is, whatever the head.",
        )


def labelled_examples(examples: Sequence[Example], first: str, second: str) -> Table:
    """The sentences that gained and lost most words with the right head and relation.

    Args:
        examples: The sentences.
        first: The name of system A.
        second: The name of system B.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
        >>> gold = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))
        >>> other = Sentence(("Rain", "fell"), heads=(2, 0), relations=("obj", "root"))
        >>> (row,) = labelled_examples(analyse([gold], [gold], [other]).labelled_losses, "pipeline", "ste").rows
        >>> row.name, [cell.text for cell in row.cells]
        ('1: Rain fell', ['−1', '2', '1', '0', '1'])
    """
    rows = []
    for example in examples:
        numbers = (example.a.labelled_right, example.b.labelled_right, example.heads_changed, example.relations_changed)
        words = textwrap.shorten(" ".join(example.words), _WIDTH, placeholder=" …")
        gain = f"{example.gain or 0:+,}".replace("-", "−")
        rows.append([f"{example.index + 1}: {words}", gain, *map(_count, numbers)])
    return plain_table(
        "Sentences that gained and lost most, in words with the right head and relation",
        ["", "gain", f"right in {first}", f"right in {second}", "other heads", "other relations"],
        rows,
    )


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"
