"""The best label of each pair of words: the kernel against its twin, and against scores of all labels."""

import pytest
import torch

from spigot import kernels
from spigot_nlp.nn.biaffine import Biaffine
from spigot_nlp.nn.quantised import WIDEST, best_products, best_products_reference, whole_weights

pytestmark = pytest.mark.skipif(not kernels.available, reason="there are no kernels")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def weights_of(weight: torch.Tensor):
    return whole_weights(weight[:-1].flatten(1).t(), weight[-1].flatten())


@pytest.mark.parametrize(("labels", "root"), [(1, None), (3, 0), (9, None), (9, 8), (51, 17)])
@pytest.mark.parametrize(("width", "n"), [(1, 4), (7, 9), (64, 17), (65, 30), (20, 41), (128, 70)])
def test_the_kernel_gives_what_its_twin_gives(labels: int, root: int | None, width: int, n: int) -> None:
    lengths = torch.tensor([n - 1, 0, n // 2, 1])
    heads, dependents, weight = (
        torch.randn(4, n, width),
        torch.randn(4, n, width),
        torch.randn(width + 1, labels, width + 1),
    )
    best, which = best_products(heads, dependents, lengths, weights_of(weight), labels, root)
    right, _ = best_products_reference(heads, dependents, lengths, weight, root)
    one = torch.ones(4, n, 1)
    exact = torch.einsum("bik,hlk,bjh->bijl", torch.cat((heads, one), -1), weight, torch.cat((dependents, one), -1))
    if root is not None:
        exact[:, 1:, :, root] = -torch.inf
        exact[:, 0, :, [k for k in range(labels) if k != root]] = -torch.inf
        assert set(which[:, 0, 1:].unique().tolist()) == {-1, root}
        assert root not in which[:, 1:]
    near = 1e-3 * width  # numbers halfway between two whole ones may be rounded to either
    torch.testing.assert_close(best, right, atol=near, rtol=1e-4)
    exists = best > -torch.inf
    assert torch.equal(exists, which >= 0)
    assert torch.equal(exists, right > -torch.inf)
    chosen = exact.gather(-1, which.clamp(min=0).long().unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(chosen[exists], exact.amax(-1)[exists], atol=2 * near, rtol=1e-3)


def test_of_equals_the_first_is_taken() -> None:
    weight = torch.zeros(4, 12, 4)
    weight[:, [5, 9]] = torch.ones(4, 1, 4)
    sides = torch.rand(1, 6, 3), torch.rand(1, 6, 3)
    _, which = best_products(*sides, torch.tensor([5]), weights_of(weight), 12)
    assert set(which[0, :, 1:].flatten().tolist()) == {5}


def test_it_depends_neither_on_threads_nor_on_the_batch() -> None:
    heads, dependents, weight = torch.randn(9, 25, 16), torch.randn(9, 25, 16), torch.randn(17, 11, 17)
    lengths, weights, before = torch.arange(16, 25), weights_of(weight), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        best, which = best_products(heads, dependents, lengths, weights, 11)
        torch.set_num_threads(3)
        again = best_products(heads, dependents, lengths, weights, 11)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(best, again[0])
    assert torch.equal(which, again[1])
    alone = best_products(heads[2:3, :20], dependents[2:3, :20], lengths[2:3], weights, 11)
    assert torch.equal(alone[0][0, :19, :19], best[2, :19, :19])
    assert torch.equal(alone[1][0, :19, :19], which[2, :19, :19])


def test_what_does_not_fit_is_refused() -> None:
    weights, sides = weights_of(torch.randn(3, 2, 3)), (torch.randn(1, 4, 2), torch.randn(1, 4, 2))
    with pytest.raises(ValueError, match="between 0 and 3"):
        best_products(*sides, torch.tensor([4]), weights, 2)
    wide = torch.randn(1, 2, WIDEST + 1)
    with pytest.raises(ValueError, match="more than 32 bits"):
        best_products(wide, wide, torch.tensor([1]), weights, 2)
    heads, dependents = sides
    assert best_products(heads[:0], dependents[:0], torch.tensor([]).long(), weights, 2)[0].shape == (0, 4, 4)


def test_a_scorer_gives_the_best_of_its_scores() -> None:
    scorer, states, lengths = Biaffine(12, hidden=8, outputs=6), torch.randn(3, 7, 12), torch.tensor([6, 2, 0])
    with torch.no_grad():
        assert scorer.best_in_whole(states, lengths) is None
        every = scorer(states)
        scorer.precision = scorer.head.precision = scorer.dependent.precision = "int16"
        found = scorer.best_in_whole(states, lengths)
    assert found is not None
    best, which = found
    exists = which >= 0
    assert exists.sum((-1, -2)).tolist() == [7 * 6, 3 * 2, 0]
    torch.testing.assert_close(best[exists], every.amax(-1)[exists], atol=1e-2, rtol=0)
    wide = Biaffine(12, hidden=WIDEST + 1, outputs=2)
    wide.precision = "int16"
    with torch.no_grad():
        assert wide.best_in_whole(states, lengths) is None
