"""What a run says about itself when its training is over: scores, predictions, and the sentences it was judged by."""

import itertools
import json
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from spigot_nlp.bundled import name_of, run_folder
from spigot_nlp.config import Config
from spigot_nlp.corpora.corpus import Corpus, Split, load_tests
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.encoders import Precision
from spigot_nlp.evaluation.joined import twins
from spigot_nlp.models import checkpoint
from spigot_nlp.models.parser import Parser
from spigot_nlp.scoring import Scores, Watch, evaluate_corpus, targets
from spigot_nlp.training.requirements import check_judged


def save_results(folder: Path, parser: Parser, corpus: Corpus, watch: Watch | None = None) -> Scores:
    """Score a system on all development and test data; write scores, predictions and gold sentences beside it.

    Scores of sets that the corpus does not have stay as they are.

    Args:
        folder: The run folder.
        parser: Its best system.
        corpus: The sentences that it is judged by.
        watch: Sees the sentences of a set pass as they are parsed.
    """
    save_gold(folder, parser.config, corpus)
    config = parser.config
    wanted = targets(config, parser.model.annotations)

    def write_predictions(data: str, part: str, gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> None:
        for target in wanted:
            if target.file and config.data_of(target.stage) == data:
                write(map(target.annotation.written, predicted), folder / f"predictions.{part}.{target.file}")

    found = evaluate_corpus(parser, corpus, wanted=wanted, watch=watch, keep=write_predictions)
    with suppress(FileNotFoundError, ValueError):
        found = {**read_scores(folder), **found}
    checkpoint.write_text(folder / checkpoint.SCORES, json.dumps(found, indent=2))
    return json.loads(json.dumps(found))


def score_tests(
    run: str | os.PathLike[str],
    device: torch.device | str = "cpu",
    *,
    precision: Precision = "float32",
    watch: Watch | None = None,
) -> Scores:
    """Score the best model of a finished run on its test sets, and add that to what the folder has.

    The scores, predictions and gold sentences are written as a training writes them that looks at its tests. A run that
    has them already gets the same ones again.

    Args:
        run: The run folder.
        device: Where to compute.
        precision: What encoders compute in.
        watch: Sees the sentences of a set pass, as they are parsed, and how many there are.

    Returns:
        All that `scores.json` then says.

    Raises:
        FileNotFoundError: If the training has not finished.
        ValueError: If the experiment has no test sets, or the run is a packed copy, which has none either.
    """
    folder = run_folder(run)
    trained = any((folder / name).exists() for name in (checkpoint.STATE, checkpoint.STEPS, checkpoint.SCORES))
    if (folder / checkpoint.MODEL).exists() and not trained:
        raise ValueError(
            f"{name_of(folder)} is a packed model, without test sets of its own; name files to evaluate it on."
        )
    read_scores(folder)
    parser = Parser.load(folder, device=device, precision=precision)
    corpus = load_tests(parser.config.data, parser.tagger)
    if not any(split.tests for split in corpus.sets.values()):
        raise ValueError(f"{folder} has no test sets; name files to evaluate it on.")
    check_judged(parser.config, corpus, parser.model)
    return save_results(folder, parser, corpus.apply(lambda _, split: replace(split, dev=[])), watch)


def read_scores(folder: Path) -> Scores:
    """What the scores of a finished run say."""
    again = f"spigot train --resume {shlex.quote(str(folder))}"
    checkpoint.read_config(folder)
    path = folder / checkpoint.SCORES
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} has no {checkpoint.SCORES}: its training has not finished. Finish it with {again}."
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); write it again with {again}.") from None
    return found


EXAMPLES = 50
"""Training sentences that are kept: enough to show what an estimator does."""

_OF = {"relations": "heads", "probabilities": "label"}
"""Annotations that are about another one, and mean nothing beside one of somebody else."""


def save_gold(folder: Path, config: Config, corpus: Corpus) -> None:
    """Write `gold.<part>.jsonl` for each part of the end task that a corpus has: `train`, `dev`, and the test sets.

    The sentences have the tags and lemmas that the system sees, the annotation of the end task, and that of the other
    tasks where the corpus has the same sentence there. Of the training sentences only the first few are kept.

    Args:
        folder: The run folder.
        config: The experiment.
        corpus: Its sentences, or some parts of them.
    """
    data = config.data_of(config.end)
    end, others = corpus[data], [split for name, split in corpus.sets.items() if name != data]
    for part, sentences in {**_parts(end), "train": [s for s in end.train if len(s)][:EXAMPLES]}.items():
        if sentences:
            sides = [_twins(sentences, split, part) for split in others]
            write(map(_joined, sentences, *sides), folder / f"gold.{part}.jsonl")


def _parts(split: Split) -> dict[str, list[Sentence]]:
    return {"train": split.train, "dev": split.dev, **split.tests}


def _twins(sentences: Sequence[Sentence], split: Split, part: str) -> list[Sentence | None]:
    """Sentences with the same words, from the same part if it has them."""
    parts = _parts(split)
    near, far = twins(sentences, parts.pop(part, ())), twins(sentences, itertools.chain(*parts.values()))
    return [other if own is None else own for own, other in zip(near, far, strict=True)]


def _joined(sentence: Sentence, *twins: Sentence | None) -> Sentence:
    """A sentence with what is known about the same words elsewhere, where it does not say so itself."""
    known = dict(sentence.annotations)
    for twin in twins:
        there = {} if twin is None else twin.annotations
        known |= {name: v for name, v in there.items() if name not in known and _OF.get(name) not in known}
    return replace(sentence, annotations=known, source=None)
