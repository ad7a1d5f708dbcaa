"""The Stanford Sentiment Treebank: checked, and each tree in one part only."""

from dataclasses import replace as changed
from pathlib import Path

from spigot_nlp.corpora.builders.sources import Material, Watch, unwatched
from spigot_nlp.corpora.builders.target import Built, Target
from spigot_nlp.data.formats import read
from spigot_nlp.data.formats.files import LINE
from spigot_nlp.data.formats.sst import SentimentTree
from spigot_nlp.data.sentence import Sentence

TREES = Material(
    "the Stanford Sentiment Treebank",
    "https://nlp.stanford.edu/sentiment",
    "none stated; research use, cite Socher et al. (2013)",
    "unzip https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip, or git clone "
    "https://github.com/munikarmanish/RNTN",
)
_SPLITS = ("train", "dev", "test")
_NEUTRAL = 2


def sst(folder: str | Path, out: str | Path, *, replace: bool = False, watch: Watch = unwatched) -> Built:
    """Build `sst`: the trees of the treebank, one on each line.

    Copies are in circulation whose training file ends with the development file. There that end is cut off.

    Args:
        folder: What holds `train.txt`, `dev.txt` and `test.txt`, itself or in a folder `trees`.
        out: The folder that holds the corpora.
        replace: Whether other files in the place of these may go.
        watch: Shows how far it is.

    Raises:
        FileNotFoundError: If a file is missing.
        FormatError: If a line is no tree.
        ValueError: If a file is empty.
        FileExistsError: If other files are in the place, and may not go.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name, line in {"train": "(3 (2 It) (4 shone))", "dev": "(1 Rain)", "test": "(2 Wind)"}.items():
        ...     _ = (folder / f"{name}.txt").write_text(line)
        >>> sst(folder, folder / "data").counts
        {'dev repeated in train': 0, 'train, good or bad': 1, 'dev, good or bad': 1, 'test, good or bad': 0}
    """
    folder = TREES.require(folder)
    inner = folder / "trees" if not (folder / "train.txt").exists() and (folder / "trees").is_dir() else folder
    names = [f"{split}.txt" for split in _SPLITS]
    TREES.require(inner, *names)
    parts = {
        split: list(map(_line, watch(read(inner / name, "sst"), f"reading {name}")))
        for split, name in zip(_SPLITS, names, strict=True)
    }
    if empty := next((name for name, some in zip(names, parts.values(), strict=True) if not some), ""):
        raise ValueError(f"{inner / empty} has no sentences; get it again: {TREES.how}")
    train, dev = ([_text(sentence) for sentence in parts[split]] for split in ("train", "dev"))
    size = len(dev)
    repeated = 0 < size < len(train) and train[-size:] == dev
    if repeated:
        del parts["train"][-size:]
    counts = {"dev repeated in train": size if repeated else 0}
    counts |= {f"{split}, good or bad": sum(s.label != _NEUTRAL for s in some) for split, some in parts.items()}
    with Target(out, "sst", replace=replace) as target:
        for split, sentences in parts.items():
            target.write(f"{split}.txt", sentences, "sst")
        paths = (str((inner / name).relative_to(folder)) for name in names)
        return target.finish([TREES.origin(folder, *paths)], TREES.licence, counts=counts)


def _line(sentence: Sentence) -> Sentence:
    """The sentence on a line of its own, whatever white space its file had around it."""
    source = sentence.source
    assert isinstance(source, SentimentTree)
    return changed(sentence, source=changed(source, layout=LINE))


def _text(sentence: Sentence) -> str:
    source = sentence.source
    assert isinstance(source, SentimentTree)
    return source.text
