"""Kinds of analysis: trees, graphs, classes, tags. Whoever needs to know one asks it."""

# In the order that people name them in.
from spigot_nlp.annotations.trees import Trees  # isort: skip
from spigot_nlp.annotations.graphs import Graphs  # isort: skip
from spigot_nlp.annotations.classes import Classes  # isort: skip
from spigot_nlp.annotations.tags import Tags  # isort: skip
from spigot_nlp.annotations.formalisms import Formalisms  # isort: skip
from collections.abc import Iterable

from spigot_nlp.annotations.annotation import ANNOTATIONS, AbstractAnnotation, Drawn, DrawnArc, Measure
from spigot_nlp.data.sentence import COLUMNS, Graph, Sentence

__all__ = [
    "ANNOTATIONS",
    "AbstractAnnotation",
    "Classes",
    "Drawn",
    "DrawnArc",
    "Formalisms",
    "Graphs",
    "Measure",
    "Tags",
    "Trees",
    "annotations_in",
    "kind_of",
    "nouns_in",
]


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
