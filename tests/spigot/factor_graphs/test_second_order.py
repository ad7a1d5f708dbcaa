"""The graphs of `examples/second_order.py` against every tree, and every graph, one by one."""

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor

import spigot
from tests.spigot import brute

EXAMPLE = Path(__file__).parents[3] / "examples" / "second_order.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("second_order_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def all_trees(n: int) -> Tensor:
    return brute.trees(spigot.ProjectiveTrees().mask(torch.tensor(n)), projective=True, single_root=True)


def second_order_score(tree: Tensor, scores: dict[tuple, float]) -> float:
    """A tree under the scores of arcs, grandparents and siblings, written from their definitions."""
    n = len(tree)
    heads = {m: int(tree[:, m].argmax()) for m in range(1, n)}
    total = sum(scores["arc", h, m] for m, h in heads.items())
    total += sum(scores["grandparent", heads[h], h, m] for m, h in heads.items() if h)
    for h in range(1, n):
        left = [m for m in range(h - 1, 0, -1) if heads[m] == h]
        right = [m for m in range(h + 1, n) if heads[m] == h]
        for children in (left, right):
            total += sum(scores["sibling", h, s, m] for s, m in itertools.pairwise(children))
    return total


def tree_scores(names: dict[tuple, int], weight: float, seed: int) -> Tensor:
    """Random scores of arcs, and those of pairs of arcs `weight` times as large; none of what makes chains whole."""
    scale = {"arc": 1.0, "grandparent": weight, "sibling": weight}
    generator = np.random.default_rng(seed)
    return torch.tensor([scale.get(name[0], 0.0) * generator.normal() for name in names], dtype=torch.float64)


@pytest.mark.parametrize(("n", "weight"), [(1, 1.0), (2, 1.0), (3, 1.0), (4, 0.3)])
def test_the_best_tree_by_brute_force(example: ModuleType, n: int, weight: float) -> None:
    names, factors = example.second_order(n)
    every = all_trees(n)
    scores = torch.stack([tree_scores(names, weight, seed) for seed in range(4)])
    known = [dict(zip(names, one, strict=True)) for one in scores.tolist()]
    best = scores.new_tensor([max(second_order_score(tree, one) for tree in every) for one in known])
    rough = spigot.FactorGraph(len(names), factors, max_iterations=60)
    found = rough.solve(scores)
    assert rough.contains(found.z).all()
    assert (found.value <= best + 1e-9).all()
    assert (found.bound >= best - 1e-6).all()
    torch.testing.assert_close(found.value[found.optimal], best[found.optimal], rtol=0, atol=1e-5)
    exact = spigot.FactorGraph(len(names), factors, exact=True, max_iterations=60).solve(scores)
    assert exact.optimal.all()
    torch.testing.assert_close(exact.value, best, rtol=0, atol=1e-5)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_every_tree_is_a_member_and_worth_what_its_parts_are(example: ModuleType, n: int) -> None:
    names, factors = example.second_order(n)
    every = example.every_tree(n)
    assert len(every) == len(all_trees(n))
    assert spigot.FactorGraph(len(names), factors).contains(every).all()
    scores = tree_scores(names, 1.0, seed=9)
    known = dict(zip(names, scores.tolist(), strict=True))
    arcs = [names["arc", h, m] if m and h != m else -1 for h in range(n + 1) for m in range(n + 1)]
    for one in every[:: max(1, len(every) // 40)]:
        tree = torch.where(torch.tensor(arcs) >= 0, one[arcs], 0.0).reshape(n + 1, n + 1)
        assert float(one @ scores) == pytest.approx(second_order_score(tree, known))


def best_graph(n: int, labels: int, scores: dict[tuple, float]) -> float:
    """What the best graph is worth, over all sets of arcs with the best labels and predicates for each."""
    arcs = list(itertools.permutations(range(n), 2))
    best = 0.0
    for on in itertools.product((False, True), repeat=len(arcs)):
        chosen = [arc for arc, there in zip(arcs, on, strict=True) if there]
        total = sum(scores["arc", p, a] for p, a in chosen)
        for (p, a), (q, b) in itertools.permutations(chosen, 2):
            total += scores["siblings", p, a, b] if p == q and a < b else 0.0
            total += scores["co-parents", p, q, a] if a == b and p < q else 0.0
        for p in range(n):
            mine = [a for q, a in chosen if q == p]
            total += scores["predicate", p] if mine else max(0.0, scores["predicate", p])
            total += max(
                sum(scores["label", p, a, l] for a, l in zip(mine, ls, strict=True))
                for ls in itertools.product(range(labels), repeat=len(mine))
                if ls.count(0) <= 1
            )
        best = max(best, total)
    return best


def test_the_best_graph_by_brute_force(example: ModuleType) -> None:
    names, factors = example.semantic_graph(3, labels=2)
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=(30, len(names))))
    best = scores.new_tensor([best_graph(3, 2, dict(zip(names, one, strict=True))) for one in scores.tolist()])
    found = spigot.FactorGraph(len(names), factors).solve(scores)
    assert (found.value <= best + 1e-9).all()
    assert (found.bound >= best - 1e-6).all()
    torch.testing.assert_close(found.value[found.optimal], best[found.optimal], rtol=0, atol=1e-5)
    assert found.optimal.sum() >= 15
    exact = spigot.FactorGraph(len(names), factors, exact=True).solve(scores)
    assert exact.optimal.all()
    torch.testing.assert_close(exact.value, best, rtol=0, atol=1e-5)
