"""One test for each equation, algorithm and constant of Peng, Thomson and Smith (2018) about the core.

Numbers of equations are the paper's. Each test writes the statement out by hand and compares the library with it.
"""

import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import (
    AbstractStructure,
    ArcLabel,
    ConvexHull,
    HeadSimplex,
    NonProjectiveTrees,
    OneOf,
    ProjectiveTrees,
    SemanticGraphs,
    Simplex,
    Spigot,
    StraightThrough,
    StructuredAttention,
    ZeroOneProgram,
)
from tests.spigot import brute
from tests.spigot.cases import STRUCTURES, StructureCase

every_case = pytest.mark.parametrize("case", STRUCTURES, ids=str)


def gradient(scores: Tensor, structure: AbstractStructure, rule: spigot.AbstractEstimator, grad: Tensor) -> Tensor:
    leaf = scores.detach().clone().requires_grad_()
    spigot.argmax(leaf, structure, rule).backward(grad)
    assert leaf.grad is not None
    return leaf.grad


@every_case
def test_equation_1_argmax_over_structures(case: StructureCase) -> None:
    """z = argmax over Z of z . s."""
    scores, mask = case.draw(80, 10)
    z = case.structure.argmax(scores, mask)
    for s, m, answer in zip(scores, mask, z, strict=True):
        vertices = case.vertices(m)
        assert torch.equal(answer, vertices[brute.values(vertices, s).argmax()])


def tree_constraints(n: int) -> tuple[Tensor, Tensor, list[int], list[list[int]]]:
    """Trees over n positions as A [z; psi] <= b: one head each, and no set of words that nothing enters.

    The sets are written out, so psi is empty here; the arcs are listed in the last result.
    """
    arcs = [[i, j] for i in range(n) for j in range(1, n) if i != j]
    rows, bounds = [], []
    for j in range(1, n):
        rows.append([float(m == j) for _, m in arcs])
        bounds.append(1.0)
    equality = list(range(len(rows)))
    for code in range(1, 2 ** (n - 1)):
        words = {j for j in range(1, n) if code >> (j - 1) & 1}
        rows.append([-float(m in words and h not in words) for h, m in arcs])
        bounds.append(-1.0)
    return torch.tensor(rows), torch.tensor(bounds), equality, arcs


def test_equation_2_structures_as_linear_inequalities() -> None:
    """Z = {z binary : A [z; psi] <= b}: the same trees by constraints and by definition."""
    a, b, equality, arcs = tree_constraints(4)
    program = ZeroOneProgram(a, b, equality=equality)
    trees = NonProjectiveTrees(single_root=False)
    members = brute.trees(trees.mask(torch.tensor(3)), projective=False, single_root=False)
    heads, modifiers = zip(*arcs, strict=True)
    flat = members[:, heads, modifiers]
    assert program.contains(flat).all()
    everything = brute.subsets(torch.ones(len(arcs), dtype=torch.bool))
    assert int(program.contains(everything).sum()) == len(members) == 16
    scores = torch.randn(10, 4, 4, dtype=torch.float64)
    z = program.argmax(scores[:, heads, modifiers])
    assert torch.equal(z, trees.argmax(scores)[:, heads, modifiers])


def test_equation_2_auxiliary_variables_are_maximised_over() -> None:
    """psi belongs to the constraints, not to the score: z may be anything that some psi supports."""
    # z1 + z2 <= 2 psi and psi + z3 <= 1: parts 1 and 2 need psi, which excludes part 3.
    a = torch.tensor([[1.0, 1.0, 0.0, -2.0], [0.0, 0.0, 1.0, 1.0]])
    program = ZeroOneProgram(a, torch.tensor([0.0, 1.0]), auxiliary=1)
    assert program.argmax(torch.tensor([1.0, 1.0, 1.5])).tolist() == [1, 1, 0]
    assert program.argmax(torch.tensor([1.0, 1.0, 2.5])).tolist() == [0, 0, 1]


def test_equation_3_the_chain_rule_with_the_true_jacobian_is_zero() -> None:
    """dL/ds = (dz/ds)^T dL/dz, and z is constant almost everywhere, so something must stand in for the Jacobian."""
    trees = ProjectiveTrees()
    scores = torch.randn(10, 6, 6, dtype=torch.float64)
    for _ in range(5):
        moved = scores + 1e-9 * torch.randn(10, 6, 6, dtype=torch.float64)
        assert torch.equal(trees.argmax(moved), trees.argmax(scores))
    g = torch.randn(10, 6, 6, dtype=torch.float64)
    possible = trees.full_mask(g)
    assert torch.equal(gradient(scores, trees, StraightThrough(), g), g.masked_fill(~possible, 0))


@every_case
def test_equation_4a_the_step(case: StructureCase) -> None:
    """p = z - eta dL/dz."""
    scores, mask = case.draw(81, 4)
    g = torch.randn(scores.shape, dtype=torch.float64)
    account = Spigot(eta=0.3).explain(case.structure, scores, g, mask)
    assert account.stepped is not None
    expected = case.structure.argmax(scores, mask) - 0.3 * g.masked_fill(~mask, 0)
    torch.testing.assert_close(account.stepped, expected, rtol=0, atol=1e-12)


@every_case
def test_equation_4b_the_projection(case: StructureCase) -> None:
    """z~ = proj_P(p): in P, and no vertex of P lies nearer in the direction left over."""
    scores, mask = case.draw(82, 4)
    g = torch.randn(scores.shape, dtype=torch.float64)
    account = Spigot(eta=0.3).explain(case.structure, scores, g, mask)
    assert account.stepped is not None
    assert account.projected is not None
    assert case.structure.relaxation.contains(account.projected, mask).all()
    for p, nearest, m in zip(account.stepped, account.projected, mask, strict=True):
        outward = p - nearest
        reach = brute.values(case.vertices(m), outward).max() - (outward * nearest).sum()
        assert reach <= 1e-8


@every_case
def test_equation_4c_the_gradient(case: StructureCase) -> None:
    """dL/ds := z - z~."""
    scores, mask = case.draw(83, 4)
    g = torch.randn(scores.shape, dtype=torch.float64)
    account = Spigot(eta=0.3).explain(case.structure, scores, g, mask)
    assert account.projected is not None
    torch.testing.assert_close(account.gradient, account.z - account.projected, rtol=0, atol=1e-12)
    leaf = scores.clone().requires_grad_()
    spigot.argmax(leaf, case.structure, Spigot(eta=0.3), mask=mask).backward(g)
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad, account.gradient, rtol=0, atol=1e-9)


def test_equation_5_the_relaxation_of_dependency_trees() -> None:
    """P_DEP: p in [0,1], and the heads of each word sum to one; nothing about cycles, crossings or roots."""
    for trees in (ProjectiveTrees(), NonProjectiveTrees()):
        assert trees.relaxation == HeadSimplex()
    p = HeadSimplex().project(3 * torch.randn(5, 6, 6, dtype=torch.float64))
    assert (p >= 0).all()
    assert (p <= 1).all()
    torch.testing.assert_close(p[..., 1:].sum(-2), torch.ones(5, 5, dtype=torch.float64))
    cycle = torch.zeros(3, 3)
    cycle[1, 2] = cycle[2, 1] = 1
    assert HeadSimplex().contains(cycle)
    assert not NonProjectiveTrees().contains(cycle)


def test_equation_6_the_relaxation_of_semantic_graphs() -> None:
    """P_SDP: p in [0,1], and the labels of each arc sum to the arc; nothing about predicates or determinism."""
    graphs = SemanticGraphs(labels=3, deterministic=(0,))
    assert graphs.relaxation == ArcLabel()
    point = 2 * torch.randn(5, 4, 4, 4, dtype=torch.float64)
    p = ArcLabel().project(point)
    assert (p >= 0).all()
    assert (p <= 1).all()
    predicates, arcs, labelled = graphs.unpack(p)
    torch.testing.assert_close(labelled.sum(-1), arcs, rtol=0, atol=1e-12)
    torch.testing.assert_close(predicates, graphs.unpack(point)[0].clamp(0, 1))
    twice = torch.zeros(3, 3, 4)
    twice[0, 1:, :2] = 1
    assert ArcLabel().contains(twice)
    assert not graphs.contains(twice)


def test_equation_7_head_features_through_the_layer() -> None:
    """h~_j = [h_j ; sum_i z(i -> j) h_i], and dL/dz(i -> j) = h_i . dL/d(head slot of j) reaches the scores."""
    trees = ProjectiveTrees()
    states = torch.randn(3, 7, 4, dtype=torch.float64)
    scores = torch.randn(3, 7, 7, dtype=torch.float64, requires_grad=True)
    mask = trees.mask(torch.tensor([6, 4, 0]), size=7)
    z = spigot.argmax(scores, trees, Spigot(), mask=mask)
    heads = z.mT @ states
    features = torch.cat([states, heads], -1)
    for instance, length in ((0, 6), (1, 4)):
        for j in range(1, length + 1):
            head = int(z[instance, :, j].argmax())
            assert torch.equal(features[instance, j, 4:], states[instance, head])
    assert not heads[:, 0].any(), "the root has no head"
    assert not heads[2].any()
    out = torch.randn(3, 7, 8, dtype=torch.float64)
    (features * out).sum().backward()
    g = torch.einsum("bid,bjd->bij", states, out[..., 4:]).masked_fill(~mask, 0)
    z = z.detach()
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad, z - HeadSimplex().project(z - g, mask), rtol=0, atol=1e-12)


def test_algorithm_1_forward_and_backward_of_a_pipeline() -> None:
    """Scores, argmax, end loss; then dL/dz, step, projection, z - z~, and on into the parameters of the scorer."""
    trees = ProjectiveTrees()
    eta = 0.7
    x = torch.randn(3, 5, 5, 4, dtype=torch.float64)
    phi = torch.randn(4, dtype=torch.float64, requires_grad=True)
    theta = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    z = spigot.argmax(x @ phi, trees, Spigot(eta))
    loss = torch.tanh((z * theta).sum((1, 2))).sum()
    loss.backward()

    with torch.no_grad():
        s = x @ phi
        z_hat = trees.argmax(s)
        assert torch.equal(z_hat, z)
        value = (z_hat * theta).sum((1, 2), keepdim=True)
        g = (1 - torch.tanh(value) ** 2) * theta * trees.full_mask(s)
        target = HeadSimplex().project(z_hat - eta * g)
        expected = ((z_hat - target).unsqueeze(-1) * x).sum((0, 1, 2))
    assert phi.grad is not None
    torch.testing.assert_close(phi.grad, expected)
    assert theta.grad is not None
    assert theta.grad.abs().sum() > 0, "the end model learns as usual"


def test_algorithm_2_projection_onto_the_relaxation_of_trees() -> None:
    """For each modifier, its heads are projected onto the simplex; the modifiers do not see each other."""
    point = 2 * torch.randn(4, 7, 7, dtype=torch.float64)
    mask = ProjectiveTrees().mask(torch.tensor([6, 5, 2, 0]))
    p = HeadSimplex().project(point, mask)
    by_hand = torch.zeros_like(p)
    for b in range(4):
        for j in range(1, 7):
            heads = mask[b, :, j].nonzero()[:, 0]
            if len(heads):
                by_hand[b, heads, j] = Simplex().project(point[b, heads, j])
    torch.testing.assert_close(p, by_hand, rtol=0, atol=1e-14)


@given(st.integers(0, 10_000), st.sampled_from(range(len(STRUCTURES))), st.sampled_from([0.1, 1.0, 10.0]))
def test_footnote_distance_to_every_member_never_grows(seed: int, which: int, eta: float) -> None:
    """P is convex, so ||z~ - z*|| <= ||p - z*|| for every z* in Z, whatever the loss is."""
    case = STRUCTURES[which]
    scores, mask = case.draw(seed, 1)
    g = torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    account = Spigot(eta).explain(case.structure, scores, g, mask)
    assert account.stepped is not None
    assert account.projected is not None
    members = case.vertices(mask[0])
    before = (account.stepped - members).flatten(1).square().sum(1)
    after = (account.projected - members).flatten(1).square().sum(1)
    assert (after <= before + 1e-7).all()


def test_constants_of_the_experiments() -> None:
    """eta = 1 for trees inside a semantic parser, 5/32 for graphs inside a classifier."""
    assert Spigot().eta == 1.0
    graphs = SemanticGraphs(labels=2)
    scores, g = torch.randn(2, 3, 4, 4, 3, dtype=torch.float64)
    z = graphs.argmax(scores)
    g = g.masked_fill(~graphs.full_mask(g), 0)
    expected = z - ArcLabel().project(z - 5 / 32 * g)
    torch.testing.assert_close(gradient(scores, graphs, Spigot(eta=5 / 32), g), expected, rtol=0, atol=1e-12)


def test_constants_of_the_costs() -> None:
    """Half a point for each wrong and each missing arc of a tree."""
    defaults = {name: p.default for name, p in inspect.signature(spigot.structured_hinge).parameters.items()}
    assert defaults["false_positive"] == defaults["false_negative"] == 0.5


def test_section_2_straight_through_is_spigot_without_constraints() -> None:
    """When the step stays inside P, the projection does nothing and SPIGOT passes eta times the gradient."""
    scores = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    g = torch.tensor([0.6, -0.4, -0.2], dtype=torch.float64)
    torch.testing.assert_close(gradient(scores, OneOf(), Spigot(eta=1.0), g), g)
    torch.testing.assert_close(gradient(scores, OneOf(), StraightThrough(), g), g)
    outside = torch.tensor([0.6, -0.4, 0.1], dtype=torch.float64)
    assert not torch.allclose(gradient(scores, OneOf(), Spigot(eta=1.0), outside), outside)


def test_section_2_structured_attention_replaces_the_argmax_by_marginals() -> None:
    trees = ProjectiveTrees()
    scores = torch.randn(4, 5, 5, dtype=torch.float64)
    members = brute.trees(trees.mask(torch.tensor(4)), projective=True, single_root=True)
    soft = spigot.argmax(scores, trees, StructuredAttention())
    torch.testing.assert_close(soft, torch.stack([brute.marginals(members, s) for s in scores]))


def test_perceptron_view_of_the_gradient() -> None:
    """z - z~ is the gradient of the perceptron loss max_z s.z - s.z~ with the projected point as its target."""
    trees = ProjectiveTrees()
    scores, g = torch.randn(2, 4, 6, 6, dtype=torch.float64)
    account = Spigot().explain(trees, scores, g)
    assert account.projected is not None
    leaf = scores.clone().requires_grad_()
    loss = spigot.structured_hinge(
        leaf, account.projected, trees, mask=trees.full_mask(scores), false_positive=0.0, false_negative=0.0
    )
    loss.sum().backward()
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad, account.gradient, rtol=0, atol=1e-12)


def test_supplement_clip_of_the_published_program() -> None:
    """p = z - g min(1, T / ||g||), the norm over all parts of a sentence; T = 1 and 5/32."""
    trees = ProjectiveTrees()
    scores, g = torch.randn(2, 4, 6, 6, dtype=torch.float64)
    g = g.masked_fill(~trees.full_mask(g), 0)
    for threshold in (1.0, 5 / 32):
        scaled = torch.stack([x * min(1.0, threshold / float(x.norm())) for x in g])
        expected = gradient(scores, trees, Spigot(), scaled)
        torch.testing.assert_close(gradient(scores, trees, Spigot(max_norm=threshold), g), expected, rtol=0, atol=1e-12)


def test_future_work_projection_onto_the_exact_polytope() -> None:
    """The tighter set the paper names: P = conv Z, one SparseMAP of the stepped point."""
    trees = ProjectiveTrees()
    scores, g = torch.randn(2, 3, 5, 5, dtype=torch.float64)
    g = g.masked_fill(~trees.full_mask(g), 0)
    members = brute.trees(trees.mask(torch.tensor(4)), projective=True, single_root=True)
    out = gradient(scores, trees, Spigot(polytope=ConvexHull(trees)), g)
    z = trees.argmax(scores)
    expected = torch.stack([brute.project(members, p) for p in z - g])
    torch.testing.assert_close(z - out, expected, rtol=0, atol=1e-7)
