"""BlackBox, I-MLE and perturbed optimisers: one argmax against another, with noise and without."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import IMLE, AbstractEstimator, BlackBox, OneOf, Perturbed, ProjectiveTrees, SemanticGraphs, Spigot
from spigot.estimators.noise import gaussian, gumbel
from tests.spigot import brute
from tests.spigot.cases import STRUCTURES, StructureCase

every_case = pytest.mark.parametrize("case", STRUCTURES, ids=str)


def backward(
    scores: Tensor,
    structure: spigot.AbstractStructure,
    rule: AbstractEstimator,
    grad: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """z and dL/ds for a given dL/dz."""
    leaf = scores.detach().clone().requires_grad_()
    z = spigot.argmax(leaf, structure, rule, mask=mask)
    z.backward(grad)
    assert leaf.grad is not None
    return z.detach(), leaf.grad


def direction(scores: Tensor) -> Tensor:
    return torch.randn(scores.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(scores)


@every_case
@pytest.mark.parametrize("strength", [0.5, 20.0])
def test_blackbox_is_the_gradient_of_the_interpolated_loss(case: StructureCase, strength: float) -> None:
    """Vlastelica et al. (2020): f_λ(s) = (max z.s - max z.(s - λ g)) / λ, differentiated by autograd over the list."""
    scores, mask = case.draw(90, 40)
    g = direction(scores)
    _, mine = backward(scores, case.structure, BlackBox(strength), g, mask)
    moved = 0
    for s, m, d, gradient in zip(scores, mask, g, mine, strict=True):
        vertices = case.vertices(m).flatten(1)
        leaf = s.nan_to_num().masked_fill(~m, 0).flatten().requires_grad_()
        shifted = leaf - strength * d.masked_fill(~m, 0).flatten()
        interpolated = ((vertices @ leaf).max() - (vertices @ shifted).max()) / strength
        (theirs,) = torch.autograd.grad(interpolated, leaf)
        torch.testing.assert_close(gradient.flatten(), theirs, rtol=0, atol=1e-9)
        moved += bool(theirs.any())
    assert moved >= 2, "the comparison is not between zeros"


def test_blackbox_in_the_paper_is_for_costs() -> None:
    """Algorithm 1 there minimises w.y: w' = w + λ dL/dy, dL/dw = -(y(w) - y(w')) / λ. Here s = -w."""
    trees = ProjectiveTrees()
    costs, g = torch.randn(2, 6, 5, 5, dtype=torch.float64)
    cheapest, then = trees.argmax(-costs), trees.argmax(-(costs + 3.0 * g))
    by_costs = -(cheapest - then) / 3.0
    assert by_costs.any()
    torch.testing.assert_close(backward(-costs, trees, BlackBox(3.0), g)[1], -by_costs)


@given(st.integers(0, 10_000), st.floats(0.01, 100.0))
def test_blackbox_descends(seed: int, strength: float) -> None:
    """The target is never worse than z for the linearised loss, and the sizes are those of a difference over λ."""
    scores, g = torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    account = BlackBox(strength).explain(ProjectiveTrees(), scores, g)
    assert account.projected is not None
    assert (account.gradient * g).sum() >= -1e-9
    torch.testing.assert_close(strength * account.gradient, account.z - account.projected)


def test_blackbox_needs_strength_where_spigot_does_not() -> None:
    """A margin that the shifted scores do not cross gives nothing at all."""
    scores, g = torch.tensor([0.0, 5.0]), torch.tensor([-0.1, 0.1])
    assert not backward(scores, OneOf(), BlackBox(1.0), g)[1].any()
    assert backward(scores, OneOf(), BlackBox(100.0), g)[1].tolist() == pytest.approx([-0.01, 0.01])
    assert backward(scores, OneOf(), Spigot(), g)[1].any()


@every_case
def test_imle_without_noise_is_blackbox(case: StructureCase) -> None:
    scores, mask = case.draw(91, 8)
    g = direction(scores)
    for samples in (1, 2):
        theirs = backward(scores, case.structure, BlackBox(4.0), g, mask)
        mine = backward(scores, case.structure, IMLE(4.0, temperature=0.0, samples=samples), g, mask)
        for one, two in zip(mine, theirs, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


@every_case
def test_imle_compares_samples_with_their_targets(case: StructureCase) -> None:
    """Niepert et al. (2021): mean over ε of MAP(s + ε) - MAP(s - λ g + ε), over λ; each MAP from the list."""
    scores, mask = case.draw(92, 8)
    g = direction(scores)
    z, mine = backward(scores, case.structure, IMLE(3.0, temperature=2.0, samples=4, seed=11), g, mask)
    noise = 2.0 * gumbel(scores, mask, len(case.parts), seed=11, samples=4)

    def best(values: Tensor, m: Tensor) -> Tensor:
        vertices = case.vertices(m)
        return vertices[brute.values(vertices, values).argmax()]

    assert not torch.equal(z, case.structure.argmax(scores, mask)), "the noise does something"
    for i, (s, m, d) in enumerate(zip(scores, mask, g, strict=True)):
        drawn = [best(s + e, m) for e in noise[:, i]]
        targets = [best(s - 3.0 * d + e, m) for e in noise[:, i]]
        torch.testing.assert_close(z[i], drawn[0], rtol=0, atol=1e-9)
        expected = (torch.stack(drawn) - torch.stack(targets)).mean(0) / 3.0
        torch.testing.assert_close(mine[i], expected, rtol=0, atol=1e-9)


def test_imle_over_choices_is_the_difference_of_two_softmaxes() -> None:
    """Gumbel noise makes the samples exact, so that the mean gradient is (μ(s) - μ(s - λ g)) / λ."""
    scores, g = torch.tensor([[0.3, -0.4, 1.0, 0.0], [0.5, -0.2, 0.1, -0.6]], dtype=torch.float64)
    _, mine = backward(scores, OneOf(), IMLE(2.0, samples=40_000), g)
    expected = (scores.softmax(-1) - (scores - 2.0 * g).softmax(-1)) / 2.0
    torch.testing.assert_close(mine, expected, rtol=0, atol=0.005)
    assert expected.abs().max() > 0.05


def test_imle_forward_is_a_sample() -> None:
    scores = torch.randn(20_000, 1).expand(-1, 3) + torch.tensor([0.0, 1.0, -1.0])
    z = spigot.argmax(scores.clone().requires_grad_(), OneOf(), IMLE()).detach()
    assert (z.sum(-1) == 1).all()
    torch.testing.assert_close(z.mean(0), torch.tensor([0.0, 1.0, -1.0]).softmax(-1), rtol=0, atol=0.02)


def test_imle_makes_no_noise_in_use() -> None:
    trees = ProjectiveTrees()
    scores = torch.randn(10, 6, 6, requires_grad=True)
    plain = trees.argmax(scores.detach())
    assert not torch.equal(spigot.argmax(scores, trees, IMLE()), plain)
    assert torch.equal(spigot.argmax(scores.detach(), trees, IMLE()), plain)
    with torch.no_grad():
        assert torch.equal(spigot.argmax(scores, trees, IMLE()), plain)


@every_case
def test_perturbed_weighs_the_noise_by_its_loss(case: StructureCase) -> None:
    """Berthet et al. (2020): z = E MAP(s + τ ε), gradient E[(MAP - MAP(s)) . g ε] / τ, MAPs from the list."""
    scores, mask = case.draw(93, 6)
    g = direction(scores)
    z, mine = backward(scores, case.structure, Perturbed(0.8, samples=5, seed=3), g, mask)
    noise = gaussian(scores, mask, len(case.parts), seed=3, samples=5)
    for i, (s, m) in enumerate(zip(scores, mask, strict=True)):
        vertices, d = case.vertices(m), g[i].masked_fill(~m, 0)
        drawn = torch.stack([vertices[brute.values(vertices, s + 0.8 * e).argmax()] for e in noise[:, i]])
        plain = vertices[brute.values(vertices, s).argmax()]
        torch.testing.assert_close(z[i], drawn.mean(0), rtol=0, atol=1e-9)
        worth = ((drawn - plain) * d).flatten(1).sum(1)
        expected = torch.einsum("k,k...->...", worth, noise[:, i]) / 5 / 0.8
        torch.testing.assert_close(mine[i], expected.masked_fill(~m, 0), rtol=0, atol=1e-9)


def test_perturbed_of_two_choices_has_a_closed_form() -> None:
    """P(first) = Φ((s_1 - s_2) / (τ √2)), and so its derivative."""
    scores = torch.tensor([0.4, -0.3], dtype=torch.float64)
    g = torch.tensor([1.0, 0.0], dtype=torch.float64)
    z, mine = backward(scores, OneOf(), Perturbed(0.9, samples=200_000), g)
    x = 0.7 / (0.9 * math.sqrt(2))
    assert float(z[0]) == pytest.approx(0.5 * (1 + math.erf(x / math.sqrt(2))), abs=0.005)
    slope = math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / (0.9 * math.sqrt(2))
    assert mine.tolist() == pytest.approx([slope, -slope], abs=0.01)


def test_perturbed_follows_the_slope_of_its_mean_for_trees() -> None:
    """With many draws the gradient along a direction is the slope of the forward value along it."""
    trees = ProjectiveTrees()
    scores, g = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    along = g / g.norm()
    _, mine = backward(scores, trees, Perturbed(samples=60_000), g)
    mask = trees.full_mask(scores)
    noise = gaussian(scores, mask, 2, seed=99, samples=60_000)  # the same for both ends: only the scores differ
    above, below = (trees.argmax(scores + side * 0.2 * along + noise).mean(0) for side in (1, -1))
    slope = ((above - below) * g).sum() / 0.4
    assert float((mine * along).sum()) == pytest.approx(float(slope), abs=0.05)
    assert abs(float(slope)) > 0.1


NOISY = [IMLE(samples=2), Perturbed(samples=2)]


@pytest.mark.parametrize("rule", NOISY, ids=str)
def test_noise_belongs_to_the_instance(rule: IMLE | Perturbed) -> None:
    """The same in any batch and under any padding; another with another seed or other scores."""
    trees = ProjectiveTrees()
    scores, g = torch.randn(2, 6, 6, 6)
    mask = trees.mask(torch.tensor([5, 4, 3, 5, 2, 5]))
    z, whole = backward(scores, trees, rule, g, mask)
    wide = torch.full((9, 9), torch.nan)
    wide[:6, :6] = scores[1]
    wide_mask = torch.zeros(9, 9, dtype=torch.bool)
    wide_mask[:6, :6] = mask[1]
    wide_g = torch.zeros(9, 9)
    wide_g[:6, :6] = g[1]
    alone, gradient = backward(wide, trees, rule, wide_g, wide_mask)
    torch.testing.assert_close(alone[:6, :6], z[1])
    torch.testing.assert_close(gradient[:6, :6], whole[1])
    again = backward(scores, trees, rule, g, mask)
    assert torch.equal(again[0], z)
    assert torch.equal(again[1], whole)
    assert not torch.equal(backward(scores, trees, dataclasses.replace(rule, seed=1), g, mask)[0], z)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_noise_is_what_it_says(dtype: torch.dtype) -> None:
    """Moments, independence between parts, draws and instances, and a change by one bit of one score."""
    scores = torch.zeros(3, 4, dtype=dtype)
    scores[1, 2] = torch.finfo(dtype).tiny
    scores[2, 2] = -0.0
    mask = torch.ones(3, 4, dtype=torch.bool)
    normal = gaussian(scores, mask, 1, seed=0, samples=20_000).double()
    assert torch.equal(normal[:, 0], normal[:, 2])
    rows = normal[:, :2].reshape(20_000, 8)
    torch.testing.assert_close(rows.T.cov(), torch.eye(8, dtype=torch.float64), rtol=0, atol=0.04)
    torch.testing.assert_close(rows.mean(0), torch.zeros(8, dtype=torch.float64), rtol=0, atol=0.03)
    assert abs(float((rows[1:, 0] * rows[:-1, 0]).mean())) < 0.03
    drawn = gumbel(scores, mask, 1, seed=0, samples=20_000)
    assert drawn.isfinite().all()
    assert drawn.dtype == dtype
    assert float(drawn.mean()) == pytest.approx(0.5772, abs=0.02)
    assert float(drawn.var()) == pytest.approx(math.pi**2 / 6, abs=0.04)


@pytest.mark.parametrize("rule", [BlackBox(), *NOISY], ids=str)
def test_minus_infinity_is_never_chosen(rule: AbstractEstimator) -> None:
    scores = torch.tensor([[0.5, -torch.inf, 0.2, 0.1]])
    g = torch.tensor([[1.0, -5.0, 0.0, -1.0]])
    z, gradient = backward(scores, OneOf(), rule, g)
    assert z[0, 1] == 0
    assert gradient.isfinite().all()


@pytest.mark.parametrize("rule", [BlackBox(), *NOISY], ids=str)
def test_nan_scores_are_refused(rule: AbstractEstimator) -> None:
    with pytest.raises(ValueError, match="NaN"):
        spigot.argmax(torch.tensor([0.0, torch.nan], requires_grad=True), OneOf(), rule)


@pytest.mark.parametrize("rule", [BlackBox(), *NOISY, spigot.Identity()], ids=str)
def test_semantic_graphs_with_determinism(rule: AbstractEstimator) -> None:
    """The structure without marginals: a gradient that would take a role twice is never what is asked for."""
    graphs = SemanticGraphs(labels=3, deterministic=(0, 1))
    scores = torch.randn(4, 6, 6, 4)
    mask = graphs.mask(torch.tensor([5, 4, 3, 1]))
    z, gradient = backward(scores, graphs, rule, torch.randn(4, 6, 6, 4), mask)
    assert not rule.hard or graphs.contains(z, mask).all()
    assert gradient.any()
    assert not gradient[~mask].any()


def test_programs_with_rows_of_their_own() -> None:
    """Draws add an axis in front; constraints given for each instance still find theirs."""
    a, b = torch.ones(3, 1, 4), torch.tensor([[1.0], [2.0], [3.0]])
    program = spigot.ZeroOneProgram(a, b)
    scores = torch.randn(3, 4) + 9
    for rule in NOISY:
        z, _ = backward(scores, program, rule, torch.randn(3, 4))
        torch.testing.assert_close(z.sum(-1), torch.tensor([1.0, 2.0, 3.0]))


LEARNERS = [BlackBox(), IMLE(), IMLE(samples=4), Perturbed(), spigot.Identity(), spigot.Identity(normalise=True)]


@pytest.mark.parametrize("rule", LEARNERS, ids=str)
@pytest.mark.parametrize("structure", [OneOf(), ProjectiveTrees(), SemanticGraphs(2, (0,))], ids=str)
def test_learns_the_cheapest_structure_from_its_cost_alone(
    structure: spigot.AbstractStructure, rule: AbstractEstimator
) -> None:
    parts = {1: (6,), 2: (5, 5), 3: (4, 4, 3)}[structure.event_ndim]
    cost = torch.randn(5, *parts)
    scores = (0.1 * torch.randn(5, *parts)).requires_grad_()
    optimiser = torch.optim.SGD([scores], lr=1.0)
    axes = tuple(range(1, cost.ndim))
    best = (structure.argmax(-cost) * cost).sum(axes)

    def excess() -> float:
        return float(((structure.argmax(scores.detach()) * cost).sum(axes) - best).mean())

    before = excess()
    for step in range(80):
        if isinstance(
            rule, IMLE | Perturbed
        ):  # each instance has scores of its own: standing still, they need new noise
            rule = dataclasses.replace(rule, seed=step)
        optimiser.zero_grad()
        (spigot.argmax(scores, structure, rule) * cost).sum().backward()
        optimiser.step()
    assert before > 0.5
    assert excess() < 0.1 * before


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("rule", [BlackBox, IMLE])
def test_strength_must_be_positive(rule: type[BlackBox] | type[IMLE], value: float) -> None:
    with pytest.raises(ValueError, match=r"strength is .*positive"):
        rule(strength=value)


def test_settings_of_the_noise_are_checked() -> None:
    assert IMLE(temperature=0.0).temperature == 0
    for value in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="temperature"):
            IMLE(temperature=value)
        with pytest.raises(ValueError, match="temperature"):
            Perturbed(temperature=value)
    with pytest.raises(ValueError, match=r"temperature is 0.*BlackBox"):
        Perturbed(temperature=0.0)
    for rule in (IMLE, Perturbed):
        for count in (0, -1, 1.5):
            with pytest.raises(ValueError, match=r"samples is .*whole number"):
                rule(samples=count)  # pyright: ignore[reportArgumentType]
        for seed in (-1, 2**63, 0.5):
            with pytest.raises(ValueError, match=r"seed is .*whole number"):
                rule(seed=seed)  # pyright: ignore[reportArgumentType]


COMPILED = [
    pytest.param(OneOf(), IMLE(samples=3), id="OneOf-IMLE"),
    pytest.param(ProjectiveTrees(), BlackBox(), id="ProjectiveTrees-BlackBox"),
    pytest.param(SemanticGraphs(2, (0,)), IMLE(samples=2), id="SemanticGraphs-IMLE"),
    pytest.param(spigot.NonProjectiveTrees(), Perturbed(), id="NonProjectiveTrees-Perturbed"),
    pytest.param(SemanticGraphs(2, (0,)), spigot.Identity(normalise=True), id="SemanticGraphs-Identity"),
    pytest.param(spigot.ZeroOneProgram([[1, 1, 1, 1]], [2], equality=[0]), spigot.Identity(), id="Program-Identity"),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*TF32")
@pytest.mark.parametrize(("structure", "rule"), COMPILED)
def test_compiles_without_a_graph_break(structure: spigot.AbstractStructure, rule: AbstractEstimator) -> None:
    parts = {1: (4,), 2: (5, 5), 3: (4, 4, 3)}[structure.event_ndim]
    scores, weight = torch.randn(2, 3, *parts)

    def loss(s: Tensor) -> Tensor:
        return (spigot.argmax(s, structure, rule) * weight).square().sum()

    torch._dynamo.reset()
    results = []
    for call in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        leaf = scores.clone().requires_grad_()
        value = call(leaf)
        value.backward()
        results.append((value.detach(), leaf.grad))
    torch._dynamo.reset()
    for plain, traced in zip(*results, strict=True):
        torch.testing.assert_close(plain, traced)


@pytest.mark.parametrize("rule", [BlackBox(), *NOISY], ids=str)
def test_cannot_be_differentiated_again(rule: AbstractEstimator) -> None:
    scores = torch.randn(4, requires_grad=True)
    z = spigot.argmax(scores, OneOf(), rule)
    (g,) = torch.autograd.grad((z * torch.randn(4, requires_grad=True)).sum(), scores, create_graph=True)
    with pytest.raises(RuntimeError):
        g.sum().backward()
