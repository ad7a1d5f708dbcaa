"""Tense, mood, voice and negation: the words before a verb."""

from dataclasses import dataclass

from research.synthetic.draft import Dice, Node
from research.synthetic.lexicon import Word
from research.synthetic.morphology import gerund, third_person

_TAGS = {"base": "VB", "ing": "VBG", "en": "VBN", "past": "VBD"}
_BE = Word("be")
_HAVE = Word("have", ("had", "had"))
_DO = Word("do", ("did", "done"))
_BE_FORMS = {"base": "be", "ing": "being", "en": "been"}
_MODALS = {"past": ("could", "would", "might", "should"), "present": ("can", "will", "may", "must", "should")}
_CONTRACTED = {"can": "ca", "will": "wo"}
_NEVER_CONTRACTED = ("am", "may", "might")


@dataclass(frozen=True)
class Mood:
    """How a verb stands in its clause.

    Attributes:
        form: `past`, `present`, `to`, `base`, `ing` or `en`.
        negated: Whether it is denied.
        passive: Whether it is passive.
        asked: Whether an auxiliary must come first.
    """

    form: str
    negated: bool = False
    passive: bool = False
    asked: bool = False

    @property
    def finite(self) -> bool:
        """Whether the verb has tense."""
        return self.form in ("past", "present")


def inflect(word: Word, form: str, agreement: str) -> tuple[str, str]:
    """A verb in a form, and its tag.

    Example:
        >>> inflect(Word("try"), "present", "3s"), inflect(Word("be"), "past", "p")
        (('tries', 'VBZ'), ('were', 'VBD'))
    """
    if form == "present":
        tag = "VBZ" if agreement == "3s" else "VBP"
        if word.lemma == "be":
            return {"3s": "is", "p": "are", "1s": "am"}[agreement], tag
        return (third_person(word.lemma), tag) if agreement == "3s" else (word.lemma, tag)
    if word.lemma == "be":
        return (("were" if agreement == "p" else "was") if form == "past" else _BE_FORMS[form]), _TAGS[form]
    surface = {"base": word.lemma, "past": word.past, "en": word.participle}.get(form) or gerund(word.lemma)
    return surface, _TAGS[form]


def conjugate(dice: Dice, head: Node, word: Word | None, mood: Mood, agreement: str) -> Node | None:
    """Give a verb its form, and hang its auxiliaries and negation before it.

    Args:
        dice: For what is free: modals, perfects, contractions.
        head: The verb, or the predicate of a copula.
        word: The verb's entry; none asks for a copula.
        mood: The form wanted.
        agreement: Of the subject.

    Returns:
        The negation, if there is one.

    Example:
        >>> verb = Node("try", "try", "VB")
        >>> _ = conjugate(Dice(0), verb, Word("try"), Mood("to", negated=True), "3s")
        >>> [node.form for node in [*verb.left, verb]]
        ['not', 'to', 'try']
    """
    auxiliaries = _auxiliaries(dice, word, mood)
    form, negation = mood.form, None
    never = mood.negated and mood.finite and dice.chance(0.15)
    if mood.negated and not mood.finite:
        negation = head.before(Node("not", "not", "RB"), "advmod")
    if form == "to":
        head.before(Node("to", "to", "TO"), "mark")
        form = "base"
    if not auxiliaries and word is not None and (mood.asked or (mood.negated and mood.finite and not never)):
        auxiliaries = [(_DO, "base", "aux")]
    if word is None:
        auxiliaries.append((_BE, form, "cop"))
    for place, (auxiliary, following, relation) in enumerate(auxiliaries):
        if auxiliary.forms == ("modal",):
            surface, tag = auxiliary.lemma, "MD"
        else:
            surface, tag = inflect(auxiliary, form, agreement)
        node = head.before(Node(surface, auxiliary.lemma, tag), relation)
        if place == 0 and mood.negated and mood.finite:
            negation = head.before(_negation(dice, node, never), "advmod")
        form = following
    if negation is None and mood.negated:
        negation = head.before(Node("never", "never", "RB"), "advmod")
    if word is not None:
        head.form, head.tag = inflect(word, form, agreement)
    return negation


def _negation(dice: Dice, auxiliary: Node, never: bool) -> Node:
    if never:
        return Node("never", "never", "RB")
    if auxiliary.form in _NEVER_CONTRACTED or dice.chance(0.55):
        return Node("not", "not", "RB")
    auxiliary.form = _CONTRACTED.get(auxiliary.form, auxiliary.form)
    return Node("n't", "not", "RB")


def _auxiliaries(dice: Dice, word: Word | None, mood: Mood) -> list[tuple[Word, str, str]]:
    """The verb's auxiliaries, each with the form it asks of the next and its relation."""
    chain: list[tuple[Word, str, str]] = []
    if mood.finite:
        if dice.chance(0.1):
            chain.append((Word(dice.pick(_MODALS[mood.form]), ("modal",)), "base", "aux"))
        if dice.chance(0.08) and not chain:
            chain.append((_HAVE, "en", "aux"))
    if mood.passive and mood.form != "en":
        chain.append((_BE, "en", "aux:pass"))
    return chain
