"""Make golden values: `python -m tests.golden.make FOLDER [GROUP ...]`, in whichever commit is to be the reference.

Groups are layer, names, parses and trainings; all of them if none is named.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import spigot
from tests.golden import layer, parses, stored, trainings
from tests.golden.api import compiled
from tests.golden.instances import STRUCTURES, Case
from tests.golden.names import public_names


def make_layer(folder: Path) -> None:
    """The values of the layer; those that torch alone draws otherwise by a process without kernels."""
    assert compiled(), "the kernels must run; see spigot.kernels.status()"
    for case in STRUCTURES:
        _refuse_near_ties(case)
    stored.write_values(folder / "layer.npz", layer.everything())
    words = [sys.executable, "-m", "tests.golden.make", str(folder), "drawn"]
    subprocess.run(words, env={**os.environ, "SPIGOT_NATIVE": "0"}, check=True)


def make_drawn(folder: Path) -> None:
    """What is drawn without kernels."""
    assert not compiled()
    drawn = (value for value in layer.everything() if layer.is_drawn(value.name))
    stored.write_values(folder / "layer-without-kernels.npz", drawn)


def make_names(folder: Path) -> None:
    stored.write_json(folder / "names.json", public_names())


def make_parses(folder: Path) -> None:
    found = {"written": parses.written(), "documents": parses.documents()}
    stored.write_text(folder / "parses.json.xz", json.dumps(found, ensure_ascii=False, indent=0))


def make_trainings(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as runs:
        found = {name: trainings.train(name, Path(runs, name)) for name in trainings.TRAININGS}
    stored.write_text(folder / "trainings.json.xz", json.dumps(found, indent=0))


GROUPS = {"layer": make_layer, "names": make_names, "parses": make_parses, "trainings": make_trainings}


def _refuse_near_ties(case: Case) -> None:
    """An error if scores that differ by a little have another argmax, or members of almost the same score."""
    structure = case.structure
    for instance in case.instances():
        scores, mask = instance.scores(torch.float64), instance.mask
        z = structure.argmax(scores, mask)
        near = (structure.argmax(scores + 1e-5 * instance.other(f"near {k}", scores.dtype), mask) for k in range(10))
        tied = any(not torch.allclose(z, other) for other in near)
        if isinstance(structure, spigot.AbstractRankedStructure):
            best = structure.k_best(scores, 5, mask)[1]
            tied = tied or bool((best[:-1] - best[1:] < 1e-5).any())
        if tied:
            raise ValueError(f"{case.name}/{instance.name} has a near-tie; give the case another seed.")


def main(words: list[str]) -> None:
    folder, *groups = words
    Path(folder).mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for group in groups or GROUPS:
        {**GROUPS, "drawn": make_drawn}[group](Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
