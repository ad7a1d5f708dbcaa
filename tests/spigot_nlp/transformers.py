"""A tiny transformer with random weights, and a tokeniser trained on the built-in corpus, in a folder."""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from spigot_nlp.corpora.corpus import load_corpus
from spigot_nlp.corpora.settings import Data

SIZES: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24
}  # fmt: skip


def synthetic(train: int = 40) -> dict[str, Any]:
    """The built-in corpus, small."""
    return {"source": "synthetic", "synthetic": {"train": train, "dev": 3, "test": 2}, "tags": "columns"}


@functools.cache
def text() -> Iterable[str]:
    corpus = load_corpus(Data.model_validate(synthetic(200)))
    return [" ".join(sentence.forms) for name in corpus.sets for sentence in corpus[name].train]


def bert(folder: Path, positions: int = 24, seed: int = 0) -> Path:
    """Word pieces between two signs; letters are lower case, and soft hyphens are nothing."""
    import transformers as hf
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    signs = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokeniser = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokeniser.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokeniser.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokeniser.train_from_iterator(
        text(), trainers.WordPieceTrainer(vocab_size=120, special_tokens=signs, show_progress=False)
    )
    tokeniser.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokeniser.enable_truncation(positions)  # as many that come from the hub
    size = tokeniser.get_vocab_size()
    torch.manual_seed(seed)
    config = hf.BertConfig(vocab_size=size, max_position_embeddings=positions, pad_token_id=0, **SIZES)
    return _saved(folder, hf.BertModel(config), tokeniser, pad="[PAD]")


def roberta(folder: Path, positions: int = 24) -> Path:
    """Byte pairs that begin with a space, and positions that are counted from behind that of padding."""
    import transformers as hf
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    signs = ["<s>", "<pad>", "</s>"]
    tokeniser = Tokenizer(models.BPE())
    tokeniser.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokeniser.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    tokeniser.train_from_iterator(
        text(),
        trainers.BpeTrainer(vocab_size=340, special_tokens=signs, initial_alphabet=letters, show_progress=False),
    )
    tokeniser.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    size = tokeniser.get_vocab_size()
    config = hf.RobertaConfig(vocab_size=size, max_position_embeddings=positions + 2, pad_token_id=1, **SIZES)
    return _saved(folder, hf.RobertaModel(config), tokeniser, pad="<pad>")


def gpt(folder: Path) -> Path:
    """No signs around a sentence at all."""
    import transformers as hf
    from tokenizers import Tokenizer

    tokeniser = Tokenizer.from_file(str(roberta(folder / "bytes") / "tokenizer.json"))
    tokeniser.post_processor = None  # pyright: ignore[reportAttributeAccessIssue] (the stubs do not know that it may be)
    size = tokeniser.get_vocab_size()
    config = hf.GPT2Config(
        vocab_size=size, n_positions=24, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=2
    )
    return _saved(folder, hf.GPT2Model(config), tokeniser)


def _saved(folder: Path, model: Any, tokeniser: Any, pad: str | None = None) -> Path:
    import transformers as hf

    hf.utils.logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    hf.PreTrainedTokenizerFast(tokenizer_object=tokeniser, pad_token=pad).save_pretrained(folder)
    return folder
