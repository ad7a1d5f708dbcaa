"""The syntactic parser with relations: scores, losses, what it finds, and the whole way through a training."""

import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import spigot
from spigot_nlp.annotations import Trees
from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.inspection import head_entropy, inspect
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import Answer
from spigot_nlp.stages import TreeStage
from spigot_nlp.stages.constraints import Constraints
from spigot_nlp.stages.trees import TreeDecision
from spigot_nlp.training.start import build
from tests.spigot import brute
from tests.spigot_nlp.parsing import batch_of, corpus, experiment, load, sentences, syntax
from tests.spigot_nlp.training.trainings import Training, begin, rest_of, steps_of

NAMES = {"DT": "det", "NN": "arg", "VBZ": "root", "RB": "advmod"}


def named(sentence: Sentence) -> Sentence:
    """With a relation for each word that follows from its tag, and from its side for nouns."""
    if sentence.heads is None:
        return sentence
    words = zip(sentence.tags or (), sentence.heads, range(1, 99), strict=False)
    return replace(sentence, relations=tuple(NAMES[t] + (":left" if h > k and t == "NN" else "") for t, h, k in words))


def labelled_corpus() -> Corpus:
    return corpus(16).apply(lambda _, split: split.apply(lambda some: [named(sentence) for sentence in some]))


def labelled(system: str = "spigot", **overrides: Any) -> Parser:
    return build(experiment(system, syntax__labelled=True, **overrides), labelled_corpus())


def stage(parser: Parser) -> TreeStage:
    return syntax(parser)


def test_relations_are_those_of_the_training_sentences() -> None:
    annotation = stage(labelled()).annotation
    assert annotation.relations == ("advmod", "arg", "arg:left", "det", "root")
    assert Trees.restored(annotation.names()) == annotation
    assert Trees().names() == {"name": "heads"}  # as runs have it that know no relations


@pytest.mark.parametrize("scorer", ["mlp", "biaffine"])
@pytest.mark.parametrize("loss", ["crf", "hinge"])
def test_losses_are_those_of_all_labelled_trees(scorer: str, loss: str) -> None:
    parser = labelled(syntax__scorer=scorer, syntax__loss=loss, syntax__trees="nonprojective")
    model = stage(parser).double()
    batch = batch_of([named(sentence) for sentence in sentences(9) if len(sentence) <= 3][:3], parser)
    scores, exists = model.evidence(batch)
    scores = scores.masked_fill(~exists, -torch.inf)  # the root has a relation of its own
    losses = model.loss(batch)
    gold = batch.gold["syntax"]
    for k, length in enumerate(batch.lengths.tolist()):
        s, (heads, relations) = scores[k], (gold.heads[k], gold.relations[k])
        mask = ~torch.eye(length + 1, dtype=torch.bool)
        mask[:, 0] = False
        own = sum(s[heads[j], j, relations[j]] for j in range(1, length + 1))
        values = []
        for z in brute.trees(mask, projective=False, single_root=True):
            chosen = z.argmax(0).tolist()[1:]
            rows = torch.stack([s[head, j] for j, head in enumerate(chosen, 1)])
            if loss == "hinge":
                right = torch.tensor([head == int(heads[j]) for j, head in enumerate(chosen, 1)])
                cost = torch.ones_like(rows)
                cost[torch.arange(length), relations[1 : length + 1]] -= right.to(rows.dtype)
                values.append((rows + cost).amax(-1).sum())
            else:
                values.append(rows.logsumexp(-1).sum())
        whole = torch.stack(values)
        wanted = (whole.amax() if loss == "hinge" else whole.logsumexp(0)) - own
        torch.testing.assert_close(losses[k], wanted)


def test_a_parser_learns_relations_and_is_judged_by_them() -> None:
    config = make_config(
        {
            "data": {"tags": "columns"},
            "stages": {
                "syntax": {
                    "annotation": "trees",
                    "labelled": True,
                    "loss": "crf",
                    "mlp": 16,
                    "relation_mlp": 8,
                    "encoder": {"word_dim": 8, "lemma_dim": 4, "tag_dim": 8, "hidden": 12, "character_dim": 6},
                    "optimiser": {"learning_rate": 0.02, "max_norm": 50.0},
                }
            },
            "training": {"epochs": 12, "batch": 4, "patience": 0},
        }
    )
    data = labelled_corpus()
    trainer = Training(build(config, data), data)
    scores = [step.dev for step in trainer.steps() if step.dev is not None]
    assert list(scores[0])[:2] == ["LAS", "UAS"]
    assert max(score["LAS"] for score in scores) > 85
    found = list(trainer.parser.pipe(data["trees"].dev))
    assert sum(a.relations == b.relations for a, b in zip(found, data["trees"].dev, strict=True)) >= 3
    says = trainer.parser.model.annotations["syntax"].fares(data["trees"].dev[0], found[0])
    assert says.endswith("with their relation")


def test_alternatives_have_relations_and_constraints_hold() -> None:
    parser = labelled()
    (sentence,) = [named(s) for s in sentences(1)]
    (found,) = inspect(parser, [sentence], [Constraints(heads=((1, 2),))])
    assert found.sentence.heads is not None
    assert found.sentence.heads[0] == 2
    for word, choices in enumerate(found.heads or ()):
        (chosen,) = [choice for choice in choices if choice.head == found.sentence.heads[word]]
        assert found.sentence.relations is not None
        assert chosen.relation == found.sentence.relations[word]
        assert sum(choice.marginal or 0 for choice in choices) == pytest.approx(1, abs=0.05)
    assert head_entropy(parser, [sentence]) > 0


def test_heads_that_constraints_exclude_keep_their_relations_and_scores() -> None:
    parser = labelled()
    given = sentences(1)[0].without_annotation()
    (before,) = inspect(parser, [given], top=99)
    assert before.heads is not None
    assert before.sentence.heads is not None
    other = next(choice.head for choice in before.heads[0] if choice.head != before.sentence.heads[0])
    (after,) = inspect(parser, [given], [Constraints(heads=((1, other),))], top=99)
    assert after.heads is not None
    known = [
        {choice.head: (choice.relation, pytest.approx(choice.score, abs=1e-4)) for choice in word}
        for word in before.heads
    ]
    assert [{choice.head: (choice.relation, choice.score) for choice in word} for word in after.heads] == known
    assert {choice.head: choice.marginal for choice in after.heads[0] if choice.marginal} == {other: 1.0}
    for word in after.heads:
        for choice in word:
            assert (choice.relation == "root") == (choice.head == 0)


def test_trees_without_relations_cannot_be_learned_from() -> None:
    with pytest.raises(ValueError, match="no relations, so there is nothing to label arcs with"):
        build(experiment(syntax__labelled=True), corpus())
    model = stage(labelled())
    right = named(sentences(1)[0])
    assert model.usable(right)
    assert not model.usable(replace(right, relations=None))
    assert not model.usable(replace(right, relations=("strange",) * len(right)))


@pytest.mark.parametrize("estimator", ["spigot", "ste", "attention", "pipeline"])
def test_a_reader_of_relations_sends_gradients_to_their_scores(estimator: str) -> None:
    reads = {"stage": "syntax", "as": {"name": "heads", "relation_dim": 3}}
    parser = labelled(estimator, stages__semantics__reads=reads, semantics__determinism=False)
    batch = batch_of([named(s) for s in sentences(3)], parser)
    parser.model.loss(batch, "semantics").sum().backward()
    relations = stage(parser).relations
    assert relations is not None
    moved = relations.weight.grad is not None and bool(relations.weight.grad.abs().sum() > 0)
    assert moved == (estimator != "pipeline")


def test_relations_cannot_be_read_where_there_are_none() -> None:
    reads = {"stage": "syntax", "as": {"name": "heads", "relation_dim": 3}}
    with pytest.raises(ValueError, match="set labelled = true there"):
        build(experiment(stages__semantics__reads=reads), corpus())


def test_a_labelled_run_resumes_and_writes_relations(tmp_path: Path) -> None:
    data = labelled_corpus()
    for name in ("train", "dev"):
        write(getattr(data["trees"], name), tmp_path / f"{name}.conllu")
    small = {"mlp": 8, "encoder": {"word_dim": 8, "lemma_dim": 0, "tag_dim": 4, "hidden": 8, "character_dim": 6}}
    settings: dict[str, Any] = {
        "data": {
            "root": str(tmp_path),
            "tags": "columns",
            "trees": {"train": "train.conllu", "dev": "dev.conllu", "tests": {"test": "dev.conllu"}},
        },
        "stages": {"syntax": {"annotation": "trees", "labelled": True, "scorer": "biaffine", "dropout": 0.3, **small}},
        "training": {"epochs": 2, "batch": 4},
    }
    config = make_config(settings)
    losses = [step.loss for step in steps_of(config, tmp_path / "whole")]
    begin(config, tmp_path / "cut", 5)  # one step beyond what the first epoch has saved
    assert [step.loss for step in rest_of(tmp_path / "cut")] == losses[4:]
    assert tomllib.loads((tmp_path / "whole" / "config.toml").read_text())["stages"]["syntax"]["labelled"]
    written = list(read(tmp_path / "whole" / "predictions.test.conllu"))
    assert all(sentence.relations is not None for sentence in written)
    again = list(load(tmp_path / "whole").pipe(written))
    assert [s.relations for s in again] == [s.relations for s in written]
    # A run of an earlier version, which did not say which relation is that of the root.
    names = tmp_path / "whole" / "vocab.json"
    assert '"root": "root"' in names.read_text()
    names.write_text(names.read_text().replace(', "root": "root"', ""))
    assert all(None not in (s.heads, s.relations) for s in load(tmp_path / "whole").pipe(written))
    settings["stages"]["syntax"]["start"] = str(tmp_path / "whole")
    further = make_config(settings)
    assert steps_of(further, tmp_path / "further")[0].loss > 0


def test_half_precision_finds_trees() -> None:
    parser = labelled(syntax__encoder__character_dim=6)
    parser.model.compute_in("bfloat16")
    batch = batch_of([named(s) for s in sentences(3)], parser)
    scores, mask = stage(parser).evidence(batch)
    assert scores.dtype == torch.float32
    assert bool(stage(parser).structure.contains(stage(parser).structure.argmax(scores, mask), mask).all())
    parser.model.loss(batch, "syntax").sum().backward()
    parser.model.compute_in("float32")
    exact, _ = stage(parser).evidence(batch)
    assert not torch.equal(exact, scores)
    torch.testing.assert_close(exact, scores, atol=0.1, rtol=0.1)


def test_the_structure_is_that_of_labelled_trees() -> None:
    model = stage(labelled(syntax__trees="nonprojective", syntax__single_root=False))
    assert model.structure == spigot.LabelledTrees(spigot.NonProjectiveTrees(single_root=False), labels=5)
    assert model.arc_labels == 5
    assert model.part((2, 1, 3)) == (2, 1, "det")


def test_the_relation_of_the_root_is_learned_where_it_has_one_of_its_own() -> None:
    def learned(*trees: tuple[tuple[int, ...], tuple[str, ...]]) -> Trees:
        given = [Sentence(("x",) * len(heads), heads=heads, relations=names) for heads, names in trees]
        return Trees.learn("heads", given, SimpleNamespace(labelled=True))

    fell, well = ((2, 0), ("nsubj", "root")), ((0, 1), ("root", "advmod"))
    assert learned(fell, well).root == "root"
    assert learned(fell, well).relations == ("advmod", "nsubj", "root")
    assert learned(fell, ((0, 1), ("top", "dep"))).root == ""  # there are two
    assert learned(fell, ((0, 1), ("root", "root"))).root == ""  # others have it, too
    assert learned(((0,), ("root",))).root == ""  # nothing would be left for other words
    assert learned(((2, 0), ("nsubj", "_"))).root == ""  # it is not known
    restored = Trees.restored(learned(fell).names())
    assert isinstance(restored, Trees)
    assert (restored, restored.root_index) == (learned(fell), 1)
    earlier = {"name": "heads", "relations": ["nsubj", "root"]}
    assert Trees.restored(earlier) == Trees("heads", ("nsubj", "root"))


def test_words_hang_on_the_root_by_its_relation_and_on_words_by_others() -> None:
    parser = labelled(syntax__scorer="biaffine", semantics__pruning__learned=False)
    annotation = stage(parser).annotation
    assert annotation.root == "root"
    for parameter in stage(parser).parameters():
        parameter.data.normal_(generator=torch.Generator().manual_seed(1))  # which has not learned as much
    given = [sentence.without_annotation() for sentence in sentences(12, seed=3)]
    for precision in ("float32", "int16"):
        parser.model.compute_in(precision)
        for found in parser.pipe(given):
            assert found.heads is not None
            assert [not head for head in found.heads] == [name == "root" for name in found.relations or ()]


@pytest.mark.skipif(not spigot.kernels.available, reason="there are no kernels")
def test_trees_are_decided_for_without_scores_of_all_relations() -> None:
    parser = labelled(syntax__scorer="biaffine", syntax__trees="nonprojective", semantics__pruning__learned=False)
    given = [sentence.without_annotation() for sentence in sentences(12, seed=3)]
    ((order, batch),) = parser.batches(given, tokens=1 << 20)
    assert not isinstance(parser.model.decide(batch)["syntax"], TreeDecision)  # single precision has no such way
    parser.model.compute_in("int16")
    answer, decision = parser.model.parse(batch)["syntax"], parser.model.decide(batch)["syntax"]
    assert isinstance(decision, TreeDecision)
    assert answer.evidence is not None
    z, structure = decision.parts(), stage(parser).structure
    assert structure.contains(z, answer.evidence.mask).all()
    assert torch.equal(answer.z, z)  # whoever asks for scores gets the same trees
    best = structure.argmax(*answer.evidence)
    worth, best = ((some * answer.evidence.scores).sum((-1, -2, -3)) for some in (z, best))
    torch.testing.assert_close(worth, best, atol=1e-2, rtol=1e-3)  # among equals it may decide otherwise
    lengths = batch.lengths.tolist()
    assert decision.found(lengths) == stage(parser).found(z, None, lengths)
    parsed = list(parser.pipe(given))
    assert [parsed[k].heads for k in order] == [some["heads"] for some in decision.found(lengths)]


def test_where_somebody_reads_marginals_there_are_scores() -> None:
    parser = labelled("attention", syntax__scorer="biaffine", semantics__determinism=False)
    parser.model.compute_in("int16")
    ((_, batch),) = parser.batches([sentence.without_annotation() for sentence in sentences(3, seed=3)])
    assert isinstance(parser.model.decide(batch)["syntax"], Answer)
