"""Structures from parsers that have not seen the sentence."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from spigot_nlp.batches import collate
from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.models.system import System
from spigot_nlp.nn.encoder import UNKNOWN
from spigot_nlp.training.jackknife import Jackknife
from spigot_nlp.training.plan import phases
from tests.spigot_nlp.parsing import experiment, parser, sentences
from tests.spigot_nlp.training.trainings import Training, check_resumes

ALL = sentences(12, seed=1)
OTHERS = sentences(2, seed=5)
DATA = Corpus({"trees": Split([*ALL, ALL[0]], sentences(3, seed=3)), "graphs": Split([*ALL[2:], *OTHERS], ALL[:2])})
"""Nearly the same sentences with trees and graphs; one of the trees twice, two of the graphs without."""
SETTINGS: dict[str, Any] = {"semantics__pruning__learned": False, "syntax__folds": 3, "training__pretrain": 2}


def trainer(data: Corpus = DATA, **overrides: Any) -> Training:
    return Training(parser("pipeline", data, **{**SETTINGS, **overrides}), data)


def parameters(training: Training, stage: str) -> list[torch.Tensor]:
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
        seen.setdefault(training.phases[training.state.progress.phase].name, Counter()).update(rows)
        return original(self, batch, task, **options)

    monkeypatch.setattr(System, "loss", loss)
    training.steps()
    index = training.parser.vocab.word_index
    texts = [tuple(index[form.lower()] for form in s.forms) for s in DATA["trees"].train]
    assert set(seen["syntax"]) == set(texts)
    left = [set(texts) - set(seen[f"syntax fold {k}/3"]) for k in (1, 2, 3)]
    assert set.union(*left) == set(texts)
    assert sum(map(len, left)) == len(set(texts))  # each text in one fold, also the one that occurs twice


def test_the_parser_is_that_of_a_plain_pipeline_and_its_reader_reads_others() -> None:
    plain, folded = trainer(syntax__folds=0), trainer()
    for training in (plain, folded):
        training.steps()
    for one, other in zip(parameters(plain, "syntax"), parameters(folded, "syntax"), strict=True):
        assert torch.equal(one, other)
    syntax = [line for line in plain.run.history if line["phase"] == "syntax"]
    assert [line for line in folded.run.history if line["phase"] == "syntax"] == syntax
    semantics = (parameters(training, "semantics") for training in (plain, folded))
    assert not all(torch.equal(*pair) for pair in zip(*semantics, strict=True))


def test_what_is_read_is_what_the_fold_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fold's parser is asked again when it has learned; words that it has not seen are unknown to it."""
    training = trainer()
    parser, read = training.parser, dict[tuple[str, ...], torch.Tensor]()
    syntax, found = parser.model.stages["syntax"], dict[tuple[int, tuple[str, ...]], torch.Tensor]()
    texts = [sentence.forms for sentence in DATA["trees"].train]
    folds = [texts.index(text) * 3 // len(texts) for text in texts]
    encoded = {s.forms: parser.encoded(s, {}) for s in (*DATA["trees"].train, *DATA["graphs"].train)}
    end, given = Jackknife.end, Jackknife.given

    def ended(self: Jackknife, stage: str, fold: int) -> None:
        seen = [encoded[text].tokens for text, other in zip(texts, folds, strict=True) if other != fold]
        known, lemmas = ({k for tokens in seen for k in tokens[row]} for row in (0, 1))
        for sentence in DATA["graphs"].train:
            tokens = encoded[sentence.forms].tokens.copy()
            tokens[0] = [word if word in known else UNKNOWN for word in tokens[0]]
            tokens[1] = [lemma if lemma in lemmas else UNKNOWN for lemma in tokens[1]]
            batch = collate([encoded[sentence.forms]._replace(tokens=tokens)])
            found[fold, sentence.forms] = syntax.structure.argmax(*syntax.evidence(batch))[0]
        end(self, stage, fold)

    def noted(self: Jackknife, batch: Any, task: str, sentences: Any) -> Any:
        whole = given(self, batch, task, sentences)
        for row, k in enumerate(sentences if task == "semantics" else ()):
            sentence = DATA["graphs"].train[k]
            n = len(sentence) + 1
            read[sentence.forms] = whole.read["syntax"][row, :n, :n]
        return whole

    monkeypatch.setattr(Jackknife, "end", ended)
    monkeypatch.setattr(Jackknife, "given", noted)
    training.steps()
    assert read.keys() == {sentence.forms for sentence in DATA["graphs"].train}
    for text, z in read.items():
        if text in texts:
            assert torch.equal(z, found[folds[texts.index(text)], text])
        else:  # the parser of all sentences has not seen it
            batch = collate([encoded[text]])
            assert torch.equal(z, syntax.structure.argmax(*syntax.evidence(batch))[0])


def test_a_training_goes_on_in_the_middle_of_a_fold() -> None:
    steps = check_resumes(experiment("pipeline", **SETTINGS), DATA, every=5)
    assert {"syntax fold 2/3", "semantics"} < {step.phase for step in steps[::5]}


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
        trainer(apart).steps()
    few = Corpus({**DATA.sets, "trees": Split([replace(ALL[2], graph=None)], ALL[:2])})
    with pytest.raises(ValueError, match=r"syntax\.folds is 3 for 1 sentences"):
        trainer(few).steps()
