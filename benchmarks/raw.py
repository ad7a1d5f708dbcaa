"""Plain text: how well sentences and tokens are found, and how fast beside the parser that reads them.

`python -m benchmarks.raw` prints precision, recall and F1 on the English Web Treebank of Universal Dependencies, whose
files are in the folder `ud-ewt` of SPIGOT_DATA, and the speed. It takes some minutes, most of them to train a parser
to compare with; `python -m benchmarks.raw RUN` takes that of a run instead.

A treebank has the text of each sentence, the white space between its words, and marks where documents and paragraphs
begin. Paragraphs are put back with a blank line between them; other line breaks are lost, so that a salutation on a
line of its own, say, stands in the middle of a line, where nobody would look for the end of a sentence.
"""

import itertools
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Row, best, threads
from benchmarks.training import THREADS
from benchmarks.training import sentences as corpus
from spigot.data.formats import read
from spigot.data.formats.conll import ConllSource
from spigot.data.sentence import Sentence
from spigot.data.text.raw import detokenise, sentences
from spigot.data.text.spacing import Spacing
from spigot.data.text.tokens import split

WANT = 0.985
"""The F1 of tokens that we hold ourselves to."""
SENTENCES = 1000
"""How many are parsed to take the time."""
_NEW_PARAGRAPH = re.compile(r"#\s*new(?:par|doc)\b")

Span = tuple[int, int]


@dataclass(frozen=True)
class Counts:
    """What was found, what there was, and how much of it is the same.

    Attributes:
        found: How many tokens or sentences we find.
        gold: How many the treebank has.
        same: How many of them begin and end at the same characters.
    """

    found: int = 0
    gold: int = 0
    same: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.found + other.found, self.gold + other.gold, self.same + other.same)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.same / max(self.found + self.gold, 1)


def documents(path: Path) -> Iterator[tuple[str, list[list[Span]]]]:
    """The text of each document of a CoNLL-U file, and where the words of its sentences are."""
    text, spans = "", []
    for sentence in read(path):
        source = sentence.source
        assert isinstance(source, ConllSource)
        if any(comment.startswith("# newdoc") for comment in source.comments) and spans:
            yield text, spans
            text, spans = "", []
        if any(map(_NEW_PARAGRAPH.match, source.comments)) and text:
            text = f"{text.rstrip()}\n\n"
        words, start = _words(sentence), len(text)
        spans.append([(start + begin, start + end) for begin, end in words])
        text += detokenise(sentence)
    if spans:
        yield text, spans


def _words(sentence: Sentence) -> list[Span]:
    """Where the words of a sentence begin and end in its text."""
    whole, place, found = detokenise(sentence), 0, []
    for form in sentence.forms:
        place = whole.index(form, place)
        found.append((place, place + len(form)))
        place += len(form)
    return found


def found_in(text: str) -> list[list[Span]]:
    """Where the words of the sentences are that we find in a text."""
    place, spans = 0, []
    for sentence in sentences(text):
        spacing = sentence.source
        assert isinstance(spacing, Spacing)
        place += len(spacing.before)
        words: list[Span] = []
        for form, space in zip(sentence.forms, spacing.after, strict=True):
            words.append((place, place + len(form)))
            place += len(form) + len(space)
        spans.append(words)
    return spans


def compare(path: Path) -> tuple[Counts, Counts]:
    """Tokens and sentences of a CoNLL-U file, ours against its own."""
    tokens, ends = Counts(), Counts()
    for text, gold in documents(path):
        found = found_in(text)
        tokens += _counts((word for words in found for word in words), (word for words in gold for word in words))
        ends += _counts(*(((words[0][0], words[-1][1]) for words in side) for side in (found, gold)))
    return tokens, ends


def _counts(found: Iterable[Span], gold: Iterable[Span]) -> Counts:
    ours, theirs = set(found), set(gold)
    return Counts(len(ours), len(theirs), len(ours & theirs))


def quality() -> Iterator[Row]:
    """F1 on each part of the treebank, if it is there."""
    folder = Path(os.environ.get("SPIGOT_DATA", "data")) / "ud-ewt"
    for part in ("dev", "test", "train"):
        if not (path := folder / f"{part}.conllu").exists():
            continue
        start = time.perf_counter()
        tokens, ends = compare(path)
        note = f"F1: tokens {tokens.f1:.2%} of {tokens.gold:,}, sentences {ends.f1:.2%} of {ends.gold:,}"
        took = 1e3 * (time.perf_counter() - start)
        yield Row(f"plain text of ud-ewt {part}", took, want=f"tokens {WANT:.1%}", met=tokens.f1 >= WANT, note=note)


def speed(run: Path | None = None) -> Iterator[Row]:
    """Finding sentences and tokens, beside parsing them with a joint model of the paper's size, or that of a run."""
    from benchmarks.parsing import briefly_trained
    from spigot.training import checkpoint

    data = corpus()
    with threads(THREADS):
        parser = briefly_trained(data) if run is None else checkpoint.load(run)
        text = "\n".join(" ".join(sentence.forms) for sentence in itertools.islice(data["trees"].train, SENTENCES))
        found = list(sentences(text))
        words = sum(map(len, found))

        def from_scratch() -> None:
            split.cache_clear()
            for _ in sentences(text):
                pass

        ours = best(from_scratch)
        theirs = best(lambda: list(parser.parse(found)), least=2)
    name = f"plain text of {words:,} tokens: {1e3 * words / ours:,.0f} tokens/s"
    ratio = theirs / ours
    yield Row(name, ours, f"parsing, {1e3 * words / theirs:,.0f} tokens/s", theirs, "at least 10x", ratio, ratio >= 10)


def raw() -> Iterator[Row]:
    """Quality, then speed."""
    yield from quality()
    yield from speed()


def main(run: Path | None = None) -> None:
    """Print quality and speed, one line each."""
    for row in itertools.chain(quality(), speed(run)):
        against = f"{row.ratio:.1f} times as fast as {row.other}" if row.ratio else ""
        print(f"{row.name}: {row.ours:,.0f} ms", row.note, against, f"(want {row.want})", sep="  ", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
