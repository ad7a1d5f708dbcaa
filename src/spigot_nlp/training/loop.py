"""From an experiment to a folder with a trained and scored system: `train` reads from top to bottom."""

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

from spigot_nlp.batches import Annotations, Encoded, bucketed, collate, task_order
from spigot_nlp.config import Config
from spigot_nlp.corpora.corpus import Corpus, load_corpus
from spigot_nlp.encoders import AbstractEncoder, Precision
from spigot_nlp.models import checkpoint
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import System, owner_of
from spigot_nlp.threads import find_device
from spigot_nlp.training.average import RunningMean
from spigot_nlp.training.development import development_scores, judging_measure
from spigot_nlp.training.distributed import anyone, is_main, mean_memory, processes, share, total, wait
from spigot_nlp.training.jackknife import Jackknife
from spigot_nlp.training.lock import lock_run
from spigot_nlp.training.log import Log
from spigot_nlp.training.optimiser import ModelOptimiser
from spigot_nlp.training.plan import Phase, phases
from spigot_nlp.training.requirements import check_judged, nothing_for, rare_labels, remarks
from spigot_nlp.training.results import save_results
from spigot_nlp.training.start import build, init_stages
from spigot_nlp.training.state import State, saved_precision


@dataclass(frozen=True)
class Step:
    """One update.

    Attributes:
        phase: The part of the training it belongs to.
        epoch: From 1, within the phase.
        step: From 1, within the epoch.
        of: How many steps the epoch has.
        task: Whose sentences these were.
        loss: Mean loss of a sentence.
        sentences: How many there were.
        tokens: How many words they have.
        dev: Scores on the development data, in per cent, at the end of an epoch.
        is_best: Whether they are the best so far.

    Example:
        >>> step = Step("joint", epoch=1, step=3, of=40, task="syntax", loss=2.5, sentences=8, tokens=96)
        >>> f"{step.task} {step.step}/{step.of}: {step.loss}"
        'syntax 3/40: 2.5'
    """

    phase: str
    epoch: int
    step: int
    of: int
    task: str
    loss: float
    sentences: int
    tokens: int
    dev: dict[str, float] | None = None
    is_best: bool = False


@dataclass(frozen=True)
class Run:
    """A finished training.

    Attributes:
        folder: Where it is kept.
        parser: The best system.
        scores: What `scores.json` says; empty in all but the first of several processes.
        history: The phase, the epoch and the development scores after every epoch.
    """

    folder: Path
    parser: Parser
    scores: dict[str, Any]
    history: list[dict[str, Any]]


class Diverged(ValueError):
    """The loss, or its gradient, is no longer a number."""


def train(
    config: Config,
    folder: str | os.PathLike[str],
    on_step: Callable[[Step], None] | None = None,
    *,
    corpus: Corpus | None = None,
    device: torch.device | str = "cpu",
    precision: Precision | None = None,
    say: Callable[[str], None] | None = None,
    resumed: bool = False,
) -> Run:
    """Train an experiment, and keep it in a folder.

    Ctrl-C, and termination, end it after the step under way, and a process may be killed at any moment: `resume` then
    goes on, and ends in the same result. Several processes share the work under `torchrun`.

    Args:
        config: The experiment.
        folder: The run folder. It must not hold a run yet.
        on_step: Told of every step when it has been taken and logged.
        corpus: What to train on, in place of the data that the experiment names.
        device: Where to compute.
        precision: What encoders compute in, single precision by default; all else is in single precision.
        say: Told, before the first step, in a sentence each, what may not be as the user means it.
        resumed: Whether the folder holds this training, interrupted: see `resume`.

    Returns:
        The best system and its scores. When it returns, all is written.

    Raises:
        ValueError: If the experiment does not fit its data.
        Diverged: If a loss is no longer a number; what was saved before is untouched.

    Example:
        >>> import tempfile
        >>> from spigot_nlp.config import make_config
        >>> sizes = {"train": 6, "dev": 2, "test": 2}
        >>> config = make_config(
        ...     {
        ...         "data": {"source": "synthetic", "synthetic": sizes, "tags": "columns"},
        ...         "stages": {"syntax": {"annotation": "trees", "encoder": {"hidden": 8}, "mlp": 8}},
        ...         "training": {"epochs": 1, "batch": 3},
        ...     }
        ... )
        >>> run = train(config, tempfile.mkdtemp(), lambda step: print(step.task, step.sentences))
        syntax 3
        syntax 3
        >>> list(run.scores), run.parser("It rains.")[0].tree is None
        (['dev', 'id', 'ood'], False)
    """
    folder = Path(folder)
    config.check_trainable()
    _check_folder(folder, resumed)
    tell = say or (lambda remark: None)
    for remark in remarks(config):
        tell(remark)
    with processes(), lock_run(folder):
        if is_main():
            _check_folder(folder, resumed)  # somebody may have been quicker

        # Data, vocabulary and system
        corpus = load_corpus(config.data, tests=config.training.tests) if corpus is None else corpus
        parser = Parser(*checkpoint.read_run(folder)) if resumed else build(config, corpus)
        if resumed:
            _check_text(folder, parser, corpus)
        precision = precision or (saved_precision(folder) if resumed else "float32")
        model = parser.model.to(find_device(device))
        model.compute_in(precision)
        data = _encoded(parser, corpus)
        for name in config.supervised:
            model.stages[name].prepare(data[name])
        _precompute(parser, corpus, data)

        # Optimisers, and what else changes with every step
        optimisers = {name: ModelOptimiser(*part) for name, part in model.parts().items()}
        average, jackknife = RunningMean(model, config.training.average), Jackknife(parser, corpus, data)
        state = State(model, precision, optimisers, average, jackknife)
        if resumed:
            state.restore(folder)
        else:
            check_judged(config, corpus, model)
            init_stages(parser)
            for remark in rare_labels(parser, corpus):
                tell(remark)
            if is_main():  # the state first: what has a configuration can be resumed
                state.save(folder)
                checkpoint.save_start(folder, parser)
        if is_main() and state.best:
            checkpoint.write_tensors(folder / checkpoint.MODEL, state.best)
        wait()

        # Training: what ends an epoch, or a signal, is saved
        plan, progress = phases(config), state.progress
        begun, worked = time.monotonic() - progress.seconds, time.process_time() - progress.processor
        saved = time.monotonic()
        with Log(folder, [phase.name for phase in plan], progress) as log, _signals() as signals:
            for phase in plan[progress.phase :]:
                seed_place = _place(plan, phase)
                if phase.fold is not None and progress.epoch == progress.step == 0:
                    jackknife.begin(phase.tasks[0])
                    optimisers |= {part: ModelOptimiser(*model.parts()[part]) for part in model.updated(phase.tasks[0])}
                while progress.epoch < phase.epochs and not _is_out_of_patience(config, phase, state):
                    seed = (config.seed, seed_place, progress.epoch)
                    sentence_seed = (((config.seed * 97 + seed_place) * 1009 + progress.epoch) << 24) & (2**62 - 1)
                    through = phase.through and progress.epoch >= config.training.warm_up
                    for part, optimiser in optimisers.items():
                        optimiser.set_epoch(progress.epoch + _epochs_before(parser, part, phase is plan[-1]))
                    groups = _batches(config, phase, data, jackknife, seed)
                    for number, (task, group) in enumerate(groups, 1):
                        if number <= progress.step:
                            continue  # taken before the interruption

                        # The loss is summed over sentences, as the step size of SPIGOT assumes. To show what a mean
                        # does, it is divided by their number, and the gradients of all parameters multiplied by it.
                        divisor = len(group) if config.training.reduction == "mean" else 1
                        for optimiser in optimisers.values():
                            optimiser.zero_grad()
                        sentences, loss = _sentences(data, task), 0.0
                        if mine := share(group):
                            seeds = [sentence_seed + k for k in mine]
                            batch = collate([sentences[k] for k in mine], _annotations(parser, task), seeds)
                            batch = jackknife.given(batch, task, mine).to(model.device)
                            summed = model.loss(batch, task, through=through).sum() * _weight(config, phase, task)
                            loss = float(summed.detach())
                            if math.isfinite(loss):
                                (summed / divisor if divisor > 1 else summed).backward()
                        loss = total(loss)
                        where = f"at step {number} of epoch {progress.epoch + 1} ({phase.name})"
                        _check_finite(loss, f"{task} loss", where)
                        for part in model.updated(task):
                            _check_finite(optimisers[part].step(divisor), f"gradient of {part}", where)
                        mean_memory(model.memory())
                        average.update()
                        progress.step = number
                        words = sum(sentences[k].length for k in group)
                        epoch, size = progress.epoch + 1, len(group)
                        step = Step(phase.name, epoch, number, len(groups), task, loss / size, size, words)

                        if number == len(groups):
                            with average.in_place():
                                before = progress.structures
                                dev, progress.structures = development_scores(parser, corpus, phase, before)
                                # Helpers keep their last parameters, and so do stages without development data.
                                judge = phase.judge
                                score = progress.best if judge is None else dev.get(judging_measure(parser, judge))
                                step = replace(step, dev=dev, is_best=score is None or score > progress.best)
                                if step.is_best:
                                    progress.best = progress.best if score is None else score
                                    progress.best_epoch = progress.epoch
                                    state.best = {name: p.detach().clone() for name, p in model.state_dict().items()}
                            progress.history.append({"phase": phase.name, "epoch": epoch, **dev})
                            progress.epoch, progress.step = epoch, 0

                        now = time.monotonic()
                        progress.seconds, progress.processor = now - begun, time.process_time() - worked
                        is_stopped = anyone(bool(signals))
                        log.append(step, progress)
                        if is_main() and step.is_best:
                            checkpoint.write_tensors(folder / checkpoint.MODEL, state.best)
                        if step.dev is not None or is_stopped or now - saved >= config.training.save_seconds:
                            log.flush()
                            if is_main():
                                state.save(folder)
                            saved = time.monotonic()
                        if is_stopped:
                            raise KeyboardInterrupt
                        if on_step is not None:
                            on_step(step)

                if phase.judge is not None and state.best and phase is not plan[-1]:
                    model.load_state_dict(state.best)  # what follows builds on the best stage, not on the last
                if phase.fold is not None:
                    jackknife.end(phase.tasks[0], phase.fold)
                average.restart()
                progress.next_phase()

        # The best system: its scores and predictions
        progress.done = True
        for encoder in _encoders(model):
            encoder.expect([])  # what they kept of the training data is of no use any more
        if is_main():
            state.save(folder)
        model.load_state_dict(state.best)
        scores = save_results(folder, parser, corpus) if is_main() else {}
        wait()
        return Run(folder, parser, scores, progress.history)


def resume(
    folder: str | os.PathLike[str],
    on_step: Callable[[Step], None] | None = None,
    *,
    corpus: Corpus | None = None,
    device: torch.device | str = "cpu",
    precision: Precision | None = None,
    say: Callable[[str], None] | None = None,
) -> Run:
    """Continue an interrupted training; the result is the same as without the interruption.

    Args:
        folder: The run folder.
        on_step: Told of every step, as by `train`.
        corpus: What it was trained on, if not on the data that its experiment names.
        device: Where to compute; on another device than before, the result is the same but for rounding.
        precision: What encoders compute in; what they computed in before if `None`.
        say: Told what may not be as the user means it, as by `train`.

    Example:
        >>> resume("nowhere")
        Traceback (most recent call last):
        FileNotFoundError: nowhere is no run folder: it has no config.toml. Train one with spigot train.
    """
    folder = Path(folder)
    _check_folder(folder, resumed=True)
    config = checkpoint.read_config(folder)
    return train(config, folder, on_step, corpus=corpus, device=device, precision=precision, say=say, resumed=True)


def _check_folder(folder: Path, resumed: bool) -> None:
    is_run = (folder / checkpoint.CONFIG).exists()  # models that come with spigot are finished
    if resumed and not is_run:
        raise FileNotFoundError(
            f"{folder} is no run folder: it has no {checkpoint.CONFIG}. Train one with spigot train."
        )
    if is_run and not resumed:
        raise FileExistsError(
            f"{folder} holds a run already; go on with it by spigot train --resume {folder}, remove it, or choose "
            "another folder with --out."
        )


def _check_text(folder: Path, parser: Parser, corpus: Corpus) -> None:
    """Complain if a training would go on with other data than it was begun with."""
    now = sum(len(sentence) for name in parser.config.text for sentence in corpus[name].train)
    then = sum(parser.vocab.counts)
    if now != then:
        raise ValueError(
            f"The training data have {now} words, and had {then} when {folder} was begun. Restore them, or train "
            "in a new folder."
        )


def _encoded(parser: Parser, corpus: Corpus) -> dict[str, list[Encoded]]:
    """The training sentences of every stage that has any, as integers."""
    found = {}
    for name in parser.config.supervised:
        stage, source = parser.model.stages[name], parser.config.data_of(name)
        given = corpus[source].train
        sentences = [sentence for sentence in given if stage.usable(sentence)]
        if not sentences:
            raise ValueError(nothing_for(name, type(stage.annotation), source, len(given), stage.about_usable()))
        annotations = _annotations(parser, name)
        found[name] = [parser.encoded(sentence, annotations) for sentence in sentences]
    return found


def _annotations(parser: Parser, task: str) -> Annotations:
    """What a batch for a task has beside words: what the stage learns, and what stages by rule are given."""
    name, model = task.partition(".")[0], parser.model
    given = [other for other, stage in model.stages.items() if not stage.learns]
    return {other: model.annotations[other] for other in (name, *parser.config.companions(name), *given)}


def _sentences(data: Mapping[str, list[Encoded]], task: str) -> list[Encoded]:
    """The training sentences of a stage, or of the stage that a helper helps."""
    return data[task.partition(".")[0]]


def _encoders(model: System) -> Iterator[AbstractEncoder]:
    return (module for module in model.modules() if isinstance(module, AbstractEncoder))


def _precompute(parser: Parser, corpus: Corpus, data: Mapping[str, Sequence[Encoded]]) -> None:
    """Let encoders know what will be read in every epoch."""
    sets = [[sentence.forms for sentence in sentences] for sentences in data.values()]
    for name in dict.fromkeys(map(parser.config.data_of, parser.config.supervised)):
        sets.append([sentence.forms for sentence in corpus[name].dev])
    for encoder in _encoders(parser.model):
        encoder.expect(sets)


def _place(plan: Sequence[Phase], phase: Phase) -> int:
    """The number of a phase, for random numbers: folds come last, so that they change nothing for the others."""
    return sorted(plan, key=lambda other: other.fold is not None).index(phase)


def _epochs_before(parser: Parser, part: str, is_last: bool) -> int:
    """How long a part was trained before the last phase: annealing goes on where pretraining left it."""
    config, name = parser.config, owner_of(part)
    if config.training.restart_annealing or not is_last:
        return 0
    if name.startswith("encoders."):  # as long as a stage that it belongs to
        stages = parser.model.stages.items()
        users = [stage for stage, model in stages if f"encoders.{model.trained_encoder}" == name]
        return max((_epochs_before(parser, stage, is_last) for stage in users), default=0)
    if name in config.stages and config.stages[name].beside:
        name = config.stages[name].beside
    is_read = any(wire.stage == name for _, wire in config.wires)
    return config.training.pretrain if is_read and name in config.supervised else 0


def _batches(
    config: Config, phase: Phase, data: Mapping[str, list[Encoded]], jackknife: Jackknife, seed: tuple[int, ...]
) -> list[tuple[str, list[int]]]:
    """The steps of an epoch, in order: a task, and which of its sentences."""
    groups: dict[str, list[list[int]]] = {}
    sizes: dict[str, int] = {}
    for k, task in enumerate(phase.tasks):
        chosen = _drawn(config, phase, task, data, jackknife, seed)
        lengths = [_sentences(data, task)[i].length for i in chosen]
        drawn = bucketed(lengths, phase.batch or config.training.batch, (*seed, k))
        groups[task], sizes[task] = [[chosen[i] for i in group] for group in drawn], len(chosen)
    order = task_order(sizes, {task: len(some) for task, some in groups.items()}, (*seed, 7))
    waiting = {task: iter(some) for task, some in groups.items()}
    return [(task, next(waiting[task])) for task in order]


def _drawn(
    config: Config,
    phase: Phase,
    task: str,
    data: Mapping[str, list[Encoded]],
    jackknife: Jackknife,
    seed: tuple[int, ...],
) -> list[int]:
    """The sentences of a task that an epoch uses: all, or a fresh part of those of the stages before the last."""
    if phase.fold is not None:
        return jackknife.rest(task, phase.fold)
    size, training = len(_sentences(data, task)), config.training
    drawn = round(training.share * size)
    if training.ratio is not None and config.end in phase.tasks:
        drawn = round(training.ratio * len(data[config.end]))
    if drawn >= size or len(phase.tasks) < 2 or task == config.end:
        return list(range(size))
    place = phase.tasks.index(task)  # sets of one size are not to draw the same places
    order = np.random.default_rng([*seed, 11, *([place] if place else [])]).permutation(size)
    return sorted(order[: max(1, drawn)].tolist())


def _weight(config: Config, phase: Phase, task: str) -> float:
    """What a task's loss counts in a phase of several."""
    weight = config.training.end_weight
    if weight is None or len(phase.tasks) < 2:
        return 1.0
    return weight if task == config.end else 1 - weight


def _check_finite(value: float, what: str, where: str) -> None:
    if not math.isfinite(value):
        raise Diverged(
            f"The {what} is {value} {where}. Try a lower learning rate or max_norm; what was saved before is untouched."
        )


def _is_out_of_patience(config: Config, phase: Phase, state: State) -> bool:
    patience, progress = config.training.patience, state.progress
    if not patience or phase.judge is None or progress.best_epoch < 0 or progress.step:
        return False
    return progress.epoch - 1 - progress.best_epoch >= patience


@contextmanager
def _signals() -> Iterator[list[int]]:
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
