"""`spigot pack`: a small copy of a trained system, to pass on."""

from pathlib import Path

from spigot_nlp.bundled import run_folder
from spigot_nlp.cli.console import say


def pack(run: Path, out: Path, /, *, base: str = "") -> None:
    """Make a small copy of a trained system: large tables in eight bits, the rest in half precision, nothing else.

    The copy is used like the run, and is about a quarter of its size; it cannot be trained on.

    Parameters
    ----------
    run
        The folder that spigot train made.
    out
        The folder to make.
    base
        A packed model that has some of the same parts, such as en: what both have is left out, and taken from there.
    """
    run_folder(run)  # refused before torch is loaded
    from spigot_nlp.models import checkpoint
    from spigot_nlp.training.packing import pack as packed

    folder = packed(run, out, base=base)
    if (folder / checkpoint.TAGGER).exists() and not (folder / checkpoint.LEMMAS).exists():
        say(
            f"{run} has no {checkpoint.LEMMAS}, and there is no training text with lemmas to learn it from, so "
            "its copy takes lemmas from a dictionary; set SPIGOT_DATA to the folder of its corpora, and pack it again."
        )
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    say(f"Wrote {folder}, {size:.1f} MB; spigot evaluate {folder} FILE says what it is worth.")
