"""Many comparisons at once: one of them will look significant by chance, unless that is accounted for."""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Holm's adjusted p values: who is below $\alpha$ there is so with a chance of error of $\alpha$ in all.

    With the values in ascending order $p_{(1)} \le \dots \le p_{(k)}$,
    $$\tilde p_{(i)} = \max_{j \le i} \min\bigl(1,\; (k - j + 1)\, p_{(j)}\bigr):$$
    the smallest is multiplied by how many there are, the next by one less, and none is smaller than the one before. The
    chance that any true null hypothesis among them is rejected at $\alpha$ is at most $\alpha$, whatever ties the
    comparisons have with each other, such as one baseline for all.

    Args:
        p_values: One for each comparison, in any order.

    Returns:
        The adjusted values, in the same order.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
        >>> holm([])
        []

    References:
        Holm (1979), A Simple Sequentially Rejective Multiple Test Procedure, section 3.
    """
    values = np.asarray(p_values, dtype=np.float64)
    wrong = [value for value in values.tolist() if not 0 <= value <= 1]
    if wrong:
        raise ValueError(f"{wrong[0]} is no p value; they lie between 0 and 1.")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, values[order] * np.arange(len(values), 0, -1)))
    return adjusted.tolist()
