"""Linear layers and products that read in whole numbers: the kernel against its twin, and against torch."""

import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from spigot import kernels
from spigot_nlp.nn.biaffine import Biaffine
from spigot_nlp.nn.quantised import (
    LARGEST,
    Linear,
    Remembered,
    settled,
    whole_product,
    whole_product_reference,
    whole_weights,
)

needs_kernels = pytest.mark.skipif(not kernels.available, reason="there are no kernels")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@needs_kernels
@pytest.mark.parametrize("outputs", [1, 3, 7, 8, 9, 31, 32, 33, 70])
@pytest.mark.parametrize("width", [1, 2, 9, 31, 64])
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
def test_a_product_depends_neither_on_threads_nor_on_the_batch() -> None:
    matrix, inputs, before = torch.randn(40, 30), torch.randn(300, 30), torch.get_num_threads()
    weights = whole_weights(matrix, None)
    try:
        torch.set_num_threads(1)
        one = whole_product(inputs, weights, 40)
        torch.set_num_threads(2)
        two = whole_product(inputs, weights, 40)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, two)
    assert torch.equal(one[7], whole_product(inputs[7], weights, 40))
    assert torch.equal(
        one[:, :1], whole_product(inputs, whole_weights(matrix[:1], None), 1)
    )  # which has a way of its own
    assert whole_product(inputs[:0], weights, 40).shape == (0, 40)


def products_as_text() -> str:
    """Some products by the kernels of this process, digit for digit; sums of whole numbers are the same on any."""
    torch.manual_seed(0)
    weights, inputs = whole_weights(torch.randn(70, 301), None), torch.randn(13, 301)
    return whole_product(inputs, weights, 70).numpy().tobytes().hex()


@needs_kernels
def test_a_product_does_not_depend_on_the_instructions_of_the_machine() -> None:
    code = f"import sys; sys.path[:] = {sys.path!r}; from tests.spigot_nlp.nn.test_whole import products_as_text as f"
    code += "; print(f())"
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
