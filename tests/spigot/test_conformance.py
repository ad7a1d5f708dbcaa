"""Every check of the conformance suite on every case of the fixture list that has what it needs."""

import ast
import inspect
import textwrap

import pytest
import torch

from tests.spigot import checks, conformance, half_precision, verbs
from tests.spigot.cases import ESTIMATORS, POLYTOPES, STRUCTURES, EstimatorCase, PolytopeCase, StructureCase
from tests.spigot.checks import Run
from tests.spigot.estimators import conformance as estimators_conformance

BY_STRUCTURE = {
    "marginal": checks.MARGINALS,
    "sampling": checks.SAMPLERS,
    "ranked": checks.RANKED,
}
"""The checks of verbs that only some structures have, by what a case calls such a structure."""

SUITES = (checks.STRUCTURES, *BY_STRUCTURE.values(), checks.POLYTOPES, checks.ESTIMATORS)


def able(ability: str) -> list[StructureCase]:
    return [case for case in STRUCTURES if getattr(case, ability) is not None]


@pytest.mark.parametrize(("case", "check", "dtype"), checks.STRUCTURES.product((case,) for case in STRUCTURES))
def test_structure(case: StructureCase, check: Run, dtype: torch.dtype) -> None:
    check(case, dtype)


@pytest.mark.parametrize(("case", "check", "dtype"), checks.MARGINALS.product((case,) for case in able("marginal")))
def test_marginals(case: StructureCase, check: Run, dtype: torch.dtype) -> None:
    check(case, dtype)


@pytest.mark.parametrize(("case", "check", "dtype"), checks.SAMPLERS.product((case,) for case in able("sampling")))
def test_samples(case: StructureCase, check: Run, dtype: torch.dtype) -> None:
    check(case, dtype)


@pytest.mark.parametrize(("case", "check", "dtype"), checks.RANKED.product((case,) for case in able("ranked")))
def test_k_best(case: StructureCase, check: Run, dtype: torch.dtype) -> None:
    check(case, dtype)


@pytest.mark.parametrize(("case", "check", "dtype"), checks.POLYTOPES.product((case,) for case in POLYTOPES))
def test_polytope(case: PolytopeCase, check: Run, dtype: torch.dtype) -> None:
    check(case, dtype)


@pytest.mark.parametrize(
    ("estimator", "case", "check", "dtype"),
    checks.ESTIMATORS.product((estimator, case) for estimator in ESTIMATORS for case in estimator.structures()),
)
def test_estimator(estimator: EstimatorCase, case: StructureCase, check: Run, dtype: torch.dtype) -> None:
    check(estimator, case, dtype)


def test_no_check_ends_before_it_asserts() -> None:
    """What a check cannot do with a case, it declares; it does not return."""
    declared = [check.run for suite in SUITES for check in suite.checks]
    assert {inspect.getmodule(run) for run in declared} == {conformance, estimators_conformance, half_precision, verbs}
    for run in declared:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(run))).body
        assert isinstance(function, ast.FunctionDef)
        returns = [node for statement in function.body for node in ast.walk(statement) if isinstance(node, ast.Return)]
        assert not returns, f"{run.__name__} returns"


def test_every_check_runs_somewhere() -> None:
    cases = (STRUCTURES, *(able(ability) for ability in BY_STRUCTURE), POLYTOPES)
    products = [suite.product((case,) for case in some) for suite, some in zip(SUITES[:-1], cases, strict=True)]
    products.append(SUITES[-1].product((e, case) for e in ESTIMATORS for case in e.structures()))
    for suite, product in zip(SUITES, products, strict=True):
        assert {check.run for check in suite.checks} == {parameters.values[-2] for parameters in product}
