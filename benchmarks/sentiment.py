"""Training speed of the classifier with a parser inside, and what the graph layer costs in it.

Threads and clocks as in `benchmarks.training`. The sentences are those of SST and redwoods-dm where SPIGOT_DATA names a
folder that has them, and the built-in corpus's elsewhere.
"""

import copy
import itertools
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.timing import Row, threads
from benchmarks.training import BATCH, ENDLESS, SENTENCES, THREADS, Clock, interleaved, profiled, steps_in_turn
from spigot_nlp.batches import bucketed, collate, encode
from spigot_nlp.config import DATA_VARIABLE, Config, make_config
from spigot_nlp.corpora.corpus import Corpus, load_corpus
from spigot_nlp.models.parser import Parser
from spigot_nlp.stages import GraphStage
from spigot_nlp.training import Step


def experiment(system: str = "spigot") -> Config:
    """The sizes of `research/configs/sst.toml`, on a part of the corpora."""
    folder = Path(os.environ.get(DATA_VARIABLE, ""))
    if str(folder) != "." and (folder / "sst").exists() and (folder / "redwoods-dm").exists():
        labels = {"train": ["sst/train.txt"], "format": "sst-binary", "limit": SENTENCES}
        graphs = {"train": ["redwoods-dm/wiki.train.sdp"], "limit": SENTENCES}
        data: dict[str, Any] = {"labels": labels, "graphs": graphs}
    else:
        data = {"source": "synthetic", "synthetic": {"train": SENTENCES, "dev": 1, "test": 1}}
    optimiser = {"learning_rate": 2e-3, "max_norm": 50.0, "anneal_every": 3}
    semantics = {"loss": "log", "encoder": {"hidden": 128, "dropout": 0.2}, "optimiser": optimiser}
    # One sentence of graphs an epoch: what is timed are the classifier's steps. The parser has to know something: the
    # graphs of one that does not break the roles' determinism everywhere, which makes decoding slow.
    training = {"batch": BATCH, "epochs": ENDLESS, "patience": 0, "pretrain": 10, "share": 1e-6, "save_seconds": 1e6}
    return make_config(
        {
            "task": "classification",
            "system": system,
            "data": data,
            "semantics": semantics,
            "estimator": {"max_norm": 0.1},
            "training": training,
        }
    )


def sentences() -> Corpus:
    """Training sentences, and nothing to look at after an epoch."""
    corpus = load_corpus(experiment().data)
    return corpus.apply(lambda _, split: replace(split, dev=[]))


def joint_steps(config: Config, corpus: Corpus, folder: Path) -> Iterator[Step]:
    """The steps of joint training; pretraining is over when the first is asked for."""
    return itertools.dropwhile(lambda step: step.phase != "joint", steps_in_turn(config, corpus, folder))


def parser_steps(parser: Parser, corpus: Corpus) -> Iterator[Step]:
    """The parser forwards and backwards on the labelled sentences, without a layer, a graph or a classifier."""
    stage = copy.deepcopy(parser.model).stages["semantics"]
    assert isinstance(stage, GraphStage)
    data = [encode(sentence, parser.vocab) for sentence in corpus["labels"].train]
    for epoch in range(ENDLESS):
        groups = bucketed([sentence.length for sentence in data], BATCH, (0, epoch))
        for k, group in enumerate(groups, 1):
            stage.zero_grad()
            batch = collate([data[i] for i in group], seeds=group)
            scored = stage._scored(batch, (), stage.surviving(batch, None), None, noisy=False)
            loss = scored.predicates.sum() + scored.arcs.sum() + scored.labelled.sum()
            loss.backward()
            words = sum(data[i].length for i in group)
            yield Step("parser", epoch + 1, k, len(groups), "semantics", 0.0, len(group), words)


def sentiment_speed() -> Iterator[Row]:
    """SPIGOT's classifier steps against the BiLSTM's and the parser's alone, one after the other."""
    corpus = sentences()
    with threads(THREADS):
        folder = Path(tempfile.mkdtemp())
        steps = joint_steps(experiment(), corpus, folder)
        first = next(steps)
        joint = Clock(itertools.chain([first], steps))
        plain = Clock(steps_in_turn(experiment("bilstm"), corpus, Path(tempfile.mkdtemp())))
        parser = Clock(parser_steps(Parser.load(folder), corpus))
        interleaved(joint, plain, parser)
        apart = 1e3 * (plain.seconds / plain.taken + parser.seconds / parser.taken)
        ours = 1e3 * joint.seconds / joint.taken
        yield Row(
            f"SPIGOT, classifier step, {BATCH} sentences",
            ours,
            "BiLSTM step + parser forwards and backwards",
            apart,
            "at least 50 % of its speed",
            apart / ours,
            apart / ours >= 0.5,
            note=f"{BATCH * 1e3 / ours:,.0f} sentences/s; apart {BATCH * 1e3 / apart:,.0f}",
        )
        yield from profiled(steps, "SPIGOT classifier step")
