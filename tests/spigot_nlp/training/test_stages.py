"""Experiments in stage form from files to run folders: one stage, three, and some that share an encoder."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spigot_nlp.config import Config, make_config
from spigot_nlp.corpora.corpus import Corpus, Split, load_corpus
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Graph, Sentence
from spigot_nlp.models import checkpoint
from spigot_nlp.models.checkpoint import write_tensors
from spigot_nlp.training import Step
from spigot_nlp.training.start import build, init_stages
from tests.spigot_nlp.parsing import corpus, load, review_corpus, sentences
from tests.spigot_nlp.training.stages import ENCODER, PRUNING, alone, experiment, shared_encoder, three_stages
from tests.spigot_nlp.training.test_run import finished
from tests.spigot_nlp.training.trainings import Training, begin, check_resumes, rest_of, steps_of

DATA = review_corpus(train=8, dev=3)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, size, seed in (("train", 6, 1), ("dev", 2, 2), ("test", 2, 3)):
        chosen = sentences(size, seed)
        write([replace(sentence, graph=None) for sentence in chosen], folder / f"{name}.conllu")
        write(chosen, folder / f"{name}.sdp")
        write([replace(s.without_annotation(), label=k % 2) for k, s in enumerate(chosen)], folder / f"{name}.jsonl")
    return folder


def files(folder: Path, **endings: str) -> dict[str, Any]:
    """The overrides that point data sets at files of these formats."""
    parts = {
        f"data__{name}": {"train": f"train.{end}", "dev": f"dev.{end}", "tests": {"id": f"test.{end}"}}
        for name, end in endings.items()
    }
    return {"data__root": str(folder), **parts}


ALONE = [
    ("trees", {"trees": "conllu"}, "conllu", "uas"),
    ("graphs", {"graphs": "sdp"}, "sdp", "labelled"),
    ("label", {"labels": "jsonl"}, "jsonl", "accuracy"),
    ("tags", {"trees": "conllu"}, "jsonl", "accuracy"),
]


@pytest.mark.parametrize(("annotation", "sets", "suffix", "measure"), ALONE)
def test_one_stage_is_trained_from_a_file(
    data: Path, tmp_path: Path, annotation: str, sets: dict[str, str], suffix: str, measure: str
) -> None:
    config = experiment(alone(annotation), **files(data, **sets))
    steps = steps_of(config, tmp_path / "run")
    assert {(step.phase, step.task) for step in steps} == {("only", "only")}
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert set(scores) == {"dev", "id"}
    (found,) = scores["id"].values()
    assert measure in found
    assert {path.name for path in (tmp_path / "run").glob("predictions.*")} == {
        f"predictions.{part}.{suffix}" for part in ("dev", "id")
    }
    parser = load(tmp_path / "run")
    (field,) = parser.finds
    gold = list(read(data / f"test.{next(iter(sets.values()))}"))
    predicted = list(read(tmp_path / "run" / f"predictions.id.{suffix}"))
    again = list(parser.pipe(gold))
    plain = parser.model.annotations["only"].plain
    assert [plain(s.get(field)) for s in again] == [plain(s.get(field)) for s in predicted]
    assert all(sentence.get(field) is not None for sentence in again)


def test_a_tagger_does_not_look_at_the_tags_it_is_to_find(data: Path) -> None:
    config = experiment(alone("tags", encoder={**ENCODER, "tag_dim": 0}), **files(data, trees="conllu"))
    parser = build(config, load_corpus(config.data))
    gold = list(read(data / "dev.conllu"))
    mixed = [replace(sentence, tags=("NN",) * len(sentence)) for sentence in gold]
    bare = [Sentence(sentence.forms, lemmas=sentence.lemmas) for sentence in gold]
    found = [[sentence.tags for sentence in parser.pipe(some)] for some in (gold, mixed, bare)]
    assert found[0] == found[1] == found[2]


def test_three_stages_leave_a_folder_that_says_everything(data: Path, tmp_path: Path) -> None:
    config = three_stages(**files(data, trees="conllu", graphs="sdp", labels="jsonl"), training__pretrain=1)
    steps = steps_of(config, tmp_path / "run")
    assert list(dict.fromkeys(step.phase for step in steps)) == ["syntax", "semantics", "joint"]
    assert {step.task for step in steps if step.phase == "joint"} == {"syntax", "semantics", "mood"}
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert list(scores) == ["dev", "id"]
    assert all(set(found) == {"labels", "trees", "graphs"} for found in scores.values())
    assert "accuracy" in scores["dev"]["labels"]
    written = {path.name for path in (tmp_path / "run").glob("predictions.*")}
    assert written == {f"predictions.{part}.{end}" for part in ("dev", "id") for end in ("jsonl", "sdp", "conllu")}
    (kept, *_) = read(tmp_path / "run" / "gold.dev.jsonl")  # the same words are in all three files
    assert None not in (kept.label, kept.graph, kept.heads)
    (found,) = load(tmp_path / "run").pipe(sentences(1))
    assert None not in (found.label, found.graph, found.heads, found.probabilities)


def two_graphs(folder: Path, **overrides: Any) -> Config:
    """Graphs, and the trees of the same sentences as graphs, with an encoder in common."""
    for name in ("train", "dev", "test"):
        both = [s.put("other", Graph.of([], tops=[1])) for s in read(folder / f"{name}.sdp")]
        write(both, folder / f"{name}.both.jsonl")
    stage = {"annotation": "graphs", "encoder": "words", "mlp": 8, "pruning": PRUNING}
    tables = {
        "encoders": {"words": {"encoder": ENCODER}},
        "stages": {"other": {**stage, "field": "other"}, "main": stage},
    }
    return experiment(tables, **files(folder, graphs="both.jsonl"), **overrides)


def test_two_graphs_with_one_encoder(data: Path, tmp_path: Path) -> None:
    steps = steps_of(two_graphs(data), tmp_path / "run")
    assert {step.task for step in steps} == {"other", "main"}
    assert list(steps[-1].dev or {}) == ["LF", "UF", "other LF", "other UF"]
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert [list(found) for found in scores.values()] == [["graphs", "other"]] * 2
    written = {path.name for path in (tmp_path / "run").glob("predictions.*")}
    assert written == {f"predictions.{part}.{end}" for part in ("dev", "id") for end in ("sdp", "other.sdp")}
    parser = load(tmp_path / "run")
    gold = list(read(data / "test.both.jsonl"))
    for sentence, main, other in zip(
        parser.pipe(gold),
        read(tmp_path / "run" / "predictions.id.sdp"),
        read(tmp_path / "run" / "predictions.id.other.sdp"),
        strict=True,
    ):
        assert sentence.graph is not None
        assert (main.graph and main.graph.arcs) == sentence.graph.arcs
        assert (other.graph and other.graph.arcs) == sentence.get("other").arcs
    assert parser.model.annotations["other"].names()["roles"] == ("TOP",)


def test_names_of_the_same_kind_are_told_apart(data: Path, tmp_path: Path) -> None:
    """Three stages of trees: the last one first, the second by its kind, the third by its name."""
    stage = {"annotation": "trees", "encoder": ENCODER, "mlp": 8}
    stages = {"a": {**stage, "field": "first"}, "b": {**stage, "field": "second"}, "c": stage}
    for name in ("train", "dev", "test"):
        some = [s.put("first", s.heads).put("second", s.heads) for s in read(data / f"{name}.conllu")]
        write(some, data / f"{name}.three.jsonl")
    config = experiment({"stages": stages}, **files(data, trees="three.jsonl"), training__epochs=1)
    steps = steps_of(config, tmp_path / "run")
    assert list(steps[-1].dev or {}) == ["UAS", "b UAS", "a UAS"]
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert list(scores) == ["dev", "id"]
    assert all(set(found) == {"trees", "first", "second"} for found in scores.values())
    written = {path.name for path in (tmp_path / "run").glob("predictions.dev.*")}
    assert written == {"predictions.dev.conllu", "predictions.dev.a.conllu", "predictions.dev.b.conllu"}


@pytest.mark.parametrize(("make", "every"), [(three_stages, 4), (shared_encoder, 1)], ids=["three", "shared"])
def test_interrupted_at_any_step_it_goes_on_as_if_nothing_had_happened(make: Any, every: int) -> None:
    config = make(training__pretrain=1)
    steps = check_resumes(config, DATA, every)
    assert "changed" in (steps[-1].dev or {})


@pytest.mark.parametrize("make", [three_stages, shared_encoder], ids=["three", "shared"])
def test_an_interrupted_run_ends_like_one_that_was_not(data: Path, tmp_path: Path, make: Any) -> None:
    config = make(**files(data, trees="conllu", graphs="sdp", labels="jsonl"), training__save_seconds=0.0)
    total = len(steps_of(config, tmp_path / "whole"))
    begin(config, tmp_path / "cut", total // 2)
    assert len(rest_of(tmp_path / "cut")) == total - total // 2
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")


def test_a_shared_encoder_is_trained_by_all_its_stages() -> None:
    training = Training(build(shared_encoder(), DATA), DATA)
    encoder = training.parser.model.encoders["words"]
    assert set(training.parser.model.parts()) == {"syntax", "mood", "encoders.words"}
    tasks = set()
    before = [p.detach().clone() for p in encoder.parameters()]

    def look(step: Step) -> None:
        after = [p.detach().clone() for p in encoder.parameters()]
        assert not all(torch.equal(*pair) for pair in zip(before, after, strict=True))
        before[:] = after
        tasks.add(step.task)

    training.steps(look)
    assert tasks == {"syntax", "mood"}


def test_the_loss_of_the_last_stage_reaches_the_first() -> None:
    training = Training(build(three_stages(), DATA), DATA)
    stages = training.parser.model.stages
    reached = set()
    before = {name: [p.detach().clone() for p in stage.parameters()] for name, stage in stages.items()}

    def look(step: Step) -> None:
        after = {name: [p.detach().clone() for p in stage.parameters()] for name, stage in stages.items()}
        changed = {n for n in after if not all(torch.equal(*pair) for pair in zip(before[n], after[n], strict=True))}
        if step.task == "mood":
            reached.update(changed)
        elif step.task == "syntax":
            assert changed == {"syntax"}
        before.update(after)

    training.steps(look)
    assert reached == {"syntax", "semantics", "mood"}


def test_a_stage_that_shares_its_encoder_brings_it_along(tmp_path: Path) -> None:
    theirs = build(shared_encoder(seed=5), DATA)
    checkpoint.save_start(tmp_path / "run", theirs)
    write_tensors(tmp_path / "run" / checkpoint.MODEL, theirs.model.state_dict())
    mine = build(shared_encoder(syntax__start=str(tmp_path / "run")), DATA)
    init_stages(mine)
    for name, value in mine.model.state_dict().items():
        same = torch.equal(value, theirs.model.state_dict()[name])
        assert same or name.startswith("_stages.mood."), name
    own = {"stages": {"syntax": {"annotation": "trees", "encoder": ENCODER, "mlp": 8}}}
    other = build(experiment(own, data__text=("trees", "labels")), DATA)
    checkpoint.save_start(tmp_path / "own", other)
    write_tensors(tmp_path / "own" / checkpoint.MODEL, other.model.state_dict())
    taken = build(shared_encoder(syntax__start=str(tmp_path / "own")), DATA)
    init_stages(taken)  # an encoder of its own becomes the shared one
    (shared,) = taken.model.encoders.values()
    for name, value in shared.state_dict().items():
        assert torch.equal(value, other.model.stages["syntax"].encoder.state_dict()[name])


@pytest.mark.parametrize("name", ["model", "best"])
def test_a_stage_may_be_called_what_checkpoints_call_something_else(data: Path, tmp_path: Path, name: str) -> None:
    stage = alone("trees")["stages"]["only"]
    config = experiment({"stages": {name: stage}}, **files(data, trees="conllu"), training__save_seconds=0.0)
    total = len(steps_of(config, tmp_path / "whole"))
    begin(config, tmp_path / "cut", 1)
    assert len(rest_of(tmp_path / "cut")) == total - 1
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")


def test_sentences_that_lack_an_annotation_are_not_judged_by_it(tmp_path: Path) -> None:
    """A data set that several stages share may have any annotation on any sentence."""
    made = sentences(6)
    some = [replace(sentence, heads=None) if k % 2 else sentence for k, sentence in enumerate(made)]
    data = Corpus({"all": Split(some, some)})
    tables = {
        "syntax": {"annotation": "trees", "data": "all"},
        "semantics": {"annotation": "graphs", "data": "all", "pruning": {"learned": False}},
    }
    config = make_config({"stages": tables, "data": {"tags": "columns"}, "training": {"epochs": 1, "batch": 3}})
    whole = build(config, data)
    steps = Training(whole, data).steps()
    assert steps[-1].dev is not None
    assert {"LF", "UAS"} <= steps[-1].dev.keys()


def test_words_must_come_from_somewhere() -> None:
    data = {"tags": "columns", "text": ["tree"]}
    config = make_config({"stages": {"syntax": {"annotation": "trees"}}, "data": data})
    with pytest.raises(ValueError, match=r"data\.text is tree, and there are no such sentences"):
        build(config, corpus())
