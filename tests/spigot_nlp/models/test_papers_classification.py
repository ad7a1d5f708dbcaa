"""Equations and constants of Peng, Thomson and Smith (2018) about the classifier, each written out by hand.

The features that a classifier reads off a graph are in `tests/spigot_nlp/nn/test_readers.py` and
`tests/spigot_nlp/stages/test_classes.py`.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot import AbstractEstimator
from spigot_nlp.batches import Batch
from spigot_nlp.config import Config, make_config
from spigot_nlp.models.system import System
from spigot_nlp.training.plan import phases
from spigot_nlp.wires import build_estimator
from tests.spigot_nlp.parsing import (
    CLASSIFIERS,
    batch_of,
    classification,
    classifier,
    gradient_at_the_scores,
    review_corpus,
    scores_and_loss,
    semantics,
    syntax,
)

DATA = review_corpus()
PAPER = make_config({"task": "classification"})
RELEASE = make_config({"task": "classification", "preset": "release"})


def joint(system: str, **overrides: Any) -> tuple[System, Batch]:
    whole = classifier(system, DATA, **overrides)
    return whole.model.double(), batch_of(DATA["labels"].train[:4], whole, [1, 2, 3, 4])


def estimator(config: Config) -> AbstractEstimator:
    ((_, wire),) = config.wires
    return build_estimator(wire.estimator, None, config.seed)


def settings_of(config: Config, stage: str) -> Any:
    return config.stages[stage]


def at_the_graphs(model: System, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Mask, the graphs and dL/dz, with z cut out of the network by hand."""
    scores, mask, loss = scores_and_loss(model, batch)
    z = semantics(model).structure.argmax(scores, mask).detach().requires_grad_()
    loss(z).backward()
    model.zero_grad()
    assert z.grad is not None
    return mask, z.detach(), z.grad.masked_fill(~mask, 0)


def simplex(point: list[float]) -> list[float]:
    """Euclidean projection onto the simplex by bisection."""
    low, high = min(point) - 1, max(point)
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if sum(max(x - tau, 0) for x in point) > 1 else (low, tau)
    return [max(x - (low + high) / 2, 0) for x in point]


def project(point: Tensor, mask: Tensor) -> Tensor:
    """P_SDP: predicates between 0 and 1; the labels of an arc, and "no arc", on one simplex."""
    found = torch.zeros_like(point)
    for b, i, j in mask[..., 0].nonzero().tolist():
        if i == j:
            found[b, i, i, 0] = min(max(float(point[b, i, i, 0]), 0), 1)
            continue
        roles = mask[b, i, j, 1:].nonzero().flatten().tolist()
        *labels, none = simplex([*(float(point[b, i, j, 1 + l]) for l in roles), 1 - float(point[b, i, j, 0])])
        found[b, i, j, 0] = 1 - none
        for l, value in zip(roles, labels, strict=True):
            found[b, i, j, 1 + l] = value
    return found


@pytest.mark.parametrize("eta", [5 / 32, 1.0, 20.0])
def test_equation_4_with_the_polytope_of_equation_6(eta: float) -> None:
    """From the classifier's loss to the parser's scores: z - proj(z - eta dL/dz)."""
    model, batch = joint("spigot", estimator__eta=eta)
    mask, z, grad = at_the_graphs(model, batch)
    found = gradient_at_the_scores(model, batch)
    torch.testing.assert_close(found, z - project(z - eta * grad, mask), atol=1e-9, rtol=1e-7)
    assert z[..., 1:].any()
    assert found[..., 0].any()
    assert found[..., 1:].any()
    torch.testing.assert_close(found[..., 1:].sum(-1), found[..., 0])  # labels and arcs move together


def test_equation_4_on_latent_graphs() -> None:
    model, batch = joint("spigot", classifier__latent=True, estimator__eta=1.0)
    mask, z, grad = at_the_graphs(model, batch)
    found = gradient_at_the_scores(model, batch)
    torch.testing.assert_close(found, z - project(z - grad, mask), atol=1e-9, rtol=1e-7)
    assert found.any()


@pytest.mark.parametrize("trees", ["projective", "nonprojective"])
def test_equation_4_with_the_polytope_of_equation_5(trees: str) -> None:
    """Trees inside the classifier: one simplex for the heads of each word."""
    model, batch = joint("spigot", classifier__structure="trees", syntax__trees=trees, estimator__eta=1.0)
    scores, mask, loss = scores_and_loss(model, batch)
    z = syntax(model).structure.argmax(scores, mask).detach().requires_grad_()
    loss(z).backward()
    assert z.grad is not None
    expected = torch.zeros_like(z)
    for b in range(len(batch)):
        for j in range(1, int(batch.lengths[b]) + 1):
            heads = mask[b, :, j]
            stepped = (z.detach() - z.grad)[b, heads, j]
            expected[b, heads, j] = z.detach()[b, heads, j] - torch.tensor(simplex(stepped.tolist())).double()
    model.zero_grad()
    torch.testing.assert_close(gradient_at_the_scores(model, batch), expected, atol=1e-6, rtol=1e-5)
    assert expected.any()


def test_the_release_clips_the_gradient_of_a_sentence_and_settles_arcs_first() -> None:
    model, batch = joint("spigot", preset="release", estimator__max_norm=0.01)
    mask, z, grad = at_the_graphs(model, batch)
    norm = grad.flatten(1).norm(dim=-1)[:, None, None, None]
    assert (norm > 0.01).any()
    clipped = grad * (0.01 / norm).clamp(max=1)
    expected = z - spigot.ArcLabel(sequential=True).project(z - clipped, mask)
    torch.testing.assert_close(gradient_at_the_scores(model, batch), expected, atol=1e-9, rtol=1e-7)
    assert estimator(RELEASE) == spigot.Spigot(1.0, spigot.ArcLabel(sequential=True), max_norm=5 / 32)


def test_the_step_size_is_5_over_32_under_the_summed_loss_of_32_sentences() -> None:
    assert estimator(PAPER) == spigot.Spigot(5 / 32)
    assert PAPER.training.batch == RELEASE.training.batch == 32
    model, batch = joint("spigot")
    assert [wire.estimator for wire in model.all_wires()] == [spigot.Spigot(5 / 32)]
    losses = model.loss(batch, "classifier")
    assert losses.shape == (4,)  # one a sentence, to be summed
    first = batch_of(DATA["labels"].train[:1], classifier("spigot", DATA), [1])
    alone = model.loss(first, "classifier")
    torch.testing.assert_close(losses[:1], alone)  # and not divided by how many there are


def test_section_4_the_cost_of_a_sentence_is_the_negative_log_probability_of_its_class() -> None:
    whole = classifier("pipeline", DATA)
    whole.model.double()
    batch = batch_of(DATA["labels"].train[:4], whole)
    found = whole.found(whole.model.parse(batch), batch.lengths.tolist())
    probabilities = torch.tensor([annotations["probabilities"] for annotations in found], dtype=torch.float64)
    expected = -probabilities.log()[torch.arange(4), batch.gold["classifier"]]
    torch.testing.assert_close(whole.model.loss(batch, "classifier"), expected)


def test_supplement_sizes() -> None:
    """One BiLSTM layer and one hidden layer; sizes and dropout from the supplement's grid, as in the release."""
    for preset in (PAPER, RELEASE):
        settings = settings_of(preset, "classifier")
        encoder = settings.encoder
        assert (encoder.layers, encoder.hidden, settings.mlp) == (1, 150, 100)
        assert (encoder.lemma_dim, encoder.tag_dim) == (50, 50)
        assert (encoder.input_dropout, settings.dropout) == (0.5, 0.2)
        assert (encoder.word_dropout, encoder.dropout) == (0, 0)
        assert encoder.fixed_vectors
        (wire,) = settings.reads
        assert (wire.stage, wire.reader.name) == ("semantics", "roles")
        assert not settings_of(preset, "semantics").latent
        assert not settings_of(preset, "semantics").encoder.fixed_vectors


def test_supplement_training() -> None:
    """Adam at 0.001 halved every 5 epochs, clipped at 5, decay 1e-6; a parser pretrained, then a fifth of its data."""
    for preset in (PAPER, RELEASE):
        for optimiser in (settings_of(preset, "classifier").optimiser, settings_of(preset, "semantics").optimiser):
            assert (optimiser.learning_rate, optimiser.beta1, optimiser.beta2) == (1e-3, 0.9, 0.999)
            assert (optimiser.max_norm, optimiser.weight_decay) == (5.0, 1e-6)
            assert (optimiser.anneal_every, optimiser.anneal_by) == (5, 0.5)
        assert (preset.training.share, preset.training.pretrain) == (0.2, 7)
        assert preset.training.end_weight is None
        plan = phases(preset)
        assert [(phase.name, phase.tasks) for phase in plan] == [
            ("semantics.pruner", ("semantics.pruner",)),
            ("semantics", ("semantics",)),
            ("joint", ("semantics", "classifier")),
        ]
        assert [phase.judge for phase in plan] == [None, "semantics", "classifier"]
    assert (PAPER.training.epochs, RELEASE.training.epochs) == (30, 100)


def test_the_release_indexes_lemmas_by_form_and_drops_tags_with_words() -> None:
    assert settings_of(RELEASE, "semantics").encoder.lemma_from_form
    assert settings_of(RELEASE, "semantics").encoder.drop_all
    assert not settings_of(PAPER, "semantics").encoder.lemma_from_form
    assert not settings_of(PAPER, "semantics").encoder.drop_all
    released = estimator(make_config({"task": "classification", "preset": "release", "system": "ste"}))
    assert released == spigot.StraightThrough()  # unclipped


def test_each_system_has_its_estimator() -> None:
    values = {"eta": 0.5, "max_norm": 2.0, "strength": 3.0, "temperature": 0.7, "samples": 2, "normalise": True}
    settings = {f"estimator__{name}": value for name, value in values.items()}
    expected = {
        "pipeline": spigot.Pipeline(max_norm=2.0),
        "ste": spigot.StraightThrough(0.5, max_norm=2.0),
        "spigot": spigot.Spigot(0.5, max_norm=2.0),
        "sparsemap": spigot.SparseMAP(max_norm=2.0),
        "identity": spigot.Identity(0.5, normalise=True, max_norm=2.0),
        "blackbox": spigot.BlackBox(3.0, max_norm=2.0),
        "imle": spigot.IMLE(3.0, 0.7, 2, 5, max_norm=2.0),
        "perturbed": spigot.Perturbed(0.7, 2, 5, max_norm=2.0),
    }
    assert {"bilstm", *expected} == set(CLASSIFIERS)
    assert not list(classification("bilstm", **settings).wires)
    for system, rule in expected.items():
        assert estimator(classification(system, seed=5, **settings)) == rule
    whole = classifier("spigot", DATA, estimator__polytope="hull")
    structure = semantics(whole).structure
    assert structure.deterministic
    (wire,) = whole.model.all_wires()
    assert wire.estimator == spigot.Spigot(5 / 32, spigot.ConvexHull(structure))
