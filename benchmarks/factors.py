"""Factor graphs: AD3 against HiGHS on the same graphs, and semantic graphs decoded as factor graphs."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.optimize
import torch
from torch import Tensor

import spigot
from benchmarks.timing import Row, best, faster, within
from spigot.factor_graphs.tables import inequalities
from spigot.factors import AtMostOne, ExactlyOne, Implies, Pair


def factors() -> Iterator[Row]:
    for name, graph, scores in (
        ("grid, weak pairs", *grid(41, 0.5)),
        ("grid, strong pairs", *grid(41, 2.0)),
        ("Potts grid, 7 values", *potts(16, 7, 0.5)),
        ("semantic graph", *semantic_graph(60, 50, arcs=5, labels=15)),
    ):
        matrix, bound = inequalities(graph._network.table, graph.parts)
        cost = -scores.numpy()
        everything = (matrix, np.full(len(bound), -np.inf), bound)

        def highs(integral: int, cost=cost, everything=everything):
            whole = np.full(len(cost), integral)
            return scipy.optimize.milp(cost, constraints=[everything], bounds=(0, 1), integrality=whole)

        relaxed, solution = highs(0), graph.solve(scores)
        ours = best(lambda graph=graph, scores=scores: graph.solve(scores))
        off = (float(solution.bound) + relaxed.fun) / -relaxed.fun
        short = (-relaxed.fun - float(solution.value)) / -relaxed.fun
        note = f"bound {off:.0e} above the LP, member {max(short, 0):.0e} below; {int(solution.iterations)} iterations"
        label = f"{name}, {graph.parts:,} variables"
        yield replace(faster(label, ours, "LP by HiGHS", best(lambda highs=highs: highs(0)), 20.0), note=note)
        if short < 1e-3:
            yield faster(label, ours, "MILP by HiGHS", best(lambda highs=highs: highs(1)))
    yield from decoding()


def decoding() -> Iterator[Row]:
    """64 sentences of 25 words, 3 arcs and 16 labelled arcs a word: what pruning leaves of PropBank."""
    generator = torch.Generator().manual_seed(0)
    graphs = spigot.SemanticGraphs(50, tuple(range(50)))
    scores = torch.randn(64, 26, 26, 51, generator=generator)
    keep = torch.rand(64, 26, 26, 1, generator=generator) < 3 / 26
    mask = graphs.full_mask(scores) & keep & (torch.rand(scores.shape, generator=generator) < 16 / 3 / 50)
    mask[..., 0] = keep[..., 0] | torch.eye(26, dtype=torch.bool)
    joint = spigot.JointGraphs((graphs,))
    solution = joint.solve(scores, mask)
    proven = f"{100 * solution.optimal.float().mean():.0f} % proven best"
    each = best(lambda: joint.solve(scores, mask)) / 64
    row = within("semantic graph of 25 words by AD3, 64 at once, each", each, 1.0)
    yield replace(row, note=proven)
    yield Row("the same by assignment, each", best(lambda: graphs.argmax(scores, mask)) / 64)


def grid(side: int, coupling: float) -> tuple[spigot.FactorGraph, Tensor]:
    """Variables on a grid, and a score for every two neighbours."""
    generator = np.random.default_rng(0)
    first, second = _neighbours(side)
    both = side * side + np.arange(len(first))
    scores = np.concatenate((generator.normal(size=side * side), coupling * generator.normal(size=len(first))))
    return spigot.FactorGraph(len(scores), [Pair(first, second, both)]), torch.from_numpy(scores)


def potts(side: int, values: int, coupling: float) -> tuple[spigot.FactorGraph, Tensor]:
    """One of some values for each point of a grid, and a score for neighbours that have the same."""
    generator = np.random.default_rng(0)
    first, second = _neighbours(side)
    each = np.arange(side * side * values).reshape(-1, values)
    both = each.size + np.arange(len(first) * values)
    own, same = generator.normal(size=each.size), np.repeat(coupling * generator.normal(size=len(first)), values)
    pairs = Pair(each[first].ravel(), each[second].ravel(), both)
    scores = torch.from_numpy(np.concatenate((own, same)))
    return spigot.FactorGraph(len(scores), [ExactlyOne(each), pairs]), scores


def semantic_graph(n: int, roles: int, arcs: float, labels: float) -> tuple[spigot.FactorGraph, Tensor]:
    """Predicates, arcs with one of some labels, and each label once for a predicate."""
    generator = np.random.default_rng(0)
    head, _ = np.nonzero((generator.random((n, n)) < arcs / n) & ~np.eye(n, dtype=bool))
    which, label = np.nonzero(generator.random((len(head), roles)) < labels / roles)
    arc, labelled = n + np.arange(len(head)), n + len(head) + np.arange(len(which))
    of_arc = [labelled[which == a].tolist() for a in range(len(head))]
    of_head = [arc[head == i].tolist() for i in range(n)]
    of_role = [labelled[(head[which] == i) & (label == r)].tolist() for i in range(n) for r in range(roles)]
    demands = [
        ExactlyOne(of_arc, output=arc),
        Implies([row for row in of_head if row], output=[i for i in range(n) if of_head[i]]),
        AtMostOne([row for row in of_role if len(row) > 1]),
    ]
    parts = n + len(head) + len(which)
    return spigot.FactorGraph(parts, demands), torch.from_numpy(generator.normal(size=parts))


def _neighbours(side: int) -> tuple[np.ndarray, np.ndarray]:
    place = np.arange(side * side).reshape(side, side)
    first = np.concatenate((place[:, :-1].ravel(), place[:-1].ravel()))
    return first, np.concatenate((place[:, 1:].ravel(), place[1:].ravel()))
