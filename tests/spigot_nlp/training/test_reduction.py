"""What the mean of a batch's losses does, in the place of their sum."""

from typing import Any

import pytest
import torch
from torch import Tensor

from spigot_nlp.training import Step
from spigot_nlp.training.optimiser import ModelOptimiser
from tests.spigot_nlp.parsing import corpus, parser
from tests.spigot_nlp.training.trainings import Training

DATA = corpus(train=8, dev=2)
SETTINGS: dict[str, Any] = {"semantics__pruning__learned": False, "training__batch": 4, "training__epochs": 1}


def gradients(system: str, **overrides: Any) -> dict[str, Tensor]:
    """Those of the syntactic parser in the first step on a batch of graphs, as the optimiser sees them."""
    training = Training(parser(system, DATA, **SETTINGS, **overrides), DATA)
    last: dict[int, dict[str, Tensor]] = {}
    seen: dict[str, Tensor] = {}

    def note(self: ModelOptimiser, scale: float = 1.0) -> float:
        found = {name: p.grad for name, p in self.parameters.items() if p.grad is not None}
        last[id(self)] = {name: scale * grad.to_dense() for name, grad in found.items()}
        return 1.0

    def look(step: Step) -> None:
        if step.task == "semantics" and not seen:
            seen.update(last[id(training.state.optimisers["syntax"])])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelOptimiser, "step", note)
        training.steps(look)
    return seen


@pytest.mark.parametrize(("system", "same"), [("ste", True), ("spigot", False)])
def test_what_is_linear_does_not_see_it_and_spigot_does(system: str, same: bool) -> None:
    far = {"estimator__eta": 1e4}  # a small step of SPIGOT is linear, too
    total, mean = gradients(system, **far), gradients(system, training__reduction="mean", **far)
    assert total.keys() == mean.keys()
    largest = max(float(value.abs().max()) for value in total.values())
    assert largest > 0
    apart = max(float((total[name] - mean[name]).abs().max()) for name in total)
    assert (apart < 1e-5 * largest) == same


def test_spigot_then_takes_a_smaller_step_and_scales_it_up() -> None:
    mean = gradients("spigot", training__reduction="mean")
    small = gradients("spigot", estimator__eta=1 / 4)
    for name, value in small.items():
        torch.testing.assert_close(mean[name], 4 * value, rtol=1e-4, atol=1e-6)


def test_parameters_of_the_last_stage_learn_the_same() -> None:
    models = []
    for reduction in ("sum", "mean"):
        training = Training(parser("ste", DATA, training__reduction=reduction, **SETTINGS), DATA)
        training.steps()
        models.append(training.parser.model.state_dict())
    for name, value in models[0].items():
        torch.testing.assert_close(models[1][name], value, rtol=0, atol=2e-5, msg=name)
