"""How the checks of the conformance suite are declared: each says what it needs, so that each has something to assert.

A check is a function of a case (an estimator's, of an estimator and a case) and a dtype. `needs` is asked about the
cases and `dtypes` lists the precisions; `tests/spigot/test_conformance.py` runs every check on whatever it says.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from _pytest.mark import ParameterSet

Run = Callable[..., None]

FULL = (torch.float32, torch.float64)
DOUBLE = (torch.float64,)
HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Check:
    """One check, with the cases and the dtypes it is for."""

    run: Run
    needs: Callable[..., bool]
    dtypes: tuple[torch.dtype, ...]


@dataclass(frozen=True)
class Suite:
    """The checks of one kind of object."""

    checks: list[Check]

    def check(
        self, needs: Callable[..., bool] = lambda *_: True, dtypes: tuple[torch.dtype, ...] = FULL
    ) -> Callable[[Run], Run]:
        """Declare the decorated function as a check."""

        def declare(run: Run) -> Run:
            self.checks.append(Check(run, needs, dtypes))
            return run

        return declare

    def product(self, cases: Iterable[tuple[Any, ...]]) -> list[ParameterSet]:
        """Every check on every case that has what it needs, in every dtype it is for."""
        return [
            pytest.param(
                *case, check.run, dtype, id=_name(*case, check.run.__name__, str(dtype).removeprefix("torch."))
            )
            for case in cases
            for check in self.checks
            if check.needs(*case)
            for dtype in check.dtypes
        ]


STRUCTURES = Suite([])
MARGINALS = Suite([])
SAMPLERS = Suite([])
RANKED = Suite([])
POLYTOPES = Suite([])
ESTIMATORS = Suite([])


def _name(*words: object) -> str:
    return "-".join(str(word).removeprefix("torch.") for word in words)
