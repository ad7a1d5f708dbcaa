"""What a training starts from: a fresh system, or stages of other runs."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from spigot_nlp.annotations import ANNOTATIONS
from spigot_nlp.config import Config
from spigot_nlp.config.experiment import shared_encoder, trained_encoder
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.requirements import require_sentences


def build(config: Config, corpus: Corpus) -> Parser:
    """A system with fresh parameters, drawn from the experiment's seed, for sentences of which there must be some."""
    require_sentences(config, corpus)
    for name in config.supervised:
        field = config.stages[name].field or ANNOTATIONS[config.stages[name].annotation].name
        if field in ("tags", "lemmas") and corpus.tagger is not None:
            raise ValueError(f"stages.{name} learns the {field} of the files; set data.tags = 'columns'.")
    if not any(corpus[name].train for name in config.text):
        raise ValueError(
            f"data.text is {', '.join(config.text)}, and there are no such sentences to learn words from; there are "
            f"{', '.join(corpus.sets)}."
        )
    return fresh(config, corpus.train, corpus.tagger, corpus.lemmatised)


def init_stages(parser: Parser) -> None:
    """Start from the stages of other runs, which must know the same words, lemmas, tags and names.

    What a stage reads words by comes with it: the encoder that it shares, or the one that its own is built on.
    """
    filled: dict[str, str] = {}
    for name, settings in parser.config.stages.items():
        if settings.start:
            _take(parser, name, Path(settings.start), filled)


def _take(mine: Parser, name: str, run: Path, filled: dict[str, str]) -> None:
    """Take a stage from a run; `filled` are the shared encoders that have come already, and with which stage."""
    source = Parser.load(run, precision="float32")
    if name not in source.model.stages:
        raise ValueError(f"{run} has no stage {name}; it has {', '.join(source.model.stages)}.")
    for what in ("words", "lemmas", "tags"):
        if getattr(source.vocab, what) != getattr(mine.vocab, what):
            raise ValueError(f"{run} was trained with other {what}; its {name} cannot be taken over.")
    theirs, ours = source.model.annotations[name].names(), mine.model.annotations[name].names()
    for what in (theirs.keys() | ours.keys()) - {"root"}:  # by which it decodes
        if theirs.get(what) != ours.get(what):
            raise ValueError(f"{run} was trained with other {what}; its {name} cannot be taken over.")
    ours, theirs = mine.model.stages[name], source.model.stages[name]
    state = theirs.state_dict()
    if ours.shared_encoder:  # which is loaded by itself
        state = {name: value for name, value in state.items() if not name.startswith("own_encoder.")}
    _load(ours, state, f"{run} was trained with another size of {name}; use its [stages.{name}].")
    shared = shared_encoder(mine.config.stages[name])
    if not shared:
        return
    # Without what makes states of words the stage would understand nothing.
    trunk, other = theirs.encoder, f"{run} was trained with another encoder of {name}; use its [stages.{name}]"
    if not ours.shared_encoder:
        both = source.config.stages[name], mine.config.stages[name]
        if len({(bool(shared_encoder(one)), bool(trained_encoder(one))) for one in both}) > 1:
            raise ValueError(f"{other}.")
        trunk = source.model.encoders[shared_encoder(both[0])]
    if shared in filled and not _equal(mine.model.encoders[shared], trunk):
        raise ValueError(
            f"{filled[shared]} and {name} both read encoders.{shared}, and start from runs with different ones; give "
            "one of them an encoder of its own, or take both from one run."
        )
    _load(mine.model.encoders[shared], trunk.state_dict(), f"{other} and what stands in its [encoders].")
    filled.setdefault(shared, name)


def _load(model: nn.Module, state: Mapping[str, torch.Tensor], otherwise: str) -> None:
    try:
        model.load_state_dict(state)
    except RuntimeError:
        raise ValueError(otherwise) from None


def _equal(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models are of one make, and have the same parameters and tables."""
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name].cpu(), theirs[name].cpu()) for name in ours)
