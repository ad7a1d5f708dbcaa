"""Parts that join arcs of several graphs: where they are, and when they are on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot import JointGraphs
from spigot_nlp.stages.graph_scores import Scored, dense
from spigot_nlp.stages.joint_likelihood import Block

Groups = Mapping[tuple[int, ...], Int[Tensor, "parts tasks"]]
"""The labels that labelled parts join, by the tasks that they are of."""


def crossed_values(structure: JointGraphs, groups: Groups, parts: Sequence[Tensor]) -> Tensor:
    """Whether the parts that join arcs are on, or exist: those whose arcs all are, or do.

    Args:
        structure: The graphs.
        groups: The labels of labelled parts.
        parts: The graphs, or their masks, in their own layouts.
    """
    return torch.cat([_product(parts, *channels) for channels in _channels(structure, groups)], -1)


def common_pairs(
    sets: Iterable[tuple[int, ...]], tasks: Sequence[Scored]
) -> Iterator[tuple[tuple[int, ...], Int[Tensor, " common"], tuple[Int[Tensor, " common"], ...]]]:
    """For sets of graphs, the places of pairs that all of them have, and where these stand in the list of each."""
    batch, size = tasks[0].predicates.shape
    row_of = torch.full((len(tasks), batch * size * size), -1, device=tasks[0].pairs.device)
    for task, scored in enumerate(tasks):
        row_of[task, scored.places] = torch.arange(len(scored.pairs), device=row_of.device)
    for joint in sets:
        places = (row_of[list(joint)] >= 0).all(0).nonzero().squeeze(-1)
        yield joint, places, tuple(row_of[task, places] for task in joint)


def dense_blocks(
    blocks: Sequence[Block], tasks: Sequence[Scored]
) -> tuple[Float[Tensor, "batch n n k"], Bool[Tensor, "batch n n k"]]:
    """The scores of parts that join arcs as a structure lays them out, and which of them exist."""
    batch, size = tasks[0].predicates.shape
    none = tasks[0].arcs.new_zeros(batch, size, size, 0)
    scores, exist = [none], [none.bool()]
    for block in blocks:
        there = torch.ones_like(block.arcs, dtype=torch.bool)
        scores.append(dense(block.arcs.unsqueeze(-1), block.places, batch, size))
        exist.append(dense(there.unsqueeze(-1), block.places, batch, size))
    for block in blocks:
        there = torch.ones_like(block.labelled, dtype=torch.bool)
        for task, row, label in zip(block.tasks, block.rows, block.joined.unbind(-1), strict=True):
            there &= tasks[task].possible.index_select(0, row).index_select(1, label)
        scores.append(dense(block.labelled, block.places, batch, size))
        exist.append(dense(there, block.places, batch, size))
    return torch.cat(scores, -1), torch.cat(exist, -1)


def _channels(structure: JointGraphs, groups: Groups) -> list[tuple[Sequence[int], Int[Tensor, "parts tasks"]]]:
    """The tasks of each block of parts, and the channels that each part joins."""
    arcs = [(tasks, torch.zeros(1, len(tasks), dtype=torch.long)) for tasks in structure.arcs]
    return [*arcs, *((tasks, 1 + groups[tasks]) for tasks in structure.arcs if tasks in groups)] or [
        ((0,), torch.zeros(0, 1, dtype=torch.long))
    ]


def _product(parts: Sequence[Tensor], tasks: Sequence[int], channels: Int[Tensor, "parts tasks"]) -> Tensor:
    """Where all of some channels are on; predicates, on the diagonal, are no arcs."""
    arcs = ~torch.eye(parts[0].shape[-2], dtype=torch.bool, device=parts[0].device).unsqueeze(-1)
    found = arcs if parts[0].dtype == torch.bool else arcs.to(parts[0].dtype)
    for task, channel in zip(tasks, channels.to(parts[0].device).unbind(-1), strict=True):
        found = found * parts[task].index_select(-1, channel)
    return found
