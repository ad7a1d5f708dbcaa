"""Linear layers and products that read in whole numbers: the kernel against its twin, and against torch."""

import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from spigot import native
from spigot.nn.biaffine import Biaffine
from spigot.nn.whole import (
    LARGEST,
    LARGEST_FOUR,
    STEPS,
    Linear,
    Remembered,
    rounded,
    settled,
    whole_product,
    whole_product_reference,
    whole_weights,
)

needs_kernels = pytest.mark.skipif(not native.available, reason="there are no kernels")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@needs_kernels
@pytest.mark.parametrize("width", [1, 3, 4, 5, 8, 9, 64, 301])
@pytest.mark.parametrize("outputs", [1, 8, 33])
def test_the_kernel_of_eight_bits_gives_what_its_twin_gives(outputs: int, width: int) -> None:
    layer = nn.Linear(width, outputs)
    weights = whole_weights(layer.weight, layer.bias, 8)
    # Whole numbers already, with the least and the largest in their places; some rows on one side of zero alone.
    inputs = torch.randint(-40, STEPS - 40 + 1, (101, width)).float()
    inputs[:, 0], inputs[:, -1], inputs[3] = -40, STEPS - 40, 0
    if width > 1:
        inputs[4:9, 0], inputs[4:9, 1:] = STEPS, inputs[4:9, 1:].clamp(min=0)
        inputs[9:12] = -inputs[4:7]
    right = whole_product_reference(inputs, layer.weight.detach(), layer.bias.detach(), 8)
    torch.testing.assert_close(whole_product(inputs, weights, outputs), right, atol=1e-4, rtol=1e-5)
    inputs = torch.randn(7, width)
    with torch.no_grad():
        torch.testing.assert_close(whole_product(inputs, weights, outputs), layer(inputs), atol=0.1, rtol=0)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_no_four_weights_of_eight_bits_are_too_much(scale: float) -> None:
    weight = torch.cat((torch.randn(50, 61), torch.ones(1, 61), -torch.ones(1, 61), torch.zeros(1, 61))) * scale
    whole = rounded(weight, 8)
    eights = nn.functional.pad(whole.weight.long(), (0, 3)).unflatten(-1, (-1, 2, 2, 2))
    for one_sign in (eights.clamp(min=0), (-eights).clamp(min=0)):
        assert int(one_sign.sum((-3, -1)).max()) <= LARGEST_FOUR
    torch.testing.assert_close(whole.weight * whole.scale.unsqueeze(-1), weight, atol=3e-2 * scale, rtol=0)


@needs_kernels
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_largest_sums_of_eight_bits_are_exact(sign: float) -> None:
    weight, inputs = torch.full((9, 400), sign), torch.cat((torch.ones(5, 400), -torch.ones(5, 400)))
    found = whole_product(inputs, whole_weights(weight, None, 8), 9)
    torch.testing.assert_close(found, inputs @ weight.t(), atol=1e-3, rtol=0)


@needs_kernels
@pytest.mark.parametrize("outputs", [1, 7, 8, 31, 32, 33, 70])
@pytest.mark.parametrize("width", [1, 2, 9, 64])
@pytest.mark.parametrize("bias", [False, True])
def test_the_kernel_gives_what_its_twin_gives(outputs: int, width: int, bias: bool) -> None:
    layer = nn.Linear(width, outputs, bias)
    weights = whole_weights(layer.weight, layer.bias)
    # Whole numbers already, the largest in its place: others might be rounded to either side.
    inputs = torch.randint(-LARGEST, LARGEST + 1, (101, width)).float()
    inputs[:, 0], inputs[3] = LARGEST, 0
    right = whole_product_reference(inputs, layer.weight.detach(), layer.bias.detach() if bias else None)
    torch.testing.assert_close(whole_product(inputs, weights, outputs), right, atol=1e-3, rtol=1e-5)
    inputs = torch.randn(7, width)
    with torch.no_grad():
        torch.testing.assert_close(whole_product(inputs, weights, outputs), layer(inputs), atol=1e-2, rtol=0)


@needs_kernels
@pytest.mark.parametrize("bits", [16, 8])
def test_a_product_depends_neither_on_threads_nor_on_the_batch(bits: int) -> None:
    weights, before = whole_weights(torch.randn(40, 30), None, bits), torch.get_num_threads()
    inputs = torch.randn(300, 30)
    try:
        torch.set_num_threads(1)
        one = whole_product(inputs, weights, 40)
        torch.set_num_threads(2)
        two = whole_product(inputs, weights, 40)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, two)
    assert torch.equal(one[7], whole_product(inputs[7], weights, 40))
    assert whole_product(inputs[:0], weights, 40).shape == (0, 40)


def products_as_text() -> str:
    """Some products by the kernels of this process, digit for digit; sums of whole numbers are the same on any."""
    torch.manual_seed(0)
    weight, inputs = torch.randn(70, 301), torch.randn(13, 301)
    found = [whole_product(inputs, whole_weights(weight, None, bits), 70) for bits in (16, 8)]
    return torch.stack(found).numpy().tobytes().hex()


@needs_kernels
def test_a_product_does_not_depend_on_the_instructions_of_the_machine() -> None:
    code = f"import sys; sys.path[:] = {sys.path!r}; from tests.nn.test_whole import products_as_text as f; print(f())"
    plain = {**os.environ, "SPIGOT_ISA": "baseline"}
    done = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == products_as_text()


@needs_kernels
def test_a_layer_notices_new_weights_and_learns_in_single_precision() -> None:
    layer, inputs = Linear(9, 4), torch.randn(2, 3, 9)
    exact = layer(inputs)
    layer.precision = "int16"
    assert torch.equal(layer(inputs), exact)  # gradients are wanted
    with torch.no_grad():
        assert not torch.equal(layer(inputs), exact)
        torch.testing.assert_close(layer(inputs), exact, atol=1e-2, rtol=0)
        twelve, layer.precision = layer(inputs), "int8"
        assert not torch.equal(layer(inputs), twelve)
        torch.testing.assert_close(layer(inputs), exact, atol=0.1, rtol=0)
        layer.precision = "int16"
        assert torch.equal(layer(inputs), twelve)
        layer.weight.mul_(2)
        torch.testing.assert_close(layer(inputs), 2 * exact - layer.bias, atol=1e-2, rtol=0)


@needs_kernels
@torch.no_grad()
def test_pairs_are_scored_nearly_the_same() -> None:
    scorer, states = Biaffine(12, hidden=10, outputs=5), torch.randn(3, 7, 12)
    exact = scorer(states)
    for part in (scorer, scorer.head, scorer.dependent):
        part.precision = "int16"
    assert not torch.equal(scorer(states), exact)
    torch.testing.assert_close(scorer(states), exact, atol=2e-2, rtol=0)


def test_what_was_made_of_parameters_is_made_anew_when_they_change() -> None:
    weight, made = torch.ones(2), Remembered[float]()

    def total() -> float:
        return made.of([weight], lambda: float(weight.sum()))

    assert total() == 2
    with settled():
        assert total() == 2
        weight.zero_()  # against what was said
        assert total() == 2
    assert total() == 0
    weight.fill_(3)
    with settled():  # another block, which has not been looked at
        assert total() == 6
    assert total() == 6


@pytest.mark.parametrize("odd", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused(odd: float) -> None:
    layer = Linear(4, 3)
    layer.precision = "int16"
    with torch.no_grad():
        layer.weight[1, 2] = odd
        with pytest.raises(ValueError, match="not numbers"):
            layer(torch.randn(2, 4))
        layer.weight[1, 2], layer.bias[0] = 0, odd
        with pytest.raises(ValueError, match="not numbers"):
            layer(torch.randn(2, 4))
