"""Several formalisms of the same sentences, as one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from spigot_nlp.data.formats.files import shown
from spigot_nlp.data.sentence import Sentence


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
