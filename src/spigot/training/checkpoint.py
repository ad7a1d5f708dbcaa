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

from spigot.config import Config, resolved_config
from spigot.data.files import written
from spigot.data.tagger import Tagger
from spigot.data.vocab import Vocab
from spigot.models.joint import joint_model
from spigot.models.parser import Parser

CONFIG, VOCAB, TAGGER, MODEL = "config.toml", "vocab.json", "tagger.safetensors", "model.safetensors"
STATE, STEPS, TIMES, SCORES = "checkpoint.safetensors", "steps.jsonl", "times.jsonl", "scores.json"


def load(run: str | os.PathLike[str]) -> Parser:
    """The trained system in a run folder.

    Args:
        run: The folder that `train` made.

    Example:
        >>> import tempfile
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> from spigot.models.joint import JointParser
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab, config = Vocab.of([rain]), resolved_config({"data": {"tags": "columns"}})
        >>> folder = Path(tempfile.mkdtemp())
        >>> parser = Parser(config, vocab, JointParser(config, vocab))
        >>> save_start(folder, parser)                          # what a training does before its first step,
        >>> write_tensors(folder / MODEL, parser.model.state_dict())    # and whenever its dev score gets better
        >>> list(load(folder).parse([rain])) == list(parser.parse([rain]))
        True
    """
    parser = open_run(run)
    parser.model.load_state_dict(_checked(parser, read_tensors(Path(run) / MODEL)[0], Path(run) / MODEL))
    return parser


def open_run(run: str | os.PathLike[str]) -> Parser:
    """The system of a run folder before its parameters are read."""
    folder = Path(run)
    config = read_config(folder)
    try:
        vocab = Vocab.from_json((folder / VOCAB).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} has no {VOCAB}; the training stopped before its first step.") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{folder / VOCAB} is damaged ({error}); restore it or train again.") from None
    tagger = Tagger.load(folder / TAGGER) if config.data.tags == "predicted" else None
    return Parser(config, vocab, joint_model(config, vocab), tagger)


def save_start(folder: Path, parser: Parser) -> None:
    """Write what does not change during a training."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / VOCAB, parser.vocab.to_json())
    if parser.tagger is not None:
        parser.tagger.save(folder / TAGGER)
    write_config(folder / CONFIG, parser.config)


def write_config(path: Path, config: Config) -> None:
    """Write a configuration as TOML; that has no null, so what is unset is left out.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / CONFIG
        >>> write_config(path, Config(name="mine"))
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
        return resolved_config(tomllib.loads((folder / CONFIG).read_text(encoding="utf-8")), where=str(folder / CONFIG))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{folder / CONFIG} is damaged ({error}); restore it or train again.") from None


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
