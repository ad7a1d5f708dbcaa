"""Which annotations sentences have, without being told."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from spigot_nlp.annotations.annotation import ANNOTATIONS, AbstractAnnotation
from spigot_nlp.annotations.graphs import Graphs
from spigot_nlp.annotations.trees import Trees
from spigot_nlp.data.sentence import COLUMNS, Graph, Sentence

if TYPE_CHECKING:
    from spigot_nlp.evaluation.sides import Judge


def kind_of(name: str, value: object = None) -> AbstractAnnotation | None:
    """The annotation that usually has a name, or that a value looks like; `None` if nobody knows.

    Args:
        name: Where it stands in a sentence.
        value: What stands there.

    Example:
        >>> kind_of("heads"), kind_of("enhanced", Graph()), kind_of("probabilities")
        (Trees(name='heads', relations=None, root=''), Graphs(name='enhanced', roles=(), deterministic=()), None)
    """
    for kind in ANNOTATIONS.values():
        if kind.name == name:
            return kind()
    return Graphs(name) if isinstance(value, Graph) else None


def annotations_in(sentences: Iterable[Sentence]) -> dict[str, AbstractAnnotation]:
    """What any of some sentences is annotated with, by name; tags and lemmas, which nearly all have, are not among it.

    Example:
        >>> list(annotations_in([Sentence(("Rain",)), Sentence(("Snow",), label=0, heads=(0,), tags=("NN",))]))
        ['heads', 'label']
    """
    values: dict[str, object] = {}
    for sentence in sentences:
        for name, value in sentence.annotations.items():
            values.setdefault(name, value)
    found = {name: kind_of(name, value) for name, value in values.items()}
    usual = [kind.name for kind in ANNOTATIONS.values()]
    order = sorted(found, key=lambda name: (usual.index(name) if name in usual else len(usual), name))
    return {name: kind for name in order if (kind := found[name]) is not None and name not in COLUMNS}


def further_judges(gold: Sequence[Sentence], *answers: Sequence[Sentence]) -> "dict[str, Judge]":
    """What counts right answers of annotations beside the usual trees, graphs and classes, by the name of the measure.

    Args:
        gold: Sentences with what is right.
        answers: The same sentences as systems see them. What some sentence of any side lacks is left out.

    Example:
        >>> rain = Sentence(("Rain",), heads=(0,), annotations={"second": Graph()})
        >>> list(further_judges([rain], [rain]))
        ['second LF', 'second UF']
        >>> rain = rain.put("relations", ("root",))
        >>> list(further_judges([rain], [rain]))
        ['LAS', 'second LF', 'second UF']
    """
    sides = (gold, *answers)
    labelled = Trees(relations=())
    found: dict[str, Judge] = {}
    if all(s.get(name) is not None for side in sides for s in side for name in (labelled.name, *labelled.beside)):
        found[labelled.measures[0].name] = labelled.measures[0].counts
    others: dict[str, Judge] = {
        measure.name if kind.is_usual else f"{name} {measure.name}": measure.counts
        for name, kind in annotations_in(gold).items()
        if name not in ("heads", "graph", "label")
        and all(sentence.get(name) is not None for side in sides for sentence in side)
        for measure in kind.measures
    }
    return found | others


def nouns_in(sentences: Iterable[Sentence]) -> str:
    """The same in words.

    Example:
        >>> nouns_in([Sentence(("Rain", "fell"), heads=(2, 0), label=0)]), nouns_in([Sentence(("Rain",))]), nouns_in([])
        ('trees and classes', 'no annotation', 'no sentences')
    """
    given = list(sentences)
    if not given:
        return "no sentences"
    names = [k.nouns if type(k).name == n else f"{n} {k.nouns}" for n, k in annotations_in(given).items()]
    return " and ".join(names) or "no annotation"
