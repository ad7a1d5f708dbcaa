"""Batches as states: the encoder every parser starts from."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spigot import config
from spigot.data.batch import Batch
from spigot.data.vocab import Vocab
from spigot.nn.encoder import BiLSTM, TokenEmbedding


class BatchEncoder(nn.Module):
    """Embeddings and BiLSTM over a batch; the states of the root and the words.

    Args:
        settings: Sizes and dropout.
        vocab: The indices.
        vectors: Pretrained word vectors in the vocabulary's order.

    Example:
        >>> from spigot.data.batch import collate, encode
        >>> from spigot.data.sentence import Sentence
        >>> rain = Sentence(("Rain", "fell"))
        >>> vocab = Vocab.of([rain])
        >>> BatchEncoder(config.Encoder(hidden=8), vocab)(collate([encode(rain, vocab)])).shape    # with the root
        torch.Size([1, 3, 16])
    """

    def __init__(self, settings: config.Encoder, vocab: Vocab, vectors: Float[Tensor, "words d"] | None = None) -> None:
        super().__init__()
        lemmas = len(vocab.words) if settings.lemma_from_form else len(vocab.lemmas)
        self.lemma_from_form = settings.lemma_from_form
        dims = (settings.word_dim, settings.lemma_dim, settings.tag_dim)
        if vectors is not None and vectors.shape[1] != settings.word_dim:
            raise ValueError(
                f"the word vectors have {vectors.shape[1]} dimensions and encoder.word_dim is {settings.word_dim}; "
                "make them equal, or leave data.vectors empty."
            )
        self.embedding = TokenEmbedding(
            (len(vocab.words), lemmas, len(vocab.tags)),
            dims,
            torch.tensor(vocab.counts),
            settings.word_dropout,
            settings.drop_all,
            vectors,
            settings.fixed_vectors,
        )
        self.lstm = BiLSTM(
            sum(dims),
            settings.hidden,
            settings.layers,
            interleaved=settings.interleaved,
            dropout=settings.dropout,
            input_dropout=settings.input_dropout,
        )
        self.outputs = self.lstm.outputs

    def forward(self, batch: Batch, *, noisy: bool = True) -> Float[Tensor, "batch n d"]:
        """States of positions 0 to n.

        Args:
            batch: The sentences.
            noisy: Whether dropout applies, if the batch has seeds at all.
        """
        seeds = batch.seeds if noisy else None
        lemmas = batch.words if self.lemma_from_form else batch.lemmas
        inputs = self.embedding(batch.words, lemmas, batch.tags, seeds)
        return self.lstm(inputs, batch.lengths + 2, seeds)[:, :-1]
