"""Structures as bad in training as they will be later: each found by a parser that has not seen the sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from spigot_nlp.batches import Batch, Encoded, collate
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import SPECIAL, read_vectors
from spigot_nlp.models.parser import Parser
from spigot_nlp.nn.encoder import UNKNOWN

_FRESH, _ASIDE, _FOUND, _SIZES = "fresh", "aside", "found", "sizes"


class Jackknife:
    """The fold parsers of a training, one after the other in the place of the stage itself, and what they found.

    A stage with `folds` is trained on all its sentences, as ever, and once more for each fold, from the same fresh
    parameters, on the sentences outside it. In training, the stages that read it read what the fold's parser found in a
    sentence of the fold; and in a sentence that the stage is not trained on, what the stage itself finds. Later they
    read the stage.

    The folds are blocks of consecutive sentences, so that a document helps to parse itself no more than it will help
    to parse another; a text that occurs again belongs to the fold of its first occurrence. Words that are in no
    training sentence of a fold's parser are unknown words to it, unless they have pretrained vectors.

    Args:
        parser: What is trained.
        corpus: What it is trained on.
        data: The training sentences of each stage, as integers.
    """

    def __init__(self, parser: Parser, corpus: Corpus, data: Mapping[str, Sequence[Encoded]]) -> None:
        self._parser, self._data = parser, data
        self._folds: dict[str, list[int]] = {}  # of each sentence that the stage learns from
        # Of each sentence that another stage reads it in, the fold, or -1 if it has not seen it, and the parts found.
        self._held: dict[tuple[str, str], list[int]] = {}
        self._found: dict[tuple[str, str], list[Tensor | None]] = {}
        self._fresh: dict[str, dict[str, Tensor]] = {}
        self._aside: dict[str, dict[str, Tensor]] = {}
        config, stages = parser.config, parser.model.stages
        for name, settings in config.stages.items():
            if not settings.folds:
                continue
            if stages[name].arc_labels is None:
                raise ValueError(
                    f"{name}.folds is {settings.folds}, and the {stages[name].annotation.nouns} that {name} finds have "
                    f"no arcs; only trees and graphs can be jackknifed. Set {name}.folds = 0."
                )
            texts = _texts(parser, corpus, name)
            if len(texts) < settings.folds:
                raise ValueError(
                    f"{name}.folds is {settings.folds} for {len(texts)} sentences; give no more than those."
                )
            fold: dict[tuple[str, ...], int] = {}
            for k, text in enumerate(texts):
                fold.setdefault(text, k * settings.folds // len(texts))
            self._folds[name] = [fold[text] for text in texts]
            for reader in (reader for reader, wire in config.wires if wire.stage == name):
                if reader in config.supervised:
                    read = [fold.get(text, -1) for text in _texts(parser, corpus, reader)]
                    if max(read) < 0:
                        raise ValueError(
                            f"{name}.folds is {settings.folds}, and {name} is trained on none of the sentences that "
                            f"{reader} learns from, so that there is nothing to jackknife; set {name}.folds = 0."
                        )
                    self._held[reader, name] = read
                    self._found[reader, name] = [None] * len(read)
            self._fresh[name] = _copied(self._parameters(name))
        self._vectors: dict[str, set[str]] = {}

    def rest(self, stage: str, fold: int) -> list[int]:
        """The sentences that a fold's parser learns from."""
        return [k for k, mine in enumerate(self._folds[stage]) if mine != fold]

    def begin(self, stage: str) -> None:
        """Put the stage aside, and a fresh one in its place."""
        self._aside.setdefault(stage, _copied(self._parameters(stage)))
        self._put(stage, self._fresh[stage])

    def end(self, stage: str, fold: int) -> None:
        """Parse the sentences of the fold; after the last one take the stage up again, and parse the others."""
        self._parse(stage, fold, self._unknown(stage, fold))
        if fold + 1 == self._parser.config.stages[stage].folds:
            self._put(stage, self._aside.pop(stage))
            del self._fresh[stage]
            self._parse(stage, -1, None)

    def given(self, batch: Batch, task: str, sentences: Sequence[int]) -> Batch:
        """A batch with what its sentences are to be read with.

        Args:
            batch: The sentences.
            task: The stage whose sentences they are.
            sentences: Which of them, in the order of the batch.
        """
        read = {}
        for (reader, source), found in self._found.items():
            if reader == task:
                structure = self._parser.model.stages[source].structure
                z = torch.zeros(structure.mask(batch.lengths, batch.size).shape)
                for row, k in enumerate(sentences):
                    places = found[k]
                    if places is None:
                        raise RuntimeError(f"{source} has not been jackknifed before {reader} reads it.")
                    z[(torch.full((len(places),), row), *places.long().unbind(-1))] = 1
                read[source] = z
        return replace(batch, read=read) if read else batch

    def state(self) -> dict[str, Tensor]:
        """Everything a resumed training needs, by name."""
        state = {}
        for kind, kept in ((_FRESH, self._fresh), (_ASIDE, self._aside)):
            for stage, parameters in kept.items():
                state.update({f"{kind}|{stage}|{name}": value for name, value in parameters.items()})
        for (reader, source), found in self._found.items():
            some = [places for places in found if places is not None]
            if some:
                sizes = [-1 if places is None else len(places) for places in found]
                state[f"{_FOUND}|{reader}|{source}"] = torch.cat(some)
                state[f"{_SIZES}|{reader}|{source}"] = torch.tensor(sizes, dtype=torch.int32)
        return state

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from what `state` gave."""
        if not self._folds:
            return
        self._fresh, self._aside = {}, {}
        for full, value in state.items():
            kind, one, rest = full.split("|", 2)
            if kind == _FOUND:
                sizes = state[f"{_SIZES}|{one}|{rest}"].tolist()
                places = iter(value.split([size for size in sizes if size >= 0]))
                self._found[one, rest] = [next(places) if size >= 0 else None for size in sizes]
            elif kind != _SIZES:
                kept = self._fresh if kind == _FRESH else self._aside
                kept.setdefault(one, {})[rest] = value

    def _parameters(self, stage: str) -> dict[str, torch.nn.Parameter]:
        """What belongs to a stage alone: its helpers have learned before."""
        model = self._parser.model.stages[stage]
        others = {parameter for helper in model.helpers().values() for parameter in helper.model.parameters()}
        return {name: p for name, p in model.named_parameters() if p.requires_grad and p not in others}

    @torch.no_grad()
    def _put(self, stage: str, values: Mapping[str, Tensor]) -> None:
        for name, parameter in self._parameters(stage).items():
            parameter.copy_(values[name])

    def _unknown(self, stage: str, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """For each word and lemma whether it is unknown to a fold's parser."""
        vocab, config = self._parser.vocab, self._parser.config
        encoder = config.stages[stage].encoder
        file = ("" if isinstance(encoder, str) else encoder.vectors_file) or config.data.vectors
        if file not in self._vectors:
            self._vectors[file] = set(read_vectors(config.data.path(file)).words) if file else set()
        learned = [self._data[stage][k].tokens for k in self.rest(stage, fold)]
        unseen = []
        for row, names in enumerate((vocab.words, vocab.lemmas)):
            new = np.ones(len(names), dtype=bool)
            new[: len(SPECIAL)] = False
            for tokens in learned:
                new[tokens[row]] = False
            unseen.append(new)
        unseen[0] &= np.array([word not in self._vectors[file] for word in vocab.words])
        return unseen[0], unseen[1]

    @torch.no_grad()
    def _parse(self, source: str, fold: int, unknown: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Find the structures of all sentences of a fold that other stages read."""
        model = self._parser.model
        stage = model.stages[source]
        for (reader, read), found in self._found.items():
            if read != source:
                continue
            mine = [k for k, held in enumerate(self._held[reader, read]) if held == fold]
            lengths = [sentence.length for sentence in self._data[reader]]
            for group in self._parser.groups(sorted(mine, key=lambda k: lengths[k]), lengths):
                batch = collate([_hidden(self._data[reader][k], unknown) for k in group]).to(model.device)
                z = stage.structure.argmax(*stage.evidence(batch)).cpu()
                for k, tree in zip(group, z, strict=True):
                    found[k] = tree.nonzero().to(torch.int32)


def _texts(parser: Parser, corpus: Corpus, stage: str) -> list[tuple[str, ...]]:
    """The words of the sentences that a stage learns from."""
    sentences: list[Sentence] = corpus[parser.config.data_of(stage)].train
    return [sentence.forms for sentence in sentences if parser.model.stages[stage].usable(sentence)]


def _hidden(sentence: Encoded, unknown: tuple[np.ndarray, np.ndarray] | None) -> Encoded:
    """A sentence whose unknown words and lemmas are none of the vocabulary."""
    if unknown is None:
        return sentence
    tokens = sentence.tokens.copy()
    for row, new in enumerate(unknown):
        tokens[row][new[tokens[row]]] = UNKNOWN
    return sentence._replace(tokens=tokens)


def _copied(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in parameters.items()}
