"""Trainings of systems and sentences that a test has in its hands."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spigot_nlp.config import Config
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.models.checkpoint import read_tensors
from spigot_nlp.models.parser import Parser
from spigot_nlp.training import Run, Step, loop, resume, train
from spigot_nlp.training.plan import Phase, phases
from spigot_nlp.training.state import State


class Stopped(Exception):
    """What ends a training after a step."""


class Training:
    """The training of a system, in a folder of its own.

    Args:
        parser: The system. After the training it has its best parameters.
        corpus: What it is trained on.

    Attributes:
        state: What changes from step to step, once it has begun.
        run: What `train` returned.
    """

    state: State
    run: Run

    def __init__(self, parser: Parser, corpus: Corpus) -> None:
        self.parser, self.corpus = parser, corpus

    @property
    def phases(self) -> list[Phase]:
        return phases(self.parser.config)

    def steps(self, on_step: Callable[[Step], None] | None = None) -> list[Step]:
        """Train, and give all steps."""
        steps: list[Step] = []

        def begun(*parts: Any) -> State:
            self.state = State(*parts)
            return self.state

        def taken(step: Step) -> None:
            steps.append(step)
            if on_step is not None:
                on_step(step)

        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
            patch.setattr(loop, "build", lambda *_: self.parser)
            patch.setattr(loop, "State", begun)
            self.run = train(self.parser.config, Path(place, "run"), taken, corpus=self.corpus)
        return steps


def begin(config: Config, folder: Path, steps: int, **options: Any) -> list[Step]:
    """Train, and stop after so many steps."""
    return _cut(lambda on_step: train(config, folder, on_step, **options), steps)


def go_on(folder: Path, steps: int, **options: Any) -> list[Step]:
    """Resume a training, and stop again after so many steps."""
    return _cut(lambda on_step: resume(folder, on_step, **options), steps)


def _cut(run: Callable[[Callable[[Step], None]], Run], steps: int) -> list[Step]:
    taken: list[Step] = []

    def stop(step: Step) -> None:
        taken.append(step)
        if len(taken) == steps:
            raise Stopped

    with pytest.raises(Stopped):
        run(stop)
    return taken


def steps_of(config: Config, folder: Path, **options: Any) -> list[Step]:
    """The steps of a whole training."""
    taken: list[Step] = []
    train(config, folder, taken.append, **options)
    return taken


def rest_of(folder: Path, **options: Any) -> list[Step]:
    """The steps that were left of an interrupted training."""
    taken: list[Step] = []
    resume(folder, taken.append, **options)
    return taken


def check_resumes(config: Config, corpus: Corpus, every: int = 1) -> list[Step]:
    """Resume what a training had saved after a step; what follows must agree to the last bit.

    Args:
        config: The experiment.
        corpus: What it is trained on.
        every: How far the steps are apart after which that is done.

    Returns:
        The steps of the training that was not interrupted.
    """
    saving = config.training.model_copy(update={"save_seconds": 0.0})
    config, steps = config.model_copy(update={"training": saving}), list[Step]()
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place, "whole")

        def keep(step: Step) -> None:
            steps.append(step)
            if (len(steps) - 1) % every == 0:
                shutil.copytree(whole, Path(place, str(len(steps))))

        train(config, whole, keep, corpus=corpus)
        for k in range(1, len(steps) + 1, every):
            cut = Path(place, str(k))
            assert rest_of(cut, corpus=corpus) == steps[k:]
            for name in ("steps.jsonl", "scores.json", "model.safetensors"):
                assert (cut / name).read_bytes() == (whole / name).read_bytes(), (k, name)
            (state, about), (expected, wanted) = (read_tensors(run / "checkpoint.safetensors") for run in (cut, whole))
            assert state.keys() == expected.keys()
            assert all(torch.equal(value, expected[name]) for name, value in state.items())
            assert all(about[name] == wanted[name] for name in wanted if name not in ("seconds", "processor"))
    return steps
