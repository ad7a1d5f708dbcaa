"""The built-in corpus: English-like sentences with trees, graphs and labels, which `research/synthetic` generated."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence

__all__ = ["Splits", "splits"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Splits:
    """The parts of a corpus.

    Attributes:
        train: To learn from.
        dev: To choose by.
        test: To report.
        ood: To report out of domain.

    Example:
        >>> splits(ood=1).ood[0].id
        'out-0-1'
    """

    train: list[Sentence]
    dev: list[Sentence]
    test: list[Sentence]
    ood: list[Sentence]


def splits(*, train: int = 0, dev: int = 0, test: int = 0, ood: int = 0) -> Splits:
    """Disjoint parts of the built-in corpus: no sentence is in it twice.

    Each sentence has lemmas, tags, a projective tree, a semantic graph, two more graphs called `dependencies` (its
    tree) and `valency` (of content words), and a label: whether it sounds good (1) or bad (0).

    Args:
        train: How many sentences to learn from.
        dev: How many to choose by.
        test: How many of the same kind to report.
        ood: How many out of domain: with new words, and deeper.

    Raises:
        ValueError: If the corpus has not so many.

    Example:
        >>> parts = splits(train=20, dev=5, test=5, ood=5)
        >>> len({sentence.forms for sentence in parts.train + parts.dev + parts.test + parts.ood})
        35
    """
    for name, size in (("train", train), ("dev", dev), ("test", test), ("ood", ood)):
        if size < 0:
            raise ValueError(f"{name} is {size}; ask for 0 sentences or more.")
    known, other = _first(train + dev + test, "in"), _first(ood, "out")
    return Splits(known[:train], known[train : train + dev], known[train + dev :], other)


def _first(size: int, domain: str) -> list[Sentence]:
    found = list(islice(read(_FOLDER / f"synthetic-{domain}.jsonl.gz"), size))
    if len(found) < size:
        where = "out of domain" if domain == "out" else "in domain"
        raise ValueError(
            f"the built-in corpus has {len(found):,} sentences {where}, and {size:,} are asked for; take fewer, or "
            f"write more with research.synthetic, from a clone of spigot, and name the files in the configuration."
        )
    return found
