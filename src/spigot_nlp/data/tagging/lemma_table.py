"""Lemmas by word and tag, as a treebank gives them."""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple, TypeVar, final

from spigot_nlp.data.formats.files import written
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemmas import REMEMBERED, Lemmatiser
from spigot_nlp.data.tagging.tag_table import TagTable

_KIND = "spigot lemmas 1"
_LONGEST = 6  # letters of an ending that are looked at
_WORDS = 5  # of an ending, before anything is concluded from it
_EXAMPLES = 3  # of a change, before it is made to words that were never seen
_SHARE = 0.2  # of the words with an ending that a change must have
_GROUPED = re.compile(r"(?<!\d)\d{1,3}(,\d{3})+(?!\d)")
_NATION = 3  # letters of an ending that tells of a capital
_SHORT, _STEM = 4, 3  # letters of a word that only loses its ending, and of what is left then
_VOWELS = frozenset("aeiouy")
_NONE = "_"  # in CoNLL-U: a word that has no lemma of its own

_Item = TypeVar("_Item", str, "Change")


class Change(NamedTuple):
    """From a word to its lemma: which ending goes, and what comes instead.

    Example:
        >>> Change("ies", "y").made("Stories"), Change("ies", "y").made("Rains")
        ('Story', None)
    """

    old: str
    new: str

    @classmethod
    def between(cls, form: str, lemma: str) -> "Change":
        """The shortest one that makes a lemma of a word."""
        pairs = enumerate(zip(form, lemma, strict=False))
        same = next((k for k, (one, other) in pairs if one != other), min(len(form), len(lemma)))
        return cls(form[same:].lower(), lemma[same:])

    def made(self, form: str) -> str | None:
        """The word with its ending changed; `None` if it ends otherwise, or nothing would be left of it."""
        fits = form.lower().endswith(self.old)
        return form[: len(form) - len(self.old)] + self.new or None if fits else None


@final
@dataclass(frozen=True)
class LemmaTable:
    """Finds the lemma of a word by its tag, from what a treebank has taught.

    A word that was seen with its tag gets the lemma that it had there. For any other the dictionary is asked, which
    does not know the tag: its lemma counts if it is another word, and one that the system knows. If not, the longest
    known ending of a word with this tag says how it may change, and the first change that leads to a known word is
    made.

    Attributes:
        known: The words of the system, in small letters.
        words: How words change that endings are wrong about, by tag.
        endings: How words change, the likeliest first, by tag and ending.
        cased: Tags whose lemmas keep their capitals.
        capitals: Endings of words that keep theirs all the same, by tag: of nationalities, in English.
        dictionary: What the dictionary says of known words, where it is not the word itself.
        tags: Which tags go with which universal ones.

    Example:
        >>> text = Sentence(("We", "thought"), lemmas=("we", "think"), tags=("PRP", "VBD"))
        >>> table = LemmaTable.learn([text], {"we", "think", "thought"})
        >>> table.lemma("Thought", "VBD", "thought"), table.lemma("thinks", "VBZ", "think")
        ('think', 'think')
    """

    known: Collection[str]
    words: Mapping[str, Mapping[str, Change]]
    endings: Mapping[str, Mapping[str, tuple[Change, ...]]]
    cased: frozenset[str] = frozenset()
    dictionary: Mapping[str, str] = field(default_factory=dict)
    capitals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: TagTable = field(default_factory=TagTable)
    _cache: dict[tuple[str, str], str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def learn(cls, sentences: Iterable[Sentence], known: Collection[str]) -> "LemmaTable":
        """What tagged sentences with lemmas teach. The same sentences and words always teach the same.

        Args:
            sentences: The sentences.
            known: The words of the system, in small letters.

        Example:
            >>> swam = Sentence(("Otters", "swam"), ("otter", "swim"), ("NNS", "VBD"))
            >>> LemmaTable.learn([swam], {"otter"}).lemma("swam", "VBD", "swim")
            'swim'
        """
        forms: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        sentences = list(sentences)
        for sentence in sentences:
            for form, tag, lemma in zip(sentence.forms, sentence.tags or (), sentence.lemmas or (), strict=False):
                if form and lemma and (lemma != _NONE or form == _NONE):
                    forms[tag][form, lemma] += 1
        lemmatiser = Lemmatiser()
        said = {word: lemma for word in sorted(known) if word and (lemma := lemmatiser.dictionary(word)) != word}
        cased = frozenset(tag for tag, pairs in forms.items() if _keeps_capitals(pairs))
        seen = {tag: _likeliest(pairs, cased=tag in cased) for tag, pairs in sorted(forms.items())}
        endings = {tag: _endings({low: change for low, (_, change) in some.items()}) for tag, some in seen.items()}
        capitals = {tag: some for tag, some in _capital_endings(sentences).items() if tag not in cased}
        rules = cls(known, {}, endings, cased, said)
        wrong = {
            tag: {
                low: change
                for low, (form, change) in sorted(some.items())
                if low[-_NATION:] in capitals.get(tag, ())  # whether with a capital or not is known of these
                or rules.lemma(form, tag, lemmatiser.lemma(form, tag)) != change.made(form)
            }
            for tag, some in seen.items()
        }
        return cls(known, wrong, endings, cased, said, capitals, TagTable.learn(sentences))

    def lemmas(self, sentence: Sentence) -> tuple[str, ...]:
        """The lemmas of a sentence.

        Args:
            sentence: With the lemmas of `Lemmatiser`, which stay as they are if it has no tags.

        Example:
            >>> table = LemmaTable.learn([], ())
            >>> table.lemmas(Sentence(("Snow",), ("snow",), ("NN",)))
            ('snow',)
        """
        if sentence.tags is None or sentence.lemmas is None:
            return sentence.lemmas or ()
        found, words = self._cache, list(zip(sentence.forms, sentence.tags, strict=True))
        if len(found) > REMEMBERED:
            found.clear()
        try:
            return tuple([found[word] for word in words])
        except KeyError:
            for word, guess in zip(words, sentence.lemmas, strict=True):
                if word not in found:
                    found[word] = self.lemma(*word, guess)
            return tuple([found[word] for word in words])

    def lemma(self, form: str, tag: str, guess: str) -> str:
        """The lemma of a word with a tag.

        Args:
            form: The word.
            tag: Its tag.
            guess: The lemma of `Lemmatiser`, which is also that of words with a tag that was never seen.

        Example:
            >>> LemmaTable.learn([], ()).lemma("Rained", "VBD", "rain")
            'rain'
        """
        if tag not in self.endings:
            return guess
        low = form.lower()
        own = form if tag in self.cased else low
        if tag in self._plain_numbers and _GROUPED.search(form):
            return own.replace(",", "")
        change = self.words.get(tag, {}).get(low)
        if change is not None and (lemma := change.made(own)):
            return lemma
        if low[-_NATION:] in self.capitals.get(tag, ()) and _has_one_capital(form):
            return form
        if guess.lower() != low and guess.lower() in self.known:
            return guess
        first = ""
        for lemma in self._candidates(own, low, tag):
            if lemma.lower() in self.known:
                return lemma
            first = first or lemma
        if guess.lower() != low and guess.isalpha():
            return guess  # neither is known: that of the dictionary is a word at least
        return first or own

    @cached_property
    def _plain_numbers(self) -> frozenset[str]:
        """Tags whose numbers lose the commas between thousands, of which endings tell no more than the last."""
        changes = {
            tag: {*some.values(), *chain(*self.endings.get(tag, {}).values())} for tag, some in self.words.items()
        }
        dropped = {
            tag: sum(old.startswith(",") and "," not in new for old, new in some) for tag, some in changes.items()
        }
        return frozenset(tag for tag, count in dropped.items() if count >= _EXAMPLES)

    def _candidates(self, own: str, low: str, tag: str) -> Iterator[str]:
        if low.startswith(("#", "@")):  # names of their own, whatever they end in
            return
        endings = self.endings[tag]
        for size in range(min(_LONGEST, len(low)), -1, -1):
            for change in endings.get(low[len(low) - size :], ()):
                lemma = change.made(own)
                if lemma and (lemma == own or not any(change) or _is_stem(lemma, change, low)):
                    yield lemma

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table, but for the known words, to a file that appears whole or not at all.

        Example:
            >>> import tempfile, pathlib
            >>> table = LemmaTable.learn([Sentence(("swam",), ("swim",), ("VBD",))], {"swim"})
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     table.save(pathlib.Path(folder, "lemmas.json"))
            ...     LemmaTable.load(pathlib.Path(folder, "lemmas.json"), {"swim"}) == table
            True
        """
        content = {
            "kind": _KIND,
            "words": self.words,
            "endings": self.endings,
            "cased": sorted(self.cased),
            "dictionary": self.dictionary,
            "capitals": self.capitals,
            "tags": self.tags.plain(),
        }
        with written(path) as file:
            file.write(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str], known: Collection[str]) -> "LemmaTable":
        """Reads what `save` wrote. A file that is something else, or only a part of one, is a `ValueError`.

        Args:
            path: The file.
            known: The words of the system.

        Example:
            >>> LemmaTable.load("nowhere/lemmas.json", ())
            Traceback (most recent call last):
            FileNotFoundError: [Errno 2] No such file or directory: 'nowhere/lemmas.json'
        """
        with open(path, "rb") as file:
            content = file.read()
        try:
            plain = json.loads(content)
            if plain["kind"] != _KIND or not all(isinstance(lemma, str) for lemma in plain["dictionary"].values()):
                raise ValueError("another kind")
            words = {tag: {low: _change(pair) for low, pair in some.items()} for tag, some in plain["words"].items()}
            endings = {
                tag: {ending: tuple(map(_change, pairs)) for ending, pairs in some.items()}
                for tag, some in plain["endings"].items()
            }
            cased = frozenset(map(str, plain["cased"]))
            # Earlier versions wrote neither of these.
            capitals = {tag: list(map(str, some)) for tag, some in plain.get("capitals", {}).items()}
            tags = TagTable.restored(plain["tags"]) if "tags" in plain else TagTable()
            return cls(known, words, endings, cased, plain["dictionary"], capitals, tags)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as cause:
            raise ValueError(
                f"{os.fspath(path)} is not a whole table of lemmas; restore it, or remove it to do without."
            ) from cause


def _has_one_capital(form: str) -> bool:
    return len(form) > _NATION and form[0].isupper() and form[1:].islower()


def _capital_endings(sentences: Iterable[Sentence]) -> dict[str, list[str]]:
    """The endings, by tag, with which words that have a capital inside a sentence mostly have one in their lemma."""
    found: dict[str, dict[str, dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
    for sentence in sentences:
        words = zip(sentence.forms[1:], (sentence.tags or ())[1:], (sentence.lemmas or ())[1:], strict=False)
        for form, tag, lemma in words:
            if _has_one_capital(form):
                some = found[tag][form[-_NATION:].lower()]
                some[form] = some.get(form, False) or lemma[:1].isupper()
    likely = {
        tag: sorted(e for e, some in endings.items() if len(some) >= _WORDS and sum(some.values()) >= 0.8 * len(some))
        for tag, endings in sorted(found.items())
    }
    return {tag: endings for tag, endings in likely.items() if endings}


def _is_stem(lemma: str, change: Change, low: str) -> bool:
    """Whether what an ending leaves may be a word: short words change in ways of their own, which nothing predicts."""
    if change.new:
        return len(low) > _SHORT
    return len(lemma) >= _STEM and not _VOWELS.isdisjoint(lemma.lower())


def _change(pair: list[str]) -> Change:
    old, new = pair
    if not isinstance(old, str) or not isinstance(new, str):
        raise TypeError("a change is two texts")
    return Change(old, new)


def _keeps_capitals(pairs: Mapping[tuple[str, str], int]) -> bool:
    """Whether most words with a capital, single letters aside, have one in their lemma."""
    capital = [
        (form[0] == lemma[0], count)
        for (form, lemma), count in pairs.items()
        if len(form) > 1 and form[0] != form[0].lower()
    ]
    return 2 * sum(count for kept, count in capital if kept) > sum(count for _, count in capital)


def _likeliest(pairs: Mapping[tuple[str, str], int], *, cased: bool) -> dict[str, tuple[str, Change]]:
    """For each word in small letters the most frequent way of writing it, and its most frequent change."""
    spelt: dict[str, Counter[str]] = defaultdict(Counter)
    changes: dict[str, Counter[Change]] = defaultdict(Counter)
    for (form, lemma), count in pairs.items():
        own, low = form if cased else form.lower(), form.lower()
        spelt[low][own] += count
        changes[low][Change.between(own, lemma)] += count
    return {low: (_most(spelt[low])[0], _most(changes[low])[0]) for low in sorted(changes)}


def _endings(changes: Mapping[str, Change]) -> dict[str, tuple[Change, ...]]:
    """What the words of a tag say about those that have the same ending; what a shorter ending says too is left out."""
    examples = Counter(changes.values())
    found: dict[str, Counter[Change]] = defaultdict(Counter)
    for low, change in changes.items():
        if examples[change] >= _EXAMPLES or not any(change):
            for size in range(min(_LONGEST, len(low)) + 1):
                found[low[len(low) - size :]][change] += 1
    kept: dict[str, tuple[Change, ...]] = {"": ()}
    for ending in sorted(found, key=lambda ending: (len(ending), ending)):
        total = found[ending].total()
        if total >= _WORDS or not ending:
            likely = tuple(change for change in _most(found[ending]) if found[ending][change] >= _SHARE * total)
            shorter = next(ending[k:] for k in range(1, len(ending) + 1) if ending[k:] in kept) if ending else None
            if shorter is None or kept[shorter] != likely:
                kept[ending] = likely
    return kept


def _most(counts: Counter[_Item]) -> list[_Item]:
    """What was counted, the most frequent first, and what is as frequent by the alphabet."""
    return sorted(counts, key=lambda item: (-counts[item], item))
