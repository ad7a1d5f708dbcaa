"""Sentences in the making: words hung on words, and the dice that choose them."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from research.synthetic.morphology import article
from spigot_nlp.data.sentence import Arc, Graph, Sentence

T = TypeVar("T")


class Dice:
    """A seeded source of choices.

    All of them go through `Random.random`, the one method whose sequence Python promises never to change.

    Example:
        >>> Dice(7).pick("abc") == Dice(7).pick("abc")
        True
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of them, each as likely."""
        return options[int(self._random() * len(options))]

    def word(self, options: Sequence[T]) -> T:
        """One of them, the early ones more often: half of all choices fall on the first quarter."""
        share = self._random()
        return options[int(share * share * len(options))]

    def draw(self, weights: dict[str, float]) -> str:
        """A key, with probability proportional to its value."""
        left = self._random() * sum(weights.values())
        for key, weight in weights.items():
            left -= weight
            if left < 0:
                return key
        return next(reversed(weights))


@dataclass(slots=True, eq=False)
class Node:
    """A word with its dependents: those before it and those after it, in the order of speech.

    Every word's dependents are whole constituents beside it, so a tree of nodes is projective whatever is hung where.

    Attributes:
        form: As written, but for the capital of a first word and the choice between a and an.
        lemma: Its lemma.
        tag: Its Penn tag.
        relation: To its head.
        kind: What a noun denotes: person, work, place, ...
        agreement: `3s`, `p` (plural) or `1s`.
        tail: The kind of the last noun of the constituent.
        heavy: Whether the constituent holds a clause.
        left: Dependents before it.
        right: Dependents after it.
    """

    form: str
    lemma: str
    tag: str
    relation: str = "root"
    kind: str = ""
    agreement: str = "3s"
    tail: str = ""
    heavy: bool = False
    left: list["Node"] = field(default_factory=list)
    right: list["Node"] = field(default_factory=list)

    def before(self, child: "Node", relation: str) -> "Node":
        """Hang a dependent nearest before this word, and return it."""
        child.relation = relation
        self.left.append(child)
        return child

    def first(self, child: "Node", relation: str) -> "Node":
        """Hang a dependent before everything else, and return it."""
        child.relation = relation
        self.left.insert(0, child)
        return child

    def after(self, child: "Node", relation: str) -> "Node":
        """Hang a dependent after everything else, and return it."""
        child.relation = relation
        self.right.append(child)
        self.heavy = self.heavy or child.heavy
        self.tail = child.tail or child.kind or self.tail
        return child


def comma() -> Node:
    """A comma."""
    return Node(",", ",", ",")


Link = tuple[Node, Node, str]
"""Predicate, argument, role."""


def finish(root: Node, links: Iterable[Link], tops: Sequence[Node]) -> Sentence:
    """The sentence of a finished tree, without id and label.

    Example:
        >>> verb, noun = Node("ran", "run", "VBD"), Node("Ann", "Ann", "NNP")
        >>> _ = verb.first(noun, "nsubj")
        >>> finish(verb, [(verb, noun, "ARG1")], [verb]).heads
        (2, 0)
    """
    words: list[Node] = []
    governors: list[Node | None] = []

    def visit(node: Node, head: Node | None) -> None:
        for child in node.left:
            visit(child, node)
        words.append(node)
        governors.append(head)
        for child in node.right:
            visit(child, node)

    visit(root, None)
    # A comma that closes an inserted phrase is not written before other punctuation.
    kept = [place for place, node in enumerate(words) if node.tag != "," or words[place + 1].tag not in (",", ".", ":")]
    words = [words[place] for place in kept]
    governors = [governors[place] for place in kept]
    number = {id(node): place for place, node in enumerate(words, start=1)}
    forms = [node.form for node in words]
    for place, node in enumerate(words[:-1]):
        if node.lemma == "a":
            forms[place] = article(forms[place + 1])
    forms[0] = forms[0][0].upper() + forms[0][1:]
    arcs = [Arc(number[id(predicate)], number[id(argument)], role) for predicate, argument, role in links]
    return Sentence(
        forms=tuple(forms),
        lemmas=tuple(node.lemma for node in words),
        tags=tuple(node.tag for node in words),
        heads=tuple(0 if head is None else number[id(head)] for head in governors),
        relations=tuple(node.relation for node in words),
        graph=Graph.of(arcs, tops=[number[id(node)] for node in tops]),
    )
