"""What is different between the graphs of two systems, and between the classes that they give."""

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spigot_nlp.evaluation.columns import TOP, Arcs, Bools, Ints


@dataclass(frozen=True)
class RoleChanges:
    """How many arcs of a role only one system has; a relabelled arc is one of either.

    Attributes:
        only_a: Arcs with this role that only system A has.
        only_b: Those that only system B has.

    Example:
        >>> RoleChanges(only_a=1, only_b=3).only_b
        3
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
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
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

    Example:
        >>> Cell(changed=True, flipped=False, sentences=12, a=0.75, b=0.75).sentences
        12
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
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
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


def graph_changes(a: Arcs, b: Arcs, roles: dict[str, int]) -> GraphChanges:
    """Compare two lists of graphs over the same sentences.

    Args:
        a: The arcs of system A.
        b: The arcs of system B.
        roles: The number of each role, from 1.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.evaluation.columns import Columns
        >>> rain = [Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))]
        >>> bare = [Sentence(("Rain", "fell"), graph=Graph.of([], tops=[2]))]
        >>> columns, roles = Columns(rain), {"ARG1": 1}
        >>> graph_changes(columns.arcs(bare, roles), columns.arcs(rain, roles), roles).by_role
        {'ARG1': RoleChanges(only_a=0, only_b=1)}
    """
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
    """Arcs and tops of each sentence that only one side has; a relabelled arc counts once.

    Args:
        a: The arcs of system A.
        b: The arcs of system B.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.evaluation.columns import Columns
        >>> one, other = (Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, role)])) for role in ("ARG1", "ARG2"))
        >>> columns, roles = Columns([one]), {"ARG1": 1, "ARG2": 2}
        >>> arcs_changed(columns.arcs([one], roles), columns.arcs([other], roles)).tolist()
        [1]
    """
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

    Example:
        >>> yes = np.array([True, True])
        >>> found = label_changes(*(np.array(k) for k in ([1, 0], [0, 0], [1, 0])), yes, yes, "trees")
        >>> found.wrong_to_right, [cell.sentences for cell in found.table]
        (1, [0, 0, 1, 1])
    """
    flipped = a != b
    cells = []
    for has_changed, has_flipped in itertools.product((False, True), repeat=2) if changed is not None else ():
        here = (changed == has_changed) & (flipped == has_flipped)
        judged = here & known
        right = [float((side == gold)[judged].mean()) if judged.any() else None for side in (a, b)]
        cells.append(Cell(has_changed, has_flipped, int(here.sum()), *right))
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
