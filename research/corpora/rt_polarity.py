"""rt-polarity: snippets of film reviews, 0 for bad and 1 for good, divided into parts that share no text.

    tar xzf rt-polaritydata.tar.gz    # https://www.cs.cornell.edu/people/pabo/movie-review-data
    python -m research.corpora.rt_polarity rt-polaritydata --out DATA

There is no official division. Which part a snippet falls into follows from its words alone, so that copies of one text
stay together, and everybody gets the same parts. The snippets are those of the Stanford Sentiment Treebank: who trains
on them must not test there.
"""

import hashlib
from pathlib import Path

from research.corpora.build import Target, arguments, require, run
from spigot_nlp.data import Sentence

_FILES = {0: "rt-polarity.neg", 1: "rt-polarity.pos"}
_HOW = "unpack https://www.cs.cornell.edu/people/pabo/movie-review-data/rt-polaritydata.tar.gz"
_PARTS = ("test", "dev", *("train",) * 8)


def build(folder: Path, out: Path, *, replace: bool = False) -> None:
    """Build the corpus."""
    require(folder, _HOW, *_FILES.values())
    parts: dict[str, list[Sentence]] = {"train": [], "dev": [], "test": []}
    for label, name in _FILES.items():
        for line in _text(folder / name).splitlines():
            if words := tuple(line.split()):
                digest = hashlib.sha256(" ".join(words).encode()).digest()
                part = _PARTS[int.from_bytes(digest[:8]) % len(_PARTS)]
                parts[part].append(Sentence(words, label=label))
    with Target(out, "rt-polarity", replace=replace, sources=[folder]) as target:
        for part, sentences in parts.items():
            target.write(f"{part}.tsv", sentences, "labelled")


def _text(path: Path) -> str:
    """The original is in Windows-1252, and copies are in UTF-8."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252")


def main() -> None:
    """Run the script."""
    options = arguments("rt_polarity", __doc__ or "")
    options.add_argument("folder", type=Path, help="the folder of the two files")
    build(**vars(options.parse_args()))


if __name__ == "__main__":
    run(main)
