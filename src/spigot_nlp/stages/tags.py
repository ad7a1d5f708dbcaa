"""Tagger: BiLSTM states, and a softmax over the tags of each word."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

import spigot
from spigot.types import Parts, Values
from spigot_nlp.annotations.tags import Tags
from spigot_nlp.batches.batch import Batch
from spigot_nlp.data.sentence import Arc
from spigot_nlp.encoders import BiLSTMSettings
from spigot_nlp.nn.scorers import PerWord
from spigot_nlp.stages.stage import STAGES, AbstractStage, EncoderOrName, Evidence, StageSettings, Surroundings
from spigot_nlp.values import Optimiser


class TagSettings(StageSettings):
    """The tagger. It reads words alone: tags are what it is to find."""

    encoder: EncoderOrName = BiLSTMSettings(lemma_dim=0, tag_dim=0, layers=1)
    optimiser: Optimiser = Optimiser(anneal_every=5)


@final
@STAGES.register("tags")
class TagStage(AbstractStage[TagSettings, Tags, spigot.OneOf]):
    """One of the tags for each word, each word for itself.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.data.vocab import Vocab
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"))
        >>> vocab, tags = Vocab.of([rain]), Tags("tags", ("NN", "VBD"))
        >>> tagger = TagStage("tagger", TagSettings(annotation="tags"), tags, Surroundings(vocab))
        >>> batch = collate([encode(rain, vocab, {"tagger": tags})], {"tagger": tags})
        >>> tagger.evidence(batch).scores.shape, tagger.loss(batch).shape         # the root is a position too
        (torch.Size([1, 3, 2]), torch.Size([1]))
    """

    Settings = TagSettings

    def __init__(self, name: str, settings: TagSettings, annotation: Tags, around: Surroundings) -> None:
        if not annotation.tags:
            raise ValueError(f"The training sentences of {name} have no tags, so there is nothing a tagger could find.")
        super().__init__(name, settings, annotation, around)
        self.structure = spigot.OneOf()
        self.scorer = PerWord(self.width, settings.mlp, outputs=len(annotation.tags))

    def evidence(self, batch: Batch, read: Sequence[Parts] = (), *, limits: None = None) -> Evidence:
        """Scores of the tags of every word; the root and what is behind the end have none."""
        scores = self._scores(batch, read, noisy=False)
        return Evidence(scores, self._words(batch).unsqueeze(-1).expand_as(scores))

    def loss(self, batch: Batch, read: Sequence[Parts] = ()) -> Values:
        """The cross-entropy of the tags of each sentence, summed over words. A tag that is not known does not count."""
        gold = self.gold(batch)
        scores = self._scores(batch, read, noisy=True)
        losses = cross_entropy(scores.flatten(0, 1), (gold - 1).clamp(min=0).flatten(), reduction="none")
        return losses.view_as(gold).masked_fill(~(self._words(batch) & (gold > 0)), 0).sum(-1)

    def part(self, place: Sequence[int]) -> Arc:
        """A choice, written as an arc of the word to itself."""
        word, choice = (place[0], place[1])
        return Arc(word, word, str(self.annotation.tags[choice]))

    @property
    def choices(self) -> int:
        """The tags."""
        return len(self.annotation.tags)

    def _scores(self, batch: Batch, read: Sequence[Parts], *, noisy: bool) -> Float[Tensor, "batch n k"]:
        return self.scorer(self.states(batch, read, noisy=noisy))

    def _words(self, batch: Batch) -> Bool[Tensor, "batch n"]:
        place = torch.arange(batch.size, device=batch.device)
        return (place > 0) & (place <= batch.lengths.unsqueeze(-1))
