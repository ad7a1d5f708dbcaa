"""Answers as rows of a table: a row for each sentence, and lists in it for its words."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spigot_nlp.data.sentence import COLUMNS, Graph, Sentence
from spigot_nlp.data.text.spacing import Spacing
from spigot_nlp.scale.documents import Placed

if TYPE_CHECKING:
    import pyarrow  # pyright: ignore[reportMissingImports]

    from spigot_nlp.models.parser import Parser

_USUAL = ("heads", "relations", "label", "probabilities")


def starts_of(placed: Placed) -> tuple[int, ...] | None:
    """Where each word of a sentence begins in the text of its document; `None` if there is no such text.

    Example:
        >>> sentence = Sentence(("It", "'s", "late"), source=Spacing("", ("", "  ", "")))
        >>> starts_of(Placed("note", sentence, 100, True))
        (100, 102, 106)
    """
    spacing = placed.sentence.source
    if placed.start is None or not isinstance(spacing, Spacing):
        return None
    starts, place = [], placed.start
    for form, space in zip(placed.sentence.forms, spacing.after, strict=True):
        starts.append(place)
        place += len(form) + len(space)
    return tuple(starts)


def row_of(
    placed: Placed, answer: Sentence, names: Sequence[str], classes: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """The row of a sentence.

    Args:
        placed: The sentence.
        answer: The same, with what was found in it.
        names: The annotations that answers have.
        classes: What the classes of sentences are called, by their numbers.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), id="note:0", heads=(2, 0))
        >>> row = row_of(Placed("note", sentence, 0, True), sentence, ["heads"])
        >>> row["document"], row["words"], row["heads"]
        ('note', ('Rain', 'fell'), (2, 0))
    """
    starts = starts_of(placed)
    row: dict[str, Any] = {
        "document": placed.document,
        "id": answer.id,
        "start": placed.start,
        "end": starts[-1] + len(answer.forms[-1]) if starts else None,
        "words": answer.forms,
        "starts": starts,
        "lemmas": answer.lemmas,
        "tags": answer.tags,
        "upos": answer.upos,
        "heads": answer.heads,
        "relations": answer.relations,
        "label": answer.label,
        "probabilities": answer.probabilities,
    }
    if "class" not in names:  # as an annotation may be called
        row["class"] = None if answer.label is None else (classes or {}).get(answer.label, str(answer.label))
    for name in names:
        value = answer.get(name)
        if name in row:
            continue
        if isinstance(value, Graph) or name == "graph":
            front = "" if name == "graph" else f"{name}_"
            graph = value or Graph()
            row[f"{front}arcs"] = [arc._asdict() for arc in graph.arcs]
            row[f"{front}tops"] = graph.tops
        else:
            row[name] = None if value is None else json.dumps(value, ensure_ascii=False)
    return row


def schema_of(parser: "Parser") -> "pyarrow.Schema":
    """The columns of a system's answers, which are the same in every shard.

    Args:
        parser: The system.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> parser = fresh(make_config({"stages": {"syntax": {"annotation": "trees"}}}), {"trees": [rain]})
        >>> schema_of(parser).field("heads").type  # doctest: +SKIP
        ListType(list<element: int32>)
    """
    try:
        import pyarrow as pa  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise ModuleNotFoundError("parquet needs pyarrow; install it with: pip install 'torch-spigot[ray]'") from None
    texts, places, numbers = pa.list_(pa.string()), pa.list_(pa.int64()), pa.list_(pa.int32())
    arc = pa.struct([("predicate", pa.int32()), ("argument", pa.int32()), ("role", pa.string())])
    fields: list[tuple[str, Any]] = [
        ("document", pa.string()),
        ("id", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("words", texts),
        ("starts", places),
        ("lemmas", texts),
        ("tags", texts),
        ("upos", texts),
        ("heads", numbers),
        ("relations", texts),
        ("label", pa.int32()),
        ("probabilities", pa.list_(pa.float32())),
    ]
    if "class" not in parser.annotations:
        fields.append(("class", pa.string()))
    for name, annotation in parser.annotations.items():
        if name in (*_USUAL, *COLUMNS):
            continue
        if type(annotation).name == "graph":
            front = "" if name == "graph" else f"{name}_"
            fields += [(f"{front}arcs", pa.list_(arc)), (f"{front}tops", numbers)]
        else:
            fields.append((name, pa.string()))
    return pa.schema(fields)
