"""Several formalisms of the same sentences, as one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
            raise ValueError(f"sentence {number}{_names(tree, graph)}: {_difference_of_merge(tree, graph)}")
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


def _difference_of_merge(tree: Sentence, graph: Sentence) -> str:
    for word, (first, second) in enumerate(zip(tree.forms, graph.forms, strict=False), 1):
        if first != second:
            given = f"{shown(first)} in the trees and {shown(second)} in the graphs"
            return f"word {word} is {given}; the words must be the same."
    return f"{len(tree)} words in the trees and {len(graph)} in the graphs; the words must be the same."


def join(sides: Mapping[str, Iterable[Sentence]], files: Mapping[str, str] | None = None) -> list[Sentence]:
    """Joins sentences that several files annotate, each with graphs of its own.

    The graph of each side then stands under the name of the side. Everything else (tags, lemmas, trees, classes) is
    that of the first side that has it. Sentences are matched by their ids if all have them, and a sentence may then be
    missing from any side: it lacks that graph. Without ids, or if the sides have none in common, they are matched by
    their place, and all sides must have the same number.

    Args:
        sides: The sentences by the name that their graphs get, the most important first.
        files: What messages call each side; its name if nothing is said.

    Raises:
        ValueError: A sentence has other words on one side than on another, or one side has more sentences than
            another and no ids tell which.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")]), id="s1")
        >>> snow = Sentence(("Snow", "fell"), graph=Graph.of([Arc(2, 1, "ACT")]), id="s2")
        >>> both = Sentence(rain.forms, graph=Graph.of([Arc(2, 1, "ACT")]), id="s1")
        >>> [list(sentence.annotations) for sentence in join({"dm": [rain], "psd": [both, snow]})]
        [['dm', 'psd'], ['psd']]
    """
    lists = {name: list(sentences) for name, sentences in sides.items()}
    called = {name: (files or {}).get(name, name) for name in lists}
    found: dict[object, Sentence] = {}
    first: dict[object, str] = {}
    by_id = _by_id(list(lists.values()))
    if not by_id:
        _check_sizes(lists, called)
    for name, sentences in lists.items():
        for place, sentence in enumerate(sentences, 1):
            key = sentence.id if by_id else place
            own = _named(sentence, name)
            if key not in found:
                found[key], first[key] = own, name
                continue
            if own.forms != found[key].forms:
                raise ValueError(
                    f"{called[first[key]]} and {called[name]}: sentence {sentence.id or place}: "
                    f"{_difference(found[key], own)}; the words must be the same."
                )
            found[key] = _filled(found[key], own)
    return list(found.values())


def _by_id(sides: Sequence[Sequence[Sentence]]) -> bool:
    """Whether ids say which sentences are the same."""
    sets = [{sentence.id for sentence in side} for side in sides if side]
    told = all(len(ids) == len(side) and "" not in ids for ids, side in zip(sets, filter(None, sides), strict=True))
    return told and all(sets[0] & other for other in sets[1:])


def _check_sizes(lists: Mapping[str, Sequence[Sentence]], called: Mapping[str, str]) -> None:
    filled = {name: len(sentences) for name, sentences in lists.items() if sentences}
    if len(set(filled.values())) > 1:
        (one, few), (other, many) = sorted(filled.items(), key=lambda item: item[1])[:: len(filled) - 1]
        raise ValueError(
            f"{called[one]} has {few} sentences and {called[other]} {many}, and no ids that both have tell which are "
            "the same; give each sentence the same id in all files, or the same sentences in the same order."
        )


def _named(sentence: Sentence, name: str) -> Sentence:
    graph = sentence.graph
    return sentence.put("graph", None).put(name, graph) if name != "graph" else sentence


def _filled(sentence: Sentence, other: Sentence) -> Sentence:
    """A sentence with what another one of the same words says beside."""
    known = dict(sentence.annotations)
    for name, value in other.annotations.items():
        if name != "relations" or "heads" not in sentence.annotations:  # relations are those of their own tree
            known.setdefault(name, value)
    return replace(
        sentence,
        lemmas=other.lemmas if sentence.lemmas is None else sentence.lemmas,
        tags=other.tags if sentence.tags is None else sentence.tags,
        annotations=known,
        id=sentence.id or other.id,
    )


def _difference(one: Sentence, other: Sentence) -> str:
    for word, (first, second) in enumerate(zip(one.forms, other.forms, strict=False), 1):
        if first != second:
            return f"word {word} is {shown(first)} in the first and {shown(second)} in the second"
    return f"it has {len(one)} words in the first and {len(other)} in the second"
