"""Runs on disk: a folder with everything needed to use, repeat or continue a training. Loading never runs code."""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from spigot_nlp.annotations import ANNOTATIONS
from spigot_nlp.bundled import base_folder, run_folder
from spigot_nlp.config.experiment import Config
from spigot_nlp.data.formats.files import written
from spigot_nlp.data.tagging.lemmas import LemmaTable
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import AbstractEncoder
from spigot_nlp.models.system import System
from spigot_nlp.toml import brief

if TYPE_CHECKING:
    from spigot_nlp.models.parser import Parser

CONFIG, VOCAB, TAGGER, MODEL = "config.toml", "vocab.json", "tagger.safetensors", "model.safetensors"
LEMMAS = "lemmas.json"
SCALE = "|scale"
"""Behind the name of a matrix of whole numbers, the name of its scales; see `spigot_nlp.training.packing`."""
STATE, STEPS, TIMES, SCORES = "checkpoint.safetensors", "steps.jsonl", "times.jsonl", "scores.json"


class _Undrawn(TorchFunctionMode):
    """Leaves out the drawing of random numbers: parameters that are read do not need them, and they take longer."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWING:  # those of torch.nn.init hand over what they fill by its name
            return args[0] if args else kwargs["tensor"]
        # Whoever draws until a number is in range is content with these.
        if func is Tensor.normal_:
            return args[0].fill_(args[1] if len(args) > 1 else kwargs.get("mean", 0))
        if func is Tensor.uniform_:
            return args[0].fill_(args[1] if len(args) > 1 else kwargs.get("from", 0))
        if func is torch.linalg.qr:  # what makes drawn numbers orthogonal
            return args[0], args[0][: args[0].shape[-1]]
        return func(*args, **kwargs)


_DRAWING = (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)


def read_run(folder: Path) -> tuple[Config, Vocab, System, Tagger | None, LemmaTable | None]:
    """What a parser is made of, from the folder of a run; the parameters are still to be read."""
    config = read_config(folder)
    if not (folder / VOCAB).exists():
        raise FileNotFoundError(f"{folder} has no {VOCAB}; the training stopped before its first step.")
    try:
        names = read_names(folder)
        vocab = Vocab.from_plain(names["words"])
        annotations = {
            stage: ANNOTATIONS.find(settings.annotation).restored(names["annotations"][stage])
            for stage, settings in config.stages.items()
        }
    except FileNotFoundError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{folder / VOCAB} is damaged ({brief(error)}); restore it or train again.") from None
    source = home(folder)
    tagger = Tagger.load(source / TAGGER) if config.data.tags == "predicted" else None
    lemmas = LemmaTable.load(source / LEMMAS, vocab.word_index) if tagger and (source / LEMMAS).exists() else None
    return config, vocab, System(config, vocab, annotations, run=folder), tagger, lemmas


def read_trained(folder: Path, device: torch.device) -> tuple[Config, Vocab, System, Tagger | None, LemmaTable | None]:
    """The same with its parameters, on a device."""
    with _Undrawn():
        config, vocab, model, tagger, lemmas = read_run(folder)
    model.load_state_dict(_checked(model, unpacked(read_parameters(folder)), folder / MODEL))
    return config, vocab, model.to(device), tagger, lemmas


def read_names(folder: Path) -> dict[str, Any]:
    """What a run calls things: its words, and the names of each stage's annotation.

    A packed model may build on another one, its `base`, and has that one's words.
    """
    names = json.loads((folder / VOCAB).read_text(encoding="utf-8"))
    if not isinstance(names, dict):
        raise ValueError("it is no object")
    if "base" in names:
        names["words"] = read_names(base_folder(names["base"]))["words"]
    return names


def home(folder: Path) -> Path:
    """Where a run has its words, tagger and lemmas: in its own folder, or in that of the model that it builds on."""
    base = json.loads((folder / VOCAB).read_text(encoding="utf-8")).get("base")
    return folder if base is None else home(base_folder(base))


def read_parameters(folder: Path) -> dict[str, Tensor]:
    """The parameters of a run as they were written, with those of the model that it builds on."""
    tensors = read_tensors(folder / MODEL)[0]
    base = json.loads((folder / VOCAB).read_text(encoding="utf-8")).get("base")
    return tensors if base is None else {**read_parameters(base_folder(base)), **tensors}


def unpacked(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Parameters that were made small, as they were but for rounding; others as they are.

    Example:
        >>> unpacked({"table": torch.tensor([[2, -1]], dtype=torch.int8), "table|scale": torch.tensor([0.5])})
        {'table': tensor([[ 1.0000, -0.5000]])}
    """
    found = {}
    for name, value in tensors.items():
        if name + SCALE in tensors:
            scale = tensors[name + SCALE].float()
            found[name] = value.float() * scale.view(-1, *(1 for _ in value.shape[1:]))
        elif not name.endswith(SCALE):
            found[name] = value.float() if value.dtype == torch.half else value
    return found


def save_start(folder: Path, parser: "Parser") -> None:
    """Write what does not change during a training."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {stage: annotation.names() for stage, annotation in parser.model.annotations.items()}
    names = {"words": parser.vocab.plain(), "annotations": known}
    write_text(folder / VOCAB, json.dumps(names, ensure_ascii=False))
    if parser.tagger is not None:
        parser.tagger.save(folder / TAGGER)
    if parser.lemmas is not None:
        parser.lemmas.save(folder / LEMMAS)
    for module in parser.model.modules():
        if isinstance(module, AbstractEncoder):
            module.save(folder)
    write_config(folder / CONFIG, parser.config)


def write_config(path: Path, config: Config) -> None:
    """Write a configuration as TOML; that has no null, so what is unset is left out.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / CONFIG
        >>> write_config(path, Config.model_validate({"name": "mine", "stages": {"syntax": {"annotation": "trees"}}}))
        >>> read_config(path.parent).name
        'mine'
    """
    write_text(path, tomli_w.dumps(config.model_dump(mode="json", exclude_none=True)))


def read_config(folder: Path) -> Config:
    """The resolved configuration of a run.

    Raises:
        FileNotFoundError: If the folder has none, and so is no run.

    Example:
        >>> read_config(Path("nowhere"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        FileNotFoundError: nowhere is no run folder: it has no config.toml. Train one with spigot train...
    """
    folder = run_folder(folder)
    try:
        values = tomllib.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{folder / CONFIG} is damaged ({brief(error)}); restore it or train again.") from None
    if not values.get("stages"):
        raise ValueError(f"{folder / CONFIG} is damaged (it has no stages); restore it or train again.")
    try:
        return Config.model_validate(values)
    except ValidationError:
        from spigot_nlp.config.load import resolved_config

        return resolved_config(values, where=str(folder / CONFIG))  # which says what is wrong


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> None:
    """Write tensors, and plain values beside them, in one piece or not at all.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "some.safetensors"
        >>> write_tensors(path, {"weight": torch.ones(2)}, {"epoch": 3})
        >>> read_tensors(path)
        ({'weight': tensor([1., 1.])}, {'epoch': 3})
    """
    plain = {name: value.detach().contiguous() for name, value in tensors.items()}
    with written(path) as file:
        file.write(save(plain, {"about": json.dumps(about or {})}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_tensors` wrote."""
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        return tensors, _about(file)


def read_about(path: Path) -> dict[str, Any]:
    """The plain values beside tensors that `write_tensors` wrote, which takes no time.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "some.safetensors"
        >>> write_tensors(path, {"weight": torch.ones(2)}, {"epoch": 3})
        >>> read_about(path)
        {'epoch': 3}
    """
    with _opened(path) as file:
        return _about(file)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no {path}; the training has not got that far. Resume it first.") from None
    except (SafetensorError, OSError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole checkpoint ({brief(error)}); restore it or train again.") from None


def _about(file: Any) -> dict[str, Any]:
    about = json.loads((file.metadata() or {}).get("about", "{}"))
    if not isinstance(about, dict):
        raise ValueError("what stands beside its tensors is no object")
    return about


def write_text(path: Path, text: str) -> None:
    """Write a text file in one piece or not at all.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "notes.txt"
        >>> write_text(path, "It rained.")
        >>> path.read_text()
        'It rained.'
    """
    with written(path) as file:
        file.write(text.encode())


def _checked(model: System, tensors: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    wanted = {name: value.shape for name, value in model.state_dict().items()}
    found = {name: value.shape for name, value in tensors.items()}
    wrong = [name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)]
    if wrong:
        raise ValueError(
            f"{path} does not fit {CONFIG} and {VOCAB} beside it: {sorted(wrong)[0]} differs. "
            "Restore the three together."
        )
    if any(value.is_floating_point() and not torch.isfinite(value).all() for value in tensors.values()):
        raise ValueError(f"{path} has parameters that are not numbers; restore it or train again.")
    return tensors
