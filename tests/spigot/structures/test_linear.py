"""0/1 programs: against enumeration, against structures that are known otherwise, and at the edges."""

import copy
import itertools
import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch import Tensor

import spigot
from spigot import ConvexHull, LinearPolytope, OneOf, RelaxedProgram, Spigot, StraightThrough, ZeroOneProgram

KNAPSACK = ZeroOneProgram(torch.tensor([[3.0, 4.0, 5.0]]), torch.tensor([8.0]))
INFINITY = math.inf


def members(A: np.ndarray, b: np.ndarray, auxiliary: int, equality: list[int], mask: np.ndarray) -> np.ndarray:
    """All z of a program with binary auxiliary variables, by definition."""
    d = A.shape[1] - auxiliary
    found = []
    for z in itertools.product([0, 1], repeat=d):
        for psi in itertools.product([0, 1], repeat=auxiliary):
            value = A @ np.array([*z, *psi])
            if (value <= b).all() and (value[equality] == b[equality]).all() and not np.array(z)[~mask].any():
                found.append(z)
                break
    return np.array(found, dtype=float).reshape(-1, d)


def rank(z: np.ndarray, scores: np.ndarray) -> tuple[int, int, Fraction]:
    """What the argmax maximises, exactly: few at -inf, many at +inf, then the sum of the rest."""
    on = z > 0
    finite = on & np.isfinite(scores)
    minus, plus = int((on & (scores == -INFINITY)).sum()), int((on & (scores == INFINITY)).sum())
    return -minus, plus, sum(map(Fraction, scores[finite].tolist()), start=Fraction(0))


@st.composite
def programs(draw, most_auxiliary: int = 2):
    d, auxiliary, m = draw(st.integers(1, 6)), draw(st.integers(0, most_auxiliary)), draw(st.integers(0, 3))
    whole = st.integers(-3, 4)
    A = np.array(draw(st.lists(whole, min_size=m * (d + auxiliary), max_size=m * (d + auxiliary))), dtype=float)
    b = np.array(draw(st.lists(st.integers(-2, 5), min_size=m, max_size=m)), dtype=float)
    equality = [0] if m and draw(st.booleans()) else []
    mask = np.array(draw(st.lists(st.sampled_from([True, True, True, False]), min_size=d, max_size=d)))
    return A.reshape(m, d + auxiliary), b, auxiliary, equality, mask


ORDINARY = st.floats(-10, 10, allow_nan=False, width=32)
WILD = st.one_of(ORDINARY, st.sampled_from([1e8, -1e8, 1e-8, 1e300, -1e300, INFINITY, -INFINITY, 0.0]))


@pytest.mark.parametrize("scale", [ORDINARY, WILD], ids=["ordinary", "wild"])
@settings(max_examples=60)
@given(data=st.data())
def test_no_member_is_better(scale, data) -> None:
    A, b, auxiliary, equality, mask = data.draw(programs())
    scores = np.array(data.draw(st.lists(scale, min_size=len(mask), max_size=len(mask))))
    program = ZeroOneProgram(A, b, auxiliary, equality=equality)
    every = members(A, b, auxiliary, equality, mask)
    if not mask.any():
        assert not program.argmax(torch.tensor(scores), torch.tensor(mask)).any()
        return
    if len(every) == 0:
        with pytest.raises(ValueError, match="no solution"):
            program.argmax(torch.tensor(scores), torch.tensor(mask))
        return
    z = program.argmax(torch.tensor(scores), torch.tensor(mask)).numpy()
    assert any((z == other).all() for other in every)
    assert rank(z, scores) == max(rank(other, scores) for other in every)


@settings(max_examples=20)
@given(data=st.data())
def test_contains_exactly_the_members(data) -> None:
    A, b, auxiliary, equality, mask = data.draw(programs())
    every = {tuple(z) for z in members(A, b, auxiliary, equality, mask).tolist()}
    if not mask.any():
        every = {(0.0,) * len(mask)}
    program = ZeroOneProgram(A, b, auxiliary, equality=equality)
    corners = list(itertools.product([0.0, 1.0], repeat=len(mask)))
    inside = program.contains(torch.tensor(corners), torch.tensor(mask))
    assert {corner for corner, yes in zip(corners, inside.tolist(), strict=True) if yes} == every


def test_one_of_k() -> None:
    program = ZeroOneProgram(torch.ones(1, 5), torch.ones(1), equality=[0])
    scores = torch.randn(20, 5)
    mask = program.mask(torch.randint(1, 6, (20,)))
    assert torch.equal(program.argmax(scores, mask), OneOf().argmax(scores, mask))
    point = torch.randn(20, 5, dtype=torch.float64)
    torch.testing.assert_close(program.relaxation.project(point, mask), OneOf().relaxation.project(point, mask))


def test_k_of_n() -> None:
    program = ZeroOneProgram(np.ones((1, 8)), np.array([3.0]), equality=[True])
    scores = torch.randn(10, 8)
    expected = torch.zeros(10, 8).scatter(-1, scores.topk(3).indices, 1.0)
    assert torch.equal(program.argmax(scores), expected)


def test_assignment() -> None:
    from scipy.optimize import linear_sum_assignment

    n = 4
    rows = [np.kron(np.eye(n)[i], np.ones(n)) for i in range(n)] + [np.kron(np.ones(n), np.eye(n)[i]) for i in range(n)]
    scores = torch.randn(5, n * n, dtype=torch.float64)
    for kind in (ZeroOneProgram, RelaxedProgram):  # the rows describe the hull, so both are integral
        z = kind(np.array(rows), np.ones(2 * n), equality=range(2 * n)).argmax(scores)
        for s, one in zip(scores.reshape(-1, n, n), z.reshape(-1, n, n), strict=True):
            i, j = linear_sum_assignment(s.numpy(), maximize=True)
            assert one.nonzero().tolist() == list(map(list, zip(i.tolist(), j.tolist(), strict=True)))


def flow_trees(n: int) -> tuple[np.ndarray, np.ndarray, list[int], Tensor]:
    """Dependency trees over n words: each word one head, and a unit of flow from the root to each word over used arcs.

    Auxiliary variables are flows in units of n, since they may not pass 1.
    """
    arcs = [(i, j) for i in range(n + 1) for j in range(1, n + 1) if i != j]
    heads, flows, links = (
        np.zeros((n, 2 * len(arcs))),
        np.zeros((n, 2 * len(arcs))),
        np.zeros((len(arcs), 2 * len(arcs))),
    )
    for a, (i, j) in enumerate(arcs):
        heads[j - 1, a] = 1
        flows[j - 1, len(arcs) + a] = n
        if i:
            flows[i - 1, len(arcs) + a] = -n
        links[a, len(arcs) + a], links[a, a] = 1, -1
    A, b = np.concatenate([heads, flows, links]), np.concatenate([np.ones(2 * n), np.zeros(len(arcs))])
    return A, b, list(range(2 * n)), torch.tensor(arcs)


def test_dependency_trees_by_flow() -> None:
    n = 3
    A, b, equality, arcs = flow_trees(n)
    program = ZeroOneProgram(sparse.csr_array(A), b, len(arcs), integral_auxiliary=False, equality=equality)
    scores = torch.randn(15, n + 1, n + 1, dtype=torch.float64)
    trees = spigot.NonProjectiveTrees(single_root=False).argmax(scores)
    assert torch.equal(program.argmax(scores[:, arcs[:, 0], arcs[:, 1]]), trees[:, arcs[:, 0], arcs[:, 1]])
    cycle = torch.zeros(n + 1, n + 1)
    cycle[0, 1] = cycle[2, 3] = cycle[3, 2] = 1
    (broken,) = program.violations(cycle[arcs[:, 0], arcs[:, 1]])
    assert broken
    assert all("with the best auxiliary variables" in message for message in broken)


def test_one_program_for_each_instance() -> None:
    A = torch.randint(-2, 4, (2, 3, 2, 5)).double()
    b = torch.randint(1, 5, (2, 3, 2)).double()
    scores = torch.randn(2, 3, 5, dtype=torch.float64)
    together = ZeroOneProgram(A, b).argmax(scores)
    point = LinearPolytope(A, b).project(scores)
    for i, j in itertools.product(range(2), range(3)):
        alone = ZeroOneProgram(A[i, j], b[i, j])
        assert torch.equal(together[i, j], alone.argmax(scores[i, j]))
        torch.testing.assert_close(point[i, j], alone.relaxation.project(scores[i, j]))
    shared = ZeroOneProgram(A[0, 0], b[:, 0])  # one A, a b for each
    assert torch.equal(shared.argmax(scores[:, 0])[1], ZeroOneProgram(A[0, 0], b[1, 0]).argmax(scores[1, 0]))


def test_more_batch_axes_than_programs() -> None:
    program = ZeroOneProgram(torch.ones(2, 1, 4), torch.tensor([[1.0], [2.0]]))
    assert program.argmax(torch.ones(3, 2, 4)).sum(-1).tolist() == [[1, 2]] * 3
    assert KNAPSACK.argmax(torch.ones(0, 3)).shape == (0, 3)
    assert KNAPSACK.violations(torch.ones(0, 3)) == []


def test_a_row_can_be_switched_off() -> None:
    program = ZeroOneProgram(torch.ones(1, 3), torch.tensor([INFINITY]))
    assert program.argmax(torch.ones(3)).sum() == 3
    assert program.relaxation.project(torch.full((3,), 2.0)).tolist() == [1, 1, 1]


def test_dtype_and_memory() -> None:
    scores = torch.randn(3, 4).t()[:3].t().float()  # not contiguous
    program = ZeroOneProgram(torch.ones(1, 3), torch.ones(1))
    z = program.argmax(scores[:, :3])
    assert z.dtype == torch.float32
    assert z.is_contiguous()
    assert program.argmax(scores[:, :3].double()).dtype == torch.float64
    learnt = torch.randn(3, requires_grad=True)
    assert not program.argmax(learnt).requires_grad


def test_masked_scores_are_not_looked_at() -> None:
    scores = torch.tensor([1.0, torch.nan, 2.0])
    mask = torch.tensor([True, False, True])
    assert KNAPSACK.argmax(scores, mask).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match=r"scores of instance 1 are NaN at part \[1\]"):
        KNAPSACK.argmax(torch.stack([torch.ones(3), scores]), torch.ones(2, 3, dtype=torch.bool))


def test_nothing_exists() -> None:
    program = ZeroOneProgram(torch.ones(1, 3), torch.ones(1), equality=[0])
    mask = program.mask(torch.tensor([0, 2]))
    z = program.argmax(torch.ones(2, 3), mask)
    assert z[0].tolist() == [0, 0, 0]
    assert program.contains(z, mask).all()
    assert program.relaxation.contains(z, mask).all()
    assert not program.relaxation.project(torch.ones(2, 3), mask)[0].any()


def test_relaxed_program_may_be_fractional() -> None:
    relaxed = RelaxedProgram(KNAPSACK.A, KNAPSACK.b)
    scores = torch.tensor([2.0, 2.5, 2.8])
    z = relaxed.argmax(scores)
    torch.testing.assert_close(z, torch.tensor([1.0, 1.0, 0.2]))
    assert relaxed.contains(z)
    assert not KNAPSACK.contains(z)
    assert z @ scores >= KNAPSACK.argmax(scores) @ scores
    assert relaxed.relaxation == KNAPSACK.relaxation


@settings(max_examples=20)
@given(data=st.data())
def test_relaxation_bounds_the_program(data) -> None:
    A, b, auxiliary, equality, mask = data.draw(programs())
    every = members(A, b, auxiliary, equality, mask)
    scores = np.array(data.draw(st.lists(ORDINARY, min_size=len(mask), max_size=len(mask))))
    if not mask.any() or len(every) == 0:
        return
    relaxed = RelaxedProgram(A, b, auxiliary, equality=equality)
    p = relaxed.argmax(torch.tensor(scores), torch.tensor(mask))
    assert relaxed.contains(p, torch.tensor(mask))
    assert p.numpy() @ scores >= (every @ scores).max() - 1e-9
    assert relaxed.contains(torch.tensor(every), torch.tensor(mask)).all()


def test_violations_in_words() -> None:
    program = ZeroOneProgram(torch.tensor([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]]), torch.tensor([1.0, 0.0]), equality=[1])
    assert program.violations(torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]])) == [
        ["row 0: 2 > 1"],
        [],
        ["row 0: 2 > 1", "row 1: -1 != 0"],
    ]
    mask = torch.tensor([True, True, False])
    assert program.violations(torch.tensor([0.5, 0.5, 1.0]), mask) == [
        ["part 2 is 1 but masked", "part 0 is 0.5, not 0 or 1", "part 1 is 0.5, not 0 or 1", "row 0: 2 > 1"]
    ]
    assert program.violations(torch.tensor([torch.nan, 0.0, 0.0])) == [["part 0 is nan, not 0 or 1"]]
    relaxed = RelaxedProgram(program.A, program.b, equality=program.equality)
    assert relaxed.violations(torch.tensor([1.5, 1.5, -2.0])) == [
        [f"part {i} is {v}, outside [0, 1]" for i, v in ((0, 1.5), (1, 1.5), (2, -2))]
    ]


def test_equality_and_hash() -> None:
    A, b = torch.tensor([[3.0, 0.0, -5.0]]), torch.tensor([8.0])
    same = [
        ZeroOneProgram(A, b),
        ZeroOneProgram(A.numpy(), [8]),
        ZeroOneProgram(sparse.coo_array(A.numpy()), b.numpy()),
    ]
    assert len(set(same)) == 1
    others = [
        ZeroOneProgram(A, b + 1),
        ZeroOneProgram(A, b, equality=[0]),
        ZeroOneProgram(A, b, auxiliary=1),
        ZeroOneProgram(A, b, auxiliary=1, integral_auxiliary=False),
        RelaxedProgram(A, b),
        LinearPolytope(A, b),
    ]
    assert len({*same, *others}) == 1 + len(others)
    assert same[0] != "knapsack"


def test_what_was_given_can_change_afterwards() -> None:
    A = np.array([[3.0, 4.0, 5.0]])
    program = ZeroOneProgram(A, np.array([8.0]))
    A[:] = 0
    assert program == KNAPSACK


def test_repr_is_short() -> None:
    assert repr(KNAPSACK) == "ZeroOneProgram(1 rows, 3 parts)"
    each = RelaxedProgram(torch.ones(7, 2, 5), torch.ones(2), 2, equality=[1])
    assert repr(each) == "RelaxedProgram(one each for (7,), 2 rows (1 equalities), 3 parts, 2 auxiliary)"


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_work(twin) -> None:
    other = twin(KNAPSACK)
    assert other == KNAPSACK
    assert other.argmax(torch.ones(3)).sum() == 2
    assert other.relaxation.project(torch.ones(3)).sum() > 0


def test_two_threads_at_once() -> None:
    scores = torch.randn(2, 30, 3)
    alone = [KNAPSACK.argmax(s) for s in scores]
    together: dict[int, Tensor] = {}
    threads = [threading.Thread(target=lambda i=i: together.update({i: KNAPSACK.argmax(scores[i])})) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(together[i], alone[i]) for i in (0, 1))


@pytest.mark.parametrize("program", [KNAPSACK, RelaxedProgram(KNAPSACK.A, KNAPSACK.b)], ids=repr)
@pytest.mark.parametrize("estimator", [Spigot(), Spigot(polytope=ConvexHull(KNAPSACK)), StraightThrough()], ids=repr)
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch's own tracer
def test_inside_a_compiled_model(program, estimator) -> None:
    torch._dynamo.reset()
    scorer, layer = torch.nn.Linear(4, 3), spigot.Argmax(program, estimator)

    def model(features: Tensor) -> Tensor:
        return (layer(scorer(features)) * torch.tensor([1.0, -2.0, 0.5])).sum()

    features = torch.randn(5, 4)
    expected = model(features)
    expected.backward()
    assert scorer.weight.grad is not None
    gradient, scorer.weight.grad = scorer.weight.grad, None
    value = torch.compile(model, fullgraph=True, backend="aot_eager")(features)
    value.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(scorer.weight.grad, gradient)


def test_spigot_is_equation_4() -> None:
    scores = torch.tensor([2.0, 2.5, 2.8], dtype=torch.float64, requires_grad=True)
    grad = torch.tensor([0.3, -1.0, 0.2], dtype=torch.float64)
    z = spigot.argmax(scores, KNAPSACK, Spigot(eta=0.5))
    (z * grad).sum().backward()
    expected = z.detach() - KNAPSACK.relaxation.project(z.detach() - 0.5 * grad)
    torch.testing.assert_close(scores.grad, expected)
    assert expected.any()


EACH = ZeroOneProgram(torch.ones(1, 2), torch.tensor([[2.0], [3.0]]), equality=[0])
WRONG = [
    (ValueError, r"A has shape \(3,\)", lambda: ZeroOneProgram(torch.ones(3), torch.ones(1))),
    (ValueError, r"b has shape \(1,\) and A \(2, 3\)", lambda: ZeroOneProgram(torch.ones(2, 3), torch.ones(1))),
    (ValueError, "auxiliary is 3; A has 3 columns", lambda: ZeroOneProgram(torch.ones(1, 3), torch.ones(1), 3)),
    (ValueError, "equality names row 4", lambda: ZeroOneProgram(torch.ones(1, 3), torch.ones(1), equality=[4])),
    (ValueError, r"mask of shape \(2,\)", lambda: ZeroOneProgram(np.ones((1, 3)), [1.0], equality=[True, False])),
    (TypeError, "row indices", lambda: ZeroOneProgram(torch.ones(1, 3), torch.ones(1), equality=torch.ones(1))),
    (ValueError, "A has batch axes", lambda: ZeroOneProgram(torch.ones(2, 1, 3), torch.ones(3, 1))),
    (ValueError, "A has an entry that is not finite", lambda: ZeroOneProgram(torch.full((1, 3), torch.nan), [1.0])),
    (ValueError, "b has an entry", lambda: ZeroOneProgram(torch.ones(1, 3), [INFINITY], equality=[0])),
    (TypeError, "A must be numbers", lambda: ZeroOneProgram([["one"]], [1.0])),
    (ValueError, r"scores has shape \(4,\).*3 entries", lambda: KNAPSACK.argmax(torch.ones(4))),
    (TypeError, "floating point", lambda: KNAPSACK.argmax(torch.ones(3, dtype=torch.int64))),
    (ValueError, "a length is 4", lambda: KNAPSACK.mask(torch.tensor([4]))),
    (ValueError, "size is 7", lambda: KNAPSACK.mask(torch.tensor([2]), size=7)),
    (ValueError, r"one program for each instance of \(2,\)", lambda: EACH.argmax(torch.ones(5, 2))),
    (ValueError, r"program of instance 1 has no solution", lambda: EACH.argmax(torch.ones(2, 2))),
]


@pytest.mark.parametrize(("kind", "message", "call"), WRONG, ids=[message for _, message, _ in WRONG])
def test_errors_say_what_is_wrong(kind, message, call) -> None:
    with pytest.raises(kind, match=message):
        call()
