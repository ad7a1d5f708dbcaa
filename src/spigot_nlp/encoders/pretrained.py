"""Transformers that others have trained: from a folder or the hub, and as files of a run. No code of theirs is run."""

import contextlib
import hashlib
import inspect
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spigot_nlp.batches.pieces import Frame
from spigot_nlp.data.formats.files import written

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_LONGER, _SHORTER = 9, 4
"""Subwords of the rows that a model is tried with, signs not counted."""

_asking: ContextVar[bool] = ContextVar("asking", default=False)


def ask(
    model: nn.Module,
    ids: Int[Tensor, "windows width"],
    there: Bool[Tensor, "windows width"] | None,
    *,
    mixed: bool = False,
) -> Sequence[Float[Tensor, "windows width d"]]:
    """States of subwords, without remarks of the library.

    Args:
        model: The transformer.
        ids: The subwords.
        there: Which of them exist; `None` if all do.
        mixed: Whether the states before and after each layer are wanted, and not only the last.

    Example:
        >>> from types import SimpleNamespace
        >>> class Ones(nn.Module):
        ...     def forward(self, input_ids, **_):
        ...         return SimpleNamespace(last_hidden_state=torch.ones(*input_ids.shape, 4))
        >>> [tuple(states.shape) for states in ask(Ones(), torch.zeros(2, 3, dtype=torch.int64), None)]
        [(2, 3, 4)]
    """
    said = _said(model, ids, there, mixed)
    return said.hidden_states if mixed else (said.last_hidden_state,)


def _said(model: nn.Module, ids: Tensor, there: Tensor | None, mixed: bool) -> Any:
    mask = None if there is None else there.long()
    with _unsaid():
        return model(input_ids=ids, attention_mask=mask, output_hidden_states=mixed, return_dict=True)


def check(name: str, model: nn.Module, frame: Frame, words: int, layers: int) -> None:
    """Refuse a transformer whose states cannot be those of words.

    Two rows of subwords are read alone, and together behind one another's padding. There must be a state of each
    subword in each layer, and the same one in any company.

    Args:
        name: What the settings call it.
        model: The transformer, not in training. One without values, on torch's `meta` device, is not tried.
        frame: What stands around subwords, and how many there may be.
        words: Of how many subwords it has vectors.
        layers: How many states a subword should have, one before the first layer.

    Raises:
        ValueError: If it cannot be used.
    """
    rows, device = _rows(frame, words), next(model.parameters()).device
    if not rows or device.type == "meta":
        return
    config: Any = model.config
    kind = f"encoder.model is {name}, of the kind {config.model_type!r}, which"
    widths = [len(row) for row in rows]
    ids = torch.tensor([row + [frame.padding] * (max(widths) - len(row)) for row in rows], device=device)
    there = torch.arange(max(widths), device=device) < torch.tensor(widths, device=device).unsqueeze(1)
    try:
        # Some draw numbers even where nothing is dropped; what is drawn afterwards must not depend on it.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            together = _states(model, ids, there)
            alone = [_states(model, ids[k : k + 1, :width], None) for k, width in enumerate(widths)]
    except MemoryError:
        raise
    except Exception as error:  # what a model raises that needs something else, nobody has written down
        reason = " ".join(str(error).partition("\n")[0].split()).rstrip(".:")
        raise ValueError(f"{kind} does not read subwords alone ({reason}); choose a model of text.") from None
    for found, width in zip((together, *alone), (max(widths), *widths), strict=True):
        if other := [states.shape[1] for states in found if states.shape[1] != width]:
            raise ValueError(
                f"{kind} makes {other[0]} states of {width} subwords in some layer; choose a model that makes one of "
                "each in all."
            )
        if len(found) != layers + 1:  # and the last one again
            raise ValueError(
                f"{kind} gives {len(found) - 1} states of a subword where its settings have {layers}, one before the "
                "first layer; choose a model that gives all."
            )
    if not all(states.isfinite().all() for found in alone for states in found):
        raise ValueError(f"{kind} makes states that are no finite numbers; its weights are damaged.")
    for k, width in enumerate(widths):
        if any(_differ(one[0], both[k, :width]) for one, both in zip(alone[k], together, strict=True)):
            raise ValueError(
                f"{kind} gives a sentence other states beside a longer one, since it reads padding, too; choose a "
                "model that heeds its attention mask."
            )


def _states(model: nn.Module, ids: Tensor, there: Tensor | None) -> list[Tensor]:
    """Those of all layers, and what it says are the last ones."""
    said = _said(model, ids, there, mixed=True)
    return [*(said.hidden_states or ()), said.last_hidden_state]


def _differ(one: Float[Tensor, "n d"], other: Float[Tensor, "n d"]) -> bool:
    """Whether by more than by rounding."""
    least = one.dtype if torch.get_float32_matmul_precision() == "highest" else torch.bfloat16
    error = (one - other).norm(dim=-1).max() / one.norm(dim=-1).max()
    return not error <= torch.finfo(least).eps ** 0.5


def _rows(frame: Frame, words: int) -> list[list[int]]:
    """Two rows of different lengths; none where all that a model can read are of the same."""
    signs = {*frame.before, *frame.after, frame.padding}
    usual = [k for k in range(0, words, max(1, words // 50)) if k not in signs]
    longer = min(_LONGER, frame.room)
    shorter = min(_SHORTER, longer - 1)
    if not usual or not (shorter or frame.before or frame.after):
        return []
    content = (usual * longer)[:longer]
    return [[*frame.before, *content[:count], *frame.after] for count in (longer, shorter)]


class _Remarks(logging.Filter):
    """Nothing but errors of the library while a model of it is asked, and by whom it is."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _asking.get() or record.levelno >= logging.ERROR


_REMARKS = _Remarks()


@contextlib.contextmanager
def _unsaid() -> Iterator[None]:
    """Without remarks of `transformers`, such as that it pads by itself; other threads still hear theirs."""
    for handler in logging.getLogger("transformers").handlers:
        handler.addFilter(_REMARKS)
    token = _asking.set(True)
    try:
        yield
    finally:
        _asking.reset(token)


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
