"""What the mean of a batch's losses does, in the place of their sum."""

from typing import Any

import pytest
import torch
from torch import Tensor

from spigot_nlp.training.loop import Trainer
from tests.spigot_nlp.parsing import corpus, parser

DATA = corpus(train=8, dev=2)
SETTINGS: dict[str, Any] = {"semantics__pruning__learned": False, "training__batch": 4}


def gradients(system: str, **overrides: Any) -> dict[str, Tensor]:
    """Those of the syntactic parser after one step on a batch of graphs, as the optimiser sees them."""
    training = Trainer(parser(system, DATA, **SETTINGS, **overrides), DATA)
    optimiser, seen = training.optimisers["syntax"], {}

    def step(scale: float = 1.0) -> float:
        for name, parameter in optimiser.parameters.items():
            if parameter.grad is not None:
                seen[name] = scale * parameter.grad.to_dense()
        return 1.0

    optimiser.step = step
    training._update(training.phases[-1], "semantics", range(4))
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
        training = Trainer(parser("ste", DATA, training__reduction=reduction, **SETTINGS), DATA)
        for _ in range(2):
            training._update(training.phases[-1], "semantics", range(4))
        models.append(training.parser.model.state_dict())
    for name, value in models[0].items():
        torch.testing.assert_close(models[1][name], value, rtol=0, atol=2e-5, msg=name)
