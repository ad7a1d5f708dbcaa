r"""Structures whose members one recursion finds, sums up and ranks: their operators, which are alike.

Natively the recursion runs in C++. Elsewhere it is a program in plain torch, run over a semiring for each verb.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef

from spigot._algorithms.kernel_calls import Fault, flatten, raise_fault
from spigot._algorithms.semirings import AbstractSemiring, LogSum, best_member, draw_members, k_best_members
from spigot._runtime import native
from spigot._runtime.checks import NoStructureError, impossible_error, no_mass_error
from spigot._runtime.native import kernel_threads
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_hopeless, refuse_infinite, refuse_nan, summable
from spigot._runtime.sums import register_checked, register_sums

Program: TypeAlias = Callable[[Tensor, Tensor, AbstractSemiring], Tensor]
"""From scores `(*copies, batch, *parts)` and which of them exist, `(batch, *parts)`, to the value of each instance."""


class Recursion:
    """The operators of one structure.

    Attributes:
        argmax: Of scores and a mask: the best member of each instance.
        sample: Of those and seeds `(*batch, samples)`: a member for each of them, `(*batch, samples, ...)`.
        k_best: Of those and k: the k best, `(*batch, k, ...)`, and which of them there are, `(*batch, k)`.

    Args:
        name: What its kernels and operators begin with.
        program: The recursion in plain torch; it never sees an empty tensor.
        event_ndim: How many axes parts have.
        member: What errors call a member.
        parts: What they call parts.
        existing: From a mask the parts that can take part, as kernels see it by themselves.
        explain: From these parts the error of the first instance without a member, where more can be said of it.
        list_best: What calls the kernel for the k best, where that one gives something else than members.
    """

    argmax: CustomOpDef
    sample: CustomOpDef
    k_best: CustomOpDef

    def __init__(
        self,
        name: str,
        program: Program,
        event_ndim: int,
        *,
        member: str,
        parts: str,
        existing: Callable[[Tensor], Tensor] = lambda mask: mask,
        explain: Callable[[Tensor], NoStructureError] | None = None,
        list_best: Callable[..., Fault | None] | None = None,
    ) -> None:
        self._name, self._program, self._axes = name, program, event_ndim
        self._member, self._parts, self._existing = member, parts, existing
        self._explain, self._list_best = explain, list_best
        self._register_argmax()
        self._register_k_best()
        self._register_sums()
        self._register_sample()

    def log_partition(self, scores: Tensor, mask: Tensor) -> Tensor:
        r"""$\log Z$ of each instance."""
        if native.available:
            return self._sums(scores, mask, torch.is_grad_enabled() and scores.requires_grad)[0]
        exists = self._existing(mask)
        return self._plain_log_partition(self._checked(scores, exists), exists)

    def marginals(self, scores: Tensor, mask: Tensor) -> Tensor:
        r"""$\nabla \log Z$ of each instance, within $[0, 1]$."""
        if native.available:
            return self._sums(scores, mask, True)[1]
        exists = self._existing(mask)
        safe = self._checked(scores, exists)
        if scores.numel() == 0:
            return safe
        mu = torch.func.grad(lambda s: self._plain_log_partition(s, exists).sum())(safe).clamp(0, 1)
        some = self._plain_log_partition(safe.detach(), exists) > -torch.inf  # without weight nothing is expected
        return torch.where(some[(..., *[None] * self._axes)], mu, 0)

    def raise_fault(self, fault: Fault | None, scores: Tensor, mask: Tensor) -> None:
        """Raise the error that a kernel reported, if any."""
        if fault is not None and fault[0] in (native.kernels.FAULT_IMPOSSIBLE, native.kernels.FAULT_HEADLESS):
            raise self._impossible(fault[1], self._existing(mask))
        raise_fault(fault, scores, self._axes, "scores")

    def _register_argmax(self) -> None:
        axes = self._axes

        @operator(f"spigot::{self._name}_argmax")
        @through_host
        def argmax(scores: Tensor, mask: Tensor) -> Tensor:
            if scores.numel() == 0:
                return torch.zeros_like(scores)
            flat = flatten(scores, axes)
            if native.serves(scores):
                z = torch.empty_like(flat)
                self._call("argmax", scores, mask, flat, flatten(mask, axes), z)
                return z.reshape(scores.shape)
            exists = self._existing(mask)
            refuse_nan(scores, exists, axes)
            parts = flatten(exists, axes)
            z, value = best_member(self._over(parts), self._finite(flat, parts))
            self._refuse_impossible(value, exists)
            return z.to(scores.dtype).reshape(scores.shape)

        argmax.register_fake(lambda scores, mask: torch.empty_like(scores, memory_format=torch.contiguous_format))
        batched(argmax)
        self.argmax = argmax

    def _register_k_best(self) -> None:
        axes = self._axes

        @operator(f"spigot::{self._name}_k_best")
        @through_host
        def k_best(scores: Tensor, mask: Tensor, k: int) -> tuple[Tensor, Tensor]:
            batch, parts = self._divided(scores)
            flat = flatten(scores, axes)
            z = flat.new_empty(len(flat), k, *parts)
            count = torch.ones(len(flat), dtype=torch.int64, device=scores.device)
            if z.numel() == 0:
                pass
            elif native.serves(scores):
                list_best = self._list_best or self._kernel("k_best")
                self.raise_fault(list_best(flat, flatten(mask, axes), z, count, kernel_threads()), scores, mask)
            else:
                exists = self._existing(mask)
                refuse_nan(scores, exists, axes)
                inside = flatten(exists, axes)
                found, values = k_best_members(self._over(inside), self._finite(flat, inside), k)
                self._refuse_impossible(values[:, 0], exists)
                z, count = found.to(scores.dtype), values.isfinite().sum(1)
            there = torch.arange(k, device=scores.device) < count.unsqueeze(-1)
            return z.reshape(*batch, k, *parts), there.reshape(*batch, k)

        @k_best.register_fake
        def _(scores: Tensor, mask: Tensor, k: int) -> tuple[Tensor, Tensor]:
            batch, parts = self._divided(scores)
            return scores.new_empty(*batch, k, *parts), scores.new_empty(*batch, k, dtype=torch.bool)

        batched(k_best)
        self.k_best = k_best

    def _register_sums(self) -> None:
        axes = self._axes

        @operator(f"spigot::{self._name}_checked")
        def checked(scores: Tensor, exists: Tensor) -> Tensor:
            """The scores with zeros outside, after a look at whether a member exists and none inside is NaN or +inf."""
            refuse_nan(scores, exists, axes)
            refuse_infinite(scores.isposinf() & exists, axes, "scores")
            if scores.numel():
                self._refuse_impossible(self._plain_log_partition(torch.zeros_like(scores), exists), exists)
            return summable(scores, exists, axes).masked_fill(~exists, 0)

        @operator(f"spigot::{self._name}_sums")
        @through_host
        def sums(scores: Tensor, mask: Tensor, marginals: bool) -> tuple[Tensor, Tensor]:
            flat = flatten(summable(scores, self._existing(mask), axes), axes)
            log_partition = flat.new_zeros(len(flat))
            mu = torch.empty_like(flat) if marginals else flat.new_empty(0)
            if flat.numel():
                self._call("sums", scores, mask, flat, flatten(mask, axes), log_partition, mu if marginals else None)
            return log_partition.reshape(self._divided(scores)[0]), mu.reshape(scores.shape) if marginals else mu

        @operator(f"spigot::{self._name}_hessian")
        @through_host
        def hessian(scores: Tensor, mask: Tensor, direction: Tensor) -> Tensor:
            flat = flatten(summable(scores, self._existing(mask), axes), axes)
            result = torch.empty_like(flat)
            if flat.numel():
                self._call("hessian", scores, mask, flat, flatten(mask, axes), flatten(direction, axes), result)
            return result.reshape(scores.shape)

        register_checked(checked)
        register_sums(sums, hessian, axes)
        self._checked, self._sums = checked, sums

    def _register_sample(self) -> None:
        axes = self._axes

        @operator(f"spigot::{self._name}_sample")
        @through_host
        def sample(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
            samples, (batch, parts) = seeds.shape[-1], self._divided(scores)
            exists = self._existing(mask)
            flat = flatten(summable(scores, exists, axes), axes)
            z = flat.new_empty(len(flat), samples, *parts)
            if z.numel() == 0:
                pass
            elif native.serves(scores):
                fault = self._kernel("sample")(flat, flatten(mask, axes), flatten(seeds, 1), z, kernel_threads())
                if fault is not None and fault[0] == native.kernels.FAULT_INFINITE:
                    refuse_infinite(scores.isposinf() & exists, axes, "scores")
                    raise no_mass_error(fault[1], tuple(batch), self._member)
                self.raise_fault(fault, scores, mask)
            else:
                safe = self._checked(scores, exists).double()  # whose sums may overflow otherwise
                refuse_hopeless(self._plain_log_partition(safe, exists).isneginf(), self._member)
                program = self._over(flatten(exists, axes))
                z = draw_members(program, flatten(safe, axes), flatten(seeds, 1)).to(scores.dtype)
            return z.reshape(*batch, samples, *parts)

        @sample.register_fake
        def _(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
            batch, parts = self._divided(scores)
            return scores.new_empty(*batch, seeds.shape[-1], *parts)

        batched(sample)
        self.sample = sample

    def _divided(self, scores: Tensor) -> tuple[torch.Size, torch.Size]:
        """The batch axes, and those of parts."""
        place = scores.ndim - self._axes
        return scores.shape[:place], scores.shape[place:]

    def _plain_log_partition(self, scores: Tensor, mask: Tensor) -> Tensor:
        flat = flatten(scores, self._axes)
        if flat.numel() == 0:  # the empty member, and no other
            return flat.flatten(1).sum(1).reshape(self._divided(scores)[0])
        value = self._over(flatten(mask, self._axes))(flat.double(), LogSum())
        return value.to(scores.dtype).reshape(self._divided(scores)[0])

    def _over(self, exists: Tensor) -> Callable[[Tensor, AbstractSemiring], Tensor]:
        """The program over parts that exist."""
        return lambda scores, semiring: self._program(scores, exists, semiring)

    def _finite(self, scores: Tensor, exists: Tensor) -> Tensor:
        """Scores in float64 with infinities replaced by numbers that no sum of the others outweighs."""
        exact = scores.double()
        parts = (-1, *[1] * self._axes)
        top = torch.where(exists & exact.isfinite(), exact.abs(), 0).flatten(1).amax(1).reshape(parts)
        shrink = torch.where(top > 1e290, 2.0**-64, 1.0)
        limit = 1 + 4 * sum(scores.shape[1:]) * top * shrink  # more than any member has parts, twice
        return torch.where(exact.isinf(), exact.sign() * limit, exact * shrink).masked_fill(~exists, 0)

    def _kernel(self, verb: str) -> Any:
        return getattr(native.kernels, f"{self._name}_{verb}")

    def _call(self, verb: str, scores: Tensor, mask: Tensor, *tensors: Tensor | None) -> None:
        self.raise_fault(self._kernel(verb)(*tensors, kernel_threads()), scores, mask)

    def _refuse_impossible(self, values: Tensor, exists: Tensor) -> None:
        if values.isneginf().any():
            raise self._impossible(int(values.isneginf().flatten().nonzero()[0]), exists)

    def _impossible(self, instance: int, exists: Tensor) -> NoStructureError:
        batch = tuple(self._divided(exists)[0])
        return self._explain(exists) if self._explain else impossible_error(instance, batch, self._member, self._parts)
