"""Pruning against a dictionary of Python, and the small parser against the core's marginals."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.functional import softplus

import spigot
from spigot import config
from spigot.data.batch import Batch, encode
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.vocab import TOP, Vocab
from spigot.models.pruning import ArcPruner, SeenArcs
from spigot.training.development import pruning_scores
from tests.parsing import batch_of, corpus, experiment, of_lengths, parser

TRAIN = of_lengths([5, 3, 6, 4, 2], seed=1)
NEW = of_lengths([6, 1, 4, 0], seed=2)
VOCAB = Vocab.of(TRAIN)


def seen(**settings: Any) -> SeenArcs:
    table = SeenArcs(config.Pruning(**settings), VOCAB)
    table.learn([encode(sentence, VOCAB) for sentence in TRAIN])
    return table


def dictionaries() -> tuple[dict[tuple[str, str], set[str]], dict[tuple[str, str, bool], int]]:
    """Roles and the longest distance for each pair of tags."""
    roles: dict[tuple[str, str], set[str]] = defaultdict(set)
    reach: dict[tuple[str, str, bool], int] = defaultdict(int)
    for sentence in TRAIN:
        assert sentence.graph is not None
        tags = ("ROOT", *(sentence.tags or ()))
        arcs = [*sentence.graph.arcs, *(Arc(0, top, TOP) for top in sentence.graph.tops)]
        for predicate, argument, role in arcs:
            roles[tags[predicate], tags[argument]].add(role)
            key = tags[predicate], tags[argument], argument > predicate
            reach[key] = max(reach[key], abs(argument - predicate))
    return roles, reach


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("distance", [False, True])
def test_seen_arcs_are_those_of_a_dictionary(dictionary: bool, distance: bool) -> None:
    table, batch = seen(dictionary=dictionary, distance=distance), batch_of(NEW, VOCAB)
    kept = table(batch)
    roles, reach = dictionaries()
    for b, sentence in enumerate(NEW):
        tags = ("ROOT", *(sentence.tags or ()))
        for i in range(batch.size):
            for j in range(batch.size):
                expected = 0 < j <= len(sentence) and i <= len(sentence) and i != j
                if expected and dictionary:
                    expected = bool(roles[tags[i], tags[j]])
                if expected and distance:
                    expected = abs(j - i) <= reach[tags[i], tags[j], j > i]
                assert kept[b, i, j] == expected, (b, i, j)


def test_labels_are_those_of_a_dictionary() -> None:
    table, batch = seen(), batch_of(NEW, VOCAB)
    pairs = table(batch).nonzero()
    roles, _ = dictionaries()
    for (b, i, j), possible in zip(pairs.tolist(), table.labels(batch, pairs).tolist(), strict=True):
        tags = ("ROOT", *(NEW[b].tags or ()))
        assert {VOCAB.roles[l] for l, exists in enumerate(possible) if exists} == roles[tags[i], tags[j]]


def test_tags_that_training_never_saw_rule_nothing_out() -> None:
    strange = Sentence(("cat", "sees", "dog"), tags=("XX", "NN", "VBZ"))
    batch = batch_of([strange], VOCAB)
    kept = seen()(batch)[0]
    assert kept[1, 2:].all()
    assert kept[0, 1]
    assert kept[2, 1]
    labels = seen().labels(batch, torch.tensor([[0, 1, 2], [0, 0, 1]])).tolist()
    top = [role == TOP for role in VOCAB.roles]
    assert labels == [[not t for t in top], top]  # but only the root marks tops


def test_only_the_root_marks_tops_without_a_dictionary_too() -> None:
    roles = seen(dictionary=False).roles
    assert roles.shape[-1] == len(VOCAB.roles) > 1
    assert roles[1, :, 0].all()
    assert not roles[1, :, 1:].any()
    assert not roles[3:, :, 0].any()
    assert roles[3:, :, 1:].all()


def pruner(**settings: Any) -> ArcPruner:
    chosen = experiment(**{f"semantics__pruning__{name}": value for name, value in settings.items()})
    torch.manual_seed(4)
    return ArcPruner(chosen.semantics.pruning, VOCAB).double()


def scores(model: ArcPruner, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    states = model.encoder(batch, noisy=False)
    return model.predicates(states), model.arcs(states).squeeze(-1)


def test_posteriors_are_the_marginals_of_the_core() -> None:
    batch = batch_of(NEW, VOCAB)
    possible = seen()(batch)
    model = pruner()
    graphs = spigot.SemanticGraphs(1)
    predicates, arcs = scores(model, batch)
    packed = graphs.pack(predicates, arcs, torch.zeros_like(arcs).unsqueeze(-1))
    inside = torch.arange(batch.size) <= batch.lengths.unsqueeze(-1)
    mask = graphs.pack(inside, possible, possible.unsqueeze(-1))
    marginals = graphs.unpack(graphs.marginals(packed, mask))[1]
    # The threshold is moved across every posterior: what is kept must change exactly there.
    for value in marginals[possible].detach().tolist():
        for threshold in (value * (1 - 1e-9), value * (1 + 1e-9)):
            model.settings = model.settings.model_copy(update={"threshold": threshold})
            assert torch.equal(model(batch, possible), possible & (marginals >= threshold))


def test_a_predicate_keeps_so_many_arguments_at_most() -> None:
    batch = batch_of(of_lengths([9, 4], seed=5), VOCAB)
    possible = seen(dictionary=False, distance=False)(batch)
    model = pruner(threshold=0.0, keep=3)
    kept = model(batch, possible)
    _, arcs = scores(model, batch)
    for b, length in enumerate((9, 4)):
        for i in range(length + 1):
            options = [j for j in range(1, length + 1) if j != i]
            best = sorted(options, key=lambda j, i=i, b=b: -float(arcs[b, i, j].detach()))[:3]
            assert kept[b, i].nonzero().flatten().tolist() == sorted(best)


def test_loss_is_the_crf_of_unlabelled_graphs() -> None:
    chosen = NEW[:3]
    batch = batch_of(chosen, VOCAB, [1, 2, 3])
    model = pruner(encoder__word_dropout=0.0)
    possible = seen()(batch)
    graphs = spigot.SemanticGraphs(1)
    predicates, arcs = scores(model, batch)
    packed = graphs.pack(predicates, arcs, torch.zeros_like(arcs).unsqueeze(-1))
    gold_arcs = torch.zeros_like(possible)
    assert batch.arcs is not None
    assert batch.predicates is not None
    gold_arcs[batch.arcs[:, 0], batch.arcs[:, 1], batch.arcs[:, 2]] = True
    either = possible | gold_arcs
    inside = torch.arange(batch.size) <= batch.lengths.unsqueeze(-1)
    gold = graphs.pack(batch.predicates, gold_arcs, gold_arcs.unsqueeze(-1)).double()
    mask = graphs.pack(inside, either, either.unsqueeze(-1))
    torch.testing.assert_close(model.loss(batch, possible), spigot.crf_nll(packed, gold, graphs, mask=mask))


def test_probability_of_a_predicate_is_one_less_one_over_z() -> None:
    """1 - 1/Z_i with Z_i = 1 + e^{s_i} prod_j (1 + e^{a_ij}), as the docstring says."""
    s, a = torch.randn(5).double(), torch.randn(5, 4).double()
    z = 1 + s.exp() * (1 + a.exp()).prod(-1)
    torch.testing.assert_close(1 - 1 / z, torch.sigmoid(s + softplus(a).sum(-1)))


def test_the_pruner_does_not_depend_on_the_batch() -> None:
    model, table = pruner(keep=2, threshold=0.2), seen()
    whole = batch_of(NEW, VOCAB)
    together = model(whole, table(whole))
    for k, sentence in enumerate(NEW):
        alone = batch_of([sentence], VOCAB)
        size = len(sentence) + 1
        assert torch.equal(model(alone, table(alone))[0], together[k, :size, :size])
        assert not together[k, size:].any()


def test_recall_and_parts_by_hand() -> None:
    data = corpus(dev=3)
    odd = replace(data.graphs.train[0], graph=Graph.of([Arc(1, 2, "ARG2"), Arc(2, 1, "ARG1")], [1]))
    data = replace(data, graphs=replace(data.graphs, dev=[odd]))
    whole = parser("neurboparser", data, semantics__pruning__learned=False)
    found = pruning_scores(whole, data)
    table, vocab = whole.model.semantics.seen, whole.vocab
    batch = batch_of(data.graphs.dev, vocab)
    kept = table(batch)
    labels = table.labels(batch, kept.nonzero())
    tags = ("<root>", *(data.graphs.dev[0].tags or ()))

    def possible(i: int, j: int, role: str) -> bool:
        place = vocab.tag_index[tags[i]], vocab.tag_index[tags[j]], vocab.role_index[role]
        return bool(kept[0, i, j] and table.roles[place])

    hits = [possible(1, 2, "ARG2"), possible(2, 1, "ARG1"), possible(0, 1, TOP)]
    assert found["recall"] == pytest.approx(100 * sum(hits) / 3)
    assert found["arcs_a_token"] == pytest.approx(int(kept.sum()) / len(data.graphs.dev[0]))
    assert found["parts_a_token"] == pytest.approx(int(labels.sum()) / len(data.graphs.dev[0]))


def test_nothing_is_lost_on_what_training_has_seen() -> None:
    data = corpus()
    data = replace(data, graphs=replace(data.graphs, dev=data.graphs.train))
    whole = parser("neurboparser", data, semantics__pruning__learned=False)
    assert pruning_scores(whole, data)["recall"] == 100


def test_a_batch_without_graphs_is_refused() -> None:
    batch = batch_of([sentence.without_annotation() for sentence in NEW], VOCAB)
    with pytest.raises(ValueError, match="needs graphs"):
        pruner().loss(batch, seen()(batch))
