"""sst: the Stanford Sentiment Treebank, a tree on each line.

    unzip trainDevTestTrees_PTB.zip    # https://nlp.stanford.edu/sentiment, or git clone munikarmanish/RNTN
    python -m research.corpora.sst trees --out DATA

Copies are in circulation whose training file ends with the development file. There that end is cut off.
"""

from dataclasses import replace as changed
from pathlib import Path

from research.corpora.build import Target, arguments, require, run
from spigot_nlp.data import Sentence, read
from spigot_nlp.data.formats.files import LINE
from spigot_nlp.data.formats.sst import SentimentTree

SPLITS = ("train", "dev", "test")
_HOW = "unzip https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip"
_NEUTRAL = 2


def build(folder: Path, out: Path, *, replace: bool = False) -> None:
    """Build the corpus."""
    require(folder, _HOW, *(f"{split}.txt" for split in SPLITS))
    parts = {split: [_on_a_line(sentence) for sentence in read(folder / f"{split}.txt", "sst")] for split in SPLITS}
    if empty := next((split for split, some in parts.items() if not some), ""):
        raise ValueError(f"{folder / empty}.txt has no sentences; get it again: {_HOW}")
    train, size = parts["train"], len(parts["dev"])
    if size < len(train) and list(map(_text, train[-size:])) == list(map(_text, parts["dev"])):
        del train[-size:]
        print(f"{folder / 'train.txt'} ends with {size:,} sentences of dev.txt, which are left out")
    with Target(out, "sst", replace=replace, sources=[folder]) as target:
        for split, some in parts.items():
            target.write(f"{split}.txt", some, "sst")
            target.counts[f"{split}.txt"] += f", {sum(s.label != _NEUTRAL for s in some):,} of them not neutral"


def _on_a_line(sentence: Sentence) -> Sentence:
    """The sentence on a line of its own, whatever white space its file had around it."""
    assert isinstance(sentence.source, SentimentTree)
    return changed(sentence, source=changed(sentence.source, layout=LINE))


def _text(sentence: Sentence) -> str:
    assert isinstance(sentence.source, SentimentTree)
    return sentence.source.text


def main() -> None:
    """Run the script."""
    options = arguments("sst", __doc__ or "")
    options.add_argument("folder", type=Path, help="the folder of train.txt, dev.txt and test.txt")
    build(**vars(options.parse_args()))


if __name__ == "__main__":
    run(main)
