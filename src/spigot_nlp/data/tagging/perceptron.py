"""A greedy perceptron over integer features: the C++ kernel, and the same in numpy.

Weights, scores and updates are integers, so the two give exactly the same tags and the same weights.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spigot import kernels

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Features(NamedTuple):
    """The tokens of many sentences in one row, as rows of a table of weights; a negative row is absent.

    Attributes:
        plain: `(tokens, a)`: the rows that do not depend on earlier tags.
        paired: `(tokens, b)`: the rows to which the previous tag is added.
        fixed: `(tokens,)`: the tag of a word that needs no scoring, or -1.
        starts: `(sentences + 1,)`: sentence `s` is the tokens from `starts[s]` to `starts[s + 1]`.
        history: The first of the `(tags + 1)²` rows of the two previous tags.
        tags: How many tags there are. Tag number `tags` stands before the first word.
    """

    plain: Ints
    paired: Ints
    fixed: Ints
    starts: Longs
    history: int
    tags: int


def tag(features: Features, weights: Ints) -> Ints:
    """The best tag of each token, from left to right; ties go to the smaller tag.

    Args:
        features: The tokens.
        weights: `(rows, tags or more)`; columns beyond the tags only keep the rows aligned.

    Example:
        >>> plain, fixed = np.array([[0], [1]], dtype=np.int32), np.array([-1, -1], dtype=np.int32)
        >>> features = Features(plain, np.empty((2, 0), dtype=np.int32), fixed, np.array([0, 2]), 2, 2)
        >>> weights = np.zeros((11, 2), dtype=np.int32)
        >>> weights[1, 1] = 1  # the second word's row prefers the second tag
        >>> tag(features, weights).tolist()
        [0, 1]
    """
    if kernels.compiled is None:
        return tag_reference(features, weights)
    tagged = np.empty(len(features.fixed), dtype=np.int32)
    kernels.compiled.perceptron_tag(*features, weights, tagged)
    return tagged


def train(features: Features, order: Longs, gold: Ints, weights: Ints, totals: Longs, step: int) -> int:
    r"""One pass over the sentences in the order given; changes the weights and totals.

    A mistaken token adds 1 to the gold tag's weights and takes 1 from the predicted tag's. With $u_t$ the update of
    step $t$, `totals` collects $\sum_t t\,u_t$. If the next step is $T$, the weights after each step so far sum to
    $T w - \text{totals}$: averaging costs nothing while nothing changes.

    Args:
        features: The tokens.
        order: The sentences to visit.
        gold: The tag of each token.
        weights: As for `tag`.
        totals: Of the shape of the weights.
        step: The number of the first step. Only tokens that are scored take one.

    Returns:
        The number of the next step.

    References:
        Collins (2002), Discriminative training methods for hidden Markov models.
    """
    if kernels.compiled is None:
        return train_reference(features, order, gold, weights, totals, step)
    return kernels.compiled.perceptron_train(*features, order, gold, weights, totals, step)


def tag_reference(features: Features, weights: Ints) -> Ints:
    """`tag` in numpy."""
    tagged = np.empty(len(features.fixed), dtype=np.int32)
    for s in range(len(features.starts) - 1):
        _walk(features, s, weights, lambda i, guess, _: tagged.__setitem__(i, guess))
    return tagged


def train_reference(features: Features, order: Longs, gold: Ints, weights: Ints, totals: Longs, step: int) -> int:
    """`train` in numpy."""

    def learn(i: int, guess: int, rows: Longs | None) -> None:
        nonlocal step
        if rows is None:
            return
        if guess != gold[i]:
            # A row may stand for two features of the same token only by mistake of the caller; add.at counts both.
            for label, delta in ((gold[i], 1), (guess, -1)):
                np.add.at(weights[:, label], rows, delta)
                np.add.at(totals[:, label], rows, delta * step)
        step += 1

    for s in order:
        _walk(features, int(s), weights, learn)
    return step


def _walk(features: Features, sentence: int, weights: Ints, visit: Callable[[int, int, Longs | None], None]) -> None:
    """Predicts the tags of one sentence and shows each to `visit`, with the rows it was scored by, if it was."""
    plain, paired, fixed, starts, history, tags = features
    previous = before = tags
    for i in range(int(starts[sentence]), int(starts[sentence + 1])):
        guess, rows = int(fixed[i]), None
        if guess < 0:
            beside = paired[i][paired[i] >= 0].astype(np.int64) + previous
            pair = history + previous * (tags + 1) + before
            rows = np.concatenate([[pair], plain[i][plain[i] >= 0], beside])
            guess = int(weights[rows, :tags].sum(0).argmax())
        visit(i, guess, rows)
        before, previous = previous, guess
