"""A model that nobody trained, which finds trees and graphs all the same, and workers that are no processes."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from spigot_nlp.config import make_config
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.models import checkpoint
from spigot_nlp.models.build import fresh
from spigot_nlp.scale import corpus
from spigot_nlp.scale.processes import answered
from spigot_nlp.scale.team import Failure, Lost
from spigot_nlp.scale.worker import Order, Worker

SMALL = {"mlp": 8, "encoder": {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}}
RAIN = Sentence(
    ("Rain", "fell", "on", "the", "old", "house", "."),
    heads=(2, 0, 6, 6, 6, 2, 2),
    relations=("nsubj", "root", "case", "det", "amod", "obl", "punct"),
    graph=Graph.of([Arc(2, 1, "ARG1"), Arc(3, 6, "ARG2")], tops=[2]),
)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests may read it, not change it."""
    folder = tmp_path_factory.mktemp("models") / "rain"
    return save_model(folder, 0)


def save_model(folder: Path, seed: int) -> Path:
    torch.manual_seed(seed)
    settings = {"data": {"tags": "columns"}, "syntax": {**SMALL, "labelled": True}}
    pruning = {"learned": False}
    config = make_config({**settings, "system": "pipeline", "semantics": {**SMALL, "pruning": pruning}})
    parser = fresh(config, {"graphs": [RAIN], "trees": [RAIN]})
    checkpoint.save_start(folder, parser)
    checkpoint.write_tensors(folder / checkpoint.MODEL, parser.model.state_dict())
    return folder


TEXTS = {
    "one": "Rain fell on the old house. Nobody knew why?\n\nIt didn't stop.",
    "two": "The house fell.",
    "none": " \n ",
    "three": "Über Nacht fell rain.  The rain\nfell on\n\n\nthe house, and the house fell. Mr. Poe was not in it.",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Documents as JSON lines."""
    file = tmp_path / "docs.jsonl"
    lines = [json.dumps({"id": name, "text": text}, ensure_ascii=False) for name, text in TEXTS.items()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


class HereHand:
    """A worker that works when it is asked what it has done."""

    def __init__(self, team: "HereTeam") -> None:
        self.team, self.worker, self.task = team, Worker(team.order), None

    def give(self, task: Any) -> None:
        self.task = task

    def heard(self) -> Any:
        task, self.task = self.task, None
        if task is None:
            return None
        self.team.given += 1
        try:
            if self.team.accident is not None:
                self.team.accident(self.team.given, task)
        except OSError as error:
            return Failure(str(error))
        return answered(self.worker, task)

    def dismiss(self) -> None:
        self.team.dismissed += 1


class HereTeam:
    """Workers in this process; before each task, an accident may happen."""

    def __init__(self, order: Order, accident: Callable[[int, Any], None] | None = None, places: int = 2) -> None:
        self.order, self.accident, self.places = order, accident, places
        self.given = self.hired = self.dismissed = 0

    def __enter__(self) -> "HereTeam":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def hire(self) -> HereHand:
        self.hired += 1
        return HereHand(self)

    def wait(self, hands: Sequence[Any], seconds: float) -> list[Any]:
        return list(hands[-1:])


class Here:
    """Has corpora parsed in this process; counts the tasks, and what happens to them can be said."""

    def __init__(self) -> None:
        self.accident: Callable[[int, Any], None] | None = None
        self.teams: list[HereTeam] = []

    def __call__(self, order: Order, on: str, workers: int | None, model: Path) -> HereTeam:
        self.teams.append(HereTeam(order, self.accident))
        return self.teams[-1]

    def lose(self, *numbers: int) -> None:
        """Lose the worker that is given one of these tasks, counted from 1."""

        def accident(number: int, task: Any) -> None:
            if number in numbers:
                raise Lost("it was lost.")

        self.accident = accident

    def interrupt(self, number: int) -> None:
        """Interrupt whoever hands out work before this task."""

        def accident(given: int, task: Any) -> None:
            if given == number:
                raise KeyboardInterrupt

        self.accident = accident

    @property
    def given(self) -> int:
        """How many tasks the last team was given."""
        return self.teams[-1].given


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    made = Here()
    monkeypatch.setattr(corpus, "_team", made)
    return made
