"""Further graphs of the built-in corpus, made by rule from its trees and graphs: for systems that learn several."""

from spigot_nlp.data.sentence import Arc, Graph, Sentence

_FUNCTION = frozenset({"det", "case", "aux", "cop", "mark", "cc", "punct", "expl"})
_ROLES = {"ARG1": "ACT", "ARG2": "PAT", "ARG3": "ADDR"}


def formalisms(sentence: Sentence) -> Sentence:
    """A sentence with two more graphs beside its semantic one, if it has a tree.

    `dependencies` is the tree as a graph. `valency` is a graph of content words, as in a tectogrammatical one:
    arguments have the roles `ACT`, `PAT` and `ADDR`, words that modify others hang from them as `RSTR`, everything else
    has the name of its syntactic relation, and determiners, prepositions, auxiliaries and punctuation are not in it.

    Example:
        >>> from research.synthetic import synthetic
        >>> sentence = formalisms(synthetic(3, seed=2)[2])          # A disastrous attack ... was pointless ...
        >>> sentence.get("dependencies").tops, [arc for arc in sentence.get("valency").arcs if arc.predicate == 3][:1]
        ((8,), [Arc(predicate=3, argument=2, role='RSTR')])
    """
    if sentence.heads is None or sentence.relations is None:
        return sentence
    words = list(zip(range(1, len(sentence) + 1), sentence.heads, sentence.relations, strict=True))
    arcs = [Arc(head, word, relation) for word, head, relation in words if head]
    tops = [word for word, head, _ in words if not head]
    whole = sentence.put("dependencies", Graph.of(arcs, tops))
    return whole.put("valency", _valency(sentence.graph or Graph(), words, tops))


def _valency(graph: Graph, words: list[tuple[int, int, str]], tops: list[int]) -> Graph:
    meaning = ((word, relation) for word, _, relation in words if relation != "compound:prt")
    content = {word for word, relation in meaning if _base(relation) not in _FUNCTION}
    said = {arc[:2]: arc.role for arc in graph.arcs}
    found: dict[tuple[int, int], str] = {
        pair: _ROLES[role] for pair, role in said.items() if role in _ROLES and content.issuperset(pair)
    }
    for word, head, relation in words:
        if word not in content or head not in content:
            continue
        if (word, head) in found:  # a modifier: syntax has it the other way round
            del found[word, head]
            found[head, word] = "RSTR"
        else:
            found.setdefault((head, word), _base(relation).upper())
    return Graph.of((Arc(head, word, role) for (head, word), role in found.items()), tops)


def _base(relation: str) -> str:
    return relation.partition(":")[0]
