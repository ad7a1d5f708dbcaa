"""The enhanced column of CoNLL-U as a graph over words, with one label for a pair of them."""

from collections.abc import Collection, Iterator
from typing import Literal

from spigot_nlp.data.sentence import Arc, Graph, Sentence

Labels = Literal["whole", "subtypes", "universal"]
"""How much of an enhanced relation is kept."""


def enhanced_graph(
    sentence: Sentence, labels: Labels = "whole", basic: Collection[str] = frozenset()
) -> tuple[Graph, int]:
    """The enhanced dependencies of a sentence as semantic parsers can have them: one role for a pair of words.

    Arcs from and to empty nodes (`8.1`) are not among them: a `Graph` is one of words, and reading the column leaves
    them out. Of several labels between two words the one that the basic tree has stays, or else the first in the
    alphabet. The words under the root are the tops.

    Args:
        sentence: The sentence as it was read from CoNLL-U.
        labels: `whole` as they are (`nmod:of`), `subtypes` without words and cases but with what is in `basic`
            (`nsubj:pass`), `universal` up to the first colon.
        basic: The relations that basic trees have.

    Returns:
        The graph, and how many second labels of a pair were left out.

    Example:
        >>> column = Graph.of([Arc(2, 1, "nsubj:pass"), Arc(2, 1, "nsubj:xsubj")], tops=[2])
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj:pass", "root"), graph=column)
        >>> graph, left_out = enhanced_graph(rain, "universal")
        >>> graph.arcs, graph.tops, left_out
        ((Arc(predicate=2, argument=1, role='nsubj'),), (2,), 1)
    """
    graph = sentence.graph or Graph()
    chosen: dict[tuple[int, int], str] = {}
    for head, word, role in _ranked(sentence, graph):
        chosen.setdefault((head, word), _label(role, labels, basic))
    arcs = (Arc(head, word, role) for (head, word), role in chosen.items())
    return Graph.of(arcs, tops=graph.tops), len(graph.arcs) - len(chosen)


def _ranked(sentence: Sentence, graph: Graph) -> Iterator[Arc]:
    """The arcs of a graph, those that the tree has too before others."""
    heads, relations = sentence.heads or (), sentence.relations or ()

    def beside(arc: Arc) -> bool:
        place = arc.argument - 1
        there = place < len(heads) and place < len(relations) and heads[place] == arc.predicate
        return not (there and arc.role.startswith(relations[place]))

    yield from sorted(graph.arcs, key=lambda arc: (beside(arc), arc))


def _label(role: str, labels: Labels, basic: Collection[str]) -> str:
    if labels == "whole":
        return role
    pieces = role.split(":")
    if labels == "subtypes":
        for size in range(len(pieces), 0, -1):
            if ":".join(pieces[:size]) in basic:
                return ":".join(pieces[:size])
    return pieces[0]
