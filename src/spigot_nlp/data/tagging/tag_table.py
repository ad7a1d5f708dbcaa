"""Tags that go with universal ones, as a treebank has them together."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

from spigot_nlp.data.sentence import Sentence

_OFTEN = 3  # times that two tags must have been seen together
_WORDS = 3  # with an ending, before anything is concluded from it
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
                endings[upos][_ending(form)][_most(counts)] += 1
        usual = {
            upos: {
                "": _most(counts),
                **{ending: _most(some) for ending, some in sorted(endings[upos].items()) if some.total() >= _WORDS},
            }
            for upos, counts in sorted(together.items())
        }
        usual = {
            upos: {ending: tag for ending, tag in some.items() if not ending or tag != some[""]}
            for upos, some in usual.items()
        }
        own = {upos: {low: _most(counts) for low, counts in sorted(words[upos].items())} for upos in usual}
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


def _most(counts: Counter[str]) -> str:
    """What was counted most, of equals the first by the alphabet."""
    return min(counts, key=lambda item: (-counts[item], item))
