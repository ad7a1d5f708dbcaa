"""Training speed of the parsers: against a plain model, apart and jointly, and what the structured layer costs.

Everything runs on two threads, or as many as SPIGOT_BENCH_THREADS says (on one, processor time is measured, for a busy
machine); what is compared takes its steps in turn.
The sentences are propbank-ewt's where SPIGOT_DATA names a folder that has it, and the built-in corpus's elsewhere.
"""

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.autograd.profiler import record_function
from torch.profiler import ProfilerActivity, profile

import spigot
from benchmarks.timing import Row, at_most, threads
from spigot_nlp.batches import Batch, bucketed, collate, encode
from spigot_nlp.config import DATA_VARIABLE, Config, make_config
from spigot_nlp.corpora.corpus import Corpus, load_corpus
from spigot_nlp.nn.encoder import BiLSTM
from spigot_nlp.training import Step, train
from spigot_nlp.training.start import build

SENTENCES, BATCH = 1000, 32
ENDLESS = 1000  # epochs: more than anybody waits for
THREADS = int(os.environ.get("SPIGOT_BENCH_THREADS", "2"))
now = time.perf_counter if THREADS > 1 else time.process_time  # which other processes hardly disturb
LAYER = "the structured layer"
GROUPS = {  # parts of the names of operations, as the profiler has them
    "LSTM": ("mkldnn_rnn", "lstm"),
    "matrix products": ("aten::mm", "aten::addmm", "aten::bmm"),
    "tanh": ("tanh",),
    "optimisers": ("Optimizer", "_fused_adam", "vector_norm"),
}


def experiment(system: str = "spigot", **settings: Any) -> Config:
    """The paper's sizes, in batches, on a part of the corpus; tags are the files' own, since tagging is not timed."""
    folder = os.environ.get(DATA_VARIABLE, "")
    if folder and (Path(folder) / "propbank-ewt").exists():
        trees, graphs = ({"train": [f"propbank-ewt/train.{end}"], "limit": SENTENCES} for end in ("conllu", "sdp"))
        data: dict[str, Any] = {"trees": trees, "graphs": graphs}
    else:
        data = {"source": "synthetic", "synthetic": {"train": SENTENCES, "dev": 1, "test": 1}}
    given = {
        "system": system,
        "data": {"tags": "columns", **data},
        "semantics": {"loss": "log", "pruning": {"epochs": 1}},
        "training": {"batch": BATCH, "epochs": ENDLESS, "patience": 0, "save_seconds": 1e6},
    }
    return make_config(given, settings)


def sentences() -> Corpus:
    """Training sentences, and one to look at after each epoch, which so costs nothing."""
    return load_corpus(experiment().data).apply(lambda _, split: replace(split, dev=split.train[:1]))


def steps_in_turn(config: Config, corpus: Corpus, folder: Path) -> Iterator[Step]:
    """The steps of a training, each taken when it is asked for: in a thread, which waits in between."""
    asked, taken = Semaphore(0), SimpleQueue[Step]()

    def wait(step: Step) -> None:
        taken.put(step)
        asked.acquire()

    Thread(target=train, args=(config, folder, wait), kwargs={"corpus": corpus}, daemon=True).start()
    while True:
        yield taken.get()
        asked.release()


def training(corpus: Corpus, phase: str, system: str = "spigot", **settings: Any) -> Iterator[Step]:
    """The steps of one phase of an experiment, without end; those before it are taken at once."""
    steps = steps_in_turn(experiment(system, **settings), corpus, Path(tempfile.mkdtemp()))
    yield from itertools.dropwhile(lambda step: step.phase != phase, steps)


@dataclass
class Clock:
    """Adds up the time of some steps and the words they saw."""

    steps: Iterator[Step]
    seconds: float = 0.0
    words: int = 0
    taken: int = 0

    def epoch(self) -> Iterator[None]:
        """Take as many steps as an epoch has, one at each turn, after one that warms up memory and thread pools."""
        for _ in range(next(self.steps).of):
            start = now()
            step = next(self.steps)
            self.seconds += now() - start
            self.words += step.tokens
            self.taken += 1
            yield

    @property
    def rate(self) -> str:
        return f"{self.words / self.seconds:,.0f} words/s"


def interleaved(*clocks: Clock) -> None:
    """One epoch of each, their steps in turn, so that whatever else the machine does meets them all."""
    waiting = [clock.epoch() for clock in clocks]
    while waiting:
        waiting = [epoch for epoch in waiting if next(epoch, "over") != "over"]


class Plain(nn.Module):
    """The budget: the same embeddings and BiLSTM, a biaffine scorer and a softmax over heads, in torch alone."""

    def __init__(self, sizes: tuple[int, int, int], hidden: int = 200, arcs: int = 100) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, dim) for size, dim in zip(sizes, (100, 50, 50), strict=True))
        self.onwards, self.back = (nn.LSTM(200, hidden, 2, batch_first=True) for _ in range(2))
        self.head, self.word = (nn.Sequential(nn.Linear(2 * hidden, arcs), nn.ReLU()) for _ in range(2))
        self.pair = nn.Parameter(torch.randn(arcs + 1, arcs) * 0.01)

    def forward(self, batch: Batch) -> Tensor:
        indices = (batch.words, batch.lemmas, batch.tags)
        inputs = torch.cat([table(index) for table, index in zip(self.tables, indices, strict=True)], -1)
        place, lengths = torch.arange(inputs.shape[1]), batch.lengths.unsqueeze(-1) + 2
        mirror = torch.where(place < lengths, lengths - 1 - place, place).unsqueeze(-1)
        back = self.back(inputs.gather(1, mirror.expand_as(inputs)))[0]
        states = torch.cat((self.onwards(inputs)[0], back.gather(1, mirror.expand_as(back))), -1)[:, :-1]
        words = torch.cat((self.word(states), torch.ones_like(states[..., :1])), -1)
        return words @ self.pair @ self.head(states).transpose(1, 2)  # [sentence, word, head]


def plain_training(corpus: Corpus) -> Iterator[Step]:
    """Steps of the plain model on the same sentences, in batches made the same way."""
    parser = build(experiment(), corpus)
    trees = {"syntax": parser.model.annotations["syntax"]}
    data = [encode(sentence, parser.vocab, trees) for sentence in corpus["trees"].train]
    model = Plain((len(parser.vocab.words), len(parser.vocab.lemmas), len(parser.vocab.tags)))
    optimiser = torch.optim.Adam(model.parameters(), fused=True)
    for epoch in range(ENDLESS):
        groups = bucketed([sentence.length for sentence in data], BATCH, (0, epoch))
        for k, group in enumerate(groups, 1):
            batch = collate([data[i] for i in group], trees)
            inside = torch.arange(batch.size) <= batch.lengths.unsqueeze(-1)
            gold = batch.gold["syntax"].masked_fill(~inside, -100)
            gold[:, 0] = -100
            scores = model(batch).masked_fill(~inside.unsqueeze(1), -torch.inf)
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), gold.flatten(), reduction="sum")
            loss.backward()
            optimiser.step()
            words = sum(data[i].length for i in group)
            yield Step("plain", epoch + 1, k, len(groups), "syntax", float(loss.detach()), len(group), words)


def syntax_speed() -> Iterator[Row]:
    """The syntactic parser, hinge and Eisner's algorithm included, against the plain model."""
    corpus = sentences()
    with threads(THREADS):
        ours = Clock(training(corpus, "syntax", "pipeline", **{"training.pretrain": ENDLESS}))
        plain = Clock(plain_training(corpus))
        interleaved(ours, plain)
    share = plain.seconds / plain.words * ours.words / ours.seconds
    yield Row(
        f"syntactic parser, training step, {BATCH} sentences",
        1e3 * ours.seconds / ours.taken,
        f"BiLSTM + biaffine, {plain.rate}",
        1e3 * plain.seconds / plain.taken,
        "at least 75 % of its speed",
        share,
        share >= 0.75,
        note=ours.rate,
    )


def joint_speed() -> Iterator[Row]:
    """An epoch of SPIGOT against an epoch of each parser trained apart.

    The semantic steps of a joint training run the syntactic parser as well, forwards and backwards: three passes of an
    encoder where training apart has two. The pipeline runs it forwards only.
    """
    corpus = sentences()
    with threads(THREADS):
        joint = Clock(training(corpus, "joint"))
        syntax = Clock(training(corpus, "syntax", "pipeline", **{"training.pretrain": ENDLESS}))
        alone = Clock(training(corpus, "semantics", "neurboparser"))
        piped = Clock(training(corpus, "semantics", "pipeline", **{"training.pretrain": 1}))
        interleaved(joint, syntax, alone, piped)
    name = f"SPIGOT, epoch of {SENTENCES} trees and {SENTENCES} graphs"
    for other, clock in (("without syntax", alone), ("reading frozen trees", piped)):
        apart = 1e3 * (syntax.seconds + clock.seconds)
        note = f"{joint.rate}; apart {syntax.rate}, {clock.rate}"
        row = at_most(name, 1e3 * joint.seconds, f"both apart, semantics {other}", apart, 1.25)
        yield replace(row, note=note)


def layer_share() -> Iterator[Row]:
    """What decoding, projecting and their bookkeeping take of a joint training step, and what takes the rest."""
    corpus = sentences()
    for loss in ("log", "hinge"):
        with threads(THREADS):
            yield from profiled(training(corpus, "joint", **{"semantics.loss": loss}), f"SPIGOT step, {loss} of graphs")


def profiled(steps: Iterator[Step], name: str, count: int = 12) -> Iterator[Row]:
    """What takes how much of some steps."""
    next(steps)
    with ExitStack() as stack:
        for function in ("argmax", "structured_hinge"):
            stack.enter_context(mock.patch.object(spigot, function, _recorded(getattr(spigot, function))))
        profiler = stack.enter_context(profile(activities=[ProfilerActivity.CPU]))
        for _ in range(count):
            next(steps)
    times = {event.key: (event.self_cpu_time_total, event.cpu_time_total) for event in profiler.key_averages()}
    total = sum(alone for alone, _ in times.values()) / count / 1e3
    groups = {"the structured layer, decoding for the losses included": 0.0} | dict.fromkeys(GROUPS, 0.0)
    layer, *_ = groups
    for key, (alone, below) in times.items():
        if key == LAYER or key == "autograd::engine::evaluate_function: _SurrogateBackward":
            groups[layer] += below / count / 1e3
        for group, parts in GROUPS.items():
            if any(part in key for part in parts):
                groups[group] += alone / count / 1e3
                break
    groups["everything else"] = total - sum(groups.values())
    for group, spent in groups.items():
        share = spent / total
        want, met = ("under 5 %", share < 0.05) if group == layer else ("", None)
        yield Row(f"{name}: {group}", spent, "the whole step", total, want, share, met)


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(*values: Any, **named: Any) -> Any:
        with record_function(LAYER):
            return function(*values, **named)

    return recorded


def encoder_speed(rounds: int = 24) -> Iterator[Row]:
    """A BiLSTM of two layers, forwards and backwards, by its kernel and by torch in turn."""
    for batch, units in ((16, 128), (32, 200)):
        lstm, lengths = BiLSTM(200, units), torch.full((batch,), 25)
        inputs, wanted = torch.randn(batch, 25, 200, requires_grad=True), torch.randn(batch, 25, 2 * units)
        times: dict[bool, list[float]] = {True: [], False: []}
        with threads(THREADS):
            for kernel in (True, False) * rounds:
                switch = ExitStack() if kernel else mock.patch("spigot_nlp.nn.encoder.kernels_read", return_value=False)
                with switch:
                    start = now()
                    lstm(inputs, lengths).backward(wanted)
                    times[kernel].append(1e3 * (now() - start))
        name = f"BiLSTM, {batch} sentences, {units} units, there and back"
        ours, theirs = min(times[True]), min(times[False])
        yield Row(name, ours, "torch", theirs, "", theirs / ours, None)


def all_of_training() -> Iterator[Row]:
    """A BiLSTM, the syntactic parser alone, both parsers, and the share of the layer."""
    yield from encoder_speed()
    yield from syntax_speed()
    yield from joint_speed()
    yield from layer_share()
