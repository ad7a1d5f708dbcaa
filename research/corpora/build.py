"""What the scripts share: their options, what they need, and a folder whose files appear together."""

import argparse
import filecmp
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spigot_nlp.data import Sentence, write


def arguments(name: str, about: str) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    found = argparse.ArgumentParser(prog=f"python -m research.corpora.{name}", description=about.partition("\n")[0])
    found.add_argument("--out", type=Path, required=True, metavar="DATA", help="the folder that holds your corpora")
    found.add_argument("--replace", action="store_true", help="other files in the place of these may go")
    return found


def run(main: Callable[[], None]) -> None:
    """Run a script; what went wrong is said in a line."""
    try:
        main()
    except (OSError, ValueError, ImportError) as error:
        sys.exit(f"research.corpora: {error}")


def require(folder: Path, how: str, *paths: str) -> None:
    """Refuse to go on without what is built from.

    Args:
        folder: What was given.
        how: How to get it, as a command.
        paths: What it should have.

    Raises:
        FileNotFoundError: If something of it is missing.
    """
    for path in (".", *paths):
        if not (folder / path).exists():
            raise FileNotFoundError(f"there is no {folder / path}; get it: {how}")


class Target:
    """The folder of a corpus, as a context. Its files are written beside their place, and take it together at the end.

    Args:
        out: The folder that holds the corpora.
        name: What this one is called; its folder, too.
        replace: Whether files in the place of its own that differ may go; otherwise nothing is changed.
        sources: The clones that it is built from, whose commits are printed.
    """

    def __init__(self, out: Path, name: str, *, replace: bool, sources: Iterable[Path] = ()) -> None:
        self.folder = out / name
        self.replace = replace
        self.sources = sources
        self.counts: dict[str, str] = {}
        self.beside = out / f".{name}.{secrets.token_hex(4)}.tmp"

    def __enter__(self) -> "Target":
        self.beside.mkdir(parents=True)
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        try:
            if failed is None:
                self._take_place()
        finally:
            shutil.rmtree(self.beside, ignore_errors=True)

    def write(self, name: str, sentences: Iterable[Sentence], format: str | None = None) -> int:
        """Write sentences to a file, and count them."""
        words = arcs = 0

        def counted() -> Iterator[Sentence]:
            nonlocal words, arcs
            for sentence in sentences:
                words += len(sentence)
                arcs += len(sentence.graph.arcs) if sentence.graph is not None and name.endswith(".sdp") else 0
                yield sentence

        number = write(counted(), self.beside / name, format)
        self.counts[name] = f"{number:,} sentences, {words:,} words" + (f", {arcs:,} arcs" if arcs else "")
        return number

    def copy(self, path: Path) -> None:
        """Take over a licence, if there is one."""
        if path.is_file():
            shutil.copyfile(path, self.beside / path.name)

    def _take_place(self) -> None:
        made = sorted(path.name for path in self.beside.iterdir())
        there = [name for name in made if (self.folder / name).exists()]
        _, other, _ = filecmp.cmpfiles(self.folder, self.beside, there, shallow=False)
        if other and not self.replace:
            raise FileExistsError(
                f"{self.folder / other[0]} is there, and is not what would be written; choose another --out, move it "
                f"away, or give --replace."
            )
        for folder in self.sources:
            print(f"from {folder}{_commit(folder)}")
        self.folder.mkdir(exist_ok=True)
        for name in made:
            digest = hashlib.sha256((self.beside / name).read_bytes()).hexdigest()
            os.replace(self.beside / name, self.folder / name)
            print(f"{digest}  {self.folder / name}", *filter(None, (self.counts.get(name),)), sep="  ")


def _commit(folder: Path) -> str:
    """Which state of a clone is there."""
    if not (folder / ".git").exists():
        return ""
    words = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f" at {done.stdout.strip()}" if done.returncode == 0 else ""
