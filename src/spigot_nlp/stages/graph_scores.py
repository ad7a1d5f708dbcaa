"""The scores of what pruning leaves of graphs: as a list of pairs, as dense parts, and their likelihood."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from spigot.types import Mask, Parts, Values
from spigot_nlp.annotations.graphs import GoldGraph


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

    def worth(self, likely: Float[Tensor, "pairs l"], threshold: float) -> "Scored":
        """The same parts with scores that make the best graph the one whose labelled arcs are likely, one by one.

        Roles that do not exist, which only constraints can bring back, are worth less than any other, by their scores.

        Args:
            likely: How likely each labelled arc is.
            threshold: How likely it must be to be worth something.
        """
        worth = torch.where(self.possible, likely, self.labelled.softmax(-1) - 1) - threshold
        nothing = torch.zeros_like(self.predicates), torch.zeros_like(self.arcs)
        return replace(self, predicates=nothing[0], arcs=nothing[1], labelled=worth)


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
    inside = softplus(_predicate_values(scored, softplus(_arc_values(scored))))
    log_z = inside.masked_fill(~positions(lengths, size), 0).sum(-1)
    chosen = rows_of(scored.pairs, arcs, len(lengths), size)
    arcs, chosen = arcs[chosen >= 0], chosen[chosen >= 0]
    exists = scored.possible[chosen, arcs[:, 3]]
    arcs, chosen = arcs[exists], chosen[exists]
    value = scored.arcs[chosen] + scored.labelled[chosen, arcs[:, 3]]
    on = scored.predicates.masked_fill(~predicates, 0).sum(-1)
    return log_z - on - torch.zeros_like(log_z).index_add(0, arcs[:, 0], value)


def graph_marginals(scored: Scored) -> Float[Tensor, "pairs l"]:
    r"""How likely each labelled arc is, without determinism, where it has a closed form.

    With $a_{ij} = s_{ij} + \log\sum_l e^{s_{ijl}}$ and $\sigma$ the logistic function,
    $$p_{ijl} = \sigma\Big(s_i + \sum_k \operatorname{softplus}(a_{ik})\Big)\, \sigma(a_{ij})\,
    e^{s_{ij} + s_{ijl} - a_{ij}}.$$

    Example:
        >>> zero = torch.zeros(1, 1)
        >>> scored = Scored(torch.zeros(1, 3), torch.tensor([[0, 2, 1]]), zero[0], zero, zero == 0)
        >>> graph_marginals(scored)  # a predicate with the arc, one without, or none
        tensor([[0.3333]])
    """
    either = _arc_values(scored)
    batch, head, _ = scored.pairs.unbind(-1)
    on = _predicate_values(scored, softplus(either)).sigmoid()[batch, head] * either.sigmoid()
    none = ~scored.possible.any(-1, keepdim=True)  # their shares would be no numbers
    labels = scored.labelled.masked_fill(~scored.possible & ~none, -torch.inf).softmax(-1)
    return (on.unsqueeze(-1) * labels).masked_fill(none, 0)


def _arc_values(scored: Scored) -> Float[Tensor, " pairs"]:
    """What an arc is worth, whatever its label; minus infinity if it can have none."""
    return scored.arcs + scored.labelled.masked_fill(~scored.possible, -torch.inf).logsumexp(-1)


def _predicate_values(scored: Scored, arcs: Float[Tensor, " pairs"]) -> Float[Tensor, "batch n"]:
    """What a predicate is worth with its arcs, each of which is worth so much."""
    size = scored.predicates.shape[1]
    batch, head, _ = scored.pairs.unbind(-1)
    inside = torch.zeros_like(scored.predicates).flatten().index_add(0, batch * size + head, arcs)
    return scored.predicates + inside.view_as(scored.predicates)


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
