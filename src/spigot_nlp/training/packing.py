r"""Trained systems made small: large tables in whole numbers of eight bits, the rest in half precision.

A matrix $W$ is kept as rows $q_i \in \{-127, \dots, 127\}^d$ and a scale $c_i$ for each, $W_i \approx c_i q_i$ with
$c_i = \max_j |W_{ij}| / 127$, so that no entry is off by more than half of $c_i$. When a folder is loaded, all of it is
in single precision again.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from spigot_nlp.bundled import base_folder, run_folder
from spigot_nlp.models import checkpoint

_LARGE = 4096
"""Smaller tensors are kept in half precision."""

_LEVELS = 127


def pack(run: str | os.PathLike[str], out: str | os.PathLike[str], *, base: str = "") -> Path:
    """Make a small copy of a trained system, in a folder that is loaded like a run.

    It cannot be trained on, and has none of the run's steps, scores and predictions.

    Args:
        run: The run folder.
        out: The folder to make; it must not be there yet.
        base: A packed model that has some of the same parts: what both have is left out, and taken from there when
            this one is loaded.

    Raises:
        FileExistsError: If the folder is there.
        ValueError: If the base was trained with other words.

    Example:
        >>> import tempfile
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> config = make_config({"stages": {"syntax": {"annotation": "trees"}}, "data": {"tags": "columns"}})
        >>> parser, folder = fresh(config, {"trees": [rain]}), Path(tempfile.mkdtemp())
        >>> checkpoint.save_start(folder / "run", parser)
        >>> checkpoint.write_tensors(folder / "run" / checkpoint.MODEL, parser.model.state_dict())
        >>> small = pack(folder / "run", folder / "small")
        >>> sorted(path.name for path in small.iterdir())
        ['config.toml', 'model.safetensors', 'vocab.json']
        >>> 3 < (folder / "run/model.safetensors").stat().st_size / (small / "model.safetensors").stat().st_size < 4
        True
        >>> from spigot_nlp.models import Parser
        >>> next(Parser.load(small, precision="float32").pipe([rain])).heads == next(parser.pipe([rain])).heads
        True
    """
    source, target = run_folder(run), Path(out)
    if target.exists():
        raise FileExistsError(f"{target} is there already; remove it, or choose another folder.")
    names, home = checkpoint.read_names(source), checkpoint.home(source)
    tensors = packed(checkpoint.read_parameters(source))
    plain = {"words": names["words"], "annotations": names["annotations"]}
    if base:
        below = base_folder(base)
        if checkpoint.read_names(below)["words"] != names["words"]:
            raise ValueError(f"{run} knows other words than {base}, so it cannot build on it; leave the base out.")
        known = checkpoint.read_parameters(below)
        tensors = {name: value for name, value in tensors.items() if not _same(value, known.get(name))}
        plain = {"base": base, "annotations": names["annotations"]}
    target.mkdir(parents=True)
    checkpoint.write_text(target / checkpoint.VOCAB, json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
    checkpoint.write_tensors(target / checkpoint.MODEL, tensors)
    shutil.copy(source / checkpoint.CONFIG, target / checkpoint.CONFIG)
    if base:
        return target
    if (home / "encoders").is_dir():  # what transformers need beside their weights
        shutil.copytree(home / "encoders", target / "encoders")
    for name in (checkpoint.TAGGER, checkpoint.LEMMAS):
        if (home / name).exists():
            shutil.copy(home / name, target / name)
    return target


def packed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors in fewer bits; whole numbers, truth values, and what is packed already as they are.

    Example:
        >>> small = packed({"table": torch.randn(100, 64), "bias": torch.zeros(7), "on": torch.ones(3) > 0})
        >>> {name: str(value.dtype).removeprefix("torch.") for name, value in small.items()}
        {'table': 'int8', 'table|scale': 'float32', 'bias': 'float16', 'on': 'bool'}
        >>> large = {"table": torch.randn(100, 64)}
        >>> error = (checkpoint.unpacked(packed(large))["table"] - large["table"]).abs().max()
        >>> bool(error <= large["table"].abs().max() / 253)
        True
    """
    found: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if not value.is_floating_point() or name.endswith(checkpoint.SCALE):
            found[name] = value
        elif value.dim() >= 2 and value.numel() >= _LARGE:
            rows = value.float().flatten(1)
            scale = rows.abs().amax(-1) / _LEVELS
            whole = rows / scale.clamp(min=torch.finfo(torch.float32).tiny).unsqueeze(-1)
            found[name] = whole.round().clamp(-_LEVELS, _LEVELS).to(torch.int8).view(value.shape)
            found[name + checkpoint.SCALE] = scale
        else:
            half = value.half()
            found[name] = half if half.isfinite().all() else value
    return found


def _same(one: Tensor, other: Tensor | None) -> bool:
    return other is not None and one.dtype == other.dtype and torch.equal(one, other)
