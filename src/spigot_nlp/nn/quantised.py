"""Quantised inference: linear layers, BiLSTMs and the best labels of pairs, behind one switch, `reads_whole`.

The same answers to three digits, in little more than half the time.

Weights and inputs are rounded to about twelve bits. Sums of such numbers are exact, so that what comes out for a word
does not depend on the batch it is in, on how many threads there are, or on the order in which a machine adds.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int
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


WIDEST = (2**31 - 1) // LARGEST**2
"""Units of a side whose products cannot exceed 32 bits together."""


def best_products(
    heads: Float[Tensor, "batch n h"],
    dependents: Float[Tensor, "batch n h"],
    lengths: Int[Tensor, " batch"],
    weights: WholeWeights,
    labels: int,
    root: int | None = None,
) -> tuple[Float[Tensor, "batch n n"], Int[Tensor, "batch n n"]]:
    """The best score of each pair (head, dependent), and its label, by the kernel.

    Args:
        heads: What each word is as a head; at most `WIDEST` units.
        dependents: The same as a dependent.
        lengths: Words of each sentence, behind the root.
        weights: What makes of a dependent, for each label, what a head is multiplied with, and what is added.
        labels: How many there are.
        root: The label of all pairs whose head is the first word, and of no others; any may be any if omitted.

    Returns:
        Both, with -inf and -1 behind the end of a sentence and for the root as a dependent.
    """
    batch, n, width = heads.shape
    if width > WIDEST:
        raise ValueError(f"a side has {width} units; sums of so many need more than 32 bits, {WIDEST} are the most.")
    if len(lengths) and not 0 <= int(lengths.min()) <= int(lengths.max()) < n:
        raise ValueError(f"lengths go from {lengths.min()} to {lengths.max()}; they must be between 0 and {n - 1}.")
    best, which = heads.new_empty(batch, n, n), heads.new_empty(batch, n, n, dtype=torch.int32)
    if best.numel():
        kernels.compiled.best_products(
            heads.contiguous(),
            dependents.contiguous(),
            lengths + 1,
            *weights,
            best,
            which,
            labels,
            -1 if root is None else root,
            kernel_threads(),
        )
    return best, which


def best_products_reference(
    heads: Float[Tensor, "batch n h"],
    dependents: Float[Tensor, "batch n h"],
    lengths: Int[Tensor, " batch"],
    weight: Float[Tensor, "h+1 labels h+1"],
    root: int | None = None,
) -> tuple[Float[Tensor, "batch n n"], Int[Tensor, "batch n n"]]:
    """The same in plain torch, from the weights of a scorer: what the kernel is held to.

    Example:
        >>> sides = torch.tensor([[[1.0], [2.0], [0.0]]]), torch.tensor([[[0.0], [1.0], [0.0]]])
        >>> weight = torch.zeros(2, 2, 2)
        >>> weight[0, 1, 0] = 3.0                                            # of label 1: three times the product
        >>> best, which = best_products_reference(*sides, torch.tensor([1]), weight)
        >>> best[0].round().tolist(), which[0].tolist()
        ([[-inf, 3.0, -inf], [-inf, 6.0, -inf], [-inf, -inf, -inf]], [[-1, 1, -1], [-1, 1, -1], [-1, -1, -1]])
    """
    turned = whole_product_reference(dependents, weight[:-1].flatten(1).t(), weight[-1].flatten())
    turned = turned.unflatten(-1, weight.shape[1:])
    rows, row_worth = _whole(turned[..., :-1])
    columns, column_worth = _whole(heads)
    sums = torch.einsum("bjlk,bik->bijl", rows, columns).float()  # doubles hold these sums exactly
    scores = sums * (column_worth.unsqueeze(2) * row_worth.squeeze(-1).unsqueeze(1)) + turned[..., -1].unsqueeze(1)
    if root is not None:
        scores = scores.masked_fill(~root_labels(scores.shape[1], scores.shape[-1], root), -torch.inf)
    best, which = scores.max(-1)
    place = torch.arange(heads.shape[1])
    inside = place <= lengths.unsqueeze(-1)
    exists = inside.unsqueeze(-1) & (inside & (place > 0)).unsqueeze(1)
    return best.masked_fill(~exists, -torch.inf), which.masked_fill(~exists, -1).to(torch.int32)


def root_labels(n: int, labels: int, root: int) -> Bool[Tensor, "n 1 labels"]:
    """Which labels pairs may have, by their head, where one label is for all that hang on the root and for no others.

    Example:
        >>> root_labels(3, 2, 1).squeeze(1).int()
        tensor([[0, 1],
                [1, 0],
                [1, 0]], dtype=torch.int32)
    """
    allowed = torch.ones(n, 1, labels, dtype=torch.bool)
    allowed[1:, :, root] = False
    allowed[:1] = False
    allowed[:1, :, root] = True
    return allowed


def _whole(values: Float[Tensor, "*any d"]) -> tuple[Float[Tensor, "*any d"], Float[Tensor, "*any 1"]]:
    """Rows as whole numbers, in doubles, and what one of them is worth."""
    most = values.abs().amax(-1, keepdim=True)
    return torch.where(most > 0, values * (LARGEST / most), 0).round().double(), most / LARGEST


class LayerWeights(NamedTuple):
    """Both directions of a layer of a BiLSTM in whole numbers, the forward one first.

    Attributes:
        input: The weights of the inputs.
        input_scale: What one is worth, times that of an input.
        bias: The sum of both biases.
        state: The recurrent weights.
        state_scale: What one is worth with a state in whole numbers.
    """

    input: Tensor
    input_scale: Tensor
    bias: Tensor
    state: Tensor
    state_scale: Tensor


def layer_weights(forward: nn.LSTM, backward: nn.LSTM, layer: int = 0, lanes: int = 0) -> LayerWeights:
    """One layer of two LSTMs, rounded.

    Args:
        forward: Reads from left to right.
        backward: Reads from right to left.
        layer: Which layer of them.
        lanes: Units in a panel of the kernel; 0 for rows as torch has them.

    Example:
        >>> layer_weights(nn.LSTM(3, 2), nn.LSTM(3, 2)).input.shape
        torch.Size([2, 8, 3])
        >>> layer_weights(nn.LSTM(3, 2), nn.LSTM(3, 2), lanes=8).input.shape   # panels, pairs, gates, units, of a pair
        torch.Size([2, 1, 2, 4, 8, 2])
    """
    found = []
    for lstm in (forward, backward):
        values = dict(lstm.named_parameters())
        inputs, states = (rounded(values[f"weight_{kind}_l{layer}"]) for kind in ("ih", "hh"))
        bias = checked((values[f"bias_ih_l{layer}"] + values[f"bias_hh_l{layer}"]).detach())
        parts = (inputs.weight, inputs.scale, bias, states.weight, states.scale / LARGEST)
        found.append([_panels(part, lstm.hidden_size, lanes) if lanes else part for part in parts])
    return LayerWeights(*(torch.stack(both).contiguous() for both in zip(*found, strict=True)))


def _panels(rows: Tensor, units: int, lanes: int) -> Tensor:
    """Rows of gate after gate, as panels of the four gates of some units; pairs of inputs stand together."""
    gates = rows.view(4, units, -1)
    gates = pad(gates, (0, 0, 0, -units % lanes)).unflatten(1, (-1, lanes))  # (gates, panels, units, inputs)
    if rows.ndim == 1:
        return gates.squeeze(-1).transpose(0, 1)
    return pad(gates, (0, gates.shape[-1] % 2)).unflatten(-1, (-1, 2)).permute(1, 3, 0, 2, 4)


def check_range(name: str, values: Int[Tensor, "*any"], end: int) -> None:
    """Refuse what would have a kernel read elsewhere."""
    least, most = (int(value) for value in values.aminmax())
    if least < 0 or most > end:
        raise ValueError(f"{name} go from {least} to {most}; they must be between 0 and {end}.")


def read_layer(
    weights: LayerWeights,
    inputs: Float[Tensor, "rows d"],
    place: Int[Tensor, "batch n"],
    lengths: Int[Tensor, " batch"],
    units: int,
    *,
    halves: bool = False,
) -> Float[Tensor, "batch n 2*units"]:
    """The states of a layer, both directions side by side, by the kernel; zeros behind the end of a sentence.

    Args:
        weights: What `layer_weights` made for the lanes of the kernel.
        inputs: Distinct inputs.
        place: Which of them stands where.
        lengths: Positions of each sentence.
        units: Of one direction.
        halves: Whether forward reads the first half of an input and backward the second.
    """
    states = inputs.new_empty(*place.shape, 2 * units)
    if not states.numel():
        return states
    check_range("lengths", lengths, place.shape[1])
    check_range("place", place, len(inputs) - 1)
    width = inputs.shape[1] // 2 if halves else inputs.shape[1]
    kernels.compiled.lstm_layer(
        inputs.contiguous(), place.contiguous(), lengths.contiguous(), *weights, states, width, kernel_threads()
    )
    return states


def read_layer_reference(
    weights: LayerWeights,
    inputs: Float[Tensor, "rows d"],
    place: Int[Tensor, "batch n"],
    lengths: Int[Tensor, " batch"],
    units: int,
    *,
    halves: bool = False,
) -> Float[Tensor, "batch n 2*units"]:
    """The same in plain torch, from weights without panels: what the kernel is held to.

    Example:
        >>> lstms = nn.LSTM(3, 2), nn.LSTM(3, 2)
        >>> inputs, place, lengths = torch.randn(4, 3), torch.arange(4).view(1, 4), torch.tensor([4])
        >>> found = read_layer_reference(layer_weights(*lstms), inputs, place, lengths, 2)
        >>> bool(torch.allclose(found[0, :, :2], lstms[0](inputs)[0].detach(), atol=1e-2))
        True
    """
    time = torch.arange(place.shape[1])
    mirror = (lengths.unsqueeze(-1) - 1 - time).clamp(min=0)
    found = []
    for k, own in enumerate(inputs.chunk(2, -1) if halves else (inputs, inputs)):
        most = own.abs().amax(-1, keepdim=True)
        whole = torch.where(most > 0, own * (LARGEST / most), 0).round().double()  # doubles hold these sums exactly
        sums = (whole @ weights.input[k].double().t()).float()
        gates = (sums * (weights.input_scale[k] * (most / LARGEST)) + weights.bias[k])[
            place.gather(1, mirror) if k else place
        ]
        h = c = inputs.new_zeros(len(place), units)
        states = inputs.new_zeros(*place.shape, units)
        for step in time.tolist():
            sums = ((h * LARGEST).round().double() @ weights.state[k].double().t()).float()
            i, f, g, o = (gates[:, step] + sums * weights.state_scale[k]).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = states[:, step] = o.sigmoid() * c.tanh()
        found.append(states.gather(1, mirror.unsqueeze(-1).expand_as(states)) if k else states)
    return torch.cat(found, -1).masked_fill((time >= lengths.unsqueeze(-1)).unsqueeze(-1), 0)
