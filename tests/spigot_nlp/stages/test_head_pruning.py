"""Which heads a word keeps, against marginals by enumeration and a dictionary of Python; and what trains behind it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spigot_nlp.annotations.trees import tree_parts
from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import load_corpus
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.build import fresh
from spigot_nlp.models.inspection import inspect
from spigot_nlp.models.system import System
from spigot_nlp.stages import TreeStage
from spigot_nlp.stages.constraints import Constraints
from spigot_nlp.stages.trees import HeadPruner, HeadPruning, TreeSettings
from spigot_nlp.training import Step, train
from tests.spigot import brute
from tests.spigot_nlp.parsing import batch_of, corpus, experiment, load, of_lengths, parser, sentences, syntax
from tests.spigot_nlp.training.trainings import Training, check_resumes, steps_of

WHOLE = parser()
BATCH = batch_of(of_lengths([3, 1, 5, 2]), WHOLE)


def pruned(**overrides: Any) -> tuple[TreeStage, HeadPruner]:
    """A parser in double precision, and its pruner, of which nothing has learned yet."""
    given = {"learned": True, **overrides}
    model = syntax(parser(**{f"syntax__pruning__{name}": value for name, value in given.items()})).double()
    assert model.pruner is not None
    return model, model.pruner


def words(lengths: torch.Tensor) -> list[tuple[int, int, int]]:
    return [(k, length, j) for k, length in enumerate(lengths.tolist()) for j in range(1, length + 1)]


@pytest.mark.parametrize("trees", ["projective", "nonprojective"])
@pytest.mark.parametrize(("top_heads", "threshold"), [(2, 0.0), (9, 0.7), (2, 0.95)])
def test_the_most_probable_heads_are_kept_and_a_chain(trees: str, top_heads: int, threshold: float) -> None:
    torch.manual_seed(3)
    overrides: dict[str, Any] = {"syntax__trees": trees, "syntax__pruning__learned": True}
    overrides |= {"syntax__pruning__top_heads": top_heads, "syntax__pruning__threshold": threshold}
    model = syntax(parser(**overrides)).double()
    assert model.pruner is not None
    for parameter in model.pruner.parameters():
        torch.nn.init.normal_(parameter)
    kept = model.pruner(BATCH)
    scores = model.pruner.arcs(model.pruner.encoder(BATCH, noisy=False)).squeeze(-1).detach()
    for k, length, j in words(BATCH.lengths):
        mask = ~torch.eye(length + 1, dtype=torch.bool)
        mask[:, 0] = False
        members = brute.trees(mask, projective=trees == "projective", single_root=True)
        s = scores[k, : length + 1, : length + 1]
        weights = torch.stack([(s * z).sum() for z in members]).softmax(0)
        marginal = (weights[:, None] * torch.stack([z[:, j] for z in members])).sum(0)
        best = sorted((i for i in range(length + 1) if i != j), key=lambda i: -float(marginal[i]))[:top_heads]
        wanted = {i for i in best if marginal[i] >= threshold * marginal.max()} | {j - 1}
        assert kept[k, :, j].nonzero().flatten().tolist() == sorted(wanted), (k, j)
    assert not (kept & ~model.trees.mask(BATCH.lengths, BATCH.size)).any()


def test_tags_that_no_arc_has_are_no_heads() -> None:
    model, pruner = pruned(learned=False, dictionary=True)
    train = corpus()["trees"].train
    seen = {
        ((s.tags or ())[head - 1] if head else "ROOT", tag)
        for s in train
        for head, tag in zip(s.heads or (), s.tags or (), strict=True)
    }
    whole = parser(syntax__pruning__dictionary=True)
    Training(whole, corpus()).steps()  # which fills the table
    kept = syntax(whole).surviving(BATCH)
    tags = [("ROOT", *(s.tags or ())) for s in of_lengths([3, 1, 5, 2])]
    for k, length, j in words(BATCH.lengths):
        wanted = {i for i in range(length + 1) if i != j and (tags[k][i], tags[k][j]) in seen} | {j - 1}
        assert kept[k, :, j].nonzero().flatten().tolist() == sorted(wanted)
    assert pruner.seen.all(), "before it has learned anything, it rules nothing out"
    assert model.helpers() == {}


@pytest.mark.parametrize("entropy", [False, True])
def test_the_pruner_learns_the_likelihood_of_trees_and_their_entropy_if_asked(entropy: bool) -> None:
    model, pruner = pruned(entropy=entropy)
    losses, scores = model.helper_loss("pruner", BATCH), pruner.arcs(pruner.encoder(BATCH, noisy=True)).squeeze(-1)
    for k, length in enumerate(BATCH.lengths.tolist()):
        mask = ~torch.eye(length + 1, dtype=torch.bool)
        mask[:, 0] = False
        s = scores[k, : length + 1, : length + 1]
        values = torch.stack([(s * z).sum() for z in brute.trees(mask, projective=True, single_root=True)])
        gold = sum(s[BATCH.gold["syntax"][k, j], j] for j in range(1, length + 1))
        p = values.softmax(0)
        expected = values.logsumexp(0) - gold - (float(entropy) * p * p.log()).sum()
        torch.testing.assert_close(losses[k], expected)


def test_a_gold_head_that_is_pruned_counts_in_training_and_is_not_found_in_parsing() -> None:
    model, _ = pruned(top_heads=1, threshold=1.0)
    batch = batch_of(sentences(8), WHOLE)
    gold = tree_parts(batch.gold["syntax"], batch.lengths, torch.float64) > 0
    kept = model.evidence(batch).mask
    lost = gold & ~kept
    assert lost.any(), "an untrained pruner leaves few"
    assert torch.equal(kept, model.surviving(batch))
    z = model.structure.argmax(*model.evidence(batch))
    assert not (z[lost] > 0).any()
    assert model.structure.contains(z, kept).all()
    assert (model.loss(batch) >= 0).all(), "the gold tree is among those it is compared with"


def test_scores_of_what_is_left_are_those_of_all() -> None:
    model, _ = pruned(top_heads=2)
    scores, mask = model.evidence(BATCH)
    every = model.scorer(model.states(BATCH, (), noisy=False)).squeeze(-1)
    torch.testing.assert_close(scores[mask], every[mask])
    assert not scores[~mask].any()


def test_one_word_has_one_tree() -> None:
    model, _ = pruned()
    batch = batch_of(of_lengths([1]), WHOLE)
    assert model.surviving(batch).nonzero().tolist() == [[0, 0, 1]]
    assert model.loss(batch).item() == model.helper_loss("pruner", batch).item() == 0


def test_demands_win_over_the_pruner() -> None:
    model, _ = pruned(top_heads=1, threshold=1.0)
    kept = model.surviving(BATCH)
    k, j = 2, 3
    forced, free = next(i for i in range(1, 6) if i != j and not kept[k, i, j]), int(kept[k, :, j].int().argmax())
    demands = [None, None, Constraints(heads=((j, forced),), not_heads=((j + 1, j),)), None]
    limits = model.limits(demands, BATCH.lengths.tolist(), BATCH.size)
    z = model.structure.argmax(*model.evidence(BATCH, limits=limits))
    assert z[k, forced, j] == 1
    assert z[k, j, j + 1] == 0, "not even the arc that pruning always leaves"
    assert free != forced
    mask = model.evidence(BATCH, limits=limits).mask
    assert torch.equal(mask[[0, 1, 3]], kept[[0, 1, 3]])
    assert model.structure.contains(z, mask).all()


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("system", ["pipeline", "attention", "ste", "spigot", "lpgd"])
def test_every_system_is_pruned_in_its_steps_and_in_parsing(system: str, labelled: bool) -> None:
    data = corpus()
    if labelled:
        named = [
            replace(s, relations=tuple("root" if h == 0 else "dep" for h in s.heads or ())) for s in data["trees"].train
        ]
        data = replace(data, sets={**data.sets, "trees": replace(data["trees"], train=named)})
    whole = parser(system, data, syntax__pruning__learned=True, syntax__pruning__top_heads=1, syntax__labelled=labelled)
    model = whole.model
    assert isinstance(model, System)
    trees = syntax(whole)
    kept = trees.surviving(BATCH)
    read = model.read("semantics", BATCH)[0]
    assert not ((read.sum(-1) if labelled else read)[~kept] > 0).any()
    answer = model.parse(BATCH)["syntax"]
    assert not ((answer.z.sum(-1) if labelled else answer.z)[~kept] > 0).any()


def test_the_pruner_is_trained_first_and_then_stays() -> None:
    whole = parser(syntax__pruning__learned=True, syntax__pruning__batch=5, syntax__pruning__epochs=2)
    trainer = Training(whole, corpus())
    pruner = syntax(whole).pruner
    assert pruner is not None
    before = {name: value.clone() for name, value in pruner.state_dict().items()}
    frozen: dict[str, torch.Tensor] = {}

    def look(step: Step) -> None:
        if step.phase == "syntax.pruner":
            assert step.sentences <= 5
            if step.dev is not None:
                assert set(step.dev) == {"heads_a_word", "recall", "UAS"}
                frozen.update({name: value.clone() for name, value in pruner.state_dict().items()})

    trainer.steps(look)
    assert any(not torch.equal(frozen[name], value) for name, value in before.items())
    assert all(torch.equal(frozen[name], value) for name, value in pruner.state_dict().items())
    assert [phase.name for phase in trainer.phases] == ["syntax.pruner", "semantics.pruner", "joint"]


def test_latent_trees_cannot_be_pruned() -> None:
    with pytest.raises(ValueError, match=r"latent ones are not annotated; set pruning\.learned = false"):
        experiment(syntax__latent=True, syntax__pruning__learned=True)


def test_alternatives_are_heads_that_are_left() -> None:
    whole = parser(syntax__pruning__learned=True, syntax__pruning__top_heads=2, syntax__pruning__threshold=0.0)
    sentence = Sentence(tuple("abcdef"))
    (inspected,) = inspect(whole, [sentence], top=6, tagged=True)
    kept = syntax(whole).surviving(batch_of([sentence], whole))[0]
    assert inspected.heads is not None
    for j, heads in enumerate(inspected.heads, 1):
        assert {one.head for one in heads} == set(kept[:, j].nonzero().flatten().tolist())


def test_presets_name_it() -> None:
    assert not whole_pruning({}).learned
    assert whole_pruning({"preset": "release", "system": "pipeline"}).learned


def whole_pruning(given: dict[str, Any]) -> HeadPruning:
    settings = make_config(given).stages["syntax"]
    assert isinstance(settings, TreeSettings)
    return settings.pruning


PRUNED = {"syntax__pruning__learned": True, "syntax__pruning__batch": 5, "syntax__pruning__dictionary": True}


def test_interrupted_while_the_pruner_learns_it_goes_on_as_if_nothing_had_happened() -> None:
    steps = check_resumes(experiment(training__epochs=1, **PRUNED), corpus(), every=2)
    assert steps[0].phase == "syntax.pruner"


def test_a_parser_that_is_taken_over_brings_its_pruner(tmp_path: Path) -> None:
    data = {"data__source": "synthetic", "data__synthetic__train": 6, "data__synthetic__dev": 2, "training__epochs": 1}
    tests = {"data__synthetic__test": 1, "training__tests": False}
    train(experiment(**data, **tests, **PRUNED), tmp_path / "first")
    start = {"syntax__start": str(tmp_path / "first")}
    steps = steps_of(experiment("pipeline", **data, **tests, **PRUNED, **start), tmp_path / "second")
    assert {step.phase for step in steps} == {"semantics.pruner", "semantics"}
    first, second = (syntax(load(tmp_path / name)).pruner for name in ("first", "second"))
    assert first is not None
    assert second is not None
    assert all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())
    with pytest.raises(ValueError, match=r"first was trained with another size of syntax; use its \[stages\.syntax\]"):
        train(experiment("pipeline", **data, **tests, **start), tmp_path / "third")


@pytest.mark.slow
def test_a_joint_training_from_scratch_stands_with_it_and_falls_without() -> None:
    """One epoch of the published recipe without clip on five hundred generated sentences, by the trees found then."""
    encoder = {"word_dim": 32, "lemma_dim": 16, "tag_dim": 16, "hidden": 64}
    recipe = {
        "preset": "release",
        "data": {"source": "synthetic", "tags": "columns", "synthetic": {"train": 500, "dev": 100, "test": 1}},
        "syntax": {"encoder": encoder, "mlp": 64},
        "semantics": {"encoder": encoder, "mlp": 32, "pruning": {"epochs": 1}},
        "estimator": {"max_norm": 1e3},
        "training": {"epochs": 1, "patience": 0},
    }
    found = {}
    for learned in (False, True):
        switched = {"syntax.pruning.learned": learned, "syntax.pruning.dictionary": learned}
        config = make_config(recipe, {**switched, "syntax.pruning.epochs": 8})
        data = load_corpus(config.data, tests=False)
        *_, last = Training(fresh(config, data.train), data).steps()
        assert last.dev is not None
        found[learned] = last.dev["UAS"]
    assert found[True] > found[False] + 15, found
