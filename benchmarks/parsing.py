"""Parsing speed of a joint model on two threads (or SPIGOT_BENCH_THREADS), and its memory on a long stream.

The model has the paper's sizes and is trained for a few steps, so that it prunes and answers like a trained one.
"""

import itertools
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Row, threads
from benchmarks.training import THREADS, experiment, now, sentences
from spigot.corpora.corpus import Corpus
from spigot.data.formats import read, write
from spigot.data.sentence import Sentence
from spigot.data.tagging.tagger import Tagger
from spigot.models.parser import CHUNK, Parser
from spigot.training.loop import Trainer
from spigot.training.run import build

STEPS = 240
HASTE = {"learning_rate": 5e-3, "max_norm": 100.0}  # of both parsers, to learn something within these steps
SHORT, GROWTH = 2 * CHUNK, 10  # two chunks: while one is parsed, what is left of another may still be there


def briefly_trained(corpus: Corpus, **settings: object) -> Parser:
    """A joint parser after some steps, with a tagger."""
    haste = {f"{name}.optimiser.{key}": value for name in ("syntax", "semantics") for key, value in HASTE.items()}
    parser = build(experiment(**{"training.batch": 8, **haste, **settings}), corpus)
    steps = Trainer(parser, corpus).steps()
    joint = itertools.dropwhile(lambda step: step.phase != "joint", steps)
    for _ in itertools.islice(joint, STEPS):
        pass
    return Parser(parser.config, parser.vocab, parser.model, Tagger.train(corpus["trees"].train))


def speed() -> Iterator[Row]:
    """Syntax and semantics together; with the tagger and lemmatiser, and on text that they have been through."""
    corpus = sentences()
    with threads(THREADS):
        parser = briefly_trained(corpus)
        text = [sentence.without_annotation() for sentence in corpus["trees"].train]
        words = sum(map(len, text))
        times: dict[bool, list[float]] = {True: [], False: []}
        arcs = 0
        for tagged in (True, False) * 3:
            start = now()
            arcs = sum(len(sentence.graph.arcs) for sentence in parser.parse(text, tagged=tagged) if sentence.graph)
            times[tagged].append(now() - start)
    for tagged, name in ((False, "tags and lemmas included"), (True, "tags given")):
        least = min(times[tagged])
        rate = words / least
        note = f"{rate:,.0f} words/s, {arcs / words:.1f} arcs a word"
        name = f"parsing {len(text):,} sentences, syntax and semantics, {name}"
        yield Row(name, 1e3 * least, want="at least 10,000 words/s", met=rate >= 10_000, note=note)


def memory() -> Iterator[Row]:
    """The peak of a process that reads, parses and writes a file, then one ten times as long."""
    program = [sys.executable, "-m", "benchmarks.parsing"]
    short, long = json.loads(subprocess.run(program, check=True, stdout=subprocess.PIPE).stdout)
    name = f"parsing a file of {GROWTH * SHORT:,} sentences, peak memory, {long:,.0f} MB"
    yield Row(
        name, 0.0, f"{SHORT:,} sentences, {short:,.0f} MB", None, "at most 1.1x", long / short, long <= 1.1 * short
    )


def peaks() -> list[float]:
    """Megabytes after each of the two files; a small model, since it is the stream that must not grow."""
    corpus = sentences()
    small = {f"{name}.encoder.hidden": 50 for name in ("syntax", "semantics")}
    parser, found = briefly_trained(corpus, **small), []
    with tempfile.TemporaryDirectory() as folder, threads(THREADS):
        given, out = Path(folder) / "given.conllu", Path(folder) / "out.conllu"
        for count in (SHORT, GROWTH * SHORT):
            plain: Iterator[Sentence] = (
                Sentence(sentence.forms) for sentence in itertools.cycle(corpus["trees"].train)
            )
            write(itertools.islice(plain, count), given)
            write(parser.parse(read(given)), out)
            found.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return found


def parsing() -> Iterator[Row]:
    """Speed, then memory."""
    yield from speed()
    yield from memory()


if __name__ == "__main__":
    print(json.dumps(peaks()))
