"""The best model of a run against the sentences it is judged by, at the end of its training or later."""

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from spigot_nlp.bundled import name_of, run_folder
from spigot_nlp.corpora.corpus import Corpus, load_tests
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.encoders import Precision
from spigot_nlp.models import checkpoint
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.development import annotated
from spigot_nlp.training.gold import keep_gold
from spigot_nlp.training.requirements import check_judged
from spigot_nlp.training.results import judged

DEV = "dev"
"""What the development set is called among the scores."""


def finish(folder: Path, parser: Parser, corpus: Corpus) -> dict[str, Any]:
    """Score the best model on all development and test data; write its predictions and the gold ones beside it."""
    keep_gold(folder, parser.config, corpus)
    scores = _scored(folder, parser, corpus)
    if not parser.config.training.tests:  # finished before, perhaps, and since then judged by its tests
        with suppress(FileNotFoundError, ValueError):
            scores = {**_written(folder), **scores}
    checkpoint.write_text(folder / checkpoint.SCORES, json.dumps(scores, indent=2))
    return json.loads(json.dumps(scores))


def score_tests(
    run: str | os.PathLike[str],
    device: torch.device | str = "cpu",
    *,
    precision: Precision = "float32",
    watch: Callable[[Iterator[Sentence], int], Iterable[Sentence]] | None = None,
) -> dict[str, Any]:
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

    Example:
        >>> import tempfile
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.training import train
        >>> sizes = {"train": 6, "dev": 2, "test": 2}
        >>> config = make_config(
        ...     {
        ...         "stages": {"syntax": {"annotation": "trees", "encoder": {"hidden": 8}, "mlp": 8}},
        ...         "data": {"source": "synthetic", "synthetic": sizes, "tags": "columns"},
        ...         "training": {"epochs": 1, "batch": 3, "tests": False},
        ...     }
        ... )
        >>> run = train(config, tempfile.mkdtemp())
        >>> list(run.scores), list(score_tests(run.folder))
        (['dev'], ['dev', 'id', 'ood'])
    """
    folder = run_folder(run)
    trained = any((folder / name).exists() for name in (checkpoint.STATE, checkpoint.STEPS, checkpoint.SCORES))
    if (folder / checkpoint.MODEL).exists() and not trained:
        raise ValueError(
            f"{name_of(folder)} is a packed model, without test sets of its own; name files to evaluate it on."
        )
    before = _written(folder)
    parser = Parser.load(folder, device=device, precision=precision)
    corpus = load_tests(parser.config.data, parser.tagger)
    if not any(split.tests for split in corpus.sets.values()):
        raise ValueError(f"{folder} has no test sets; name files to evaluate it on.")
    check_judged(parser.config, corpus, parser.model)
    keep_gold(folder, parser.config, corpus.apply(lambda _, split: replace(split, dev=[])))
    scores = _scored(folder, parser, corpus, {name: s for name, s in before.items() if name.split()[0] == DEV}, watch)
    checkpoint.write_text(folder / checkpoint.SCORES, json.dumps(scores, indent=2))
    return json.loads(json.dumps(scores))


def _scored(
    folder: Path,
    parser: Parser,
    corpus: Corpus,
    known: Mapping[str, Any] | None = None,
    watch: Callable[[Iterator[Sentence], int], Iterable[Sentence]] | None = None,
) -> dict[str, Any]:
    """The scores of all stages on all sets but the known ones, by name; the predictions are written."""
    scores: dict[str, Any] = {}
    parsed: dict[tuple[str, str], list[Sentence]] = {}
    for stage in judged(parser, corpus):
        for part, gold in stage.sets.items():
            name = f"{part}{stage.ending}"
            if known and part == DEV:
                scores.update({name: known[name]} if name in known else {})
                continue
            if (stage.data, part) not in parsed:
                found = parser.pipe(gold, tagged=True)
                parsed[stage.data, part] = list(watch(found, len(gold)) if watch else found)
            predicted = parsed[stage.data, part]
            judged_by = (gold, predicted) if stage.latent else annotated(stage.annotation, gold, predicted)
            if judged_by[0]:
                scores[name] = asdict(stage.measure(*judged_by))
            if stage.file:
                write(map(stage.annotation.written, predicted), folder / f"predictions.{part}.{stage.file}")
    return scores


def _written(folder: Path) -> dict[str, Any]:
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
