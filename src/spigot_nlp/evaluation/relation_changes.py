"""What is different between the labelled trees of two systems: which heads and relations changed, and into what."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spigot_nlp.evaluation.columns import Bools, Columns, Ints

Three = tuple[Ints, Ints, Ints]
"""What is right, and what systems A and B say, of every word."""


@dataclass(frozen=True)
class Outcome:
    """What became of something that every word has.

    Attributes:
        changed: Words that have another one in system B.
        wrong_to_right: Those put right; `None` if what is right is not known, as the next two.
        right_to_wrong: Those made wrong.
        wrong_to_wrong: Those that are wrong in both.

    Example:
        >>> Outcome(changed=5, wrong_to_right=3, right_to_wrong=1, wrong_to_wrong=1).changed
        5
    """

    changed: int
    wrong_to_right: int | None
    right_to_wrong: int | None
    wrong_to_wrong: int | None


@dataclass(frozen=True)
class Renamed:
    """Words that have one relation in system A, and another one in B.

    Attributes:
        before: The relation in system A.
        after: The relation in system B.
        words: How many.
        same_head: How many of them have the same head in both.
        right_a: How many have the right relation in system A, whatever their head; `None` if no right one is known.
        right_b: How many have it in system B.

    Example:
        >>> Renamed("obl", "nmod", words=12, same_head=4, right_a=8, right_b=3).after
        'nmod'
    """

    before: str
    after: str
    words: int
    same_head: int
    right_a: int | None
    right_b: int | None


@dataclass(frozen=True)
class RelationChanges:
    """What differs between the trees of two systems that both have relations.

    Attributes:
        words: Words compared.
        sentences: Sentences compared.
        differing: Those in which a head or a relation differs.
        relabelled: Those of them in which no head does.
        heads: What became of heads.
        relations: What became of relations, whatever the head.
        either: What became of both together: changed if one of them is, and right if both are.
        by_pair: Each change of one relation into another, the most frequent first.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
        >>> words = ("she", "ran", "home")
        >>> gold = Sentence(words, heads=(2, 0, 2), relations=("nsubj", "root", "advmod"))
        >>> a = Sentence(words, heads=(2, 0, 2), relations=("nsubj", "root", "obj"))
        >>> changes = analyse([gold], [a], [gold]).relations
        >>> changes.relabelled, changes.heads.changed, changes.relations.wrong_to_right
        (1, 0, 1)
        >>> changes.by_pair
        (Renamed(before='obj', after='advmod', words=1, same_head=1, right_a=0, right_b=1),)
    """

    words: int
    sentences: int
    differing: int
    relabelled: int
    heads: Outcome
    relations: Outcome
    either: Outcome
    by_pair: tuple[Renamed, ...]


def relation_changes(
    columns: Columns, kept: Bools, heads: Three, relations: Three, names: Sequence[str]
) -> RelationChanges:
    """Compare two lists of labelled trees.

    Args:
        columns: The layout of the sentences.
        kept: Which words are compared.
        heads: The heads of every word, -1 where the right one is not known.
        relations: The numbers of their relations, likewise.
        names: What the relations are called.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> columns, heads = Columns([Sentence(("Rain", "fell"))]), np.array([2, 0])
        >>> named = np.array([0, 1]), np.array([1, 1]), np.array([0, 1])
        >>> found = relation_changes(columns, columns.word > 0, (heads,) * 3, named, ["nsubj", "root"])
        >>> found.relations.wrong_to_right, [(pair.before, pair.after) for pair in found.by_pair]
        (1, [('root', 'nsubj')])
    """
    moved, renamed = (kept & (three[1] != three[2]) for three in (heads, relations))
    differs = moved | renamed
    known = [kept & (three[0] >= 0) for three in (heads, relations)]
    right_heads, right_relations = ([side == three[0] for side in three[1:]] for three in (heads, relations))
    both = [head & relation for head, relation in zip(right_heads, right_relations, strict=True)]
    changed = columns.sums(differs) > 0
    return RelationChanges(
        words=int(np.count_nonzero(kept)),
        sentences=len(changed),
        differing=int(np.count_nonzero(changed)),
        relabelled=int(np.count_nonzero(changed & (columns.sums(moved) == 0))),
        heads=_outcome(moved, known[0], right_heads),
        relations=_outcome(renamed, known[1], right_relations),
        either=_outcome(differs, known[0] & known[1], both),
        by_pair=_by_pair(np.flatnonzero(renamed), known[1], ~moved, relations, names),
    )


def _outcome(differs: Bools, known: Bools, right: Sequence[Bools]) -> Outcome:
    changed, judged, (a, b) = int(np.count_nonzero(differs)), differs & known, right
    if not known.any():
        return Outcome(changed, None, None, None)
    return Outcome(changed, *(int(np.count_nonzero(judged & kind)) for kind in (~a & b, a & ~b, ~a & ~b)))


def _by_pair(words: Ints, known: Bools, stayed: Bools, relations: Three, names: Sequence[str]) -> tuple[Renamed, ...]:
    gold, a, b = (three[words] for three in relations)
    pairs, place = np.unique(np.stack([a, b]), axis=1, return_inverse=True)

    def count(chosen: Bools) -> list[int]:
        return np.bincount(place[chosen], minlength=pairs.shape[1]).tolist()

    right = [count(side == gold) if known.any() else [None] * pairs.shape[1] for side in (a, b)]
    every = (count(np.ones(len(words), dtype=np.bool_)), count(stayed[words]), *right)
    found = [
        Renamed(names[int(before)], names[int(after)], *numbers)
        for before, after, *numbers in zip(*pairs.tolist(), *every, strict=True)
    ]
    return tuple(sorted(found, key=lambda pair: -pair.words))
