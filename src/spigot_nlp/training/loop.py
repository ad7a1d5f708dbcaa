"""Training as a sequence of steps. Who prints, saves or plots them is the caller's business."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spigot_nlp.batches import Annotations, Encoded, bucketed, collate, task_order
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.devices import find_device
from spigot_nlp.encoders import AbstractEncoder, Precision
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.parts import owner_of
from spigot_nlp.training.average import RunningMean
from spigot_nlp.training.development import Development
from spigot_nlp.training.distributed import mean_memory, share, total
from spigot_nlp.training.jackknife import Jackknife
from spigot_nlp.training.optimiser import ModelOptimiser
from spigot_nlp.training.plan import Phase, phases
from spigot_nlp.training.requirements import nothing_for


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


@dataclass
class Progress:
    """How far a training has come; with the parameters and the optimisers' states, all there is to resume from."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    best: float = -math.inf
    best_epoch: int = -1
    history: list[dict[str, Any]] = field(default_factory=list)
    structures: dict[str, list[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    processor: float | None = 0.0
    done: bool = False


class Diverged(ValueError):
    """The loss, or its gradient, is no longer a number.

    Example:
        >>> issubclass(Diverged, ValueError)
        True
    """


class Trainer:
    """Trains the models of one experiment.

    Args:
        parser: What to train.
        corpus: What to train it on.
        device: Where to compute.
        precision: What encoders compute in.

    Attributes:
        progress: How far it has come.
        best: The parameters with the best dev score of the present phase.
        average: The running mean of parameters that is scored and kept in their place, if the experiment wants one.
        development: What scores them.
        jackknife: What the stages with folds need beside.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.corpora.corpus import Split
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> corpus = Corpus({"graphs": Split([rain], [rain])})
        >>> config = make_config({"system": "neurboparser", "data": {"tags": "columns"}, "training": {"epochs": 2}})
        >>> trainer = Trainer(fresh(config, corpus.train), corpus)
        >>> [(step.phase, step.epoch) for step in trainer.steps()][2:]
        [('semantics.pruner', 3), ('semantics', 1), ('semantics', 2)]
    """

    def __init__(
        self, parser: Parser, corpus: Corpus, device: torch.device | str = "cpu", precision: Precision = "float32"
    ) -> None:
        self.parser, self.corpus, self.config = parser, corpus, parser.config
        self.precision: Precision = precision
        parser.model.to(find_device(device))
        parser.model.compute_in(precision)
        self.optimisers = {name: ModelOptimiser(*part) for name, part in parser.model.parts().items()}
        self.phases = phases(self.config)
        self.progress = Progress()
        self.best: dict[str, Tensor] = {}
        self.average = RunningMean(parser.model, self.config.training.average)
        self.development = Development(parser, corpus)
        self._data = self._encoded()
        for name in self.config.supervised:
            parser.model.stages[name].prepare(self._data[name])
        self.jackknife = Jackknife(parser, corpus, self._data)
        self._expect()

    def steps(self) -> Iterator[Step]:
        """Train from where `progress` stands to the end."""
        while self.progress.phase < len(self.phases):
            phase = self.phases[self.progress.phase]
            if phase.fold is not None and self.progress.epoch == self.progress.step == 0:
                self.jackknife.begin(phase.tasks[0])
                parts = self.parser.model.parts()
                self.optimisers |= {k: ModelOptimiser(*parts[k]) for k in self.parser.model.updated(phase.tasks[0])}
            while self.progress.epoch < phase.epochs and not self._patience_is_over(phase):
                yield from self._epoch(phase)
            if phase.judge is not None and self.best and phase is not self.phases[-1]:
                self.load_model(self.best)  # what follows builds on the best stage, not on the last
            if phase.fold is not None:
                self.jackknife.end(phase.tasks[0], phase.fold)
            self.average.restart()
            self.progress = replace(
                self.progress, phase=self.progress.phase + 1, epoch=0, step=0, best=-math.inf, best_epoch=-1
            )
        self.progress.done = True
        for encoder in self._encoders():
            encoder.expect([])  # what they kept is of no use any more

    def _epoch(self, phase: Phase) -> Iterator[Step]:
        progress, seed = self.progress, (self.config.seed, self._place(phase), self.progress.epoch)
        batches, sizes = {}, {}
        for k, task in enumerate(phase.tasks):
            chosen = self._drawn(phase, task, seed)
            lengths = [self._sentences(task)[i].length for i in chosen]
            groups = bucketed(lengths, phase.batch or self.config.training.batch, (*seed, k))
            batches[task], sizes[task] = [[chosen[i] for i in group] for group in groups], len(chosen)
        order = list(task_order(sizes, {task: len(groups) for task, groups in batches.items()}, (*seed, 7)))
        for name, optimiser in self.optimisers.items():
            optimiser.set_epoch(progress.epoch + self._epochs_before(name, phase))
        place = dict.fromkeys(phase.tasks, 0)
        for k, task in enumerate(order):
            group = batches[task][place[task]]
            place[task] += 1
            if k < progress.step:
                continue  # taken before the interruption
            loss = self._update(phase, task, group)
            progress.step = k + 1
            step = Step(
                phase.name,
                progress.epoch + 1,
                k + 1,
                len(order),
                task,
                loss / len(group),
                len(group),
                sum(self._sentences(task)[i].length for i in group),
            )
            if k + 1 == len(order):
                step = self._finish_epoch(phase, step)
            yield step

    def _place(self, phase: Phase) -> int:
        """The number of a phase, for random numbers: folds come last, so that they change nothing for the others."""
        return sorted(self.phases, key=lambda other: other.fold is not None).index(phase)

    def _epochs_before(self, name: str, phase: Phase) -> int:
        """How long a stage was trained before this phase: annealing goes on where pretraining left it."""
        if self.config.training.restart_annealing:
            return 0
        name = owner_of(name)
        if name.startswith("encoders."):  # as long as a stage that it belongs to
            stages = self.parser.model.stages.items()
            users = [stage for stage, model in stages if f"encoders.{model.trained_encoder}" == name]
            return max((self._epochs_before(stage, phase) for stage in users), default=0)
        if name in self.config.stages and self.config.stages[name].beside:
            name = self.config.stages[name].beside
        pretrained = phase is self.phases[-1] and any(wire.stage == name for _, wire in self.config.wires)
        return self.config.training.pretrain if pretrained and name in self.config.supervised else 0

    def _drawn(self, phase: Phase, task: str, seed: tuple[int, ...]) -> list[int]:
        """The sentences of a task that an epoch uses: all, or a fresh part of those of the stages before the last."""
        if phase.fold is not None:
            return self.jackknife.rest(task, phase.fold)
        size, training = len(self._sentences(task)), self.config.training
        drawn = round(training.share * size)
        if training.ratio is not None and self.config.end in phase.tasks:
            drawn = round(training.ratio * len(self._sentences(self.config.end)))
        if drawn >= size or len(phase.tasks) < 2 or task == self.config.end:
            return list(range(size))
        place = phase.tasks.index(task)  # sets of one size are not to draw the same places
        order = np.random.default_rng([*seed, 11, *([place] if place else [])]).permutation(size)
        return sorted(order[: max(1, drawn)].tolist())

    def _update(self, phase: Phase, task: str, group: Sequence[int]) -> float:
        """One step on a global batch; the loss is summed over its sentences, as the step size of SPIGOT assumes.

        To show what a mean does, the loss is divided by their number, and the gradients of all parameters are
        multiplied by it: what differs is what estimators make of a smaller gradient.
        """
        divisor = len(group) if self.config.training.reduction == "mean" else 1
        for optimiser in self.optimisers.values():
            optimiser.zero_grad()
        mine, value, model = share(group), 0.0, self.parser.model
        if mine:
            start = (((self.config.seed * 97 + self._place(phase)) * 1009 + self.progress.epoch) << 24) & (2**62 - 1)
            sentences = self._sentences(task)
            batch = collate([sentences[k] for k in mine], self._annotations(task), [start + k for k in mine])
            batch = self.jackknife.given(batch, task, mine)
            through = phase.through and self.progress.epoch >= self.config.training.warm_up
            loss = model.loss(batch.to(model.device), task, through=through).sum() * self._weight(phase, task)
            value = float(loss.detach())
            if math.isfinite(value):
                (loss / divisor if divisor > 1 else loss).backward()
        value = total(value)
        self._check_finite(value, f"{task} loss", phase)
        for name in model.updated(task):
            self._check_finite(self.optimisers[name].step(divisor), f"gradient of {name}", phase)
        mean_memory(model.memory())
        self.average.update()
        return value

    def _check_finite(self, value: float, what: str, phase: Phase) -> None:
        if not math.isfinite(value):
            raise Diverged(
                f"The {what} is {value} at step {self.progress.step + 1} of epoch {self.progress.epoch + 1} "
                f"({phase.name}). Try a lower learning rate or max_norm; what was saved before is untouched."
            )

    def _weight(self, phase: Phase, task: str) -> float:
        weight = self.config.training.end_weight
        if weight is None or len(phase.tasks) < 2:
            return 1.0
        return weight if task == self.config.end else 1 - weight

    def _finish_epoch(self, phase: Phase, step: Step) -> Step:
        with self.average.in_place():
            return self._scored(phase, step)

    def _scored(self, phase: Phase, step: Step) -> Step:
        progress = self.progress
        dev, progress.structures = self.development.scores(phase, progress.structures)
        # Without development data the last parameters are the best.
        score = progress.best if phase.judge is None else dev.get(self.development.measure(phase.judge))
        is_best = score is None or score > progress.best
        if is_best:
            progress.best, progress.best_epoch = progress.best if score is None else score, progress.epoch
            self.best = {name: value.detach().clone() for name, value in self.parser.model.state_dict().items()}
        progress.history.append({"phase": phase.name, "epoch": progress.epoch + 1, **dev})
        progress.epoch, progress.step = progress.epoch + 1, 0
        return replace(step, dev=dev, is_best=is_best)

    def load_model(self, values: dict[str, Tensor]) -> None:
        """Put saved parameters in place."""
        self.parser.model.load_state_dict(values)

    def _patience_is_over(self, phase: Phase) -> bool:
        patience = self.config.training.patience
        if not patience or phase.judge is None or self.progress.best_epoch < 0 or self.progress.step:
            return False
        return self.progress.epoch - 1 - self.progress.best_epoch >= patience

    def _encoders(self) -> Iterator[AbstractEncoder]:
        return (module for module in self.parser.model.modules() if isinstance(module, AbstractEncoder))

    def _expect(self) -> None:
        """Let encoders know what will be read in every epoch."""
        sets = [[sentence.forms for sentence in sentences] for sentences in self._data.values()]
        for name in dict.fromkeys(map(self.config.data_of, self.config.supervised)):
            sets.append([sentence.forms for sentence in self.corpus[name].dev])
        for encoder in self._encoders():
            encoder.expect(sets)

    def _sentences(self, task: str) -> list[Encoded]:
        """The training sentences of a stage, or of the stage that a helper helps."""
        return self._data[task.partition(".")[0]]

    def _annotations(self, task: str) -> Annotations:
        """What a batch for a task has beside words: what the stage learns, and what stages by rule are given."""
        name, model = task.partition(".")[0], self.parser.model
        given = [other for other, stage in model.stages.items() if not stage.learns]
        return {other: model.annotations[other] for other in (name, *self.config.companions(name), *given)}

    def _encoded(self) -> dict[str, list[Encoded]]:
        """The training sentences of every stage that has any, as integers."""
        found = {}
        for name in self.config.supervised:
            stage = self.parser.model.stages[name]
            given = self.corpus[self.config.data_of(name)].train
            sentences = [sentence for sentence in given if stage.usable(sentence)]
            if not sentences:
                why = stage.about_usable()
                raise ValueError(nothing_for(name, type(stage.annotation), self.config.data_of(name), len(given), why))
            annotations = self._annotations(name)
            found[name] = [self.parser.encoded(sentence, annotations) for sentence in sentences]
        return found


def progress_to_dict(progress: Progress) -> dict[str, Any]:
    """Progress as plain values; infinities become `None`.

    Example:
        >>> progress_to_dict(Progress(epoch=2))["best"] is None
        True
        >>> progress_from_dict(progress_to_dict(Progress(epoch=2))) == Progress(epoch=2)
        True
    """
    values = asdict(progress)
    return {**values, "best": values["best"] if math.isfinite(values["best"]) else None}


def progress_from_dict(values: dict[str, Any]) -> Progress:
    """What `progress_to_dict` gave; states of earlier versions do not know their processor time."""
    return Progress(**{"processor": None, **values, "best": -math.inf if values["best"] is None else values["best"]})


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """All parameters and tables by name, ready to be saved."""
    return {name: value.detach().contiguous() for name, value in model.state_dict().items()}
