"""Stages that read words by a branch of a shared encoder: taken over, frozen, jackknifed, and left untrained."""

from pathlib import Path
from typing import Any

import pytest
import torch

from spigot_nlp.config import Config, make_config
from spigot_nlp.models import checkpoint
from spigot_nlp.models.checkpoint import write_tensors
from spigot_nlp.models.parser import Parser
from spigot_nlp.training import train
from spigot_nlp.training.requirements import unread
from spigot_nlp.training.start import build, init_stages
from tests.spigot_nlp.parsing import batch_of, review_corpus, sentences
from tests.spigot_nlp.training.stages import ENCODER, experiment

DATA = review_corpus(train=6, dev=2)
BRANCH = {"kind": "branch", "of": "words", "hidden": 6}
WIRE = {"stage": "syntax", "as": "roles", "estimator": "pipeline"}


def tables(syntax: Any, mood: Any = "words", estimator: str = "ste", **stages: Any) -> dict[str, Any]:
    """Trees inside a classifier, each with some encoder, and one that they may share."""
    mine = {
        "syntax": {"annotation": "trees", "mlp": 8, "encoder": syntax},
        "mood": {"annotation": "label", "mlp": 8, "encoder": mood, "reads": {**WIRE, "estimator": estimator}},
    }
    return {"encoders": {"words": {"encoder": ENCODER}}, "stages": {**mine, **stages}}


def kept(config: Config, run: Path) -> Parser:
    """A system as if it had been trained into a folder."""
    parser = build(config, DATA)
    checkpoint.save_start(run, parser)
    write_tensors(run / checkpoint.MODEL, parser.model.state_dict())
    return parser


def taken(config: Config) -> Parser:
    parser = build(config, DATA)
    init_stages(parser)
    return parser


def scores(parser: Parser) -> torch.Tensor:
    return parser.model.stages["syntax"].evidence(batch_of(sentences(3), parser)).scores


# Taken from another run


@pytest.mark.parametrize("over", ["vectors", "states"])
def test_a_branch_brings_along_what_it_reads(over: str, tmp_path: Path) -> None:
    chosen = tables({**BRANCH, "over": over})
    theirs = kept(experiment(chosen, seed=5), tmp_path / "run")
    mine = experiment(chosen, syntax__start=str(tmp_path / "run"))
    assert not torch.allclose(scores(build(mine, DATA)), scores(theirs))
    found = taken(mine)
    assert torch.equal(scores(found), scores(theirs))
    for name, value in found.model.encoders["words"].state_dict().items():
        assert torch.equal(value, theirs.model.encoders["words"].state_dict()[name])


def test_stages_of_one_run_bring_the_same_encoder_and_those_of_others_are_refused(tmp_path: Path) -> None:
    chosen = tables("words", {**BRANCH, "over": "states"})
    for seed in (5, 6):
        theirs = kept(experiment(chosen, seed=seed), tmp_path / str(seed))
    both = {"syntax__start": str(tmp_path / "6"), "mood__start": str(tmp_path / "6")}
    assert torch.equal(scores(taken(experiment(chosen, **both))), scores(theirs))
    with pytest.raises(ValueError, match=r"^syntax and mood both read encoders\.words, and start from .* one run\.$"):
        taken(experiment(chosen, **{**both, "syntax__start": str(tmp_path / "5")}))


def test_a_branch_over_something_else_is_refused(tmp_path: Path) -> None:
    # As long as each other, so that parameters would fit.
    same = {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8, "layers": 1}
    chosen = tables({**BRANCH, "over": "states"})
    words = {"encoders__words__encoder": same}
    kept(experiment(chosen, **words), tmp_path / "run")
    start = {"syntax__start": str(tmp_path / "run"), **words}
    assert taken(experiment(chosen, **start))
    with pytest.raises(
        ValueError, match=r"run was trained with another encoder of syntax; use its \[stages\.syntax\]\.$"
    ):
        taken(experiment(chosen, **start, stages__syntax__encoder__over="vectors"))
    larger = {**same, "layers": 2}
    with pytest.raises(ValueError, match=r"another encoder of syntax; use .* and what stands in its \[encoders\]\.$"):
        taken(experiment(chosen, **{**start, "encoders__words__encoder": larger}))


# Frozen


@pytest.mark.parametrize("over", ["vectors", "states"])
def test_a_frozen_branch_is_refused_where_others_train_what_it_reads(over: str) -> None:
    branch = {**BRANCH, "over": over}
    said = (
        r"'pipeline' freezes syntax, and encoders\.words, which its encoder is built on, is trained by other stages; "
    )
    for mood in ("words", {**BRANCH, "over": "states"}):
        with pytest.raises(ValueError, match=said):
            experiment(tables(branch, mood, "pipeline"), training__pretrain=1).check_trainable()
        with pytest.raises(ValueError, match=said):
            experiment(tables(branch, mood, "pipeline"), syntax__start="run").check_trainable()
    apart = experiment(tables(branch, ENCODER, "pipeline"), training__pretrain=1)
    apart.check_trainable()
    assert apart.trained == ["mood"]
    reads_only = experiment(tables(branch, BRANCH, "pipeline"), training__pretrain=1)  # whose vectors stay
    reads_only.check_trainable()
    assert reads_only.trained == ["mood"]


def test_what_is_to_be_frozen_and_others_train_is_refused(tmp_path: Path) -> None:
    chosen = experiment(tables(BRANCH, "words", "pipeline"), training__pretrain=1)  # as it stands in a run folder
    with pytest.raises(ValueError, match="'pipeline' freezes syntax"):
        train(chosen, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_frozen_stage_is_refused_where_a_later_one_trains_what_it_reads_before_it_is_frozen_too() -> None:
    tagger = {"annotation": "tags", "encoder": "words"}
    reads = [WIRE, {"stage": "tagger", "as": "embedded", "estimator": "pipeline"}]
    own = {"annotation": "label", "mlp": 8, "encoder": ENCODER, "reads": reads}

    def three(syntax: Any, **overrides: Any) -> Config:
        whole = tables(syntax)
        stages = {"syntax": whole["stages"]["syntax"], "tagger": tagger, "mood": own}
        return experiment({**whole, "stages": stages}, **overrides)

    for syntax in ("words", BRANCH):
        with pytest.raises(
            ValueError, match=r"'pipeline' freezes syntax, and encoders\.words.* trained by other stages"
        ):
            three(syntax, training__pretrain=1).check_trainable()
    three("words", syntax__start="a", tagger__start="a").check_trainable()
    beside = three("words", training__pretrain=1, stages__mood__reads=WIRE, stages__tagger__beside="syntax")
    beside.check_trainable()
    assert beside.trained == ["mood"]  # both at once, and then neither


@pytest.mark.parametrize("over", ["vectors", "states"])
def test_a_branch_is_not_jackknifed(over: str) -> None:
    chosen = tables({**BRANCH, "over": over}, ENCODER, "pipeline")
    with pytest.raises(ValueError, match=r"syntax\.folds needs .* built on no other; .* set syntax\.folds = 0"):
        experiment(chosen, training__pretrain=1, stages__syntax__folds=2).check_trainable()


# Left as it was drawn


def test_what_nobody_trains_is_said() -> None:
    said = "Nothing trains encoders.words, whose vectors stay as they begin; "

    def found(syntax: Any = BRANCH, mood: Any = BRANCH, **overrides: Any) -> list[str]:
        return unread(experiment(tables(syntax, mood), **overrides))

    (one,) = found()
    assert one == f"{said}name 'words' as a stage's encoder, or set syntax.encoder.over = 'states'."
    assert found({**BRANCH, "over": "states"}) == found(mood="words") == []
    assert found(mood__start="run") == []  # which fills it
    fixed = {"encoders__words__encoder__fixed_vectors": True}
    assert found(data__vectors="vectors.txt", **fixed) == []
    assert found(**fixed) == found(data__vectors="vectors.txt") == [one]
    frozen = {"kind": "transformer", "model": "tiny", "frozen": True}
    alone = {"syntax": {"annotation": "trees", "encoder": {**BRANCH, "over": "states"}}}
    assert unread(make_config({"encoders": {"words": {"encoder": frozen}}, "stages": alone})) == []
