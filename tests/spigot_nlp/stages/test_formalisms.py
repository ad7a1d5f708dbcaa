"""Several graphs of a sentence at once: scores of parts that join arcs, losses, graphs that are missing."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from spigot_nlp.annotations import Formalisms
from spigot_nlp.batches import collate, encode
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.stages import FormalismSettings, FormalismStage, Surroundings
from spigot_nlp.stages.graph_scores import graph_log_loss

NAMES = ("dm", "pas", "psd")
RAIN = Sentence(
    ("Rain", "fell", "fast"),
    tags=("NN", "VBD", "RB"),
    annotations={
        "dm": Graph.of([Arc(2, 1, "ARG1"), Arc(3, 2, "ARG1")], tops=[2]),
        "pas": Graph.of([Arc(2, 1, "verb1"), Arc(3, 2, "adv1")], tops=[2]),
        "psd": Graph.of([Arc(2, 1, "ACT"), Arc(2, 3, "MANN")], tops=[2]),
    },
)
PART = RAIN.put("pas", None)
SHORT = Sentence(
    ("Rain", "fell"),
    tags=("NN", "VBD"),
    annotations={
        "dm": Graph.of([Arc(2, 1, "ARG1")], tops=[2]),
        "pas": Graph.of([Arc(2, 1, "verb1")], tops=[2]),
        "psd": Graph.of([Arc(2, 1, "ACT"), Arc(1, 2, "RSTR")]),
    },
)
SMALL = {"mlp": 6, "rank": 4, "minimum": 1, "encoder": {"word_dim": 5, "lemma_dim": 0, "tag_dim": 3, "hidden": 4}}


def made(sentences=(RAIN,), names=NAMES, **settings):
    table = {"annotation": "formalisms", "graphs": names, "pruning": {"learned": False, "rare_role": 0}}
    options = FormalismSettings.model_validate({**table, **SMALL, **settings})
    vocab, annotation = Vocab.of(sentences), Formalisms.learn("formalisms", sentences, options)
    torch.manual_seed(0)
    stage = FormalismStage("semantics", options, annotation, Surroundings(vocab))
    encoded = [encode(sentence, vocab, {"semantics": annotation}) for sentence in sentences]
    stage.prepare(encoded)
    return stage, collate(encoded, {"semantics": annotation}), annotation


def test_labels_are_joined_if_they_met_on_an_arc_often_enough() -> None:
    annotation = made()[2]
    named = {tuple(f"{NAMES[t]}:{annotation.tasks[t].roles[k]}" for t, k in part) for part in annotation.combinations}
    assert ("dm:ARG1", "psd:ACT") in named
    assert ("dm:ARG1", "pas:verb1", "psd:ACT") in named
    assert ("dm:ARG1", "pas:adv1") in named
    assert not any("psd:MANN" in part for part in named)
    assert not made(minimum=2)[2].combinations
    assert all(len(part) == 2 for part in made(order=2)[2].combinations)


@pytest.mark.parametrize("own", [True, False])
def test_parts_that_join_arcs_have_the_scores_of_the_formula(own) -> None:
    stage, batch, _ = made(own=own)
    for low in (stage.arc_parts, stage.label_parts):
        assert not low.weight.any()  # pyright: ignore
        torch.nn.init.uniform_(low.weight)  # pyright: ignore
    scorers = [stage._task(task) for task in range(3)]
    scores, mask = stage.evidence(batch)
    _, crossed = stage.structure.unpack(scores)
    _, exist = stage.structure.unpack(mask)
    states = stage._states(batch, (), noisy=False)
    place = (0, 2, 1)
    arcs = [task.pairs.hidden_at(h, torch.tensor([place]))[0] for task, h in zip(scorers, states, strict=True)]
    labels = [task.labels.hidden_at(h, torch.tensor([place]))[0] for task, h in zip(scorers, states, strict=True)]

    def expected(low, hidden, rows):
        value = low.weight
        for t, row in rows:
            value = value * (low.of_words[t].weight @ hidden[t]) * (low.of_labels[t].weight @ row)
        return value.sum()

    for k, tasks in enumerate(stage.structure.arcs):
        rows = [(t, scorers[t].pairs.out.weight[0]) for t in tasks]
        torch.testing.assert_close(crossed[(*place, k)], expected(stage.arc_parts, arcs, rows))
    for k, part in enumerate(stage.structure.labelled, len(stage.structure.arcs)):
        rows = [(t, scorers[t].labels.out.weight[label]) for t, label in part]
        if exist[(*place, k)]:
            torch.testing.assert_close(crossed[(*place, k)], expected(stage.label_parts, labels, rows))
    assert exist[place].any()
    assert not exist[0, 2, 2].any()


@pytest.mark.parametrize("weight", [30.0, 600.0, -600.0])  # so that parts that join arcs matter; the others beyond e^88
@pytest.mark.parametrize(("names", "order"), [(("dm", "psd"), 3), (NAMES, 2), (NAMES, 3)])
def test_the_log_loss_is_that_of_all_graphs_together(names, order, weight) -> None:
    stage, batch, _ = made(
        names=names, loss="log", determinism=False, order=order, sentences=(SHORT if len(names) > 2 else RAIN,)
    )
    for low in (stage.arc_parts, stage.label_parts):
        torch.nn.init.constant_(low.weight, weight)  # pyright: ignore
    structure, (scores, mask) = stage.structure, stage.evidence(batch)
    scores = scores.double()[0] * mask[0]
    members = [_members(graphs, own[0]) for graphs, own in zip(structure.tasks, structure.unpack(mask)[0], strict=True)]
    several = _all_of(members)
    every = structure.pack(several, _joined(structure, several) * structure.unpack(mask[0])[1])
    right = stage._right(stage.gold(batch), stage._scored(batch, (), None, noisy=False))[0]
    total = (every.flatten(1) @ scores.flatten()).logsumexp(0) - (right.double() * scores).sum()
    atol = 1e-5 + 4e-6 * float(scores.detach().abs().max())  # sums of large scores in float32
    torch.testing.assert_close(stage.loss(batch)[0].double(), total, rtol=1e-5, atol=atol)
    likely = (every.flatten(1) @ scores.flatten()).softmax(0)
    likely = (likely[:, None] * every.flatten(1)).sum(0).view(every.shape[1:])
    stage.settings = stage.settings.model_copy(update={"decoding": "marginals"})
    worth, masks = stage.evidence(batch)
    parts = zip(*(structure.unpack(values)[0] for values in (likely, worth[0], masks[0])), strict=True)
    for probability, value, mask in parts:
        expected = torch.where(mask, probability - stage.settings.threshold, 0.0)[..., 1:]
        torch.testing.assert_close(torch.where(mask, value, 0.0)[..., 1:].double(), expected, rtol=1e-5, atol=atol)
    assert structure.contains(structure.argmax(worth, masks), masks).all()


def test_with_order_one_the_log_loss_is_that_of_each_graph() -> None:
    stage, batch, _ = made(loss="log", order=1)
    scored, gold = stage._scored(batch, (), None, noisy=False), stage.gold(batch)
    each = [graph_log_loss(*one) for one in zip(scored.tasks, [batch.lengths] * 3, gold.graphs, strict=True)]
    torch.testing.assert_close(stage.loss(batch), torch.stack(each).sum(0))


def test_marginals_need_the_log_loss() -> None:
    with pytest.raises(ValueError, match="needs probabilities, which loss = 'hinge' does not learn; use loss = 'log'"):
        made(decoding="marginals")


def test_the_log_loss_of_four_graphs_together_is_refused() -> None:
    names = ("dm", "pas", "psd", "ccg")
    with pytest.raises(ValueError, match="of up to 3 graphs; there are 4: use loss = 'hinge', or order = 1"):
        made(names=names, loss="log")
    assert FormalismSettings(annotation="formalisms", graphs=names, loss="log", order=1).loss == "log"


def _members(graphs, mask):
    """All graphs over the parts of a mask, one under another."""
    free = mask.nonzero()
    bits = torch.tensor(list(product((0.0, 1.0), repeat=len(free))), dtype=torch.float64)
    z = torch.zeros(len(bits), *mask.shape, dtype=torch.float64)
    z[(slice(None), *free.unbind(-1))] = bits
    return z[graphs.contains(z, mask.expand(z.shape))]


def _all_of(members):
    """Every choice of one of each, as the same number of rows."""
    chosen = torch.cartesian_prod(*(torch.arange(len(several)) for several in members))
    return [several[row] for several, row in zip(members, chosen.unbind(-1), strict=True)]


def _joined(structure, parts):
    columns = [torch.stack([parts[t][..., 0] for t in tasks]).prod(0) for tasks in structure.arcs]
    columns += [torch.stack([parts[t][..., 1 + k] for t, k in part]).prod(0) for part in structure.labelled]
    return torch.stack(columns, -1) * ~torch.eye(parts[0].shape[-2], dtype=torch.bool).unsqueeze(-1)


@pytest.mark.parametrize("loss", ["hinge", "perceptron", "log"])
@pytest.mark.parametrize("order", [1, 3])
def test_a_graph_that_is_missing_has_no_part_in_the_loss(loss, order) -> None:
    stage, _, annotation = made(sentences=(RAIN, PART), loss=loss, order=order)
    vocab = Vocab.of([RAIN])
    encoded = [encode(s, vocab, {"semantics": annotation}) for s in (RAIN, PART)]
    batch = replace(collate(encoded, {"semantics": annotation}), seeds=torch.tensor([1, 2]))
    losses = stage.loss(batch)
    assert losses.shape == (2,)
    losses[1].backward()
    pas = stage._task(1).labels.out.weight.grad
    assert pas is None or not pas.any()
    assert stage._task(0).labels.out.weight.grad is not None


def test_training_finds_the_graphs_again() -> None:
    stage, batch, _ = made(sentences=(RAIN, PART))
    dense = [parameter for name, parameter in stage.named_parameters() if "embedding" not in name]
    optimiser = torch.optim.Adam(dense, 0.02)
    for _ in range(30):
        optimiser.zero_grad()
        stage.loss(batch).sum().backward()
        optimiser.step()
    with torch.no_grad():
        evidence = stage.evidence(batch)
    z = stage.structure.argmax(*evidence)
    assert stage.structure.violations(z, evidence.mask) == [[], []]
    assert stage.found(z, None, [3, 3])[0] == dict(RAIN.annotations)
    assert set(stage.certainty(evidence)) == {"integral", "optimal"}


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="name two different graphs"):
        FormalismSettings(annotation="formalisms", graphs=("dm",))
    with pytest.raises(ValueError, match="costs names 'psd', which is none of dm, pas"):
        FormalismSettings(annotation="formalisms", graphs=("dm", "pas"), costs={"psd": (0.3, 0.7)})
    with pytest.raises(ValueError, match="has a psd graph with arcs or tops"):
        made(sentences=(RAIN.put("psd", None),))
