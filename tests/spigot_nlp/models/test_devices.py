"""Systems on another device, of which this machine need have none: tensors without values stand in for it.

What looks at values, as the masks of graphs and all that decodes, cannot be asked there.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spigot.structures import lengths
from spigot_nlp.batches import Batch
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.optimiser import ModelOptimiser
from tests.spigot_nlp.models.test_shared_encoders import all_shared
from tests.spigot_nlp.models.test_system import TRAIN, labelled, three
from tests.spigot_nlp.parsing import parser
from tests.spigot_nlp.training.test_loop import trainer
from tests.spigot_nlp.training.trainings import begin


@pytest.mark.parametrize("make", [three, all_shared])
def test_everything_moves(make: Callable[[], Parser], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "padded_size", lambda _, size: size)  # which looks at the lengths
    whole = make()
    model, batch = whole.model, labelled(whole)
    found = model.parse(batch)
    model.to("meta")
    assert model.device.type == "meta"
    assert {tensor.device.type for tensor in (*model.parameters(), *model.buffers())} == {"meta"}
    moved = batch.to("meta").keeping()
    for name, stage in model.stages.items():
        read = [found[wire.source].z.to("meta") for wire in model.wires[name]]
        assert stage.states(moved, read, noisy=False).device.type == "meta"
        if name != "semantics":  # whose arcs are counted
            scores, mask = stage.evidence(moved, read)
            assert {scores.device.type, mask.device.type} == {"meta"}
            assert scores.shape == found[name].z.shape
    loss = model.stages["sentiment"].loss(moved, [found["semantics"].z.to("meta")])
    loss.sum().backward()
    assert loss.device.type == "meta"


def moves(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where batches are moved to, from now on."""
    seen: list[str] = []
    move = Batch.to

    def spy(self: Batch, device: torch.device | str) -> Batch:
        seen.append(str(device))
        return move(self, device)

    monkeypatch.setattr(Batch, "to", spy)
    return seen


def test_batches_are_moved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = trainer("spigot")
    seen = moves(monkeypatch)
    begin(training.parser.config, tmp_path / "run", 1, corpus=training.corpus)
    assert seen == ["cpu"]
    seen.clear()
    whole = three()
    text = [Sentence(sentence.forms) for sentence in TRAIN["all"]]
    assert len(list(whole.pipe(text))) == len(text)
    assert seen == ["cpu"]


def test_a_training_goes_on_elsewhere() -> None:
    """Parameters, the optimisers' states and what wires remember follow the model."""
    begun, moved = trainer("adaptive-imle"), parser("adaptive-imle").model
    begun.steps()
    moved.to("meta")
    assert moved.device.type == "meta"
    for name, part in moved.parts().items():
        optimiser, state = ModelOptimiser(*part), begun.state.optimisers[name].state()
        optimiser.load_state(state)
        for key, value in optimiser.state().items():
            assert value.shape == state[key].shape
            assert value.device.type == ("cpu" if sparse_step(optimiser, key) else "meta")
    moved.load_state_dict({name: value.to("meta") for name, value in begun.parser.model.state_dict().items()})


def sparse_step(optimiser: ModelOptimiser, key: str) -> bool:
    """Whether it is the number of updates of a table of words, which is no tensor."""
    name, _, what = key.rpartition("|")
    return what == "step" and name.endswith("weight") and "tables" in name
