"""Transformers that others have trained: from a folder or the hub, and as files of a run. No code of theirs is run."""

import contextlib
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from spigot_nlp.batches.pieces import Frame
from spigot_nlp.data.formats.files import written
from spigot_nlp.encoders.asking import check

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONFIG, TOKENISER = "config.json", "tokenizer.json"
_USUAL = 512
"""Positions of a model that does not say how many it has."""
_NOT_KEPT = re.compile(r"auto_map|.*(attn|experts)_implementation.*|quantization_config|custom_pipelines|_name_or_path")
"""Settings of a model that name code, or where it came from."""

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Pretrained:
    """A transformer with its tokeniser.

    Attributes:
        model: The transformer: subwords to states.
        config: Its settings, as plain values.
        tokeniser: What divides words into subwords.
    """

    model: nn.Module
    config: dict[str, Any]
    tokeniser: "Tokenizer"

    @classmethod
    def load(cls, name: str) -> "Pretrained":
        """A model that is in a folder, or that the hub knows by this name and has sent before or can send now.

        Raises:
            ValueError: If it cannot be had, or not without code from elsewhere, in one sentence.
            ModuleNotFoundError: If `transformers` is not installed.
        """
        transformers = _transformers()
        folder = Path(name).expanduser()
        source = str(folder) if folder.is_dir() else name
        local = folder.is_dir()
        with _quiet(), _explained(name, local):
            config = _fetched(lambda **how: transformers.AutoConfig.from_pretrained(source, **how), local)
            tokeniser = _fetched(lambda **how: transformers.AutoTokenizer.from_pretrained(source, **how), local)
            model, report = _fetched(
                lambda **how: transformers.AutoModel.from_pretrained(
                    source, config=config, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **how
                ),
                local,
            )
        backend = getattr(tokeniser, "backend_tokenizer", None)
        if backend is None:
            raise ValueError(
                f"encoder.model is {name}, whose tokeniser is not a fast one; choose a model that has one."
            )
        words = _words(model)
        if words is None:
            raise ValueError(f"encoder.model is {name}, which reads no words; choose a model of text.")
        if (most := max(backend.get_vocab(with_added_tokens=False).values(), default=0)) >= words:
            raise ValueError(
                f"encoder.model is {name}, whose tokeniser has subword {most} where the model has vectors for {words}; "
                "its files do not belong together."
            )
        whole = model.state_dict(keep_vars=True)
        encoder = _encoder(model).eval()
        kept = {id(value) for value in encoder.state_dict(keep_vars=True).values()}
        if missing := sorted(key for key in report["missing_keys"] if id(whole.get(key)) in kept):
            raise ValueError(f"encoder.model is {name}, whose weights lack {missing[0]}; it is damaged, or no encoder.")
        found = cls(encoder, _plain(config.to_dict()), _whole(backend))
        check(name, encoder, found.frame(0), words, found.layers)
        return found

    @classmethod
    def read(cls, folder: Path) -> "Pretrained":
        """What `write` wrote, with parameters that are about to be read.

        Raises:
            ValueError: If a file is missing or damaged.
        """
        transformers = _transformers()
        from tokenizers import Tokenizer

        try:
            config = _plain(json.loads((folder / CONFIG).read_text(encoding="utf-8")))
            known = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(config)
            with _quiet():
                model = transformers.AutoModel.from_config(known, dtype=torch.float32, trust_remote_code=False)
            tokeniser = Tokenizer.from_file(str(folder / TOKENISER))
        except Exception as error:  # tokenizers raises nothing more precise
            reason = str(error).partition("\n")[0]
            raise ValueError(f"{folder} is damaged ({reason}); restore it or train again.") from None
        return cls(_encoder(model), config, _whole(tokeniser))

    def write(self, folder: Path) -> None:
        """Write its settings and its tokeniser, for `read`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            (CONFIG, json.dumps(self.config, indent=2, sort_keys=True)),
            (TOKENISER, self.tokeniser.to_str()),
        ):
            with written(folder / name) as file:
                file.write(text.encode())

    @property
    def outputs(self) -> int:
        """Length of a state."""
        return self._settings.hidden_size

    @property
    def layers(self) -> int:
        """How many states a subword has, one before the first layer."""
        return self._settings.num_hidden_layers + 1

    @property
    def _settings(self) -> Any:
        config: Any = self.model.config
        return config.get_text_config()

    def frame(self, positions: int) -> Frame:
        """What stands around subwords, and how many there may be.

        Args:
            positions: How many a window may have, signs included; as many as the model has if 0.
        """
        sample = self.tokeniser.encode(["a"], is_pretokenized=True)
        signs = sample.special_tokens_mask
        start = signs.index(0) if 0 in signs else len(signs)
        end = len(signs) - signs[::-1].index(0) if 0 in signs else len(signs)
        before, after = tuple(sample.ids[:start]), tuple(sample.ids[end:])
        most = _positions(self.model) or getattr(self._settings, "max_position_embeddings", None) or _USUAL
        most = most if most > 0 else _USUAL  # some say -1 where there is no end
        room = min(positions or most, most) - len(before) - len(after)
        if room < 1:
            raise ValueError(
                f"encoder.positions is {positions}, and {len(before) + len(after)} of them are taken by signs around a "
                "sentence; give more, or 0 for as many as the model has."
            )
        # What stands behind the end is not looked at, but has to be in the table: some models say -1 for none.
        padding = getattr(self._settings, "pad_token_id", None) or 0
        return Frame(before, after, padding if 0 <= padding < self._settings.vocab_size else 0, room)

    def divider(self) -> Callable[[list[str]], list[list[int]]]:
        """A function from words to the subwords of each."""
        lead = _lead(self.tokeniser)

        def divided(words: list[str]) -> list[list[int]]:
            found: list[list[int]] = [[] for _ in words]
            made = self.tokeniser.encode(
                [lead + word for word in words], is_pretokenized=True, add_special_tokens=False
            )
            for piece, word in zip(made.ids, made.word_ids, strict=True):
                if word is not None:
                    found[word].append(piece)
            return found

        return divided


def _lead(tokeniser: "Tokenizer") -> str:
    """What has to stand before a word that is given alone, so that it is divided like one inside a text.

    Many tell words by the space before them, and only some of these add one to a word that has none.
    """
    for word in ("x", "q", "a", "0"):
        first = tokeniser.encode(word, add_special_tokens=False).ids
        text = tokeniser.encode(f"{word} {word}", add_special_tokens=False).ids
        if not first or text[: len(first)] != first:
            continue  # divided across the space
        for lead in ("", " "):
            made = tokeniser.encode([lead + word] * 2, is_pretokenized=True, add_special_tokens=False)
            given = [piece for piece, place in zip(made.ids, made.word_ids, strict=True) if place == 1]
            if given == text[len(first) :]:
                return lead
    return ""


def _words(model: Any) -> int | None:
    """Of how many subwords a model has vectors; `None` if it reads something else."""
    said = getattr(model.config.get_text_config(), "vocab_size", None)
    try:
        return said if said is None else getattr(model.get_input_embeddings(), "num_embeddings", said)
    except NotImplementedError:
        return said


def place(run: Path, name: str) -> Path:
    """Where the files of a model are kept in a run folder.

    Args:
        run: The folder.
        name: What the settings of the encoder call the model.

    Example:
        >>> place(Path("runs/mine"), "models/tiny").parent
        PosixPath('runs/mine/encoders')
        >>> place(Path("."), "models/tiny").name == place(Path("."), "tiny").name
        False
    """
    readable = re.sub(r"[^\w.-]+", "-", Path(name).name)[:40].strip(".-") or "model"
    return run / "encoders" / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _transformers() -> Any:
    try:
        import transformers
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "encoder.kind = 'transformer' needs transformers; install it with: pip install 'torch-spigot[transformers]'"
        ) from None
    return transformers


def _fetched(load: Callable[..., _Found], local: bool) -> _Found:
    """What is on this machine, and otherwise what can be fetched."""
    try:
        return load(trust_remote_code=False, local_files_only=True)
    except OSError:
        if local:
            raise
    return load(trust_remote_code=False)


@contextlib.contextmanager
def _explained(name: str, local: bool) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # what a damaged file raises, nobody has written down
        reason = " ".join(str(error).partition("\n")[0].split()).rstrip(".:")
        if local:
            raise ValueError(
                f"encoder.model is {name}, a folder without a transformer that can be used ({reason}); it needs "
                "config.json, tokenizer.json and model.safetensors."
            ) from None
        raise ValueError(
            f"encoder.model is {name}, which is no folder, is not among the models fetched before, and cannot be "
            f"fetched now ({reason}); give a folder, or fetch it once where there is a network."
        ) from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and remarks of other libraries."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as models

    said, fetched, bars = models.get_verbosity(), hub.get_verbosity(), models.is_progress_bar_enabled()
    models.set_verbosity_error()
    hub.set_verbosity_error()
    models.disable_progress_bar()
    try:
        yield
    finally:
        models.set_verbosity(said)
        hub.set_verbosity(fetched)
        if bars:
            models.enable_progress_bar()


def _encoder(model: Any) -> nn.Module:
    """What makes states of subwords: of models that also write, the half that reads."""
    # Settings do not tell: a half that was saved alone says that it is no such model.
    if "decoder_input_ids" in inspect.signature(model.forward).parameters:
        model = model.get_encoder()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # for sentences as a whole: nobody would train it
    return model


def _plain(values: Any) -> Any:
    """Settings without those that name code or a place."""
    if isinstance(values, dict):
        return {key: _plain(value) for key, value in values.items() if not _NOT_KEPT.fullmatch(str(key))}
    return [_plain(value) for value in values] if isinstance(values, list | tuple) else values


def _whole(tokeniser: "Tokenizer") -> "Tokenizer":
    """A tokeniser that cuts nothing off, and adds nothing."""
    tokeniser.no_truncation()
    tokeniser.no_padding()
    return tokeniser


def _positions(model: nn.Module) -> int | None:
    """The places of a table of positions; those that come before the first one do not count."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith(("position_embeddings", "embed_positions", "wpe")):
            before = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - max(before, getattr(module, "offset", 0))
    return None
