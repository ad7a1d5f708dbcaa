"""Documents as other libraries have them; each is imported when it is asked for."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spigot.documents.document import Doc


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
    for number, sentence in enumerate(doc, 1):
        for token in sentence:
            names = ("text", "start", "end", "lemma", "tag", "upos")
            graph.add_node((number, token.index), **{name: getattr(token, name) for name in names})
        for token in sentence:
            if token.head is not None:
                edge = (number, token.head.index), (number, token.index)
                graph.add_edge(*edge, key="tree", label=token.relation or "")
            for role, argument in token.arguments:
                graph.add_edge((number, token.index), (number, argument.index), key=f"graph {role}", label=role)
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
            "arguments": [(role, argument.index) for role, argument in token.arguments],
        }
        for number, sentence in enumerate(doc, 1)
        for token in sentence
    ]
    columns = ("sentence", "word", "text", "start", "end", "lemma", "upos", "tag", "head", "relation", "arguments")
    return pandas.DataFrame(rows, columns=list(columns))


def to_spacy(doc: "Doc", vocab: Any) -> Any:
    """A document of spaCy; see `Doc.to_spacy`."""
    tokens = needed("spacy.tokens", "to_spacy")
    words = doc.tokens
    first = {id(sentence[0]): True for sentence in doc if len(sentence)}
    options: dict[str, Any] = {"sent_starts": [id(token) in first for token in words]}
    for option, name in (("tags", "tag"), ("pos", "upos"), ("lemmas", "lemma")):
        values = [getattr(token, name) for token in words]
        if words and all(value is not None for value in values):
            options[option] = values
    if words and all(sentence.tree is not None for sentence in doc):
        place = {id(token): k for k, token in enumerate(words)}
        options["heads"] = [place[id(token.head or token)] for token in words]
        options["deps"] = ["ROOT" if token.head is None else token.relation or "dep" for token in words]
    follows = [token.end for token in words]
    spaces = [doc.text[end : end + 1].isspace() for end in follows]
    made = tokens.Doc(vocab, words=[token.text for token in words], spaces=spaces, **options)
    made.user_data["graphs"] = [sentence.graph for sentence in doc]
    return made
