"""Layers that only read, in whole numbers: the same answers to three digits, in little more than half the time.

Weights and inputs are rounded to about twelve bits. Sums of such numbers are exact, so that what comes out for a word
does not depend on the batch it is in, on how many threads there are, or on the order in which a machine adds.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from spigot import kernels
from spigot.kernels import kernel_threads

_Made = TypeVar("_Made")

WHOLE = "int16"
"""The precision that asks for whole numbers."""
LARGEST = 4095
"""The largest whole number that an input or a state becomes."""
_LARGEST_SUM = 2**31 - 1
_settled = ContextVar[object]("settled", default=None)
"""Stands for the block in which parameters are known to stay as they are."""


@contextmanager
def settled() -> Iterator[None]:
    """A block in which nobody changes parameters, so that what is `Remembered` of them is held against them once.

    Example:
        >>> weight, made = torch.ones(2), Remembered[float]()
        >>> with settled():
        ...     made.of([weight], lambda: float(weight.sum()))
        2.0
    """
    token = _settled.set(object())
    try:
        yield
    finally:
        _settled.reset(token)


class Rounded(NamedTuple):
    """Weights as whole numbers.

    Attributes:
        weight: The numbers, a row for each output.
        scale: What one of them is worth, for each output.

    Example:
        >>> rounded(torch.tensor([[1.0, -0.5]])).weight
        tensor([[ 32767, -16384]], dtype=torch.int16)
    """

    weight: Int[Tensor, "outputs inputs"]
    scale: Float[Tensor, " outputs"]


def rounded(weight: Float[Tensor, "outputs inputs"]) -> Rounded:
    """Weights as whole numbers, as large as can be without a sum that 32 bits cannot hold.

    Args:
        weight: The weights, a row for each output.
    """
    exact = checked(weight.detach()).double()
    most = exact.abs().amax(-1, keepdim=True).clamp(min=1e-30)
    # Rounding adds at most a half to each number of a row.
    room = (_LARGEST_SUM / LARGEST - exact.shape[-1]) / exact.abs().sum(-1, keepdim=True).clamp(min=1e-30)
    times = torch.minimum(32767 / most, room)
    return Rounded((exact * times).round().to(torch.int16), (1 / times).squeeze(-1).float())


def checked(values: Tensor) -> Tensor:
    """Weights as they are.

    Raises:
        ValueError: If some are not numbers: rounded, they would be numbers again, and nobody would know.

    Example:
        >>> checked(torch.ones(2))
        tensor([1., 1.])
    """
    if not values.isfinite().all():
        raise ValueError("A layer has weights that are not numbers, and cannot be read in whole ones; restore them.")
    return values


class ReadsWhole(nn.Module):
    """A part of a network that can read in whole numbers.

    Attributes:
        precision: `int16` to do so where nothing is learned, on a CPU with kernels; elsewhere it is as any other.
    """

    precision: str = "float32"

    def reads_whole(self, inputs: Tensor) -> bool:
        """Whether these are read in whole numbers."""
        return (
            self.precision == WHOLE
            and not torch.is_grad_enabled()
            and not torch.is_autocast_enabled("cpu")
            and inputs.dtype == torch.float32
            and kernels.serves(inputs)
        )


class Remembered(Generic[_Made]):
    """What was made of some parameters: made when it is first needed, and anew when they have changed.

    Example:
        >>> weight, made = torch.ones(2), Remembered[float]()
        >>> [made.of([weight], lambda: float(weight.sum())), weight.zero_().sum().item()]
        [2.0, 0.0]
        >>> made.of([weight], lambda: float(weight.sum()))
        0.0
    """

    def __init__(self) -> None:
        self._known: tuple[list[Tensor], _Made] | None = None
        self._checked: object = None

    def of(self, parameters: Sequence[Tensor], make: Callable[[], _Made]) -> _Made:
        """It, from the parameters as they are now."""
        block = _settled.get()
        if self._known is not None and block is not None and block is self._checked:
            return self._known[1]
        # Compared by value: fused optimisers do not count up the versions of what they change.
        if self._known is None or not all(map(torch.equal, self._known[0], parameters)):
            self._known = [values.detach().clone() for values in parameters], make()
        self._checked = block
        return self._known[1]


class WholeWeights(NamedTuple):
    """A matrix and a bias, as the kernel takes them: in panels of columns, pairs of inputs together.

    Attributes:
        weight: Whole numbers.
        scale: What one of them is worth, for each output.
        bias: What is added to each output.
    """

    weight: Int[Tensor, "panels pairs columns 2"]
    scale: Float[Tensor, " padded"]
    bias: Float[Tensor, " padded"]


def whole_weights(weight: Float[Tensor, "outputs inputs"], bias: Float[Tensor, " outputs"] | None) -> WholeWeights:
    """A matrix and a bias for the kernel.

    Args:
        weight: The matrix, a row for each output.
        bias: The bias; nothing is added if omitted.
    """
    outputs, columns = len(weight), 4 * kernels.compiled.LSTM_LANES
    numbers, scale = rounded(weight)
    bias = torch.zeros(outputs) if bias is None else checked(bias.detach().float())
    fill = -outputs % columns
    numbers = pad(numbers, (0, numbers.shape[1] % 2, 0, fill)).unflatten(1, (-1, 2)).unflatten(0, (-1, columns))
    return WholeWeights(numbers.transpose(1, 2).contiguous(), pad(scale, (0, fill)), pad(bias, (0, fill)))


def whole_product(inputs: Float[Tensor, "*batch d"], weights: WholeWeights, outputs: int) -> Float[Tensor, "*batch k"]:
    """Inputs times a matrix plus a bias, by the kernel.

    Args:
        inputs: The inputs, of a CPU.
        weights: What `whole_weights` made.
        outputs: How many outputs the matrix has.
    """
    results = inputs.new_empty(*inputs.shape[:-1], outputs)
    if results.numel():
        rows = inputs.contiguous().flatten(0, -2) if inputs.ndim > 1 else inputs.contiguous().unsqueeze(0)
        kernels.compiled.whole_product(rows, *weights, results.view(-1, outputs), kernel_threads())
    return results


def whole_product_reference(
    inputs: Float[Tensor, "*batch d"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None = None,
) -> Float[Tensor, "*batch k"]:
    """The same in plain torch: what the kernel is held to.

    Example:
        >>> whole_product_reference(torch.tensor([2.0, 1.0]), torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
        tensor([2.0000, 3.0007])
    """
    numbers, scale = rounded(weight)
    most = inputs.abs().amax(-1, keepdim=True)
    whole = torch.where(most > 0, inputs * (LARGEST / most), 0).round().double()  # doubles hold these sums exactly
    found = (whole @ numbers.double().t()).float() * (scale * (most / LARGEST))
    return found if bias is None else found + bias


class Linear(ReadsWhole, nn.Linear):
    """A linear layer, in whole numbers where that is asked for.

    Example:
        >>> layer, inputs = Linear(4, 3), torch.randn(2, 4)
        >>> exact, layer.precision = layer(inputs), "int16"
        >>> with torch.no_grad():
        ...     bool(torch.allclose(layer(inputs), exact, atol=1e-2))
        True
    """

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias)
        self._whole = Remembered[WholeWeights]()

    def forward(self, input: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch k"]:
        """Its outputs."""
        if not self.reads_whole(input):
            return super().forward(input)
        parameters = [self.weight] if self.bias is None else [self.weight, self.bias]
        weights = self._whole.of(parameters, lambda: whole_weights(self.weight, self.bias))
        return whole_product(input, weights, self.out_features)
