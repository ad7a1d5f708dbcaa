"""What is known about the same words elsewhere."""

from collections import Counter
from collections.abc import Iterable

from spigot_nlp.data.sentence import Sentence


def twins(sentences: Iterable[Sentence], others: Iterable[Sentence]) -> list[Sentence | None]:
    """For each sentence the one elsewhere that has the same words; `None` if there is none.

    Neither side needs to have all sentences of the other: `spigot_nlp.data.join` is for those that are the same one by
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
