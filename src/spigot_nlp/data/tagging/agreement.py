"""The tags and lemmas that are written: those that were read, in agreement with what was found after that."""

from collections.abc import Sequence

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemma_table import LemmaTable
from spigot_nlp.data.tagging.lemmas import Lemmatiser
from spigot_nlp.data.text.conventions import plain_letters

_PARTICIPLES = frozenset({"become", "been", "come", "gone", "got", "gotten", "grown", "had", "happened"})
"""What `'s` is the perfect of, and hardly ever the passive."""
_PAST = frozenset({"VBN", "VBD"})


def with_tags(given: Sentence, read: Sentence, table: LemmaTable | None = None) -> Sentence:
    """A sentence with its own words, and the tags and lemmas that were read.

    Args:
        given: The sentence.
        read: The same, perhaps with other tags and lemmas, and in another spelling. A lemma that only repeats that
            spelling is written as the sentence writes the word.
        table: What finds better lemmas than those that were read.

    Example:
        >>> with_tags(Sentence(("Rain",), tags=("VB",)), Sentence(("Rain",), tags=("NN",))).tags
        ('NN',)
        >>> with_tags(Sentence(("Is", "n't")), Sentence(("Is", "n’t"), lemmas=("be", "n’t"))).lemmas
        ('be', "n't")
        >>> with_tags(Sentence(("Me",)), Sentence(("Me",), tags=("PRP",), lemmas=("i",))).lemmas    # as it is written
        ('I',)
    """
    lemmas = read.lemmas
    if lemmas is given.lemmas and read.tags is given.tags:  # none were looked for
        return given if given.upos is None else given.put("upos", None)
    if lemmas is not None:
        lemmas = lemmas if table is None else table.lemmas(read)
        if read.forms != given.forms:
            words = zip(given.forms, read.forms, lemmas, strict=True)
            lemmas = tuple(plain_letters(own).lower() if lemma == said.lower() else lemma for own, said, lemma in words)
        if "i" in lemmas and read.tags is not None:
            tagged = zip(lemmas, read.tags, strict=True)
            lemmas = tuple("I" if (lemma, tag) == ("i", "PRP") else lemma for lemma, tag in tagged)
    return given.put_all({"tags": read.tags, "upos": None, "lemmas": lemmas})


def agreed(sentence: Sentence, table: LemmaTable, lemmatiser: Lemmatiser) -> Sentence:
    """A sentence whose tags fit its universal ones, with lemmas that fit the tags.

    Only what is written changes: nobody reads these tags any more.

    Args:
        sentence: The sentence; as it is if it lacks tags or lemmas.
        table: What a treebank has taught.
        lemmatiser: The dictionary.

    Example:
        >>> seen = [Sentence(("It", "fell"), ("it", "fall"), ("PRP", "VBD"), upos=("PRON", "VERB"))] * 3
        >>> table, wrong = LemmaTable.learn(seen, {"fall"}), Sentence(("Fell",), ("fell",), ("NN",), upos=("VERB",))
        >>> agreed(wrong, table, Lemmatiser()).tags, agreed(wrong, table, Lemmatiser()).lemmas
        (('VBD',), ('fall',))
    """
    if sentence.upos is None or sentence.tags is None or sentence.lemmas is None:
        return sentence
    forms = sentence.forms
    tags, lemmas = table.tags.agreed(forms, sentence.upos, sentence.tags), list(sentence.lemmas)
    if tags is not sentence.tags:
        for k, (before, tag) in enumerate(zip(sentence.tags, tags, strict=True)):
            if tag != before:
                form = forms[k].replace("\u2019", "'")
                lemma = table.lemma(form, tag, lemmatiser.lemma(form, tag))
                lemmas[k] = "I" if (lemma, tag) == ("i", "PRP") else lemma
    perfect = [
        (k, tag)
        for k, form in enumerate(forms)
        if len(form) == 2 and sentence.upos[k] == "AUX" and (tag := _have(k, forms, sentence.upos, tags))
    ]
    if perfect:
        changed = dict(perfect)
        tags = tuple(changed.get(k, tag) for k, tag in enumerate(tags))
        for k in changed:
            lemmas[k] = "have"
    if tags is sentence.tags:
        return sentence
    return sentence.put_all({"tags": tags, "lemmas": tuple(lemmas)})


def _have(place: int, forms: Sequence[str], upos: Sequence[str], tags: Sequence[str]) -> str:
    """The tag of `'s` or `'d` where it is *has* or *had*, by the word that follows adverbs; empty where it is not."""
    form = forms[place].replace("\u2019", "'").lower()
    if form not in ("'s", "'d"):
        return ""
    following = place + 1
    while following < len(forms) and forms[following].lower() != "better":
        if upos[following] != "ADV" and forms[following].lower() not in ("not", "n't"):
            break
        following += 1
    if following == len(forms):
        return ""
    if form == "'d":
        return "VBD" if tags[following] in _PAST or forms[following].lower() == "better" else ""
    return "VBZ" if forms[following].lower() in _PARTICIPLES else ""
