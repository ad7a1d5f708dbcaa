"""The layer computes what it did: with kernels and without."""

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache

import numpy as np
import pytest

from tests.golden import layer, stored
from tests.golden.api import compiled
from tests.golden.instances import POLYTOPES, STRUCTURES, Case

SLOW_ALONE = ("FactorGraph-exact",)
"""Structures that take torch alone too long."""


@cache
def golden() -> dict[str, np.ndarray]:
    """What is expected here: draws of torch alone are others than those of kernels."""
    values = stored.read_values(stored.FOLDER / "layer.npz")
    return values if compiled() else values | stored.read_values(stored.FOLDER / "layer-without-kernels.npz")


def check(start: str, values: Iterable[stored.Value]) -> None:
    """Compare with all golden values that begin so; torch alone computes only some of them."""
    found = list(values)
    names = {value.name for value in found}
    expected = {name: array for name, array in golden().items() if name.startswith(f"{start}/")}
    if not compiled():
        expected = {name: array for name, array in expected.items() if name in names}
    said = stored.differences(found, expected)
    assert not said, "\n".join(said)


@pytest.mark.parametrize("case", STRUCTURES, ids=lambda case: case.name)
def test_structure(case: Case) -> None:
    if not compiled() and case.name in SLOW_ALONE:
        pytest.skip("it takes torch alone too long")
    values = [value for dtype in layer.PRECISIONS for value in layer.of_structure(case, dtype)]
    check(case.name, values)


@pytest.mark.parametrize("name", POLYTOPES)
def test_polytope(name: str) -> None:
    check(name, [value for dtype in layer.PRECISIONS for value in layer.of_polytope(name, dtype)])


def test_an_estimator_that_adapts() -> None:
    check("AdaptiveIMLE", layer.adapting())


def test_half_precision() -> None:
    check("half precision", layer.in_half_precision())


@pytest.mark.slow
@pytest.mark.skipif(not compiled(), reason="that is what runs already")
def test_without_kernels() -> None:
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", __file__]
    environment = {**os.environ, "SPIGOT_NATIVE": "0"}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
