r"""What a dynamic program adds its ways up by.

The program is written once, as a total over members. The derivative of the total is the answer of each verb:

| semiring | the total | its derivative |
| --- | --- | --- |
| `LogSum` | $\log Z$ | the marginals |
| `Maximum` | the score of the best member | that member |
| `Draw` | $\log Z$ | a member drawn with the chance it has |
| `KBest` | the scores of the k best members | of each, that member |

Values are logarithms: $-\infty$ is nothing. A semiring may put an axis in front of those of the scores, so that a
program counts axes from the last one. It adds scores to values as they are.

References:
    Goodman (1999), Semiring parsing.
    Eisner (2016), Inside-outside and forward-backward algorithms are just backprop (tutorial paper).
"""

import abc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, final

import torch
from torch import Tensor

from spigot._algorithms.k_best import best_first
from spigot._algorithms.sampling import categorical, uniform
from spigot._runtime.reduce import masked_logsumexp


class AbstractSemiring(abc.ABC):
    """How values are made, joined and added up."""

    @abc.abstractmethod
    def lift(self, scores: Tensor) -> Tensor:
        """Values that are worth these scores."""

    @abc.abstractmethod
    def times(self, left: Tensor, right: Tensor) -> Tensor:
        """The values of pairs."""

    @abc.abstractmethod
    def plus(self, ways: Tensor, place: Tensor | int) -> Tensor:
        """The ways of the last axis taken together; the place says where randomness for it is, `(*batch, *cells)`."""


class _AbstractSingle(AbstractSemiring):
    """Semirings whose values are numbers."""

    def lift(self, scores: Tensor) -> Tensor:
        return scores

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        return left + right


@final
class LogSum(_AbstractSingle):
    """Sums, differentiable as often as one likes."""

    def plus(self, ways: Tensor, place: Tensor | int) -> Tensor:
        return masked_logsumexp(ways, ways > -torch.inf, -1)


@final
class Maximum(_AbstractSingle):
    """The best way, the first of equals."""

    def plus(self, ways: Tensor, place: Tensor | int) -> Tensor:
        return ways.max(-1).values


Choose: TypeAlias = Callable[[Tensor, Tensor, Tensor | int], Tensor]


def by_share(ways: Tensor, seeds: Tensor, place: Tensor | int) -> Tensor:
    """The way at which the running share passes one random number."""
    return categorical(ways, uniform(seeds, place))


@final
class Draw(_AbstractSingle):
    """Sums, of which the derivative goes one way, chosen in proportion to what the ways are worth.

    Args:
        seeds: `(samples, batch)`; the program runs over as many copies of the scores.
        choose: From ways, seeds with as many axes and a place to a way.
    """

    def __init__(self, seeds: Tensor, choose: Choose = by_share) -> None:
        self._seeds, self._choose = seeds, choose

    def plus(self, ways: Tensor, place: Tensor | int) -> Tensor:
        cells = ways.ndim - 1 - self._seeds.ndim
        chosen = self._choose(ways.detach(), self._seeds.reshape(*self._seeds.shape, *[1] * cells), place)
        return _Drawn.apply(ways, chosen)


class _Drawn(torch.autograd.Function):
    """A sum whose derivative goes to what was chosen."""

    @staticmethod
    def forward(ways: Tensor, chosen: Tensor) -> Tensor:
        return masked_logsumexp(ways, ways > -torch.inf, -1)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        ways, chosen = inputs
        ctx.options = ways.shape[-1]
        ctx.save_for_backward(chosen)

    @staticmethod
    def backward(ctx, *grads):
        (chosen,) = ctx.saved_tensors
        nothing = grads[0].new_zeros(*chosen.shape, ctx.options)
        return nothing.scatter(-1, chosen.unsqueeze(-1), grads[0].unsqueeze(-1)), None


@final
class KBest(AbstractSemiring):
    """Lists of the k best along a new first axis, best first and the first of equals first."""

    def __init__(self, k: int) -> None:
        self._k = k

    def lift(self, scores: Tensor) -> Tensor:
        none = scores.new_full((self._k - 1, *scores.shape), -torch.inf)
        return torch.cat((scores.unsqueeze(0), none))

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        return self._best((left.unsqueeze(1) + right).flatten(0, 1).movedim(0, -1))

    def plus(self, ways: Tensor, place: Tensor | int) -> Tensor:
        return self._best(ways.movedim(0, -1).flatten(-2))

    def _best(self, values: Tensor) -> Tensor:
        return best_first(values, self._k)[0].movedim(-1, 0)


@final
class SpanChart:
    """Values of spans of one kind, width after width; spans of one position have width 0.

    Attributes:
        begin: `(..., n - w, w + 1)`: of spans up to the present width w, by first position and width.
        end: The same by last position. The halves of wider spans are rows of the one, and of the other backwards.
    """

    def __init__(self, single: Tensor) -> None:
        self.widths = [single]
        self.begin = self.end = single.unsqueeze(-1)

    def grow(self, values: Tensor) -> None:
        """Add the spans of the next width, by first position."""
        self.widths.append(values)
        self.begin, self.end = (
            torch.cat((known, values.unsqueeze(-1)), -1) for known in (self.begin[..., :-1, :], self.end[..., 1:, :])
        )

    def table(self) -> Tensor:
        """All of them, `(..., n, n)` by first position and width; zero where there is no span."""
        return torch.stack([torch.nn.functional.pad(values, (0, w)) for w, values in enumerate(self.widths)], -1)


Program: TypeAlias = Callable[[Tensor, AbstractSemiring], Tensor]
"""From scores `(*copies, batch, *parts)` to the value of each instance."""


def best_member(program: Program, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The best members, and their scores: `-inf` where there is none."""
    value, (z,) = _differentiate(program, scores, Maximum(), lambda value: torch.ones_like(value).unsqueeze(0))
    return z, value


def draw_members(program: Program, scores: Tensor, seeds: Tensor, choose: Choose = by_share) -> Tensor:
    """Members `(batch, samples, *parts)` for seeds `(batch, samples)`."""
    copies, semiring = scores.expand(seeds.shape[1], *scores.shape), Draw(seeds.mT, choose)
    _, (z,) = _differentiate(program, copies, semiring, lambda value: torch.ones_like(value).unsqueeze(0))
    return z.movedim(0, 1)


def k_best_members(program: Program, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best members `(batch, k, *parts)` and their scores `(batch, k)`, `-inf` where there are fewer."""
    ranks = torch.eye(k, dtype=scores.dtype, device=scores.device).unsqueeze(-1)
    values, z = _differentiate(program, scores, KBest(k), lambda values: ranks * values.isfinite())
    return torch.stack(z, 1), values.mT


def _differentiate(
    program: Program, scores: Tensor, semiring: AbstractSemiring, weigh: Callable[[Tensor], Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """The total, and its derivative for each of the weights, `(weights, *total)`, of what it counts.

    The bodies of operators run below autograd, perhaps inside `vmap`: a thread of its own knows of neither.
    """

    def work() -> tuple[Tensor, list[Tensor]]:
        leaf = scores.clone().requires_grad_()
        total = program(leaf, semiring)
        weights = weigh(total.detach())
        return total.detach(), [torch.autograd.grad(total, leaf, each, retain_graph=True)[0] for each in weights]

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()
