"""The generator of the built-in corpus: a grammar that writes sentences with trees, graphs and labels."""

from collections.abc import Iterator
from dataclasses import replace

from research.synthetic.clauses import Grammar
from research.synthetic.draft import Dice
from research.synthetic.formalisms import formalisms
from research.synthetic.lexicon import LEXICONS
from research.synthetic.nouns import Frequencies
from research.synthetic.polarity import polarity
from spigot_nlp.corpora.synthetic import Splits
from spigot_nlp.data import Sentence

__all__ = ["Splits", "formalisms", "polarity", "splits", "synthetic"]

_FREQUENCIES = {
    "in": Frequencies(
        depth=3, relative=0.14, coordination=0.2, passive=2.0, control=1.8, embedding=5.0, far=1.0, simple=0.75
    ),
    "out": Frequencies(
        depth=4, relative=0.22, coordination=0.28, passive=4.0, control=3.0, embedding=6.0, far=2.0, simple=0.7
    ),
}
_LONGEST = {"in": 30, "out": 40}


def synthetic(size: int, *, seed: int = 0, domain: str = "in") -> list[Sentence]:
    """Sentences of the built-in corpus, each with lemmas, tags, a projective tree, a semantic graph and a label.

    The label says whether the sentence sounds good (1) or bad (0); see `polarity`. Tags are Penn tags, relations those
    of Universal Dependencies; the roles of the graph are `ARG1` to `ARG3`, of which no predicate has two alike, and
    modifiers. The same arguments give the same sentences everywhere, and a larger size only adds to them.

    Args:
        size: How many.
        seed: Which.
        domain: `in`, or `out` for new words beside the known, deeper nesting and more relative clauses, coordination,
            control and passives.

    Example:
        >>> sentence = synthetic(1, seed=3)[0]
        >>> len(sentence.forms) == len(sentence.heads)
        True
    """
    if size < 0:
        raise ValueError(f"size is {size}; ask for 0 sentences or more.")
    stream = _stream(seed, domain)
    return [next(stream) for _ in range(size)]


def splits(*, seed: int = 0, train: int = 2000, dev: int = 500, test: int = 500, ood: int = 500) -> Splits:
    """Disjoint parts of the built-in corpus.

    A sentence whose words were seen before, in whichever part, is left out and the next one taken: no part holds a
    sentence twice, and no two parts share one.

    Args:
        seed: Which corpus.
        train: How many sentences to learn from.
        dev: How many to choose by.
        test: How many of the same kind to report.
        ood: How many out of domain.

    Example:
        >>> parts = splits(train=20, dev=5, test=5, ood=5)
        >>> len({sentence.forms for sentence in parts.train + parts.dev + parts.test + parts.ood})
        35
    """
    for name, size in (("train", train), ("dev", dev), ("test", test), ("ood", ood)):
        if size < 0:
            raise ValueError(f"{name} is {size}; ask for 0 sentences or more.")
    seen: set[tuple[str, ...]] = set()
    known, other = _fresh(_stream(seed, "in"), seen), _fresh(_stream(seed, "out"), seen)
    return Splits(
        [next(known) for _ in range(train)],
        [next(known) for _ in range(dev)],
        [next(known) for _ in range(test)],
        [next(other) for _ in range(ood)],
    )


def _fresh(stream: Iterator[Sentence], seen: set[tuple[str, ...]]) -> Iterator[Sentence]:
    for sentence in stream:
        if sentence.forms not in seen:
            seen.add(sentence.forms)
            yield sentence


def _stream(seed: int, domain: str) -> Iterator[Sentence]:
    """Sentences without end. Those that say neither good nor bad, or too much, are not worth a label."""
    if domain not in LEXICONS:
        raise ValueError(f"domain is {domain!r}; there are {' and '.join(map(repr, LEXICONS))}.")
    grammar = Grammar(Dice(2 * seed + (domain == "out")), LEXICONS[domain], _FREQUENCIES[domain])
    number = 0
    while True:
        sentence = grammar.sentence()
        value = polarity(sentence)
        if value and len(sentence) <= _LONGEST[domain]:
            number += 1
            yield replace(sentence, label=int(value > 0), id=f"{domain}-{seed}-{number}")
