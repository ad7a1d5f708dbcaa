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

from spigot.batches import collate, encode
from spigot.batches.pieces import Frame
from spigot.data.vocab import Vocab
from spigot.encoders import TransformerEncoder, TransformerSettings
from spigot.encoders.asking import ask
from spigot.encoders.pretrained import Pretrained
from tests import transformers as tiny
from tests.parsing import sentences

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
