"""Semantic dependency parser: scores of predicates, arcs and labelled arcs, and the best graph (NeurboParser)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import softplus

import spigot
from spigot import config
from spigot.data.batch import Batch
from spigot.data.vocab import Vocab
from spigot.models.encode import BatchEncoder
from spigot.models.pruning import ArcPruner, SeenArcs
from spigot.nn.features import head_features
from spigot.nn.scorers import PairScorer, WordScorer
from spigot.types import Mask, Parts, Values


@dataclass(frozen=True)
class Scored:
    """The surviving parts of a batch and their scores.

    Attributes:
        predicates: A score for each position.
        pairs: The surviving arcs as (sentence, predicate, argument).
        arcs: A score for each of them.
        labelled: A score for each of their roles.
        possible: Which of these roles exist.
    """

    predicates: Float[Tensor, "batch n"]
    pairs: Int[Tensor, "pairs 3"]
    arcs: Float[Tensor, " pairs"]
    labelled: Float[Tensor, "pairs l"]
    possible: Bool[Tensor, "pairs l"]


class SemanticParser(nn.Module):
    """Scores what pruning leaves; the best graph follows.

    Args:
        settings: Sizes, loss and pruning.
        vocab: The indices; its roles and which of them are deterministic.
        vectors: Pretrained word vectors in the vocabulary's order.
        heads: Whether each word's state is read beside that of its syntactic head (Eq. 7).

    Attributes:
        structure: The set of graphs.

    Example:
        >>> from spigot.data.batch import collate, encode
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab = Vocab.of([rain])
        >>> parser = SemanticParser(config.Semantics(), vocab)
        >>> batch = collate([encode(rain, vocab)])
        >>> scored = parser(batch, None)
        >>> parser.loss(batch, scored).shape, parser.decode(batch, scored).shape    # two roles: TOP and ARG1
        (torch.Size([1]), torch.Size([1, 3, 3, 3]))
    """

    def __init__(
        self,
        settings: config.Semantics,
        vocab: Vocab,
        vectors: Float[Tensor, "words d"] | None = None,
        *,
        heads: bool = False,
    ) -> None:
        super().__init__()
        if not vocab.roles:
            raise ValueError("The training graphs have no arcs and no tops, so there is nothing a parser could find.")
        self.settings = settings
        deterministic = vocab.deterministic if settings.determinism else ()
        self.structure = spigot.SemanticGraphs(len(vocab.roles), deterministic)
        self.seen = SeenArcs(settings.pruning, vocab)
        self.encoder = BatchEncoder(settings.encoder, vocab, vectors)
        width = self.encoder.outputs * (2 if heads else 1)
        self.predicates = WordScorer(width, settings.mlp, settings.mlp_layers)
        self.arcs = PairScorer(width, settings.mlp, settings.mlp_layers)
        self.labels = PairScorer(width, settings.mlp, settings.mlp_layers, outputs=len(vocab.roles))

    def forward(
        self,
        batch: Batch,
        pruner: ArcPruner | None,
        z: Parts | None = None,
        *,
        noisy: bool = True,
        forced: Bool[Tensor, "batch n n"] | None = None,
    ) -> Scored:
        """Score the surviving parts.

        Args:
            batch: The sentences.
            pruner: The learned pruner, if there is one.
            z: Arcs of the syntactic trees, if the parser reads heads.
            noisy: Whether words are dropped in training; not where the parser stands inside another model.
            forced: Arcs that no pruning may remove.
        """
        surviving = self.surviving(batch, pruner)
        if forced is not None:
            surviving = surviving | forced
        states = self.encoder(batch, noisy=noisy)
        if z is not None:
            states = head_features(states, z)
        pairs = surviving.nonzero()
        return Scored(
            self.predicates(states),
            pairs,
            self.arcs.at(states, pairs).squeeze(-1),
            self.labels.at(states, pairs),
            self._possible(batch, pairs),
        )

    def surviving(self, batch: Batch, pruner: ArcPruner | None) -> Bool[Tensor, "batch n n"]:
        """The arcs that pruning leaves. In training (a batch with seeds) gold arcs are kept."""
        surviving = self.seen(batch)
        if pruner is not None:
            surviving = pruner(batch, surviving)
        if batch.seeds is not None and batch.arcs is not None:
            surviving[tuple(batch.arcs[:, :3].unbind(-1))] = True
        return surviving

    def loss(self, batch: Batch, scored: Scored) -> Values:
        """The loss of each sentence's gold graph."""
        if batch.arcs is None or batch.predicates is None:
            raise ValueError("The semantic parser's loss needs graphs, and this batch has none.")
        if self.settings.loss == "log":
            return self._log_loss(scored, batch.lengths, batch.predicates, batch.arcs)
        scores, mask = self.parts(batch, scored)
        weight = torch.ones(scores.shape[-1], dtype=scores.dtype)
        weight[0] = 0  # the cost counts labelled arcs only
        return spigot.structured_hinge(
            scores,
            gold_parts(batch.predicates, batch.arcs, scores),
            self.structure,
            mask=mask,
            weight=weight,
            false_positive=self.settings.false_positive,
            false_negative=self.settings.false_negative,
        )

    def parts(self, batch: Batch, scored: Scored) -> tuple[Parts, Mask]:
        """All parts in the structure's layout, and which exist."""
        size = scored.predicates.shape[1]
        values = torch.cat((scored.arcs.unsqueeze(-1), scored.labelled), -1)
        exists = torch.cat((torch.ones_like(scored.possible[:, :1]), scored.possible), -1)
        shape = (*scored.predicates.shape, size, values.shape[-1])
        sentence, head, argument = scored.pairs.unbind(-1)
        flat = (sentence * size + head) * size + argument
        scores = values.new_zeros(shape).flatten(0, 2).index_copy(0, flat, values).view(shape)
        mask = exists.new_zeros(shape).flatten(0, 2).index_copy(0, flat, exists).view(shape)
        # Predicates stand on the diagonal, which no arc uses; behind the end of a sentence there are none.
        scores = torch.cat((scores[..., :1] + scored.predicates.diag_embed().unsqueeze(-1), scores[..., 1:]), -1)
        mask[..., 0] |= _positions(batch.lengths, size).diag_embed()
        return scores, mask

    def decode(self, batch: Batch, scored: Scored) -> Parts:
        """The best graph of each sentence."""
        return self.structure.argmax(*self.parts(batch, scored))

    def _possible(self, batch: Batch, pairs: Int[Tensor, "pairs 3"]) -> Bool[Tensor, "pairs l"]:
        possible = self.seen.labels(batch, pairs)
        if batch.seeds is None or batch.arcs is None:
            return possible
        possible[_rows(pairs, batch.arcs, *batch.tags[:, 1:].shape), batch.arcs[:, 3]] = True
        return possible

    def _log_loss(
        self,
        scored: Scored,
        lengths: Int[Tensor, " batch"],
        predicates: Bool[Tensor, "batch n"],
        arcs: Int[Tensor, "arcs 4"],
    ) -> Values:
        r"""Negative log-likelihood without determinism, where it has a closed form.

        $\log Z = \sum_i \operatorname{softplus}(s_i + \sum_j \operatorname{softplus}(a_{ij}))$ with
        $a_{ij} = s_{ij} + \log\sum_l e^{s_{ijl}}$: what `crf_nll` gives, over the surviving parts only. Gold parts that
        did not survive are left out, as the hinge leaves them out.
        """
        size = predicates.shape[1]
        sentence, head, _ = scored.pairs.unbind(-1)
        either = scored.arcs + scored.labelled.masked_fill(~scored.possible, -torch.inf).logsumexp(-1)
        inside = torch.zeros_like(scored.predicates).flatten().index_add(0, sentence * size + head, softplus(either))
        inside = softplus(scored.predicates + inside.view_as(scored.predicates))
        log_z = inside.masked_fill(~_positions(lengths, size), 0).sum(-1)
        chosen = _rows(scored.pairs, arcs, len(lengths), size)
        arcs, chosen = arcs[chosen >= 0], chosen[chosen >= 0]
        exists = scored.possible[chosen, arcs[:, 3]]
        arcs, chosen = arcs[exists], chosen[exists]
        value = scored.arcs[chosen] + scored.labelled[chosen, arcs[:, 3]]
        on = scored.predicates.masked_fill(~predicates, 0).sum(-1)
        return log_z - on - torch.zeros_like(log_z).index_add(0, arcs[:, 0], value)


def gold_parts(predicates: Bool[Tensor, "batch n"], arcs: Int[Tensor, "arcs 4"], like: Parts) -> Parts:
    """Gold graphs in the layout of `SemanticGraphs`.

    Args:
        predicates: The predicates.
        arcs: Arcs as (sentence, predicate, argument, role).
        like: Parts of the shape and dtype wanted.

    Example:
        >>> predicates, arcs = torch.tensor([[False, True, False]]), torch.tensor([[0, 1, 2, 0]])
        >>> gold_parts(predicates, arcs, torch.zeros(1, 3, 3, 2)).nonzero().tolist()
        [[0, 1, 1, 0], [0, 1, 2, 0], [0, 1, 2, 1]]
    """
    gold = torch.zeros_like(like)
    sentence, head, argument, role = arcs.unbind(-1)
    gold[sentence, head, argument, 0] = 1
    gold[sentence, head, argument, role + 1] = 1
    place = torch.arange(predicates.shape[1], device=like.device)
    gold[:, place, place, 0] = predicates.to(gold.dtype)
    return gold


def _positions(lengths: Int[Tensor, " batch"], size: int) -> Bool[Tensor, "batch n"]:
    """The root and the words of each sentence."""
    return torch.arange(size, device=lengths.device) <= lengths.unsqueeze(-1)


def _rows(pairs: Int[Tensor, "pairs 3"], arcs: Int[Tensor, "arcs 4"], batch: int, size: int) -> Int[Tensor, " arcs"]:
    """Where each arc stands in the list of surviving pairs; -1 if it did not survive."""
    strides = torch.tensor([size * size, size, 1], device=pairs.device)
    place = torch.full((batch * size * size,), -1, device=pairs.device)
    place[(pairs * strides).sum(-1)] = torch.arange(len(pairs), device=pairs.device)
    return place[(arcs[:, :3] * strides).sum(-1)]
