"""Two annotations of the same text, as one."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

from spigot_nlp.data.formats.files import shown
from spigot_nlp.data.sentence import Sentence


def merge(trees: Iterable[Sentence], graphs: Iterable[Sentence]) -> Iterator[Sentence]:
    """Joins the same sentences from two files, trees in one and graphs in the other.

    Trees come from `trees` and graphs from `graphs`, and from the other one only where they are not there, so that
    a semantic graph takes the place of enhanced dependencies. The rest is that of `trees`, filled up from `graphs`.

    Args:
        trees: The sentences with their syntactic trees.
        graphs: The same sentences in the same order, with their graphs.

    Returns:
        The sentences with both, read as they are asked for.

    Raises:
        ValueError: The two differ in a word or in how many sentences they have.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> words = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> (both,) = merge([words], [Sentence(words.forms, graph=Graph.of([Arc(2, 1, "ARG1")]))])
        >>> both.heads, both.graph.predicates
        ((2, 0), (2,))
    """
    for number, (tree, graph) in enumerate(zip_longest(trees, graphs), 1):
        if tree is None or graph is None:
            longer, shorter = ("graphs", "trees") if tree is None else ("trees", "graphs")
            raise ValueError(
                f"the {shorter} end after {number - 1} sentences but the {longer} go on; "
                f"both must annotate the same sentences in the same order."
            )
        if tree.forms != graph.forms:
            raise ValueError(f"sentence {number}{_names(tree, graph)}: {_difference(tree, graph)}")
        yield replace(
            tree,
            lemmas=graph.lemmas if tree.lemmas is None else tree.lemmas,
            tags=graph.tags if tree.tags is None else tree.tags,
            upos=graph.upos if tree.upos is None else tree.upos,
            heads=graph.heads if tree.heads is None else tree.heads,
            relations=graph.relations if tree.heads is None else tree.relations,
            graph=tree.graph if graph.graph is None else graph.graph,
            label=graph.label if tree.label is None else tree.label,
            id=tree.id or graph.id,
        )


def _names(tree: Sentence, graph: Sentence) -> str:
    names = list(dict.fromkeys(name for name in (tree.id, graph.id) if name))
    return f" ({' and '.join(names)})" if names else ""


def _difference(tree: Sentence, graph: Sentence) -> str:
    for word, (first, second) in enumerate(zip(tree.forms, graph.forms, strict=False), 1):
        if first != second:
            given = f"{shown(first)} in the trees and {shown(second)} in the graphs"
            return f"word {word} is {given}; the words must be the same."
    return f"{len(tree)} words in the trees and {len(graph)} in the graphs; the words must be the same."
