"""Parsing speed of a joint model on two threads or in two processes, and its memory on a long stream.

SPIGOT_BENCH_THREADS says otherwise how many; on one, there is one process and its processor time.

The model has the paper's sizes and is trained for an epoch, so that it prunes and answers like a trained one: one
that knows nothing has ties all over, which say nothing about precision, and an assignment for every predicate.
"""

import itertools
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import Row, threads
from benchmarks.training import THREADS, experiment, now, sentences
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.encoders import Precision
from spigot_nlp.garbage import gc_frozen
from spigot_nlp.models.parser import CHUNK, Parser
from spigot_nlp.training import train

HASTE = {"learning_rate": 2e-3, "max_norm": 50.0}  # of both parsers, to learn something within an epoch
LEARNS = {"training.pretrain": 2, "syntax.loss": "crf", "estimator.max_norm": 0.1}  # trees first, and hold them
MANNERS: list[tuple[Precision, int]] = [("float32", 1), ("int16", 1)]
"""In which precision, and by how many processes."""
if THREADS > 1:
    MANNERS.append(("int16", THREADS))  # a thread each, as `spigot parse` does it
SYSTEMS = {"an encoder each": False, "one encoder": True}
REPEATED = 3  # times that the sentences are parsed: it takes a while to begin processes
SHORT, GROWTH = 2 * CHUNK, 10  # two chunks: while one is parsed, what is left of another may still be there


def briefly_trained(corpus: Corpus, **settings: object) -> Parser:
    """A joint parser after an epoch, with a tagger."""
    haste = {f"{name}.optimiser.{key}": value for name in ("syntax", "semantics") for key, value in HASTE.items()}
    config = experiment(**{"training.batch": 8, "training.epochs": 1, **LEARNS, **haste, **settings})
    with tempfile.TemporaryDirectory() as folder:
        parser = train(config, Path(folder, "run"), corpus=corpus).parser
    return Parser(parser.config, parser.vocab, parser.model, Tagger.train(corpus["trees"].train))


def shared() -> dict[str, Any]:
    """Settings by which both parsers read with one encoder of the same size."""
    words = {"encoder": experiment().stages["syntax"].encoder.model_dump(), "optimiser": HASTE}
    return {"encoders.words": words, "syntax.encoder": "words", "semantics.encoder": "words"}


class Way(NamedTuple):
    """How the same sentences are parsed."""

    system: str
    precision: Precision
    processes: int
    tagged: bool

    def parse(self, parser: Parser, text: list[Sentence]) -> list[Sentence]:
        """The sentences, parsed."""
        with threads(1) if self.processes > 1 else nullcontext(), gc_frozen():
            return list(parser.pipe(text, tagged=self.tagged, processes=self.processes))

    def __str__(self) -> str:
        workers = f"{self.processes} processes, one thread each" if self.processes > 1 else f"threads: {THREADS}"
        given = "tags given" if self.tagged else "tags and lemmas included"
        return f"{self.system}, {given}, {self.precision}, {workers}"


def speed() -> Iterator[Row]:
    """Syntax and semantics together; with the tagger and lemmatiser, and on text that they have been through."""
    corpus = sentences()
    right = list(corpus["trees"].train) * REPEATED
    text = [sentence.without_annotation() for sentence in right]
    words = sum(map(len, text))
    with threads(THREADS):
        parsers = {name: briefly_trained(corpus, **(shared() if sharing else {})) for name, sharing in SYSTEMS.items()}
        every = itertools.product(SYSTEMS, MANNERS, (False, True))
        ways = [Way(system, *manner, tagged) for system, manner, tagged in every]
        times: dict[Way, list[float]] = {way: [] for way in ways}
        answers: dict[Way, list[Sentence]] = {}
        for way in ways * 3:
            parser = parsers[way.system]
            parser.model.compute_in(way.precision)
            start = now()
            answers[way] = way.parse(parser, text)
            times[way].append(now() - start)
    for way, taken in times.items():
        usual = Way(next(iter(SYSTEMS)), *MANNERS[0], way.tagged)
        exact = usual._replace(system=way.system)
        least, plain = min(taken), min(times[usual])
        rate, heads = words / least, _same_heads(right, answers[way]) / words
        arcs = sum(len(sentence.graph.arcs) for sentence in answers[way] if sentence.graph) / words
        row = Row(
            f"parsing {len(text):,} sentences, syntax and semantics, {way}",
            1e3 * least,
            want="at least 10,000 words/s",
            met=rate >= 10_000,
            note=f"{rate:,.0f} words/s, {arcs:.1f} arcs a word, UAS {heads:.2%}",
        )
        if way != exact:
            same = _same_heads(answers[exact], answers[way]) / words
            row = replace(row, note=f"{row.note}; same heads as in {exact.precision} {same:.2%}")
        if way != usual:
            row = replace(row, other=str(usual), theirs=1e3 * plain, ratio=plain / least)
        yield row


def _same_heads(some: list[Sentence], others: list[Sentence]) -> int:
    pairs = ((one.heads or (), other.heads or ()) for one, other in zip(some, others, strict=True))
    return sum(head == other for heads, more in pairs for head, other in zip(heads, more, strict=True))


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
            write(parser.pipe(read(given)), out)
            found.append(peak())
    return found


def peak() -> float:
    """Megabytes that this process has held at most. What `getrusage` says of a child begins with its parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def parsing() -> Iterator[Row]:
    """Speed, then memory."""
    yield from speed()
    yield from memory()


if __name__ == "__main__":
    print(json.dumps(peaks()))
