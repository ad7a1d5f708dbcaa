"""How golden values are kept, and how near another computation must come."""

import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

FOLDER = Path(__file__).parent / "values"

Kind = Literal["exact", "close", "iterated"]
"""Decisions, and other whole numbers; what is computed in a fixed number of steps; what stops at a small gap."""

TOLERANCES = {
    ("close", "float64"): 1e-9,
    ("close", "float32"): 1e-4,
    ("close", "bfloat16"): 2e-2,
    ("iterated", "float64"): 1e-6,
    ("iterated", "float32"): 5e-3,
}
"""Relative and absolute, by the kind of a value and the precision it was computed in."""


@dataclass(frozen=True)
class Value:
    """A result by name."""

    name: str
    tensor: Tensor
    kind: Kind

    def array(self) -> np.ndarray:
        """The numbers; those of half precision in float32, whole ones in a byte each."""
        tensor = self.tensor.detach()
        if self.kind == "exact":
            array = tensor.double().numpy()
            assert (array == array.round()).all(), f"{self.name} is not whole"
            assert abs(array).max(initial=0) < 127, f"{self.name} is too large"
            return array.astype(np.int8)
        return tensor.float().numpy() if tensor.element_size() == 2 else tensor.numpy()

    def tolerance(self) -> float:
        precision = str(self.tensor.dtype).removeprefix("torch.")
        return 0.0 if self.kind == "exact" else TOLERANCES[self.kind, precision]


def write_values(path: Path, values: Iterable[Value]) -> None:
    """Write arrays: those of one type behind each other, and a table of names and shapes."""
    groups: dict[str, list[np.ndarray]] = {"int8": [], "float32": [], "float64": []}
    table = []
    for value in values:
        array = value.array()
        groups[array.dtype.name].append(_shortened(array).ravel())
        table.append([value.name, array.dtype.name, list(array.shape)])
    whole = {name: np.concatenate([np.zeros(0, name), *arrays]).astype(name) for name, arrays in groups.items()}
    words = np.frombuffer(json.dumps(table, separators=(",", ":")).encode(), np.uint8)
    np.savez_compressed(path, table=words, allow_pickle=False, **whole)


def read_values(path: Path) -> dict[str, np.ndarray]:
    """What `write_values` wrote, by name."""
    with np.load(path) as file:
        table = json.loads(file["table"].tobytes())
        groups = {name: file[name] for name in ("int8", "float32", "float64")}
    found, at = {}, dict.fromkeys(groups, 0)
    for name, group, shape in table:
        size = int(np.prod(shape))
        found[name] = groups[group][at[group] : at[group] + size].reshape(shape)
        at[group] += size
    return found


def differences(values: Iterable[Value], golden: Mapping[str, np.ndarray]) -> list[str]:
    """In words, where computed values differ from golden ones, of which each must be there."""
    found, missing = [], dict(golden)
    for value in values:
        array, expected = value.array(), missing.pop(value.name, None)
        if expected is None:
            found.append(f"{value.name} has no golden value")
        elif array.shape != expected.shape:
            found.append(f"{value.name} has shape {array.shape}, and had {expected.shape}")
        else:
            near = value.tolerance()
            wrong = ~np.isclose(array.astype(float), expected.astype(float), rtol=near, atol=near, equal_nan=True)
            if wrong.any():
                worst = np.abs(array.astype(float) - expected)[wrong].max()
                found.append(f"{value.name}: {wrong.sum()} of {wrong.size} numbers differ, by up to {worst:.2g}")
    return found + [f"{name} is not computed any more" for name in missing]


def write_text(path: Path, text: str) -> None:
    """Write a compressed text: by LZMA, which finds that long parts of it are alike."""
    path.write_bytes(lzma.compress(text.encode(), preset=9))


def read_text(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode()


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _shortened(array: np.ndarray) -> np.ndarray:
    """Numbers of float64 to 11 digits, which leaves zeros that compress."""
    if array.dtype != np.float64:
        return array
    mantissa, exponent = np.frexp(array)
    return np.where(np.isfinite(array), np.ldexp(np.round(mantissa * 2.0**37) / 2.0**37, exponent), array)
