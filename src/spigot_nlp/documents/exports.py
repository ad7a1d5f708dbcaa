"""Documents as other libraries have them; each is imported when it is asked for."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spigot_nlp.documents.document import Doc


def needed(name: str, what: str) -> ModuleType:
    """A library that spigot does without, unless it is asked for.

    Raises:
        ImportError: If it is not installed; it says how to install it.

    Example:
        >>> needed("abacus_of_antiquity", "to_abacus")
        Traceback (most recent call last):
        ImportError: to_abacus needs abacus_of_antiquity, which is not installed; pip install abacus_of_antiquity.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        package = name.partition(".")[0]
        raise ImportError(f"{what} needs {package}, which is not installed; pip install {package}.") from None


def to_networkx(doc: "Doc") -> Any:
    """A graph with a node for each word; see `Doc.to_networkx`."""
    graph = needed("networkx", "to_networkx").MultiDiGraph(text=doc.text)
    names = ("text", "start", "end", "lemma", "tag", "upos")
    for number, sentence in enumerate(doc, 1):
        for token in sentence:
            known = {name: value for name in names if (value := getattr(token, name)) is not None}  # files know no None
            graph.add_node((number, token.index), **known)
        for token in sentence:
            if token.head is not None:
                edge = (number, token.head.index), (number, token.index)
                graph.add_edge(*edge, key="tree", label=token.relation or "")
        for name, found in sentence.graphs.items():
            for arc in found.arcs:
                edge = (number, arc.predicate), (number, arc.argument)
                graph.add_edge(*edge, key=f"{name} {arc.role}", label=arc.role)
    return graph


def to_pandas(doc: "Doc") -> Any:
    """A table with a row for each word; see `Doc.to_pandas`."""
    pandas = needed("pandas", "to_pandas")
    rows = [
        {
            "sentence": number,
            "word": token.index,
            "text": token.text,
            "start": token.start,
            "end": token.end,
            "lemma": token.lemma,
            "upos": token.upos,
            "tag": token.tag,
            "head": None if sentence.tree is None else sentence.tree[token.index - 1],
            "relation": token.relation,
            "label": sentence.label,
            "arguments": [(role, argument.index) for role, argument in token.arguments],
        }
        for number, sentence in enumerate(doc, 1)
        for token in sentence
    ]
    columns = (
        "sentence",
        "word",
        "text",
        "start",
        "end",
        "lemma",
        "upos",
        "tag",
        "head",
        "relation",
        "label",
        "arguments",
    )
    whole = dict.fromkeys(("sentence", "word", "start", "end"), "int64")
    return pandas.DataFrame(rows, columns=list(columns)).astype({**whole, "head": "Int64"})  # which may be missing
