"""What operators share: how they are registered, the way from an accelerator through the host, and `vmap`."""

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef  # not public by name; what torch.library.custom_op gives

from spigot._runtime import native

P = ParamSpec("P")
R = TypeVar("R")


def operator(name: str) -> Callable[[Callable[..., object]], CustomOpDef]:
    """Register a function as an operator of torch, one that changes none of its arguments.

    torch has its compiler leave the bodies of operators alone, and imports the compiler for that when the first one is
    called: two seconds of processor time, of which most programs have no use. As long as nobody else has imported it,
    nothing is being compiled, and the body is called as it is.

    Example:
        >>> @operator("spigot::doubled")
        ... def doubled(x: Tensor) -> Tensor:
        ...     return x + x
        >>> doubled(torch.ones(2))
        tensor([2., 2.])
    """

    def register(function: Callable[..., object]) -> CustomOpDef:
        made = torch.library.custom_op(name, mutates_args=())(function)
        for left_alone in getattr(made, "_backend_fns", {}).values():
            _compile_later(left_alone)
        return made

    return register


def _compile_later(left_alone: Any) -> None:
    body = getattr(left_alone, "__wrapped__", None)
    if body is None:  # another version of torch, which does this otherwise
        return

    def call(*args: Any, **kwargs: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return body(*args, **kwargs)
        # Where torch looks for what to call; it now makes its own. Another thread may have been here before.
        vars(body).pop("__dynamo_disable", None)
        return left_alone(*args, **kwargs)

    body.__dynamo_disable = call


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
