"""Lemmas from a dictionary, and tags and lemmas together."""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeVar, final

from spigot_nlp.data.formats.files import written
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.data.text.conventions import plain_letters

_OFTEN = 3  # times that two tags must have been seen together
_MOST_WORDS = 3  # with an ending, before anything is concluded from it
_ENDING = 2  # letters of a word that are looked at where the word was never seen


@final
@dataclass(frozen=True)
class TagTable:
    """Mends tags by the universal ones beside them, which are found later and with more to go by.

    A tag that was hardly ever seen with the universal tag of its word is replaced: by the one that the word usually has
    with that universal tag, or else words with its ending, or else all words.

    Attributes:
        pairs: The tags that go with each universal tag.
        words: The tags of words that endings are wrong about, by universal tag.
        endings: The usual tag of words with an ending, after `^` if they begin with a capital; and of all, behind `""`.

    Example:
        >>> seen = [Sentence(("Rain", "fell"), tags=("NN", "VBD"), upos=("NOUN", "VERB"))] * 3
        >>> TagTable.learn(seen).agreed(("It", "fell"), ("PRON", "VERB"), ("PRP", "NN"))
        ('PRP', 'VBD')
    """

    pairs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    endings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def learn(cls, sentences: Iterable[Sentence]) -> "TagTable":
        """What sentences with both kinds of tags teach. The same sentences always teach the same.

        Args:
            sentences: The sentences; those that lack either kind say nothing.
        """
        together: dict[str, Counter[str]] = defaultdict(Counter)
        words: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        spelt: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        endings: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for sentence in sentences:
            for form, upos, tag in zip(sentence.forms, sentence.upos or (), sentence.tags or (), strict=False):
                together[upos][tag] += 1
                words[upos][form.lower()][tag] += 1
                spelt[upos][form][tag] += 1
        for upos, forms in spelt.items():  # of an ending it counts how many words there are, and not how often each
            for form, counts in forms.items():
                endings[upos][_ending(form)][_top(counts)] += 1
        usual = {
            upos: {
                "": _top(counts),
                **{ending: _top(some) for ending, some in sorted(endings[upos].items()) if some.total() >= _MOST_WORDS},
            }
            for upos, counts in sorted(together.items())
        }
        usual = {
            upos: {ending: tag for ending, tag in some.items() if not ending or tag != some[""]}
            for upos, some in usual.items()
        }
        own = {upos: {low: _top(counts) for low, counts in sorted(words[upos].items())} for upos in usual}
        return cls(
            {upos: sorted(tag for tag, count in together[upos].items() if count >= _OFTEN) for upos in usual},
            {
                # As they are looked up: a word may stand with and without a capital.
                upos: {
                    low: tag
                    for low, tag in some.items()
                    if any(_by_ending(usual[upos], form) != tag for form in (low, low.capitalize()))
                }
                for upos, some in own.items()
            },
            usual,
        )

    def agreed(self, forms: Sequence[str], upos: Sequence[str], tags: tuple[str, ...]) -> tuple[str, ...]:
        """The tags of a sentence, in agreement with its universal ones; the same object if they were.

        Args:
            forms: The words.
            upos: Their universal tags.
            tags: The tags.
        """
        if self._known.issuperset(zip(upos, tags, strict=True)):
            return tags
        return tuple(
            tag if (over, tag) in self._known or over not in self.endings else self._usual(form, over)
            for form, over, tag in zip(forms, upos, tags, strict=True)
        )

    def plain(self) -> dict[str, Any]:
        """All that it knows as plain values; `restored` takes them back."""
        return {"pairs": self.pairs, "words": self.words, "endings": self.endings}

    @classmethod
    def restored(cls, values: Any) -> "TagTable":
        """The table that plain values came from.

        Raises:
            TypeError: If they are something else.
        """
        pairs = {str(upos): [str(tag) for tag in some] for upos, some in values["pairs"].items()}
        words, endings = (
            {str(upos): {str(k): str(tag) for k, tag in some.items()} for upos, some in values[name].items()}
            for name in ("words", "endings")
        )
        if not all("" in some for some in endings.values()):
            raise TypeError("a universal tag has no usual one")
        return cls(pairs, words, endings)

    @cached_property
    def _known(self) -> frozenset[tuple[str, str]]:
        return frozenset((upos, tag) for upos, tags in self.pairs.items() for tag in tags)

    def _usual(self, form: str, upos: str) -> str:
        return self.words.get(upos, {}).get(form.lower()) or _by_ending(self.endings[upos], form)


def _ending(form: str) -> str:
    return f"{'^' if form[:1].isupper() else ''}{form[-_ENDING:].lower()}"


def _by_ending(endings: Mapping[str, str], form: str) -> str:
    return endings.get(_ending(form), endings[""])


def _top(counts: Counter[str]) -> str:
    """What was counted most, of equals the first by the alphabet."""
    return min(counts, key=lambda item: (-counts[item], item))


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
