"""Noun phrases."""

import abc
from dataclasses import dataclass

from research.synthetic.draft import Dice, Link, Node, comma
from research.synthetic.lexicon import DEGREES, NAMES, NOUN_KINDS, Lexicon, Word

ANIMATE = ("person", "group")
_MAIN_KINDS = ("person", "group", "work", "thing", "place", "event")
_PRONOUNS = {"he": ("him", "his", "3s"), "she": ("her", "her", "3s"), "they": ("them", "their", "p"),
             "I": ("me", "my", "1s"), "we": ("us", "our", "p")}  # fmt: skip
PLACED = ("in", "near", "outside")


@dataclass(frozen=True)
class Frequencies:
    """How often the constructions occur that the two domains differ in.

    Attributes:
        depth: How many phrases and clauses may lie within each other.
        relative: Of nouns that have room for one.
        coordination: Of noun phrases, verbs and verb phrases.
        passive: The weight of passives among the frames of a clause.
        control: The weight of verbs that share an argument with their complement.
        embedding: The weight of verbs with a finite clause.
        far: The weight of relative clauses whose gap lies in a clause within.
        simple: Of sentences with a single main clause and nothing before or after it.
    """

    depth: int
    relative: float
    coordination: float
    passive: float
    control: float
    embedding: float
    far: float
    simple: float


class AbstractNouns(abc.ABC):
    """What noun phrases need to be built; a relative clause is the business of clauses."""

    def __init__(self, dice: Dice, lexicon: Lexicon, frequencies: Frequencies) -> None:
        self.dice = dice
        self.lexicon = lexicon
        self.frequencies = frequencies
        self.links: list[Link] = []
        self.spoken = ""

    @abc.abstractmethod
    def relative(self, noun: Node, depth: int) -> None:
        """Hang a relative clause on a noun."""

    def link(self, predicate: Node, argument: Node | None, role: str) -> None:
        """One arc of the graph; an argument nobody named gives none."""
        if argument is not None:
            self.links.append((predicate, argument, role))

    def noun_phrase(self, kinds: str, depth: int, *, subject: bool = False, located: bool = False) -> Node:
        """A noun phrase of one of these kinds.

        Args:
            kinds: Separated by blanks.
            depth: How much may lie within it.
            subject: Whether pronouns take the nominative.
            located: Whether a phrase of place may follow the noun: not where a verb would claim it.
        """
        kind = self.dice.pick(kinds.split())
        head = self._conjunct(kind, depth, subject, located)
        if depth > 0 and kind in _MAIN_KINDS and head.tag != "PRP" and not head.heavy and head.lemma != "nobody":
            # A second conjunct of the kind that the first one ends in could belong to either: mostly to the nearer.
            odds = self.frequencies.coordination * (0.3 if head.tail == kind else 0.7)
            if self.dice.chance(odds):
                self._coordinate(head, kind, depth)
        head.tail = head.tail or kind
        return head

    def _coordinate(self, head: Node, kind: str, depth: int) -> None:
        if self.dice.chance(0.12):
            second = self._further(kind, 0, head.lemma)
            second.first(comma(), "punct")
            self.link(head, head.after(second, "conj"), "conj")
        last = self._further(kind, 1 if depth > 1 else 0, head.lemma)
        last.first(Node("and", "and", "CC"), "cc")
        self.link(head, head.after(last, "conj"), "conj")
        head.agreement = "p"
        head.tail = kind

    def _further(self, kind: str, depth: int, but: str) -> Node:
        return self._name(0) if kind == "person" and self.dice.chance(0.25) else self.common(kind, depth, but=but)

    def _conjunct(self, kind: str, depth: int, subject: bool, located: bool) -> Node:
        if kind == "person":
            draw = self.dice.draw({"common": 0.68, "name": 0.18, "pronoun": 0.12, "nobody": 0.02 if subject else 0.0})
            if draw == "pronoun":
                return self._pronoun(subject)
            if draw == "name":
                return self._name(depth)
            if draw == "nobody":
                return Node("nobody", "nobody", "NN", kind=kind)
        if kind == "time":
            return self._day()
        return self.common(kind, depth, located=located)

    def _pronoun(self, subject: bool) -> Node:
        lemma = self.dice.pick([lemma for lemma in _PRONOUNS if lemma != self.spoken])
        self.spoken = lemma  # "we saw us" is not English
        oblique, _, agreement = _PRONOUNS[lemma]
        return Node(lemma if subject else oblique, lemma, "PRP", kind="person", agreement=agreement)

    def _name(self, depth: int) -> Node:
        first = self.dice.pick(NAMES[self.dice.pick(("3f", "3m"))])
        head = Node(first, first, "NNP", kind="person")
        if self.dice.chance(0.15):
            last = self.dice.pick(NAMES["last"])
            self.link(head, head.after(Node(last, last, "NNP"), "flat"), "compound")
        elif depth > 0 and self.dice.chance(0.15):
            apposition = self.common("person", 0, article="a")
            apposition.first(comma(), "punct")
            apposition.after(comma(), "punct")
            self.link(head, head.after(apposition, "appos"), "appos")
        return head

    def _day(self) -> Node:
        lemma = self.dice.pick(self.lexicon.nouns["time"]).lemma
        return Node(lemma, lemma, "NNP", kind="time")

    def common(self, kind: str, depth: int, *, article: str = "", located: bool = False, but: str = "") -> Node:
        """A phrase around a common noun.

        Args:
            kind: Of the noun.
            depth: How much may lie within it.
            article: The determiner, if not any.
            located: Whether a phrase of place may follow the noun.
            but: A lemma that was used just before.
        """
        word = self.dice.word(self.lexicon.nouns[kind])
        while word.lemma == but:
            word = self.dice.word(self.lexicon.nouns[kind])
        mass = kind in ("quality", "crime")
        many = not article and not mass and kind != "verdict" and self.dice.chance(0.24)
        head = Node(word.plural if many else word.lemma, word.lemma, "NNS" if many else "NN", kind=kind)
        head.agreement = "p" if many else "3s"
        if not mass or article:
            self._determine(head, many, article, depth)
        self._premodify(head, kind)
        if depth > 0:
            self._postmodify(head, word, kind, depth, located)
        return head

    def _determine(self, head: Node, many: bool, article: str, depth: int) -> None:
        if many:
            weights = {"the": 0.5, "none": 0.16, "number": 0.1, "these": 0.05, "some": 0.08, "pronoun": 0.05}
        else:
            weights = {"the": 0.52, "a": 0.27, "pronoun": 0.05, "owner": 0.05, "this": 0.04, "every": 0.02}
            if depth < 1:
                del weights["owner"]
        choice = article or self.dice.draw(weights)
        if choice == "none":
            return
        if choice == "whose":  # linked to the noun of its relative clause
            head.before(Node("whose", "whose", "WP$"), "nmod:poss")
            return
        if choice == "number":
            number = self.dice.pick(("two", "three", "four", "five", "ten"))
            self.link(head, head.before(Node(number, number, "CD"), "nummod"), "quant")
        elif choice == "pronoun":
            lemma = self.dice.pick(tuple(_PRONOUNS))
            self.link(head, head.before(Node(_PRONOUNS[lemma][1], lemma, "PRP$"), "nmod:poss"), "poss")
        elif choice == "owner":
            owner = self._name(0) if self.dice.chance(0.4) else self.common("person", 0)
            owner.after(Node("'" if owner.form.endswith("s") else "'s", "'s", "POS"), "case")
            self.link(head, head.before(owner, "nmod:poss"), "poss")
        else:
            lemma = {"these": "this"}.get(choice, choice)
            tag = "WDT" if choice == "which" else "DT"
            determiner = head.before(Node(choice, lemma, tag), "det")
            if choice != "the":  # it binds nothing that is not bound already
                self.link(determiner, head, "BV")

    def _premodify(self, head: Node, kind: str) -> None:
        if self.dice.chance(0.24) and kind in self.lexicon.adjectives:
            adjective = self.adjective(kind)
            self.link(head.before(adjective, "amod"), head, "ARG1")
        modifiers = self.lexicon.nouns.get(f"with_{kind}", ())
        if modifiers and self.dice.chance(0.06):
            word = self.dice.pick(modifiers)
            if word.lemma != head.lemma:
                self.link(head, head.before(Node(word.lemma, word.lemma, "NN"), "compound"), "compound")

    def adjective(self, kind: str) -> Node:
        """An adjective that fits nouns of this kind, perhaps with an adverb of degree."""
        return self.graded(self.dice.pick(self.lexicon.adjectives[kind]))

    def graded(self, word: Word) -> Node:
        """An adjective; one that says good or bad may have an adverb of degree."""
        head = Node(word.lemma, word.lemma, "JJ")
        if word.sentiment and self.dice.chance(0.22):
            degree = self.dice.pick(tuple(DEGREES))
            self.link(head.before(Node(degree, degree, "RB"), "advmod"), head, "ARG1")
        return head

    def phrase(self, preposition: str, noun: Node) -> Node:
        """A noun phrase behind a preposition."""
        noun.first(Node(preposition, preposition, "IN" if preposition != "to" else "TO"), "case")
        return noun

    def _attach(self, head: Node, preposition: str, noun: Node, role: str) -> None:
        self.link(head, head.after(self.phrase(preposition, noun), "nmod"), role)

    def _postmodify(self, head: Node, word: Word, kind: str, depth: int, located: bool) -> None:
        dice = self.dice
        owned = any(child.relation == "nmod:poss" for child in head.left)
        topics = () if owned else tuple(preposition for preposition in word.governs if preposition != "by")
        if topics and dice.chance(0.45):
            preposition = dice.pick(topics)
            kinds = NOUN_KINDS.get(f"{word.lemma}:{preposition}") or NOUN_KINDS[preposition]
            self._attach(head, preposition, self.noun_phrase(kinds, depth - 1), "ARG1")
        elif located and kind in ("person", "group", "thing", "event") and dice.chance(0.35):
            self._attach(head, dice.pick(PLACED), self.common("place", 0), "loc")
        elif kind == "person" and dice.chance(0.08):
            self._attach(head, "from", self.common("home", 0), "source")
        elif f"part_{kind}" in self.lexicon.nouns and dice.chance(0.12):
            part = self.common(f"part_{kind}", 0, article="a")
            self._attach(head, "with", part, "part")
        if "by" in word.governs and not head.heavy and head.tail != "person" and dice.chance(0.25):
            self._attach(head, "by", self.noun_phrase("person", 0), "author")
        if kind in _MAIN_KINDS and not head.heavy:
            # Where both nouns are of a kind, a relative clause mostly belongs to the one just before it.
            alike = bool(head.right) and (head.tail in ANIMATE) == (kind in ANIMATE)
            if dice.chance(self.frequencies.relative * (0.4 if alike else 1.0)):
                self.relative(head, depth - 1)
