"""Half precision, at the border of the library and nowhere else.

The algorithms work in float32 and float64. Scores in float16 or bfloat16, as `model.half()`, `model.bfloat16()` and
`torch.autocast` make them, are read as float32 on the way in, and results are rounded to the dtype of the scores on the
way out; autograd takes the same two steps back. Inside, autocast is off: it would round again what was just widened.

The verbs of structures, polytopes and estimators cross this border by being defined in a subclass of the abstract
classes, those of a user's own structure too; functions are decorated with `upcast_half`.
"""

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)

_VERBS = frozenset(
    {"argmax", "contains", "k_best", "log_partition", "marginals", "project_hull", "sample", "violations"}
    | {"entropy", "kl", "log_prob", "project", "pull", "pull_scored", "sample_from_seeds", "solve", "tangent"}
    | {"__call__", "explain", "forward", "pullback"}
)

_OF_TENSORS = frozenset({"argmax", "contains", "k_best", "project", "sample", "solve", "violations"})
"""Verbs that look at their first tensor before anything checks it."""

P = ParamSpec("P")
R = TypeVar("R")


def upcast_half(function: Callable[P, R]) -> Callable[P, R]:
    """The function with half precision widened to float32, autocast off, and its results in the dtype it was given.

    The first tensor of floating point decides; float32 and float64 pass as they are.

    Example:
        >>> third = upcast_half(lambda x: x / 3)
        >>> third(torch.tensor(1.0, dtype=torch.bfloat16))
        tensor(0.3340, dtype=torch.bfloat16)
    """

    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.dtype.is_floating_point]
        if not given or not (any(x.dtype in HALF for x in given) or _autocasts(given[0].device.type)):
            return function(*args, **kwargs)
        wide = [_widen(x) for x in args]
        named = {name: _widen(x) for name, x in kwargs.items()}
        with _no_autocast(given[0].device.type):
            result: Any = function(*wide, **named)  # pyright: ignore[reportCallIssue]
        return _narrow(result, given[0].dtype) if given[0].dtype in HALF else result

    @functools.wraps(function)
    def across(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            return inside(*args, **kwargs)
        try:
            return inside(*args, **kwargs)
        except RuntimeError as error:
            if "setup_context" not in str(error):
                raise
            raise NotImplementedError(
                "torch.func cannot differentiate operators that are registered with torch.library, as sums and "
                "projections are here. Use torch.autograd.grad or backward instead of torch.func.grad."
            ) from error

    return across


def to_float64(tensor: Tensor) -> Tensor:
    """In float64, where the device has it: for differences of numbers that are nearly equal.

    Example:
        >>> to_float64(torch.zeros(2)).dtype
        torch.float64
    """
    return tensor if tensor.device.type == "mps" else tensor.double()


class Bordered:
    """A class whose verbs take half precision: see `spigot._runtime.precision`."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for verb in _VERBS & vars(cls).keys():
            function = vars(cls)[verb]
            setattr(cls, verb, upcast_half(_of_tensor(function) if verb in _OF_TENSORS else function))


def _of_tensor(verb: Callable[P, R]) -> Callable[P, R]:
    """The verb of a structure or polytope, after making sure that what it is about is a tensor."""
    _, what, *_ = inspect.signature(verb).parameters

    @functools.wraps(verb)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = args[1] if len(args) > 1 else kwargs.get(what)
        if not isinstance(given, Tensor):
            raise TypeError(f"{what} must be a tensor, not {type(given).__name__}.")
        return verb(*args, **kwargs)

    return checked


def _widen(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in HALF else value


def _narrow(result: Any, dtype: torch.dtype) -> Any:
    """The float32 tensors of a result in another dtype: of a tensor, a tuple or the fields of a dataclass."""
    if isinstance(result, Tensor):
        return result.to(dtype) if result.dtype == torch.float32 else result
    if isinstance(result, tuple):
        narrow = (_narrow(x, dtype) if isinstance(x, Tensor) else x for x in result)
        return type(result)(*narrow) if hasattr(result, "_fields") else tuple(narrow)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
        return dataclasses.replace(
            result, **{name: _narrow(x, dtype) for name, x in fields.items() if isinstance(x, Tensor)}
        )
    return result


def _autocasts(device: str) -> bool:
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _no_autocast(device: str) -> contextlib.AbstractContextManager[object]:
    return torch.autocast(device, enabled=False) if _autocasts(device) else contextlib.nullcontext()
