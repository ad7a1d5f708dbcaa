"""What is missing or strange in the data is said before training."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.config import load_config, make_config, shipped_configs
from spigot_nlp.corpora.corpus import Corpus, Split, load_corpus
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.training import train
from spigot_nlp.training.requirements import remarks
from spigot_nlp.training.start import build
from tests.spigot_nlp.parsing import experiment as parsing
from tests.spigot_nlp.parsing import semantics, sentences
from tests.spigot_nlp.training.trainings import steps_of

GOOD = [Sentence(("a", "fine", "film"), label=1), Sentence(("a", "dull", "film"), label=0)]


def experiment(folder: Path, **labels: Any):
    return make_config(
        {
            "task": "classification",
            "system": "bilstm",
            "data": {"root": str(folder), "tags": "columns", "labels": {"train": ["train.tsv"], **labels}},
            "training": {"epochs": 1},
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.tsv").write_text("1\ta fine film\n0\ta dull film\n")
    (tmp_path / "strange.tsv").write_text("1\ta fine film\n7\tan odd film\n")
    (tmp_path / "words.txt").write_text("a fine film\n")
    return tmp_path


@pytest.mark.parametrize("place", [{"dev": "strange.tsv"}, {"tests": {"x": "strange.tsv"}}])
def test_a_class_that_training_has_not(folder: Path, place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"strange\.tsv: the sentence 'an odd film' is of class 7; .* are 0, 1\."):
        train(experiment(folder, **place), folder / "run")
    assert not (folder / "run").exists()


@pytest.mark.parametrize("place", [{"dev": "words.txt"}, {"tests": {"x": "words.txt"}}])
def test_a_file_without_classes(folder: Path, place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"words\.txt: the sentence 'a fine film' has no class"):
        train(experiment(folder, **place), folder / "run")


def test_a_run_without_development_data_reports_none(folder: Path) -> None:
    (folder / "test.tsv").write_text("0\ta dull film\n")
    assert [step.is_best for step in steps_of(experiment(folder, tests={"x": "test.tsv"}), folder / "run")] == [True]
    assert not (folder / "run" / "predictions.dev.jsonl").exists()
    assert (folder / "run" / "predictions.x.jsonl").exists()


def test_tasks_without_sentences() -> None:
    labelled = Corpus({"labels": Split(GOOD)})
    with pytest.raises(ValueError, match=r"^semantics has no graphs to train on; set data\.graphs\.train, or "):
        build(make_config({"task": "classification"}), labelled)
    with pytest.raises(ValueError, match=r"^classifier has no classes to train on; set data\.labels\.train, or "):
        build(make_config({"task": "classification", "system": "bilstm"}), Corpus())
    latent = make_config({"task": "classification", "classifier": {"latent": True}})
    assert semantics(build(latent, labelled)).annotation.names()["roles"][0] == "TOP"


def test_stages_are_named_as_the_file_names_them() -> None:
    stages = {"ud": {"annotation": "trees", "data": "web"}, "pos": {"annotation": "tags", "data": "web"}}
    with pytest.raises(ValueError, match=r"^stages\.ud\.data is 'web', and there is no such data set"):
        build(make_config({"stages": stages}), Corpus({"trees": Split(GOOD)}))
    with pytest.raises(ValueError, match=r"^pos has no tags to train on; set data\.trees\.train, or "):
        build(make_config({"stages": {"pos": {"annotation": "tags"}}}), Corpus())
    with pytest.raises(ValueError, match=r"^The training sentences of pos have no tags"):
        build(make_config({"stages": {"pos": {"annotation": "tags"}}}), Corpus({"trees": Split(GOOD)}))


@pytest.mark.parametrize(
    ("annotation", "data", "reason"),
    [
        ("trees", "trees", r"has no tree\. Correct the file or data\.trees\.format, or leave the file out\.$"),
        ("graphs", "graphs", r"has no graph\. Correct the file or data\.graphs\.format"),
        ("tags", "trees", r"has no tag sequence\. Correct the file or data\.trees\.format"),
    ],
)
def test_the_last_stage_needs_something_to_be_judged_by(folder: Path, annotation: str, data: str, reason: str) -> None:
    write(sentences(3), folder / "train.jsonl")
    files = {"root": str(folder), "tags": "columns", data: {"train": "train.jsonl", "tests": {"x": "words.txt"}}}
    config = make_config({"data": files, "stages": {"only": {"annotation": annotation}}})
    with pytest.raises(ValueError, match=rf"words\.txt: the sentence 'a fine film' {reason}"):
        train(config, folder / "run")
    assert not (folder / "run").exists()


def test_training_text_without_classes(folder: Path) -> None:
    config = experiment(folder).model_copy(update={"data": experiment(folder, train=["words.txt"]).data})
    with pytest.raises(ValueError, match=r"0 different labels; .* label<TAB>text"):
        train(config, folder / "run")


def test_a_file_without_sentences_is_named(tmp_path: Path) -> None:
    """Rather than trained on, chosen by or reported, in silence."""
    (tmp_path / "empty.conllu").write_text("")
    config = make_config({"data": {"root": str(tmp_path), "trees": {"dev": "empty.conllu"}}})
    with pytest.raises(ValueError, match=r"empty\.conllu has no sentences; give another file"):
        load_corpus(config.data)


def test_a_tagger_learns_from_files_only() -> None:
    data = Corpus({"trees": Split(GOOD)}, tagger=Tagger.train([replace(s, tags=("X",) * len(s)) for s in GOOD]))
    with pytest.raises(ValueError, match=r"stages\.pos learns the tags of the files; set data\.tags = 'columns'"):
        build(make_config({"stages": {"pos": {"annotation": "tags"}}}), data)


def test_joined_files_are_judged_by_their_tests(tmp_path: Path) -> None:
    """A run from two files of the same sentences, to its test scores."""
    some = [sentence for sentence in sentences(8) if sentence.graph is not None]
    for name in ("train", "dev", "id"):
        for graphs in ("dm", "psd"):
            write(some, tmp_path / f"{name}.{graphs}.sdp")
    joined = {
        graphs: {"train": [f"train.{graphs}.sdp"], "dev": f"dev.{graphs}.sdp", "tests": {"id": f"id.{graphs}.sdp"}}
        for graphs in ("dm", "psd")
    }
    small = {"encoder": {"hidden": 4, "word_dim": 4, "lemma_dim": 0, "tag_dim": 0}, "mlp": 4, "rank": 4, "minimum": 1}
    stage = {"annotation": "formalisms", "graphs": ["dm", "psd"], "pruning": {"learned": False}, "loss": "log", **small}
    config = make_config(
        {
            "data": {"root": str(tmp_path), "tags": "columns", "graphs": {"join": joined}},
            "stages": {"semantics": stage},
            "training": {"epochs": 1},
        }
    )
    assert train(config, tmp_path / "run").scores
    assert {"dm", "psd", "micro"} == set(json.loads((tmp_path / "run" / "scores.json").read_bytes())["id"])


# What does nothing

TINY = {"kind": "transformer", "model": "tiny"}
GRAPHS = {"annotation": "graphs"}
SHARING = {"syntax": {"annotation": "trees", "encoder": "words"}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hidden": 300}, "hidden does nothing with lstm = 0"),
        ({"hidden": 300, "lstm": 1}, ""),
        ({"frozen": True, "optimiser": {"learning_rate": 0.001}}, "optimiser does nothing with frozen = true"),
        ({"optimiser": {"learning_rate": 0.001}}, ""),
        ({"keep": 64}, "keep does nothing with frozen = false"),
        ({"frozen": True, "keep": 64, "positions": 9999}, ""),
    ],
)
def test_settings_of_a_transformer_that_do_nothing(options: dict[str, Any], said: str) -> None:
    encoder = {**TINY, **options}
    for place, config in (
        ("syntax.encoder", {"stages": {"syntax": {"annotation": "trees", "encoder": encoder}}}),
        ("encoders.words.encoder", {"encoders": {"words": {"encoder": encoder}}, "stages": SHARING}),
        ("semantics.pruning.encoder", {"stages": {"semantics": {**GRAPHS, "pruning": {"encoder": encoder}}}}),
    ):
        assert remarks(make_config(config)) == ([f"{place}.{said}; change that, or leave it out."] if said else [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"relation_mlp": 8}, "relation_mlp does nothing with labelled = false"),
        ({"relation_mlp": 8, "labelled": True}, ""),
        ({"mlp_layers": 2, "scorer": "biaffine"}, "mlp_layers does nothing with scorer = 'biaffine'"),
        ({"dropout": 0.3}, "dropout does nothing with scorer = 'mlp' and labelled = false"),
        ({"mlp_layers": 2, "dropout": 0.3, "labelled": True}, ""),
    ],
)
def test_settings_of_trees_that_do_nothing(options: dict[str, Any], said: str) -> None:
    found = remarks(make_config({"stages": {"syntax": {"annotation": "trees", **options}}}))
    assert found == ([f"syntax.{said}; change that, or leave it out."] if said else [])


def test_all_that_does_nothing_is_said() -> None:
    encoders = {"words": {"encoder": {**TINY, "hidden": 3, "keep": 1}, "optimiser": {"max_norm": 2.0}}, "spare": {}}
    found = remarks(make_config({"encoders": encoders, "stages": SHARING}))
    assert [line.partition(";")[0] for line in found] == [
        "No stage reads encoders.spare, and nothing trains it",
        "encoders.words.optimiser does nothing: all of that encoder is updated by encoders.words.encoder.optimiser.",
        "encoders.words.encoder.keep does nothing with frozen = false",
        "encoders.words.encoder.hidden does nothing with lstm = 0",
    ]


@pytest.mark.parametrize("preset", ["paper", "release"])
def test_what_comes_with_spigot_says_nothing_idle(preset: str) -> None:
    for path in shipped_configs().values():
        assert remarks(load_config(path, {"preset": preset})) == [], path


def test_roles_that_are_not_kept_apart_are_said_before_the_first_step(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"data__source": "synthetic", "data__synthetic": {"train": 20, "dev": 2, "test": 1}}
    small = parsing("neurboparser", **sizes, training__epochs=1, semantics__pruning__rare_role=9)
    said: list[str] = []
    train(small, tmp_path / "run", lambda step: said.append("step"), say=said.append)
    assert "roles occur less than 9 times in training and are found as UNK" in said[0]
    assert "semantics.pruning.rare_role = 0" in said[0]
    assert set(said[1:]) == {"step"}


def test_a_system_of_several_graphs_says_which_option_names_them(tmp_path: Path) -> None:
    sizes = {"train": 4, "dev": 2, "test": 1}
    chosen = make_config({"system": "freda3", "data": {"source": "synthetic", "synthetic": sizes, "tags": "columns"}})
    with pytest.raises(ValueError, match=r"add --semantics\.graphs '\[\"graph\", \"dependencies\", \"valency\"\]'"):
        train(chosen, tmp_path / "run")
