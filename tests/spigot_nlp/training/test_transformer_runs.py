"""Trainings on a transformer: interrupted, resumed, used, with the model it began from gone."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from spigot_nlp.config import Config, make_config
from spigot_nlp.corpora.corpus import Corpus, Split, load_corpus
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.encoders import TransformerEncoder
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.jackknife import Jackknife
from spigot_nlp.training.start import build
from tests.spigot_nlp import transformers as tiny
from tests.spigot_nlp.parsing import load, sentences
from tests.spigot_nlp.training.test_run import finished
from tests.spigot_nlp.training.trainings import Training, begin, rest_of, steps_of

pytestmark = [
    pytest.mark.skipif(find_spec("transformers") is None, reason="transformers are not installed"),
    pytest.mark.xdist_group("transformers"),  # which take seconds to import: once is enough, and not to be collected
]


def settings(model: Path, *, shared: bool, **options: Any) -> Config:
    """Trees inside a semantic parser, on one encoder or on two."""
    own = {"kind": "transformer", "model": str(model), "optimiser": {"learning_rate": 1e-3, "warm_up": 3}, **options}
    encoder: Any = "words" if shared else own
    small = {"encoder": encoder, "mlp": 8}
    return make_config(
        {
            "data": tiny.synthetic(12),
            "encoders": {"words": {"encoder": own}} if shared else {},
            "stages": {
                "syntax": {"annotation": "trees", **small},
                "semantics": {
                    "annotation": "graphs",
                    "reads": {"stage": "syntax", "as": "heads", "estimator": "spigot"},
                    "pruning": {"learned": False, "rare_role": 0},
                    **small,
                },
            },
            "training": {"epochs": 2, "batch": 8, "save_seconds": 0.0},
        }
    )


@pytest.mark.parametrize(
    ("shared", "options"),
    [(True, {"layers": "mixed", "pooling": "mean"}), (False, {"frozen": True, "lstm": 1, "hidden": 6})],
    ids=["shared and tuned", "two and frozen"],
)
def test_an_interrupted_run_ends_like_one_that_was_not(shared: bool, options: dict[str, Any], tmp_path: Path) -> None:
    model = tiny.bert(tmp_path / "model")
    before = load_file(model / "model.safetensors")
    chosen = settings(model, shared=shared, **options)
    total = len(steps_of(chosen, tmp_path / "whole"))
    begin(chosen, tmp_path / "cut", total // 2)
    shutil.rmtree(model)  # all that is needed is in the run
    assert len(rest_of(tmp_path / "cut")) == total - total // 2
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")
    parser = load(tmp_path / "cut")
    (rain,) = parser.pipe([Sentence(("The", "dog", "unbelievably", "\u00ad", "sleeps"))])
    assert rain.heads is not None
    assert rain.graph is not None
    tuned = [m for m in parser.model.modules() if isinstance(m, TransformerEncoder)]
    assert len(tuned) == (1 if shared else 2)
    for encoder in tuned:
        after = encoder.transformer.state_dict()
        same = [torch.equal(value, before[name]) for name, value in after.items() if name in before]
        assert len(same) > 10
        assert all(same) if options.get("frozen") else not any(same)


def test_a_run_killed_at_once_needs_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before an epoch has ended or a minute has passed, by a name that means nothing where it is resumed."""
    tiny.bert(tmp_path / "model")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    table = settings(Path("model"), shared=True, frozen=True, lstm=1, hidden=6).model_dump(exclude_none=True)
    chosen = make_config({**table, "training": {"epochs": 1, "batch": 8}})
    total = len(steps_of(chosen, Path("whole")))
    begin(chosen, Path("cut"), 1)
    shutil.rmtree("model")
    monkeypatch.chdir("elsewhere")
    assert len(rest_of(tmp_path / "cut")) == total
    assert finished(tmp_path / "cut") == finished(tmp_path / "whole")


def tiny_parser(tmp_path: Path, *, shared: bool, **options: Any) -> Parser:
    chosen = settings(tiny.bert(tmp_path / "model"), shared=shared, **options)
    return build(chosen, load_corpus(chosen.data))


def test_the_transformer_has_an_optimiser_of_its_own(tmp_path: Path) -> None:
    parser = tiny_parser(tmp_path, shared=True)
    model = parser.model
    assert sorted(model.parts()) == ["encoders.words", "encoders.words/transformer", "semantics", "syntax"]
    assert model.updated("syntax") == ["syntax", "encoders.words", "encoders.words/transformer"]
    assert model.parts()["encoders.words/transformer"].optimiser.warm_up == 3
    trainer, rates = Training(parser, load_corpus(parser.config.data)), []
    trainer.steps(lambda step: rates.append(trainer.state.optimisers["encoders.words/transformer"].rate))
    assert rates[:4] == pytest.approx([1e-3 / 3, 2e-3 / 3, 1e-3, 1e-3])
    assert trainer.state.optimisers["encoders.words"].parameters == {}
    assert trainer.state.optimisers["syntax"].rate == 1e-3
    apart = tiny_parser(tmp_path, shared=False).model
    assert {"syntax/own_encoder.transformer", "semantics/own_encoder.transformer"} < set(apart.parts())
    assert apart.updated("syntax") == ["syntax", "syntax/own_encoder.transformer"]
    frozen = tiny_parser(tmp_path, shared=False, frozen=True).model
    assert sorted(frozen.parts()) == ["semantics", "syntax"]


def test_a_pipeline_may_share_what_nobody_trains(tmp_path: Path) -> None:
    def pipeline(**options: Any) -> Config:
        table = settings(tmp_path, shared=True, **options).model_dump(exclude_none=True)
        table["stages"]["semantics"]["reads"] = {"stage": "syntax", "as": "heads", "estimator": "pipeline"}
        return make_config({**table, "system": "", "training": {"pretrain": 1}})

    assert pipeline(frozen=True).trained == ["semantics"]
    with pytest.raises(ValueError, match=r"'pipeline' freezes syntax, and encoders\.words is trained by other stages"):
        pipeline(frozen=True, lstm=1)


def test_a_jackknife_begins_each_fold_with_the_same_transformer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"kind": "transformer", "model": str(tiny.bert(tmp_path / "model"))}
    chosen = make_config(
        {
            "system": "pipeline",
            "data": {"tags": "columns"},
            "syntax": {"folds": 2, "mlp": 8, "encoder": {**own, "optimiser": {"learning_rate": 0.01, "warm_up": 0}}},
            "semantics": {"mlp": 8, "encoder": {"hidden": 8}, "pruning": {"learned": False, "rare_role": 0}},
            "training": {"epochs": 1, "batch": 6},
        }
    )
    data = Corpus(dict.fromkeys(("trees", "graphs"), Split(sentences(8), sentences(3, seed=1))))
    parser = build(chosen, data)
    encoder = parser.model.stages["syntax"].encoder
    fresh = {name: value.clone() for name, value in encoder.state_dict().items()}
    trainer, seen = Training(parser, data), {}
    begin_fold = Jackknife.begin

    def noted(self: Jackknife, stage: str) -> None:
        begin_fold(self, stage)
        seen[len(seen)] = all(torch.equal(value, fresh[name]) for name, value in encoder.state_dict().items())

    monkeypatch.setattr(Jackknife, "begin", noted)
    trainer.steps()
    assert seen == {0: True, 1: True}
    assert not all(torch.equal(value, fresh[name]) for name, value in encoder.state_dict().items())
