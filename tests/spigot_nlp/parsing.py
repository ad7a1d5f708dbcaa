"""A handful of made-up sentences with trees, graphs and classes, and experiments small enough to train in a test."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import spigot
from spigot_nlp.batches import Batch, collate, encode
from spigot_nlp.config import Config, make_config
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.encoders import Precision
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import System
from spigot_nlp.stages import ClassStage, GraphStage, TreeStage
from spigot_nlp.training.start import build

NOUNS = ("cat", "dog", "river", "stone", "tailor", "gate")
VERBS = ("sees", "moves", "paints", "hides")
ADVERBS = ("often", "here", "slowly")
ALL_SYSTEMS = (
    "neurboparser", "pipeline", "attention", "ste", "spigot", "sparsemap", "identity", "blackbox", "imle", "perturbed",
    "lpgd",
)  # fmt: skip
CLASSIFIERS = ("bilstm", "pipeline", "ste", "spigot", "sparsemap", "identity", "blackbox", "imle", "perturbed")
"""The systems that classify with semantic graphs; structured attention needs trees."""
THROUGH = CLASSIFIERS[2:]
"""Those that train the parser through its graphs."""


def load(run: str | Path, device: str = "cpu", *, precision: Precision = "float32") -> Parser:
    """A trained system in the precision that it was trained in."""
    return Parser.load(run, device=device, precision=precision)


def text_sentences(parser: Parser, text: str, **options: bool) -> list[Sentence]:
    """What a system finds in a text, without its places."""
    return [sentence.found for sentence in parser(text, **options)]


def sentences(count: int, seed: int = 0) -> list[Sentence]:
    """`(the) noun verb [(the) noun] [adverb]`, with tree and graph."""
    dice = random.Random(seed)
    return [_sentence(dice, f"{seed}.{k}") for k in range(count)]


def _sentence(dice: random.Random, name: str) -> Sentence:
    words: list[tuple[str, str]] = []

    def noun_phrase() -> tuple[int, int]:
        start = len(words) + 1
        if dice.random() < 0.6:
            words.append(("The" if start == 1 else "the", "DT"))
        words.append((dice.choice(NOUNS), "NN"))
        return (start if len(words) > start else 0), len(words)

    arcs, heads = [], {}
    phrases = [noun_phrase()]
    words.append((dice.choice(VERBS), "VBZ"))
    verb = len(words)
    if dice.random() < 0.7:
        phrases.append(noun_phrase())
    for role, (determiner, noun) in zip(("ARG1", "ARG2"), phrases, strict=False):
        heads[noun] = verb
        arcs.append(Arc(verb, noun, role))
        if determiner:
            heads[determiner] = noun
            arcs.append(Arc(determiner, noun, "BV"))
    if dice.random() < 0.4:
        words.append((dice.choice(ADVERBS), "RB"))
        heads[len(words)] = verb
        arcs.append(Arc(len(words), verb, "loc"))
    heads[verb] = 0
    forms, tags = zip(*words, strict=True)
    return Sentence(
        forms,
        lemmas=tuple(form.lower().removesuffix("s") for form in forms),
        tags=tags,
        heads=tuple(heads[k] for k in range(1, len(forms) + 1)),
        graph=Graph.of(arcs, tops=[verb]),
        id=name,
    )


def corpus(train: int = 12, dev: int = 4) -> Corpus:
    """Trees and graphs of different sentences."""
    trees = [replace(sentence, graph=None) for sentence in sentences(train, seed=1)]
    graphs = [replace(sentence, heads=None, relations=None) for sentence in sentences(train, seed=2)]
    held_out = sentences(dev, seed=3)
    bare = [replace(sentence, graph=None) for sentence in held_out]
    return Corpus({"trees": Split(trees, bare), "graphs": Split(graphs, held_out)})


def experiment(system: str = "spigot", **overrides: Any) -> Config:
    """A tiny experiment; overrides use two underscores for the dot, e.g. `training__epochs=3`."""
    given = {
        **_sizes(),
        "system": system,
        "training": {"epochs": 2, "pretrain": 1 if system == "pipeline" else 0, "batch": 4, "patience": 0},
    }
    return make_config(given, {name.replace("__", "."): value for name, value in overrides.items()})


def _sizes() -> dict[str, Any]:
    encoder = {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}
    return {
        "data": {"tags": "columns"},
        "syntax": {"encoder": encoder, "mlp": 8},
        "semantics": {
            "encoder": encoder,
            "mlp": 8,
            "pruning": {"encoder": {**encoder, "layers": 1}, "mlp": 8, "rare_role": 0, "epochs": 1},
        },
        "classifier": {"encoder": encoder, "mlp": 8},
    }


def parser(system: str = "spigot", data: Corpus | None = None, **overrides: Any) -> Parser:
    """An untrained parser of the tiny corpus."""
    return build(experiment(system, **overrides), data or corpus())


def curly_parser() -> Parser:
    """An untrained parser whose data have curly quotation marks, `cannot`, and hyphens within words."""
    data, manner = corpus(), ("“", "do", "n’t", "cannot", "”", *["well-known"] * 20)
    flat = Sentence(manner, heads=tuple(range(len(manner))), lemmas=manner, tags=("X",) * len(manner))
    trees = replace(data["trees"], train=[*data["trees"].train, flat])
    return parser("spigot", Corpus({**data.sets, "trees": trees}))


def syntax(whole: Parser | System) -> TreeStage:
    """The stage that finds trees."""
    return _stage(whole, TreeStage)


def semantics(whole: Parser | System) -> GraphStage:
    """The stage that finds graphs."""
    return _stage(whole, GraphStage)


def classes(whole: Parser | System) -> ClassStage:
    """The stage that finds classes."""
    return _stage(whole, ClassStage)


def _stage(whole: Parser | System, kind: type[Any]) -> Any:
    model = whole.model if isinstance(whole, Parser) else whole
    (found,) = (stage for stage in model.stages.values() if isinstance(stage, kind))
    return found


def reviews(count: int, seed: int = 0, classes: tuple[int, ...] = (0, 1)) -> list[Sentence]:
    """Sentences without structure whose class is that of their first noun."""

    def label(sentence: Sentence) -> int:
        noun = next(NOUNS.index(form) for form in sentence.forms if form in NOUNS)
        return classes[noun % len(classes)]

    return [replace(sentence.without_annotation(), label=label(sentence)) for sentence in sentences(count, seed)]


def review_corpus(train: int = 8, dev: int = 4, classes: tuple[int, ...] = (0, 1)) -> Corpus:
    """Trees, graphs and classes of different sentences."""
    labels = Split(reviews(train, 4, classes), reviews(dev, 5, classes))
    return Corpus({**corpus(train, dev).sets, "labels": labels})


def classification(system: str = "spigot", **overrides: Any) -> Config:
    """A tiny experiment with a classifier at its end."""
    training = {"epochs": 2, "pretrain": 1, "batch": 4, "patience": 0}
    given = {**_sizes(), "task": "classification", "system": system, "training": training}
    return make_config(given, {name.replace("__", "."): value for name, value in overrides.items()})


def classifier(system: str = "spigot", data: Corpus | None = None, **overrides: Any) -> Parser:
    """An untrained classifier of the tiny corpus."""
    return build(classification(system, **overrides), data or review_corpus())


def scores_and_loss(model: System, batch: Batch) -> tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]:
    """The scores of the stage inside, its mask, and the end's loss as a function of the structure."""
    end = model.stages[model.config.end]
    (wire,) = model.wires[end.name]
    scores, mask = model.stages[wire.source].evidence(batch)
    return scores, mask, lambda z: end.loss(batch, [z]).sum()


def gradient_at_the_scores(model: System, batch: Batch) -> Tensor:
    """What the end sends into the scores of the stage inside."""
    caught: list[Tensor] = []
    layer = spigot.argmax

    def spy(scores: Tensor, *rest: Any, **named: Any) -> Tensor:
        scores.register_hook(caught.append)
        return layer(scores, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spigot, "argmax", spy)
        model.loss(batch, model.config.end).sum().backward()
    model.zero_grad()
    return caught[0]


def structures_read(model: System, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Where the structures that the last stage reads from now on are listed; not all can be computed twice."""
    read: list[Tensor] = []
    end = model.stages[model.config.end]
    states = end.states

    def spy(batch: Batch, given: list[Tensor], *, noisy: bool) -> Tensor:
        read.extend(given)
        return states(batch, given, noisy=noisy)

    monkeypatch.setattr(end, "states", spy)
    return read


def batch_of(chosen: list[Sentence], whole: Parser, seeds: list[int] | None = None) -> Batch:
    """A batch of these sentences, with all that the stages of a system learn from."""
    annotations = whole.model.annotations
    return collate([encode(sentence, whole.vocab, annotations) for sentence in chosen], annotations, seeds)


def of_lengths(lengths: list[int], seed: int = 0) -> list[Sentence]:
    """Sentences of given lengths with chains for trees and random graphs over two roles."""
    dice = random.Random(seed)
    made = []
    for length in lengths:
        arcs = {
            (i, j): dice.choice(("ARG1", "ARG2"))
            for i in range(1, length + 1)
            for j in range(1, length + 1)
            if i != j and dice.random() < 0.3
        }
        made.append(
            Sentence(
                tuple(dice.choice(NOUNS) for _ in range(length)),
                tags=tuple(dice.choice(("NN", "VBZ", "DT")) for _ in range(length)),
                heads=tuple(range(length)),
                graph=Graph.of([Arc(i, j, role) for (i, j), role in arcs.items()], tops=range(1, min(length, 1) + 1)),
            )
        )
    return made
