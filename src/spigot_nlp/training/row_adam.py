"""Adam for tables of vectors, of which a step sees a few rows."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_EPSILON = 1e-8


class RowAdam:
    """Adam that changes the rows a sparse gradient lists, and neither looks at the others nor lets their memory fade.

    The updates are those of `torch.optim.SparseAdam`, in half the time: rows are taken out of the tables and put back,
    where torch adds sparse tensors to them. A gradient must list each row once, as coalesced ones do.

    Args:
        tables: What to update.
        rate: The learning rate, which may change between steps.
        betas: How long the mean of gradients and of their squares is remembered.

    Attributes:
        rate: The learning rate.
        state: For each table, once it was updated, the number of updates (`step`), the mean of its gradients
            (`exp_avg`) and of their squares (`exp_avg_sq`), under the names that torch has for them.

    Example:
        >>> table = torch.nn.Embedding(4, 2, sparse=True)
        >>> before = table.weight.detach().clone()
        >>> optimiser = RowAdam([table.weight], rate=0.5)
        >>> table(torch.tensor([1])).sum().backward()
        >>> table.weight.grad = table.weight.grad.coalesce()
        >>> optimiser.step()
        >>> (before - table.weight.detach())[:2].round(decimals=3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000]])
    """

    def __init__(self, tables: Sequence[Tensor], rate: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.rate, self._betas = rate, betas
        self.state: dict[Tensor, dict[str, Tensor | int]] = {table: {} for table in tables}

    @torch.no_grad()
    def step(self) -> None:
        """Update every table that has a gradient."""
        for table, memory in self.state.items():
            if table.grad is not None:
                self._update(table, table.grad, memory)

    def _update(self, table: Tensor, gradient: Tensor, memory: dict[str, Tensor | int]) -> None:
        if not memory:
            memory |= {"step": 0, "exp_avg": torch.zeros_like(table), "exp_avg_sq": torch.zeros_like(table)}
        step = memory["step"] = int(memory["step"]) + 1
        mean, square = torch.as_tensor(memory["exp_avg"]), torch.as_tensor(memory["exp_avg_sq"])
        rows, values = gradient._indices()[0], gradient._values()
        if not values.numel():
            return
        first, second = self._betas
        moved = _moved(mean, rows, values, 1 - first)
        root = _moved(square, rows, values.pow(2), 1 - second).sqrt_().add_(_EPSILON)
        size = self.rate * math.sqrt(1 - second**step) / (1 - first**step)
        table.index_copy_(0, rows, table.index_select(0, rows).add_(moved.div_(root).mul_(-size)))


def _moved(mean: Tensor, rows: Tensor, values: Tensor, share: float) -> Tensor:
    """Rows of a running mean, a share of the way towards new values; a copy of what stands in it now."""
    old = mean.index_select(0, rows)
    new = values.sub(old).mul_(share).add_(old)
    mean.index_copy_(0, rows, new)
    return new
