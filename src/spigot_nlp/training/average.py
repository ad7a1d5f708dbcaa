"""A running mean of parameters: less noisy than any of those it is made of."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_TAKEN = "|taken"
"""What the number of updates is called in a saved state, where no parameter can be called so."""
_HASTE = 10
"""Early on the mean is that of the few parameters there were: after n updates it keeps n / (n + this) of itself."""


class RunningMean:
    r"""The mean of a model's parameters over the steps of a training, the recent ones above all.

    $\bar\theta \leftarrow \beta_n \bar\theta + (1 - \beta_n)\,\theta$ after every update, with
    $\beta_n = \min(\beta, n / (n + 10))$, so that the start is soon forgotten.

    Args:
        model: Whose parameters to average.
        decay: $\beta$; 0 for no mean at all, which costs nothing.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> mean = RunningMean(model, 0.99)
        >>> for value in (1.0, 2.0):
        ...     _ = model.weight.data.fill_(value)
        ...     mean.update()
        >>> with mean.in_place():
        ...     round(model.weight.item(), 3)
        1.909
        >>> model.weight.item()
        2.0

    References:
        Polyak, Juditsky (1992), Acceleration of stochastic approximation by averaging.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._model, self._decay, self._taken = model, decay, 0
        self._values: dict[str, Tensor] = {}

    def restart(self) -> None:
        """Forget what was: the next update begins a new mean."""
        self._values, self._taken = {}, 0

    @torch.no_grad()
    def update(self) -> None:
        """Take the present parameters into the mean."""
        if not self._decay:
            return
        now = dict(self._model.named_parameters())
        if not self._values:
            self._values = {name: value.detach().clone() for name, value in now.items()}
        keep = min(self._decay, self._taken / (self._taken + _HASTE))
        for name, value in self._values.items():
            value.lerp_(now[name], 1 - keep)
        self._taken += 1

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the mean, if there is one, in place of the parameters for a while."""
        now = {name: p.detach().clone() for name, p in self._model.named_parameters() if name in self._values}
        self._put(self._values)
        try:
            yield
        finally:
            self._put(now)

    @torch.no_grad()
    def _put(self, values: dict[str, Tensor]) -> None:
        parameters = dict(self._model.named_parameters())
        for name, value in values.items():
            parameters[name].copy_(value)

    def state(self) -> dict[str, Tensor]:
        """What a resumed training needs, by name."""
        return {**self._values, _TAKEN: torch.tensor(self._taken)} if self._values else {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` gave."""
        parameters = dict(self._model.named_parameters())
        self._taken = int(state.get(_TAKEN, 0))
        self._values = {
            name: value.to(parameters[name].device, copy=True) for name, value in state.items() if name != _TAKEN
        }
