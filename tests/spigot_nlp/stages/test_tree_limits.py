"""Whether a mask leaves a tree: the error that says no, and no other, counts as one."""

from typing import Any

import pytest
import torch
from torch import Tensor

from spigot import AbstractTrees, NonProjectiveTrees, NoStructureError, ProjectiveTrees
from spigot_nlp.stages.trees import has_tree

TREES = [kind(single_root=single) for kind in (ProjectiveTrees, NonProjectiveTrees) for single in (True, False)]
CYCLE = torch.tensor([[False, False, False], [False, False, True], [False, True, False]])
"""Either of two words may be the head of the other, and neither hangs on the root."""


@pytest.fixture(params=[True, False], ids=["kernels", "torch"], autouse=True)
def _implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr("spigot._runtime.native.available", False)


@pytest.mark.parametrize("trees", TREES, ids=repr)
def test_a_mask_without_a_tree_has_an_error_of_its_own(trees: AbstractTrees) -> None:
    assert not has_tree(trees, CYCLE, 2)
    assert has_tree(trees, trees.mask(torch.tensor(2)), 2)
    with pytest.raises(NoStructureError, match="leaves no"):
        trees.argmax(torch.zeros(3, 3), CYCLE)
    headless = torch.tensor([[False, True, False], [False, False, False], [False, True, False]])
    with pytest.raises(NoStructureError, match="no possible head"):
        trees.argmax(torch.zeros(3, 3), headless)


@pytest.mark.parametrize("trees", TREES, ids=repr)
def test_other_errors_are_not_taken_for_it(trees: AbstractTrees, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="NaN") as caught:
        trees.argmax(torch.full((3, 3), torch.nan), trees.mask(torch.tensor(2)))
    assert not isinstance(caught.value, NoStructureError)

    def broken(self: Any, scores: Tensor, mask: Tensor) -> Tensor:
        raise ValueError("scores have a shape that nobody expected")

    monkeypatch.setattr(type(trees), "argmax", broken)
    with pytest.raises(ValueError, match="nobody expected"):
        has_tree(trees, CYCLE, 2)
