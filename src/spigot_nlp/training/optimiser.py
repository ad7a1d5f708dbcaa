"""Adam for one model: dense and sparse parameters, clipping, warm-up, annealing, and a state that can be saved."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spigot_nlp.training.distributed import sum_gradients
from spigot_nlp.training.row_adam import RowAdam
from spigot_nlp.values import Optimiser

_TAKEN = "|taken"
"""What the number of updates is called in a saved state, where no parameter can be called so."""


class ModelOptimiser:
    """Updates one model from summed gradients.

    Rows of embedding tables that a step did not see are left alone. Weight decay is a factor 1 - decay at every
    update, whatever the learning rate, on everything but those tables.

    Args:
        model: Whose parameters to update.
        settings: Learning rate, clipping, warm-up, annealing.
        without: Models inside it that have an optimiser of their own.

    Example:
        >>> model = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 1))
        >>> optimiser = ModelOptimiser(model, Optimiser(max_norm=1.0))
        >>> optimiser.set_epoch(0)
        >>> (100 * model(torch.tensor([1, 2])).sum()).backward()
        >>> optimiser.step() > 1                                # the norm before clipping
        True
    """

    def __init__(self, model: nn.Module, settings: Optimiser, without: Sequence[nn.Module] = ()) -> None:
        self.settings = settings
        others = {parameter for part in without for parameter in part.parameters()}
        tables = {part.weight for part in model.modules() if isinstance(part, nn.Embedding) and part.sparse}
        self.parameters = {
            name: p for name, p in model.named_parameters() if p.requires_grad and p not in others
        }  # those that are frozen have no gradient, ever
        dense = [p for p in self.parameters.values() if p not in tables]
        sparse = [p for p in self.parameters.values() if p in tables]
        betas = (settings.beta1, settings.beta2)
        rate = settings.learning_rate
        # A group around the list, since there may be nothing in it.
        self._dense = torch.optim.AdamW([{"params": dense}], rate, betas, weight_decay=0.0, fused=bool(dense))
        self._sparse = RowAdam(sparse, rate, betas)
        self._rate, self._taken = rate, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the learning rate that epoch (from 0) is trained with."""
        halvings = epoch // self.settings.anneal_every if self.settings.anneal_every else 0
        self._rate = self.settings.learning_rate * self.settings.anneal_by**halvings
        self._use(self._rate)

    def _use(self, rate: float) -> None:
        for group in self._dense.param_groups:
            group["lr"], group["weight_decay"] = rate, self.settings.weight_decay / rate
        self._sparse.rate = rate

    @property
    def rate(self) -> float:
        """The learning rate of the last update, or of the epoch before its first."""
        return self._dense.param_groups[0]["lr"]

    def zero_grad(self) -> None:
        """Forget the gradients of the last step."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def step(self, scale: float = 1.0) -> float:
        """Add up the gradients of all processes, clip them, update. Nothing moves if they are zero or no numbers.

        Args:
            scale: A factor on the gradients, before clipping.

        Returns:
            The norm of the gradient before clipping.
        """
        sum_gradients(list(self.parameters.values()))
        values = [_values(p.grad) for p in self.parameters.values() if p.grad is not None]
        if scale != 1:
            for value in values:
                value.mul_(scale)
        norm = float(nn.utils.get_total_norm(values)) if values else 0.0
        if norm == 0 or not math.isfinite(norm):
            return norm
        if norm > self.settings.max_norm:
            for value in values:
                value.mul_(self.settings.max_norm / norm)
        self._taken += 1
        if self.settings.warm_up:
            self._use(self._rate * min(1.0, self._taken / self.settings.warm_up))
        self._dense.step()
        self._sparse.step()
        return norm

    def state(self) -> dict[str, Tensor]:
        """Everything a resumed training needs, by name."""
        state = {_TAKEN: torch.tensor(self._taken)} if self.settings.warm_up else {}
        for name, parameter in self.parameters.items():
            for key, value in {**self._dense.state, **self._sparse.state}.get(parameter, {}).items():
                state[f"{name}|{key}"] = torch.as_tensor(value)
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` gave."""
        for full, value in state.items():
            if full == _TAKEN:
                self._taken = int(value)
                continue
            name, _, key = full.rpartition("|")
            parameter = self.parameters[name]
            if parameter in self._sparse.state:
                memory, value = self._sparse.state[parameter], int(value) if key == "step" else value
            else:
                memory = self._dense.state[parameter]
            memory[key] = value.to(parameter.device, copy=True) if isinstance(value, Tensor) else value


def _values(gradient: Tensor) -> Tensor:
    """The numbers of a dense or of a (summed up) sparse gradient, to be changed in place."""
    return gradient._values() if gradient.is_sparse else gradient
