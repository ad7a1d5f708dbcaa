"""Ordinary Python inside a compiled model.

Solvers from scipy and functions written by users cannot be traced. They run behind one operator, `host_call`, that
carries the number of a function instead of the function itself; `torch.compile` sees an opaque call with known shapes.
"""

import contextlib
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from spigot._runtime.operators import batched, operator
from spigot._runtime.reduce import refuse_nan

_Function = TypeVar("_Function", bound=Callable)

_ROOM = 256
"""How many things that compiled graphs name are kept alive for them."""


class _Hosted:
    """Python things by number, since a number is all that an operator can carry.

    Everything is held weakly, so that a freed structure frees its solver. What a compiled graph has named is kept alive
    beside that, the latest of them: a graph outlives the variables of the function it was traced from. Older ones live
    as long as somebody else holds them.

    No lock: `next` and single dictionary accesses are atomic, and a lock could be held by another thread at the moment
    of a fork.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._things: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._kept: OrderedDict[int, Any] = OrderedDict()
        self._numbers = itertools.count(1)  # none is used twice: a compiled graph may outlive what it names
        self._room = room

    def add(self, thing: Any) -> int:
        """A number for something that its owner keeps alive."""
        handle = next(self._numbers)
        self._things[handle] = thing
        return handle

    def keep(self, thing: Any) -> int:
        """A number for something that a compiled graph names; the same for equal things."""
        handle = next((handle for handle, known in list(self._kept.items()) if known == thing), None)
        if handle is None:
            handle = self.add(thing)
            self._kept[handle] = thing
        self._kept.move_to_end(handle)
        while len(self._kept) > self._room:
            self._kept.popitem(last=False)
        return handle

    def __getitem__(self, handle: int) -> Any:
        thing = self._things.get(handle)
        if thing is None:
            raise RuntimeError(
                f"host function {handle} is gone: the structure or polytope it belonged to was freed. Keep a reference "
                "to it for as long as a compiled model uses it."
            )
        return thing


HOSTED = _Hosted()
"""Functions and structures that operators call back by number."""


class HostFunction:
    """A Python function of parts and mask that may be called inside a compiled model.

    The function receives fresh tensors without a graph, zero outside the mask and free of NaN, and returns what the
    call returns: one value for each part. It may use autograd inside `torch.enable_grad()`. Copies and pickles are
    registered anew.

    Args:
        fn: Called with `(parts, mask)`.
        event_ndim: How many trailing axes are parts.
        what: What the parts are called in errors.
        cpu: Whether `fn` wants its tensors on the CPU, wherever the caller's are.

    Example:
        >>> double = HostFunction(lambda parts, mask: 2 * parts, event_ndim=1)
        >>> double(torch.tensor([1.0, float("nan")]), torch.tensor([True, False]))
        tensor([2., 0.])
    """

    def __init__(
        self, fn: Callable[[Tensor, Tensor], Tensor], event_ndim: int, what: str = "scores", cpu: bool = True
    ) -> None:
        self.fn, self.event_ndim, self.what, self.cpu = fn, event_ndim, what, cpu
        self.handle = HOSTED.add(self)

    def __call__(self, parts: Tensor, mask: Tensor) -> Tensor:
        return host_call(parts, mask, self.handle)

    def __reduce__(self):
        return HostFunction, (self.fn, self.event_ndim, self.what, self.cpu)

    def run(self, parts: Tensor, mask: Tensor) -> Tensor:
        """What the operator does: check the values, call the function, check what came back."""
        refuse_nan(parts, mask, self.event_ndim, self.what)
        result = torch.zeros_like(parts, memory_format=torch.contiguous_format)
        if not mask.any():
            return result
        given = parts.detach().masked_fill(~mask, 0).contiguous()
        exists = mask.clone(memory_format=torch.contiguous_format)
        if self.cpu:
            given, exists = given.cpu(), exists.cpu()
        with _autograd_allowed(), torch.no_grad():
            returned = self.fn(given, exists)
        # Copying makes the result fresh: an operator may not return its own input.
        return result.copy_(returned.detach())


def assume_constant(fn: _Function) -> _Function:
    """Mark a function as one that a compiled model calls once, while it is traced.

    `torch.compiler.assume_constant_result` does the same, but loads the compiler, which takes longer than torch itself.
    """
    fn._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]
    return fn


@assume_constant
def handle_of(thing: Any) -> int:
    """The number by which a compiled graph can name something, while it is traced."""
    return HOSTED.keep(thing)


@operator("spigot::host_call")
def host_call(parts: Tensor, mask: Tensor, handle: int) -> Tensor:
    """Call the function with this number."""
    return HOSTED[handle].run(parts, mask)


@host_call.register_fake
def _(parts: Tensor, mask: Tensor, handle: int) -> Tensor:
    return torch.empty_like(parts, memory_format=torch.contiguous_format)


def _no_gradient(ctx, grad: Tensor):
    raise NotImplementedError(
        "this result was computed outside torch and has no gradient. Detach the input, or use an estimator "
        "(spigot.argmax) to say what the gradient should be."
    )


host_call.register_autograd(_no_gradient)
batched(host_call)


def _autograd_allowed() -> contextlib.AbstractContextManager:
    """Undo, for a user's function, that operators run below autograd: some decoders differentiate a recursion."""
    core = torch._C
    try:
        excluded = core._dispatch_tls_local_exclude_set() - core.DispatchKeySet(core.DispatchKey.AutogradFunctionality)
        return core._ForceDispatchKeyGuard(core._dispatch_tls_local_include_set(), excluded)
    except AttributeError:  # not a public interface of torch; without it only such decoders fail
        return contextlib.nullcontext()
