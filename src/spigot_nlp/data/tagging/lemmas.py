"""Lemmas from a dictionary, and tags and lemmas together."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.tagger import Tagger

# Singular nouns, names and adjectives without an ending are their own lemmas. The dictionary, which does not know the
# tag, would take a meeting for the verb and a name for the plural it looks like.
_BARE = frozenset({"NN", "JJ"})
# The dictionary leaves alone what may be a verb or a possessive; the tag tells.
_CLITICS = {("'s", "VBZ"): "be", ("’s", "VBZ"): "be", ("s", "VBZ"): "be", ("'d", "MD"): "would", ("’d", "MD"): "would"}
_CLITICS |= {("sha", tag): "shall" for tag in ("MD", "VB", "VBP")}
_CLITICS |= {("lem", tag): "let" for tag in ("VB", "VBP")} | {("gim", tag): "give" for tag in ("VB", "VBP")}  # lem me
REMEMBERED = 500_000
"""Words kept between calls: a stream may hold any number of them."""


@final
@dataclass(frozen=True)
class Lemmatiser:
    """Gives each word its lemma: the dictionary of `simplemma`, corrected by the Penn tag if there is one.

    A word tagged `NN` or `JJ` is its own lemma, and `'s` as a verb is "be"; everything else is looked up without
    regard to its tag, and so is every word of a sentence without tags. Lemmas are lower-cased, but for names: a word
    tagged `NNP` is its own lemma as it is written, and one tagged `NNPS` keeps its first letter.

    Attributes:
        language: The language of the dictionary, as `simplemma` names it. The rules for tags are English.
        asked: Words that the dictionary need not be asked about again; it takes a while to load.
        answers: What it says of them, where that is not the word itself.

    Example:
        >>> sentence = Sentence(("The", "meetings", "went", "well"), tags=("DT", "NNS", "VBD", "RB"))
        >>> next(Lemmatiser().lemmatise([sentence])).lemmas
        ('the', 'meeting', 'go', 'well')
    """

    language: str = "en"
    asked: Collection[str] = field(default=(), repr=False, compare=False)
    answers: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    _cache: dict[tuple[str, str], str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.language == "en":  # which there is, and which is loaded when a word is looked up
            return
        try:  # now, not at the first sentence
            self.dictionary("words")
        except ValueError as cause:
            raise ValueError(
                f"language is {self.language!r}; simplemma has no dictionary for it. Give a code it knows, like 'en'."
            ) from cause

    def lemmatise(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """The sentences with lemmas in place of whatever they had, in order, as a stream.

        Example:
            >>> [sentence.lemmas for sentence in Lemmatiser().lemmatise([Sentence(("Dogs", "barked"))])]
            [('dog', 'bark')]
        """
        known = self._cache
        for sentence in sentences:
            if len(known) > REMEMBERED:
                known.clear()
            words = list(zip(sentence.forms, sentence.tags or ("",) * len(sentence), strict=True))
            try:
                lemmas = tuple([known[word] for word in words])
            except KeyError:
                for word in words:
                    if word not in known:
                        known[word] = self.lemma(*word)
                lemmas = tuple([known[word] for word in words])
            yield sentence.put("lemmas", lemmas)

    def lemma(self, form: str, tag: str = "") -> str:
        """The lemma of a word with a tag, or without one.

        Example:
            >>> Lemmatiser().lemma("Meetings", "NNS"), Lemmatiser().lemma("Rivers", "NNP")
            ('meeting', 'Rivers')
        """
        low = form.lower()
        if tag == "NNP":
            return form
        if tag in _BARE or not low:
            return low
        found = _CLITICS.get((low, tag)) or self.dictionary(low)
        return form[0] + found[1:] if tag == "NNPS" and found[:1] == low[0] else found

    def dictionary(self, word: str) -> str:
        """What the dictionary says of a word, which is not empty and in small letters.

        Example:
            >>> Lemmatiser().dictionary("geese")
            'goose'
        """
        if word in self.asked:
            return self.answers.get(word, word)
        import simplemma

        return simplemma.lemmatize(word, lang=self.language).lower()


def annotate(sentences: Iterable[Sentence], tagger: Tagger, lemmatiser: Lemmatiser | None = None) -> Iterator[Sentence]:
    """The sentences with predicted tags and lemmas, in order, as a stream.

    Args:
        sentences: Sentences; whatever tags and lemmas they have are replaced.
        tagger: Predicts the tags.
        lemmatiser: Gives the lemmas; the English one if left out.

    Example:
        >>> tagger = Tagger.train([Sentence(("Dogs", "barked"), tags=("NNS", "VBD"))])
        >>> sentence = next(annotate([Sentence(("Frogs", "croaked"))], tagger))
        >>> sentence.tags, sentence.lemmas
        (('NNS', 'VBD'), ('frog', 'croak'))
    """
    return (lemmatiser or Lemmatiser()).lemmatise(tagger.tag(sentences))
