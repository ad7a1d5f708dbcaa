"""Sentences that are worth a look: where two systems differ most."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from spigot_nlp.data.sentence import Graph, Sentence
from spigot_nlp.evaluation.columns import Bools, Ints
from spigot_nlp.evaluation.sides import Sides

Gained = Literal["arcs", "heads"]


@dataclass(frozen=True)
class Answer:
    """What one system says about one sentence; `None` where it says nothing, or nothing to judge it by is known.

    Attributes:
        correct: Right arcs and tops.
        wrong: Arcs and tops that are not in the gold graph.
        missed: Arcs and tops of the gold graph that are not there.
        heads_right: Words with the right head; without punctuation, if that was left out.
        label: The class.
        probability: What the system gives to that class.
        labelled_right: Words with the right head and relation, if both systems have relations; see `heads_right`.

    Example:
        >>> Answer(correct=3, wrong=1, missed=0).label is None
        True
    """

    correct: int | None = None
    wrong: int | None = None
    missed: int | None = None
    heads_right: int | None = None
    label: int | None = None
    probability: float | None = None
    labelled_right: int | None = None


@dataclass(frozen=True)
class Example:
    """One sentence that is worth a look.

    Attributes:
        index: Its place among the sentences, from 0.
        id: What its source calls it.
        words: The words.
        gain: What system B gained over A, in what the list that it stands in counts; `None` if that cannot be said.
        heads_changed: Words with different heads.
        arcs_changed: Arcs and tops that are different, relabelled ones counted once.
        label: The right class.
        a: What system A says.
        b: What system B says.
        relations_changed: Words with different relations.

    Example:
        >>> Example(0, "s1", ("Rain", "fell"), 1, 1, None, None, Answer(heads_right=1), Answer(heads_right=2)).gain
        1
    """

    index: int
    id: str
    words: tuple[str, ...]
    gain: int | None
    heads_changed: int | None
    arcs_changed: int | None
    label: int | None
    a: Answer
    b: Answer
    relations_changed: int | None = None


@dataclass(frozen=True)
class Picked:
    """The sentences that an `Analysis` shows; its attributes say which they are.

    Example:
        >>> Picked("arcs", gains=(), losses=(), flips=(), most_changed=()).gained
        'arcs'
    """

    gained: Gained | None
    gains: tuple[Example, ...]
    losses: tuple[Example, ...]
    flips: tuple[Example, ...]
    most_changed: tuple[Example, ...]
    labelled_gains: tuple[Example, ...] = ()
    labelled_losses: tuple[Example, ...] = ()


def pick(sides: Sides, sample: int) -> Picked:
    """Pick out the sentences with the largest gain, loss and change.

    Args:
        sides: Gold data and both systems.
        sample: How many of each sort.

    Example:
        >>> gold, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> picked = pick(Sides([gold, gold], [other, gold], [gold, gold], punctuation=True), 3)
        >>> [(example.index, example.gain) for example in picked.gains]
        [(0, 2)]
    """
    gained, gain = _gain(sides)

    def examples(chosen: Bools, key: Ints, gain: Ints | None) -> tuple[Example, ...]:
        places = np.flatnonzero(chosen)
        places = places[np.argsort(-key[places], kind="stable")][:sample]
        return tuple(_example(sides, int(k), None if gain is None else int(gain[k])) for k in places)

    def extremes(gain: Ints) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
        return examples(gain > 0, gain, gain), examples(gain < 0, -gain, gain)

    if not sides.has_labels:
        labelled = _labelled_gain(sides)
        return Picked(gained, *extremes(gain), (), (), *(extremes(labelled) if labelled is not None else ()))
    right, first, second = sides.labels
    known = sides.known("label")
    change = {"graphs": "arcs_changed", "trees": "words_changed", None: None}[sides.structure]
    size = np.zeros(len(right), dtype=np.int64) if change is None else getattr(sides, change)
    flipped = first != second
    put_right, spoilt = flipped & known & (second == right), flipped & known & (first == right)
    kinds = (put_right, spoilt, flipped & ~put_right & ~spoilt)
    flips = tuple(example for kind in kinds for example in examples(kind, size, None))
    return Picked(None, (), (), flips, examples(size > 0, size, None))


def _gain(sides: Sides) -> tuple[Gained | None, Ints]:
    """What each sentence gained from A to B, and in what."""
    measures = sides.measures()
    if sides.has_labels or not measures.keys() & {"LF", "UAS"}:
        return None, np.zeros(len(sides.gold), dtype=np.int64)
    first, second, _ = measures["LF" if "LF" in measures else "UAS"]
    if "LF" in measures:  # right minus wrong
        return "arcs", (2 * second.correct - second.predicted) - (2 * first.correct - first.predicted)
    return "heads", second.correct - first.correct


def _labelled_gain(sides: Sides) -> Ints | None:
    """How many more words of each sentence have the right head and relation; `None` if that is not known."""
    if not sides.judged_relations.any():
        return None
    return sides.labelled_counts(2).correct - sides.labelled_counts(1).correct


def _example(sides: Sides, k: int, gain: int | None) -> Example:
    gold, start = sides.gold[k], sides.columns.starts[k]
    kept = sides.kept[start : start + len(gold)]
    return Example(
        index=k,
        id=gold.id,
        words=gold.forms,
        gain=gain,
        heads_changed=int(sides.heads_changed[k]) if sides.has_heads else None,
        arcs_changed=int(sides.arcs_changed[k]) if sides.has_graphs else None,
        label=gold.label,
        a=_answer(gold, sides.a[k], kept, sides.has_relations),
        b=_answer(gold, sides.b[k], kept, sides.has_relations),
        relations_changed=int(sides.relations_changed[k]) if sides.has_relations else None,
    )


def _answer(gold: Sentence, answer: Sentence, kept: Bools, labelled: bool) -> Answer:
    correct = wrong = missed = heads_right = labelled_right = probability = None
    if gold.graph is not None and answer.graph is not None:
        wanted, given = _parts(gold.graph), _parts(answer.graph)
        correct, wrong, missed = len(given & wanted), len(given - wanted), len(wanted - given)
    if gold.heads is not None and answer.heads is not None:
        right = [a == b and bool(counts) for a, b, counts in zip(gold.heads, answer.heads, kept, strict=True)]
        heads_right = sum(right)
        if labelled and gold.relations is not None and answer.relations is not None:
            named = zip(right, gold.relations, answer.relations, strict=True)
            labelled_right = sum(hit and a == b for hit, a, b in named)
    if answer.probabilities:
        probability = max(answer.probabilities)  # the class of a system is the one it finds most probable
    return Answer(correct, wrong, missed, heads_right, answer.label, probability, labelled_right)


def _parts(graph: Graph) -> set[object]:
    return {*graph.arcs, *graph.tops}
