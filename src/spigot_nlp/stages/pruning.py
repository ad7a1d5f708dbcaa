"""Which arcs and labels of a graph are worth scoring: what training has seen, and a small parser's judgement."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import softplus

from spigot.types import Values as Losses
from spigot_nlp.annotations.graphs import GoldGraph, Graphs
from spigot_nlp.batches.batch import Batch, Encoded
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import AnyEncoder, BiLSTMSettings, make_encoder
from spigot_nlp.nn.encoder import ROOT
from spigot_nlp.nn.quantised import Remembered
from spigot_nlp.nn.scorers import PairScorer, WordScorer
from spigot_nlp.values import Count, Optimiser, Positive, Size, Values


class Pruning(Values):
    """Which arcs and labels of the semantic parser are worth scoring.

    Attributes:
        dictionary: Whether only roles count that training has between words of two tags.
        distance: Whether only arcs count that are no longer than those of training between words of two tags.
        rare_role: Roles that training has less often share one label.
        learned: Whether a small parser, trained first, judges what is left.
        threshold: How probable an arc must be.
        keep: Most arcs of a predicate.
        epochs: Passes over the training graphs.
        entropy: Whether the entropy of the graphs is minimised beside the likelihood, as in the published program.
        encoder: How its words become states.
        mlp: Hidden units of each of its layers.
        optimiser: How it is updated.
    """

    dictionary: bool = True
    distance: bool = True
    rare_role: Count = 30
    learned: bool = True
    threshold: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    keep: Positive = 20
    epochs: Positive = 3
    entropy: bool = False
    encoder: AnyEncoder = BiLSTMSettings(word_dim=32, lemma_dim=16, tag_dim=16, hidden=32, layers=1)
    mlp: Size = 32
    optimiser: Optimiser = Optimiser(max_norm=5.0)


class SeenArcs(nn.Module):
    """Label dictionary and distances by pair of tags.

    A role is possible for two words if training has an arc with that role between words of these tags, and not if the
    words are further apart than any such pair (per direction). Tags that training never saw rule nothing out. Arcs of
    the root mark tops and nothing else does, whatever was seen.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab, graphs = Vocab.of([rain]), Graphs.learn("graph", [rain], None)
        >>> seen = SeenArcs(Pruning(), vocab, graphs)
        >>> seen.learn("semantics", [encode(rain, vocab, {"semantics": graphs})])
        >>> snow = Sentence(("Snow", "melted", "fast"), tags=("NN", "VBD", "NN"))
        >>> seen(collate([encode(snow, vocab)])).nonzero().tolist()     # no object was seen, so there can be none
        [[0, 0, 2], [0, 2, 1]]
    """

    roles: Bool[Tensor, "tags tags l"]
    reach: Int[Tensor, "2 tags tags"]

    def __init__(self, settings: Pruning, vocab: Vocab, annotation: Graphs) -> None:
        super().__init__()
        tags, roles = len(vocab.tags), len(annotation.roles)
        self.settings = settings
        self.register_buffer("roles", _tops_only(torch.ones(tags, tags, roles, dtype=torch.bool)))
        self.register_buffer("reach", torch.full((2, tags, tags), 2**30))
        self._bits = Remembered[Tensor]()

    @property
    def role_bits(self) -> Int[Tensor, "tags tags"]:
        """The roles that words of two tags may have, as bits of one number: at most 64 roles."""
        place = torch.arange(self.roles.shape[-1], device=self.roles.device)
        return self._bits.of([self.roles], lambda: (self.roles.long() << place).sum(-1))

    def learn(self, stage: str, sentences: Sequence[Encoded]) -> None:
        """Fill the tables from the training sentences that have graphs for a stage."""
        roles = torch.zeros_like(self.roles, device="cpu")
        reach = torch.zeros_like(self.reach, device="cpu")
        unseen = torch.ones(len(roles), dtype=torch.bool)
        for sentence in sentences:
            if stage not in sentence.gold:
                continue
            tags = torch.from_numpy(sentence.tokens[2])
            unseen[tags] = False
            head, argument, role = torch.from_numpy(sentence.gold[stage][1]).unbind(-1)
            pair = tags[head], tags[argument]
            roles[(*pair, role)] = True
            side = (argument > head).long()
            flat = (side * reach.shape[1] + pair[0]) * reach.shape[2] + pair[1]
            reach.view(-1).scatter_reduce_(0, flat, (argument - head).abs(), "amax")
        roles[unseen], roles[:, unseen] = True, True
        reach[:, unseen], reach[:, :, unseen] = 2**30, 2**30
        if self.settings.dictionary:
            self.roles.copy_(_tops_only(roles))
        if self.settings.distance:
            self.reach.copy_(reach)

    def forward(self, batch: Batch) -> Bool[Tensor, "batch n n"]:
        """Arcs with at least one possible role, within reach."""
        tags = batch.tags[:, :-1]
        head, argument = tags.unsqueeze(-1), tags.unsqueeze(-2)
        place = torch.arange(batch.size, device=tags.device)
        offset = place - place.unsqueeze(-1)
        near = offset.abs() <= self.reach[(offset > 0).long(), head, argument]
        inside = (place <= batch.lengths.unsqueeze(-1)) & (batch.lengths > 0).unsqueeze(-1)
        pairs = inside.unsqueeze(-1) & inside.unsqueeze(-2) & (offset != 0) & (place > 0)
        return pairs & near & self.roles.any(-1)[head, argument]

    def labels(self, batch: Batch, pairs: Int[Tensor, "pairs 3"]) -> Bool[Tensor, "pairs l"]:
        """The possible roles of listed pairs."""
        sentence, head, argument = pairs.unbind(-1)
        return self.roles[batch.tags[sentence, head], batch.tags[sentence, argument]]


def _tops_only(roles: Bool[Tensor, "tags tags l"]) -> Bool[Tensor, "tags tags l"]:
    """Rule out all roles but the first, TOP, for the root's arcs, and TOP for all others."""
    roles[:ROOT, :, :1] = roles[ROOT + 1 :, :, :1] = False
    roles[ROOT, :, 1:] = False
    return roles


class ArcPruner(nn.Module):
    r"""A small first-order unlabelled parser with marginals in closed form.

    Predicate i is on with probability $1 - 1/Z_i$, $Z_i = 1 + e^{s_i} \prod_j (1 + e^{a_{ij}})$, and then each of its
    arcs with probability $\sigma(a_{ij})$.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab, graphs = Vocab.of([rain]), {"semantics": Graphs.learn("graph", [rain], None)}
        >>> pruner, batch = ArcPruner(Pruning(), vocab), collate([encode(rain, vocab, graphs)], graphs)
        >>> possible = SeenArcs(Pruning(), vocab, graphs["semantics"])(batch)
        >>> pruner(batch, possible).shape, pruner.loss(batch, batch.gold["semantics"], possible).shape
        (torch.Size([1, 3, 3]), torch.Size([1]))
    """

    def __init__(self, settings: Pruning, vocab: Vocab, run: Path | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.encoder = make_encoder(settings.encoder, vocab, run=run)
        self.predicates = WordScorer(self.encoder.outputs, settings.mlp)
        self.arcs = PairScorer(self.encoder.outputs, settings.mlp, distance=True)

    def loss(self, batch: Batch, graphs: GoldGraph, possible: Bool[Tensor, "batch n n"]) -> Losses:
        """Negative log-likelihood of the gold predicates and arcs among those possible, and the entropy if asked."""
        predicates, arcs = self._scores(batch, noisy=True)
        gold = torch.zeros_like(possible)
        gold[graphs.arcs[:, :3].unbind(-1)] = True
        possible = possible | gold
        inside = softplus(arcs).masked_fill(~possible, 0).sum(-1)
        words = torch.arange(batch.size, device=predicates.device) <= batch.lengths.unsqueeze(-1)
        log_z = softplus(predicates + inside).masked_fill(~words, 0).sum(-1)
        scored = predicates.masked_fill(~graphs.predicates, 0).sum(-1) + arcs.masked_fill(~gold, 0).sum((-1, -2))
        if not self.settings.entropy:
            return log_z - scored
        on = torch.sigmoid(predicates + inside).masked_fill(~words, 0)
        edges = (on.unsqueeze(-1) * torch.sigmoid(arcs)).masked_fill(~possible, 0)
        return 2 * log_z - scored - (on * predicates).sum(-1) - (edges * arcs).sum((-1, -2))

    @torch.no_grad()
    def forward(self, batch: Batch, possible: Bool[Tensor, "batch n n"]) -> Bool[Tensor, "batch n n"]:
        """The arcs among those possible whose posterior passes the threshold, at most so many of a predicate."""
        predicates, arcs = self._scores(batch, noisy=False)
        inside = softplus(arcs).masked_fill(~possible, 0).sum(-1)
        posterior = torch.sigmoid(predicates + inside).unsqueeze(-1) * torch.sigmoid(arcs)
        posterior = posterior.masked_fill(~possible, 0)
        kept = possible & (posterior >= self.settings.threshold)
        if batch.size > self.settings.keep:
            least = posterior.topk(self.settings.keep, -1).values[..., -1:]
            kept &= posterior >= least
        return kept

    def _scores(self, batch: Batch, *, noisy: bool) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n n"]]:
        states = self.encoder(batch, noisy=noisy)
        return self.predicates(states), self.arcs(states).squeeze(-1)
