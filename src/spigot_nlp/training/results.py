"""What a system is judged by when its training is over: which stages, on which sentences, under which names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.induced import Field, Induced, describe
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.judges import judges

STRUCTURE = " structure"
"""How the names of scores of latent structures end."""


@dataclass(frozen=True)
class Judged:
    """What a stage is judged by.

    Attributes:
        data: The data set that the sentences are from.
        sets: The sentences by the name of the part.
        annotation: What is judged.
        measure: The judge.
        ending: How the names of its scores end.
        file: How the names of its files of predictions end; empty if there are none.
        latent: Whether it has no data of its own.
    """

    data: str
    sets: dict[str, list[Sentence]]
    annotation: AbstractAnnotation
    measure: Callable[[list[Sentence], list[Sentence]], Any]
    ending: str
    file: str
    latent: bool = False


def judged(parser: Parser, corpus: Corpus) -> Iterator[Judged]:
    """The last stage first, then the others that have data, and what can be said of those that have none."""
    config, told = parser.config, set[str]()
    for judge in judges(config):
        name, ending = judge.stage, judge.ending
        latent, whole = config.stages[name].latent, parser.model.annotations[name]
        annotation = next((one for one in whole.members if one.name == judge.called), whole)
        data = config.data_of(config.end if latent else name)
        split = corpus[data]
        sets = {part: some for part, some in {"dev": split.dev, **split.tests}.items() if some}
        if not latent:
            yield Judged(data, sets, annotation, annotation.score, ending, judge.file)
            continue
        if annotation.name in ("heads", "graph"):
            ending_of = STRUCTURE if STRUCTURE not in told else f" {name}{STRUCTURE}"
            told.add(ending_of)
            yield Judged(data, sets, annotation, partial(_described, field=annotation.name), ending_of, "", latent=True)
        if annotation.is_nameless and all(s.get(annotation.name) is not None for some in sets.values() for s in some):
            yield Judged(data, sets, annotation, annotation.score, ending, "", latent=True)


def _described(gold: list[Sentence], predicted: list[Sentence], field: Field) -> Induced:
    known = all(sentence.get(field) is not None for sentence in gold)
    return describe(predicted, gold if known else None, field=field)
