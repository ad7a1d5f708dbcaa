"""One training from start to end, kept in a folder: it can be interrupted, resumed, and looked at while it goes."""

import os
import signal
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from types import FrameType

import torch
from torch import nn

from spigot_nlp.annotations import ANNOTATIONS
from spigot_nlp.config import Config
from spigot_nlp.config.experiment import shared_encoder, trained_encoder
from spigot_nlp.corpora.corpus import Corpus, load_corpus
from spigot_nlp.encoders import Precision
from spigot_nlp.models import checkpoint
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.distributed import anyone, is_main, processes, wait
from spigot_nlp.training.lock import alone
from spigot_nlp.training.log import Log
from spigot_nlp.training.loop import Step, Trainer, parameters_of, progress_from_dict, progress_to_dict
from spigot_nlp.training.requirements import check_judged, require_sentences
from spigot_nlp.training.scoring import finish

_PRECISION = "precision"
"""What a saved state calls that which encoders compute in."""


def train(
    config: Config,
    out: str | os.PathLike[str],
    device: torch.device | str = "cpu",
    *,
    tests: bool = True,
    precision: Precision = "float32",
) -> Generator[Step, None, None]:
    """Train an experiment, and keep it in a folder.

    Args:
        config: The experiment.
        out: The run folder. It must not hold a run yet.
        device: Where to compute.
        precision: What encoders compute in; parameters and all else are in single precision.
        tests: Whether to read and score the test sets in the end, unless the experiment says not to; `score_tests`
            does it later if not.

    Returns:
        The steps, as they are taken. When they end, the best model, its scores and its predictions are in the folder.

    Example:
        >>> import tempfile
        >>> from spigot_nlp.config import make_config
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
    config.check_trainable()
    _refuse_used(folder)
    if not tests:
        config = config.model_copy(update={"training": config.training.model_copy(update={"tests": False})})
    with processes():
        corpus = load_corpus(config.data, tests=config.training.tests)
        trainer = Trainer(build(config, corpus), corpus, device, precision)
        check_judged(config, corpus, trainer.parser.model)
        take_stages(trainer)
        with alone(folder) if is_main() else nullcontext():
            if is_main():
                _refuse_used(folder)  # somebody may have been quicker
                _tidy(folder)
                # The state first: what has a configuration can be resumed without what it began from.
                save_state(trainer, folder)
                checkpoint.save_start(folder, trainer.parser)
            wait()
            yield from _kept(trainer, folder)


def resume(
    out: str | os.PathLike[str], device: torch.device | str = "cpu", *, precision: Precision | None = None
) -> Generator[Step, None, None]:
    """Continue an interrupted training; the result is the same as without the interruption.

    Args:
        out: The run folder.
        device: Where to compute; on another device than before, the result is the same but for rounding.
        precision: What encoders compute in; what they computed in before if `None`.

    Example:
        >>> next(resume("nowhere"))
        Traceback (most recent call last):
        FileNotFoundError: nowhere is no run folder: it has no config.toml. Train one with spigot train.
    """
    folder = Path(out)
    if not (folder / checkpoint.CONFIG).exists():  # models that come with spigot are finished
        raise FileNotFoundError(
            f"{folder} is no run folder: it has no {checkpoint.CONFIG}. Train one with spigot train."
        )
    with processes():
        parser = checkpoint.open_run(folder)
        with alone(folder) if is_main() else nullcontext():
            yield from _resumed(parser, folder, device, precision or precision_of(folder))


def precision_of(run: str | os.PathLike[str]) -> Precision:
    """What the encoders of a training that has begun compute in, as it was saved; earlier versions did not say.

    Args:
        run: The run folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> precision_of(folder)
        'float32'
        >>> checkpoint.write_tensors(folder / checkpoint.STATE, {}, {_PRECISION: "bfloat16"})
        >>> precision_of(folder)
        'bfloat16'
    """
    state = Path(run) / checkpoint.STATE
    return checkpoint.read_about(state).get(_PRECISION, "float32") if state.exists() else "float32"


def _resumed(parser: Parser, folder: Path, device: torch.device | str, precision: Precision) -> Iterator[Step]:
    corpus = load_corpus(parser.config.data, tests=parser.config.training.tests)
    text = [sentence for name in parser.config.text for sentence in corpus[name].train]
    now, then = sum(map(len, text)), sum(parser.vocab.counts)
    if now != then:
        raise ValueError(
            f"The training data have {now} words, and had {then} when {folder} was begun. Restore them, or train "
            "in a new folder."
        )
    if not (folder / checkpoint.STATE).exists():  # stopped by an earlier version before anything was saved: begin again
        trainer = Trainer(build(parser.config, corpus), corpus, device, precision)
        take_stages(trainer)
    else:
        trainer = Trainer(parser, corpus, device, precision)
        _restore(trainer, folder)
    if is_main():
        _tidy(folder)
    yield from _kept(trainer, folder)


def _tidy(folder: Path) -> None:
    """Remove what a process that was killed has written half."""
    for half_written in folder.glob(".*.tmp"):
        half_written.unlink(missing_ok=True)


def _refuse_used(folder: Path) -> None:
    if (folder / checkpoint.CONFIG).exists():
        raise FileExistsError(f"{folder} holds a run already. Resume it, remove it, or choose another folder.")


def build(config: Config, corpus: Corpus) -> Parser:
    """A system with fresh parameters, drawn from the experiment's seed, for sentences of which there must be some."""
    require_sentences(config, corpus)
    for name in config.supervised:
        field = config.stages[name].field or ANNOTATIONS[config.stages[name].annotation].name
        if field in ("tags", "lemmas") and corpus.tagger is not None:
            raise ValueError(f"stages.{name} learns the {field} of the files; set data.tags = 'columns'.")
    if not any(corpus[name].train for name in config.text):
        raise ValueError(
            f"data.text is {', '.join(config.text)}, and there are no such sentences to learn words from; there are "
            f"{', '.join(corpus.sets)}."
        )
    return fresh(config, corpus.train, corpus.tagger, corpus.lemmatised)


def take_stages(trainer: Trainer) -> None:
    """Start from the stages of other runs, which must know the same words, lemmas, tags and names.

    What a stage reads words by comes with it: the encoder that it shares, or the one that its own is built on.
    """
    filled: dict[str, str] = {}
    for name, settings in trainer.config.stages.items():
        if settings.start:
            _take(trainer.parser, name, Path(settings.start), filled)


def _take(mine: Parser, name: str, run: Path, filled: dict[str, str]) -> None:
    """Take a stage from a run; `filled` are the shared encoders that have come already, and with which stage."""
    source = checkpoint.load(run)
    if name not in source.model.stages:
        raise ValueError(f"{run} has no stage {name}; it has {', '.join(source.model.stages)}.")
    for what in ("words", "lemmas", "tags"):
        if getattr(source.vocab, what) != getattr(mine.vocab, what):
            raise ValueError(f"{run} was trained with other {what}; its {name} cannot be taken over.")
    theirs, ours = source.model.annotations[name].names(), mine.model.annotations[name].names()
    for what in (theirs.keys() | ours.keys()) - {"root"}:  # by which it decodes; earlier versions did not say
        if theirs.get(what) != ours.get(what):
            raise ValueError(f"{run} was trained with other {what}; its {name} cannot be taken over.")
    ours, theirs = mine.model.stages[name], source.model.stages[name]
    state = theirs.state_dict()
    if ours.shared_encoder:  # which is loaded by itself
        state = {name: value for name, value in state.items() if not name.startswith("own_encoder.")}
    _load(ours, state, f"{run} was trained with another size of {name}; use its [stages.{name}].")
    shared = shared_encoder(mine.config.stages[name])
    if not shared:
        return
    # Without what makes states of words the stage would understand nothing.
    trunk, other = theirs.encoder, f"{run} was trained with another encoder of {name}; use its [stages.{name}]"
    if not ours.shared_encoder:
        both = source.config.stages[name], mine.config.stages[name]
        if len({(bool(shared_encoder(one)), bool(trained_encoder(one))) for one in both}) > 1:
            raise ValueError(f"{other}.")
        trunk = source.model.encoders[shared_encoder(both[0])]
    if shared in filled and not _equal(mine.model.encoders[shared], trunk):
        raise ValueError(
            f"{filled[shared]} and {name} both read encoders.{shared}, and start from runs with different ones; give "
            "one of them an encoder of its own, or take both from one run."
        )
    _load(mine.model.encoders[shared], trunk.state_dict(), f"{other} and what stands in its [encoders].")
    filled.setdefault(shared, name)


def _load(model: nn.Module, state: Mapping[str, torch.Tensor], otherwise: str) -> None:
    try:
        model.load_state_dict(state)
    except RuntimeError:
        raise ValueError(otherwise) from None


def _equal(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models are of one make, and have the same parameters and tables."""
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name].cpu(), theirs[name].cpu()) for name in ours)


def _kept(trainer: Trainer, folder: Path) -> Iterator[Step]:
    """Pass the steps on; save the state now and then, at every epoch's end, and when asked to stop."""
    started, before = time.monotonic(), trainer.progress.seconds
    worked = None if trainer.progress.processor is None else trainer.progress.processor - time.process_time()
    saved = started
    open_log = closing(Log(folder, trainer)) if is_main() else nullcontext()
    with _stop_signals() as stopped, open_log as log:
        for step in trainer.steps():
            now = time.monotonic()
            trainer.progress.seconds = before + now - started
            trainer.progress.processor = None if worked is None else worked + time.process_time()
            stop = anyone(bool(stopped))
            if log is not None:
                log.append(step, trainer.progress.seconds, trainer.progress.processor)
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
        finish(folder, trainer.corpus, trainer.parser.model.device, trainer.precision)
    wait()


def save_state(trainer: Trainer, folder: Path) -> None:
    """Write everything that a resumed training needs."""
    tensors = {f"model|{name}": value for name, value in parameters_of(trainer.parser.model).items()}
    # The best parameters too: a crash may leave a model file that is newer than the state beside it.
    tensors.update({f"best|{name}": value for name, value in trainer.best.items()})
    for model, optimiser in trainer.optimisers.items():
        tensors.update({f"optimisers.{model}|{name}": value for name, value in optimiser.state().items()})
    tensors.update({f"jackknife|{name}": value for name, value in trainer.jackknife.state().items()})
    tensors.update({f"average|{name}": value for name, value in trainer.average.state().items()})
    about = {**progress_to_dict(trainer.progress), _PRECISION: trainer.precision}
    checkpoint.write_tensors(folder / checkpoint.STATE, tensors, about)


def _restore(trainer: Trainer, folder: Path) -> None:
    tensors, about = checkpoint.read_tensors(folder / checkpoint.STATE)
    groups: dict[str, dict[str, torch.Tensor]] = {}
    for name, value in tensors.items():
        owner, _, rest = name.partition("|")
        groups.setdefault(owner, {})[rest] = value
    trainer.load_model(groups.pop("model"))
    trainer.best = groups.pop("best", {})
    trainer.jackknife.load_state(groups.pop("jackknife", {}))
    trainer.average.load_state(groups.pop("average", {}))
    for owner, state in groups.items():
        trainer.optimisers[owner.removeprefix("optimisers.")].load_state(state)
    trainer.progress = progress_from_dict({name: value for name, value in about.items() if name != _PRECISION})
    if trainer.best and is_main():
        checkpoint.write_tensors(folder / checkpoint.MODEL, trainer.best)


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
