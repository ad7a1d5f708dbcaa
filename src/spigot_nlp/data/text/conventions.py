r"""How the training data of a system were tokenised and spelt, so that plain text can be told to it in the same way.

Treebanks differ: one cuts words at hyphens, another does not; one has straight quotation marks, another `“ ”`. A system
that has never seen `"` or `n't` takes them for unknown words, wherever they stand. What its vocabulary counts says
which manner is its own.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.raw import Splitter, sentences
from spigot_nlp.data.text.spacing import Spacing
from spigot_nlp.data.text.tokens import PREFIXES, is_contraction

if TYPE_CHECKING:
    from spigot_nlp.data.vocab import Vocab

_COMPOUND = re.compile(r"([^\W\d_]{2,})-[^\W\d_]{2,}")
_INITIALS = re.compile(r"(?:[a-z]+\.){2,}")
_SHARE, _LEAST = 0.2, 20  # of compounds among the places where a hyphen could be cut off, and how many there must be
_APOSTROPHES = "'\u2019`\u00b4\u2018"
_CLITICS = ("n't", "'s", "'m", "'d", "'re", "'ve", "'ll", "'em", "'")
_DASHES = ("--", "\u2014", "\u2013", "---")
_DOTS = ("...", "\u2026", "....", "..")
_DOUBLE = ('"', "\u201c", "\u201d", "``", "''", "\u201e", "\u00ab", "\u00bb")
_SINGLE = ("'", "\u2018", "\u2019", "`", "\u201a")
_OPEN = dict.fromkeys(_DOUBLE, ("\u201c", "``", '"', "\u00ab")) | dict.fromkeys(_SINGLE, ("\u2018", "`", "'"))
_OPENERS = frozenset({"Gim", "Gon", "Lem", "Wan"})  # Gimme, Gonna, Lemme, Wanna
_UNSEEN = "\u00ad\u2060\ufeff"  # signs inside words that print nothing, and mean nothing
_SHUT = dict.fromkeys(_DOUBLE, ("\u201d", "''", '"', "\u00bb")) | dict.fromkeys(_SINGLE, ("\u2019", "'"))


@dataclass(frozen=True)
class Conventions:
    """A manner of tokenising and spelling.

    Attributes:
        hyphens: Whether words are cut at hyphens; see `spigot_nlp.data.text.raw.tokenise`.
        cannot: Whether `cannot` is two words.
        spellings: What to write for a token, in place of how it is spelt; both lower-case.
        opening: The same for quotation marks that open, where that makes a difference.
        letters: Whether words are in plain letters; see `plain_letters`.

    Example:
        >>> from spigot_nlp.data.vocab import Vocab
        >>> vocab = Vocab.of([Sentence(("“", "I", "do", "n’t", "”"))])
        >>> conventions = Conventions.of(vocab)
        >>> conventions.respell(Sentence(('"', "Do", "n't", '"'), source=Spacing("", ("", "", "", "")))).forms
        ('“', 'Do', 'n’t', '”')
        >>> Conventions.of(Vocab.of([Sentence(("the", "U.K.", "is"))])).respell(Sentence(("the", "U.K", "."))).forms
        ('the', 'U.K.', '.')
    """

    hyphens: bool = True
    cannot: bool = True
    spellings: Mapping[str, str] = field(default_factory=dict)
    opening: Mapping[str, str] = field(default_factory=dict)
    letters: bool = True

    @classmethod
    def of(cls, vocab: "Vocab") -> "Conventions":
        """The manner of the data that a vocabulary was collected from.

        Args:
            vocab: The vocabulary of a system; words that only have a vector do not count.
        """
        counts = {word: count for word, count in zip(vocab.words, vocab.counts, strict=True) if count}
        compounds = sum(counts[word] for word in counts if (m := _COMPOUND.fullmatch(word)) and m[1] not in PREFIXES)
        cut = counts.get("-", 0)

        def usual(candidates: Iterable[str]) -> str | None:
            return max((form for form in candidates if form in counts), key=counts.__getitem__, default=None)

        spellings: dict[str, str] = {}
        for group in (_DASHES, _DOTS):
            spellings |= _unseen(group, usual(group), counts)
        for clitic in _CLITICS:
            group = [clitic.replace("'", mark) for mark in _APOSTROPHES]
            spellings |= _unseen(group, usual(group), counts)
        for word in filter(_INITIALS.fullmatch, counts):  # whose stop was cut off for the end of a sentence
            spellings |= _unseen([word[:-1]], word, counts)
        opening: dict[str, str] = {}
        for form in _OPEN:
            opening |= _unseen([form], usual(_OPEN[form]), counts)
            spellings |= _unseen([form], usual(_SHUT[form]), counts)
        return cls(
            hyphens=compounds < _LEAST or compounds < _SHARE * (cut + compounds),
            cannot="cannot" not in counts,
            spellings=spellings,
            opening=opening,
            letters=100 * sum(plain_letters(word) != word for word in counts) <= len(counts),
        )

    def respell(self, sentence: Sentence) -> Sentence:
        """The sentence as the training data would spell it, in letters that they have.

        Args:
            sentence: A sentence; its white space, if it is known, tells which quotation marks open.
        """
        spellings = self.spellings
        forms = sentence.forms
        if self.letters and not all(map(str.isascii, forms)):
            plain = tuple(map(plain_letters, forms))
            if plain != forms:
                return self.respell(replace(sentence, forms=plain))
        if not _OPENERS.isdisjoint(forms):
            small = tuple(form.lower() if _opens(sentence, k) else form for k, form in enumerate(forms))
            if small != forms:
                return self.respell(replace(sentence, forms=small))
        if not spellings or spellings.keys().isdisjoint(map(str.lower, forms)):
            return sentence
        spacing = sentence.source
        after = spacing.after if isinstance(spacing, Spacing) else (" ",) * len(forms)
        told: list[str] = []
        quoted = False
        for k, form in enumerate(forms):
            low = form.lower()
            other = spellings.get(low)
            if low in self.opening:
                apart, follows = k == 0 or bool(after[k - 1]), k + 1 < len(forms) and not after[k]
                opens = follows if apart == follows else not quoted
                quoted = opens
                other = self.opening[low] if opens else other
            told.append(form if other is None else _written_like(form, other))
        return replace(sentence, forms=tuple(told))

    def splitter(self, *, lines: bool = False, tokenised: bool = False) -> Splitter:
        """What cuts text that arrives piece by piece into sentences and words in this manner.

        Args:
            lines: Whether each line is a sentence.
            tokenised: Whether there is a space between all tokens already.
        """
        return Splitter(lines, tokenised, self.hyphens, self.cannot)

    def sentences(
        self, source: str | Iterable[str], *, lines: bool = False, tokenised: bool = False
    ) -> Iterator[Sentence]:
        """The sentences of a text, cut in this manner; see `spigot_nlp.data.text.raw.sentences`.

        Args:
            source: The text, or its pieces one after another.
            lines: Whether each line is a sentence.
            tokenised: Whether there is a space between all tokens already.

        Example:
            >>> next(Conventions(hyphens=False).sentences("A well-made film.")).forms
            ('A', 'well-made', 'film', '.')
        """
        return sentences(source, lines=lines, tokenised=tokenised, hyphens=self.hyphens, cannot=self.cannot)


def _opens(sentence: Sentence, place: int) -> bool:
    """Whether a word is the first of a contraction whose halves are no words, and are only known in small letters."""
    forms, spacing = sentence.forms, sentence.source
    if forms[place] not in _OPENERS or place + 1 == len(forms):
        return False
    apart = isinstance(spacing, Spacing) and bool(spacing.after[place])
    return not apart and is_contraction(forms[place], forms[place + 1])


@lru_cache(maxsize=1 << 14)
def plain_letters(form: str) -> str:
    """A word in the usual letters, where it is written in ligatures, wide or styled ones, with soft hyphens, or marks
    apart from their letters. Signs and numbers stay as they are.

    Example:
        >>> plain_letters("\ufb01rst"), plain_letters("in\u00adter"), plain_letters("nai\u0308ve"), plain_letters("km²")
        ('first', 'inter', 'naïve', 'km²')
    """
    if form.isascii() or not form[0].isalpha():
        return form
    kept = unicodedata.normalize("NFC", "".join(map(_plain_letter, form)))
    return kept or form


def _plain_letter(sign: str) -> str:
    """A letter for a letter, or for each of a ligature; superscripts, for instance, are no other way to write one."""
    if sign in _UNSEEN:
        return ""
    kind = unicodedata.decomposition(sign).partition(">")[0]
    if kind not in ("<compat", "<wide", "<narrow", "<font") or not sign.isalpha():
        return sign
    found = unicodedata.normalize("NFKC", sign)
    return found if found.isalpha() else sign


def _written_like(form: str, other: str) -> str:
    """Another spelling of a word, with its capitals."""
    if other.startswith(form.lower()):
        return form + other[len(form) :]
    return other.upper() if form.isupper() else other


def _unseen(group: Iterable[str], usual: str | None, counts: Mapping[str, int]) -> dict[str, str]:
    """What to write for those of a group that the training data do not have."""
    return {form: usual for form in group if usual is not None and form not in counts}
