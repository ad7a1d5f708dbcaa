"""Trainings that are cut off at a step and go on in a fresh trainer."""

import json
from collections.abc import Callable

import torch

from spigot_nlp.training.loop import Step, Trainer, progress_from_dict, progress_to_dict


def check_resumes(make: Callable[[], Trainer], every: int = 1) -> list[Step]:
    """Put the state after a step into a fresh trainer; what follows must agree to the last bit.

    Args:
        make: Gives a fresh trainer.
        every: How far the steps are apart after which that is done.

    Returns:
        The steps of the training that was not interrupted.
    """
    whole, states, steps = make(), [], []
    for step in whole.steps():
        steps.append(step)
        states.append(
            (
                {name: value.clone() for name, value in whole.parser.model.state_dict().items()},
                {name: {k: v.clone() for k, v in part.state().items()} for name, part in whole.optimisers.items()},
                {name: value.clone() for name, value in whole.best.items()},
                {name: value.clone() for name, value in whole.average.state().items()},
                json.dumps(progress_to_dict(whole.progress)),
            )
        )
    for k in range(0, len(states), every):
        model, optimisers, best, average, progress = states[k]
        resumed = make()
        resumed.load_model(model)
        for part, state in optimisers.items():
            resumed.optimisers[part].load_state(state)
        resumed.average.load_state(average)
        resumed.best, resumed.progress = best, progress_from_dict(json.loads(progress))
        assert list(resumed.steps()) == steps[k + 1 :]
        for part, value in whole.parser.model.state_dict().items():
            assert torch.equal(value, resumed.parser.model.state_dict()[part]), (k, part)
        for part, value in whole.best.items():
            assert torch.equal(value, resumed.best[part])
        assert json.dumps(progress_to_dict(resumed.progress)) == json.dumps(progress_to_dict(whole.progress))
    return steps
