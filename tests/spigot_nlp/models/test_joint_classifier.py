"""A parser inside a classifier: what reaches what."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spigot
from spigot_nlp.batches import Batch
from spigot_nlp.config import systems
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import System
from spigot_nlp.stages import AbstractStage, GivenStage
from spigot_nlp.wires.readers import Roles, Rounds
from tests.spigot_nlp.parsing import (
    CLASSIFIERS,
    THROUGH,
    batch_of,
    classes,
    classification,
    classifier,
    gradient_at_the_scores,
    review_corpus,
    reviews,
    scores_and_loss,
    semantics,
    sentences,
    structures_read,
)

DATA = review_corpus()
TREES = {"classifier__structure": "trees"}
LATENT = {"classifier__latent": True}
OTHER = {"nonprojective": {**TREES, "syntax__trees": "nonprojective"}, "projective": TREES, "graphs": {}}
NO_PRUNER = {"semantics__pruning__learned": False}


def joint(system: str, **overrides: Any) -> tuple[System, Batch]:
    whole = classifier(system, DATA, **overrides)
    return whole.model.double(), batch_of(DATA["labels"].train[:4], whole, [1, 2, 3, 4])


def parser_of(model: System) -> AbstractStage:
    """The stage inside."""
    (wire,) = model.all_wires()
    return model.stages[wire.source]


def read(model: System, batch: Batch) -> Tensor:
    """What the classifier reads in a step of training."""
    (z,) = model.read("classifier", batch)
    return z


def reached(module: nn.Module) -> set[str]:
    """The parameters that have a gradient other than zero."""
    return {name for name, p in module.named_parameters() if p.grad is not None and bool(p.grad.to_dense().any())}


def of_the_pruner(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith("pruner.")}


@pytest.mark.parametrize("structure", ["graphs", "projective"])
@pytest.mark.parametrize("system", CLASSIFIERS)
def test_what_the_end_task_trains(system: str, structure: str) -> None:
    """The classifier always; the parser unless it is frozen or absent; the pruner never.

    Some estimators have no gradient where a shift of the scores, or noise, changes no decision; and noise follows the
    bits of the scores, which are others on another processor. A strength this large crosses every margin, so that a
    sample has no gradient only if it is the very structure that the end task likes best: one of dozens for each of four
    sentences and ten samples.
    """
    model, batch = joint(system, estimator__strength=1e4, estimator__samples=10, **OTHER[structure])
    loss = model.loss(batch, "classifier")
    assert loss.shape == (4,)
    loss.sum().backward()
    assert "out.weight" in reached(classes(model))
    assert any(name.startswith("own_encoder") for name in reached(classes(model)))
    if system == "bilstm":
        assert list(model.stages) == ["classifier"]
        assert len(classes(model).readers) == 0
        return
    assert not of_the_pruner(reached(parser_of(model)))
    scorers = {name.split(".")[0] for name in reached(parser_of(model))}
    if system == "pipeline":
        assert not scorers
        assert all(parameter.grad is None for parameter in parser_of(model).parameters())
    else:
        assert scorers >= {"own_encoder", "pairs" if structure == "graphs" else "scorer"}
        assert structure != "graphs" or "labels" in scorers


@pytest.mark.parametrize("system", THROUGH)
def test_it_may_be_kept_from_the_parser(system: str) -> None:
    model, batch = joint(system)
    model.loss(batch, "classifier", through=False).sum().backward()
    assert all(parameter.grad is None for parameter in parser_of(model).parameters())
    assert reached(classes(model))


@pytest.mark.parametrize(("structure", "task"), [("graphs", "semantics"), ("projective", "syntax")])
def test_the_parsers_own_loss_leaves_the_classifier_alone(structure: str, task: str) -> None:
    whole = classifier("spigot", DATA, **OTHER[structure])
    model = whole.model
    chosen = DATA["graphs" if task == "semantics" else "trees"].train[:3]
    model.loss(batch_of(chosen, whole, [1, 2, 3]), task).sum().backward()
    found = reached(model.stages[task])
    assert found
    assert not of_the_pruner(found)
    assert all(parameter.grad is None for parameter in classes(whole).parameters())


def test_structured_attention_needs_marginals() -> None:
    with pytest.raises(
        ValueError, match=r"'attention' needs marginals.* deterministic.* semantics\.determinism = false"
    ):
        classification("attention")
    for settings in ({"semantics__determinism": False}, TREES, LATENT, {**TREES, **LATENT}):
        model, batch = joint("attention", **settings)
        model.loss(batch, "classifier").sum().backward()
        assert "own_encoder" in {name.split(".")[0] for name in reached(parser_of(model))}
        z = read(model, batch)
        assert ((z > 0.01) & (z < 0.99)).any()  # soft


@pytest.mark.parametrize("settings", [{"semantics__determinism": False}, TREES], ids=["graphs", "trees"])
def test_attention_has_the_true_gradient(settings: dict[str, Any]) -> None:
    """That of the classifier's loss at the marginals."""
    model, batch = joint("attention", **settings)
    scores, mask, loss = scores_and_loss(model, batch)
    scores = scores.detach().requires_grad_()
    loss(spigot.argmax(scores, parser_of(model).structure, spigot.StructuredAttention(), mask=mask)).backward()
    assert scores.grad is not None
    torch.testing.assert_close(gradient_at_the_scores(model, batch), scores.grad)


@pytest.mark.parametrize("structure", sorted(OTHER))
def test_straight_through_passes_the_gradient_on(structure: str) -> None:
    model, batch = joint("ste", estimator__eta=1.0, **OTHER[structure])
    scores, mask, loss = scores_and_loss(model, batch)
    z = parser_of(model).structure.argmax(scores, mask).detach().requires_grad_()
    loss(z).backward()
    assert z.grad is not None
    model.zero_grad()
    torch.testing.assert_close(gradient_at_the_scores(model, batch), z.grad.masked_fill(~mask, 0))


@pytest.mark.parametrize("system", ["ste", "spigot"])
def test_predicates_are_not_read_and_get_no_gradient(system: str) -> None:
    model, batch = joint(system)
    z = read(model, batch).detach()
    assert z[..., 0].diagonal(dim1=1, dim2=2).any()
    assert z[:, 0, 1:, 0].any() or z[..., 1:].any()
    gradient = gradient_at_the_scores(model, batch)
    assert not gradient[..., 0].diagonal(dim1=1, dim2=2).any()
    assert gradient.any()
    flipped = z.clone()
    flipped[..., 0].diagonal(dim1=1, dim2=2).fill_(7.0)
    expected = classes(model).evidence(batch, [z]).scores
    torch.testing.assert_close(classes(model).evidence(batch, [flipped]).scores, expected)
    changed = z.clone()
    changed[:, 1, 2, 1:] += 1
    assert not torch.allclose(classes(model).evidence(batch, [changed]).scores, expected)


@pytest.mark.parametrize("structure", sorted(OTHER))
@pytest.mark.parametrize("system", ["pipeline", "spigot"])
def test_the_parser_inside_is_decoded_without_dropped_words_and_without_cost(system: str, structure: str) -> None:
    noise = {
        f"{parser}__encoder__{kind}": 0.9 for parser in ("syntax", "semantics") for kind in ("word_dropout", "dropout")
    }
    model, batch = joint(system, **OTHER[structure], **noise, semantics__false_negative=50.0)
    z = read(model, batch)
    scores, mask, _ = scores_and_loss(model, replace(batch, seeds=None))
    assert torch.equal(z, read(model, replace(batch, seeds=None)))
    assert torch.equal(z, parser_of(model).structure.argmax(scores, mask))


def test_gold_graphs_of_classified_sentences_are_not_looked_at() -> None:
    """Where nothing survives pruning there are no arcs, though the training sentence comes with some."""
    whole = classifier("spigot", DATA, **NO_PRUNER)
    model = whole.model
    semantics(model).seen.roles.zero_()
    chosen = [replace(sentence, label=1) for sentence in sentences(3)]
    batch = batch_of(chosen, whole, [1, 2, 3])
    assert len(batch.gold["semantics"].arcs)
    assert not read(model, batch)[..., 1:].any()
    bare = batch_of([replace(sentence, graph=None) for sentence in chosen], whole, [1, 2, 3])
    assert "semantics" not in bare.gold
    assert torch.equal(model.loss(batch, "classifier"), model.loss(bare, "classifier"))


@pytest.mark.parametrize("reader", ["heads", "rounds"])
@pytest.mark.parametrize("structure", ["graphs", "trees", "left", "right", "random", "none"])
def test_padding_does_not_matter(reader: str, structure: str) -> None:
    """Every sentence has the loss it has alone; the parser, the reader and all dropout agree."""
    system = "bilstm" if structure == "none" else "spigot"
    settings = {"classifier__reader": reader, "classifier__structure": "graphs" if structure == "none" else structure}
    whole = classifier(system, DATA, **settings)
    model = whole.model
    chosen, seeds = [*DATA["labels"].train[:5], Sentence(("cat",), label=1)], [7, 8, 9, 10, 11, 12]
    together = model.loss(batch_of(chosen, whole, seeds), "classifier")
    for k, sentence in enumerate(chosen):
        alone = model.loss(batch_of([sentence], whole, [seeds[k]]), "classifier")
        torch.testing.assert_close(alone[0], together[k])


@pytest.mark.parametrize("system", [system for system in CLASSIFIERS if system != "perturbed"])
def test_answers_do_not_depend_on_the_batch(system: str) -> None:
    """`perturbed` is left out: its noise follows the scores to the last bit, which batches round differently."""
    whole = classifier(system, DATA)
    whole.model.double()
    chosen = DATA["labels"].dev
    together = list(whole.pipe(chosen))
    alone = [next(iter(whole.pipe([sentence]))) for sentence in chosen]
    assert [s.graph for s in alone] == [s.graph for s in together]
    for one, other in zip(alone, together, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities)
        assert one.probabilities is not None
        assert sum(one.probabilities) == pytest.approx(1)
        assert one.label == classes(whole).annotation.classes[one.probabilities.index(max(one.probabilities))]
        assert (one.graph is None) == (system == "bilstm")
        assert one.heads is None


@pytest.mark.parametrize("system", ["sparsemap", "perturbed", "attention"])
@pytest.mark.parametrize("settings", [TREES, {"semantics__determinism": False}], ids=["trees", "graphs"])
def test_what_is_shown_is_a_structure_also_where_a_soft_one_was_read(
    system: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = joint(system, estimator__samples=5, **settings)
    all_read = structures_read(model, monkeypatch)
    quiet = replace(batch, seeds=None)
    answer = model.parse(quiet)
    shown = answer[parser_of(model).name].z
    scores, mask, _ = scores_and_loss(model, quiet)
    assert torch.equal(shown, parser_of(model).structure.argmax(scores, mask))
    (soft,) = all_read
    assert not torch.equal(soft, shown)
    found = answer["classifier"].evidence
    assert found is not None
    torch.testing.assert_close(found.scores, classes(model).evidence(quiet, [soft]).scores)


@pytest.mark.parametrize("system", [*CLASSIFIERS[1:], "attention"])
@pytest.mark.parametrize("kind", ["gold", "left", "right", "random"])
def test_trees_that_are_not_learned_need_no_parser(kind: str, system: str) -> None:
    whole = classifier(system, DATA, classifier__structure=kind)
    model = whole.model
    assert isinstance(parser_of(model), GivenStage)
    assert set(model.parts()) == {"classifier"}
    assert model.updated("classifier") == ["classifier"]
    labelled = [replace(sentence, label=k % 2) for k, sentence in enumerate(sentences(3))]
    model.loss(batch_of(labelled, whole, [1, 2, 3]), "classifier").sum().backward()
    found = list(whole.pipe(labelled))
    if kind == "right":
        assert [s.heads for s in found] == [tuple(range(len(s))) for s in labelled]
    assert all((s.heads is None) == (kind == "gold") for s in found)  # the right trees are read, and not found
    assert whole.gives == (("label",) if kind == "gold" else ("heads", "label"))
    assert all(s.label in (0, 1) for s in found)


def test_gold_trees_are_shown_to_no_other_system() -> None:
    """A parser's answer is the same whatever trees the sentences come with."""
    labelled = sentences(3)
    bare = [sentence.without_annotation() for sentence in labelled]
    for settings in ({}, TREES, {"classifier__structure": "random"}):
        whole = classifier("spigot", DATA, **settings)
        found = [(s.label, s.probabilities) for s in whole.pipe(labelled)]
        assert found == [(s.label, s.probabilities) for s in whole.pipe(bare)]
        assert [whole.visible(sentence) for sentence in labelled] == bare
    gold = classifier("spigot", DATA, classifier__structure="gold")
    assert [gold.visible(s) for s in labelled] == [replace(s, graph=None) for s in labelled]
    with pytest.raises(ValueError, match="needs trees"):
        list(gold.pipe(bare))


@pytest.mark.parametrize("structure", ["graphs", "trees", "left", "random"])
@pytest.mark.parametrize("reader", ["heads", "rounds"])
def test_empty_and_single_words_are_classified(structure: str, reader: str) -> None:
    whole = classifier("spigot", DATA, classifier__structure=structure, classifier__reader=reader)
    for chosen in ([Sentence(())], [Sentence(()), Sentence(("cat",)), Sentence(("never", "seen"))]):
        found = list(whole.pipe(chosen))
        assert [len(s.probabilities or ()) for s in found] == [2] * len(chosen)
        assert found[0].graph in (None, Graph.of([], [], found[0].graph.predicates if found[0].graph else ()))
    whole.model.loss(batch_of([Sentence((), label=0)], whole, [3]), "classifier").sum().backward()


def test_each_structure_has_its_reader() -> None:
    roles = len(semantics(classifier("spigot", DATA)).annotation.roles)
    assert roles > 1
    for settings, expected in (({}, roles), (TREES, 0), ({"classifier__structure": "left"}, 0), (LATENT, 5)):
        (reader,) = classes(classifier("spigot", DATA, **settings)).readers
        assert isinstance(reader, Roles)
        assert (0 if reader.read.roles is None else len(reader.read.roles)) == expected
    (rounds,) = classes(classifier("spigot", DATA, classifier__reader="rounds", classifier__rounds=3)).readers
    assert isinstance(rounds, Rounds)
    assert rounds.read.rounds == 3
    assert len(classes(classifier("bilstm", DATA, classifier__reader="rounds")).readers) == 0


def test_the_parts_of_a_system_have_their_own_optimisers() -> None:
    whole = classifier("spigot", DATA, classifier__optimiser__learning_rate=0.25)
    model, inside = whole.model, semantics(whole)
    assert {name: part.model for name, part in model.parts().items()} == {
        "semantics": inside,
        "semantics.pruner": inside.pruner,
        "classifier": classes(whole),
    }
    assert model.parts()["semantics"].without == (inside.pruner,)
    assert model.parts()["classifier"].optimiser.learning_rate == 0.25
    assert set(classifier("spigot", DATA, **TREES).model.parts()) == {"syntax", "classifier"}
    assert semantics(classifier("spigot", DATA, **LATENT)).pruner is None
    with pytest.raises(ValueError, match="This system has no syntax to train; it has semantics, classifier"):
        model.loss(batch_of(DATA["trees"].train[:1], whole), "syntax")


def test_systems_are_the_same_but_for_their_estimator() -> None:
    """Equal seeds give equal parameters: what differs between systems is the gradient alone."""
    states = [classifier(system, DATA).model.state_dict() for system in CLASSIFIERS[1:]]
    for state in states[1:]:
        assert state.keys() == states[0].keys()
        assert all(torch.equal(value, states[0][name]) for name, value in state.items())
    assert set(CLASSIFIERS) < set(systems("classification"))


def test_five_classes_with_any_numbers() -> None:
    labels = (9, 4, 6, 5, 8)
    data = review_corpus(train=20, classes=labels)
    whole = classifier("spigot", data)
    assert classes(whole).annotation.classes == (4, 5, 6, 8, 9)
    found = list(whole.pipe(reviews(6, 3, labels)))
    assert {s.label for s in found} <= set(labels)
    assert all(len(s.probabilities or ()) == 5 for s in found)
    whole.model.loss(batch_of(data["labels"].train, whole), "classifier").sum().backward()


def test_one_class_is_refused() -> None:
    with pytest.raises(ValueError, match=r"have 1 different labels; a classifier needs two or more"):
        classifier("bilstm", review_corpus(classes=(1,)))


def test_a_graph_that_was_found_is_given_in_words() -> None:
    """The arcs, tops and predicates shown are those of the decoded parts."""
    whole: Parser = classifier("pipeline", DATA)
    sentence = DATA["labels"].dev[0]
    (found,) = whole.pipe([sentence])
    z = read(whole.model, batch_of([sentence], whole))
    arcs, n = [], len(sentence)
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            if i != j and z[0, i, j, 0]:
                (role,) = z[0, i, j, 1:].nonzero().flatten().tolist()
                arcs.append(Arc(i, j, semantics(whole).annotation.roles[role]))
    tops = [j for j in range(1, n + 1) if z[0, 0, j, 0]]
    assert found.graph == Graph.of(arcs, tops, [i for i in range(1, n + 1) if z[0, i, i, 0]])
    assert arcs
