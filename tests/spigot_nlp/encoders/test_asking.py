"""What pretrained models are tried with before they are used: whether their states can be those of words."""

import logging
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spigot_nlp.batches import collate, encode
from spigot_nlp.batches.pieces import Frame
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import TransformerEncoder, TransformerSettings
from spigot_nlp.encoders.pretrained import Pretrained, ask, check
from tests.spigot_nlp import transformers as tiny
from tests.spigot_nlp.parsing import sentences

pytestmark = [
    pytest.mark.skipif(find_spec("transformers") is None, reason="transformers are not installed"),
    pytest.mark.xdist_group("transformers"),
]

FRAME = Frame((2,), (3,), 0, 20)
SENTENCES = sentences(4)
VOCAB = Vocab.of(SENTENCES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("models") / "bert")


def saved(model: Any, folder: Path, place: Path) -> Path:
    """Another model with the tokeniser of the first."""
    model.save_pretrained(place)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, place)
    return place


class Given(nn.Module):
    """States that a test makes of subwords and of where there are any: one before its only layer, and one after it."""

    def __init__(self, make: Any, layers: int = 2) -> None:
        super().__init__()
        self.make, self.layers, self.weight = make, layers, nn.Parameter(torch.ones(()))
        self.config = SimpleNamespace(model_type="given")

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None, **_: Any) -> SimpleNamespace:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = self.make(input_ids.unsqueeze(-1) * torch.ones(4), mask.unsqueeze(-1))
        return SimpleNamespace(last_hidden_state=states, hidden_states=(states,) * self.layers)


def tried(model: nn.Module) -> None:
    check("mine", model, FRAME, 120, 2)


def test_models_that_do_not_keep_to_the_mask_or_the_length_are_refused(folder: Path, tmp_path: Path) -> None:
    import transformers as hf

    torch.manual_seed(0)
    fnet = hf.FNetConfig(
        vocab_size=120, max_position_embeddings=24, hidden_size=16, num_hidden_layers=2, intermediate_size=24
    )
    funnel = hf.FunnelConfig(vocab_size=120, block_sizes=[1, 1], d_model=16, n_head=2, d_head=8, d_inner=24)
    with pytest.raises(
        ValueError, match=r"fnet, of the kind 'fnet', which gives a sentence other states beside a longer"
    ):
        Pretrained.load(str(saved(hf.FNetModel(fnet), folder, tmp_path / "fnet")))
    with pytest.raises(ValueError, match=r"funnel, of the kind 'funnel', which makes 6 states of 11 subwords in some"):
        Pretrained.load(str(saved(hf.FunnelModel(funnel), folder, tmp_path / "funnel")))


def test_what_is_wrong_with_states_is_told() -> None:
    heeding = Given(lambda words, mask: words + (words * mask).sum(1, keepdim=True))
    tried(heeding)
    for model, reason in (
        (
            Given(lambda words, mask: words + words.mean(1, keepdim=True)),
            "gives a sentence other states beside a longer",
        ),
        (Given(lambda words, mask: words[:, ::2]), "makes 6 states of 11 subwords in some layer"),
        (Given(lambda words, mask: words, layers=5), "gives 5 states of a subword where its settings have 2"),
        (Given(lambda words, mask: words / 0), "makes states that are no finite numbers; its weights are damaged"),
        (
            Given(lambda words, mask: words @ torch.ones(3)),
            r"does not read subwords alone \(.*\); choose a model of text",
        ),
    ):
        with pytest.raises(ValueError, match=rf"^encoder.model is mine, of the kind 'given', which {reason}") as caught:
            tried(model)
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith(".")


def test_trying_leaves_no_trace(folder: Path) -> None:
    drawn = Given(lambda words, mask: words + torch.rand(()) * 0)
    before = torch.get_rng_state()
    tried(drawn)
    assert torch.equal(torch.get_rng_state(), before)
    model = Pretrained.load(str(folder)).model
    assert not any(part.training for part in model.modules())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


def test_rounding_is_no_fault_and_what_has_no_values_is_not_tried(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Pretrained.load(str(folder))
    check("mine", found.model.bfloat16(), found.frame(0), 120, found.layers)
    monkeypatch.setattr("spigot_nlp.encoders.pretrained._said", pytest.fail)
    check("mine", found.model.to("meta"), found.frame(0), 120, found.layers)


def test_models_of_one_place_have_no_padding() -> None:
    reading = Given(lambda words, mask: words + words.mean(1, keepdim=True))
    check("mine", reading, Frame((), (), 0, 1), 120, 2)
    with pytest.raises(ValueError, match="gives a sentence other states"):
        check("mine", reading, Frame((2,), (), 0, 1), 120, 2)


def test_the_library_says_nothing_while_it_is_asked(folder: Path) -> None:
    import transformers as hf

    torch.manual_seed(0)
    config = hf.LongformerConfig(
        vocab_size=120, max_position_embeddings=40, attention_window=[6, 6], pad_token_id=0, **tiny.SIZES
    )
    model, heard = hf.LongformerModel(config).eval(), list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    library = logging.getLogger("transformers")
    library.addHandler(handler)
    try:
        (states,) = ask(model, torch.tensor([[2, 5, 7, 3]]), None)
        assert states.shape == (1, 4, 16)
        assert not heard
        logging.getLogger("transformers.models").error("but what others do is told")
        library.getChild("models").warning("and of others")
        assert heard == ["but what others do is told", "and of others"]
    finally:
        library.removeHandler(handler)


def test_a_half_that_was_saved_alone_is_read(folder: Path, tmp_path: Path) -> None:
    import transformers as hf

    torch.manual_seed(0)
    config = hf.T5Config(vocab_size=120, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, pad_token_id=0)
    alone = hf.T5EncoderModel(config).eval()
    place = saved(alone, folder, tmp_path / "alone")
    settings, ids = TransformerSettings(model=str(place)), torch.tensor([[2, 5, 7, 3]])
    encoder = TransformerEncoder(settings, VOCAB)
    expected = alone(input_ids=ids).last_hidden_state
    torch.testing.assert_close(ask(encoder.transformer, ids, None)[0], expected)
    encoder.save(tmp_path / "run")
    again = TransformerEncoder.restored(settings, VOCAB, tmp_path / "run")
    again.load_state_dict(encoder.state_dict())
    batch = collate([encode(sentence, VOCAB) for sentence in SENTENCES])
    assert torch.equal(again(batch), encoder(batch))
    whole = hf.T5Model(config)
    half = saved(whole, folder, tmp_path / "half")
    weights = {name: value for name, value in whole.state_dict().items() if "encoder.block.1" not in name}
    whole.save_pretrained(half, state_dict=weights)
    with pytest.raises(ValueError, match=r"whose weights lack encoder\.block\.1\..*; it is damaged, or no encoder\."):
        Pretrained.load(str(half))


def tokenisers() -> dict[str, tuple[Any, Any]]:
    """What comes before the pieces of words in some kinds of models."""
    from tokenizers import Regex, normalizers
    from tokenizers import pre_tokenizers as before

    words = before.Split(Regex(r" ?\w+"), "isolated")
    marked = normalizers.Replace(" ", "▁")
    return {
        "BERT": (None, before.BertPreTokenizer()),
        "GPT-2": (None, before.ByteLevel(add_prefix_space=False)),
        "RoBERTa": (None, before.ByteLevel(add_prefix_space=True)),
        "Llama-3": (None, before.Sequence([words, before.ByteLevel(add_prefix_space=False, use_regex=False)])),
        "T5": (None, before.Metaspace()),
        "Mistral": (None, before.Metaspace(prepend_scheme="first")),
        "never": (None, before.Metaspace(prepend_scheme="never")),
        "CamemBERT": (None, before.Sequence([before.WhitespaceSplit(), before.Metaspace()])),
        "Gemma": (marked, before.Split(Regex("▁?[^▁]+"), "isolated")),
        "Llama-2": (
            normalizers.Sequence([normalizers.Prepend("▁"), marked]),
            before.Split(Regex("▁[^▁]+"), "isolated"),
        ),
    }


@pytest.mark.parametrize(
    "kind", ["BERT", "GPT-2", "RoBERTa", "Llama-3", "T5", "Mistral", "never", "CamemBERT", "Gemma", "Llama-2"]
)
def test_words_are_divided_as_inside_a_text(kind: str) -> None:
    from tokenizers import Tokenizer, models, trainers

    tokeniser = Tokenizer(models.BPE(unk_token="<unk>"))
    tokeniser.normalizer, tokeniser.pre_tokenizer = tokenisers()[kind]
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], show_progress=False)
    tokeniser.train_from_iterator(tiny.text(), trainer)
    words = ["The", "dog", "slept", "near", "the", "museum"]
    divided = Pretrained(nn.Module(), {}, tokeniser).divider()(words)
    text = tokeniser.encode(" ".join(words)).ids
    later = [piece for pieces in divided[1:] for piece in pieces]
    assert text[-len(later) :] == later
    assert len(text) - len(later) == len(tokeniser.encode("The").ids)
