"""Which heads of a word are worth scoring: what training has seen, and a small parser's judgement."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

import spigot
from spigot import AbstractTrees
from spigot.types import Mask, Parts, Values
from spigot_nlp.batches.batch import Batch, Encoded
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import AnyEncoder, BiLSTMSettings, make_encoder
from spigot_nlp.nn.scorers import PairScorer
from spigot_nlp.values import Optimiser, Positive
from spigot_nlp.values import Values as Settings


class HeadPruning(Settings):
    """Which heads of a word the syntactic parser scores; all of them unless something is switched on.

    Attributes:
        learned: Whether a small parser, which is trained first and then frozen, leaves each word a few heads.
        dictionary: Whether a head and a word must have tags that some arc of training has.
        top_heads: Most heads that the small parser leaves a word, apart from the word before it.
        threshold: How probable a head must be, as a share of the most probable one.
        epochs: Passes over the training trees.
        batch: Sentences in a step.
        entropy: Whether the entropy of the trees is minimised beside the likelihood, as in the published program.
        encoder: How its words become states.
        mlp: Units of each of its two hidden layers.
        optimiser: How it is updated.
    """

    learned: bool = False
    dictionary: bool = False
    top_heads: Positive = 10
    threshold: Annotated[float, Field(ge=0, le=1)] = 1e-4
    epochs: Positive = 1
    batch: Positive = 32
    entropy: bool = False
    encoder: AnyEncoder = BiLSTMSettings(word_dim=32, lemma_dim=16, tag_dim=16, hidden=32, layers=1)
    mlp: Positive = 32
    optimiser: Optimiser = Optimiser(max_norm=5.0)

    def idle(self) -> dict[str, str]:
        """The settings that do nothing unless a parser is learned."""
        names = set(type(self).model_fields) - {"learned", "dictionary"}
        return {} if self.learned else dict.fromkeys(sorted(names), "learned = false")


class HeadPruner(nn.Module):
    r"""A small first-order parser that leaves each word the heads $h$ with $\mu_{hm} \ge \theta \max_{h'} \mu_{h'm}$.

    $\mu$ are the marginals of its trees. At most so many heads of a word are left, the best ones, and the arc from the
    word before it always, so that there is always a tree: $0 \to 1 \to 2 \to \dots$

    Args:
        settings: Its options.
        trees: The trees.
        vocab: The indices.
        run: The folder of the training that it is part of, where its parameters are about to be read from one.

    Example:
        >>> from spigot_nlp.annotations import Trees
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Sentence
        >>> rain = Sentence(("Rain", "fell", "here"), tags=("NN", "VBD", "RB"), heads=(2, 0, 2))
        >>> vocab, trees = Vocab.of([rain]), {"syntax": Trees()}
        >>> pruner = HeadPruner(HeadPruning(dictionary=True), spigot.ProjectiveTrees(), vocab)
        >>> pruner.learn("syntax", [encode(rain, vocab, trees)])
        >>> pruner(collate([encode(rain, vocab)])).nonzero().tolist()       # the seen ones, and from the word before
        [[0, 0, 1], [0, 0, 2], [0, 1, 2], [0, 2, 1], [0, 2, 3]]
    """

    seen: Bool[Tensor, "tags tags"]

    def __init__(self, settings: HeadPruning, trees: AbstractTrees, vocab: Vocab, run: Path | None = None) -> None:
        super().__init__()
        self.settings, self.trees = settings, trees
        self.register_buffer("seen", torch.ones(len(vocab.tags), len(vocab.tags), dtype=torch.bool))
        if settings.learned:
            self.encoder = make_encoder(settings.encoder, vocab, run=run)
            self.arcs = PairScorer(self.encoder.outputs, settings.mlp, distance=True)

    def learn(self, stage: str, sentences: Sequence[Encoded]) -> None:
        """Note the tags of all arcs of the training trees; tags that training never saw rule nothing out."""
        if not self.settings.dictionary:
            return
        seen, unseen = torch.zeros_like(self.seen, device="cpu"), torch.ones(len(self.seen), dtype=torch.bool)
        for sentence in sentences:
            if stage in sentence.gold:
                heads = np.atleast_2d(sentence.gold[stage])[0]  # of labelled trees, relations stand below
                tags = torch.from_numpy(sentence.tokens[2])
                unseen[tags] = False
                seen[tags[torch.from_numpy(heads[1:])], tags[1:-1]] = True
        seen[unseen], seen[:, unseen] = True, True
        self.seen.copy_(seen)

    def loss(self, batch: Batch, gold: Parts) -> Values:
        """Negative log-likelihood of the gold trees among those possible."""
        scores, mask = self._scores(batch, noisy=True), self._possible(batch) | (gold > 0)
        entropy = float(self.settings.entropy)
        return spigot.crf_nll(scores, gold.to(scores.dtype), self.trees, mask=mask, entropy=entropy)

    @torch.no_grad()
    def forward(self, batch: Batch) -> Mask:
        """The arcs that are worth scoring."""
        possible = self._possible(batch)
        if not self.settings.learned:
            return possible
        marginals = self.trees.marginals(self._scores(batch, noisy=False), possible).masked_fill(~possible, -1)
        kept = marginals >= self.settings.threshold * marginals.amax(-2, keepdim=True)
        if batch.size > self.settings.top_heads:
            best = marginals.topk(self.settings.top_heads, dim=-2).indices
            kept &= torch.zeros_like(kept).scatter_(-2, best, True)
        return possible & (kept | _chain(batch))

    @torch.no_grad()
    def scores(self, batches: Iterable[tuple[Batch, Parts]]) -> dict[str, float]:
        """How many heads it leaves a word, how many of the gold ones, and how many its own best trees have.

        Args:
            batches: Sentences and their gold arcs.
        """
        arcs = words = left = right = 0
        for batch, gold in batches:
            kept, possible = self(batch), self._possible(batch)
            z = self.trees.argmax(self._scores(batch, noisy=False), possible)
            arcs, words = arcs + int(kept.sum()), words + int(batch.lengths.sum())
            left, right = left + int((kept & (gold > 0)).sum()), right + int((z * gold).sum())
        words = max(words, 1)
        return {"heads_a_word": arcs / words, "recall": 100 * left / words, "UAS": 100 * right / words}

    def _possible(self, batch: Batch) -> Mask:
        """The arcs between tags that some arc of training has, and those from the word before."""
        tags, exists = batch.tags[:, :-1], self.trees.mask(batch.lengths, batch.size)
        return exists & (self.seen[tags.unsqueeze(-1), tags.unsqueeze(-2)] | _chain(batch))

    def _scores(self, batch: Batch, *, noisy: bool) -> Float[Tensor, "batch n n"]:
        return self.arcs(self.encoder(batch, noisy=noisy)).squeeze(-1)


def _chain(batch: Batch) -> Bool[Tensor, "n n"]:
    """The arcs from each word to the next."""
    return torch.ones(batch.size - 1, dtype=torch.bool, device=batch.device).diag(1)
