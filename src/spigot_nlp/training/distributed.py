"""The few operations that differ when several processes train one model."""

import contextlib
import os
from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn


@contextlib.contextmanager
def processes() -> Iterator[None]:
    """Join the other processes where `torchrun` started several; do nothing otherwise."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    dist.init_process_group("gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def rank() -> int:
    """The number of this process."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_main() -> bool:
    """Whether this process is the one that writes."""
    return rank() == 0


def share(items: Sequence[int]) -> list[int]:
    """This process's part of a global batch. It may be empty.

    Example:
        >>> share([4, 2, 7])                                    # one process has all of it
        [4, 2, 7]
    """
    return list(items[rank() :: dist.get_world_size()]) if dist.is_initialized() else list(items)


def total(value: float) -> float:
    """The sum of a number over all processes."""
    if not dist.is_initialized():
        return value
    summed = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(summed)
    return float(summed)


def anyone(value: bool) -> bool:
    """Whether it holds in some process: all of them stop after the same step."""
    return total(float(value)) > 0 if dist.is_initialized() else value


def wait() -> None:
    """Until all processes are here."""
    if dist.is_initialized():
        dist.barrier()


def sum_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Make every gradient the sum over all processes; one that some process lacks counts as zero there.

    A gradient that is sparse is made to list each row once, with one process or several, and no row that is zero:
    padding is looked up too, and how much of it there is depends on how sentences are divided.
    """
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = _without_zeros(parameter.grad.coalesce())
    if not dist.is_initialized():
        return
    kinds = torch.tensor([0 if p.grad is None else 2 if p.grad.is_sparse else 1 for p in parameters])
    dist.all_reduce(kinds, dist.ReduceOp.MAX)
    dense = [p for p, kind in zip(parameters, kinds.tolist(), strict=True) if kind == 1]
    if dense:
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in dense])
        dist.all_reduce(flat)
        for parameter, summed in zip(dense, flat.split([p.numel() for p in dense]), strict=True):
            parameter.grad = summed.view_as(parameter).clone()
    for parameter, kind in zip(parameters, kinds.tolist(), strict=True):
        if kind == 2:
            parameter.grad = _sum_sparse(parameter)


def mean_memory(tensors: Sequence[Tensor]) -> None:
    """Make what each process remembers of its share of a batch the mean over all of them.

    Example:
        >>> mean_memory([torch.zeros(())])                      # one process agrees with itself
    """
    if dist.is_initialized():
        for tensor in tensors:
            dist.all_reduce(tensor)
            tensor /= dist.get_world_size()


def _without_zeros(gradient: Tensor) -> Tensor:
    rows = gradient._values().any(1)
    if bool(rows.all()):
        return gradient
    kept = torch.sparse_coo_tensor(
        gradient._indices()[:, rows], gradient._values()[rows], gradient.shape, check_invariants=False
    )
    return kept._coalesced_(True)


def _sum_sparse(parameter: nn.Parameter) -> Tensor:
    empty = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.int64), parameter.new_zeros(0, parameter.shape[1]))
    mine = empty if parameter.grad is None else parameter.grad
    rows: list[tuple[Tensor, Tensor]] = [(mine._indices(), mine._values())] * dist.get_world_size()
    dist.all_gather_object(rows, (mine._indices(), mine._values()))
    indices, values = torch.cat([row[0] for row in rows], 1), torch.cat([row[1] for row in rows])
    return torch.sparse_coo_tensor(indices, values, parameter.shape, check_invariants=False).coalesce()
