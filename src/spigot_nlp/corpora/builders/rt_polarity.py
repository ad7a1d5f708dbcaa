"""Snippets of film reviews, good or bad, divided into parts that share no text."""

import hashlib
from pathlib import Path

from spigot_nlp.corpora.builders.sources import Material, Watch, unwatched
from spigot_nlp.corpora.builders.target import Built, Target
from spigot_nlp.data.sentence import Sentence

SNIPPETS = Material(
    "Sentence Polarity Dataset v1.0",
    "https://www.cs.cornell.edu/people/pabo/movie-review-data",
    "CC BY 4.0, as nltk_data states; cite Pang and Lee (2005)",
    "unpack https://www.cs.cornell.edu/people/pabo/movie-review-data/rt-polaritydata.tar.gz",
)
_FILES = {0: "rt-polarity.neg", 1: "rt-polarity.pos"}
_PARTS = ("test", "dev", *("train",) * 8)
"""One in ten for each of the first two."""


def rt_polarity(folder: str | Path, out: str | Path, *, replace: bool = False, watch: Watch = unwatched) -> Built:
    """Build `rt-polarity`: a label and a snippet on each line, 0 for bad and 1 for good.

    There is no official division. Which part a snippet falls into follows from its words alone, so that copies of one
    text stay together, and everybody gets the same parts. The snippets are those of the Stanford Sentiment Treebank:
    who trains on them must not test there.

    Args:
        folder: What holds the two files, itself or in a folder `rt-polaritydata`.
        out: The folder that holds the corpora.
        replace: Whether other files in the place of these may go.
        watch: Shows how far it is.

    Raises:
        FileNotFoundError: If a file is missing.
        FileExistsError: If other files are in the place, and may not go.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "rt-polarity.neg").write_text("a dull film .\\nno plot .\\n")
        >>> _ = (folder / "rt-polarity.pos").write_text("a fine film .\\n")
        >>> sum(part.sentences for part in rt_polarity(folder, folder / "data").parts.values())
        3
    """
    folder = SNIPPETS.require(folder)
    inner = folder if (folder / _FILES[0]).exists() else folder / "rt-polaritydata"
    SNIPPETS.require(inner, *_FILES.values())
    parts: dict[str, list[Sentence]] = {"train": [], "dev": [], "test": []}
    for label, name in _FILES.items():
        for line in watch(_lines(inner / name), f"reading {name}"):
            words = tuple(line.split())
            if words:
                parts[_part(words)].append(Sentence(words, label=label))
    with Target(out, "rt-polarity", replace=replace) as target:
        for part, sentences in parts.items():
            target.write(f"{part}.tsv", sentences, "labelled")
        paths = (str((inner / name).relative_to(folder)) for name in _FILES.values())
        return target.finish([SNIPPETS.origin(folder, *paths)], SNIPPETS.licence)


def _part(words: tuple[str, ...]) -> str:
    return _PARTS[int.from_bytes(hashlib.sha256(" ".join(words).encode()).digest()[:8]) % len(_PARTS)]


def _lines(path: Path) -> list[str]:
    """The lines of a file; the original is in Windows-1252, and copies are in UTF-8."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return content.decode("cp1252").splitlines()
