"""Semantic graphs: definitions, determinism, counts, packing."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import SemanticGraphs
from tests.spigot import brute
from tests.spigot.masks import graph_mask


def one_predicate(arguments: int, labels: int) -> Tensor:
    """The mask of the root with its arguments, and no other predicate."""
    mask = torch.zeros(1 + arguments, 1 + arguments, 1 + labels, dtype=torch.bool)
    mask[0, 1:] = True
    mask[0, 0, 0] = True
    return mask


def test_enumeration_is_the_definition() -> None:
    """All 0/1 tensors of two words and one label, kept if they satisfy the constraints as written."""
    mask = SemanticGraphs(labels=1).mask(torch.tensor([2]))[0]
    z = brute.subsets(mask)
    predicates = z[:, range(3), range(3), 0]
    off_diagonal = ~torch.eye(3, dtype=torch.bool)
    needs_predicate = (z[..., 0] <= predicates[:, :, None]).flatten(1).all(1)
    one_label = (z[..., 1:].sum(-1) == z[..., 0])[:, off_diagonal].all(1)
    fine = needs_predicate & one_label
    once = (z[..., 1] * off_diagonal).sum(2).amax(1) <= 1
    for deterministic, kept in (((), fine), ((0,), fine & once)):
        members = brute.graphs(mask, deterministic)
        assert len(members) == int(kept.sum())
        assert torch.equal(members.flatten(1).unique(dim=0), z[kept].flatten(1).unique(dim=0))


@pytest.mark.parametrize("words", [0, 1, 2, 6, 40])
@pytest.mark.parametrize("labels", [1, 3])
def test_log_partition_of_zeros_counts_graphs(words: int, labels: int) -> None:
    graphs = SemanticGraphs(labels=labels)
    mask = graphs.mask(torch.tensor(words))
    value = graphs.log_partition(torch.zeros(mask.shape, dtype=torch.float64), mask)
    count = brute.graph_count(words, labels) if words else 1
    assert value.item() == pytest.approx(math.log(count), rel=1e-12, abs=1e-12)


def test_length_zero_is_nothing() -> None:
    """An empty sentence has no graph to predict: not even the root can be a predicate."""
    graphs = SemanticGraphs(labels=2)
    mask = graphs.mask(torch.tensor([0, 1]))
    assert not mask[0].any()
    scores = torch.full(mask.shape, 3.0)
    assert not graphs.argmax(scores, mask)[0].any()
    assert graphs.log_partition(scores, mask)[0] == 0


def test_mask_from_lengths() -> None:
    mask = SemanticGraphs(labels=2).mask(torch.tensor([2, 1]))
    assert mask.shape == (2, 3, 3, 3)
    predicates, arcs, labelled = SemanticGraphs(labels=2).unpack(mask)
    assert predicates.tolist() == [[True, True, True], [True, True, False]]
    assert arcs[0].nonzero().tolist() == [[0, 1], [0, 2], [1, 2], [2, 1]]
    assert arcs[1].nonzero().tolist() == [[0, 1]]
    assert torch.equal(labelled, arcs.unsqueeze(-1).expand(2, 3, 3, 2))


@given(st.integers(0, 10_000), st.sampled_from([(), (0,), (1, 2), (0, 1, 2)]), st.sampled_from([1.0, 3.0]))
def test_decoder_against_enumeration(seed: int, deterministic: tuple[int, ...], scale: float) -> None:
    """Four arguments and three roles, any parts pruned."""
    generator = torch.Generator().manual_seed(seed)
    mask = one_predicate(4, 3) & (torch.rand(5, 5, 4, generator=generator) < 0.9)
    scores = scale * torch.randn(5, 5, 4, generator=generator, dtype=torch.float64)
    scores[~mask] = torch.nan
    graphs = SemanticGraphs(labels=3, deterministic=deterministic)
    members = brute.graphs(mask, deterministic)
    z = graphs.argmax(scores, mask)
    assert graphs.contains(z, mask)
    assert torch.equal(z, members[brute.values(members, scores).argmax()])


def test_determinism_against_assignment() -> None:
    """A second algorithm: rows are arguments; columns are the deterministic roles, and a free column for each row."""
    from scipy.optimize import linear_sum_assignment

    generator = torch.Generator().manual_seed(6)
    words, labels, deterministic = 9, 6, (0, 2, 3, 5)
    graphs = SemanticGraphs(labels, deterministic)
    scores = torch.randn(12, words + 1, words + 1, 1 + labels, generator=generator, dtype=torch.float64)
    scores[..., 1 + 2] += 2  # everybody wants role 2
    z = graphs.argmax(scores)
    assert graphs.contains(z).all()
    total = (z * scores).sum((1, 2, 3))
    others = [role for role in range(labels) if role not in deterministic]
    for instance in range(12):
        best = 0.0
        for i in range(words + 1):
            arguments = [j for j in range(1, words + 1) if j != i]
            s = scores[instance, i, arguments]
            once = s[:, :1] + s[:, [1 + role for role in deterministic]]
            free = (s[:, 0] + s[:, [1 + role for role in others]].amax(1)).clamp(min=0)
            private = torch.full((len(arguments), len(arguments)), -1e6, dtype=torch.float64)
            private[range(len(arguments)), range(len(arguments))] = free
            gain = torch.cat([once, private], 1)
            rows, columns = linear_sum_assignment(gain.numpy(), maximize=True)
            best += max(0.0, float(scores[instance, i, i, 0] + gain[rows, columns].sum()))
        assert float(total[instance]) == pytest.approx(best)


@pytest.mark.parametrize("deterministic", [(0, 1), (0,)])
def test_ties_keep_determinism(deterministic: tuple[int, ...]) -> None:
    mask = one_predicate(4, 2)
    graphs = SemanticGraphs(labels=2, deterministic=deterministic)
    members = brute.graphs(mask, deterministic)
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.float64):
        scores = torch.randint(-2, 4, (100, 5, 5, 3), generator=generator).to(dtype)
        z = graphs.argmax(scores, mask.expand(100, 5, 5, 3))
        assert graphs.contains(z, mask.expand(100, 5, 5, 3)).all()
        for s, answer in zip(scores, z, strict=True):
            assert (answer * s).sum().double() == brute.values(members, s).max()


def test_local_answer_when_no_role_is_deterministic() -> None:
    """Per arc the best label; kept if its sum is positive; predicate on if the whole is worth it."""
    graphs = SemanticGraphs(labels=3)
    predicates, arcs, labelled = (torch.randn(5, 6), torch.randn(5, 6, 6), torch.randn(5, 6, 6, 3))
    scores = graphs.pack(predicates, arcs, labelled)
    got_predicates, got_arcs, got_labelled = graphs.unpack(graphs.argmax(scores))
    possible = ~torch.eye(6, dtype=torch.bool)
    possible[:, 0] = False
    value = (arcs + labelled.amax(-1)).clamp(min=0) * possible
    on = predicates + value.sum(-1) > 0
    keep = (value > 0) & on[..., None]
    assert torch.equal(got_predicates, on.float())
    assert torch.equal(got_arcs, keep.float())
    best = torch.nn.functional.one_hot(labelled.argmax(-1), 3) * keep.unsqueeze(-1)
    assert torch.equal(got_labelled, best.float())


def test_integer_optimum_where_the_relaxation_is_fractional() -> None:
    """A predicate at -1.5 and two arguments worth 1 that compete for one role: keeping none of it is best."""
    graphs = SemanticGraphs(labels=1, deterministic=(0,))
    scores = torch.zeros(3, 3, 2)
    scores[0, 0, 0] = -1.5
    scores[0, 1:, 1] = 1.0
    mask = one_predicate(2, 1)
    assert not graphs.argmax(scores, mask).any()
    scores[0, 0, 0] = -0.5
    assert graphs.argmax(scores, mask).sum() == 3
    free = SemanticGraphs(labels=1)
    scores[0, 0, 0] = -1.5
    assert free.argmax(scores, mask).sum() == 5


def test_closed_form_marginals() -> None:
    """Z_i = 1 + exp(s_pred) prod_j (1 + exp(a_ij)); P(pred) = 1 - 1/Z_i; P(arc) = P(pred) sigmoid(a_ij)."""
    graphs = SemanticGraphs(labels=4)
    predicates = torch.randn(7, dtype=torch.float64)
    arcs = torch.randn(7, 7, dtype=torch.float64)
    labelled = torch.randn(7, 7, 4, dtype=torch.float64)
    possible = ~torch.eye(7, dtype=torch.bool)
    possible[:, 0] = False
    a = (arcs + labelled.logsumexp(-1)).masked_fill(~possible, -torch.inf)
    on = (predicates + a.exp().log1p().sum(-1)).sigmoid()
    arc = on[:, None] * a.sigmoid()
    mu = graphs.unpack(graphs.marginals(graphs.pack(predicates, arcs, labelled)))
    torch.testing.assert_close(mu[0], on)
    torch.testing.assert_close(mu[1], arc)
    torch.testing.assert_close(mu[2], arc.unsqueeze(-1) * labelled.softmax(-1))


@pytest.mark.parametrize("verb", ["marginals", "log_partition"])
def test_determinism_has_no_marginals(verb: str) -> None:
    graphs = SemanticGraphs(labels=2, deterministic=(0,))
    with pytest.raises((TypeError, ValueError), match="determinis"):
        getattr(graphs, verb)(torch.zeros(3, 3, 3))


def test_pack_and_unpack_are_inverse() -> None:
    graphs = SemanticGraphs(labels=2)
    predicates, arcs, labelled = torch.randn(4, 5), torch.randn(4, 5, 5), torch.randn(4, 5, 5, 2)
    parts = graphs.pack(predicates, arcs, labelled)
    assert parts.shape == (4, 5, 5, 3)
    assert torch.equal(parts[:, range(5), range(5), 0], predicates)
    back = graphs.unpack(parts)
    possible = ~torch.eye(5, dtype=torch.bool)
    possible[:, 0] = False
    assert torch.equal(back[0], predicates)
    assert torch.equal(back[1][:, possible], arcs[:, possible])
    assert not back[1][:, range(5), range(5)].any(), "a predicate is not an arc to itself"
    assert torch.equal(back[2][:, possible], labelled[:, possible])
    masks = graphs.pack(predicates > 0, arcs > 0, labelled > 0)
    assert masks.dtype == torch.bool
    assert torch.equal(masks[:, range(5), range(5), 0], predicates > 0)
    assert not graphs.unpack(masks)[1][:, range(5), range(5)].any()


def test_pack_lets_gradients_through() -> None:
    graphs = SemanticGraphs(labels=2)
    leaves = [torch.randn(*shape, requires_grad=True) for shape in ((3,), (3, 3), (3, 3, 2))]
    z = spigot.argmax(graphs.pack(*leaves), graphs, spigot.StraightThrough())
    out = graphs.unpack(z)
    torch.stack([(part * (i + 1)).sum() for i, part in enumerate(out)]).sum().backward()
    possible = ~torch.eye(3, dtype=torch.bool)
    possible[:, 0] = False
    gradients = [leaf.grad for leaf in leaves]
    assert gradients[0] is not None
    assert gradients[1] is not None
    assert gradients[2] is not None
    assert gradients[0].tolist() == [1, 1, 1]
    assert torch.equal(gradients[1], 2.0 * possible)
    assert torch.equal(gradients[2], 3.0 * possible.unsqueeze(-1).expand(3, 3, 2))


def test_violations_in_words() -> None:
    graphs = SemanticGraphs(labels=2, deterministic=(1,))
    predicates, arcs, labelled = torch.zeros(4), torch.zeros(4, 4), torch.zeros(4, 4, 2)
    predicates[2] = 1
    arcs[1, 2] = labelled[1, 2, 0] = 1  # predicate 1 is off
    arcs[2, 3] = 1  # no label
    arcs[2, 1] = labelled[2, 1, 0] = labelled[2, 1, 1] = 1  # two labels
    (messages,) = graphs.violations(graphs.pack(predicates, arcs, labelled))
    text = "\n".join(messages)
    assert "predicate" in text
    assert "1->2" in text
    assert "2->3" in text
    assert "2->1" in text
    fine = graphs.pack(predicates, arcs * 0, labelled * 0)
    assert not graphs.violations(fine)[0]
    arcs, labelled = torch.zeros(4, 4), torch.zeros(4, 4, 2)
    arcs[2, 1] = arcs[2, 3] = labelled[2, 1, 1] = labelled[2, 3, 1] = 1
    repeated = graphs.pack(predicates, arcs, labelled)
    assert graphs.violations(repeated)[0]
    assert not SemanticGraphs(labels=2).violations(repeated)[0]
    assert SemanticGraphs(labels=2, deterministic=(0,)).contains(repeated)


def test_root_is_never_an_argument() -> None:
    graphs = SemanticGraphs(labels=1)
    scores = torch.ones(4, 4, 2)
    z = graphs.argmax(scores, torch.ones(4, 4, 2, dtype=torch.bool))
    assert not z[1:, 0].any()
    assert z[0, 0].tolist() == [1, 0]
    assert torch.equal(z, graphs.argmax(scores))


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="5"):
        SemanticGraphs(labels=2, deterministic=(5,))
    with pytest.raises(ValueError, match=r"\(3, 3, 4\)"):
        SemanticGraphs(labels=2).argmax(torch.zeros(3, 3, 4))
    with pytest.raises(ValueError, match=r"\(3, 4, 3\)"):
        SemanticGraphs(labels=2).argmax(torch.zeros(3, 4, 3))


def test_relaxation_is_arc_label() -> None:
    assert SemanticGraphs(labels=2).relaxation == spigot.ArcLabel()
    assert SemanticGraphs(labels=2).event_ndim == 3


def _independent(seed: int, scale: float = 1.0) -> tuple[spigot.AbstractStructure, Tensor, Tensor]:
    """Graphs of two words and two labels, with parts missing, one instance with everything."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(4, 3, 3, 3, generator=generator, dtype=torch.float64) * scale
    mask = graph_mask(generator, 3, 2).expand(4, 3, 3, 3).clone()
    mask[1:3] = torch.stack([graph_mask(generator, 3, 2) for _ in range(2)])
    mask[3] = SemanticGraphs(2).full_mask(scores[3])
    return SemanticGraphs(2), scores.masked_fill(~mask, torch.nan), mask


def test_k_best_against_enumeration() -> None:
    for seed, scale, k in ((0, 1.0, 1), (1, 1.0, 40), (2, 0.0, 7), (3, 30.0, 25)):
        graphs, scores, mask = _independent(seed, scale)
        assert isinstance(graphs, spigot.AbstractRankedStructure)
        scores.requires_grad_()
        z, values = graphs.k_best(scores, k, mask)
        assert z.shape == (k, 4, 3, 3, 3)
        for b in range(4):
            members = brute.graphs(mask[b])
            worth = (members * scores[b].detach().nan_to_num()).sum((1, 2, 3)).sort(descending=True).values
            count = min(k, len(worth))
            torch.testing.assert_close(values[:count, b].detach(), worth[:count])
            assert (values[count:, b] == -torch.inf).all()
            assert not z[count:, b].any()
            assert graphs.contains(z[:count, b], mask[b].expand(count, 3, 3, 3)).all()
            assert len(z[:count, b].flatten(1).unique(dim=0)) == count
        assert torch.equal(z[0], graphs.argmax(scores.detach(), mask))
        (gradient,) = torch.autograd.grad(values[0].sum(), scores)
        assert torch.equal(gradient, z[0])


def test_k_best_of_long_sentences_is_in_order() -> None:
    graphs = SemanticGraphs(4)
    assert isinstance(graphs, spigot.AbstractRankedStructure)
    scores = torch.randn(2, 12, 12, 5, generator=torch.Generator().manual_seed(4))
    z, values = graphs.k_best(scores, 30)
    assert graphs.contains(z).all()
    assert (values.diff(dim=0) <= 1e-4).all()
    assert len(z[:, 0].flatten(1).unique(dim=0)) == 30
    assert torch.equal(z[0], graphs.argmax(scores))


def test_graphs_come_as_often_as_their_chances() -> None:
    graphs, scores, mask = _independent(5)
    assert isinstance(graphs, spigot.AbstractSamplingStructure)
    z = graphs.sample(scores, mask, samples=6000, generator=torch.Generator().manual_seed(6))
    assert z.shape == (6000, 4, 3, 3, 3)
    assert graphs.contains(z[:200], mask.expand(200, 4, 3, 3, 3)).all()
    mu = graphs.marginals(scores, mask)
    assert ((z.mean(0) - mu).abs() <= 5 * (mu * (1 - mu) / 6000).sqrt()).all()
    pairs = torch.einsum("sbi,sbj->bij", z.flatten(2), z.flatten(2)) / 6000  # not only parts one by one
    for b in range(4):
        members = brute.graphs(mask[b]).flatten(1)
        chances = brute.values(members, scores[b]).softmax(0)
        both = torch.einsum("v,vi,vj->ij", chances, members, members)
        assert ((pairs[b] - both).abs() <= 5 * (both * (1 - both) / 6000).clamp(min=0).sqrt() + 1e-9).all()
    again = graphs.sample(scores, mask, samples=6000, generator=torch.Generator().manual_seed(6))
    assert torch.equal(z, again)


def test_members_of_graphs_without_labels_and_with_nan() -> None:
    graphs = SemanticGraphs(0)
    assert isinstance(graphs, spigot.AbstractSamplingStructure)
    assert isinstance(graphs, spigot.AbstractRankedStructure)
    scores = torch.randn(3, 3, 1, generator=torch.Generator().manual_seed(7))
    assert graphs.contains(graphs.sample(scores, samples=5)).all()
    assert graphs.k_best(scores, 9)[1].isfinite().sum() == 8  # each predicate on or off
    scores[1, 1, 0] = torch.nan
    for verb in (graphs.sample, lambda s: graphs.k_best(s, 2)):
        with pytest.raises(ValueError, match="NaN at part"):
            verb(scores)
