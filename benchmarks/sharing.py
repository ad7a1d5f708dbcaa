"""What one encoder for several stages is worth: parsing, and a training step of the last stage.

A tagger inside a parser of trees inside a classifier, at the paper's sizes, on the built-in corpus: with an encoder for
each, with one that all share, and with one that all share and that reads a batch anew for each stage that asks.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from benchmarks.timing import Row, threads
from benchmarks.training import now
from spigot_nlp.batches import Batch, collate
from spigot_nlp.config import make_config
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.encoders import BiLSTMSettings
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.optimiser import ModelOptimiser

SENTENCES, ROUNDS = 32, 12
ENCODER = BiLSTMSettings(lemma_dim=0, tag_dim=0).model_dump()  # whole, since kinds of stages differ in what is usual


def system(*, shared: bool) -> Parser:
    """The three stages, untrained."""
    encoder: Any = "words" if shared else ENCODER
    stages = {
        "tagger": {"annotation": "tags", "data": "all", "encoder": encoder},
        "syntax": {
            "annotation": "trees",
            "data": "all",
            "encoder": encoder,
            "reads": {"stage": "tagger", "as": "embedded", "estimator": "ste"},
        },
        "mood": {
            "annotation": "label",
            "data": "all",
            "encoder": encoder,
            "reads": {"stage": "syntax", "as": "roles", "estimator": "spigot"},
        },
    }
    encoders = {"words": {"encoder": ENCODER}} if shared else {}
    return fresh(make_config({"stages": stages, "encoders": encoders}), {"all": text()})


def text() -> list[Any]:
    return [replace(s, label=k % 2) for k, s in enumerate(splits(train=SENTENCES).train)]


def questions(parser: Parser, batch: Batch) -> dict[str, Callable[[], object]]:
    """A parse, and a step."""
    model = parser.model
    optimisers = {name: ModelOptimiser(*part) for name, part in model.parts().items()}
    for optimiser in optimisers.values():
        optimiser.set_epoch(0)

    def step() -> None:
        for optimiser in optimisers.values():
            optimiser.zero_grad()
        model.loss(batch, "mood").sum().backward()
        for name in model.updated("mood"):
            optimisers[name].step()

    return {"parsing": lambda: model.parse(replace(batch, seeds=None)), "a step": step}


def sharing() -> Iterator[Row]:
    """All in turn, several times."""
    forgetful = patch.object(Batch, "keeping", lambda self: self)
    asked: dict[str, tuple[bool, AbstractContextManager[object]]] = {
        "one for all": (True, nullcontext()),
        "one for all, asked by each": (True, forgetful),
        "one for each": (False, nullcontext()),
    }
    with threads(1):
        made = {}
        for name, (shared, context) in asked.items():
            parser = system(shared=shared)
            annotations = parser.model.annotations
            batch = collate([parser.encoded(s, annotations) for s in text()], annotations, range(SENTENCES))
            made[name] = context, questions(parser, batch)
        times: dict[tuple[str, str], list[float]] = {}
        for _ in range(ROUNDS):
            for name, (context, both) in made.items():
                with context:
                    for what, question in both.items():
                        start = now()
                        question()
                        times.setdefault((what, name), []).append(now() - start)
    for what in ("parsing", "a step"):
        ours = 1e3 * min(times[what, "one for all"])
        for other in ("one for all, asked by each", "one for each"):
            theirs = 1e3 * min(times[what, other])
            yield Row(f"{what}, encoder: one for all", ours, other, theirs, ratio=theirs / ours)
