"""Verb phrases: one method for each frame, and what may follow any of them."""

import abc
from dataclasses import replace

from research.synthetic.conjugation import Mood, conjugate, inflect
from research.synthetic.draft import Node
from research.synthetic.lexicon import MANNER, VERB_KINDS, Word
from research.synthetic.nouns import ANIMATE, PLACED, AbstractNouns

_OBJECTS = {"person": 0.26, "work": 0.24, "thing": 0.24, "place": 0.1, "event": 0.12, "idea": 0.04}
_MOMENTS = ("yesterday", "today", "recently", "again", "then", "once")
_TO = Mood("to")


def _class(kind: str) -> str:
    """Groups are treated as people are."""
    return "person" if kind == "group" else kind


class AbstractVerbs(AbstractNouns):
    """Verb phrases. Each frame takes the subject, the mood, the depth left and a gap.

    A subject is not hung here, only linked: the subject of an infinitive is a word of another clause. A gap is a noun
    from outside, a question's or a relative clause's, that the frame links where it would have put a phrase of its own.
    """

    @abc.abstractmethod
    def clause(self, depth: int, gap: Node | None = None) -> Node:
        """A finite clause with its subject."""

    def verb_phrase(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None = None) -> Node:
        """A verb phrase for this subject, of any frame that fits."""
        weights = self._weights(subject, mood, depth, gap)
        frame = self.dice.draw(weights)
        return getattr(self, f"_{frame}")(subject, mood, depth, gap)

    def _weights(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> dict[str, float]:
        frequencies = self.frequencies
        deep = depth > 0
        animate = subject is None or subject.kind in ANIMATE
        if gap is not None:
            weights = {"transitive": 10.0, "governed": 3.0}
            if deep:
                weights |= {
                    "that": 1.2 * frequencies.embedding,
                    "to": frequencies.control,
                    "persuade": frequencies.control,
                }
            return weights
        if not animate:
            weights = {"move": 5.0, "happen": 1.5}
            if mood.form != "ing":
                weights |= {"adjective": 9.0, "verdict": 2.5, "passive": 2 * frequencies.passive, "placed": 0.6}
                weights |= {"have": 3.0} if subject is not None and subject.kind in ("work", "event") else {}
                weights |= {"tough": 1.2, "seem": frequencies.control * 0.7} if deep and mood.finite else {}
            return weights
        weights = {"alone": 3.0, "transitive": 9.0, "governed": 3.0, "double": 6.0, "give": 2.5, "particle": 1.2}
        if mood.form != "ing":
            weights |= {
                "adjective": 6.0,
                "noun": 2.5,
                "adjective_of": 2.0,
                "placed": 0.8,
                "passive": frequencies.passive,
            }
        if mood.form == "to":
            weights |= {"adjective": 1.0, "noun": 0.3, "placed": 0.2}
        if deep:
            control = frequencies.control
            weights |= {
                "that": frequencies.embedding,
                "to": 1.5 * control,
                "persuade": control,
                "promise": 0.5 * control,
            }
            weights |= {"expect": 0.6 * control, "enjoy": 0.6 * control, "see": 0.7 * control}
            if mood.form == "to":
                weights["to"] = 0.4 * control
            elif mood.form != "ing":
                weights |= {"seem": 0.8 * control, "eager": control, "urged": 0.4 * frequencies.passive, "tough": 0.3}
        return weights

    # Parts that frames share.

    def verb(self, name: str | Word, subject: Node | None, mood: Mood, role: str = "ARG1") -> tuple[Node, Word]:
        """A verb of a class, conjugated, with its subject linked."""
        word = self.dice.word(self.lexicon.verbs[name]) if isinstance(name, str) else name
        head = Node(word.lemma, word.lemma, "VB", kind="verb")
        self._conjugate(head, word, subject, mood)
        self.link(head, subject, role)
        return head, word

    def _conjugate(self, head: Node, word: Word | None, subject: Node | None, mood: Mood) -> None:
        if subject is not None and subject.lemma == "nobody":
            mood = replace(mood, negated=False)
        negation = conjugate(self.dice, head, word, mood, subject.agreement if subject else "3s")
        self.link(head, negation, "neg")

    def _object(self, head: Node, kinds: str, depth: int, role: str = "ARG2", *, located: bool = False) -> Node:
        noun = self.noun_phrase(kinds, depth - 1, located=located)
        self.link(head, head.after(noun, "obj"), role)
        return noun

    def _oblique(self, head: Node, preposition: str, noun: Node, role: str) -> Node:
        self.link(head, head.after(self.phrase(preposition, noun), "obl"), role)
        return noun

    def _complement(self, head: Node, phrase: Node, role: str, relation: str = "xcomp") -> Node:
        head.after(phrase, relation)
        head.heavy = True
        self.link(head, phrase, role)
        return head

    def adjuncts(self, head: Node, *, tool: bool = False, manner: bool = True) -> Node:
        """What may follow any verb: how, where, with what, with whom, when."""
        dice = self.dice
        if head.heavy and dice.chance(0.7):  # what follows a clause is mostly part of it
            return head
        if manner and dice.chance(0.16):
            lemma = dice.pick(MANNER).lemma
            self.link(head, head.after(Node(lemma, lemma, "RB"), "advmod"), "manner")
        if tool and dice.chance(0.25):
            self._oblique(head, "with", self.common("tool", 0), "instr")
        elif dice.chance(0.08):
            self._oblique(head, "with", self.noun_phrase("person", 0), "with")
        if dice.chance(0.3):
            self._oblique(head, dice.pick(PLACED), self.common("place", 1), "loc")
        when = dice.draw({"none": 0.75, "adverb": 0.07, "day": 0.08, "event": 0.1})
        if when == "adverb":
            lemma = dice.pick(_MOMENTS)
            self.link(head, head.after(Node(lemma, lemma, "RB"), "advmod"), "temp")
        elif when == "day":
            self._oblique(head, "on", self.noun_phrase("time", 0), "temp")
        elif when == "event":
            self._oblique(head, dice.pick(("after", "before", "during")), self.common("event", 1), "temp")
        return head

    # Frames without a clause.

    def _alone(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        return self.adjuncts(self.verb("alone", subject, mood)[0])

    def _happen(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        return self.adjuncts(self.verb("happen", subject, mood)[0])

    def _transitive(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        kind = _class(gap.kind) if gap else self.dice.draw(_OBJECTS)
        state = kind == "idea" or self.dice.chance(0.4)
        name = f"{kind}@" if state else kind
        head, _ = self.verb(name, subject, mood)
        second = self._second(head, name, subject) if self.dice.chance(self.frequencies.coordination * 0.4) else None
        if gap is None:
            noun = self._object(head, kind, depth, located=state)
        else:
            noun = gap
            self.link(head, gap, "ARG2")
        if second is not None:
            self.link(second, noun, "ARG2")
        return head if state else self.adjuncts(head, tool=kind in ("thing", "place"))

    def _second(self, head: Node, name: str, subject: Node | None) -> Node | None:
        """A second verb in the form of the first, sharing its subject and its object."""
        word = self.dice.word(self.lexicon.verbs[name])
        if word.lemma == head.lemma:
            return None
        forms = {"VB": "base", "VBG": "ing", "VBN": "en", "VBD": "past", "VBZ": "present", "VBP": "present"}
        form, tag = inflect(word, forms[head.tag], "3s" if head.tag == "VBZ" else "p")
        second = Node(form, word.lemma, tag, kind="verb")
        second.first(Node("and", "and", "CC"), "cc")
        self.link(head, head.after(second, "conj"), "conj")
        self.link(second, subject, "ARG1")
        return second

    def _governed(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        """A verb that chooses its preposition; the preposition stays behind where its noun has gone."""
        options = [(word, self._governs(word)) for word in self.lexicon.verbs["prep"]]
        if gap is not None:
            options = [option for option in options if gap.kind in option[1].split()]
            if not options:
                return self._transitive(subject, mood, depth, gap)
        word, kinds = self.dice.pick(options)
        head, _ = self.verb(word, subject, mood)
        preposition = word.governs[0]
        if gap is None:
            self._oblique(head, preposition, self.noun_phrase(kinds, depth - 1), "ARG2")
            return head
        head.after(Node(preposition, preposition, "TO" if preposition == "to" else "IN"), "case")
        self.link(head, gap, "ARG2")
        return head

    def _governs(self, word: Word, same: str = "") -> str:
        kinds = VERB_KINDS.get(f"{word.lemma}:{word.governs[0]}") or VERB_KINDS[word.governs[0]]
        return same if kinds == "same" else kinds

    def _double(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        """An object and a governed phrase: the noun between them does not get it."""
        kind = self.dice.pick(("person", "thing", "work"))
        head, word = self.verb(f"{kind}_prep", subject, mood)
        self._object(head, kind, depth)
        noun = self.noun_phrase(self._governs(word, kind), depth - 1)
        self._oblique(head, word.governs[0], noun, "ARG3")
        return head

    def _give(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, word = self.verb("give", subject, mood)
        if self.dice.chance(0.5):
            recipient = self.noun_phrase("person", 0)
            self.link(head, head.after(recipient, "iobj"), "ARG3")
            self._object(head, "thing work", depth)
        else:
            self._object(head, "thing work", depth)
            preposition = "for" if word.lemma == "buy" else "to"
            self._oblique(head, preposition, self.noun_phrase("person", 0), "ARG3")
        return head

    def _particle(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, word = self.verb("particle", subject, mood)
        particle = Node(word.governs[0], word.governs[0], "RP")
        if self.dice.chance(0.5):
            head.after(particle, "compound:prt")
            self._object(head, "thing work", depth)
        else:
            self._object(head, "thing work", 0)
            head.after(particle, "compound:prt")
        return head

    def _move(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, _ = self.verb("move", subject, mood)
        self._object(head, "person person group", depth, located=True)
        return head

    def _have(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        word = self.dice.pick((Word("have", ("had", "had")), Word("lack"), Word("show", ("showed", "shown"))))
        head, _ = self.verb(word, subject, mood)
        article = "no" if word.lemma != "lack" and not mood.negated and self.dice.chance(0.3) else ""
        noun = self.common("quality", 0, article=article)
        self.link(head, head.after(noun, "obj"), "ARG2")
        return head

    def _passive(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        kind = _class(subject.kind) if subject else "thing"
        name = f"{kind}_prep" if kind in ("person", "thing", "work") and self.dice.chance(0.25) else kind
        if name == kind and self.dice.chance(0.35):
            name = f"{kind}@"
        head, word = self.verb(name, subject, replace(mood, passive=True), role="ARG2")
        if name.endswith("_prep"):
            self._oblique(head, word.governs[0], self.noun_phrase(self._governs(word, kind), 0), "ARG3")
        if self.dice.chance(0.6) or mood.form == "en":
            agent = self.noun_phrase("person person person group", depth - 1)
            head.after(self.phrase("by", agent), "obl:agent")
            self.link(head, agent, "ARG1")
        return head if name.endswith(("@", "_prep")) else self.adjuncts(head)

    # Predicates with a copula.

    def _copula(self, head: Node, subject: Node | None, mood: Mood) -> Node:
        """Hang a copula on its predicate, before all that is there, and link the subject.

        An adjective takes the subject itself. A noun may have an argument of its own, so the copula relates the two.
        """
        inside, head.left = head.left, []
        self._conjugate(head, None, subject, mood)
        if head.tag == "JJ":
            self.link(head, subject, "ARG1")
        else:
            copula = next(child for child in head.left if child.relation == "cop")
            self.link(copula, subject, "ARG1")
            self.link(copula, head, "ARG2")
        head.left += inside
        return head

    def _adjective(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        kind = subject.kind if subject else "person"
        head = self._copula(self.adjective(_class(kind)), subject, mood)
        if self.dice.chance(self.frequencies.coordination * 0.8):
            word = self.dice.pick(self.lexicon.adjectives[_class(kind)])
            if word.lemma != head.lemma:
                second = self.graded(word)
                contrast = self.dice.pick(("and", "but"))
                second.first(Node(contrast, contrast, "CC"), "cc")
                self.link(head, head.after(second, "conj"), "conj")
                self.link(second, subject, "ARG1")
        return head

    def _adjective_of(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        word = self.dice.pick(self.lexicon.adjectives["of"])
        head = self._copula(self.graded(word), subject, mood)
        self._oblique(head, word.governs[0], self.noun_phrase("person work event place", depth - 1), "ARG2")
        return head

    def _noun(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        if subject is None or subject.agreement == "p" or subject.kind != "person":
            return self._adjective(subject, mood, depth, gap)
        return self._copula(self.common("person", depth - 1, article="a"), subject, mood)

    def _verdict(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        if subject is None or subject.agreement == "p":
            return self._adjective(subject, mood, depth, gap)
        return self._copula(self.common("verdict", 0, article="a"), subject, mood)

    def _placed(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head = self.phrase(self.dice.pick(PLACED), self.common("place", 0))
        return self._copula(head, subject, mood)

    # Frames with a clause. Who its subject is depends on the verb.

    def _that(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        name = "that-" if self.dice.chance(0.15) else "that"
        head, _ = self.verb(name, subject, mood)
        clause = self.clause(depth - 1, gap)
        if name == "that-" or self.dice.chance(0.55):
            clause.first(Node("that", "that", "IN"), "mark")
        return self._complement(head, clause, "ARG2", "ccomp")

    def _to(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, _ = self.verb("to-" if self.dice.chance(0.25) else "to", subject, mood)
        return self._complement(head, self.verb_phrase(subject, _TO, depth - 1, gap), "ARG2")

    def _persuade(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, _ = self.verb("object_to-" if self.dice.chance(0.08) else "object_to", subject, mood)
        noun = self._object(head, "person", 1)
        return self._complement(head, self.verb_phrase(noun, self._infinitive(), depth - 1, gap), "ARG3")

    def _infinitive(self) -> Mood:
        return Mood("to", negated=self.dice.chance(0.08))

    def _promise(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, _ = self.verb("subject_to", subject, mood)
        self._object(head, "person", 1)
        return self._complement(head, self.verb_phrase(subject, self._infinitive(), depth - 1), "ARG3")

    def _expect(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, _ = self.verb("raise_to", subject, mood)
        noun = head.after(self.noun_phrase("person work event", 1), "obj")
        return self._complement(head, self.verb_phrase(noun, _TO, depth - 1), "ARG2")

    def _see(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, _ = self.verb("see", subject, mood)
        noun = head.after(self.noun_phrase("person", 1), "obj")
        return self._complement(head, self.verb_phrase(noun, Mood("ing"), depth - 1), "ARG2")

    def _enjoy(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head, _ = self.verb("ing-" if self.dice.chance(0.3) else "ing", subject, mood)
        return self._complement(head, self.verb_phrase(subject, Mood("ing"), depth - 1), "ARG2")

    def _seem(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        word = self.dice.word(self.lexicon.verbs["seem"])
        head = Node(word.lemma, word.lemma, "VB", kind="verb")
        self._conjugate(head, word, subject, mood)
        return self._complement(head, self.verb_phrase(subject, _TO, depth - 1), "ARG1")

    def _eager(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        head = self._copula(self.graded(self.dice.pick(self.lexicon.adjectives["eager"])), subject, mood)
        return self._complement(head, self.verb_phrase(subject, _TO, depth - 1), "ARG2")

    def _tough(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        """Easy to please: the subject is what the infinitive does without."""
        if subject is None or subject.lemma == "nobody":
            return self._adjective(subject, mood, depth, gap)
        word = self.dice.pick(self.lexicon.adjectives["tough"])
        head = Node(word.lemma, word.lemma, "JJ")
        self._conjugate(head, None, subject, mood)
        return self._complement(head, self._transitive(None, _TO, 0, subject), "ARG1")

    def _urged(self, subject: Node | None, mood: Mood, depth: int, gap: Node | None) -> Node:
        """Object control in the passive: the surface subject controls after all."""
        head, _ = self.verb("object_to", subject, replace(mood, passive=True), role="ARG2")
        if self.dice.chance(0.35):
            agent = self.noun_phrase("person", 0)
            head.after(self.phrase("by", agent), "obl:agent")
            self.link(head, agent, "ARG1")
        return self._complement(head, self.verb_phrase(subject, self._infinitive(), depth - 1), "ARG3")
