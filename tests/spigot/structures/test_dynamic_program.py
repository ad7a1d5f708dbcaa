"""A structure that is one recursion and nothing else answers as the others do; `examples/own_structure.py` has it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from examples.own_structure import Spans
from tests.spigot import checks, conformance, half_precision, verbs
from tests.spigot.cases import StructureCase
from tests.spigot.masks import any_mask

assert conformance, half_precision and verbs  # which declare checks


def spans(mask: Tensor) -> Tensor:
    """All unbroken runs of what exists, the empty one where nothing does."""
    n = len(mask)
    runs = [[a <= i < b for i in range(n)] for a in range(n) for b in range(a + 1, n + 1) if mask[a:b].all()]
    return torch.tensor(runs or [[False] * n], dtype=torch.float64)


CASE = StructureCase("Spans", (5,), lambda generator: any_mask(generator, 5), spans, structure=Spans())
SUITES = (checks.STRUCTURES, checks.MARGINALS, checks.SAMPLERS, checks.RANKED)


@pytest.mark.parametrize(("case", "check", "dtype"), [one for suite in SUITES for one in suite.product([(CASE,)])])
def test_it_passes_what_every_structure_does(
    case: StructureCase, check: Callable[[StructureCase, torch.dtype], None], dtype: torch.dtype
) -> None:
    if "mapped" in check.__name__:
        pytest.skip("its checks look at values, which vmap hides")
    check(case, dtype)


def test_sums_in_inference_mode_are_those_outside() -> None:
    scores = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))
    expected = Spans().marginals(scores)
    with torch.inference_mode():
        torch.testing.assert_close(Spans().marginals(scores + 0), expected)
