"""Sentence classifier: BiLSTM states, and what a structure adds to them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spigot import config
from spigot.data.batch import Batch
from spigot.data.vocab import Vocab
from spigot.models.encode import BatchEncoder
from spigot.nn.noise import dropout, locked_dropout
from spigot.nn.readers import HeadReader, RoundReader
from spigot.types import Parts, Values

_FEATURES, _HIDDEN = 96, 97  # streams of random numbers that the encoder does not use


class Classifier(nn.Module):
    """Sums what it knows of each word, and decides by a layer of ReLUs.

    Without a structure that is the sum of the BiLSTM's states; with one, the sum of what a `HeadReader` makes of them,
    or the root's state after the rounds of a `RoundReader`.

    Args:
        settings: Sizes and dropout.
        vocab: The indices; its classes.
        vectors: Pretrained word vectors in the vocabulary's order.
        roles: How many roles the structure's arcs have, 0 if they have none; `None` if there is no structure.

    Example:
        >>> from spigot.data.batch import collate, encode
        >>> from spigot.data.sentence import Sentence
        >>> rain = [Sentence(("Rain", "fell"), label=0), Sentence(("Sun", "shone"), label=1)]
        >>> vocab = Vocab.of(rain)
        >>> model = Classifier(config.Classifier(), vocab)
        >>> batch = collate([encode(sentence, vocab) for sentence in rain])
        >>> model(batch).shape, model.loss(batch, model(batch)).shape
        (torch.Size([2, 2]), torch.Size([2]))
    """

    def __init__(
        self,
        settings: config.Classifier,
        vocab: Vocab,
        vectors: Float[Tensor, "words d"] | None = None,
        *,
        roles: int | None = None,
    ) -> None:
        super().__init__()
        if len(vocab.classes) < 2:
            raise ValueError(
                f"The training sentences have {len(vocab.classes)} different labels; a classifier needs two or more. "
                "Files of plain text have none: use label<TAB>text, or set data.labels.format."
            )
        self.settings = settings
        self.encoder = BatchEncoder(settings.encoder, vocab, vectors)
        width = self.encoder.outputs
        self.reader: HeadReader | RoundReader | None = None
        if roles is not None:
            rounds = settings.reader == "rounds"
            width, inputs = settings.mlp, width
            self.reader = RoundReader(inputs, width, settings.rounds) if rounds else HeadReader(inputs, width, roles)
        self.hidden = nn.Linear(width, settings.mlp)
        self.out = nn.Linear(settings.mlp, len(vocab.classes))
        for layer in (self.hidden, self.out):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(
        self, batch: Batch, arcs: Parts | None = None, labelled: Parts | None = None
    ) -> Float[Tensor, "batch k"]:
        """Scores of the classes.

        Args:
            batch: The sentences.
            arcs: Arcs p -> i of the structure, if the classifier reads one.
            labelled: The same arcs by role, if they have roles.
        """
        states = self.encoder(batch)
        words = torch.arange(batch.size, device=states.device) <= batch.lengths.unsqueeze(-1)
        if isinstance(self.reader, RoundReader):
            assert arcs is not None
            sentence = self.reader(states, arcs)[:, 0]
        else:
            if self.reader is not None:
                assert arcs is not None
                found = self.reader(states, arcs, labelled).transpose(0, 1)
                states = dropout(found, batch.seeds, self.settings.dropout, stream=_FEATURES).transpose(0, 1)
            sentence = states.masked_fill(~words.unsqueeze(-1), 0).sum(1)
        hidden = self.hidden(sentence).relu()
        hidden = locked_dropout(hidden.unsqueeze(0), batch.seeds, self.settings.dropout, stream=_HIDDEN).squeeze(0)
        return self.out(hidden)

    def loss(self, batch: Batch, scores: Float[Tensor, "batch k"]) -> Values:
        """The cross-entropy of each sentence's class."""
        if batch.labels is None:
            raise ValueError("The classifier's loss needs labels, and this batch has none.")
        return cross_entropy(scores, batch.labels, reduction="none")
