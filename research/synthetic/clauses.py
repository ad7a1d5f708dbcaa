"""Clauses and sentences."""

from dataclasses import replace
from typing import final

from research.synthetic.conjugation import Mood
from research.synthetic.draft import Dice, Node, comma, finish
from research.synthetic.lexicon import Lexicon
from research.synthetic.nouns import ANIMATE, PLACED, Frequencies
from research.synthetic.verbs import AbstractVerbs
from spigot_nlp.data.sentence import Sentence

_SUBJECTS = {"person": 0.58, "group": 0.06, "work": 0.13, "thing": 0.06, "place": 0.06, "event": 0.11}
_REASONS = ("because", "when", "after", "before", "while", "if", "since")
_CONCESSIONS = ("although", "though")


@final
class Grammar(AbstractVerbs):
    """A grammar that writes sentences with their trees and graphs.

    Example:
        >>> from research.synthetic.lexicon import LEXICONS
        >>> frequencies = Frequencies(2, 0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 0.5)
        >>> sentence = Grammar(Dice(1), LEXICONS["in"], frequencies).sentence()
        >>> sentence.heads.count(0)
        1
    """

    def __init__(self, dice: Dice, lexicon: Lexicon, frequencies: Frequencies) -> None:
        super().__init__(dice, lexicon, frequencies)
        self.tense = "past"

    def _finite(self) -> Mood:
        tense = self.tense if self.dice.chance(0.93) else self.dice.pick(("past", "present"))
        return Mood(tense, negated=self.dice.chance(0.2))

    def _subject(self, depth: int, gap: Node | None) -> Node:
        kind = "person" if gap is not None else self.dice.draw(_SUBJECTS)
        return self.noun_phrase(kind, depth - 1 if gap is None else 0, subject=True, located=True)

    def clause(self, depth: int, gap: Node | None = None, *, shared: bool = True) -> Node:
        """A finite clause; with a gap, one of its complements is the noun given, somewhere else in the sentence."""
        subject = self._subject(depth, gap)
        head = self.verb_phrase(subject, self._finite(), depth, gap)
        head.first(subject, self._subject_relation(head))
        if shared and gap is None and depth > 0 and self.dice.chance(self.frequencies.coordination * 0.5):
            self._share(head, subject, depth)
        return head

    def _subject_relation(self, head: Node) -> str:
        return "nsubj:pass" if any(child.relation == "aux:pass" for child in head.left) else "nsubj"

    def _share(self, head: Node, subject: Node, depth: int) -> None:
        """A second verb phrase of the same subject."""
        second = self.verb_phrase(subject, self._finite(), depth - 1)
        self._conjoin(
            head, second, self.dice.draw({"and": 0.6, "but": 0.4}), heavy=head.heavy and self.dice.chance(0.5)
        )

    def _conjoin(self, head: Node, second: Node, word: str, *, heavy: bool) -> None:
        second.first(Node(word, word, "CC"), "cc")
        if heavy or (word == "but" and self.dice.chance(0.7)):
            second.first(comma(), "punct")
        self.link(head, head.after(second, "conj"), "conj")

    # Relative clauses, each with what becomes of the noun it stands on.

    def relative(self, noun: Node, depth: int) -> None:
        """Hang a relative clause, or a participle or infinitive that does its work, on a noun."""
        frequencies, animate = self.frequencies, noun.kind in ANIMATE
        weights = {"subject": 3.0, "object": 2.5, "zero": 2.0, "reduced": 1.5}
        if depth > 0:
            weights |= {"far_object": frequencies.far, "far_subject": 0.5 * frequencies.far}
        if animate:
            weights |= {"whose": 0.5, "active": 0.8}
        elif noun.kind in ("work", "thing"):
            weights["infinitive"] = 0.6
        elif noun.kind == "place":
            weights["where"] = 2.0
        name = self.dice.draw(weights)
        head: Node = getattr(self, f"_relative_{name}")(noun, depth)
        noun.after(head, "acl" if name in ("reduced", "active", "infinitive") else "acl:relcl")
        noun.heavy = True

    def _relative_pronoun(self, noun: Node) -> Node:
        if self.dice.chance(0.4):
            return Node("that", "that", "WDT")
        return Node("who", "who", "WP") if noun.kind == "person" else Node("which", "which", "WDT")

    def _relative_subject(self, noun: Node, depth: int) -> Node:
        head = self.verb_phrase(noun, self._finite(), depth)
        head.first(self._relative_pronoun(noun), self._subject_relation(head))
        return head

    def _relative_object(self, noun: Node, depth: int) -> Node:
        head = self.clause(depth, noun)
        head.first(self._relative_pronoun(noun), self._filler_relation(head, noun))
        return head

    def _filler_relation(self, head: Node, noun: Node) -> str:
        """Of a pronoun before the verb; if its gap is in a clause within, the two are just dependent."""
        if not any(predicate is head and argument is noun for predicate, argument, _ in self.links):
            return "dep"
        return "obl" if any(child.relation == "case" for child in head.right) else "obj"

    def _relative_zero(self, noun: Node, depth: int) -> Node:
        return self.clause(depth, noun)

    def _reporting(self, complement: Node) -> Node:
        """Somebody says so."""
        subject = self._subject(0, complement)
        head, _ = self.verb("that", subject, self._finite())
        head.first(subject, "nsubj")
        return self._complement(head, complement, "ARG2", "ccomp")

    def _relative_far_object(self, noun: Node, depth: int) -> Node:
        clause = self.clause(depth - 1, noun)
        if self.dice.chance(0.4):
            clause.first(Node("that", "that", "IN"), "mark")
        head = self._reporting(clause)
        if self.dice.chance(0.7):
            head.first(self._relative_pronoun(noun), "dep")
        return head

    def _relative_far_subject(self, noun: Node, depth: int) -> Node:
        head = self._reporting(self.verb_phrase(noun, self._finite(), depth - 1))
        head.first(self._relative_pronoun(noun), "dep")
        return head

    def _relative_whose(self, noun: Node, depth: int) -> Node:
        owned = self.common(self.dice.pick(("work", "thing", "person")), 0, article="whose")
        head = self.verb_phrase(owned, self._finite(), depth)
        head.first(owned, self._subject_relation(head))
        self.link(owned, noun, "poss")
        return head

    def _relative_reduced(self, noun: Node, depth: int) -> Node:
        return self._passive(noun, Mood("en"), depth, None)

    def _relative_active(self, noun: Node, depth: int) -> Node:
        return self.verb_phrase(noun, Mood("ing"), depth)

    def _relative_infinitive(self, noun: Node, depth: int) -> Node:
        return self._transitive(None, Mood("to"), 0, noun)

    def _relative_where(self, noun: Node, depth: int) -> Node:
        head = self.clause(depth)
        head.first(Node("where", "where", "WRB"), "advmod")
        self.link(head, noun, "loc")
        return head

    # Sentences.

    def sentence(self) -> Sentence:
        """A sentence with its tree and its graph."""
        self.links, self.spoken = [], ""
        self.tense = self.dice.draw({"past": 0.65, "present": 0.35})
        depth = self.frequencies.depth
        name = self.dice.draw({"told": 0.88, "asked": 0.04, "wondered": 0.03, "there": 0.03, "it": 0.03})
        tops: list[Node] = []
        root: Node = getattr(self, f"_{name}")(depth)
        tops.append(root)
        if name == "told" and self.dice.chance(0.02):
            second = self.clause(1)
            second.first(Node(";", ";", ":"), "punct")
            tops.append(root.after(second, "parataxis"))
        mark = "?" if name in ("asked", "wondered") else self.dice.draw({".": 0.94, "!": 0.06})
        root.after(Node(mark, mark, "."), "punct")
        return finish(root, self.links, tops)

    def _told(self, depth: int) -> Node:
        rest = 1.0 - self.frequencies.simple
        name = self.dice.draw({
            "simple": self.frequencies.simple, "two": 0.34 * rest, "after": 0.2 * rest, "before": 0.18 * rest,
            "fronted": 0.14 * rest, "doing": 0.14 * rest,
        })  # fmt: skip
        if name == "doing":
            return self._doing(depth)
        head = self.clause(depth - (name in ("two", "after", "before")), shared=name != "two")
        if name == "two":
            word = self.dice.draw({"but": 0.55, "and": 0.35, "so": 0.1})
            self._conjoin(head, self.clause(depth - 2), word, heavy=self.dice.chance(0.5))
        elif name in ("after", "before"):
            self._subordinate(head, depth - 2, fronted=name == "before")
        elif name == "fronted":
            self._front(head)
        return head

    def _subordinate(self, head: Node, depth: int, *, fronted: bool) -> None:
        word = self.dice.pick(_CONCESSIONS if self.dice.chance(0.45) else _REASONS)
        clause = self.clause(depth)
        clause.first(Node(word, word, "IN" if word != "when" else "WRB"), "mark")
        role = "concession" if word in _CONCESSIONS else "condition" if word == "if" else "reason"
        if word in ("when", "after", "before", "while", "since"):
            role = "temp"
        if fronted:
            head.first(comma(), "punct")
            head.first(clause, "advcl")
        else:
            if head.heavy or word in _CONCESSIONS:
                head.after(comma(), "punct")
            head.after(clause, "advcl")
        self.link(head, clause, role)

    def _front(self, head: Node) -> None:
        """A phrase of place or time before everything else."""
        head.first(comma(), "punct")
        if self.dice.chance(0.5):
            noun, role = self.phrase(self.dice.pick(PLACED), self.common("place", 1)), "loc"
        elif self.dice.chance(0.6):
            noun, role = self.phrase(self.dice.pick(("after", "before", "during")), self.common("event", 1)), "temp"
        else:
            noun, role = self.phrase("on", self.noun_phrase("time", 0)), "temp"
        self.link(head, head.first(noun, "obl"), role)

    def _doing(self, depth: int) -> Node:
        """A participle before the clause, of the clause's subject."""
        subject = self.noun_phrase("person", depth - 1, subject=True, located=True)
        head = self.verb_phrase(subject, self._finite(), depth - 1)
        head.first(subject, self._subject_relation(head))
        head.first(comma(), "punct")
        participle = self.verb_phrase(subject, Mood("ing"), 1)
        self.link(head, head.first(participle, "advcl"), "manner")
        return head

    def _asked(self, depth: int) -> Node:
        """Did he go?"""
        subject = self._subject(depth - 1, None)
        head = self.verb_phrase(subject, replace(self._finite(), negated=False, asked=True), depth - 1)
        return self._invert(head, subject)

    def _invert(self, head: Node, subject: Node) -> Node:
        subject.relation = self._subject_relation(head)
        head.left.insert(1, subject)
        return head

    def _wondered(self, depth: int) -> Node:
        """Which one did he see? The gap may be far away."""
        kind = self.dice.pick(("person", "work", "thing", "place", "event"))
        noun = self.common(kind, 1, article="which")
        subject = self._subject(0, noun)
        head = self.verb_phrase(subject, replace(self._finite(), negated=False, asked=True), depth - 1, noun)
        self._invert(head, subject)
        head.first(noun, self._filler_relation(head, noun))
        return head

    def _there(self, depth: int) -> Node:
        noun = self.common(
            self.dice.pick(("person", "work", "event", "thing")), depth, article=self.dice.pick(("a", "a", "no"))
        )
        form, tag = ("was", "VBD") if self.tense == "past" else ("is", "VBZ")
        head = Node(form, "be", tag, kind="verb")
        head.first(Node("there", "there", "EX"), "expl")
        self.link(head, head.after(noun, "nsubj"), "ARG1")
        return self.adjuncts(head, manner=False)

    def _it(self, depth: int) -> Node:
        """It was strange that he came."""
        head = self.graded(self.dice.pick(self.lexicon.adjectives["obvious"]))
        inside, head.left = head.left, []
        dummy = Node("it", "it", "PRP")
        self._conjugate(head, None, dummy, self._finite())
        head.left += inside
        head.first(dummy, "expl")
        clause = self.clause(depth - 1)
        clause.first(Node("that", "that", "IN"), "mark")
        return self._complement(head, clause, "ARG1", "csubj")
