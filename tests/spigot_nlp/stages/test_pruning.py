"""Pruning against a dictionary of Python, and the small parser against the core's marginals."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.functional import softplus

import spigot
from spigot_nlp.annotations.graphs import TOP, GoldGraph, Graphs
from spigot_nlp.batches import Batch, collate, encode
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.models.parser import Parser
from spigot_nlp.stages import ArcPruner, SeenArcs
from spigot_nlp.stages.graphs import GraphSettings
from spigot_nlp.stages.pruning import Pruning
from tests.spigot_nlp import parsing
from tests.spigot_nlp.parsing import corpus, experiment, of_lengths, parser, semantics

TRAIN = of_lengths([5, 3, 6, 4, 2], seed=1)
NEW = of_lengths([6, 1, 4, 0], seed=2)
VOCAB = Vocab.of(TRAIN)
GRAPHS = Graphs.learn("graph", TRAIN, None)
OWN = {"semantics": GRAPHS}


def seen(**settings: Any) -> SeenArcs:
    table = SeenArcs(Pruning(**settings), VOCAB, GRAPHS)
    table.learn("semantics", [encode(sentence, VOCAB, OWN) for sentence in TRAIN])
    return table


def batch_of(chosen: list[Sentence], seeds: list[int] | None = None) -> Batch:
    return collate([encode(sentence, VOCAB, OWN) for sentence in chosen], OWN, seeds)


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
    table, batch = seen(dictionary=dictionary, distance=distance), batch_of(NEW)
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
    table, batch = seen(), batch_of(NEW)
    pairs = table(batch).nonzero()
    roles, _ = dictionaries()
    for (b, i, j), possible in zip(pairs.tolist(), table.labels(batch, pairs).tolist(), strict=True):
        tags = ("ROOT", *(NEW[b].tags or ()))
        assert {GRAPHS.roles[l] for l, exists in enumerate(possible) if exists} == roles[tags[i], tags[j]]


def test_tags_that_training_never_saw_rule_nothing_out() -> None:
    strange = Sentence(("cat", "sees", "dog"), tags=("XX", "NN", "VBZ"))
    batch = batch_of([strange])
    kept = seen()(batch)[0]
    assert kept[1, 2:].all()
    assert kept[0, 1]
    assert kept[2, 1]
    labels = seen().labels(batch, torch.tensor([[0, 1, 2], [0, 0, 1]])).tolist()
    top = [role == TOP for role in GRAPHS.roles]
    assert labels == [[not t for t in top], top]  # but only the root marks tops


def test_only_the_root_marks_tops_without_a_dictionary_too() -> None:
    roles = seen(dictionary=False).roles
    assert roles.shape[-1] == len(GRAPHS.roles) > 1
    assert roles[1, :, 0].all()
    assert not roles[1, :, 1:].any()
    assert not roles[3:, :, 0].any()
    assert roles[3:, :, 1:].all()


def pruner(**settings: Any) -> ArcPruner:
    chosen = experiment(**{f"semantics__pruning__{name}": value for name, value in settings.items()})
    torch.manual_seed(4)
    graphs = chosen.stages["semantics"]
    assert isinstance(graphs, GraphSettings)
    return ArcPruner(graphs.pruning, VOCAB).double()


def scores(model: ArcPruner, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    states = model.encoder(batch, noisy=False)
    return model.predicates(states), model.arcs(states).squeeze(-1)


def test_posteriors_are_the_marginals_of_the_core() -> None:
    batch = batch_of(NEW)
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
    batch = batch_of(of_lengths([9, 4], seed=5))
    possible = seen(dictionary=False, distance=False)(batch)
    model = pruner(threshold=0.0, keep=3)
    kept = model(batch, possible)
    _, arcs = scores(model, batch)
    for b, length in enumerate((9, 4)):
        for i in range(length + 1):
            options = [j for j in range(1, length + 1) if j != i]
            best = sorted(options, key=lambda j, i=i, b=b: -float(arcs[b, i, j].detach()))[:3]
            assert kept[b, i].nonzero().flatten().tolist() == sorted(best)


@pytest.mark.parametrize("entropy", [False, True])
def test_loss_is_the_crf_of_unlabelled_graphs(entropy: bool) -> None:
    chosen = NEW[:3]
    batch = batch_of(chosen, [1, 2, 3])
    model = pruner(encoder__word_dropout=0.0, entropy=entropy)
    possible = seen()(batch)
    graphs = spigot.SemanticGraphs(1)
    predicates, arcs = scores(model, batch)
    packed = graphs.pack(predicates, arcs, torch.zeros_like(arcs).unsqueeze(-1))
    gold_arcs = torch.zeros_like(possible)
    right: GoldGraph = batch.gold["semantics"]
    gold_arcs[right.arcs[:, 0], right.arcs[:, 1], right.arcs[:, 2]] = True
    either = possible | gold_arcs
    inside = torch.arange(batch.size) <= batch.lengths.unsqueeze(-1)
    gold = graphs.pack(right.predicates, gold_arcs, gold_arcs.unsqueeze(-1)).double()
    mask = graphs.pack(inside, either, either.unsqueeze(-1))
    expected = spigot.crf_nll(packed, gold, graphs, mask=mask, entropy=float(entropy))
    torch.testing.assert_close(model.loss(batch, right, possible), expected)


def test_probability_of_a_predicate_is_one_less_one_over_z() -> None:
    """1 - 1/Z_i with Z_i = 1 + e^{s_i} prod_j (1 + e^{a_ij}), as the docstring says."""
    s, a = torch.randn(5).double(), torch.randn(5, 4).double()
    z = 1 + s.exp() * (1 + a.exp()).prod(-1)
    torch.testing.assert_close(1 - 1 / z, torch.sigmoid(s + softplus(a).sum(-1)))


def test_the_pruner_does_not_depend_on_the_batch() -> None:
    model, table = pruner(keep=2, threshold=0.2), seen()
    whole = batch_of(NEW)
    together = model(whole, table(whole))
    for k, sentence in enumerate(NEW):
        alone = batch_of([sentence])
        size = len(sentence) + 1
        assert torch.equal(model(alone, table(alone))[0], together[k, :size, :size])
        assert not together[k, size:].any()


def pruning_scores(whole: Parser, data: Corpus) -> dict[str, float]:
    return semantics(whole).helper_scores("pruner", [parsing.batch_of(data["graphs"].dev, whole)])


def prepared(data: Corpus) -> Parser:
    """An untrained parser that has seen which roles stand between which tags, as training begins with."""
    whole = parser("neurboparser", data, semantics__pruning__learned=False)
    train = [encode(sentence, whole.vocab, whole.model.annotations) for sentence in data["graphs"].train]
    semantics(whole).prepare(train)
    return whole


def with_dev(data: Corpus, dev: list[Sentence]) -> Corpus:
    return Corpus({**data.sets, "graphs": replace(data["graphs"], dev=dev)})


def test_recall_and_parts_by_hand() -> None:
    data = corpus(dev=3)
    odd = replace(data["graphs"].train[0], graph=Graph.of([Arc(1, 2, "ARG2"), Arc(2, 1, "ARG1")], [1]))
    data = with_dev(data, [odd])
    whole = prepared(data)
    found = pruning_scores(whole, data)
    table, roles = semantics(whole).seen, semantics(whole).annotation.role_index
    batch = parsing.batch_of([odd], whole)
    kept = table(batch)
    labels = table.labels(batch, kept.nonzero())
    tags = ("<root>", *(odd.tags or ()))

    def possible(i: int, j: int, role: str) -> bool:
        place = whole.vocab.tag_index[tags[i]], whole.vocab.tag_index[tags[j]], roles[role]
        return bool(kept[0, i, j] and table.roles[place])

    hits = [possible(1, 2, "ARG2"), possible(2, 1, "ARG1"), possible(0, 1, TOP)]
    assert 0 < sum(hits) < 3
    assert found["recall"] == pytest.approx(100 * sum(hits) / 3)
    assert found["arcs_a_token"] == pytest.approx(int(kept.sum()) / len(odd))
    assert found["parts_a_token"] == pytest.approx(int(labels.sum()) / len(odd))


def test_nothing_is_lost_on_what_training_has_seen() -> None:
    data = corpus()
    data = with_dev(data, data["graphs"].train)
    whole = prepared(data)
    assert not semantics(whole).seen.roles[:, :, 1:].all()  # and yet it rules something out
    assert pruning_scores(whole, data)["recall"] == 100


def test_latent_graphs_are_pruned_by_nothing() -> None:
    whole = parsing.classifier(classifier__latent=True)
    stage = semantics(whole)
    assert stage.pruner is None
    before = stage.seen.roles.clone()
    stage.prepare([encode(sentence, whole.vocab, whole.model.annotations) for sentence in TRAIN])
    assert torch.equal(stage.seen.roles, before)


def test_a_batch_without_graphs_is_refused() -> None:
    whole = parser()
    batch = parsing.batch_of([sentence.without_annotation() for sentence in NEW], whole)
    with pytest.raises(ValueError, match="semantics needs graphs"):
        whole.model.loss(batch, "semantics.pruner")
