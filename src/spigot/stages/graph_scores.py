"""The scores of what pruning leaves of graphs: as a list of pairs, as dense parts, and their likelihood."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from spigot.annotations.graphs import GoldGraph
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

    @property
    def places(self) -> Int[Tensor, " pairs"]:
        """Where each pair stands in a flat batch of arc matrices."""
        return flat_places(self.pairs, self.predicates.shape[1])


def dense(values: Tensor, places: Int[Tensor, " pairs"], batch: int, size: int) -> Tensor:
    """Values of listed pairs as arc matrices, with zeros for all other pairs.

    Example:
        >>> dense(torch.tensor([2.0]), torch.tensor([1]), 1, 2).tolist()
        [[[0.0, 2.0], [0.0, 0.0]]]
    """
    shape = (batch, size, size, *values.shape[1:])
    return values.new_zeros(shape).flatten(0, 2).index_copy(0, places, values).view(shape)


def dense_parts(scored: Scored, lengths: Int[Tensor, " batch"]) -> tuple[Parts, Mask]:
    """All parts in the layout of `SemanticGraphs`, and which exist."""
    inside = positions(lengths, scored.predicates.shape[1])  # behind the end of a sentence there are no predicates
    survives = torch.ones_like(scored.arcs, dtype=torch.bool)
    return (
        _packed(scored, scored.predicates, scored.arcs, scored.labelled),
        _packed(scored, inside, survives, scored.possible),
    )


def _packed(scored: Scored, predicates: Tensor, arcs: Tensor, labelled: Tensor) -> Tensor:
    """What `SemanticGraphs.pack` makes of three dense tensors, from those of the surviving pairs."""
    batch, size = predicates.shape
    words = torch.arange(batch * size, device=predicates.device)
    diagonal = words * size + words % size  # no word is its own argument, so that nothing else stands there
    pairs = torch.cat((arcs.unsqueeze(-1), labelled), -1)
    alone = torch.cat((predicates.reshape(-1, 1), labelled.new_zeros(len(words), labelled.shape[-1])), -1)
    return dense(torch.cat((pairs, alone)), torch.cat((scored.places, diagonal)), batch, size)


def graph_log_loss(scored: Scored, lengths: Int[Tensor, " batch"], gold: GoldGraph) -> Values:
    r"""Negative log-likelihood without determinism, where it has a closed form.

    $\log Z = \sum_i \operatorname{softplus}(s_i + \sum_j \operatorname{softplus}(a_{ij}))$ with
    $a_{ij} = s_{ij} + \log\sum_l e^{s_{ijl}}$: what `crf_nll` gives, over the surviving parts only. Gold parts that
    did not survive are left out, as the hinge leaves them out.
    """
    predicates, arcs = gold
    size = predicates.shape[1]
    sentence, head, _ = scored.pairs.unbind(-1)
    either = scored.arcs + scored.labelled.masked_fill(~scored.possible, -torch.inf).logsumexp(-1)
    inside = torch.zeros_like(scored.predicates).flatten().index_add(0, sentence * size + head, softplus(either))
    inside = softplus(scored.predicates + inside.view_as(scored.predicates))
    log_z = inside.masked_fill(~positions(lengths, size), 0).sum(-1)
    chosen = rows_of(scored.pairs, arcs, len(lengths), size)
    arcs, chosen = arcs[chosen >= 0], chosen[chosen >= 0]
    exists = scored.possible[chosen, arcs[:, 3]]
    arcs, chosen = arcs[exists], chosen[exists]
    value = scored.arcs[chosen] + scored.labelled[chosen, arcs[:, 3]]
    on = scored.predicates.masked_fill(~predicates, 0).sum(-1)
    return log_z - on - torch.zeros_like(log_z).index_add(0, arcs[:, 0], value)


def positions(lengths: Int[Tensor, " batch"], size: int) -> Bool[Tensor, "batch n"]:
    """The root and the words of each sentence."""
    return torch.arange(size, device=lengths.device) <= lengths.unsqueeze(-1)


def flat_places(pairs: Int[Tensor, "pairs k"], size: int) -> Int[Tensor, " pairs"]:
    """Where pairs (sentence, predicate, argument, ...) stand in a flat batch of arc matrices."""
    return (pairs[:, 0] * size + pairs[:, 1]) * size + pairs[:, 2]


def rows_of(pairs: Int[Tensor, "pairs 3"], arcs: Int[Tensor, "arcs k"], batch: int, size: int) -> Int[Tensor, " arcs"]:
    """Where each arc stands in the list of surviving pairs; -1 if it did not survive."""
    place = torch.full((batch * size * size,), -1, device=pairs.device)
    place[flat_places(pairs, size)] = torch.arange(len(pairs), device=pairs.device)
    return place[flat_places(arcs, size)]
