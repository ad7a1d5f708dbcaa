"""Trees from one file for the sentences of another."""

from collections.abc import Iterable
from dataclasses import replace

from spigot.data.sentence import Sentence


def add_trees(sentences: Iterable[Sentence], trees: Iterable[Sentence]) -> tuple[list[Sentence], int]:
    """Give sentences the trees that the same words have elsewhere, in whatever order.

    Neither side needs to have all sentences of the other: `spigot.data.merge` is for those that are the same one by
    one. Words that come several times get their trees in the order of the trees, and the last one again if there are
    too few.

    Args:
        sentences: What to complete. Where no tree is found, the sentence stays as it is.
        trees: Sentences with trees.

    Returns:
        The sentences, and for how many of them a tree was found.

    Example:
        >>> trees = [Sentence(("Go",), heads=(0,)), Sentence(("Rain", "fell"), heads=(2, 0))]
        >>> found, count = add_trees([Sentence(("Rain", "fell")), Sentence(("Snow", "fell"))], trees)
        >>> [sentence.heads for sentence in found], count
        ([(2, 0), None], 1)
    """
    waiting: dict[tuple[str, ...], list[Sentence]] = {}
    for tree in trees:
        if tree.heads is not None:
            waiting.setdefault(tree.forms, []).append(tree)
    seen: dict[tuple[str, ...], int] = {}
    found, count = [], 0
    for sentence in sentences:
        twins = waiting.get(sentence.forms)
        if twins is None:
            found.append(sentence)
            continue
        k = seen.get(sentence.forms, 0)
        seen[sentence.forms] = k + 1
        twin = twins[min(k, len(twins) - 1)]
        found.append(replace(sentence, heads=twin.heads, relations=twin.relations))
        count += 1
    return found, count
