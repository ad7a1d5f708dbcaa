"""A structure of the user's, known only by a function that finds its best member."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import final

import torch
from torch import Tensor

from spigot._algorithms.kernel_calls import flatten
from spigot._runtime.checks import check_parts, instance_name, zero_one
from spigot._runtime.host import HostFunction
from spigot.interface import AbstractStructure
from spigot.polytopes.hull import ConvexHull
from spigot.structures.lengths import cube_mask
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True, repr=False)
class Oracle(AbstractStructure):
    r"""Whatever a function says is best: $\hat z = f(s)$.

    Everything that asks only for an argmax works on it: the hard estimators, the structured hinge, and through
    `ConvexHull` also SPIGOT and SparseMAP. The function is taken at its word: if its answers do not maximise
    $z^\top s$ over one fixed set, projections onto their hull mean nothing.

    Args:
        fn: The function, `fn(scores)` or `fn(scores, mask)`: the mask is passed if a parameter is called `mask`, or if
            two have no default. With a mask, scores are 0 where it is False; without one, they are $-\infty$ there.
            The result has one value for each part, a tensor or an array of any dtype, and must be zero where the mask
            is False. It gets tensors without a graph, on the device of the scores, and runs as it is inside compiled
            models; autograd is available inside `torch.enable_grad()`.
        event_ndim: How many trailing axes are parts.
        batched: Whether `fn` takes `(batch, *parts)`, always with one batch axis, rather than one instance
            `(*parts)`. Instances without any parts are left out: there $z = 0$.
        check: `check(z, mask)` for one instance, returning the broken constraints in words, for `violations`.
        name: What to call it in errors; the function's own name if omitted.

    Example:
        The two best of k.

        >>> def top_two(scores):
        ...     return torch.zeros_like(scores).scatter(-1, scores.topk(2).indices, 1.0)
        >>> pairs = Oracle(top_two, batched=True)
        >>> pairs
        Oracle(top_two)
        >>> pairs.argmax(torch.tensor([[0.1, 2.0, 0.3], [3.0, 2.0, 1.0]]))
        tensor([[0., 1., 1.],
                [1., 1., 0.]])
        >>> pairs.relaxation.project(torch.tensor([2.0, 0.5, 0.3]))
        tensor([1.0000, 0.6000, 0.4000])
    """

    fn: Callable[..., object]
    event_ndim: int = 1  # pyright: ignore[reportIncompatibleVariableOverride] (here it is the user's to say)
    batched: bool = False
    check: Callable[[Tensor, Tensor], list[str]] | None = None
    name: str | None = None
    _caller: HostFunction = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"fn is {self.fn!r}; it must be a function from scores to z.")
        if self.event_ndim < 1:
            raise ValueError(f"event_ndim is {self.event_ndim}; at least one axis must be parts.")
        name = self.name or getattr(self.fn, "__name__", None) or type(self.fn).__name__
        object.__setattr__(self, "name", name)
        call = _how_to_call(self.fn)
        ask = partial(_ask, call=call, event_ndim=self.event_ndim, batched=self.batched, name=name)
        object.__setattr__(self, "_caller", HostFunction(ask, self.event_ndim, cpu=False))

    def __repr__(self) -> str:
        return f"Oracle({self.name})" if self.event_ndim == 1 else f"Oracle({self.name}, event_ndim={self.event_ndim})"

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        """As `AbstractStructure.argmax`.

        Raises:
            ValueError: The function returned the wrong shape, NaN or infinity, or parts that the mask excludes.
            TypeError: The function returned something that is not numbers.
        """
        return self._caller(scores.detach(), check_parts(scores, mask, self.event_ndim))

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        if self.check is not None:
            return super().contains(z, mask)
        return zero_one(z, check_parts(z, mask, self.event_ndim, "z"), self.event_ndim)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        """What can be known without the set: values other than 0 and 1, masked parts; and what `check` finds."""
        mask = check_parts(z, mask, self.event_ndim, "z")
        messages = []
        for values, exists in zip(flatten(z.detach(), self.event_ndim), flatten(mask, self.event_ndim), strict=True):
            other = (values != 0) & (values != 1)
            found = [f"part {_at(i)} is {values[tuple(i)]:g}, not 0 or 1" for i in _where(other)]
            found += [f"part {_at(i)} is {values[tuple(i)]:g} but masked" for i in _where((values != 0) & ~exists)]
            if self.check is not None and exists.any():
                found += self.check(values, exists)
            messages.append(found)
        return messages

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """True where every index of the part is below the length."""
        return cube_mask(lengths, size, self.event_ndim)

    def full_mask(self, parts: Parts) -> Mask:
        return torch.ones_like(parts, dtype=torch.bool)

    @property
    def relaxation(self) -> ConvexHull:
        """The convex hull, which needs nothing but the argmax."""
        return ConvexHull(self)


def _how_to_call(fn: Callable[..., object]) -> Callable[[Tensor, Tensor], object]:
    """The function as one of scores and mask, whether it takes the mask or not."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # some compiled functions do not say
        return partial(_without_mask, fn)
    if any(p.name == "mask" for p in parameters):
        return partial(_with_keyword, fn)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return fn if sum(p.default is p.empty for p in positional) == 2 else partial(_without_mask, fn)


# Functions of the module rather than closures, so that a structure can be pickled if its function can.
def _without_mask(fn: Callable[..., object], scores: Tensor, mask: Tensor) -> object:
    return fn(scores.masked_fill(~mask, -torch.inf))


def _with_keyword(fn: Callable[..., object], scores: Tensor, mask: Tensor) -> object:
    return fn(scores, mask=mask)


def _ask(
    scores: Tensor,
    mask: Tensor,
    call: Callable[[Tensor, Tensor], object],
    event_ndim: int,
    batched: bool,
    name: str,
) -> Tensor:
    """Call the function for the instances that have parts, and check what it says."""
    split = scores.ndim - event_ndim
    batch, parts = tuple(scores.shape[:split]), tuple(scores.shape[split:])
    values, exists = scores.reshape(-1, *parts), mask.reshape(-1, *parts)
    some = exists.flatten(1).any(1)
    z = torch.zeros_like(values)
    if batched:
        asked = values[some]
        z[some] = _numbers(call(asked, exists[some]), tuple(asked.shape), z, name)
    else:
        for i in some.nonzero()[:, 0].tolist():
            z[i] = _numbers(call(values[i], exists[i]), parts, z, name)
    for wrong, why in ((~z.isfinite(), "a value that is not finite"), ((z != 0) & ~exists, "a part that is masked")):
        if wrong.any():
            where = wrong.nonzero()[0].tolist()
            raise ValueError(
                f"{name} returned {z[tuple(where)]:g} at part {_at(where[1:])} of {instance_name(where[0], batch)}: "
                f"{why}. Its result must be finite, and zero where the mask is False; let it take the mask as a second "
                "argument if the scores alone do not tell."
            )
    return z.reshape(scores.shape)


def _numbers(returned: object, shape: tuple[int, ...], like: Tensor, name: str) -> Tensor:
    """What the function returned, as a tensor of the right shape."""
    try:
        z = torch.as_tensor(returned)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} returned {type(returned).__name__}; it must return a tensor or an array.") from error
    if tuple(z.shape) != shape:
        raise ValueError(f"{name} returned shape {tuple(z.shape)}; it was given {shape} and must return the same.")
    return z.to(like)


def _where(flags: Tensor) -> list[list[int]]:
    return flags.nonzero().tolist()


def _at(index: list[int]) -> str:
    return str(index[0]) if len(index) == 1 else f"[{', '.join(map(str, index))}]"
