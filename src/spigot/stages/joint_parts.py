"""Parts that join arcs of several graphs: when they are on, and what they say about one graph given the others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from spigot.annotations.formalisms import GoldFormalisms
from spigot.stages.graph_scores import Scored, graph_log_loss
from spigot.structures.joint import JointGraphs
from spigot.types import Parts, Values

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


def given_others(
    structure: JointGraphs,
    groups: Groups,
    joint: Any,
    right: Parts,
    lengths: Int[Tensor, " batch"],
    gold: GoldFormalisms,
) -> Values:
    """The log loss of each graph given the right others, summed: the pseudo-likelihood of all of them.

    Args:
        structure: The graphs.
        groups: The labels of labelled parts.
        joint: The scores of a batch: `tasks`, `crossed`, `exist`.
        right: The right graphs in the structure's layout.
        lengths: Words of each sentence.
        gold: The same graphs as lists of arcs.
    """
    parts, _ = structure.unpack(right)
    extra = [torch.zeros_like(part) for part in parts]
    crossed = joint.crossed.masked_fill(~joint.exist, 0)
    start = 0
    for tasks, labels in _channels(structure, groups):
        scores = crossed[..., start : start + len(labels)]
        start += len(labels)
        for place, task in enumerate(tasks):
            others = [k for k in range(len(tasks)) if k != place]
            there = _product(parts, [tasks[k] for k in others], labels[:, others])
            extra[task] = extra[task].index_add(-1, labels[:, place], scores * there)
    losses = [
        graph_log_loss(_raised(scored, more), lengths, graphs)
        for scored, more, graphs in zip(joint.tasks, extra, gold.graphs, strict=True)
    ]
    return torch.stack(losses, -1).masked_fill(~gold.present, 0).sum(-1)


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


def _raised(scored: Scored, more: Tensor) -> Scored:
    """Scores with something added to those of arcs and labels."""
    mine = more.flatten(0, 2).index_select(0, scored.places)
    return replace(scored, arcs=scored.arcs + mine[:, 0], labelled=scored.labelled + mine[:, 1:])
