"""Encoders: tokens to states, built from tables, and one that a user brings."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spigot_nlp.batches import Batch, collate, encode
from spigot_nlp.config import make_config, resolved_config
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import (
    ENCODERS,
    AbstractEncoder,
    BiLSTMEncoder,
    BiLSTMSettings,
    EncoderSettings,
    encoder_settings,
    make_encoder,
)
from spigot_nlp.models.build import fresh
from tests.spigot_nlp.parsing import sentences

TEXT = sentences(6)
VOCAB = Vocab.of(TEXT)
SIZES = {"word_dim": 6, "lemma_dim": 3, "tag_dim": 2, "hidden": 4}


def made(vectors: Tensor | None = None, **options: Any) -> BiLSTMEncoder:
    found = make_encoder(encoder_settings({**SIZES, **options}), VOCAB, None if vectors is None else {"": vectors})
    assert isinstance(found, BiLSTMEncoder)
    return found.double()


def batch_of(chosen: list[Sentence], seeds: list[int] | None = None) -> Batch:
    return collate([encode(sentence, VOCAB) for sentence in chosen], seeds=seeds)


@pytest.mark.parametrize(("layers", "outputs"), [(0, 11), (1, 8), (2, 8)])
def test_root_and_words_have_a_state_each(layers: int, outputs: int) -> None:
    encoder, batch = made(layers=layers), batch_of(TEXT)
    assert encoder.outputs == outputs
    states = encoder(batch)
    assert states.shape == (len(TEXT), batch.size, outputs)
    for k, sentence in enumerate(TEXT):
        alone = encoder(batch_of([sentence]))
        torch.testing.assert_close(alone[0], states[k, : len(sentence) + 1])


def test_noise_needs_seeds_and_consent() -> None:
    encoder = made(word_dropout=5.0, dropout=0.4)
    quiet, noisy = batch_of(TEXT), batch_of(TEXT, list(range(len(TEXT))))
    assert torch.equal(encoder(noisy, noisy=False), encoder(quiet))
    assert torch.equal(encoder(noisy), encoder(noisy))
    assert not torch.allclose(encoder(noisy), encoder(quiet))


def test_lemmas_may_be_looked_up_by_form() -> None:
    other = [Sentence(s.forms, lemmas=("x",) * len(s), tags=s.tags) for s in TEXT]
    by_form, by_lemma = made(lemma_from_form=True), made()
    assert torch.equal(by_form(batch_of(TEXT)), by_form(batch_of(other)))
    assert not torch.allclose(by_lemma(batch_of(TEXT)), by_lemma(batch_of(other)))
    table = by_form.embedding.tables[1].weight
    assert isinstance(table, Tensor)
    assert len(table) == len(VOCAB.words)


def test_words_start_from_their_vectors() -> None:
    vectors = torch.randn(len(VOCAB.words), 6)
    table = made(vectors).embedding.tables[0].weight
    assert isinstance(table, Tensor)
    torch.testing.assert_close(table[3:].detach(), vectors[3:].double())
    with pytest.raises(ValueError, match=r"have 5 dimensions and encoder\.word_dim is 6; make them equal"):
        made(torch.randn(len(VOCAB.words), 5))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "bilstmm"}, "there is no encoder 'bilstmm'; did you mean bilstm?"),
        ({"hiden": 4}, "hiden"),
        ({"hidden": 0}, "hidden"),
        ({"dropout": 1.0}, "dropout"),
        ("words", "an encoder is a table with its kind and options, not 'words'"),
    ],
)
def test_what_no_encoder_has_is_refused(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        encoder_settings(table)


def test_settings_survive_json() -> None:
    settings = encoder_settings({**SIZES, "layers": 0})
    assert isinstance(settings, BiLSTMSettings)
    assert encoder_settings(settings.model_dump(mode="json")) == settings
    assert encoder_settings(settings) is settings


class BagSettings(EncoderSettings):
    """The settings of an encoder that a user brings."""

    kind: str = "bag"
    size: int = 5


@pytest.fixture
def bag(monkeypatch: pytest.MonkeyPatch) -> type[AbstractEncoder]:
    """Words alone, without their neighbours: known for the length of a test."""
    monkeypatch.setattr(ENCODERS, "_kinds", dict(ENCODERS))

    @ENCODERS.register("bag")
    class Bag(AbstractEncoder):
        Settings = BagSettings

        def __init__(self, settings: BagSettings, vocab: Vocab, vectors: Tensor | None = None) -> None:
            super().__init__(settings, vocab, vectors)
            self.words, self.outputs = nn.Embedding(len(vocab.words), settings.size), settings.size

        def forward(self, batch: Batch, *, noisy: bool = True) -> Tensor:
            return self.words(batch.words[:, :-1])

    return Bag


def test_a_new_encoder_needs_no_second_list(bag: type[AbstractEncoder]) -> None:
    table = {"kind": "bag", "size": 3}
    stages = {
        "syntax": {"annotation": "trees", "encoder": table, "mlp": 4},
        "more": {"annotation": "trees", "field": "more", "encoder": "shared", "mlp": 4},
    }
    config = make_config({"encoders": {"shared": {"encoder": {"kind": "bag"}}}, "stages": stages})
    assert resolved_config(config.model_dump(mode="json")) == config
    whole = fresh(config, {"trees": TEXT})
    assert isinstance(whole.model.stages["syntax"].encoder, bag)
    assert [stage.encoder.outputs for stage in whole.model.stages.values()] == [3, 5]
    assert next(whole.pipe(TEXT)).heads is not None
    with pytest.raises(ValueError, match="hidden"):
        make_config({"stages": {"syntax": {"annotation": "trees", "encoder": {**table, "hidden": 3}}}})
