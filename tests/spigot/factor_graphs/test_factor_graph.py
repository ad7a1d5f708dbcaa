"""Factor graphs against brute force, against HiGHS, and against structures that have a decoder of their own."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch
from torch import Tensor

import spigot
from spigot._runtime.checks import NoStructureError
from spigot.factor_graphs.ad3 import Column, Options, State, run_ad3
from spigot.factor_graphs.branch_and_bound import best_members
from spigot.factor_graphs.joint_search import JointNetwork
from spigot.factor_graphs.tables import FactorTable
from spigot.factors import (
    AbstractFactor,
    And,
    AtLeastOne,
    AtMostOne,
    Budget,
    ExactlyOne,
    FactorKind,
    Implies,
    Knapsack,
    Member,
    Or,
    Pair,
)


def random_factor(generator: np.random.Generator, parts: int) -> AbstractFactor:
    """A factor of any kind over a few variables."""
    size = int(generator.integers(2, 5))
    some = generator.permutation(parts)[: size + 1].tolist()
    inputs, output, flags = some[:size], some[size], generator.random(size) < 0.5
    weights = generator.normal(size=size + 1) * 2
    makers = (
        lambda: ExactlyOne(inputs),
        lambda: ExactlyOne(inputs, output=output),
        lambda: AtMostOne(inputs, negated=flags),
        lambda: AtLeastOne(inputs, negated=flags),
        lambda: Or(inputs, output),
        lambda: And(inputs, output),
        lambda: Implies(inputs, output),
        lambda: Pair(inputs[0], inputs[1], output),
        lambda: Budget(some, most=2, least=1),
        lambda: Knapsack(some, weights=weights, capacity=9.0),
    )
    return makers[int(generator.integers(len(makers)))]()


def random_factors(generator: np.random.Generator, parts: int, count: int) -> list[AbstractFactor]:
    """Some of them."""
    return [random_factor(generator, parts) for _ in range(count)]


def members(graph: spigot.FactorGraph) -> Tensor:
    """All of them, by trying every vector."""
    every = torch.tensor(list(itertools.product((0.0, 1.0), repeat=graph.parts)), dtype=torch.float64)
    return every[graph.contains(every)]


def inequalities(table: FactorTable, parts: int) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """A x <= b for the local polytope of a graph without structures."""
    rows, bounds = [], []
    for f in range(len(table.kind)):
        own = slice(table.start[f], table.start[f + 1])
        variable, negated, weight = table.variable[own], table.negated[own] != 0, table.weight[own]

        def demand(c: np.ndarray, most: float, variable=variable, negated=negated) -> None:
            row = np.zeros(parts)
            row[variable] = np.where(negated, -c, c)
            rows.append(row)
            bounds.append(most - c[negated].sum())

        ones, unit = np.ones(len(variable)), np.eye(len(variable))
        kind = table.kind[f]
        if kind in (FactorKind.ONE, FactorKind.AT_MOST_ONE):
            demand(ones, 1)
        if kind in (FactorKind.ONE, FactorKind.AT_LEAST_ONE):
            demand(-ones, -1)
        if kind in (FactorKind.ANY, FactorKind.NEEDS):
            for i in range(len(variable) - 1):
                demand(unit[i] - unit[-1], 0)
        if kind == FactorKind.ANY:
            demand(2 * unit[-1] - ones, 0)
        if kind == FactorKind.SUM:
            demand(weight, table.most[f])
            demand(-weight, -table.least[f])
    return scipy.sparse.csr_matrix(np.array(rows).reshape(-1, parts)), np.array(bounds)


def by_highs(scores: np.ndarray, table: FactorTable, *, integral: bool) -> float | None:
    """The best value, of members or of the relaxation; `None` if there is none."""
    matrix, bound = inequalities(table, len(scores))
    constraints = [(matrix, np.full(len(bound), -np.inf), bound)] if len(bound) else []
    whole = np.full(len(scores), int(integral))
    found = scipy.optimize.milp(-scores, constraints=constraints, bounds=(0, 1), integrality=whole)
    return None if found.x is None else -found.fun


def grid(side: int, coupling: float, seed: int) -> tuple[spigot.FactorGraph, Tensor]:
    """Variables on a grid, and a score for every two neighbours."""
    generator = np.random.default_rng(seed)
    place = np.arange(side * side).reshape(side, side)
    first = np.concatenate((place[:, :-1].ravel(), place[:-1].ravel()))
    second = np.concatenate((place[:, 1:].ravel(), place[1:].ravel()))
    both = side * side + np.arange(len(first))
    scores = np.concatenate((generator.normal(size=side * side), coupling * generator.normal(size=len(first))))
    return spigot.FactorGraph(len(scores), [Pair(first, second, both)]), torch.from_numpy(scores)


def test_the_best_member_by_brute_force() -> None:
    generator = np.random.default_rng(0)
    fractional = none = 0
    for _ in range(80):
        parts = int(generator.integers(5, 9))
        factors = random_factors(generator, parts, int(generator.integers(1, 7)))
        graph = spigot.FactorGraph(parts, factors, exact=True)
        scores = torch.from_numpy(generator.normal(size=parts))
        every = members(graph)
        if not len(every):
            none += 1
            with pytest.raises(NoStructureError, match="contradict each other"):
                graph.argmax(scores)
            continue
        solution = graph.solve(scores)
        assert solution.optimal
        assert graph.contains(solution.z)
        torch.testing.assert_close(solution.value, (every @ scores).max(), rtol=0, atol=1e-5)
        fractional += not bool(solution.integral)
        # Without proof: a member, and a bound that holds.
        rough = spigot.FactorGraph(parts, factors).solve(scores)
        assert graph.contains(rough.z)
        assert rough.value - 1e-6 <= solution.value <= rough.bound + 1e-6
        assert bool(rough.optimal) <= bool(rough.value >= solution.value - 1e-5)
    assert fractional > 3
    assert none >= 1


@pytest.mark.parametrize("seed", range(4))
def test_bound_relaxation_and_projection_by_second_algorithms(seed: int) -> None:
    generator = np.random.default_rng(seed)
    compared = 0
    for _ in range(12):
        parts = int(generator.integers(8, 14))
        graph = spigot.FactorGraph(parts, random_factors(generator, parts, 6), exact=True, tolerance=1e-7)
        scores = generator.normal(size=parts)
        table = graph._network.table
        best = by_highs(scores, table, integral=True)
        if best is None:
            continue
        solution = graph.solve(torch.from_numpy(scores))
        relaxed = by_highs(scores, table, integral=False)
        assert relaxed is not None
        assert abs(float(solution.value) - best) < 1e-5
        assert (graph.as_program().argmax(torch.from_numpy(scores)) @ torch.from_numpy(scores)) == pytest.approx(best)
        assert float(solution.relaxed @ torch.from_numpy(scores)) == pytest.approx(relaxed, abs=2e-2)
        assert graph.relaxation.contains(solution.relaxed, atol=2e-2)
        polytope = spigot.LinearPolytope(*inequalities(table, parts))
        point = torch.from_numpy(generator.normal(size=parts) * 2)
        torch.testing.assert_close(graph.relaxation.project(point), polytope.project(point), rtol=0, atol=1e-6)
        compared += 1
    assert compared >= 6


def test_the_projection_has_its_derivative() -> None:
    generator = np.random.default_rng(5)
    for _ in range(6):
        graph = spigot.FactorGraph(7, random_factors(generator, 7, 4))
        try:
            graph.argmax(torch.zeros(7))
        except NoStructureError:
            continue
        point = torch.from_numpy(generator.normal(size=7)).requires_grad_()
        assert torch.autograd.gradcheck(graph.relaxation.project, (point,), eps=1e-5, atol=1e-4)
        soft = spigot.argmax(point, graph, spigot.SparseMAP())
        torch.testing.assert_close(soft.detach(), graph.relaxation.project(point.detach()))
        assert torch.autograd.gradcheck(
            lambda s, graph=graph: spigot.argmax(s, graph, spigot.SparseMAP()), (point,), eps=1e-5, atol=1e-4
        )


@pytest.mark.parametrize("quadratic", [0.0, 1.0])
@pytest.mark.parametrize("fixes", [False, True])
def test_factors_side_by_side_as_one_by_one(quadratic: float, fixes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel puts factors into lanes and gives places to variables; the twin takes them as they come."""
    generator = np.random.default_rng(0)
    shared, pairs = 40, 30  # pairs have an output of their own; and of the last few variables no factor knows
    first, second = generator.permutation(shared)[:pairs], generator.permutation(shared)[:pairs]
    second = np.where(first == second, (second + 1) % shared, second)
    crossed = Pair(first, second, shared + np.arange(pairs))
    lonely = ExactlyOne(shared + pairs + np.arange(35).reshape(7, 5), output=np.arange(7))
    parts = shared + pairs + 35 + 3
    graph = spigot.FactorGraph(parts, [*random_factors(generator, shared, 60), crossed, lonely])
    scores = generator.normal(size=(3, parts))
    fixed = np.full(scores.shape, -1, np.int8)
    if fixes:
        fixed[generator.random(scores.shape) < 0.1] = 0
        fixed[generator.random(scores.shape) < 0.1] = 1
    found = []
    for available in {spigot.kernels.available, False}:
        monkeypatch.setattr("spigot._runtime.native.available", available)
        state = State.begin(graph._network, np.zeros(3, np.int64), scores, fixed, 0.3)
        for _ in range(2):  # the second goes on from the first; so few steps that rounding errors stay small
            run_ad3(state, Options(quadratic=quadratic, max_iterations=10, tolerance=1e-12))
        found.append(state)
    for one in found[1:]:
        for name in ("p", "q", "price"):
            np.testing.assert_allclose(getattr(one, name), getattr(found[0], name), rtol=0, atol=1e-9)
        for column in (Column.ITERATIONS, Column.RHO, Column.APART, Column.CHANGE, Column.BOUND):
            np.testing.assert_allclose(one[column], found[0][column], rtol=1e-9)


def test_semantic_graphs_as_a_factor_graph(record_property) -> None:
    """The same optimum as the assignment, wherever the relaxation is integral; the other cases are counted."""
    torch.manual_seed(0)
    fractional = total = 0
    for labels, deterministic in ((2, (0, 1)), (3, (0,)), (1, (0,))):
        graphs = spigot.SemanticGraphs(labels, deterministic)
        layout = spigot.JointGraphs((graphs,)).layout
        scores = torch.randn(700, 4, 4, 1 + labels, dtype=torch.float64)
        scores[..., 0] -= 0.8 * torch.eye(4)
        exists = layout.existing(graphs.full_mask(scores) & (torch.rand(scores.shape) < 0.9))
        joint = JointNetwork.of(layout, exists.numpy())
        values = joint.variables(scores.numpy().reshape(len(scores), -1))
        where = (joint.network, np.arange(len(scores)), values, joint.exists, joint.exists)
        found = best_members(*where, Options(tolerance=1e-4), exact=False, max_nodes=100)
        exact = (graphs.argmax(scores, exists) * scores).flatten(1).sum(1).numpy()
        np.testing.assert_allclose(found.value[found.optimal], exact[found.optimal], rtol=0, atol=1e-5)
        assert (found.bound >= exact - 1e-6).all()
        assert (found.value <= exact + 1e-9).all()
        fractional, total = fractional + int((~found.integral).sum()), total + len(scores)
        proven = best_members(*where, Options(tolerance=1e-4), exact=True, max_nodes=1000)
        np.testing.assert_allclose(proven.value, exact, rtol=0, atol=1e-5)
    record_property("fractional", f"{fractional} of {total}")
    assert 0 < fractional < 0.2 * total


def test_the_relaxation_is_fractional_where_it_should_be() -> None:
    """Two arguments of worth 1 for one role of a predicate of worth -1.5: half of each, though nothing is best."""
    predicate, first, second = 0, 1, 2
    factors = [Implies([first, second], output=predicate), AtMostOne([first, second])]
    graph = spigot.FactorGraph(3, factors, exact=True)
    solution = graph.solve(torch.tensor([-0.75, 1.0, 1.0], dtype=torch.float64))
    assert solution.value == 0.25
    solution = graph.solve(torch.tensor([-1.5, 1.0, 1.0], dtype=torch.float64))
    torch.testing.assert_close(solution.relaxed, torch.full((3,), 0.5, dtype=torch.float64), rtol=0, atol=1e-2)
    assert solution.z.tolist() == [0, 0, 0]
    assert solution.optimal
    assert not solution.integral
    assert solution.nodes > 0


@pytest.mark.parametrize("coupling", [0.3, 2.0])
def test_grids_against_highs(coupling: float) -> None:
    graph, scores = grid(7, coupling, seed=1)
    table = graph._network.table
    best = by_highs(scores.numpy(), table, integral=True)
    solution = graph.solve(scores)
    assert best is not None
    assert float(solution.value) <= best + 1e-6
    assert float(solution.bound) >= best - 1e-6
    assert float(solution.bound) == pytest.approx(by_highs(scores.numpy(), table, integral=False), abs=0.05)
    exact = spigot.FactorGraph(graph.parts, graph.factors, exact=True).solve(scores)
    assert float(exact.value) == pytest.approx(best, abs=1e-4)


def test_a_graph_for_each_instance() -> None:
    generator = np.random.default_rng(2)
    graphs = [spigot.FactorGraph(n, random_factors(generator, n, 3), exact=True) for n in (6, 7, 6, 8)]
    kept, alone = [], []
    scores = torch.randn(4, 8, dtype=torch.float64)
    for index, graph in enumerate(graphs):
        try:
            alone.append(graph.solve(scores[index, : graph.parts]).value)
            kept.append(index)
        except NoStructureError:
            continue
    several = spigot.FactorGraphs([graphs[i] for i in kept], exact=True)
    lengths = torch.tensor([graphs[i].parts for i in kept])
    found = several.solve(scores[kept][:, : int(lengths.max())], several.mask(lengths))
    torch.testing.assert_close(found.value, torch.stack(alone), rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="one for each"):
        several.argmax(torch.zeros(len(kept) + 1, int(lengths.max())))


def test_estimators_train_through_a_factor_graph() -> None:
    arcs = torch.tensor([[-1, 0, 1], [-1, -1, 2], [-1, 3, -1]])
    tree = spigot.FactorGraph(4, [Member(spigot.ProjectiveTrees(), arcs)])
    grad = torch.tensor([0.3, -0.2, 0.5, -0.4], dtype=torch.float64)
    scores = torch.tensor([1.0, 0.2, 0.4, -0.3], dtype=torch.float64, requires_grad=True)
    spigot.argmax(scores, tree, spigot.Spigot()).backward(grad)
    dense = torch.zeros(3, 3, dtype=torch.float64)
    own = torch.where(arcs >= 0, scores.detach()[arcs.clamp(min=0)], dense).requires_grad_()
    pushed = torch.where(arcs >= 0, grad[arcs.clamp(min=0)], dense)
    hull = spigot.Spigot(polytope=spigot.ConvexHull(spigot.ProjectiveTrees()))
    spigot.argmax(own, spigot.ProjectiveTrees(), hull, mask=arcs >= 0).backward(pushed)
    assert scores.grad is not None
    assert own.grad is not None
    torch.testing.assert_close(scores.grad, own.grad[arcs >= 0], rtol=0, atol=1e-6)
    for estimator in (spigot.LPGD(), spigot.IMLE(seed=1), spigot.BlackBox(), spigot.Identity()):
        leaf = scores.detach().requires_grad_()
        spigot.argmax(leaf, tree, estimator).backward(grad)
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match="names variable 5; the graph has 3"):
        spigot.FactorGraph(3, [AtMostOne([0, 5])])
    with pytest.raises(ValueError, match="no variables in row 1"):
        ExactlyOne([[0, 1], []])
    with pytest.raises(ValueError, match="variable 2 twice in row 0"):
        AtLeastOne([2, 1, 2])
    with pytest.raises(ValueError, match="at least 3 of 2 variables"):
        Budget([0, 1], most=4, least=3)
    with pytest.raises(ValueError, match="which no values meet"):
        Knapsack([0, 1], [1.0, 2.0], capacity=-1.0)
    with pytest.raises(TypeError, match="whole numbers"):
        AtMostOne([0.5, 1.0])
    with pytest.raises(TypeError, match="it takes factors"):
        spigot.FactorGraph(2, ["one"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(NoStructureError, match="contradict each other"):
        spigot.FactorGraph(2, [ExactlyOne([0, 1]), Implies([0], 1), Implies([1], 0)]).argmax(torch.zeros(2))
    chosen = spigot.FactorGraph(3, [ExactlyOne([0, 1])])
    assert chosen.argmax(torch.ones(3), torch.tensor([True, False, True])).tolist() == [1, 0, 1]
    with pytest.raises(NoStructureError, match="instance 1"):
        chosen.argmax(torch.ones(2, 3), torch.tensor([[True, True, True], [False, False, True]]))
    graph = spigot.FactorGraph(2, [ExactlyOne([0, 1])])
    with pytest.raises(ValueError, match="NaN"):
        graph.argmax(torch.tensor([0.0, torch.nan]))
    with pytest.raises(ValueError, match="infinite"):
        graph.argmax(torch.tensor([0.0, torch.inf]))
    assert graph.argmax(torch.tensor([-torch.inf, 0.0])).tolist() == [0, 1]
    with pytest.raises(NoStructureError):
        graph.argmax(torch.tensor([-torch.inf, -torch.inf]))
    assert graph.violations(torch.tensor([1.0, 1.0])) == [["exactly one of 0, 1 must be on"]]


def test_limits_end_in_an_answer() -> None:
    graph, scores = grid(6, 2.0, seed=3)
    hurried = spigot.FactorGraph(graph.parts, graph.factors, max_iterations=1)
    solution = hurried.solve(scores)
    assert hurried.contains(solution.z)
    assert solution.value <= solution.bound
    assert not solution.optimal
    exact = spigot.FactorGraph(graph.parts, graph.factors, exact=True, max_iterations=5, max_nodes=2).solve(scores)
    assert exact.nodes <= 2
    assert exact.bound >= exact.value


def test_without_factors_every_variable_is_free() -> None:
    free = spigot.FactorGraph(3)
    assert free.argmax(torch.tensor([1.0, -1.0, 0.0])).tolist() == [1, 0, 0]
    assert free.relaxation.project(torch.tensor([1.5, -1.0, 0.3])).tolist() == pytest.approx([1, 0, 0.3])
    assert free.solve(torch.zeros(2, 3)).optimal.all()
    assert spigot.FactorGraph(0).argmax(torch.zeros(4, 0)).shape == (4, 0)
    again = pickle.loads(pickle.dumps(free))
    assert again.argmax(torch.ones(3)).tolist() == [1, 1, 1]
