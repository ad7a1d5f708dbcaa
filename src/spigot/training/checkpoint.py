"""Runs on disk: a folder with everything needed to use, repeat or continue a training. Loading never runs code."""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from spigot.annotations import ANNOTATIONS
from spigot.config import Config, resolved_config
from spigot.data.formats.files import written
from spigot.data.tagging.tagger import Tagger
from spigot.data.vocab import Vocab
from spigot.encoders import AbstractEncoder, Precision
from spigot.models.parser import Parser
from spigot.models.system import System

CONFIG, VOCAB, TAGGER, MODEL = "config.toml", "vocab.json", "tagger.safetensors", "model.safetensors"
_EARLIER = "{0} was trained by an earlier version, before there were stages; train it again, its settings still hold."
STATE, STEPS, TIMES, SCORES = "checkpoint.safetensors", "steps.jsonl", "times.jsonl", "scores.json"


class _EarlierRun(ValueError):
    """A run of a version that knew no stages."""


def load(
    run: str | os.PathLike[str], device: torch.device | str = "cpu", *, precision: Precision = "float32"
) -> Parser:
    """The trained system in a run folder.

    Args:
        run: The folder that `train` made.
        device: Where it is to compute; it need not be where it was trained.
        precision: What its encoders are to compute in.

    Example:
        >>> import tempfile
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> from spigot.config import make_config
        >>> from spigot.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> config, folder = make_config({"data": {"tags": "columns"}}), Path(tempfile.mkdtemp())
        >>> parser = fresh(config, {"graphs": [rain]})
        >>> save_start(folder, parser)                          # what a training does before its first step,
        >>> write_tensors(folder / MODEL, parser.model.state_dict())    # and whenever its dev score gets better
        >>> list(load(folder).parse([rain])) == list(parser.parse([rain]))
        True
    """
    parser = open_run(run)
    parser.model.load_state_dict(_checked(parser, read_tensors(Path(run) / MODEL)[0], Path(run) / MODEL))
    parser.model.to(device)
    parser.model.compute_in(precision)
    return parser


def open_run(run: str | os.PathLike[str]) -> Parser:
    """The system of a run folder before its parameters are read."""
    folder = Path(run)
    config = read_config(folder)
    try:
        names = json.loads((folder / VOCAB).read_text(encoding="utf-8"))
        if "annotations" not in names and "roles" in names:
            raise _EarlierRun(_EARLIER.format(folder))
        vocab = Vocab.from_plain(names["words"])
        annotations = {
            stage: ANNOTATIONS.find(settings.annotation).restored(names["annotations"][stage])
            for stage, settings in config.stages.items()
        }
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} has no {VOCAB}; the training stopped before its first step.") from None
    except _EarlierRun:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{folder / VOCAB} is damaged ({error}); restore it or train again.") from None
    tagger = Tagger.load(folder / TAGGER) if config.data.tags == "predicted" else None
    return Parser(config, vocab, System(config, vocab, annotations, run=folder), tagger)


def save_start(folder: Path, parser: Parser) -> None:
    """Write what does not change during a training."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {stage: annotation.names() for stage, annotation in parser.model.annotations.items()}
    names = {"words": parser.vocab.plain(), "annotations": known}
    write_text(folder / VOCAB, json.dumps(names, ensure_ascii=False))
    if parser.tagger is not None:
        parser.tagger.save(folder / TAGGER)
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
        >>> read_config(Path("nowhere"))
        Traceback (most recent call last):
        FileNotFoundError: nowhere is no run folder: it has no config.toml. Train one with spigot train.
    """
    if not (folder / CONFIG).exists():
        raise FileNotFoundError(f"{folder} is no run folder: it has no {CONFIG}. Train one with spigot train.")
    try:
        values = tomllib.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{folder / CONFIG} is damaged ({error}); restore it or train again.") from None
    if "stages" not in values and "training" in values:
        raise _EarlierRun(_EARLIER.format(folder))
    if not values.get("stages"):
        raise ValueError(f"{folder / CONFIG} is damaged (it has no stages); restore it or train again.")
    return resolved_config(values, where=str(folder / CONFIG))


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
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
            about = json.loads((file.metadata() or {}).get("about", "{}"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no {path}; the training has not got that far. Resume it first.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is not a whole checkpoint ({error}); restore it or train again.") from None
    return tensors, about


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


def _checked(parser: Parser, tensors: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    wanted = {name: value.shape for name, value in parser.model.state_dict().items()}
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
