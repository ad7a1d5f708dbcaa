"""Sentences to begin with: such as a system knows, whatever language or corpus it was trained on."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.text.raw import sentences
from spigot_nlp.data.vocab import Vocab

POOL = 12
"""How many sentences to choose from."""

_FILES = ("gold.dev.jsonl", "gold.train.jsonl")
_READ, _LENGTHS = 400, range(5, 13)  # of a file, and of a sentence that fits on a screen beside another
_BEFORE = re.compile(r" (?=(?:[.,;:!?%)\]}”’]|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b))", re.IGNORECASE)
_AFTER = re.compile(r"(?<=[(\[{“]) ")


@dataclass(frozen=True)
class Known:
    """A sentence whose words a system knows.

    Attributes:
        text: As a reader would type it; it is cut into the words of the sentence again.
        sentence: With its right annotation, as far as it is known.

    Example:
        >>> Known("Rain fell.", Sentence(("Rain", "fell", "."))).text
        'Rain fell.'
    """

    text: str
    sentence: Sentence


def known_sentences(vocab: Vocab, run: Path | None = None) -> list[Known]:
    """Sentences of which a system knows every word: of those its run keeps, or else of the built-in corpus.

    Args:
        vocab: The words that the system was trained on.
        run: Its folder; gold sentences that are kept there come first.

    Returns:
        A few sentences. If there is none of which every word is known, the most frequent words stand for one.

    Example:
        >>> vocab = Vocab.of([Sentence(("Rain", "fell", "again"))] * 2)
        >>> [known.text for known in known_sentences(vocab)]
        ['again fell rain']
    """
    counted = {word: count for word, count in zip(vocab.words, vocab.counts, strict=True) if count}
    conventions = Conventions.of(vocab)
    for source in (_kept(run), splits(train=_READ).train):
        usable = (s for s in source if len(s) in _LENGTHS and all(form.lower() in counted for form in s.forms))
        found = list(itertools.islice(_as_text(usable, conventions), POOL))
        if found:
            return found
    frequent = sorted(counted, key=lambda word: (-counted[word], word))
    words = [word for word in frequent if word.isalpha()][: _LENGTHS.start] or frequent[: _LENGTHS.start]
    return [Known(" ".join(words), Sentence(tuple(words)))] if words else []


def _kept(run: Path | None) -> Iterator[Sentence]:
    for path in () if run is None else (run / name for name in _FILES):
        try:
            yield from itertools.islice(read(path), _READ)
        except (OSError, ValueError):  # it is missing or damaged, which is no reason to serve nothing
            continue


def _as_text(found: Iterator[Sentence], conventions: Conventions) -> Iterator[Known]:
    """Those that can be written so that they are cut into the same words again."""
    for sentence in found:
        spaced = " ".join(sentence.forms)
        for text in (_AFTER.sub("", _BEFORE.sub("", spaced)), spaced):
            cut = list(sentences(text, hyphens=conventions.hyphens, cannot=conventions.cannot))
            if len(cut) == 1 and cut[0].forms == sentence.forms:
                yield Known(text, sentence)
                break


def best_first(
    pool: Sequence[Known], answers: Sequence[Sequence[Sentence]], annotations: Sequence[AbstractAnnotation]
) -> list[Known]:
    """The sentences of a pool, the most telling first: one that a system has right, and in which two systems differ.

    Args:
        pool: Sentences to choose from.
        answers: What each system says about each of them.
        annotations: By what they are compared.

    Example:
        >>> from spigot_nlp.annotations import Trees
        >>> right, wrong = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> pool = [Known("Rain fell", right), Known("rain fell", right)]
        >>> [known.text for known in best_first(pool, [[right, right], [right, wrong]], [Trees()])]
        ['rain fell', 'Rain fell']
    """

    def order(k: int) -> tuple[bool, int, int]:
        mine = [answer[k] for answer in answers]
        apart = _differences(mine[0], mine[1], annotations) if len(mine) > 1 else 0
        wrong = min((_differences(pool[k].sentence, each, annotations) for each in mine), default=0)
        return len(mine) > 1 and not apart, wrong, apart

    return [pool[k] for k in sorted(range(len(pool)), key=order)]


def _differences(one: Sentence, other: Sentence, annotations: Sequence[AbstractAnnotation]) -> int:
    """In how many heads, arcs and classes two analyses differ; what one of them lacks is not compared."""
    pairs = ((annotation.drawn(one), annotation.drawn(other)) for annotation in annotations)
    return sum(len(mine.parts ^ theirs.parts) for mine, theirs in pairs if mine is not None and theirs is not None)
