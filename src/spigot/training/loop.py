"""Training as a sequence of steps. Who prints, saves or plots them is the caller's business."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from spigot.config import Config
from spigot.data.batch import Encoded, bucketed, collate, encode, task_order
from spigot.data.corpus import Corpus
from spigot.data.sentence import Sentence
from spigot.evaluation.metrics import graph_counts, tree_counts
from spigot.models.parser import Parser
from spigot.training.distributed import share, total
from spigot.training.optimiser import ModelOptimiser

LF, UF, UAS = "LF", "UF", "UAS"


@dataclass(frozen=True)
class Phase:
    """A part of a training: the tasks it mixes, its length, and the dev score it is judged by."""

    name: str
    tasks: tuple[str, ...]
    epochs: int
    measure: str | None = None


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
    seconds: float = 0.0
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

    Attributes:
        progress: How far it has come.
        best: The parameters with the best dev score of the present phase.

    Example:
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Arc, Graph
        >>> from spigot.training.run import build
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> corpus = Corpus([], [], [rain], [rain], {}, {})
        >>> config = make_config({"system": "neurboparser", "data": {"tags": "columns"}, "training": {"epochs": 2}})
        >>> trainer = Trainer(build(config, corpus), corpus)
        >>> [(step.phase, step.epoch) for step in trainer.steps()]
        [('pruner', 1), ('pruner', 2), ('pruner', 3), ('semantics', 1), ('semantics', 2)]
    """

    def __init__(self, parser: Parser, corpus: Corpus) -> None:
        self.parser, self.corpus, self.config = parser, corpus, parser.config
        model = parser.model
        self.optimisers = {"semantics": ModelOptimiser(model.semantics, self.config.semantics.optimiser)}
        if model.syntax is not None:
            self.optimisers["syntax"] = ModelOptimiser(model.syntax, self.config.syntax.optimiser)
        if model.pruner is not None:
            self.optimisers["pruner"] = ModelOptimiser(model.pruner, self.config.semantics.pruning.optimiser)
        self.phases = phases(self.config)
        self.progress = Progress()
        self.best: dict[str, Tensor] = {}
        graphs = [encode(sentence, parser.vocab) for sentence in corpus.graphs]
        self._data: dict[str, list[Encoded]] = {"semantics": graphs, "pruner": graphs, "syntax": self._trees()}
        self._require_data()
        model.semantics.seen.learn(graphs)

    def steps(self) -> Iterator[Step]:
        """Train from where `progress` stands to the end."""
        while self.progress.phase < len(self.phases):
            phase = self.phases[self.progress.phase]
            while self.progress.epoch < phase.epochs and not self._patience_is_over(phase):
                yield from self._epoch(phase)
            if phase.measure == UAS and self.best:
                self.load_model(self.best)  # what follows builds on the best parser, not on the last
            self.progress = replace(
                self.progress, phase=self.progress.phase + 1, epoch=0, step=0, best=-math.inf, best_epoch=-1
            )
        self.progress.done = True

    def _epoch(self, phase: Phase) -> Iterator[Step]:
        progress, seed = self.progress, (self.config.seed, self.progress.phase, self.progress.epoch)
        batches = {
            task: bucketed([sentence.length for sentence in self._data[task]], self.config.training.batch, (*seed, k))
            for k, task in enumerate(phase.tasks)
        }
        sizes = {task: len(self._data[task]) for task in phase.tasks}
        order = list(task_order(sizes, {task: len(groups) for task, groups in batches.items()}, (*seed, 7)))
        for optimiser in self.optimisers.values():
            optimiser.set_epoch(progress.epoch)
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
                sum(self._data[task][i].length for i in group),
            )
            if k + 1 == len(order):
                step = self._finish_epoch(phase, step)
            yield step

    def _update(self, phase: Phase, task: str, group: Sequence[int]) -> float:
        """One step on a global batch; the loss is summed over its sentences, as the step size of SPIGOT assumes."""
        for optimiser in self.optimisers.values():
            optimiser.zero_grad()
        mine, value = share(group), 0.0
        if mine:
            start = (((self.config.seed * 97 + self.progress.phase) * 1009 + self.progress.epoch) << 24) & (2**62 - 1)
            batch = collate([self._data[task][k] for k in mine], [start + k for k in mine])
            through = self.progress.epoch >= self.config.training.warm_up
            loss = self.parser.model.loss(batch, task, through=through).sum() * self._weight(phase, task)
            value = float(loss.detach())
            if math.isfinite(value):
                loss.backward()
        value = total(value)
        self._check_finite(value, f"{task} loss", phase)
        for name in _trained_by(task):
            if name in self.optimisers:
                self._check_finite(self.optimisers[name].step(), f"gradient of the {name} model", phase)
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
        return weight if task == "semantics" else 1 - weight

    def _finish_epoch(self, phase: Phase, step: Step) -> Step:
        progress = self.progress
        dev = self.dev_scores(phase)
        # Without development data the last parameters are the best.
        score = progress.best if phase.measure is None else dev.get(phase.measure)
        is_best = score is None or score > progress.best
        if is_best:
            progress.best, progress.best_epoch = progress.best if score is None else score, progress.epoch
            self.best = {name: value.detach().clone() for name, value in self.parser.model.state_dict().items()}
        progress.history.append({"phase": phase.name, "epoch": progress.epoch + 1, **dev})
        progress.epoch, progress.step = progress.epoch + 1, 0
        return replace(step, dev=dev, is_best=is_best)

    def dev_scores(self, phase: Phase) -> dict[str, float]:
        """What the development data say, in per cent."""
        scores = {}
        if phase.measure == LF and self.corpus.graphs_dev:
            predicted = list(self.parser.parse(self.corpus.graphs_dev, tagged=True))
            scores[LF] = 100 * graph_counts(self.corpus.graphs_dev, predicted).f1()
            scores[UF] = 100 * graph_counts(self.corpus.graphs_dev, predicted, labelled=False).f1()
        if phase.measure is not None and self.parser.model.syntax is not None and self.corpus.trees_dev:
            predicted = list(self.parser.parse(self.corpus.trees_dev, tagged=True))
            scores[UAS] = 100 * tree_counts(self.corpus.trees_dev, predicted).accuracy()
        if phase.name == "pruner":
            scores.update(self.pruning_scores())
        return scores

    @torch.no_grad()
    def pruning_scores(self) -> dict[str, float]:
        """What pruning leaves on the development data: labelled parts and arcs a token, and its recall."""
        model, vocab = self.parser.model, self.parser.vocab
        arcs = parts = tokens = gold = found = 0
        encoded = sorted((encode(s, vocab) for s in self.corpus.graphs_dev), key=lambda s: s.length)
        for start in range(0, len(encoded), 64):
            batch = collate(encoded[start : start + 64])
            kept = model.semantics.surviving(batch, model.pruner)
            roles = model.semantics.seen.labels(batch, kept.nonzero())
            arcs, parts = arcs + int(kept.sum()), parts + int(roles.sum())
            tokens += int(batch.lengths.sum())
            assert batch.arcs is not None
            sentence, head, argument, role = batch.arcs.unbind(-1)
            allowed = model.semantics.seen.roles[batch.tags[sentence, head], batch.tags[sentence, argument], role]
            gold, found = gold + len(batch.arcs), found + int((kept[sentence, head, argument] & allowed).sum())
        return {
            "arcs_a_token": arcs / max(tokens, 1),
            "parts_a_token": parts / max(tokens, 1),
            "recall": 100 * found / max(gold, 1),
        }

    def load_model(self, values: dict[str, Tensor]) -> None:
        """Put saved parameters in place."""
        self.parser.model.load_state_dict(values)

    def _patience_is_over(self, phase: Phase) -> bool:
        patience = self.config.training.patience
        if not patience or phase.measure is None or self.progress.best_epoch < 0 or self.progress.step:
            return False
        return self.progress.epoch - 1 - self.progress.best_epoch >= patience

    def _trees(self) -> list[Encoded]:
        """Training trees the parser can produce: without crossing arcs, with one root if it must have one."""
        sentences = self.corpus.trees if self.parser.model.syntax is not None else []
        if self.config.syntax.trees == "projective":
            sentences = [sentence for sentence in sentences if is_projective(sentence)]
        if self.config.syntax.single_root:
            sentences = [sentence for sentence in sentences if (sentence.heads or ()).count(0) == 1]
        return [encode(sentence, self.parser.vocab) for sentence in sentences]

    def _require_data(self) -> None:
        if any("syntax" in phase.tasks for phase in self.phases) and not self._data["syntax"]:
            raise ValueError(
                f"None of the {len(self.corpus.trees)} training trees is one the syntactic parser can produce "
                f"(trees = {self.config.syntax.trees!r}, single_root = {self.config.syntax.single_root}). Set "
                "data.trees.train, or system = 'neurboparser', which has no syntax."
            )


def phases(config: Config) -> list[Phase]:
    """What an experiment trains, in order.

    Example:
        >>> from spigot.config import make_config
        >>> [(phase.name, phase.tasks) for phase in phases(make_config({"system": "spigot"}))]
        [('pruner', ('pruner',)), ('joint', ('syntax', 'semantics'))]
    """
    plan = []
    if config.semantics.pruning.learned:
        plan.append(Phase("pruner", ("pruner",), config.semantics.pruning.epochs))
    if config.intermediate == "syntax" and config.training.pretrain and not config.training.syntax_from:
        plan.append(Phase("syntax", ("syntax",), config.training.pretrain, UAS))
    both = config.system not in ("neurboparser", "pipeline")
    tasks = ("syntax", "semantics") if both else ("semantics",)
    return [*plan, Phase("joint" if both else "semantics", tasks, config.training.epochs, LF)]


def is_projective(sentence: Sentence) -> bool:
    """Whether no two arcs of the tree cross.

    Example:
        >>> is_projective(Sentence(("a", "b", "c", "d"), heads=(3, 4, 0, 3)))
        False
    """
    arcs = ((min(head, word), max(head, word)) for word, head in enumerate(sentence.heads or (), 1))
    spans = sorted(arcs, key=lambda span: (span[0], -span[1]))  # of those that begin together, the outer one first
    open_ends: list[int] = []
    for left, right in spans:
        while open_ends and open_ends[-1] <= left:
            open_ends.pop()
        if open_ends and right > open_ends[-1]:
            return False
        open_ends.append(right)
    return True


def _trained_by(task: str) -> tuple[str, ...]:
    """The models a task's loss updates; the end task's reaches through the layer."""
    return ("semantics", "syntax") if task == "semantics" else (task,)


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
    """What `progress_to_dict` gave."""
    return Progress(**{**values, "best": -math.inf if values["best"] is None else values["best"]})


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """All parameters and tables by name, ready to be saved."""
    return {name: value.detach().contiguous() for name, value in model.state_dict().items()}
