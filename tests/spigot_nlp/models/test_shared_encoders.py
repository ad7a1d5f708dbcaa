"""An encoder that several stages share reads a batch once."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spigot_nlp.batches import Batch
from spigot_nlp.models.parser import Parser
from tests.spigot_nlp.models.test_system import ENCODER, STAGES, labelled, three


def all_shared(**more: Any) -> Parser:
    """Three stages on one encoder."""
    names = {name: {"encoder": "words"} for name in STAGES}
    return three(stages=names, encoders={"words": {"encoder": {**ENCODER, **more}}})


def asked(encoder: nn.Module, question: Callable[[], object]) -> int:
    """How often an encoder reads the sentences for one question to its system."""
    calls: list[None] = []
    hook = encoder.register_forward_hook(lambda *_: calls.append(None))
    try:
        question()
    finally:
        hook.remove()
    return len(calls)


def test_a_shared_encoder_reads_a_batch_once() -> None:
    whole = all_shared()
    model, encoder = whole.model, whole.model.encoders["words"]
    quiet, noisy = labelled(whole), labelled(whole, [1, 2, 3, 4])
    assert asked(encoder, lambda: model.parse(quiet)) == 1
    assert asked(encoder, lambda: model.loss(quiet, "sentiment")) == 1
    assert (
        asked(encoder, lambda: model.loss(noisy, "sentiment")) == 2
    )  # trees and graphs are found without dropped words
    frozen = lambda: model.loss(noisy, "sentiment", through=False)  # noqa: E731 (a question, as the others)
    assert asked(encoder, frozen) == 2
    assert asked(encoder, lambda: [model.parse(quiet) for _ in range(2)]) == 2  # nothing outlives a question
    assert quiet.kept is noisy.kept is None
    still = all_shared(word_dropout=0.0)
    assert asked(still.model.encoders["words"], lambda: still.model.loss(noisy, "sentiment")) == 1


@pytest.mark.parametrize("word_dropout", [0.0, 0.5])
@pytest.mark.parametrize("through", [True, False])
def test_states_that_are_kept_change_nothing(
    word_dropout: float, through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = all_shared(word_dropout=word_dropout)
    model, batch = whole.model, labelled(whole, [1, 2, 3, 4])

    def questions() -> list[Tensor]:
        model.zero_grad()
        losses = model.loss(batch, "sentiment", through=through)
        losses.sum().backward()
        gradients = [p.grad.to_dense() for p in model.parameters() if p.grad is not None]
        return [losses, *gradients, *(answer.z for answer in model.parse(batch).values())]

    kept = questions()
    monkeypatch.setattr(Batch, "keeping", lambda self: self)
    torch.testing.assert_close(kept, questions())
