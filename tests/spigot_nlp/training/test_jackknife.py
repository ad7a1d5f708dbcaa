"""Structures from parsers that have not seen the sentence."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spigot_nlp.batches import collate
from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.models.system import System
from spigot_nlp.nn.encoder import UNKNOWN
from spigot_nlp.training.loop import Trainer
from spigot_nlp.training.plan import phases
from spigot_nlp.training.run import _restore, save_state
from tests.spigot_nlp.parsing import experiment, parser, sentences

ALL = sentences(12, seed=1)
OTHERS = sentences(2, seed=5)
DATA = Corpus({"trees": Split([*ALL, ALL[0]], sentences(3, seed=3)), "graphs": Split([*ALL[2:], *OTHERS], ALL[:2])})
"""Nearly the same sentences with trees and graphs; one of the trees twice, two of the graphs without."""
SETTINGS: dict[str, Any] = {"semantics__pruning__learned": False, "syntax__folds": 3, "training__pretrain": 2}


def trainer(data: Corpus = DATA, **overrides: Any) -> Trainer:
    return Trainer(parser("pipeline", data, **{**SETTINGS, **overrides}), data)


def parameters(training: Trainer, stage: str) -> list[torch.Tensor]:
    return [p.detach().clone() for p in training.parser.model.stages[stage].parameters()]


def test_a_phase_for_each_fold_after_the_whole() -> None:
    found = phases(experiment("pipeline", **SETTINGS))
    assert [(phase.name, phase.epochs, phase.fold) for phase in found] == [
        ("syntax", 2, None),
        *((f"syntax fold {k}/3", 2, k - 1) for k in (1, 2, 3)),
        ("semantics", 2, None),
    ]


def test_nobody_learns_from_its_own_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    training, seen = trainer(), dict[str, Counter[tuple[int, ...]]]()
    original = System.loss

    def loss(self: System, batch: Any, task: str, **options: Any) -> Any:
        rows = [tuple(row[1 : length + 1].tolist()) for row, length in zip(batch.words, batch.lengths, strict=True)]
        seen.setdefault(training.phases[training.progress.phase].name, Counter()).update(rows)
        return original(self, batch, task, **options)

    monkeypatch.setattr(System, "loss", loss)
    list(training.steps())
    index = training.parser.vocab.word_index
    texts = [tuple(index[form.lower()] for form in s.forms) for s in DATA["trees"].train]
    assert set(seen["syntax"]) == set(texts)
    left = [set(texts) - set(seen[f"syntax fold {k}/3"]) for k in (1, 2, 3)]
    assert set.union(*left) == set(texts)
    assert sum(map(len, left)) == len(set(texts))  # each text in one fold, also the one that occurs twice


def test_the_parser_is_that_of_a_plain_pipeline_and_its_reader_reads_others() -> None:
    plain, folded = trainer(syntax__folds=0), trainer()
    for training in (plain, folded):
        list(training.steps())
    for one, other in zip(parameters(plain, "syntax"), parameters(folded, "syntax"), strict=True):
        assert torch.equal(one, other)
    syntax = [line for line in plain.progress.history if line["phase"] == "syntax"]
    assert [line for line in folded.progress.history if line["phase"] == "syntax"] == syntax
    semantics = (parameters(training, "semantics") for training in (plain, folded))
    assert not all(torch.equal(*pair) for pair in zip(*semantics, strict=True))


def test_what_is_read_is_what_the_fold_found() -> None:
    """Each fold's parser is remembered when it has learned, and asked again."""
    training = trainer()
    syntax, found = training.parser.model.stages["syntax"], {}
    end = training.jackknife.end

    def watched(stage: str, fold: int) -> None:
        known = {word for k in training.jackknife.rest(stage, fold) for word in training._data[stage][k].tokens[0]}
        lemmas = {lemma for k in training.jackknife.rest(stage, fold) for lemma in training._data[stage][k].tokens[1]}
        for k, sentence in enumerate(training._data["semantics"]):
            tokens = sentence.tokens.copy()
            tokens[0] = [word if word in known else UNKNOWN for word in tokens[0]]
            tokens[1] = [lemma if lemma in lemmas else UNKNOWN for lemma in tokens[1]]
            batch = collate([sentence._replace(tokens=tokens)])
            found[fold, k] = syntax.structure.argmax(*syntax.evidence(batch))
        end(stage, fold)

    training.jackknife.end = watched
    list(training.steps())
    texts = [sentence.forms for sentence in DATA["trees"].train]
    for k, sentence in enumerate(DATA["graphs"].train):
        batch = collate([training._data["semantics"][k]])
        read = training.parser.model.read("semantics", training.jackknife.given(batch, "semantics", [k]))[0]
        if sentence in OTHERS:
            wanted = syntax.structure.argmax(*syntax.evidence(batch))
        else:
            wanted = found[texts.index(sentence.forms) * 3 // len(texts), k]
        assert torch.equal(read, wanted)


def test_a_training_goes_on_in_the_middle_of_a_fold(tmp_path: Path) -> None:
    whole = trainer()
    steps = list(whole.steps())
    places = [k for k, step in enumerate(steps) if step.phase in ("syntax fold 2/3", "semantics")]
    for place in (places[1], places[-2]):
        broken = trainer()
        taken = broken.steps()
        for _ in range(place):
            next(taken)
        save_state(broken, tmp_path)
        again = Trainer(parser("pipeline", DATA, **{**SETTINGS, "seed": 0}), DATA)
        _restore(again, tmp_path)
        assert list(again.steps()) == steps[place:]
        assert again.progress.history == whole.progress.history
        values = (training.parser.model.state_dict().values() for training in (whole, again))
        assert all(torch.equal(*pair) for pair in zip(*values, strict=True))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"folds": 1}, r"syntax\.folds is 1; a jackknife has at least 2 folds"),
        ({"folds": 2, "freeze": False}, r"frozen after its pretraining, and syntax is not; .* data\.trees\.part"),
        ({"folds": 2, "encoder": "words"}, "has an encoder of its own"),
    ],
)
def test_what_cannot_be_divided(given: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"system": "pipeline", "syntax": given, "encoders": {"words": {}}}
    with pytest.raises(ValueError, match=message):
        make_config(values)


def test_other_systems_and_other_data_are_refused() -> None:
    with pytest.raises(ValueError, match="is for a stage that is frozen"):
        make_config({"system": "spigot", "syntax": {"folds": 2}})
    with pytest.raises(ValueError, match="no stage reads semantics"):
        make_config({"system": "spigot", "semantics": {"folds": 2}})
    with pytest.raises(ValueError, match=r"folds needs training\.pretrain"):
        make_config({"system": "pipeline", "syntax": {"folds": 2, "start": "a-run"}})
    apart = Corpus({**DATA.sets, "graphs": Split(OTHERS, ALL[:2])})
    with pytest.raises(ValueError, match="on none of the sentences that semantics learns from"):
        trainer(apart)
    few = Corpus({**DATA.sets, "trees": Split([replace(ALL[2], graph=None)], ALL[:2])})
    with pytest.raises(ValueError, match=r"syntax\.folds is 3 for 1 sentences"):
        trainer(few)


def test_state_keeps_structures_without_parts() -> None:
    training = trainer()
    list(training.steps())
    found = training.jackknife._found["semantics", "syntax"]
    found[1] = found[1][:0] if found[1] is not None else None
    again = trainer()
    again.jackknife.load_state(training.jackknife.state())
    kept = again.jackknife._found["semantics", "syntax"]
    assert json.dumps([None if p is None else p.tolist() for p in kept]) == json.dumps(
        [None if p is None else p.tolist() for p in found]
    )
