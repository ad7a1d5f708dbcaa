"""Half precision, at the border of the library and nowhere else.

The algorithms work in float32 and float64. Scores in float16 or bfloat16, as `model.half()`, `model.bfloat16()` and
`torch.autocast` make them, are read as float32 on the way in, and results are rounded to the dtype of the scores on the
way out; autograd takes the same two steps back. Inside, autocast is off: it would round again what was just widened.

What crosses this border is decorated with `upcast_half`. A verb that is decorated in an abstract class is so in every
subclass, a user's own structure among them.
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
    parameters = list(inspect.signature(function).parameters)
    about = next((name for name in parameters if name in ("scores", "z", "point")), "")
    place = parameters.index(about) if about else 0

    def upcast(*args: P.args, **kwargs: P.kwargs) -> R:
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.dtype.is_floating_point]
        if not given:
            _require_tensor(about, args[place] if len(args) > place else kwargs.get(about))
            return function(*args, **kwargs)
        autocasts = _autocasts(given[0].device.type)
        if not autocasts and not any(x.dtype in HALF for x in given):
            return function(*args, **kwargs)
        wide = [_widen(x) for x in args]
        named = {name: _widen(x) for name, x in kwargs.items()}
        with torch.autocast(given[0].device.type, enabled=False) if autocasts else contextlib.nullcontext():
            result: Any = function(*wide, **named)  # pyright: ignore[reportCallIssue]
        return _narrow(result, given[0].dtype) if given[0].dtype in HALF else result

    @functools.wraps(function)
    def with_message(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            return upcast(*args, **kwargs)
        try:
            return upcast(*args, **kwargs)
        except RuntimeError as error:
            if "setup_context" not in str(error):
                raise
            raise NotImplementedError(
                "torch.func cannot differentiate operators that are registered with torch.library, as sums and "
                "projections are here. Use torch.autograd.grad or backward instead of torch.func.grad."
            ) from error

    with_message.__dict__["upcasts_half"] = True
    return with_message


class Upcast:
    """A class whose subclasses have those verbs decorated with `upcast_half` that are so here."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name, function in list(vars(cls).items()):
            marked = [getattr(vars(base).get(name), "upcasts_half", False) for base in cls.__mro__]
            if any(marked) and not marked[0]:
                setattr(cls, name, upcast_half(function))


def to_float64(tensor: Tensor) -> Tensor:
    """In float64, where the device has it: for differences of numbers that are nearly equal.

    Example:
        >>> to_float64(torch.zeros(2)).dtype
        torch.float64
    """
    return tensor if tensor.device.type == "mps" else tensor.double()


def _require_tensor(name: str, value: object) -> None:
    """What is no tensor at all gets a sentence, before a verb stumbles over it."""
    if name and not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, not {type(value).__name__}.")


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
