"""What the structures of a sentence must have and must not have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spigot_nlp.annotations.graphs import TOP
from spigot_nlp.data.sentence import Arc


class Infeasible(ValueError):
    """Constraints that a sentence cannot meet.

    Attributes:
        index: Which of the sentences it is, counted from 0.

    Example:
        >>> Infeasible("no tree meets these demands.", 3).index
        3
    """

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


@dataclass(frozen=True)
class Constraints:
    """What the structures of one sentence must have and must not have. Words count from 1; head 0 is the root.

    Attributes:
        heads: Words and the head each must have.
        not_heads: Words and a head each must not have.
        arcs: Arcs that must be in the graph; with an empty role in any role. Predicate 0 says that the word is a top.
        not_arcs: Arcs that must not be in it; with an empty role in no role.

    Example:
        >>> demands = Constraints(heads=((1, 2),), not_arcs=(Arc(2, 1, "ARG1"), Arc(0, 1, "")))
        >>> demands.describe()
        'word 1 has head 2, no arc 2 -> 1 with role ARG1, word 1 is no top'
        >>> demands.check(2, ("TOP", "ARG1"))
        >>> demands.check(1, ("TOP", "ARG1"))
        Traceback (most recent call last):
        ValueError: word 1 has head 2: there is no word 2 in a sentence of 1 word; words count from 1.
    """

    heads: tuple[tuple[int, int], ...] = ()
    not_heads: tuple[tuple[int, int], ...] = ()
    arcs: tuple[Arc, ...] = ()
    not_arcs: tuple[Arc, ...] = ()

    def __post_init__(self) -> None:
        for name in ("heads", "not_heads"):  # lists, as JSON has them, will do
            object.__setattr__(self, name, tuple(_row(name, row, ("word", "head")) for row in getattr(self, name)))
        for name in ("arcs", "not_arcs"):
            object.__setattr__(self, name, tuple(Arc(*_row(name, row, Arc._fields)) for row in getattr(self, name)))

    @property
    def on_trees(self) -> bool:
        """Whether anything is said about the tree."""
        return bool(self.heads or self.not_heads)

    @property
    def on_graphs(self) -> bool:
        """Whether anything is said about the graph."""
        return bool(self.arcs or self.not_arcs)

    def by_kind(self) -> "dict[str, Constraints]":
        """What is said about each kind of structure, by what several of them are called."""
        kinds = {
            "trees": Constraints(heads=self.heads, not_heads=self.not_heads),
            "graphs": Constraints(arcs=self.arcs, not_arcs=self.not_arcs),
        }
        return {nouns: alone for nouns, alone in kinds.items() if alone != Constraints()}

    def describe(self, *, trees: bool = True, graphs: bool = True) -> str:
        """The constraints in words, those on trees and those on graphs."""
        said = []
        if trees:
            said += [_head(*pair) for pair in self.heads] + [_head(*pair, wanted=False) for pair in self.not_heads]
        if graphs:
            said += [_arc(arc) for arc in self.arcs] + [_arc(arc, wanted=False) for arc in self.not_arcs]
        return ", ".join(said)

    def check(self, sentence_length: int, roles: Sequence[str] | None = None) -> None:
        """Refuse what fits no sentence of this length, and what contradicts itself.

        Args:
            sentence_length: How many words the sentence has.
            roles: The roles that graphs may have; not checked if omitted.

        Raises:
            ValueError: A word, head or role does not exist, or two constraints contradict each other.
        """
        for pairs, wanted in ((self.heads, True), (self.not_heads, False)):
            for word, head in pairs:
                _check_places(_head(word, head, wanted=wanted), word, head, sentence_length, "head")
        for arcs, wanted in ((self.arcs, True), (self.not_arcs, False)):
            for arc in arcs:
                said = _arc(arc, wanted=wanted)
                _check_places(said, arc.argument, arc.predicate, sentence_length, "argument")
                if roles is not None:
                    _check_role(said, arc, roles)
        self._check_heads()
        self._check_arcs()

    def _check_heads(self) -> None:
        chosen: dict[int, int] = {}
        for word, head in self.heads:
            if chosen.setdefault(word, head) != head:
                raise _contradiction(_head(word, chosen[word]), _head(word, head), "a word has one head")
            if (word, head) in self.not_heads:
                raise _contradiction(_head(word, head), _head(word, head, wanted=False))

    def _check_arcs(self) -> None:
        chosen: dict[tuple[int, int], Arc] = {}
        for arc in self.arcs:
            if not arc.role:
                continue
            other = chosen.setdefault(arc[:2], arc)
            if other.role != arc.role:
                raise _contradiction(_arc(other), _arc(arc), "an arc has one role")
        for arc in self.arcs:
            for other in self.not_arcs:
                if arc[:2] == other[:2] and (not other.role or role_of(arc) == role_of(other)):
                    raise _contradiction(_arc(arc), _arc(other, wanted=False))


def checked_demands(
    demands: Sequence[Constraints | None], lengths: Sequence[int], roles: Sequence[str] | None = None
) -> list[Constraints]:
    """The constraints of each sentence of a batch, after making sure that they fit it.

    Args:
        demands: Those of each sentence.
        lengths: Words of each sentence.
        roles: The roles that graphs may have, if it is about graphs.

    Raises:
        Infeasible: They do not; see its `index`.

    Example:
        >>> checked_demands([None, Constraints(heads=((1, 4),))], [2, 2])
        Traceback (most recent call last):
        spigot_nlp.stages.constraints.Infeasible: word 1 has head 4: there is no word 4 in a sentence of 2 words; \
words count from 1.
    """
    for index, demand in enumerate(demands):
        if demand is not None:
            try:
                demand.check(lengths[index], roles)
            except ValueError as error:
                raise Infeasible(str(error), index) from None
    return [demand or Constraints() for demand in demands]


def role_of(arc: Arc) -> str:
    """The role of an arc; that of a top is known without saying it.

    Example:
        >>> role_of(Arc(2, 1, "ARG1")), role_of(Arc(0, 1, ""))
        ('ARG1', 'TOP')
    """
    return arc.role if arc.predicate else TOP


def _row(name: str, row: object, fields: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(row, tuple | list) or len(row) != len(fields):
        raise ValueError(f"{name} has {row!r}; each of its rows is ({', '.join(fields)}).")
    return tuple(row)


def _head(word: int, head: int, *, wanted: bool = True) -> str:
    return f"word {word} {'has' if wanted else 'does not have'} head {head}"


def _arc(arc: Arc, *, wanted: bool = True) -> str:
    if arc.predicate == 0 and arc.role in ("", TOP):
        return f"word {arc.argument} is {'a' if wanted else 'no'} top"
    role = f" with role {arc.role}" if arc.role else ""
    return f"{'an' if wanted else 'no'} arc {arc.predicate} -> {arc.argument}{role}"


def _check_places(said: str, word: int, head: int, length: int, kind: str) -> None:
    for place, least in ((word, 1), (head, 0)):
        if not isinstance(place, int) or isinstance(place, bool):  # torch takes a bool for a mask
            raise ValueError(f"{said}: {place!r} is no place of a word; words count 1, 2, 3, and 0 is the root.")
        if not least <= place <= length:
            words = "1 word" if length == 1 else f"{length} words"
            raise ValueError(f"{said}: there is no word {place} in a sentence of {words}; words count from 1.")
    if word == head:
        raise ValueError(f"{said}: no word is its own {kind}; choose another.")


def _check_role(said: str, arc: Arc, roles: Sequence[str]) -> None:
    known = [role for role in roles if (role == TOP) == (arc.predicate == 0)]
    if arc.role and arc.role not in known:
        names = ", ".join(known) or "none"
        raise ValueError(
            f"{said}: the roles of {'tops' if arc.predicate == 0 else 'arcs'} are {names}; choose one of them, or "
            "leave the role empty for any."
        )


def _contradiction(one: str, other: str, why: str = "") -> ValueError:
    return ValueError(f"{one} and {other} contradict each other{why and ': ' + why}; drop one of them.")
