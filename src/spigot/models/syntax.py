"""Unlabelled dependency parser: BiLSTM states, an MLP for each arc, a tree (Kiperwasser and Goldberg, 2016)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

import spigot
from spigot import config
from spigot.data.batch import Batch
from spigot.data.vocab import Vocab
from spigot.models.encode import BatchEncoder
from spigot.models.limits import has_tree
from spigot.nn.scorers import PairScorer
from spigot.types import Mask, Parts, Values


class SyntacticParser(nn.Module):
    """Scores every arc; the best tree follows.

    Args:
        settings: Sizes, structure and loss.
        vocab: The indices.
        vectors: Pretrained word vectors in the vocabulary's order.

    Attributes:
        structure: The set of trees.

    Example:
        >>> from spigot.data.batch import collate, encode
        >>> from spigot.data.sentence import Sentence
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> vocab = Vocab.of([rain])
        >>> parser = SyntacticParser(config.Syntax(), vocab)
        >>> batch = collate([encode(rain, vocab)])
        >>> scores, mask = parser(batch)
        >>> scores.shape, parser.loss(batch).shape
        (torch.Size([1, 3, 3]), torch.Size([1]))
    """

    def __init__(self, settings: config.Syntax, vocab: Vocab, vectors: Float[Tensor, "words d"] | None = None) -> None:
        super().__init__()
        trees = spigot.ProjectiveTrees if settings.trees == "projective" else spigot.NonProjectiveTrees
        self.structure = trees(single_root=settings.single_root)
        self.settings = settings
        self.encoder = BatchEncoder(settings.encoder, vocab, vectors)
        self.arcs = PairScorer(self.encoder.outputs, settings.mlp, settings.mlp_layers)

    def forward(self, batch: Batch, *, noisy: bool = False, allowed: Mask | None = None) -> tuple[Parts, Mask]:
        """Arc scores and which arcs exist.

        Args:
            batch: The sentences.
            noisy: Whether words are dropped as in the parser's own training.
            allowed: The arcs that constraints leave; they must leave a tree.
        """
        scores = self.arcs(self.encoder(batch, noisy=noisy)).squeeze(-1)
        return scores, self._exists(scores, batch, allowed)

    def loss(self, batch: Batch) -> Values:
        """The parser's own loss on its own data: the cost-augmented hinge, one a wrong head, or the CRF's."""
        if batch.heads is None:
            raise ValueError("The syntactic parser's loss needs trees, and this batch has none.")
        scores, mask = self(batch, noisy=True)
        gold = tree_parts(batch.heads, batch.lengths, scores.dtype)
        mask = mask | (gold > 0)
        if self.settings.loss == "crf":
            return spigot.crf_nll(scores, gold, self.structure, mask=mask)
        return spigot.structured_hinge(scores, gold, self.structure, mask=mask, false_positive=0.5, false_negative=0.5)

    def _exists(self, scores: Parts, batch: Batch, allowed: Mask | None) -> Mask:
        """All arcs, or the best few heads of each word and the word before it, so that a tree is always left."""
        mask = whole = self.structure.mask(batch.lengths, batch.size)
        if allowed is not None:
            mask = mask & allowed
        if not self.settings.keep or batch.size <= self.settings.keep:
            return mask
        best = scores.detach().masked_fill(~mask, -torch.inf).topk(self.settings.keep, dim=-2).indices
        kept = torch.zeros_like(mask).scatter_(-2, best, True)
        chain = torch.ones(batch.size - 1, dtype=torch.bool, device=mask.device).diag(1)
        kept = mask & (kept | chain)
        if allowed is not None:
            for k in (mask != whole).any((-1, -2)).nonzero().flatten().tolist():
                if not has_tree(self.structure, kept[k], int(batch.lengths[k])):
                    kept[k] = mask[k]  # constraints that only a worse head can meet
        return kept


def tree_parts(heads: Int[Tensor, "batch n"], lengths: Int[Tensor, " batch"], dtype: torch.dtype) -> Parts:
    """Heads as arcs i -> j.

    Example:
        >>> tree_parts(torch.tensor([[0, 2, 0]]), torch.tensor([2]), torch.float32)[0]
        tensor([[0., 0., 1.],
                [0., 0., 0.],
                [0., 1., 0.]])
    """
    n = heads.shape[1]
    place = torch.arange(n, device=heads.device)
    words = (place > 0) & (place <= lengths.unsqueeze(-1))
    return ((heads.unsqueeze(1) == place.unsqueeze(-1)) & words.unsqueeze(1)).to(dtype)


def tree_heads(z: Parts) -> Int[Tensor, "batch n"]:
    """The head of each position; 0 for the root and where there is none.

    Example:
        >>> tree_heads(tree_parts(torch.tensor([[0, 2, 0]]), torch.tensor([2]), torch.float32)).tolist()
        [[0, 2, 0]]
    """
    return z.argmax(-2)
