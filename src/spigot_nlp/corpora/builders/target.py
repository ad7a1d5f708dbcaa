"""Where a corpus goes: a folder whose files appear together, and a manifest that says where they come from."""

import contextlib
import filecmp
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

from spigot_nlp.corpora.builders.sources import Origin
from spigot_nlp.data.formats import guess, write
from spigot_nlp.data.formats.files import written
from spigot_nlp.data.sentence import Sentence

MANIFEST = "manifest.json"
"""The file beside a corpus that says what it is."""


@dataclass(frozen=True)
class Part:
    """One file of a corpus, in numbers.

    Attributes:
        sentences: How many it has; for vectors, how many words.
        words: How many words these have; nothing for vectors.
        arcs: How many arcs their graphs have; `None` for files of something else.
        digest: The SHA-256 of the file.

    Example:
        >>> Part(sentences=2, words=9).arcs is None
        True
    """

    sentences: int
    words: int
    arcs: int | None = None
    digest: str = ""


@dataclass(frozen=True)
class Built:
    """A corpus that was built.

    Attributes:
        corpus: Its name.
        folder: Where it is.
        origins: What it was built from.
        licence: What the result may be used for.
        options: What was chosen.
        parts: Its files.
        counts: What else there is to say in numbers: what could not be used, and why.
        unchanged: Whether every file was there already, the same.

    Example:
        >>> built = Built("rain", Path("data/rain"), (), "public domain", parts={"train.sdp": Part(2, 9, 5)})
        >>> built.manifest()["files"]["train.sdp"]["arcs"]
        5
    """

    corpus: str
    folder: Path
    origins: tuple[Origin, ...]
    licence: str
    options: Mapping[str, object] = field(default_factory=dict)
    parts: Mapping[str, Part] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    unchanged: bool = False

    def manifest(self) -> dict[str, object]:
        """What is written beside the corpus: no times and no folders, so that equal corpora have equal ones."""
        from spigot import __version__

        files = {name: {k: v for k, v in asdict(part).items() if v is not None} for name, part in self.parts.items()}
        return {
            "corpus": self.corpus,
            "spigot": __version__,
            "licence": self.licence,
            "built from": [asdict(origin) for origin in self.origins],
            "options": dict(self.options),
            "files": files,
            "counts": dict(self.counts),
        }


class Target:
    """A corpus in the making. Its files are written beside their place, and take it together at the end.

    Args:
        out: The folder that holds the corpora.
        name: What this one is called; its folder, too.
        replace: Whether other files that stand in the place of its own may go.
        manifest: What its manifest is called, where several corpora share a folder.

    Example:
        >>> import tempfile
        >>> with Target(tempfile.mkdtemp(), "rain") as target:
        ...     target.write("train.txt", [Sentence(("Rain", "fell"))])
        ...     built = target.finish((), "public domain")
        >>> built.parts["train.txt"].words, (built.folder / "train.txt").read_text()
        (2, 'Rain fell\\n')
        >>> sorted(path.name for path in built.folder.iterdir())
        ['manifest.json', 'train.txt']
    """

    def __init__(self, out: str | Path, name: str, *, replace: bool = False, manifest: str = MANIFEST) -> None:
        self.folder = Path(out) / name
        self.name = name
        self.manifest = manifest
        self.replace = replace
        self.parts: dict[str, Part] = {}
        self._beside = Path(out) / f".{name}.{secrets.token_hex(4)}.tmp"

    def __enter__(self) -> "Target":
        for place in (self.folder, self.folder.parent):
            if place.exists() and not place.is_dir():
                raise NotADirectoryError(f"{place} is a file; choose another --out for the corpus.")
        self._beside.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._beside, ignore_errors=True)

    def write(self, name: str, sentences: Iterable[Sentence], format: str | None = None) -> None:
        """Write sentences to a file, and count them.

        Args:
            name: The file.
            sentences: What to write.
            format: Its format, if the name does not tell.
        """
        style = format or guess(name)
        words = arcs = 0

        def counted() -> Iterator[Sentence]:
            nonlocal words, arcs
            for sentence in sentences:
                words += len(sentence)
                arcs += len(sentence.graph.arcs) if sentence.graph is not None else 0
                yield sentence

        number = write(counted(), self._beside / name, style)
        self.note(name, number, words, arcs if style.startswith("sdp") else None)

    def copy(self, path: Path, name: str) -> None:
        """Take a file over as it is, such as a licence; nothing happens if there is none."""
        if path.is_file():
            shutil.copyfile(path, self._beside / name)

    @contextlib.contextmanager
    def file(self, name: str) -> Iterator[BinaryIO]:
        """A file to write bytes to, gzipped if its name says so. `note` tells what was written."""
        with written(self._beside / name) as file:
            yield file

    def note(self, name: str, sentences: int, words: int, arcs: int | None = None) -> None:
        """Remember what a file holds."""
        with (self._beside / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.parts[name] = Part(sentences, words, arcs, digest)

    def finish(
        self,
        origins: Iterable[Origin],
        licence: str,
        *,
        options: Mapping[str, object] | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> Built:
        """Put the files in their place, with a manifest.

        Raises:
            FileExistsError: If another file stands in the place of one, which is not to be replaced. Then nothing is
                changed.
        """
        made = sorted(path.name for path in self._beside.iterdir())
        same = {name for name in made if _equal(self.folder / name, self._beside / name)}
        other = [name for name in made if name not in same and (self.folder / name).exists()]
        if other and not self.replace:
            raise FileExistsError(
                f"{self.folder / other[0]} is there already, and is not what would be written; "
                f"choose another --out, move it away, or give --replace."
            )
        unchanged = len(same) == len(made)
        built = Built(
            self.name, self.folder, tuple(origins), licence, options or {}, self.parts, counts or {}, unchanged
        )
        text = json.dumps(built.manifest(), indent=2, ensure_ascii=False) + "\n"
        (self._beside / self.manifest).write_text(text, encoding="utf-8")
        if not self.folder.exists():
            os.rename(self._beside, self.folder)
            return built
        for name in (*(name for name in made if name not in same), self.manifest):
            os.replace(self._beside / name, self.folder / name)
        return built


def _equal(there: Path, made: Path) -> bool:
    return there.is_file() and filecmp.cmp(there, made, shallow=False)
