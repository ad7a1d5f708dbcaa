"""Equations and constants of Peng, Thomson and Smith (2018) about the parsers, each written out by hand.

The derivative that Eq. 4 sends into the syntactic parser is in `test_joint.py`, Eq. 7 word by word in
`tests/spigot_nlp/nn/test_features.py`.
"""

from typing import Any

import pytest
import torch
from torch import nn

import spigot
from spigot import AbstractEstimator
from spigot_nlp.config import Config, make_config
from spigot_nlp.encoders import BiLSTMEncoder
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.plan import Phase, phases
from spigot_nlp.wires import build_estimator
from tests.spigot_nlp.parsing import batch_of, corpus, parser, semantics, syntax

PAPER = make_config({"preset": "paper"})
RELEASE = make_config({"preset": "release"})
DATA = corpus()


def whole(system: str = "spigot") -> Parser:
    return parser(system, DATA)


def estimator(config: Config) -> AbstractEstimator:
    ((_, wire),) = config.wires
    return build_estimator(wire.estimator, None)


def settings(config: Config, stage: str) -> Any:
    return config.stages[stage]


def plan(system: str) -> list[Phase]:
    return phases(make_config({"system": system}))


def test_equation_7_every_scorer_reads_word_and_head() -> None:
    """h~_j = [h_j ; h_head(j)] replaces h_j in the scores of predicates, arcs and labels; the root has no head."""
    system = whole()
    system.model.double()
    stage, batch = semantics(system), batch_of(DATA["graphs"].train[:3], system)
    z = system.model.parse(batch)["syntax"].z
    scored = stage._scored(batch, [z], stage.seen(batch), None, noisy=False)
    states = stage.encoder(batch)
    heads = z.argmax(-2)
    for b, length in enumerate(batch.lengths.tolist()):
        rows = [torch.cat((states[b, 0], torch.zeros_like(states[b, 0])))]
        rows += [torch.cat((states[b, j], states[b, heads[b, j]])) for j in range(1, length + 1)]
        features = torch.stack(rows).unsqueeze(0)
        torch.testing.assert_close(scored.predicates[b, : length + 1], stage.predicates(features)[0])
        arcs, labels = stage.pairs(features)[0], stage.labels(features)[0]
        for row, (k, i, j) in enumerate(scored.pairs.tolist()):
            if k == b:
                torch.testing.assert_close(scored.arcs[row], arcs[i, j, 0])
                torch.testing.assert_close(scored.labelled[row], labels[i, j])


def test_equation_7_uses_the_semantic_parsers_own_states() -> None:
    """No parameter and no embedding is shared between the two parsers."""
    system = whole()
    assert not {id(p) for p in syntax(system).parameters()} & {id(p) for p in semantics(system).parameters()}


@torch.no_grad()
def test_section_3_graph_score_is_the_sum_of_its_parts() -> None:
    system = whole("neurboparser")
    system.model.double()
    stage, batch = semantics(system), batch_of(DATA["graphs"].train[:3], system)
    scored = stage._scored(batch, (), stage.seen(batch), None, noisy=False)
    scores, mask = stage.parts(batch, scored)
    z = stage.structure.argmax(scores, mask)
    for b in range(3):
        total = sum(float(scored.predicates[b, i]) * float(z[b, i, i, 0]) for i in range(batch.size))
        for row, (k, i, j) in enumerate(scored.pairs.tolist()):
            if k == b:
                on = float(z[b, i, j, 0]) * scored.arcs[row] + z[b, i, j, 1:] @ scored.labelled[row]
                total += float(on)
        assert float((scores * z)[b].sum()) == pytest.approx(total)
    assert stage.structure.contains(z, mask).all()


def test_costs_of_the_hinge_are_0_4_and_0_6() -> None:
    assert (settings(PAPER, "semantics").false_positive, settings(PAPER, "semantics").false_negative) == (0.4, 0.6)
    assert settings(PAPER, "semantics").loss == settings(RELEASE, "semantics").loss == "hinge"


@pytest.mark.parametrize("preset", [PAPER, RELEASE], ids=["paper", "release"])
def test_supplement_sizes(preset: Config) -> None:
    """100-dimensional words, 50 for lemmas and tags, two layers of 200 a direction, perceptrons of 100."""
    for model in (settings(preset, "syntax"), settings(preset, "semantics")):
        encoder = model.encoder
        assert (encoder.word_dim, encoder.lemma_dim, encoder.tag_dim) == (100, 50, 50)
        assert (encoder.hidden, encoder.layers, model.mlp) == (200, 2, 100)
        assert encoder.word_dropout == 0.25
        assert encoder.dropout == 0
    assert settings(preset, "semantics").mlp_layers == 2


def test_supplement_training() -> None:
    """Adam at 0.001, clipped at 1, decay 1e-6, single sentences, halved every 5 epochs for syntax; eta = 1."""
    for optimiser in (settings(PAPER, "syntax").optimiser, settings(PAPER, "semantics").optimiser):
        assert (optimiser.learning_rate, optimiser.beta1, optimiser.beta2) == (1e-3, 0.9, 0.999)
        assert (optimiser.max_norm, optimiser.weight_decay, optimiser.anneal_by) == (1.0, 1e-6, 0.5)
    assert (settings(PAPER, "syntax").optimiser.anneal_every, settings(PAPER, "semantics").optimiser.anneal_every) == (
        5,
        10,
    )
    assert PAPER.training.batch == 1
    assert estimator(PAPER) == spigot.Spigot(eta=1.0)
    assert PAPER.training.end_weight is None


def test_supplement_structured_attention_has_its_own_schedule() -> None:
    attention = make_config({"system": "attention"})
    assert settings(attention, "syntax").loss == "crf"
    assert (
        settings(attention, "syntax").optimiser.learning_rate,
        settings(attention, "syntax").optimiser.anneal_every,
    ) == (5e-4, 4)
    released = make_config({"system": "attention", "preset": "release"})
    assert (
        settings(released, "syntax").optimiser.learning_rate,
        settings(released, "syntax").optimiser.anneal_every,
    ) == (1e-3, 10)


def test_release_differs_where_it_is_known_to() -> None:
    assert estimator(RELEASE) == spigot.Spigot(eta=1.0, max_norm=1.0)
    assert estimator(make_config({"system": "ste", "preset": "release"})) == spigot.StraightThrough()
    assert settings(RELEASE, "syntax").mlp_layers == 2
    heads = settings(RELEASE, "syntax").pruning
    assert (heads.learned, heads.dictionary, heads.entropy) == (True, True, True)
    assert (heads.top_heads, heads.threshold, heads.epochs, heads.batch) == (10, 1e-4, 1, 32)
    assert (heads.encoder.word_dim, heads.encoder.lemma_dim, heads.encoder.tag_dim) == (32, 16, 16)
    assert (heads.encoder.hidden, heads.encoder.layers, heads.mlp, heads.optimiser.max_norm) == (32, 1, 32, 5.0)
    assert not settings(PAPER, "syntax").pruning.learned  # its text says nothing of it
    assert settings(RELEASE, "syntax").encoder.lemma_from_form
    assert settings(RELEASE, "syntax").encoder.drop_all
    assert not settings(RELEASE, "semantics").encoder.drop_all
    assert settings(RELEASE, "syntax").optimiser.anneal_every == 10
    assert RELEASE.training.epochs == 100


def test_supplement_pruning() -> None:
    """Roles below 30 become one, posteriors of 1e-4, 20 arguments; a network of 32 with one layer."""
    pruning = settings(PAPER, "semantics").pruning
    assert (pruning.rare_role, pruning.threshold, pruning.keep) == (30, 1e-4, 20)
    assert (pruning.encoder.word_dim, pruning.encoder.lemma_dim, pruning.encoder.tag_dim) == (32, 16, 16)
    assert (pruning.encoder.hidden, pruning.encoder.layers, pruning.mlp) == (32, 1, 32)


def test_word_dropout_is_alpha_over_alpha_plus_count() -> None:
    system = whole()
    encoder = syntax(system).encoder
    assert isinstance(encoder, BiLSTMEncoder)
    chance = encoder.embedding.chance
    for k, count in enumerate(system.vocab.counts):
        expected = 0 if k in (1, 2) else 0.25 / (0.25 + count)
        assert float(chance[k]) == pytest.approx(expected)


def test_training_is_joint_from_scratch_but_for_the_pipeline() -> None:
    for system in ("attention", "ste", "spigot"):
        assert plan(system)[-1].tasks == ("syntax", "semantics")
    pipeline = plan("pipeline")
    assert [phase.tasks for phase in pipeline[-2:]] == [("syntax",), ("semantics",)]
    assert [phase.tasks for phase in plan("neurboparser")] == [("semantics.pruner",), ("semantics",)]
    assert {phase.judge for phase in pipeline} == {None, "syntax", "semantics"}
    measures = {name: one.measures[0].name for name, one in whole().model.annotations.items()}
    assert measures == {"syntax": "UAS", "semantics": "LF"}


def test_initial_weights_are_glorot_uniform() -> None:
    """Within +-sqrt(6 / (rows + columns)); rows of embeddings within +-sqrt(3 / dim)."""
    for part in whole().model.modules():
        if isinstance(part, nn.Linear):
            bound = (6 / sum(part.weight.shape)) ** 0.5
            assert bound / 3 < float(part.weight.detach().abs().max()) <= bound
        elif isinstance(part, nn.Embedding):
            bound = (3 / part.embedding_dim) ** 0.5
            assert bound / 2 < float(part.weight.detach().abs().max()) <= bound
