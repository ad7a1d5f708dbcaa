"""One training from start to end, kept in a folder: it can be interrupted, resumed, and looked at while it goes."""

import json
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import torch

from spigot.config import Config
from spigot.data.corpus import Corpus, Split, load_corpus
from spigot.data.formats import write
from spigot.data.sentence import Sentence
from spigot.data.vocab import TOP, Vocab, read_vectors
from spigot.evaluation.induced import Field, Induced, describe
from spigot.evaluation.labels import score_labels
from spigot.evaluation.metrics import score_graphs, score_trees
from spigot.models.joint import joint_model
from spigot.models.parser import Parser
from spigot.training import checkpoint
from spigot.training.development import structure_field
from spigot.training.distributed import anyone, is_main, processes, wait
from spigot.training.gold import keep_gold
from spigot.training.log import Log
from spigot.training.loop import Step, Trainer, parameters_of, progress_from_dict, progress_to_dict
from spigot.training.requirements import check_labels, require_sentences

_Measure: TypeAlias = Callable[[list[Sentence], list[Sentence]], Any]


def train(config: Config, out: str | os.PathLike[str]) -> Generator[Step, None, None]:
    """Train an experiment, and keep it in a folder.

    Args:
        config: The experiment.
        out: The run folder. It must not hold a run yet.

    Returns:
        The steps, as they are taken. When they end, the best model, its scores and its predictions are in the folder.

    Example:
        >>> import tempfile
        >>> from spigot.config import make_config
        >>> small = {"encoder": {"hidden": 8}, "mlp": 8}
        >>> config = make_config(
        ...     {
        ...         "data": {"source": "synthetic", "synthetic": {"train": 6, "dev": 2, "test": 2}, "tags": "columns"},
        ...         "syntax": small,
        ...         "semantics": {**small, "pruning": {"learned": False, "rare_role": 0}},
        ...         "training": {"epochs": 1, "batch": 3},
        ...     }
        ... )
        >>> folder = Path(tempfile.mkdtemp())
        >>> [step.sentences for step in train(config, folder)]
        [3, 3, 3, 3]
        >>> sorted(path.name for path in folder.glob("predictions.*.sdp"))
        ['predictions.dev.sdp', 'predictions.id.sdp', 'predictions.ood.sdp']
        >>> list(resume(folder))                                # nothing is left to do
        []
    """
    folder = Path(out)
    if (folder / checkpoint.CONFIG).exists():
        raise FileExistsError(f"{folder} holds a run already. Resume it, remove it, or choose another folder.")
    with processes():
        corpus = load_corpus(config.data)
        trainer = Trainer(build(config, corpus), corpus)
        check_labels(config, corpus, trainer.parser.vocab)
        if config.parser_from:
            take_parser(trainer, Path(config.parser_from))
        if is_main():
            checkpoint.save_start(folder, trainer.parser)
        wait()
        yield from _kept(trainer, folder)


def resume(out: str | os.PathLike[str]) -> Generator[Step, None, None]:
    """Continue an interrupted training; the result is the same as without the interruption.

    Args:
        out: The run folder.

    Example:
        >>> next(resume("nowhere"))
        Traceback (most recent call last):
        FileNotFoundError: nowhere is no run folder: it has no config.toml. Train one with spigot train.
    """
    folder = Path(out)
    with processes():
        parser = checkpoint.open_run(folder)
        corpus = load_corpus(parser.config.data)
        now, then = sum(map(len, _training_text(parser.config, corpus))), sum(parser.vocab.counts)
        if now != then:
            raise ValueError(
                f"The training data have {now} words, and had {then} when {folder} was begun. Restore them, or train "
                "in a new folder."
            )
        if not (folder / checkpoint.STATE).exists():  # stopped before anything was saved: begin again
            trainer = Trainer(build(parser.config, corpus), corpus)
            if parser.config.parser_from:
                take_parser(trainer, Path(parser.config.parser_from))
        else:
            trainer = Trainer(parser, corpus)
            _restore(trainer, folder)
        if is_main():
            for half_written in folder.glob(".*.tmp"):  # by a process that was killed
                half_written.unlink(missing_ok=True)
        yield from _kept(trainer, folder)


def build(config: Config, corpus: Corpus) -> Parser:
    """A parser with fresh parameters, drawn from the experiment's seed."""
    require_sentences(config, corpus)
    vectors = read_vectors(config.data.path(config.data.vectors)) if config.data.vectors else None
    vocab = Vocab.of(
        _training_text(config, corpus),
        rare_role=config.semantics.pruning.rare_role,
        also=() if vectors is None else vectors.words,
    )
    if config.is_latent:
        roles = (TOP, *(f"role {k + 1}" for k in range(config.classifier.roles)))
        vocab = replace(vocab, roles=roles, deterministic=())  # whatever graphs the sentences happen to have
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = joint_model(config, vocab, None if vectors is None else vectors.table(vocab.words))
    return Parser(config, vocab, model, corpus.tagger)


def _training_text(config: Config, corpus: Corpus) -> list[Sentence]:
    """What an experiment learns its words from: the sentences of its tasks, and of no other."""
    if config.task == "parsing":
        return [*corpus.trees.train, *corpus.graphs.train]
    labels = corpus.labels.train
    if config.is_latent:
        return labels
    return [*(corpus.trees if config.classifier.structure == "trees" else corpus.graphs).train, *labels]


def take_parser(trainer: Trainer, run: Path) -> None:
    """Start from the intermediate parser of another run, which must know the same words, lemmas, tags and roles."""
    source, mine = checkpoint.load(run), trainer.parser
    kind = trainer.config.intermediate
    names = ("syntax",) if kind == "syntax" else ("semantics", "pruner")
    word = "syntactic" if kind == "syntax" else "semantic"
    if getattr(source.model, names[0]) is None or kind is None:
        raise ValueError(f"{run if kind is not None else 'This system'} has no {word} parser.")
    for name in ("words", "lemmas", "tags", *(() if kind == "syntax" else ("roles", "deterministic"))):
        if getattr(source.vocab, name) != getattr(mine.vocab, name):
            raise ValueError(f"{run} was trained with other {name}; its {word} parser cannot be taken over.")
    try:
        for name in names:
            theirs, ours = getattr(source.model, name), getattr(mine.model, name)
            if ours is not None:
                ours.load_state_dict({} if theirs is None else theirs.state_dict())
    except RuntimeError:
        raise ValueError(f"{run} was trained with another size of its {word} parser; use its [{kind}].") from None


def _kept(trainer: Trainer, folder: Path) -> Iterator[Step]:
    """Pass the steps on; save the state now and then, at every epoch's end, and when asked to stop."""
    started, before = time.monotonic(), trainer.progress.seconds
    saved = started
    open_log = closing(Log(folder, trainer)) if is_main() else nullcontext()
    with _stop_signals() as stopped, open_log as log:
        for step in trainer.steps():
            now = time.monotonic()
            trainer.progress.seconds = before + now - started
            stop = anyone(bool(stopped))
            if log is not None:
                log.append(step, trainer.progress.seconds)
                if step.is_best:
                    checkpoint.write_tensors(folder / checkpoint.MODEL, trainer.best)
                if step.dev is not None or stop or now - saved >= trainer.config.training.save_seconds:
                    log.flush()
                    save_state(trainer, folder)
                    saved = time.monotonic()
            if stop:
                raise KeyboardInterrupt
            yield step
    if is_main():
        save_state(trainer, folder)
        finish(folder, trainer.corpus)
    wait()


def save_state(trainer: Trainer, folder: Path) -> None:
    """Write everything that a resumed training needs."""
    tensors = {f"model|{name}": value for name, value in parameters_of(trainer.parser.model).items()}
    # The best parameters too: a crash may leave a model file that is newer than the state beside it.
    tensors.update({f"best|{name}": value for name, value in trainer.best.items()})
    for model, optimiser in trainer.optimisers.items():
        tensors.update({f"{model}|{name}": value for name, value in optimiser.state().items()})
    checkpoint.write_tensors(folder / checkpoint.STATE, tensors, progress_to_dict(trainer.progress))


def _restore(trainer: Trainer, folder: Path) -> None:
    tensors, about = checkpoint.read_tensors(folder / checkpoint.STATE)
    groups: dict[str, dict[str, torch.Tensor]] = {}
    for name, value in tensors.items():
        owner, _, rest = name.partition("|")
        groups.setdefault(owner, {})[rest] = value
    trainer.load_model(groups.pop("model"))
    trainer.best = groups.pop("best", {})
    for owner, state in groups.items():
        trainer.optimisers[owner].load_state(state)
    trainer.progress = progress_from_dict(about)
    if trainer.best and is_main():
        checkpoint.write_tensors(folder / checkpoint.MODEL, trainer.best)


def finish(folder: Path, corpus: Corpus) -> None:
    """Score the best model on all development and test data; write its predictions and the gold ones beside it."""
    parser = checkpoint.load(folder)
    keep_gold(folder, parser.config, corpus)
    scores = {}
    for name, sets, measure, suffix in _scored(parser, corpus):
        for part, gold in sets.items():
            predicted = list(parser.parse(gold, tagged=True))
            scores[f"{part}{name}"] = asdict(measure(gold, predicted))
            if suffix:
                write(predicted, folder / f"predictions.{part}.{suffix}")
    checkpoint.write_text(folder / checkpoint.SCORES, json.dumps(scores, indent=2))


def _scored(parser: Parser, corpus: Corpus) -> Iterator[tuple[str, dict[str, list[Sentence]], _Measure, str]]:
    """What a system is judged by: the ending of the name, the sentences, the judge, and the ending of the file."""

    def sets(split: Split) -> dict[str, list[Sentence]]:
        return {name: sentences for name, sentences in {"dev": split.dev, **split.tests}.items() if sentences}

    config = parser.config
    if config.task == "classification":
        yield "", sets(corpus.labels), score_labels, "jsonl"
    if parser.model.semantics is not None and not config.is_latent:
        yield "" if config.task == "parsing" else " graphs", sets(corpus.graphs), score_graphs, "sdp"
    if parser.model.syntax is not None and not config.is_latent:
        yield " trees", sets(corpus.trees), score_trees, "conllu"
    if config.is_latent:
        labels = sets(corpus.labels)
        yield " structure", labels, partial(_described, field=structure_field(parser)), ""
        if parser.model.syntax is not None and all(s.heads is not None for part in labels.values() for s in part):
            yield " trees", labels, score_trees, ""


def _described(gold: list[Sentence], predicted: list[Sentence], field: Field) -> Induced:
    known = all((sentence.heads if field == "heads" else sentence.graph) is not None for sentence in gold)
    return describe(predicted, gold if known else None, field=field)


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and termination, so that the step under way is finished and saved first."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt  # asked twice: at once
        received.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: the caller looks after signals
        before = {}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
