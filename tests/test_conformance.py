"""Every check of the conformance suite on every case of the fixture list."""

import pytest
import torch

from tests.cases import ESTIMATORS, POLYTOPES, STRUCTURES, EstimatorCase, PolytopeCase, StructureCase
from tests.conformance import (
    MARGINAL_CHECKS,
    POLYTOPE_CHECKS,
    STRUCTURE_CHECKS,
    PolytopeCheck,
    StructureCheck,
)
from tests.estimators.conformance import ESTIMATOR_CHECKS, EstimatorCheck

both = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def name(check: StructureCheck | PolytopeCheck | EstimatorCheck) -> str:
    return check.__name__


@both
@pytest.mark.parametrize("check", STRUCTURE_CHECKS, ids=name)
@pytest.mark.parametrize("case", STRUCTURES, ids=str)
def test_structure(case: StructureCase, check: StructureCheck, dtype: torch.dtype) -> None:
    check(case, dtype)


@both
@pytest.mark.parametrize("check", MARGINAL_CHECKS, ids=name)
@pytest.mark.parametrize("case", [case for case in STRUCTURES if case.marginal], ids=str)
def test_marginals(case: StructureCase, check: StructureCheck, dtype: torch.dtype) -> None:
    check(case, dtype)


@both
@pytest.mark.parametrize("check", POLYTOPE_CHECKS, ids=name)
@pytest.mark.parametrize("case", POLYTOPES, ids=str)
def test_polytope(case: PolytopeCase, check: PolytopeCheck, dtype: torch.dtype) -> None:
    check(case, dtype)


@both
@pytest.mark.parametrize("check", ESTIMATOR_CHECKS, ids=name)
@pytest.mark.parametrize(
    ("estimator", "case"),
    [
        pytest.param(estimator, case, id=f"{estimator}-{case}")
        for estimator in ESTIMATORS
        for case in estimator.structures()
    ],
)
def test_estimator(estimator: EstimatorCase, case: StructureCase, check: EstimatorCheck, dtype: torch.dtype) -> None:
    check(estimator, case, dtype)
