"""Sentence classifier: BiLSTM states, what a structure adds to them, and one class for the whole."""

from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import spigot
from spigot.types import Parts, Values
from spigot_nlp.annotations.classes import Classes
from spigot_nlp.batches.batch import Batch
from spigot_nlp.data.sentence import Arc
from spigot_nlp.encoders import BiLSTMSettings
from spigot_nlp.nn.noise import dropout, locked_dropout
from spigot_nlp.stages.stage import STAGES, AbstractStage, EncoderOrName, Evidence, StageSettings, Surroundings
from spigot_nlp.values import Optimiser, Rate, Texts

_FEATURES, _HIDDEN = 96, 97  # streams of random numbers that the encoder does not use


class ClassSettings(StageSettings):
    """The sentence classifier.

    Attributes:
        mlp: Hidden units.
        dropout: Share of hidden units left out.
        names: What the classes are called, in their order, for people to read; if empty, their numbers, or moods where
            the data are known to be of sentiment.
    """

    encoder: EncoderOrName = BiLSTMSettings(
        hidden=150, layers=1, word_dropout=0.0, input_dropout=0.5, fixed_vectors=True
    )
    dropout: Rate = 0.2
    names: Texts = ()
    optimiser: Optimiser = Optimiser(max_norm=5.0, anneal_every=5)


@final
@STAGES.register("label")
class ClassStage(AbstractStage[ClassSettings, Classes, spigot.OneOf]):
    """Sums what it knows of each word, and decides by a layer of ReLUs.

    Without a structure that is the sum of the encoder's states; with one, the sum of what a reader makes of them, or
    the root's state if the reader brings everything there.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.data.vocab import Vocab
        >>> rain = [Sentence(("Rain", "fell"), label=0), Sentence(("Sun", "shone"), label=1)]
        >>> vocab, labels = Vocab.of(rain), Classes("label", (0, 1))
        >>> model = ClassStage("mood", ClassSettings(annotation="label"), labels, Surroundings(vocab))
        >>> batch = collate([encode(sentence, vocab, {"mood": labels}) for sentence in rain], {"mood": labels})
        >>> model.evidence(batch).scores.shape, model.loss(batch).shape
        (torch.Size([2, 2]), torch.Size([2]))
    """

    Settings = ClassSettings

    def __init__(self, name: str, settings: ClassSettings, annotation: Classes, around: Surroundings) -> None:
        if len(annotation.classes) < 2:
            raise ValueError(
                f"The training sentences have {len(annotation.classes)} different labels; a classifier needs two or "
                "more. Files of plain text have none: use label<TAB>text, or set data.labels.format."
            )
        if settings.names and len(settings.names) != len(annotation.classes):
            raise ValueError(
                f"{name}.names has {len(settings.names)} names for {len(annotation.classes)} classes; give each one."
            )
        super().__init__(name, settings, annotation, around)
        self.structure = spigot.OneOf()
        self.hidden = nn.Linear(self.width, settings.mlp)
        self.out = nn.Linear(settings.mlp, len(annotation.classes))
        for layer in (self.hidden, self.out):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def evidence(self, batch: Batch, read: Sequence[Parts] = (), *, limits: None = None) -> Evidence:
        """Scores of the classes; all exist."""
        scores = self._scores(batch, read, noisy=False)
        return Evidence(scores, torch.ones_like(scores, dtype=torch.bool))

    def loss(self, batch: Batch, read: Sequence[Parts] = ()) -> Values:
        """The cross-entropy of each sentence's class."""
        gold = self.gold(batch)
        return cross_entropy(self._scores(batch, read, noisy=True), gold, reduction="none")

    def found(self, z: Parts, evidence: Evidence | None, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """The class of each sentence, and how probable each class is."""
        found = super().found(z, evidence, lengths)
        if evidence is not None:
            for annotations, row in zip(found, evidence.scores.softmax(-1).tolist(), strict=True):
                annotations[self.annotation.shares] = tuple(row)
        return found

    def part(self, place: Sequence[int]) -> Arc:
        """A choice, written as an arc of the word to itself; that for the sentence stands at 0."""
        word, choice = (0, place[0])
        return Arc(word, word, str(self.annotation.classes[choice]))

    @property
    def choices(self) -> int:
        """The classes."""
        return len(self.annotation.classes)

    def _scores(self, batch: Batch, read: Sequence[Parts], *, noisy: bool) -> Float[Tensor, "batch k"]:
        seeds = batch.seeds if noisy else None
        states = self.states(batch, read, noisy=noisy)
        if any(reader.pools for reader in self.readers):
            sentence = states[:, 0]
        else:
            if len(self.readers):
                rate = self.settings.dropout
                states = dropout(states.transpose(0, 1), seeds, rate, stream=_FEATURES).transpose(0, 1)
            words = torch.arange(batch.size, device=states.device) <= batch.lengths.unsqueeze(-1)
            sentence = states.masked_fill(~words.unsqueeze(-1), 0).sum(1)
        hidden = self.hidden(sentence).relu()
        hidden = locked_dropout(hidden.unsqueeze(0), seeds, self.settings.dropout, stream=_HIDDEN).squeeze(0)
        return self.out(hidden)
