"""What is different between the trees of two systems: kinds of head change (§5), and what became of the heads."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spigot_nlp.evaluation.columns import Arcs, Bools, Columns, Ints, member

Against = Literal["gold", "predicted"]


@dataclass(frozen=True)
class Kind:
    """One kind of head change, and what to hold its share against.

    Attributes:
        count: Changes of this kind.
        share: Of all changes in sentences with a graph.
        chance: The share to expect if both the old and the new head of each of these words were drawn at random from
            the root and all other words.
        reverse: The share of this kind if system B came first and A second. Changes without a direction, back and
            forth by chance, have about the same share both ways.

    Example:
        >>> Kind(count=3, share=0.3, chance=0.1, reverse=0.2).share
        0.3
    """

    count: int
    share: float
    chance: float
    reverse: float


@dataclass(frozen=True)
class HeadChanges:
    r"""Words whose head differs between two systems: $h$ in system A, $h'$ in system B (§5).

    An arc of a semantic graph goes from a semantic head to its modifier; tops are no arcs here. The kinds overlap.

    Attributes:
        words: Words compared.
        changed: Words whose head differs.
        sentences: Sentences with such a word.
        against: The graphs that the kinds are about: the right ones, or those of system B.
        judged: Changes in sentences that have such a graph, which the shares are of.
        to_semantic_head: (a) the new head $h'$ is a semantic head of the word.
        to_semantic_modifier: (b) the new head $h'$ is a semantic modifier of the word.
        from_semantic_modifier: (c) the old head $h$ was a semantic modifier of the word.
        any: At least one of the three.
        right_to_wrong: Changes away from the right head; `None` without gold trees, as the next two.
        wrong_to_right: Changes to the right head.
        wrong_to_wrong: Changes from one wrong head to another.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
        >>> words = ("she", "wants", "to", "sing")
        >>> gold = Sentence(words, heads=(2, 0, 4, 2), graph=Graph.of([Arc(4, 1, "ARG1"), Arc(2, 4, "ARG2")]))
        >>> a, b = Sentence(words, heads=(2, 0, 4, 2)), Sentence(words, heads=(4, 0, 4, 2))
        >>> changes = analyse([gold], [a], [b]).heads
        >>> changes.changed, changes.to_semantic_head.count, changes.right_to_wrong
        (1, 1, 1)
    """

    words: int
    changed: int
    sentences: int
    against: Against
    judged: int
    to_semantic_head: Kind
    to_semantic_modifier: Kind
    from_semantic_modifier: Kind
    any: Kind
    right_to_wrong: int | None
    wrong_to_right: int | None
    wrong_to_wrong: int | None


def head_changes(
    columns: Columns, kept: Bools, gold: Ints, a: Ints, b: Ints, graphs: Arcs, against: Against
) -> HeadChanges:
    """Compare two lists of trees.

    Args:
        columns: The layout of the sentences.
        kept: Which words are compared.
        gold: The right head of every word, -1 where it is not known.
        a: The heads of system A.
        b: The heads of system B.
        graphs: The graphs that the kinds of change are about.
        against: What graphs these are.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> rain = [Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")]))]
        >>> columns, gold, wrong = Columns(rain), np.array([2, 0]), np.array([0, 0])
        >>> graphs = columns.arcs(rain, {"ARG1": 1})
        >>> found = head_changes(columns, columns.word > 0, gold, wrong, gold, graphs, "gold")
        >>> found.changed, found.wrong_to_right, found.to_semantic_head.count
        (1, 1, 1)
    """
    differs = kept & (a != b)
    judged = differs & graphs.known[columns.sentence]
    kinds = _kinds(columns, np.flatnonzero(judged), a, b, graphs.pairs)
    known = kept & (gold >= 0)

    def count(outcome: Bools) -> int | None:
        return int(np.count_nonzero(known & differs & outcome)) if known.any() else None

    return HeadChanges(
        words=int(np.count_nonzero(kept)),
        changed=int(np.count_nonzero(differs)),
        sentences=int(np.count_nonzero(columns.sums(differs))),
        against=against,
        judged=int(np.count_nonzero(judged)),
        to_semantic_head=kinds[0],
        to_semantic_modifier=kinds[1],
        from_semantic_modifier=kinds[2],
        any=kinds[3],
        right_to_wrong=count(a == gold),
        wrong_to_right=count(b == gold),
        wrong_to_wrong=count((a != gold) & (b != gold)),
    )


def _kinds(columns: Columns, words: Ints, a: Ints, b: Ints, pairs: Ints) -> list[Kind]:
    """(a), (b), (c) and their union, for words whose heads differ."""
    sentence, word = columns.sentence[words], columns.word[words]

    def kinds(old: Ints, new: Ints) -> list[Bools]:
        to_head = member(columns.joined(sentence, new, word), pairs)
        to_modifier = member(columns.joined(sentence, word, new), pairs)
        from_modifier = member(columns.joined(sentence, word, old), pairs)
        return [to_head, to_modifier, from_modifier, to_head | to_modifier | from_modifier]

    forward, backward = kinds(a[words], b[words]), kinds(b[words], a[words])
    # Of the k places that the head of a word can be at, so many are its semantic heads, its modifiers, or either.
    places = columns.lengths[sentence]
    heads, modifiers, either = (numbers[words] for numbers in _neighbours(columns, pairs))
    # Two different places drawn from k. None of the kinds: the old one is no modifier, the new one neither.
    neither = (places - either) * (places - modifiers - 1) / (places * np.maximum(places - 1, 1))
    chances = [heads / places, modifiers / places, modifiers / places, 1 - neither]
    return [
        Kind(int(np.count_nonzero(now)), _mean(now), _mean(chance), _mean(then))
        for now, chance, then in zip(forward, chances, backward, strict=True)
    ]


def _neighbours(columns: Columns, pairs: Ints) -> tuple[Ints, Ints, Ints]:
    """How many semantic heads, modifiers and different neighbours every word has."""
    width, total = columns.width, len(columns.sentence)
    sentence, first, second = pairs // (width * width), pairs // width % width, pairs % width
    apart = first != second  # a word is no neighbour of itself, whatever a file says
    sentence, first, second = sentence[apart], first[apart], second[apart]
    starts = columns.starts[sentence] - 1
    modifiers = np.bincount(starts + first, minlength=total)
    heads = np.bincount(starts + second, minlength=total)
    both = np.concatenate([(starts + first) * width + second, (starts + second) * width + first])
    return heads, modifiers, np.bincount(np.unique(both) // width, minlength=total)


def _mean(values: Bools | NDArray[np.float64]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
