"""Clips by the block and gradients without a mean, against sums written out by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot import LPGD, Identity, Spigot, StraightThrough
from spigot_nlp.models.trace import SignStatistics, trace, trace_sentence
from tests.spigot_nlp.parsing import corpus, parser

GRAPHS = spigot.SemanticGraphs(labels=2, deterministic=(0,))
CHOSEN = (Spigot, LPGD, StraightThrough)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def existing() -> Tensor:
    """The parts of two words, but for one label that is pruned."""
    mask = GRAPHS.mask(torch.tensor([2])).clone()
    mask[0, 1, 2, 2] = False
    return mask


def used(estimator: Any, structure: Any, g: Tensor, mask: Tensor) -> Tensor:
    """The gradient as an estimator uses it."""
    return estimator.explain(structure, drawn(*g.shape, seed=1), g, mask).grad


@pytest.mark.parametrize("kind", CHOSEN)
def test_each_arc_of_a_graph_is_clipped_for_itself(kind: Any) -> None:
    g, mask = drawn(1, 3, 3, 3), existing()
    found, expected = used(kind(max_norm=0.5, clip_per="block"), GRAPHS, g, mask), torch.zeros_like(g)
    for i in range(3):
        for j in range(3):
            parts = [c for c in range(3) if mask[0, i, j, c]]
            length = sum(float(g[0, i, j, c]) ** 2 for c in parts) ** 0.5
            for c in parts:
                expected[0, i, j, c] = g[0, i, j, c] * min(1.0, 0.5 / length)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert not torch.allclose(found, used(kind(max_norm=0.5), GRAPHS, g, mask))


@pytest.mark.parametrize("kind", CHOSEN)
def test_the_heads_of_each_word_are_clipped_for_themselves(kind: Any) -> None:
    trees = spigot.ProjectiveTrees()
    g, mask = drawn(3, 3), trees.mask(torch.tensor(2))
    found = used(kind(max_norm=0.5, clip_per="block"), trees, g, mask)
    for word in (1, 2):
        heads = [head for head in range(3) if head != word]
        length = sum(float(g[head, word]) ** 2 for head in heads) ** 0.5
        for head in heads:
            assert float(found[head, word]) == pytest.approx(float(g[head, word]) * min(1.0, 0.5 / length))


@pytest.mark.parametrize("kind", CHOSEN)
def test_parts_of_a_graph_are_compared_with_their_like(kind: Any) -> None:
    g, mask = drawn(1, 3, 3, 3), existing()
    found = used(kind(centred="instance"), GRAPHS, g, mask)
    places = mask[0].nonzero().tolist()
    groups = (
        [(i, j, c) for i, j, c in places if c],
        [(i, j, c) for i, j, c in places if not c and i != j],
        [(i, j, c) for i, j, c in places if not c and i == j],
    )
    for group in groups:
        mean = sum(float(g[0][place]) for place in group) / len(group)
        for place in group:
            assert float(found[0][place]) == pytest.approx(float(g[0][place]) - mean, abs=1e-12)
    assert not found[~mask].any()


@pytest.mark.parametrize("kind", CHOSEN)
def test_labels_of_an_arc_are_compared_with_each_other(kind: Any) -> None:
    g, mask = drawn(1, 3, 3, 3), existing()
    found = used(kind(centred="block"), GRAPHS, g, mask)
    torch.testing.assert_close(found[..., 0], torch.where(mask, g, 0)[..., 0], rtol=0, atol=0)
    half = (g[0, 2, 1, 1] - g[0, 2, 1, 2]) / 2
    torch.testing.assert_close(found[0, 2, 1, 1:], torch.stack((half, -half)), rtol=0, atol=1e-12)
    assert found[0, 1, 2, 1:].tolist() == [0.0, 0.0]  # the only label has no rival


def test_on_trees_only_straight_through_sees_a_mean() -> None:
    trees = spigot.ProjectiveTrees()
    scores, g, mask = drawn(5, 5), drawn(5, 5, seed=2), trees.mask(torch.tensor(4))

    def sent(estimator: Any) -> Tensor:
        return estimator.explain(trees, scores, g, mask).gradient

    for kind in (Spigot, LPGD):
        for centred in ("block", "instance"):
            torch.testing.assert_close(sent(kind(centred=centred)), sent(kind()), rtol=0, atol=1e-9)
    torch.testing.assert_close(sent(StraightThrough(centred="block")), sent(Identity()), rtol=0, atol=1e-12)
    assert not torch.allclose(sent(StraightThrough(centred="instance")), sent(StraightThrough()))


@pytest.mark.parametrize("kind", CHOSEN)
def test_the_layer_sends_what_explain_tells(kind: Any) -> None:
    estimator = kind(max_norm=0.3, clip_per="block", centred="instance")
    scores, g, mask = drawn(1, 3, 3, 3, seed=1).requires_grad_(), drawn(1, 3, 3, 3), existing()
    (spigot.argmax(scores, GRAPHS, estimator, mask=mask) * g).sum().backward()
    told = estimator.explain(GRAPHS, scores.detach(), g, mask)
    torch.testing.assert_close(scores.grad, told.gradient, rtol=0, atol=1e-12)


def test_structures_without_blocks_are_one() -> None:
    """Those whose relaxation is no product are clipped as a whole."""
    matchings = spigot.Matchings()
    g = drawn(3, 3)
    one, other = (used(Spigot(max_norm=0.1, clip_per=per), matchings, g, g == g) for per in ("block", "instance"))
    torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip_per": "word", "max_norm": 1.0}, "clip_per is 'word'; it must be one of 'instance', 'block'"),
        ({"centred": True}, "centred is True; it must be one of 'no', 'block', 'instance'"),
        ({"clip_per": "block"}, "clip_per is 'block', and there is nothing to clip to; give a max_norm"),
    ],
)
@pytest.mark.parametrize("kind", CHOSEN)
def test_what_cannot_be_chosen(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**options)


def test_sign_statistics_are_sums_by_hand() -> None:
    z, gradient = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0]), torch.tensor([0.5, -0.75, 0.25, -1.0, 0.0])
    mask = torch.tensor([True, True, True, True, False])
    found = SignStatistics.of(z, gradient, mask)
    assert found == SignStatistics(
        absent_up=0.75, absent_down=0.25, present_up=1.0, present_down=0.5, absent=2, present=2
    )
    assert found + found == SignStatistics(1.5, 0.5, 2.0, 1.0, 4, 4)
    assert found.shares() == {"absent_up": 0.3, "absent_down": 0.1, "present_up": 0.4, "present_down": 0.2}
    assert set(SignStatistics().shares().values()) == {0.0}


def test_straight_through_pushes_absent_parts_both_ways_and_spigot_up_only() -> None:
    data = corpus(train=4, dev=1)
    system, sentences = parser("spigot", data, semantics__pruning__learned=False), data["graphs"].train
    wire = "syntax -> semantics"
    (straight, projected) = (found.signs for found in trace(system, sentences, ["ste", "spigot"]))
    assert min(straight.absent_up, straight.absent_down) > 0
    assert projected.absent_up > projected.absent_down == 0
    assert projected.present == sum(len(sentence) for sentence in sentences) == straight.present
    one = trace_sentence(system, sentences[0], top=999)[wire]
    assert one.signs.absent_up == pytest.approx(-sum(p.gradient for p in one.parts if not p.z), rel=1e-5)
