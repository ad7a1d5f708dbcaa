"""Plain text: how well sentences and tokens are found, and how fast beside the parser that reads them.

`python -m benchmarks.raw` prints F1 on English treebanks of Universal Dependencies, whose files are in the folders
`ud-ewt` and `ud-pud` of SPIGOT_DATA, and the speed. It takes some minutes, most of them to train a parser
to compare with; `python -m benchmarks.raw RUN` takes that of a run instead.

A treebank has the text of each sentence, the white space between its words, and marks where documents and paragraphs
begin. Paragraphs are put back with a blank line between them; other line breaks are lost, so that a salutation on a
line of its own, say, stands in the middle of a line, where nobody would look for the end of a sentence.
"""

import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Row, best, threads
from benchmarks.training import THREADS
from benchmarks.training import sentences as corpus
from spigot_nlp.data.formats import read
from spigot_nlp.data.text.raw import sentences
from spigot_nlp.data.text.tokens import split
from spigot_nlp.data.text.treebank import treebank_text
from spigot_nlp.evaluation import RawScores, score_raw

WANT = 0.985
"""The F1 of words that we hold ourselves to."""
SENTENCES = 1000
"""How many are parsed to take the time."""
PARTS = ("ud-ewt/dev", "ud-ewt/test", "ud-ewt/train", "ud-pud/test")
"""What is measured of what is there."""


def compare(path: Path) -> RawScores:
    """Tokens, words and sentences of a CoNLL-U file, ours against its own."""
    gold = list(read(path))
    return score_raw(gold, sentences(treebank_text(gold)))


def quality() -> Iterator[Row]:
    """F1 on each part of the treebanks, if it is there."""
    folder = Path(os.environ.get("SPIGOT_DATA", "data"))
    for part in PARTS:
        if not (path := folder / f"{part}.conllu").exists():
            continue
        start = time.perf_counter()
        scores = compare(path)
        shown = ", ".join(f"{name.lower()} {one.f1:.2%} of {one.gold:,}" for name, one in scores.named.items())
        took = 1e3 * (time.perf_counter() - start)
        met = scores.words.f1 >= WANT
        yield Row(f"plain text of {part}", took, want=f"words {WANT:.1%}", met=met, note=f"F1: {shown}")


def speed(run: Path | None = None) -> Iterator[Row]:
    """Finding sentences and tokens, beside parsing them with a joint model of the paper's size, or that of a run."""
    from benchmarks.parsing import briefly_trained
    from spigot_nlp.models import Parser

    data = corpus()
    with threads(THREADS):
        parser = briefly_trained(data) if run is None else Parser.load(run)
        text = "\n".join(" ".join(sentence.forms) for sentence in itertools.islice(data["trees"].train, SENTENCES))
        found = list(sentences(text))
        words = sum(map(len, found))

        def from_scratch() -> None:
            split.cache_clear()
            for _ in sentences(text):
                pass

        ours = best(from_scratch)
        theirs = best(lambda: list(parser.pipe(found)), least=2)
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
