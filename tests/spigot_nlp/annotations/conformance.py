"""Checks that every kind of annotation must pass.

A new kind gets them by adding one case to `CASES`.
"""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from spigot import SemanticGraphs
from spigot_nlp.annotations import ANNOTATIONS, AbstractAnnotation, Classes, Drawn, DrawnArc, Graphs, Tags, Trees
from spigot_nlp.annotations.graphs import GoldGraph, graph_parts
from spigot_nlp.annotations.trees import tree_parts
from spigot_nlp.data.formats import FORMATS
from spigot_nlp.data.sentence import Arc, Graph, Sentence

WORDS = ("cat", "sees", "dogs", "often")


@dataclass(frozen=True)
class Case:
    """A kind of annotation.

    Attributes:
        kind: Its name in the registry.
        values: Values for sentences of as many words as stand beside them; the last two are of equal length, and the
            second of them is an answer that is not altogether right.
        parts: The right structures of a batch, from what `collate` gave.
        drawn: What the first value looks like.
    """

    kind: str
    values: tuple[tuple[int, Any], ...]
    parts: Callable[[Any, Any, Tensor], Tensor]
    drawn: Drawn

    def sentences(self, name: str) -> list[Sentence]:
        return [Sentence(WORDS[:length]).put(name, value) for length, value in self.values]

    def learned(self, name: str) -> Any:
        return ANNOTATIONS[self.kind].learn(name, self.sentences(name), None)

    def name(self) -> str:
        """Where it usually stands."""
        return ANNOTATIONS[self.kind].name


def _graph(gold: GoldGraph, annotation: Graphs, lengths: Tensor) -> Tensor:
    return graph_parts(gold, SemanticGraphs(len(annotation.roles)), torch.float32)


CASES = (
    Case(
        "trees",
        ((2, (2, 0)), (1, (0,)), (4, (2, 0, 2, 2)), (4, (2, 0, 4, 2))),
        lambda gold, _, lengths: tree_parts(gold, lengths, torch.float32),
        Drawn((DrawnArc(2, 1), DrawnArc(0, 2)), labelled=False),
    ),
    Case(
        "graphs",
        (
            (2, Graph.of([Arc(2, 1, "ARG1")], tops=[2])),
            (1, Graph()),
            (4, Graph.of([Arc(2, 1, "ARG1"), Arc(2, 3, "ARG2"), Arc(4, 2, "loc")], tops=[2])),
            (4, Graph.of([Arc(2, 1, "ARG2"), Arc(4, 2, "loc")], tops=[4])),
        ),
        _graph,
        Drawn((DrawnArc(2, 1, "ARG1"), DrawnArc(0, 2, "TOP")), above=True, bold=(2,)),
    ),
    Case(
        "label",
        ((2, 7), (1, 3), (4, 5), (4, 3)),
        lambda gold, annotation, _: one_hot(gold, len(annotation.classes)).float(),
        Drawn(note="class 7"),
    ),
    Case(
        "tags",
        ((2, ("NN", "VBZ")), (1, ("UH",)), (4, ("NN", "VBZ", "NNS", "RB")), (4, ("NN", "VBZ", "VBZ", "RB"))),
        lambda gold, annotation, _: one_hot((gold - 1).clamp(min=0), len(annotation.tags)).float(),
        Drawn(marks=("NN", "VBZ")),
    ),
)

Check = Callable[[Case, str], None]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


@check
def it_is_registered_and_says_what_it_is(case: Case, name: str) -> None:
    kind = ANNOTATIONS[case.kind]
    assert kind in (Trees, Graphs, Classes, Tags)
    assert all(isinstance(text, str) and text for text in (kind.noun, kind.nouns, kind.dataset))
    assert kind.suffix in FORMATS
    annotation = case.learned(name)
    assert isinstance(annotation, AbstractAnnotation)
    assert annotation.name == name


@check
def gold_comes_back_from_its_structure(case: Case, name: str) -> None:
    """encode, collate, parts and decode: the same values, whatever the padding."""
    annotation, given = case.learned(name), case.sentences(name)
    for chosen in (given, given[:1], given[1:2]):
        size = 1 + max(map(len, chosen))
        for room in (size, size + 3):
            encoded = [annotation.encode(sentence.get(name), sentence) for sentence in chosen]
            gold = annotation.collate(encoded, room)
            lengths = [len(sentence) for sentence in chosen]
            z = case.parts(gold, annotation, torch.tensor(lengths))
            assert len(z) == len(chosen)
            found = annotation.decode(z, lengths)
            assert found == [sentence.get(name) for sentence in chosen]


@check
def plain_values_are_json(case: Case, name: str) -> None:
    annotation = case.learned(name)
    for _, value in case.values:
        again = annotation.from_plain(json.loads(json.dumps(annotation.plain(value))))
        assert annotation.same(again, value)
    (_, one), (_, other) = case.values[-2:]
    assert annotation.same(one, one)
    assert not annotation.same(one, other)


@check
def names_are_json_and_can_be_restored(case: Case, name: str) -> None:
    annotation = case.learned(name)
    assert type(annotation).restored(json.loads(json.dumps(annotation.names()))) == annotation
    assert annotation.is_nameless == (case.kind == "trees")


@check
def measures_agree_with_the_score(case: Case, name: str) -> None:
    annotation, gold = case.learned(name), case.sentences(name)
    predicted = [*gold[:-1], gold[-1].put(name, gold[-2].get(name))]
    assert annotation.measures
    assert len({measure.name for measure in annotation.measures}) == len(annotation.measures)
    for answers in (gold, predicted):
        scores = json.loads(json.dumps(dataclasses.asdict(annotation.score(gold, answers))))
        for measure in annotation.measures:
            value = measure.counts(gold, answers).f1()
            assert measure.value(scores) == pytest.approx(value)
            assert (value == 1) == (answers is gold)
            assert 0 < value <= 1
            assert measure.about.endswith(".")


@check
def it_is_drawn(case: Case, name: str) -> None:
    annotation = case.learned(name)
    # What is said about a whole sentence begins with what it is about.
    note = case.drawn.note.replace(annotation.noun, annotation.called)
    assert annotation.draw(case.values[0][1]) == dataclasses.replace(case.drawn, note=note)
    for length, value in case.values:
        drawn = annotation.draw(value)
        assert len(drawn.marks) in (0, length)
        for arc in drawn.arcs:
            assert 0 <= arc.start <= length
            assert 1 <= arc.end <= length
    (_, one), (_, other) = case.values[-2:]
    assert annotation.draw(one) != annotation.draw(other)
    assert annotation.draw(one).parts != annotation.draw(other).parts
    assert annotation.drawn(case.sentences(name)[0]) == annotation.draw(case.values[0][1])
    assert annotation.drawn(Sentence(WORDS[:1])) is None


@check
def it_says_how_an_answer_fares(case: Case, name: str) -> None:
    annotation = case.learned(name)
    *_, gold, other = case.sentences(name)
    assert annotation.fares(gold, gold) != annotation.fares(gold, other)
    assert annotation.called == (annotation.noun if name == case.name() else name)
    starts = (annotation.called, annotation.nouns)
    assert annotation.fares(gold, other).startswith(starts)
    assert annotation.fares(gold, Sentence(gold.forms)) == ""


@check
def a_sentence_that_was_written_is_read_again(case: Case, name: str) -> None:
    annotation = case.learned(name)
    for sentence in case.sentences(name):
        written = annotation.written(sentence)
        assert written.get(case.name()) == sentence.get(name)
        bare = Sentence(sentence.forms).put(case.name(), written.get(case.name()))  # what the file has of it
        assert annotation.reread(bare).get(name) == sentence.get(name)


@check
def formats_know_it_by_its_usual_name(case: Case, name: str) -> None:
    annotation, sentence = case.learned(name), case.sentences(name)[0]
    assert annotation.written(sentence).get(case.name()) == case.values[0][1]
    if name == case.name():
        assert annotation.written(sentence) is sentence


@check
def it_is_looked_for_under_its_name_only(case: Case, name: str) -> None:
    other = [Sentence(sentence.forms).put("elsewhere", sentence.get(name)) for sentence in case.sentences(name)]
    assert ANNOTATIONS[case.kind].learn(name, other, None) == ANNOTATIONS[case.kind](name)
