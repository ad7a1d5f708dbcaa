r"""The likelihood of several graphs of a sentence together, with parts that join their arcs.

Such parts join arcs between the same two words. So, without determinism, everything splits by predicate; and given
which graphs have the word for a predicate, by argument:

$$Z = \prod_i \sum_P e^{\sum_{t\in P} s_t(i)} \prod_j \sum_{S\subseteq P} A_S(i, j),$$

where P and S are sets of graphs, and $A_S(i, j)$ sums over the labels of an arc that exactly the graphs in S have.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot.types import Values
from spigot_nlp.annotations.formalisms import GoldFormalisms
from spigot_nlp.stages.graph_scores import Scored, positions, rows_of

LARGEST = 3
"""Labels of so many graphs are summed over together."""


class Block(NamedTuple):
    """Parts that join arcs of the same graphs, on the pairs of words that all of them have.

    Attributes:
        tasks: The graphs, in rising order.
        places: Where the pairs stand in a flat batch of arc matrices.
        rows: Where they stand among the surviving pairs of each of the graphs.
        arcs: The score of the part that joins arcs whatever their labels.
        joined: The labels that each labelled part joins, one of each of the graphs.
        labelled: The scores of labelled parts.
    """

    tasks: tuple[int, ...]
    places: Int[Tensor, " common"]
    rows: tuple[Int[Tensor, " common"], ...]
    arcs: Float[Tensor, " common"]
    joined: Int[Tensor, "parts tasks"]
    labelled: Float[Tensor, "common parts"]


def joint_log_loss(
    tasks: Sequence[Scored], blocks: Sequence[Block], lengths: Int[Tensor, " batch"], gold: GoldFormalisms
) -> Values:
    """The negative log-likelihood of all graphs of each sentence together, without determinism.

    It has a closed form for up to three graphs, and for any number if no parts join their arcs. Gold parts that did not
    survive are left out, and so is everything of a graph that a sentence lacks.

    Args:
        tasks: The surviving parts of each graph and their scores.
        blocks: The parts that join their arcs.
        lengths: Words of each sentence.
        gold: The right graphs.
    """
    return _log_partition(tasks, blocks, lengths, gold.present) - _right(tasks, blocks, gold)


def marginals(
    tasks: Sequence[Scored], blocks: Sequence[Block], lengths: Int[Tensor, " batch"]
) -> list[Float[Tensor, "pairs l"]]:
    """How likely each labelled arc of each graph is, among all graphs together, without determinism.

    The gradient of log Z by the scores of labels; it can be differentiated where they can.

    Args:
        tasks: The surviving parts of each graph and their scores.
        blocks: The parts that join their arcs.
        lengths: Words of each sentence.
    """
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        labelled = [scored.labelled if scored.labelled.requires_grad else scored.labelled.detach().requires_grad_()
                    for scored in tasks]  # fmt: skip
        own = [replace(scored, labelled=scores) for scored, scores in zip(tasks, labelled, strict=True)]
        everywhere = torch.ones(len(lengths), len(tasks), dtype=torch.bool, device=lengths.device)
        log_z = _log_partition(own, blocks, lengths, everywhere).sum()
        return list(torch.autograd.grad(log_z, labelled, create_graph=again))


def _log_partition(
    tasks: Sequence[Scored],
    blocks: Sequence[Block],
    lengths: Int[Tensor, " batch"],
    present: Bool[Tensor, "batch tasks"],
) -> Values:
    sums = _Sums(tasks, {block.tasks: block for block in (*blocks, *_missing(tasks, blocks))})
    sentences, size = tasks[0].predicates.shape
    inside = positions(lengths, size)
    log_z = tasks[0].predicates.new_zeros(sentences)
    for group in _connected(len(tasks), blocks):
        several = []
        for on in _subsets(group):
            start = torch.zeros_like(tasks[0].predicates)
            for task in on:
                start = start + tasks[task].predicates.masked_fill(~present[:, task, None], -torch.inf)
            several.append(start + sums.arguments(on).view(sentences, size))
        log_z = log_z + torch.stack(several).logsumexp(0).masked_fill(~inside, 0).sum(-1)
    return log_z


@dataclass
class _Sums:
    """Sums over the labels of arcs.

    Attributes:
        tasks: The surviving parts of each graph.
        blocks: The parts that join their arcs, by the graphs they are of.
    """

    tasks: Sequence[Scored]
    blocks: dict[tuple[int, ...], Block]

    @cached_property
    def labels(self) -> list[Float[Tensor, "pairs l"]]:
        """Scores of the labels of each graph."""
        return [scored.labelled.masked_fill(~scored.possible, -torch.inf) for scored in self.tasks]

    @cached_property
    def either(self) -> list[Float[Tensor, " pairs"]]:
        """What an arc is worth, whatever its label."""
        return [scored.arcs + labels.logsumexp(-1) for scored, labels in zip(self.tasks, self.labels, strict=True)]

    @cached_property
    def log_shares(self) -> list[Float[Tensor, "pairs l"]]:
        """The log-probability of each label of an arc by itself; minus infinity where it has no labels."""
        found = []
        for labels, scored in zip(self.labels, self.tasks, strict=True):
            none = ~scored.possible.any(-1, keepdim=True)  # their shares would be no numbers
            found.append(labels.masked_fill(none, 0).log_softmax(-1).masked_fill(~scored.possible, -torch.inf))
        return found

    @cached_property
    def together(self) -> dict[tuple[int, ...], Float[Tensor, " common"]]:
        """What arcs between the same words are worth together, whatever their labels: log A of sets of two or more."""
        return {key: self._together(block) for key, block in self.blocks.items()}

    @cached_property
    def union(self) -> tuple[Int[Tensor, " union"], list[Int[Tensor, " pairs"]]]:
        """The places of pairs that any graph has, and where those of each graph stand among them."""
        every, where = torch.cat([scored.places for scored in self.tasks]).unique(return_inverse=True)
        return every, list(where.split([len(scored.pairs) for scored in self.tasks]))

    def arguments(self, on: tuple[int, ...]) -> Float[Tensor, " positions"]:
        """For each predicate of these graphs, the sum over its arguments of log sums over S."""
        first = self.tasks[0].predicates
        if not on:
            return first.new_zeros(first.numel())
        every, where = self.union
        terms = [first.new_zeros(len(every))]
        for task in on:
            terms.append(first.new_full((len(every),), -torch.inf).index_copy(0, where[task], self.either[task]))
        for key, block in self.blocks.items():
            if set(key) <= set(on):
                place = torch.searchsorted(every, block.places)
                terms.append(first.new_full((len(every),), -torch.inf).index_copy(0, place, self.together[key]))
        total = torch.stack(terms).logsumexp(0) if len(terms) > 1 else terms[0]
        predicate = torch.div(every, first.shape[1], rounding_mode="floor")
        return first.new_zeros(first.numel()).index_add(0, predicate, total)

    def _together(self, block: Block) -> Float[Tensor, " common"]:
        value = block.arcs
        for task, row in zip(block.tasks, block.rows, strict=True):
            value = value + self.either[task][row]
        if len(block.tasks) == 2:
            return value + self._mean_of_pair(block)
        inner = [self._at(pair, block.places) for pair in self._pairs_of(block)]
        for pair in inner:
            value = value + pair.arcs
        return value + self._mean_of_triple(block, inner)

    def _mean_of_pair(self, block: Block) -> Float[Tensor, " common"]:
        """The log of the mean of e to the scores of labelled parts, labels drawn from their shares.

        Labels that no part joins count with e to the 0. They are added up as they are: what the others leave of 1 would
        be lost in rounding where it is little.
        """
        first, second = (self.log_shares[task][row] for task, row in zip(block.tasks, block.rows, strict=True))
        a, b = block.joined.unbind(-1)
        apart = first.new_ones(first.shape[1], second.shape[1]).index_put((a, b), first.new_zeros(()))
        rest = ((first.exp() @ apart) * second.exp()).sum(-1)
        joined = first.index_select(1, a) + second.index_select(1, b) + block.labelled
        return torch.cat((_log(rest).unsqueeze(-1), joined), -1).logsumexp(-1)

    def _mean_of_triple(self, block: Block, pairs: Sequence[Block]) -> Float[Tensor, " common"]:
        """The same for three graphs, whose labels also meet in pairs.

        All labels of all three in a table would be too many, and products of e to scores need room: so in float64, and
        each factor divided by its largest value.
        """
        one, two, three = (
            self.log_shares[task][row].double().exp() for task, row in zip(block.tasks, block.rows, strict=True)
        )
        (near, high), (far, higher), (last, highest) = (_table(pair, self.log_shares) for pair in pairs)
        way = (one.unsqueeze(2) * near * two.unsqueeze(1)) @ last  # near: of the first two; far: of the outer two
        everything = (way * far * three.unsqueeze(1)).sum((1, 2))
        a, b, c = block.joined.unbind(-1)
        share = one[:, a] * two[:, b] * three[:, c] * near[:, a, b] * far[:, a, c] * last[:, b, c]
        rest = _log((everything - share.sum(-1)).clamp(min=0))
        joined = _log(share) + block.labelled
        total = torch.cat((rest.unsqueeze(-1), joined), -1).logsumexp(-1)
        return total.to(block.arcs.dtype) + high + higher + highest

    def _pairs_of(self, block: Block) -> list[Block]:
        return [self.blocks[pair] for pair in combinations(block.tasks, 2)]

    @staticmethod
    def _at(block: Block, places: Int[Tensor, " fewer"]) -> Block:
        """A block on fewer of its pairs."""
        rows = torch.searchsorted(block.places, places)
        kept = tuple(row[rows] for row in block.rows)
        return block._replace(places=places, rows=kept, arcs=block.arcs[rows], labelled=block.labelled[rows])


def _table(block: Block, shares: Sequence[Tensor]) -> tuple[Float[Tensor, "common l m"], Float[Tensor, " common"]]:
    """e to the scores of labelled parts of two graphs, 1 where there is none, over their maximum; and its log."""
    first, second = (shares[task].shape[1] for task in block.tasks)
    place = block.joined[:, 0] * second + block.joined[:, 1]
    zeros = block.labelled.new_zeros(len(block.places), first * second)
    scores = zeros.index_copy(1, place, block.labelled)
    most = scores.detach().amax(-1)
    return (scores - most.unsqueeze(-1)).double().exp().view(-1, first, second), most


def _log(values: Tensor) -> Tensor:
    """The logarithm; of nothing the least there is, so that gradients stay numbers."""
    return values.clamp(min=torch.finfo(values.dtype).tiny).log()


def _right(tasks: Sequence[Scored], blocks: Sequence[Block], gold: GoldFormalisms) -> Values:
    """The scores of the right graphs, as far as their parts survived."""
    sentences, size = tasks[0].predicates.shape
    value, known = tasks[0].predicates.new_zeros(sentences), []
    for scored, (predicates, arcs) in zip(tasks, gold.graphs, strict=True):
        row = rows_of(scored.pairs, arcs, sentences, size)
        arcs, row = arcs[row >= 0], row[row >= 0]
        exists = scored.possible[row, arcs[:, 3]]
        arcs, row = arcs[exists], row[exists]
        value = value + scored.predicates.masked_fill(~predicates, 0).sum(-1)
        value = value.index_add(0, arcs[:, 0], scored.arcs[row] + scored.labelled[row, arcs[:, 3]])
        known.append(torch.full_like(scored.pairs[:, 0], -1).index_copy(0, row, arcs[:, 3]))
    for block in blocks:
        labels = torch.stack([known[task][row] for task, row in zip(block.tasks, block.rows, strict=True)], -1)
        met = (labels >= 0).all(-1)
        same = (labels.unsqueeze(1) == block.joined).all(-1)
        worth = (block.arcs + block.labelled.masked_fill(~same, 0).sum(-1))[met]
        sentence = torch.div(block.places[met], size * size, rounding_mode="floor")
        value = value.index_add(0, sentence, worth)
    return value


def _subsets(group: Sequence[int]) -> Iterable[tuple[int, ...]]:
    return chain.from_iterable(combinations(group, size) for size in range(len(group) + 1))


def _missing(tasks: Sequence[Scored], blocks: Sequence[Block]) -> Iterable[Block]:
    """Three graphs that only pairs of them are joined in still meet, in a block without parts of its own."""
    if len(tasks) < LARGEST or len(blocks) != LARGEST:
        return
    first, second, third = blocks[0], blocks[1], blocks[2]
    places = first.places[torch.isin(first.places, second.places)]  # what the first two have, and the outer two
    near, far = torch.searchsorted(first.places, places), torch.searchsorted(second.places, places)
    rows = first.rows[0][near], first.rows[1][near], second.rows[1][far]
    none = first.joined.new_zeros(0, LARGEST)
    yield Block(
        (0, 1, 2), places, rows, torch.zeros_like(first.arcs[near]), none, third.labelled.new_zeros(len(places), 0)
    )


def _connected(tasks: int, blocks: Sequence[Block]) -> list[tuple[int, ...]]:
    """Graphs that are summed over together: all of them if any parts join them, or each by itself."""
    return [tuple(range(tasks))] if blocks else [(task,) for task in range(tasks)]
