"""Scores of arcs that several graphs have in common, by low-rank tensors."""

from collections.abc import Sequence
from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from spigot_nlp.nn.scorers import PairScorer


class LowRank(nn.Module):
    r"""How well arcs of several graphs between the same two words go together.

    For tasks $T$ and a pair of words, with $\phi_t$ the last hidden layer of a task's scorer and $\psi_t$ its output
    row (of a label, if the part is labelled),

    $$s_T = \sum_{q=1}^r \lambda_q \prod_{t\in T} (U_t\phi_t)_q\,(V_t\psi_t)_q .$$

    The matrices are the same in pairs and triples of tasks. The weights $\lambda$ start at zero: what is learned first
    is learned of each graph by itself, and the parts that join arcs set out from there. What belongs to words and what
    belongs to labels is multiplied apart, so that all labels of all pairs are one matrix product.

    Args:
        tasks: How many graphs there are.
        hidden: Units of the scorers' hidden layers.
        rank: The rank $r$.

    Example:
        >>> cross, scorers = LowRank(2, hidden=4, rank=3), [PairScorer(5, 4, outputs=k) for k in (6, 7)]
        >>> words = cross.words([torch.randn(9, 4), torch.randn(8, 4)])
        >>> labels = cross.labels(scorers)
        >>> pairs = [torch.tensor([0, 8]), torch.tensor([3, 7])]                 # two pairs that both graphs have
        >>> cross.scores((0, 1), words, pairs, labels, torch.tensor([[0, 1], [5, 6], [2, 2]])).shape
        torch.Size([2, 3])

    References:
        Peng, Thomson, Smith (2017), Deep multitask learning for semantic dependency parsing, §5.
    """

    def __init__(self, tasks: int, hidden: int, rank: int) -> None:
        super().__init__()
        layers = [nn.Linear(hidden, rank, bias=False) for _ in range(2 * tasks)]
        for layer in layers:
            nn.init.xavier_uniform_(layer.weight)
        self.weight = nn.Parameter(torch.zeros(rank))
        self.of_words, self.of_labels = nn.ModuleList(layers[:tasks]), nn.ModuleList(layers[tasks:])

    def words(self, hidden: Sequence[Float[Tensor, "pairs h"]]) -> list[Float[Tensor, "pairs r"]]:
        r"""$U_t\phi_t$ of the pairs of each task."""
        return [layer(phi) for layer, phi in zip(self.of_words, hidden, strict=True)]

    def labels(self, scorers: Sequence[PairScorer]) -> list[Float[Tensor, "labels r"]]:
        r"""$V_t\psi_t$ of the labels of each task."""
        return [layer(scorer.out.weight) for layer, scorer in zip(self.of_labels, scorers, strict=True)]

    def scores(
        self,
        tasks: Sequence[int],
        words: Sequence[Float[Tensor, "pairs r"]],
        rows: Sequence[Int[Tensor, " common"]],
        labels: Sequence[Float[Tensor, "labels r"]],
        joined: Int[Tensor, "parts tasks"],
    ) -> Float[Tensor, "common parts"]:
        """Scores of some parts on the pairs that some tasks have in common.

        Args:
            tasks: The tasks.
            words: What `words` gave.
            rows: Where the common pairs stand among those of each of the tasks.
            labels: What `labels` gave.
            joined: The labels that each part joins, one of each of the tasks.
        """
        rows_of = zip(tasks, rows, strict=True)
        labels_of = zip(tasks, joined.unbind(-1), strict=True)
        left = prod((words[task].index_select(0, row) for task, row in rows_of), start=self.weight)
        right = prod((labels[task].index_select(0, label) for task, label in labels_of), start=_one)
        return left @ right.mT


_one = torch.ones(())
