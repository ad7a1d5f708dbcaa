"""The layer as a good citizen of PyTorch: graphs, compilation, threads, processes, copies."""

import copy
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import spigot
from spigot import (
    AbstractEstimator,
    AbstractPolytope,
    AbstractStructure,
    Argmax,
    ConvexHull,
    NonProjectiveTrees,
    OneOf,
    Pipeline,
    ProjectiveTrees,
    SemanticGraphs,
    SparseMAP,
    Spigot,
    StraightThrough,
    StructuredAttention,
)
from tests.spigot.cases import ESTIMATORS, POLYTOPES, STRUCTURES, StructureCase
from tests.spigot.masks import INTERVALS

TREES: list[ProjectiveTrees | NonProjectiveTrees] = [
    ProjectiveTrees(),
    ProjectiveTrees(single_root=False),
    NonProjectiveTrees(),
    NonProjectiveTrees(single_root=False),
]


def test_the_example_users_see_first() -> None:
    scores = torch.randn(8, 25, 25, requires_grad=True)
    trees = ProjectiveTrees()
    mask = trees.mask(torch.tensor([24, 20, 17, 24, 9, 12, 3, 1]))
    z = spigot.argmax(scores, trees, Spigot(eta=1.0), mask=mask)
    assert trees.contains(z, mask).all()
    weight = torch.randn(25, 25)
    loss = (z * weight).sum()
    loss.backward()
    g = weight.expand(8, 25, 25).masked_fill(~mask, 0)
    z = z.detach()
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad, z - trees.relaxation.project(z - g, mask))


def test_default_estimator_is_spigot() -> None:
    scores = torch.randn(3, 5)
    g = torch.randn(3, 5)
    results = []
    for layer in (Argmax(OneOf()), Argmax(OneOf(), Spigot(eta=1.0))):
        leaf = scores.clone().requires_grad_()
        layer(leaf).backward(g)
        results.append(leaf.grad)
    assert torch.equal(results[0], results[1])


def test_module_twin() -> None:
    trees = ProjectiveTrees()
    layer = Argmax(trees, StraightThrough())
    scores, mask = torch.randn(2, 4, 4), trees.mask(torch.tensor([3, 2]))
    assert torch.equal(layer(scores, mask), spigot.argmax(scores, trees, StraightThrough(), mask=mask))
    assert torch.equal(layer(scores), trees.argmax(scores))
    assert not list(layer.parameters())
    assert "ProjectiveTrees" in repr(layer)
    assert "StraightThrough" in repr(layer)
    assert copy.deepcopy(layer)(scores).equal(layer(scores))
    assert pickle.loads(pickle.dumps(layer))(scores).equal(layer(scores))


def test_one_mask_serves_a_whole_batch() -> None:
    trees = ProjectiveTrees()
    mask = trees.mask(torch.tensor(3), size=6)
    scores = torch.randn(2, 5, 6, 6)
    expected = trees.argmax(scores, mask.expand_as(scores))
    assert torch.equal(trees.argmax(scores, mask), expected)
    assert torch.equal(spigot.argmax(scores, trees, mask=mask), expected)


def scale_and_decode(layer: Argmax) -> nn.Module:
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer
            self.scale = nn.Parameter(torch.tensor(1.5))

        def forward(self, scores: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
            z = self.layer(self.scale * scores, mask)
            return (z * weight).square().sum()

    return Network()


COMPILED = [
    pytest.param(OneOf(), Spigot(), id="OneOf-Spigot"),
    pytest.param(OneOf(), StraightThrough(max_norm=1.0), id="OneOf-StraightThrough"),
    pytest.param(OneOf(), SparseMAP(), id="OneOf-SparseMAP"),
    pytest.param(ProjectiveTrees(), Spigot(), id="ProjectiveTrees-Spigot"),
    pytest.param(ProjectiveTrees(), StructuredAttention(), id="ProjectiveTrees-StructuredAttention"),
    pytest.param(ProjectiveTrees(), Spigot(polytope=ConvexHull(ProjectiveTrees())), id="ProjectiveTrees-hull"),
    pytest.param(ProjectiveTrees(), Pipeline(), id="ProjectiveTrees-Pipeline"),
    pytest.param(NonProjectiveTrees(), StraightThrough(), id="NonProjectiveTrees-StraightThrough"),
    pytest.param(NonProjectiveTrees(), StructuredAttention(), id="NonProjectiveTrees-StructuredAttention"),
    pytest.param(NonProjectiveTrees(), SparseMAP(), id="NonProjectiveTrees-SparseMAP"),
    pytest.param(SemanticGraphs(2, (0,)), Spigot(), id="SemanticGraphs-Spigot"),
    pytest.param(SemanticGraphs(2), StructuredAttention(), id="SemanticGraphs-StructuredAttention"),
    pytest.param(spigot.ZeroOneProgram(*INTERVALS), Spigot(), id="ZeroOneProgram-Spigot"),
]


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*TF32")
@pytest.mark.parametrize(("structure", "rule"), COMPILED)
def test_compiles_without_a_graph_break(structure: AbstractStructure, rule: AbstractEstimator) -> None:
    """Forward and backward, traced as one graph; the same numbers as without."""
    parts = {1: (5,), 2: (6, 6), 3: (4, 4, 3)}[structure.event_ndim]
    scores, weight = torch.randn(2, 3, *parts)
    mask = structure.full_mask(scores)
    results = []
    for compiled in (False, True):
        network = scale_and_decode(Argmax(structure, rule))
        call = torch.compile(network, fullgraph=True, backend="aot_eager") if compiled else network
        leaf = scores.clone().requires_grad_()
        value = call(leaf, mask, weight)
        value.backward()
        assert network.scale.grad is not None
        results.append((value.detach(), torch.zeros_like(leaf) if leaf.grad is None else leaf.grad, network.scale.grad))
    for plain, traced in zip(*results, strict=True):
        torch.testing.assert_close(plain, traced)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*TF32")
def test_a_compiled_graph_still_checks_values() -> None:
    """Value checks sit inside the operators: a compiled model refuses NaN and impossible masks like any other."""
    trees = ProjectiveTrees()

    def decode(scores: Tensor, mask: Tensor) -> Tensor:
        return spigot.argmax(scores, trees, mask=mask)

    compiled = torch.compile(decode, fullgraph=True, backend="aot_eager")
    scores, mask = torch.randn(2, 4, 4), trees.mask(torch.tensor([3, 2]))
    assert torch.equal(compiled(scores, mask), decode(scores, mask))
    scores[1, 0, 1] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        compiled(scores, mask)
    mask[0, :, 2] = False
    with pytest.raises(ValueError, match="word 2"):
        compiled(torch.zeros(2, 4, 4), mask)


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.skipif(not spigot.kernels.available, reason="the default backend needs a C++ compiler, as the kernels did")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_compiles_with_the_default_backend() -> None:
    trees = ProjectiveTrees()
    network = scale_and_decode(Argmax(trees, Spigot()))
    scores, weight = torch.randn(2, 3, 6, 6)
    mask = trees.mask(torch.tensor([5, 3, 1]))
    plain = network(scores, mask, weight)
    plain.backward()
    expected = network.scale.grad
    network.zero_grad()
    traced = torch.compile(network, fullgraph=True)(scores, mask, weight)
    traced.backward()
    torch.testing.assert_close(traced, plain)
    torch.testing.assert_close(network.scale.grad, expected)


@pytest.mark.parametrize("case", [case for case in STRUCTURES if case.marginal], ids=str)
def test_marginals_without_a_graph(case: StructureCase) -> None:
    scores, mask = case.draw(60, 3)
    assert case.marginal
    plain = case.marginal.marginals(scores, mask)
    assert not plain.requires_grad
    scores.requires_grad_()
    assert case.marginal.marginals(scores, mask).requires_grad
    with torch.no_grad():
        quiet = case.marginal.marginals(scores, mask)
    assert not quiet.requires_grad
    assert torch.equal(plain, quiet)
    with torch.inference_mode():
        assert torch.equal(plain, case.marginal.marginals(scores, mask))
        assert torch.equal(
            case.structure.argmax(scores, mask), case.structure.argmax(scores.detach().nan_to_num(), mask)
        )


@pytest.mark.parametrize("trees", TREES, ids=str)
def test_second_derivatives_through_attention(trees: AbstractStructure) -> None:
    """A penalty on the gradient of the log-partition, as a user would write it."""
    scores = torch.randn(2, 5, 5, dtype=torch.float64, requires_grad=True)
    assert isinstance(trees, spigot.AbstractMarginalStructure)
    (mu,) = torch.autograd.grad(trees.log_partition(scores).sum(), scores, create_graph=True)
    (twice,) = torch.autograd.grad(mu.square().sum(), scores)
    (direct,) = torch.autograd.grad(trees.marginals(scores).square().sum(), scores)
    torch.testing.assert_close(twice, direct, rtol=0, atol=1e-12)


def test_gradients_accumulate_and_the_graph_can_be_kept() -> None:
    scores = torch.randn(4, 6, requires_grad=True)
    z = spigot.argmax(scores, OneOf())
    g = torch.randn(4, 6)
    z.backward(g, retain_graph=True)
    assert scores.grad is not None
    first = scores.grad.clone()
    z.backward(g)
    torch.testing.assert_close(scores.grad, 2 * first)


def all_results(case: StructureCase, scores: Tensor, mask: Tensor) -> list[Tensor]:
    results = [case.structure.argmax(scores, mask), case.structure.relaxation.project(scores, mask)]
    if case.marginal:
        leaf = scores.clone().requires_grad_()
        mu = case.marginal.marginals(leaf, mask)
        (back,) = torch.autograd.grad(mu.square().sum(), leaf)
        results += [mu.detach(), back, case.marginal.log_partition(scores, mask)]
    if not isinstance(case.structure, spigot.ZeroOneProgram | spigot.RelaxedProgram):
        results.append(ConvexHull(case.structure).project(scores, mask))
    return results


@pytest.fixture
def thread_count() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("thread_count")
@pytest.mark.parametrize("structure", [OneOf(), *TREES, SemanticGraphs(2)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_thread_count_does_not_change_a_bit(structure: AbstractStructure, dtype: torch.dtype) -> None:
    """Enough sentences of enough words that the kernels do use their threads."""
    words, batch = (40, 48) if spigot.kernels.available else (8, 12)
    lengths = torch.randint(1, words + 1, (batch,), generator=torch.Generator().manual_seed(2))
    lengths[0] = words
    mask = structure.mask(lengths if structure.event_ndim < 3 else lengths // 4)
    scores = torch.randn(mask.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(dtype)
    results = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        leaf = scores.clone().requires_grad_()
        assert isinstance(structure, spigot.AbstractMarginalStructure)
        mu = structure.marginals(leaf, mask)
        (back,) = torch.autograd.grad(mu.square().sum(), leaf)
        few = slice(None) if structure.event_ndim == 1 else slice(1, 9)
        hull = ConvexHull(structure).project(scores[few], mask[few]) if structure.event_ndim < 3 else mu.detach()
        results.append(
            [
                structure.argmax(scores, mask),
                structure.relaxation.project(scores, mask),
                structure.log_partition(scores, mask),
                mu.detach(),
                back,
                hull,
            ]
        )
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert torch.equal(one, two)


def test_two_threads_at_once() -> None:
    """Python threads that decode different batches at the same time get the answers they would get alone."""
    jobs = []
    for case in STRUCTURES:
        for seed in (70, 71):
            scores, mask = case.draw(seed, 12)
            jobs.append((case, scores, mask, all_results(case, scores, mask)))
    failures: list[str] = []

    def work(order: list[int]) -> None:
        for _ in range(2):
            for index in order:
                case, scores, mask, expected = jobs[index]
                for mine, theirs in zip(all_results(case, scores, mask), expected, strict=True):
                    if not torch.equal(mine, theirs):
                        failures.append(case.name)

    orders = [list(range(len(jobs))), list(reversed(range(len(jobs))))]
    threads = [threading.Thread(target=work, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


class Decoded(Dataset[Tensor]):
    """Sentences that are decoded where they are loaded."""

    def __init__(self, structure: AbstractStructure, scores: Tensor) -> None:
        self.structure = structure
        self.scores = scores

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, index: int) -> Tensor:
        return self.structure.argmax(self.scores[index])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("trees", [ProjectiveTrees(), NonProjectiveTrees()], ids=str)
def test_workers_of_a_data_loader_can_decode(trees: ProjectiveTrees | NonProjectiveTrees) -> None:
    """The parent has used its threads before the workers are forked, and uses them again afterwards."""
    n = 30 if spigot.kernels.available else 8
    scores = torch.randn(24, 8, n, n)
    expected = trees.argmax(scores)
    loader = DataLoader(Decoded(trees, scores), batch_size=6, num_workers=2, multiprocessing_context="fork")
    assert torch.equal(torch.cat(list(loader)), expected)
    assert torch.equal(trees.argmax(scores), expected)
    torch.testing.assert_close(trees.marginals(scores[:, 0]).sum((1, 2)), torch.full((24,), n - 1.0))


THINGS: list[AbstractStructure | AbstractPolytope | AbstractEstimator] = [
    *(case.structure for case in STRUCTURES),
    *(case.polytope for case in POLYTOPES),
    *(case.make(ProjectiveTrees()) for case in ESTIMATORS),
]


@pytest.mark.parametrize("thing", THINGS, ids=repr)
def test_copies_and_pickles_are_equal(thing: AbstractStructure | AbstractPolytope | AbstractEstimator) -> None:
    for twin in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
        assert twin == thing
        assert hash(twin) == hash(thing)
        assert repr(twin) == repr(thing)
        assert type(twin) is type(thing)


def test_public_names_are_listed() -> None:
    wanted = [
        "argmax",
        "Argmax",
        "OneOf",
        "ProjectiveTrees",
        "NonProjectiveTrees",
        "SemanticGraphs",
        "ZeroOneProgram",
        "RelaxedProgram",
        "Oracle",
        "Simplex",
        "Box",
        "HeadSimplex",
        "ArcLabel",
        "ConvexHull",
        "LinearPolytope",
        "Pipeline",
        "StraightThrough",
        "Spigot",
        "StructuredAttention",
        "SparseMAP",
        "structured_hinge",
        "crf_nll",
        "AbstractStructure",
        "AbstractMarginalStructure",
        "AbstractPolytope",
        "AbstractEstimator",
        "AbstractSurrogate",
        "Explanation",
        "factors",
        "kernels",
    ]
    assert set(wanted) <= set(spigot.__all__)
    for name in spigot.__all__:
        assert getattr(spigot, name).__doc__


@pytest.mark.parametrize("call", [OneOf().argmax, OneOf().marginals, lambda s, m: spigot.argmax(s, OneOf(), mask=m)])
def test_a_mask_that_is_no_tensor_is_refused_in_a_sentence(call: Any) -> None:
    with pytest.raises(TypeError, match=r"mask is a list; it must be a torch.bool tensor"):
        call(torch.zeros(3), [True] * 3)
