"""A handful of made-up sentences with trees, graphs and classes, and experiments small enough to train in a test."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from torch import Tensor

import spigot
from spigot.config import Config, make_config
from spigot.data.batch import Batch, collate, encode
from spigot.data.corpus import Corpus, Split
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.vocab import Vocab
from spigot.models.joint import JointClassifier, JointParser
from spigot.models.parser import Parser
from spigot.training.run import build

NOUNS = ("cat", "dog", "river", "stone", "tailor", "gate")
VERBS = ("sees", "moves", "paints", "hides")
ADVERBS = ("often", "here", "slowly")
ALL_SYSTEMS = (
    "neurboparser", "pipeline", "attention", "ste", "spigot", "sparsemap", "identity", "blackbox", "imle", "perturbed"
)  # fmt: skip
CLASSIFIERS = ("bilstm", "pipeline", "ste", "spigot", "sparsemap", "identity", "blackbox", "imle", "perturbed")
"""The systems that classify with semantic graphs; structured attention needs trees."""
THROUGH = CLASSIFIERS[2:]
"""Those that train the parser through its graphs."""


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
    return Corpus(Split(trees, [replace(sentence, graph=None) for sentence in held_out]), Split(graphs, held_out))


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


class ParsingSystem(Parser):
    """A system of the first task, whose semantic parser is never missing."""

    model: JointParser  # pyright: ignore[reportIncompatibleVariableOverride]


def parser(system: str = "spigot", data: Corpus | None = None, **overrides: Any) -> ParsingSystem:
    """An untrained parser of the tiny corpus."""
    return cast(ParsingSystem, build(experiment(system, **overrides), data or corpus()))


def curly_parser() -> ParsingSystem:
    """An untrained parser whose data have curly quotation marks, `cannot`, and hyphens within words."""
    data, manner = corpus(), ("“", "do", "n’t", "cannot", "”", *["well-known"] * 20)
    flat = Sentence(manner, heads=tuple(range(len(manner))), lemmas=manner, tags=("X",) * len(manner))
    return parser("spigot", replace(data, trees=replace(data.trees, train=[*data.trees.train, flat])))


def reviews(count: int, seed: int = 0, classes: tuple[int, ...] = (0, 1)) -> list[Sentence]:
    """Sentences without structure whose class is that of their first noun."""

    def label(sentence: Sentence) -> int:
        noun = next(NOUNS.index(form) for form in sentence.forms if form in NOUNS)
        return classes[noun % len(classes)]

    return [replace(sentence.without_annotation(), label=label(sentence)) for sentence in sentences(count, seed)]


def review_corpus(train: int = 8, dev: int = 4, classes: tuple[int, ...] = (0, 1)) -> Corpus:
    """Trees, graphs and classes of different sentences."""
    return replace(corpus(train, dev), labels=Split(reviews(train, 4, classes), reviews(dev, 5, classes)))


def classification(system: str = "spigot", **overrides: Any) -> Config:
    """A tiny experiment with a classifier at its end."""
    training = {"epochs": 2, "pretrain": 1, "batch": 4, "patience": 0}
    given = {**_sizes(), "task": "classification", "system": system, "training": training}
    return make_config(given, {name.replace("__", "."): value for name, value in overrides.items()})


def classifier(system: str = "spigot", data: Corpus | None = None, **overrides: Any) -> Parser:
    """An untrained classifier of the tiny corpus."""
    return build(classification(system, **overrides), data or review_corpus())


def classifier_model(whole: Parser) -> JointClassifier:
    """Its model."""
    assert isinstance(whole.model, JointClassifier)
    return whole.model


def scores_and_loss(model: JointClassifier, batch: Batch) -> tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]:
    """The parser's scores and mask, and the end task's loss as a function of the structure."""
    if model.syntax is not None:
        scores, mask = model.syntax(batch)
        return scores, mask, lambda z: model.classifier.loss(batch, model.classifier(batch, z)).sum()
    semantics = model.semantics
    assert semantics is not None
    scores, mask = semantics.parts(batch, semantics(batch, model.pruner, noisy=False))

    def loss(z: Tensor) -> Tensor:
        _, arcs, labelled = semantics.structure.unpack(z)
        return model.classifier.loss(batch, model.classifier(batch, arcs, labelled)).sum()

    return scores, mask, loss


def gradient_at_the_scores(model: JointClassifier, batch: Batch) -> Tensor:
    """What the end task sends into the scores of the parser."""
    caught: list[Tensor] = []
    layer = spigot.argmax

    def spy(scores: Tensor, *rest: Any, **named: Any) -> Tensor:
        scores.register_hook(caught.append)
        return layer(scores, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spigot, "argmax", spy)
        model.loss(batch, "classifier").sum().backward()
    model.zero_grad()
    return caught[0]


def structures_read(model: JointClassifier, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Where the structures that a classifier reads from now on are listed; not all could be computed a second time."""
    read: list[Tensor] = []
    classify = model._classify

    def spy(batch: Batch, z: Tensor) -> Tensor:
        read.append(z)
        return classify(batch, z)

    monkeypatch.setattr(model, "_classify", spy)
    return read


def batch_of(chosen: list[Sentence], vocab: Vocab, seeds: list[int] | None = None) -> Batch:
    """A batch of these sentences."""
    return collate([encode(sentence, vocab) for sentence in chosen], seeds)


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
