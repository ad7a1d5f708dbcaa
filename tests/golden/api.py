"""What golden values are computed with, besides the public names of `spigot`: the one place that a move edits.

The systems are imported where they are used: the values of the layer are to be had without them.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spigot
import spigot_nlp
from spigot import factors

COMMAND = (sys.executable, "-m", "spigot_nlp")
"""How the command line is called in a process of its own."""


def compiled() -> bool:
    """Whether the kernels run here."""
    return spigot.kernels.available


def public_modules() -> Mapping[str, Any]:
    """The modules whose public names are kept."""
    return {"spigot": spigot, "spigot.factors": factors}


def load(model: str, precision: str | None) -> Any:
    """A model that comes with the systems, in its usual precision or another: a function from texts to documents."""
    return spigot_nlp.load(model) if precision is None else spigot_nlp.load(model, precision=precision)  # pyright: ignore


def run_command(*words: str | Path | int) -> None:
    """Run a command line in this process."""
    from spigot_nlp import cli

    code = cli.main(list(map(str, words)))
    assert code == 0, f"{words} ended with {code}"


def read_sentences(model: str, file: Path, out: Path, precision: str) -> None:
    """Parse a file of sentences, which are cut into words already."""
    run_command("parse", model, file, "--out", out, "--precision", precision, "--threads", 1)
