"""Every check on every kind of annotation, under its usual name and under another."""

import pytest

from spigot_nlp.annotations import ANNOTATIONS
from tests.spigot_nlp.annotations.conformance import CASES, CHECKS, Case, Check


@pytest.mark.parametrize("usual", [True, False], ids=["usual", "other"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_annotation(check: Check, case: Case, usual: bool) -> None:
    check(case, case.name() if usual else "second")


def test_every_kind_is_checked() -> None:
    ours = {name for name, kind in ANNOTATIONS.items() if kind.__module__.startswith(("spigot.", "spigot_nlp."))}
    ours -= {"formalisms"}  # made of others; test_formalisms.py checks it
    assert {case.kind for case in CASES} == ours
