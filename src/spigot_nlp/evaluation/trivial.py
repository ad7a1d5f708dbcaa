"""Trees that need no parser: chains, stars, and random ones."""

import random
from collections.abc import Callable, Iterable


def left_branching(n: int) -> tuple[int, ...]:
    """The chain that grows to the left: each word's head is the next one, and the last word is on the root.

    Example:
        >>> left_branching(4)
        (2, 3, 4, 0)
    """
    return (*range(2, _words(n) + 1), 0) if n else ()


def right_branching(n: int) -> tuple[int, ...]:
    """The chain that grows to the right: each word's head is the one before, and the first word is on the root.

    Example:
        >>> right_branching(4)
        (0, 1, 2, 3)
    """
    return tuple(range(_words(n)))


def flat(n: int, centre: int = 1) -> tuple[int, ...]:
    """All words on one, and that one on the root.

    Args:
        n: The number of words.
        centre: The word that heads all others.

    Example:
        >>> flat(4)
        (0, 1, 1, 1)
        >>> flat(4, centre=3)
        (3, 3, 0, 3)
    """
    if _words(n) and not 1 <= centre <= n:
        raise ValueError(f"centre is {centre}; it must be one of the words 1 to {n}.")
    return tuple(centre * (word != centre) for word in range(1, n + 1))


def random_trees(lengths: Iterable[int], seed: int = 0) -> list[tuple[int, ...]]:
    r"""Heads of random projective trees with a single root, all $\frac1n \binom{3n-2}{n-1}$ of them equally likely.

    Every word of such a tree has some dependents to its left and some to its right: $2n$ numbers with the sum $n - 1$,
    which, drawn uniformly and listed from heads to dependents, are a tree for exactly one of the $n$ ways to begin the
    list (the cycle lemma). Takes linear time; the same arguments give the same trees everywhere.

    Args:
        lengths: The number of words of each tree.
        seed: Which.

    Example:
        >>> random_trees([1, 2, 5], seed=3)
        [(0,), (0, 1), (3, 3, 4, 0, 4)]

    References:
        Dvoretzky and Motzkin (1947), A problem of arrangements: the cycle lemma.
    """
    # The one method whose sequence Python promises never to change.
    dice = random.Random(seed).random
    return [_random_tree(_words(n), dice) for n in lengths]


def _random_tree(n: int, dice: Callable[[], float]) -> tuple[int, ...]:
    if n == 0:
        return ()
    counts = [0]  # n - 1 stars among 2n - 1 bars; a bar begins the next number
    stars = n - 1
    for places in range(3 * n - 2, 0, -1):
        if dice() * places < stars:
            stars -= 1
            counts[-1] += 1
        else:
            counts.append(0)
    sides = list(zip(counts[::2], counts[1::2], strict=True))
    # Dependents still to come after each word, when the list is read from head to dependents. It may first run out of
    # them at the end only: so the list has to begin just behind the place where the sum is smallest.
    lowest = sums = 0
    start = 0
    for place, (before, after) in enumerate(sides, 1):
        sums += before + after - 1
        if sums < lowest:
            lowest, start = sums, place
    sides = sides[start:] + sides[:start]
    children: list[list[int]] = [[] for _ in sides]
    waiting: list[int] = []
    for node, (before, after) in enumerate(sides):
        if waiting:
            children[waiting.pop()].append(node)
        waiting.extend([node] * (before + after))
    # From left to right, with a word after all that is on its left. Chains would be too deep for recursion.
    order: list[int] = []
    agenda = [(0, False)]
    while agenda:
        node, is_next = agenda.pop()
        if is_next:
            order.append(node)
        else:
            before = sides[node][0]
            left, right = children[node][:before], children[node][before:]
            agenda += reversed(
                [*((child, False) for child in left), (node, True), *((child, False) for child in right)]
            )
    position = {node: place for place, node in enumerate(order, 1)}
    heads = [0] * n
    for node, below in enumerate(children):
        for child in below:
            heads[position[child] - 1] = position[node]
    return tuple(heads)


def _words(n: int) -> int:
    if n < 0:
        raise ValueError(f"a tree over {n} words is asked for; the number of words must be 0 or more.")
    return n
