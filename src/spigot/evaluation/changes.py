"""What is different between the structures of two systems, and what became of the answer."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spigot.evaluation.columns import TOP, Arcs, Bools, Columns, Ints, member

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
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> from spigot.evaluation.analysis import analyse
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


@dataclass(frozen=True)
class RoleChanges:
    """How many arcs of a role only one system has; a relabelled arc is one of either.

    Attributes:
        only_a: Arcs with this role that only system A has.
        only_b: Those that only system B has.
    """

    only_a: int
    only_b: int


@dataclass(frozen=True)
class GraphChanges:
    """What differs between the graphs of two systems.

    `arcs_a == kept + relabelled + removed` and `arcs_b == kept + relabelled + added`.

    Attributes:
        sentences: Sentences compared.
        changed: Sentences in which an arc, a role or a top differs.
        arcs_a: Arcs of system A.
        arcs_b: Arcs of system B.
        kept: Arcs of both, with the same role.
        relabelled: Arcs between the same two words with another role.
        added: Arcs of B between words that A does not join so.
        removed: Arcs of A between words that B does not join so.
        tops_added: Tops of B only.
        tops_removed: Tops of A only.
        per_sentence: Arcs added, removed and relabelled, and tops added and removed, in the mean sentence.
        by_role: Each role with such an arc, the most changed first.

    Example:
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> from spigot.evaluation.analysis import analyse
        >>> a = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> b = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG2")], tops=[2]))
        >>> changes = analyse([a], [a], [b]).graphs
        >>> changes.relabelled, changes.added, changes.removed
        (1, 0, 0)
    """

    sentences: int
    changed: int
    arcs_a: int
    arcs_b: int
    kept: int
    relabelled: int
    added: int
    removed: int
    tops_added: int
    tops_removed: int
    per_sentence: float
    by_role: dict[str, RoleChanges]


@dataclass(frozen=True)
class Cell:
    """Sentences whose structure changed or not, and whose class flipped or not.

    Attributes:
        changed: Whether their structures differ between the systems.
        flipped: Whether their classes do.
        sentences: How many they are.
        a: Accuracy of system A on them; `None` if none of them has a gold class.
        b: Accuracy of system B on them.
    """

    changed: bool
    flipped: bool
    sentences: int
    a: float | None
    b: float | None


@dataclass(frozen=True)
class LabelChanges:
    """Classes that differ between two systems, and whether the structures inside them do.

    Attributes:
        sentences: Sentences compared.
        flipped: Sentences with different classes.
        right_to_wrong: Flips away from the right class.
        wrong_to_right: Flips to the right class.
        wrong_to_wrong: Flips from one wrong class to another.
        structure: The structures that the classes are read off; `None` if a system has none.
        table: Structure changed or not, by class flipped or not; empty without structures.

    Example:
        >>> from spigot.data.sentence import Sentence
        >>> from spigot.evaluation.analysis import analyse
        >>> words = ("not", "bad")
        >>> gold = Sentence(words, label=1)
        >>> a, b = Sentence(words, heads=(0, 1), label=0), Sentence(words, heads=(2, 0), label=1)
        >>> changes = analyse([gold], [a], [b]).labels
        >>> changes.wrong_to_right, [cell.sentences for cell in changes.table if cell.changed and cell.flipped]
        (1, [1])
    """

    sentences: int
    flipped: int
    right_to_wrong: int
    wrong_to_right: int
    wrong_to_wrong: int
    structure: Literal["graphs", "trees"] | None
    table: tuple[Cell, ...]


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


def graph_changes(a: Arcs, b: Arcs, roles: dict[str, int]) -> GraphChanges:
    """Compare two lists of graphs over the same sentences."""
    in_b, in_a = a.have(b), b.have(a)
    gone, new = ~in_b & ~a.is_top, ~in_a & ~b.is_top
    # Where the same two words stay joined, as many arcs as both sides have of their own are relabelled.
    lost, lost_count = np.unique(a.keys[gone] // a.roles, return_counts=True)
    found, found_count = np.unique(b.keys[new] // b.roles, return_counts=True)
    _, i, j = np.intersect1d(lost, found, assume_unique=True, return_indices=True)
    relabelled = int(np.minimum(lost_count[i], found_count[j]).sum())
    size = len(roles) + 1
    by_a, by_b = (np.bincount(arcs.role[own], minlength=size) for arcs, own in ((a, gone), (b, new)))
    changed = np.zeros(len(a.known), dtype=np.bool_)
    changed[a.sentence[~in_b]] = True
    changed[b.sentence[~in_a]] = True
    ordered = sorted(roles, key=lambda role: (-by_a[roles[role]] - by_b[roles[role]], role))
    added, removed = int(new.sum()) - relabelled, int(gone.sum()) - relabelled
    tops_added, tops_removed = int((~in_a & b.is_top).sum()), int((~in_b & a.is_top).sum())
    return GraphChanges(
        sentences=len(changed),
        changed=int(changed.sum()),
        arcs_a=int((~a.is_top).sum()),
        arcs_b=int((~b.is_top).sum()),
        kept=int((in_b & ~a.is_top).sum()),
        relabelled=relabelled,
        added=added,
        removed=removed,
        tops_added=tops_added,
        tops_removed=tops_removed,
        per_sentence=(added + removed + relabelled + tops_added + tops_removed) / max(len(changed), 1),
        by_role={
            role: RoleChanges(int(by_a[k]), int(by_b[k]))
            for role, k in ((role, roles[role]) for role in ordered)
            if k != TOP and by_a[k] + by_b[k]
        },
    )


def arcs_changed(a: Arcs, b: Arcs) -> Ints:
    """Arcs and tops of each sentence that only one side has; a relabelled arc counts once."""
    lone_a, lone_b = a.keys[~a.have(b)], b.keys[~b.have(a)]
    pairs = np.concatenate([np.unique(lone // a.roles, return_counts=True) for lone in (lone_a, lone_b)], axis=1)
    # The larger number of the two sides, where both have arcs of their own between two words.
    keys, where = np.unique(pairs[0], return_inverse=True)
    most = np.zeros(len(keys), dtype=np.int64)
    np.maximum.at(most, where, pairs[1])
    sentences = keys // (a.width * a.width)
    return np.bincount(sentences, weights=most, minlength=len(a.known)).astype(np.int64)


def label_changes(
    gold: Ints, a: Ints, b: Ints, known: Bools, changed: Bools | None, structure: Literal["graphs", "trees"] | None
) -> LabelChanges:
    """Compare two lists of classes.

    Args:
        gold: The right class of each sentence.
        a: The classes of system A.
        b: The classes of system B.
        known: Which right classes are known.
        changed: Whether the structures of each sentence differ; `None` if there are none.
        structure: What structures these are.
    """
    flipped = a != b
    cells = []
    for has_changed, has_flipped in ((False, False), (False, True), (True, False), (True, True)):
        if changed is None:
            break
        here = (changed == has_changed) & (flipped == has_flipped)
        judged = here & known
        count = int(here.sum())
        if judged.any():
            cells.append(Cell(has_changed, has_flipped, count, _mean((a == gold)[judged]), _mean((b == gold)[judged])))
        else:
            cells.append(Cell(has_changed, has_flipped, count, None, None))
    judged = flipped & known
    return LabelChanges(
        sentences=len(gold),
        flipped=int(flipped.sum()),
        right_to_wrong=int((judged & (a == gold)).sum()),
        wrong_to_right=int((judged & (b == gold)).sum()),
        wrong_to_wrong=int((judged & (a != gold) & (b != gold)).sum()),
        structure=structure if changed is not None else None,
        table=tuple(cells),
    )


def _mean(values: Bools | NDArray[np.float64]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
