"""Pretrained transformers as encoders: what states are, and where models come from."""

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from spigot_nlp.batches import Batch, collate, encode
from spigot_nlp.config import make_config
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import OutOfVocabulary, Vocab
from spigot_nlp.encoders import (
    ENCODERS,
    BranchEncoder,
    BranchSettings,
    TransformerEncoder,
    TransformerSettings,
    encoder_settings,
    make_encoder,
)
from spigot_nlp.encoders.pretrained import Pretrained
from spigot_nlp.models import checkpoint
from spigot_nlp.models.build import fresh
from tests.spigot_nlp import transformers as tiny
from tests.spigot_nlp.parsing import sentences

pytestmark = [
    pytest.mark.skipif(find_spec("transformers") is None, reason="transformers are not installed"),
    pytest.mark.xdist_group("transformers"),  # which take seconds to import: once is enough, and not to be collected
]

TEXT = [*sentences(5), Sentence(("dog", "\u00ad", "unbelievable"))]
VOCAB = Vocab.of(TEXT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("models") / "bert")


def made(model: Path, **options: Any) -> TransformerEncoder:
    torch.manual_seed(3)
    encoder = make_encoder(encoder_settings({"kind": "transformer", "model": str(model), **options}), VOCAB)
    assert isinstance(encoder, TransformerEncoder)
    return encoder.double()


def batch_of(chosen: list[Sentence], seeds: list[int] | None = None) -> Batch:
    return collate([encode(sentence, VOCAB) for sentence in chosen], seeds=seeds)


def by_hand(encoder: TransformerEncoder, model: Path, sentence: Sentence, pooling: str, layer: int = -1) -> Tensor:
    """States of one sentence, by the library's own tokeniser and its map from subwords to words."""
    import transformers as hf

    tokeniser = hf.AutoTokenizer.from_pretrained(model)
    lead = " " if isinstance(encoder.transformer, hf.RobertaModel) else ""  # as add_prefix_space would have it
    words = [lead + form for form in sentence.forms]
    given: Any = tokeniser(words, is_split_into_words=True, return_tensors="pt", truncation=False)
    found = encoder.transformer(**given, output_hidden_states=True).hidden_states[layer][0]
    rows = [found[0]]
    for word in range(len(sentence)):
        mine = found[[k for k, of in enumerate(given.word_ids()) if of == word]]
        rows.append(torch.zeros(16).double() if not len(mine) else mine[0] if pooling == "first" else mine.mean(0))
    return torch.stack(rows)


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_states_of_words_are_those_of_their_subwords(kind: str, pooling: str, folder: Path, tmp_path: Path) -> None:
    model = folder if kind == "bert" else tiny.roberta(tmp_path)
    encoder, batch = made(model, pooling=pooling), batch_of(TEXT)
    states = encoder(batch)
    assert states.shape == (len(TEXT), batch.size, encoder.outputs)
    for k, sentence in enumerate(TEXT):
        expected = by_hand(encoder, model, sentence, pooling)
        torch.testing.assert_close(states[k, : len(sentence) + 1], expected)
        torch.testing.assert_close(encoder(batch_of([sentence]))[0], expected)
    if kind == "bert":
        assert not states[-1, 2].any(), "a soft hyphen alone is no subword"
    assert states[-1, 3].any()
    assert encoder(batch_of([Sentence(())])).shape == (1, 1, 16)


def test_layers_are_mixed(folder: Path) -> None:
    encoder, batch = made(folder, layers="mixed"), batch_of(TEXT)
    assert encoder.mixture is not None
    assert encoder.scale is not None
    with torch.no_grad():
        encoder.mixture.copy_(torch.tensor([0.5, -1.0, 2.0]))
        encoder.scale.fill_(3.0)
    weights = encoder.mixture.softmax(0)
    expected = sum(w * by_hand(encoder, folder, TEXT[0], "first", k) for k, w in enumerate(weights))
    torch.testing.assert_close(encoder(batch)[0, : len(TEXT[0]) + 1], 3.0 * expected)
    encoder(batch).sum().backward()
    assert encoder.mixture.grad is not None


def test_long_sentences_are_read_in_windows(folder: Path) -> None:
    long = Sentence(tuple(form for sentence in sentences(12) for form in sentence.forms))
    encoder = made(folder)
    states = encoder(batch_of([long, TEXT[0]]))
    assert torch.isfinite(states).all()
    assert states[0].any(-1).all()
    torch.testing.assert_close(states[1, : len(TEXT[0]) + 1], encoder(batch_of([TEXT[0]]))[0])
    short = Sentence(("a", "dog"))
    narrow = made(folder, positions=8)
    torch.testing.assert_close(narrow(batch_of([short])), encoder(batch_of([short])))
    assert not torch.allclose(narrow(batch_of([long])), states[:1])
    with pytest.raises(ValueError, match=r"encoder.positions is 2, and 2 of them are taken by signs"):
        made(folder, positions=2)


def test_a_model_without_signs_has_a_root_of_zeros(tmp_path: Path) -> None:
    encoder = made(tiny.gpt(tmp_path), pooling="mean", layers="mixed")
    states = encoder(batch_of(TEXT))
    assert not states[:, 0].any()
    assert states[0, 1].any()
    assert encoder(batch_of([Sentence(())])).tolist() == [[[0.0] * 16]]


def test_positions_behind_padding_do_not_count(tmp_path: Path) -> None:
    encoder = made(tiny.roberta(tmp_path, positions=10))
    assert encoder._frame.room == 8
    long = Sentence(("dog",) * 30)
    assert torch.isfinite(encoder(batch_of([long, TEXT[0]]))).all()


def test_noise_needs_seeds_and_consent(folder: Path) -> None:
    for lstm in (0, 1):
        encoder = made(folder, dropout=0.4, lstm=lstm, hidden=4)
        assert encoder.outputs == (8 if lstm else 16)
        encoder.train()
        quiet, noisy = batch_of(TEXT), batch_of(TEXT, list(range(len(TEXT))))
        assert torch.equal(encoder(noisy, noisy=False), encoder(quiet))
        assert torch.equal(encoder(noisy), encoder(noisy)), "nothing is drawn from a stream"
        assert not torch.allclose(encoder(noisy), encoder(quiet))
        alone = batch_of(TEXT[:1], [0])
        torch.testing.assert_close(encoder(alone)[0], encoder(noisy)[0, : len(TEXT[0]) + 1])


@pytest.mark.parametrize("frozen", [True, False])
def test_the_transformer_is_asked_once_with_and_without_noise(frozen: bool, folder: Path) -> None:
    encoder, calls = made(folder, frozen=frozen, layers="mixed"), []
    encoder.transformer.register_forward_hook(lambda *_: calls.append(None))
    batch = batch_of(TEXT, list(range(len(TEXT)))).keeping()
    (encoder.states(batch, noisy=True) + encoder.states(batch, noisy=False)).sum().backward()
    assert len(calls) == 1
    grads = [parameter.grad is not None for parameter in encoder.transformer.parameters()]
    assert not any(grads) if frozen else all(grads)
    assert encoder.mixture is not None
    assert encoder.mixture.grad is not None
    assert list(encoder.tuned()) == ([] if frozen else ["transformer"])


@pytest.mark.parametrize("layers", ["last", "mixed"])
def test_sentences_that_come_again_are_read_once(layers: str, folder: Path) -> None:
    encoder, calls = made(folder, frozen=True, layers=layers, dropout=0.0), []
    whole, part, new = batch_of(TEXT), batch_of(TEXT[2:4]), batch_of([*TEXT[:2], Sentence(("dogs", "sleep"))])
    read = encoder(whole)
    encoder.transformer.register_forward_hook(lambda *_: calls.append(None))
    encoder.expect([[sentence.forms for sentence in TEXT], [("of", "no", "use")]])
    assert torch.allclose(encoder(part), read[2:4, : part.size])
    asked = len(calls)
    again = encoder(whole)
    assert torch.allclose(again, read)
    assert again[2:4, : part.size].equal(encoder(part))  # to the last bit, in any company
    assert len(calls) == asked
    assert torch.allclose(encoder(new)[:2, : part.size], read[:2, : part.size])
    assert len(calls) > asked  # there is one in it that nobody expected
    encoder.expect([])
    asked = len(calls)
    assert encoder(part).shape == again[2:4, : part.size].shape
    assert len(calls) > asked


@pytest.mark.parametrize("options", [{"frozen": False}, {"frozen": True, "keep": 0}])
def test_nothing_is_kept_that_changes_or_has_no_room(options: dict[str, Any], folder: Path) -> None:
    encoder, calls = made(folder, **options), []
    encoder.expect([[sentence.forms for sentence in TEXT]])
    encoder.transformer.register_forward_hook(lambda *_: calls.append(None))
    for asked in (1, 2):
        encoder(batch_of(TEXT[:1]))
        assert len(calls) == asked


def test_branches_are_readers_of_the_same_states(folder: Path) -> None:
    encoder = made(folder, lstm=1, hidden=4)
    own, other = encoder.states_of([encoder.branch().double()], batch_of(TEXT))
    assert own.shape == other.shape
    assert not torch.allclose(own, other)
    torch.testing.assert_close(encoder.states_of([], batch_of(TEXT))[0], own)
    with pytest.raises(TypeError, match="TransformerEncoder has no embeddings"):
        made(folder).branch()


def test_it_can_be_moved(folder: Path) -> None:
    """To a device without values, as far as the library can be asked there: without padding, which it looks at."""
    encoder = made(folder, lstm=1, hidden=4).to("meta")
    states = encoder(batch_of([TEXT[0]]).to("meta"))
    assert (states.device.type, states.shape) == ("meta", (1, len(TEXT[0]) + 1, 8))


def test_bfloat16(folder: Path) -> None:
    encoder = made(folder, lstm=1, hidden=4).float()
    exact = encoder.states(batch_of(TEXT))
    encoder.precision = "bfloat16"
    rounded = encoder.states(batch_of(TEXT))
    assert rounded.dtype == torch.float32
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(exact, rounded, atol=0.05, rtol=0.05)


def with_settings(folder: Path, tmp_path: Path, **changed: Any) -> Path:
    """The same model, whose settings say something else."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, **changed}))
    return copy


def test_models_that_have_no_padding(folder: Path, tmp_path: Path) -> None:
    copy = with_settings(folder, tmp_path, pad_token_id=-1)
    torch.testing.assert_close(made(copy)(batch_of(TEXT)), made(folder)(batch_of(TEXT)))


def test_models_that_say_minus_one_where_there_is_no_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Pretrained.load(str(folder))
    monkeypatch.setattr("spigot_nlp.encoders.pretrained._positions", lambda model: None)
    found._settings.max_position_embeddings = -1
    assert found.frame(0).room == 510


def test_who_draws_until_numbers_are_in_range_comes_to_an_end_where_nothing_is_drawn() -> None:
    """ModernBERT and others do when they are made, also where their parameters are then read."""
    weight = torch.full((4, 4), 9.0)
    for bounds in ((-2.0, 2.0), (0.9, 9.0)):
        with checkpoint._Undrawn():
            torch.nn.init.trunc_normal_(weight, std=0.5, a=bounds[0], b=bounds[1])
        assert bool(((weight >= bounds[0]) & (weight <= bounds[1])).all())


def test_no_word_is_new_to_it(folder: Path) -> None:
    encoder = {"kind": "transformer", "model": str(folder)}
    stages: dict[str, Any] = {"syntax": {"annotation": "trees", "encoder": encoder}}
    strange = [Sentence(("Zyzzyva", "fell"))]
    assert fresh(make_config({"stages": stages}), {"trees": list(sentences(3))}).out_of_vocabulary(
        strange
    ) == OutOfVocabulary(2, 0)


def test_a_branch_reads_its_states(folder: Path) -> None:
    trunk = made(folder, lstm=1)
    assert BranchEncoder(BranchSettings(of="words", over="states", hidden=4), VOCAB, trunk=trunk).outputs == 8
    with pytest.raises(ValueError, match=r"encoders\.words has no vectors of single words .*; set over = 'states'\.$"):
        BranchEncoder(BranchSettings(of="words", hidden=4), VOCAB, trunk=trunk)


def test_files_of_a_run_are_enough(folder: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    shutil.copytree(folder, gone)
    config = json.loads((gone / "config.json").read_text())
    (gone / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "evil.Model"}}))
    encoder = made(gone, layers="mixed")
    encoder.save(tmp_path / "run")
    shutil.rmtree(gone)
    (place,) = (tmp_path / "run" / "encoders").iterdir()
    assert sorted(path.name for path in place.iterdir()) == ["config.json", "tokenizer.json"]
    assert "evil" not in (place / "config.json").read_text()
    settings = TransformerSettings(model=str(gone), layers="mixed")
    again = TransformerEncoder.restored(settings, VOCAB, tmp_path / "run").double()
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(again(batch_of(TEXT)), encoder(batch_of(TEXT)))
    (place / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"is damaged \(.*\); restore it or train again\.$"):
        TransformerEncoder.restored(settings, VOCAB, tmp_path / "run")
    (place / "config.json").write_text('{"model_type": "unheard-of"}')
    with pytest.raises(ValueError, match="is damaged"):
        TransformerEncoder.restored(settings, VOCAB, tmp_path / "run")


def test_what_cannot_be_had_is_said_in_a_sentence(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"^encoder.model is nobody/nothing, which is no folder, .*\.$") as caught:
        made(Path("nobody/nothing"))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"a folder without a transformer that can be used \(.*\); it needs config"):
        made(tmp_path)
    unsafe = tmp_path / "unsafe"
    shutil.copytree(folder, unsafe)
    (unsafe / "model.safetensors").unlink()
    torch.save({}, unsafe / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"a folder without a transformer that can be used .*safetensors"):
        made(unsafe)
    foreign = tmp_path / "foreign"
    shutil.copytree(folder, foreign)
    code = {"model_type": "unheard-of", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}
    (foreign / "config.json").write_text(json.dumps(code))
    (foreign / "evil.py").write_text("raise SystemExit('code of a model was run')")
    with pytest.raises(ValueError, match="a folder without a transformer that can be used") as caught:
        made(foreign)
    assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs transformers; install it with: pip install"):
        made(folder)


def test_files_that_do_not_belong_together_are_told(folder: Path, tmp_path: Path) -> None:
    from transformers import ViTConfig, ViTModel

    short, cut, few, eyes = (tmp_path / name for name in ("short", "cut", "few", "eyes"))
    for copy in (short, cut, few):
        shutil.copytree(folder, copy)
    weights = (short / "model.safetensors").read_bytes()
    (short / "model.safetensors").write_bytes(weights[:1000])
    config = json.loads((cut / "config.json").read_text())
    (cut / "config.json").write_text(json.dumps({**config, "vocab_size": 50}))
    for copy in (short, cut):
        with pytest.raises(
            ValueError, match=rf"^encoder.model is {copy}, a folder without a transformer that"
        ) as caught:
            made(copy)
        assert "\n" not in str(caught.value)
    model: Any = Pretrained.load(str(folder)).model
    model.resize_token_embeddings(50)
    model.save_pretrained(few)
    with pytest.raises(
        ValueError, match=r"whose tokeniser has subword \d+ where the model has vectors for 50; its files"
    ):
        made(few)
    ViTModel(ViTConfig(**tiny.SIZES)).save_pretrained(eyes)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, eyes)
    with pytest.raises(ValueError, match=r"eyes, which reads no words; choose a model of text\."):
        made(eyes)


def test_weights_that_are_not_there_are_missed(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    half = tmp_path / "half"
    shutil.copytree(folder, half)
    weights = load_file(half / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "layer.1." not in name}
    save_file(kept, half / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"whose weights lack encoder\.layer\.1\..*; it is damaged, or no encoder\."):
        made(half)


def test_settings() -> None:
    settings = encoder_settings({"kind": "transformer", "model": "some/model", "frozen": True})
    assert isinstance(settings, TransformerSettings)
    assert not settings.learns
    assert settings.model_copy(update={"layers": "mixed"}).learns
    assert (settings.optimiser.learning_rate, settings.optimiser.warm_up) == (5e-5, 200)
    assert ENCODERS["transformer"].Settings is TransformerSettings


@pytest.mark.parametrize("name", ["", "  "])
def test_a_model_has_a_name(name: str) -> None:
    stages = {"syntax": {"annotation": "trees", "encoder": {"kind": "transformer", "model": name}}}
    with pytest.raises(ValueError, match=r"syntax\.encoder\.model: it is empty; give a folder, or a name on the hub"):
        make_config({"stages": stages})


def test_a_table_of_another_kind_replaces_what_is_below_it() -> None:
    table = {"data": {"tags": "columns"}, "syntax": {"encoder": {"hidden": 8, "word_dim": 5}}}
    changes = {"syntax.encoder.kind": "transformer", "syntax.encoder.model": "small"}
    chosen = make_config(table, changes).stages["syntax"].encoder
    assert chosen == TransformerSettings(model="small")
    table["syntax"] = {"encoder": {"kind": "transformer", "model": "small", "lstm": 1}}
    chosen = make_config(table, {"syntax.encoder.model": "large"}).stages["syntax"].encoder
    assert chosen == TransformerSettings(model="large", lstm=1)
    with pytest.raises(ValueError, match=r"syntax\.encoder\.poolin: .* did you mean .*syntax\.encoder\.pooling\?"):
        make_config(table, {"syntax.encoder.poolin": "mean"})
