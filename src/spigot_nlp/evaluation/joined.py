"""What is known about the same words elsewhere."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from spigot_nlp.data.sentence import Sentence


def add_trees(sentences: Iterable[Sentence], trees: Iterable[Sentence]) -> tuple[list[Sentence], int]:
    """Give sentences the trees that the same words have elsewhere, in whatever order.

    Args:
        sentences: What to complete. Where no tree is found, the sentence stays as it is.
        trees: Sentences with trees; see `twins` for words that come several times.

    Returns:
        The sentences, and for how many of them a tree was found.

    Example:
        >>> trees = [Sentence(("Go",), heads=(0,)), Sentence(("Rain", "fell"), heads=(2, 0))]
        >>> found, count = add_trees([Sentence(("Rain", "fell")), Sentence(("Snow", "fell"))], trees)
        >>> [sentence.heads for sentence in found], count
        ([(2, 0), None], 1)
    """
    given = list(sentences)
    found = twins(given, (tree for tree in trees if tree.heads is not None))
    joined = [
        sentence if twin is None else replace(sentence, heads=twin.heads, relations=twin.relations)
        for sentence, twin in zip(given, found, strict=True)
    ]
    return joined, sum(twin is not None for twin in found)


def twins(sentences: Iterable[Sentence], others: Iterable[Sentence]) -> list[Sentence | None]:
    """For each sentence the one elsewhere that has the same words; `None` if there is none.

    Neither side needs to have all sentences of the other: `spigot_nlp.data.merge` is for those that are the same one by
    one. Words that come several times get their twins in the order of the others, and the last one again if there are
    too few.

    Args:
        sentences: What to find twins for.
        others: Where to look for them.

    Example:
        >>> rain, snow = Sentence(("Rain", "fell")), Sentence(("Snow", "fell"))
        >>> others = [Sentence(("Rain", "fell"), label=k) for k in range(2)]
        >>> [twin and twin.label for twin in twins([rain, snow, rain, rain], others)]
        [0, None, 1, 1]
    """
    waiting: dict[tuple[str, ...], list[Sentence]] = {}
    for other in others:
        waiting.setdefault(other.forms, []).append(other)
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for sentence in sentences:
        alike = waiting.get(sentence.forms)
        found.append(alike and alike[min(seen[sentence.forms], len(alike) - 1)])
        seen[sentence.forms] += 1
    return found
