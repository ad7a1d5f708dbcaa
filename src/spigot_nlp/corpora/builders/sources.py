"""What a corpus is built from: folders of other people's files, where to get them, and which state of them is there."""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")
_PATIENCE = 60  # seconds that git may take


class Watch(Protocol):
    """Passes on what is being worked on, and may show how far that is."""

    def __call__(self, items: Iterable[_Item], description: str, *, total: int | None = None) -> Iterator[_Item]:
        """The items, one after another."""
        ...


def unwatched(items: Iterable[_Item], description: str, *, total: int | None = None) -> Iterator[_Item]:
    """Pass items on and show nothing.

    Example:
        >>> list(unwatched([1, 2], "counting"))
        [1, 2]
    """
    yield from items


@dataclass(frozen=True)
class Origin:
    """Which state of which material a corpus was built from.

    Attributes:
        name: What it is called.
        address: Where it is published.
        licence: Under which terms, in a few words.
        commit: The commit that the folder had checked out; empty if it is no clone.
        changed: Whether the files that were read differ from those of the commit.

    Example:
        >>> Origin("Rain", "https://example.org/rain", "public domain").commit
        ''
    """

    name: str
    address: str
    licence: str
    commit: str = ""
    changed: bool = False


@dataclass(frozen=True)
class Material:
    """Something published that corpora are built from.

    Attributes:
        name: What it is called.
        address: Where it is published.
        licence: Under which terms, in a few words.
        how: How to get it, as a command or the end of a sentence.

    Example:
        >>> rain = Material("Rain", "https://example.org/rain", "public domain", "git clone https://example.org/rain")
        >>> rain.require("no-such-folder")
        Traceback (most recent call last):
        FileNotFoundError: there is no folder no-such-folder; it should hold Rain: git clone https://example.org/rain
    """

    name: str
    address: str
    licence: str
    how: str

    @classmethod
    def repository(cls, address: str, licence: str) -> "Material":
        """What is published as a repository.

        Example:
            >>> Material.repository("https://example.org/weather/rain", "public domain").how
            'git clone https://example.org/weather/rain'
        """
        return cls(address.rpartition("/")[2], address, licence, f"git clone {address}")

    def require(self, folder: str | Path, *paths: str) -> Path:
        """The folder, if it is there and holds these paths.

        Raises:
            FileNotFoundError: If not, with what to do.
        """
        folder = Path(folder)
        if not folder.is_dir():
            what = "is a file, not a folder" if folder.exists() else ""
            lead = f"{folder} {what}" if what else f"there is no folder {folder}"
            raise FileNotFoundError(f"{lead}; it should hold {self.name}: {self.how}")
        for path in paths:
            if not (folder / path).exists():
                raise FileNotFoundError(f"{folder} has no {path}; it should hold all of {self.name}: {self.how}")
        return folder

    def origin(self, folder: Path, *paths: str) -> Origin:
        """Which state of it a folder holds.

        Args:
            folder: The folder.
            paths: What was read of it.
        """
        # A folder inside somebody's repository, unpacked there, must not be taken for a clone of its own.
        if _git(folder, "rev-parse", "--show-prefix") != "":
            return Origin(self.name, self.address, self.licence)
        commit = _git(folder, "rev-parse", "HEAD") or ""
        changed = bool(commit) and _git(folder, "diff", "--quiet", "HEAD", "--", *paths) is None
        return Origin(self.name, self.address, self.licence, commit, changed)


def _git(folder: Path, *words: str) -> str | None:
    """What git says; `None` if it says no, or is not there."""
    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run(
            [git, "-C", str(folder), *words], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
