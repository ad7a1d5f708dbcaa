"""What operators share: the way from an accelerator through the host, and batches inside `vmap`."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor

from spigot import native

P = ParamSpec("P")
R = TypeVar("R")


def through_host(function: Callable[P, R]) -> Callable[P, R]:
    """The body of an operator with an accelerator's tensors taken to the host, where the kernels are, and back.

    For algorithms that go step by step, which an accelerator does slowly: a copy of the scores costs less.
    """

    @functools.wraps(function)
    def there_and_back(*args: P.args, **kwargs: P.kwargs) -> R:
        device = next(x.device for x in (*args, *kwargs.values()) if isinstance(x, Tensor))
        if not native.prefers_host(device):
            return function(*args, **kwargs)
        result = function(
            *(_to(x, "cpu") for x in args),  # pyright: ignore[reportCallIssue]
            **{name: _to(x, "cpu") for name, x in kwargs.items()},
        )
        moved = tuple(_to(x, device) for x in result) if isinstance(result, tuple) else _to(result, device)
        return cast(R, moved)

    return there_and_back


def batched(operator: Any) -> None:
    """Let `vmap` use an operator whose tensors all begin with the batch axes: the mapped axis becomes one of them."""

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        front = [
            _in_front(x, axis, info.batch_size) if isinstance(x, Tensor) else x
            for x, axis in zip(args, in_dims, strict=True)
        ]
        result = operator(*front)
        if not isinstance(result, tuple):
            return result, 0
        # What was not asked for is an empty tensor, and has no batch axes.
        return result, tuple(0 if x.ndim and len(x) == info.batch_size else None for x in result)

    torch.library.register_vmap(operator, rule)


def _in_front(tensor: Tensor, axis: int | None, size: int) -> Tensor:
    return tensor.expand(size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)


def _to(value: Any, device: torch.device | str) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value
