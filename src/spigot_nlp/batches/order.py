"""The order that sentences come in: in batches of like length, and task by task."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np


def bucketed(lengths: Sequence[int], size: int, seed: Sequence[int]) -> list[list[int]]:
    """Batches of sentences of nearly the same length, both shuffled by the seed; every sentence once.

    Args:
        lengths: Words of each sentence.
        size: Sentences in a batch.
        seed: Whole numbers; the same ones give the same batches.

    Example:
        >>> sorted(map(sorted, bucketed([9, 1, 8, 2], 2, (0, 1))))
        [[0, 2], [1, 3]]
    """
    random = np.random.default_rng(list(seed))
    jitter = random.uniform(0.95, 1.05, len(lengths)) * np.asarray(lengths)
    order = np.lexsort((random.random(len(lengths)), jitter))
    batches = [order[start : start + size].tolist() for start in range(0, len(order), size)]
    return [batches[k] for k in random.permutation(len(batches))]


def task_order(sizes: Mapping[str, int], batches: Mapping[str, int], seed: Sequence[int]) -> Iterator[str]:
    """Which task each step of an epoch belongs to.

    A step draws a task with probability proportional to the number of its sentences that are still to come. Seen from
    the start of the epoch that is its share of all sentences at every step. (Drawing by the full sizes until one task
    runs out, as the published program did, ends an epoch with dozens of steps of the other task; when that is the end
    task, nothing holds the intermediate parser in place meanwhile.)

    Args:
        sizes: Sentences of each task.
        batches: Steps of each task.
        seed: Whole numbers.

    Example:
        >>> sorted(task_order({"syntax": 30, "semantics": 10}, {"syntax": 3, "semantics": 1}, (0,)))
        ['semantics', 'syntax', 'syntax', 'syntax']
    """
    random = np.random.default_rng(list(seed))
    left = dict(batches)
    while any(left.values()):
        open_tasks = [task for task, count in left.items() if count]
        weights = np.array([sizes[task] * left[task] / batches[task] for task in open_tasks])
        task = open_tasks[int(random.choice(len(open_tasks), p=weights / weights.sum()))]
        left[task] -= 1
        yield task
