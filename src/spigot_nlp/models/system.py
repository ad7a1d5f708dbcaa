"""Stages in order, and the wires between them (Algorithm 1, for any number of stages)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import torch
from torch import Tensor, nn

import spigot
from spigot import AbstractEstimator, kernels
from spigot.types import Mask, Parts, Values
from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.batches.batch import Batch
from spigot_nlp.config.experiment import Config, stage_class
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import AbstractEncoder, Precision, WordTables, make_encoder
from spigot_nlp.nn.quantised import WHOLE, ReadsWhole
from spigot_nlp.stages.constraints import Constraints, Infeasible
from spigot_nlp.stages.stage import AbstractDecision, AbstractStage, Evidence, Found, Surroundings
from spigot_nlp.values import Optimiser
from spigot_nlp.wires import build_estimator


class Answer(NamedTuple):
    """What a stage says about the sentences of a batch.

    Attributes:
        z: The structures.
        evidence: The scores they were found by; `None` where they were given.

    Example:
        >>> import torch
        >>> Answer(torch.ones(1, 2), None).z.shape
        torch.Size([1, 2])
    """

    z: Parts
    evidence: Evidence | None


@dataclass(frozen=True)
class Wire:
    """From one stage to another.

    Attributes:
        source: The stage whose structures pass.
        target: The stage that reads them.
        estimator: What comes back.

    Example:
        >>> Wire("syntax", "semantics", spigot.Spigot()).name
        'syntax -> semantics'
    """

    source: str
    target: str
    estimator: AbstractEstimator

    @property
    def name(self) -> str:
        """What it is called in print."""
        return f"{self.source} -> {self.target}"

    @property
    def is_frozen(self) -> bool:
        """Whether no gradient ever comes back."""
        return isinstance(self.estimator, spigot.Pipeline)

    def watched_with(self, instead: "AbstractEstimator | Mapping[str, AbstractEstimator] | None") -> AbstractEstimator:
        """Its estimator, or the one that stands on it, or on all wires, for now."""
        if isinstance(instead, Mapping):
            return instead.get(self.name, self.estimator)
        return instead or self.estimator


class Passed(NamedTuple):
    """What passed a wire: kept where somebody watches.

    Attributes:
        scores: What the structures were decoded from.
        mask: Which parts existed.
        z: The structures that went forward; their gradient is what came back.

    Example:
        >>> import torch
        >>> scores = torch.zeros(1, 3)
        >>> Passed(scores, scores == 0, scores.softmax(-1)).mask.all()
        tensor(True)
    """

    scores: Parts
    mask: Mask
    z: Parts


class Part(NamedTuple):
    """Something with an optimiser of its own.

    Attributes:
        model: Whose parameters are updated.
        optimiser: How.
        without: Models inside it that have an optimiser of their own.

    Example:
        >>> Part(nn.Linear(2, 1), Optimiser()).without
        ()
    """

    model: nn.Module
    optimiser: Optimiser
    without: tuple[nn.Module, ...] = ()


def with_tuned(parts: Mapping[str, Part]) -> dict[str, Part]:
    """Parts, and apart from them what encoders inside them update otherwise, such as a pretrained transformer.

    Args:
        parts: By name. What is inside one of them is called by its name, a slash and its place.

    Example:
        >>> sorted(with_tuned({"syntax": Part(nn.Linear(2, 1), Optimiser())}))
        ['syntax']
    """
    found = dict(parts)
    for owner, part in parts.items():
        for place, encoder in _encoders(part):
            for name, (model, optimiser) in encoder.tuned().items():
                whole = found[owner]
                found[owner] = whole._replace(without=(*whole.without, model))
                found[f"{owner}/{place}{name}"] = Part(model, optimiser)
    return found


def owner_of(part: str) -> str:
    """The part that one belongs to: itself, unless it is what an encoder inside another one tunes.

    Example:
        >>> owner_of("syntax"), owner_of("encoders.words/transformer")
        ('syntax', 'encoders.words')
    """
    return part.partition("/")[0]


def _encoders(part: Part) -> Iterator[tuple[str, AbstractEncoder]]:
    """The encoders of a part that belong to no other, each with the beginning of the names of what is in it."""
    others = {module for other in part.without for module in other.modules()}
    for name, module in part.model.named_modules():
        if isinstance(module, AbstractEncoder) and module not in others:
            yield f"{name}." if name else "", module


@dataclass(frozen=True)
class _Reading:
    """One loss: what is read for it, how, and what has been decoded so far, by source, estimator and whether frozen."""

    batch: Batch
    through: bool
    watched: "dict[Wire, Passed] | None"
    instead: "AbstractEstimator | Mapping[str, AbstractEstimator] | None"
    passed: "dict[tuple[str, AbstractEstimator, bool], Passed]" = field(default_factory=dict)


class System(nn.Module):
    """Stages that read each other, and are trained through what they read.

    Args:
        config: The experiment.
        vocab: The indices.
        annotations: What each stage predicts.
        vectors: Pretrained word vectors in the vocabulary's order, by file.
        run: The folder of its training, where its parameters are about to be read from one.

    Attributes:
        stages: The stages by name, in order.
        encoders: The encoders that some of them share.
        wires: For each stage, the wires it reads by.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.models.build import learned_annotations
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> config = make_config({"system": "ste"})
        >>> annotations, vocab = learned_annotations(config, {"graphs": [rain]}), Vocab.of([rain])
        >>> system = System(config, vocab, annotations)
        >>> batch = collate([encode(rain, vocab, annotations)], annotations)
        >>> system.loss(batch, "semantics").sum().backward()
        >>> system.stages["syntax"].scorer.out.weight.grad is None          # trained through its trees
        False
        >>> [wire.name for wire in system.all_wires()], sorted(system.parts())
        (['syntax -> semantics'], ['semantics', 'semantics.pruner', 'syntax'])
    """

    def __init__(
        self,
        config: Config,
        vocab: Vocab,
        annotations: Mapping[str, AbstractAnnotation],
        vectors: WordTables | None = None,
        run: Path | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.annotations = dict(annotations)
        shared = {name: make_encoder(one.encoder, vocab, vectors, run) for name, one in config.encoders.items()}
        self._encoders, self._stages = nn.ModuleDict(shared), nn.ModuleDict()
        self.wires: dict[str, tuple[Wire, ...]] = {}
        for name, settings in config.stages.items():
            around = Surroundings(vocab, vectors, self.encoders, self.stages, run)
            self._stages[name] = stage_class(settings)(name, settings, annotations[name], around)
            self.wires[name] = tuple(
                Wire(
                    wire.stage,
                    name,
                    build_estimator(wire.estimator, self.stages[wire.stage].structure, config.seed),
                )
                for wire in settings.reads
            )
        # Where estimators keep what they remember; wires that pass the same thing share it.
        self._layers = nn.ModuleDict()
        for wire in self.all_wires():
            if self._keeper(wire) == wire:
                self._layers[wire.name] = spigot.Argmax(self.stages[wire.source].structure, wire.estimator)

        self._tuned = [name for name in self.parts() if owner_of(name) != name]

    @property
    def stages(self) -> dict[str, AbstractStage]:
        """The stages by name, in order."""
        return cast(dict[str, AbstractStage], dict(self._stages.items()))

    @property
    def encoders(self) -> dict[str, AbstractEncoder]:
        """The encoders that stages share."""
        return cast(dict[str, AbstractEncoder], dict(self._encoders.items()))

    @property
    def device(self) -> torch.device:
        """Where its parameters are."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))

    @property
    def precision(self) -> Precision:
        """What its encoders compute in."""
        for part in self.modules():
            if isinstance(part, AbstractEncoder):
                return part.precision
        return "float32"

    @property
    def reads_by_kernels(self) -> bool:
        """Whether kernels do what is worth dividing of its work when nothing is learned."""
        encoders = [part for part in self.modules() if isinstance(part, AbstractEncoder)]
        return (
            self.device.type == "cpu"
            and kernels.available
            and all(encoder.by_kernels and encoder.precision == WHOLE for encoder in encoders)
        )

    def compute_in(self, precision: Precision) -> None:
        """Have encoders, and what scores their states, compute in another precision.

        Args:
            precision: `float32`; `bfloat16` where that is the quicker one; `int16` to have BiLSTMs and scorers on the
                CPU read in whole numbers.

        Raises:
            ValueError: If there is no such precision.
        """
        if precision not in get_args(Precision):
            raise ValueError(f"precision is {precision!r}; it must be one of {', '.join(get_args(Precision))}.")
        for part in self.modules():
            if isinstance(part, AbstractEncoder | ReadsWhole):
                part.precision = precision

    def all_wires(self) -> Iterator[Wire]:
        """Every wire, in the order of the stages that read."""
        return (wire for wires in self.wires.values() for wire in wires)

    def estimator_on(
        self, wire: Wire, instead: AbstractEstimator | None = None, *, learning: bool = False
    ) -> AbstractEstimator:
        """The estimator of a wire with what the wire remembers of it, ready to be called.

        Args:
            wire: The wire.
            instead: Another estimator to stand there, which remembers nothing.
            learning: Whether a backward pass may change what is remembered.
        """
        if instead is not None and instead != wire.estimator:
            return spigot.Argmax(self.stages[wire.source].structure, instead).with_state()
        return cast(spigot.Argmax, self._layers[self._keeper(wire).name]).with_state(training=learning)

    def memory(self) -> list[Tensor]:
        """What the estimators on its wires remember from step to step, apart from parameters."""
        return list(self._layers.buffers())

    def _keeper(self, wire: Wire) -> Wire:
        """The first wire that passes the same."""
        same = (other for other in self.all_wires() if (other.source, other.estimator) == (wire.source, wire.estimator))
        return next(same)

    def parts(self) -> dict[str, Part]:
        """Whatever has an optimiser of its own, by name: stages, their helpers, shared encoders, what those tune."""
        found: dict[str, Part] = {}
        for name, stage in self.stages.items():
            if not stage.learns:
                continue
            helpers = stage.helpers()
            found[name] = Part(stage, stage.settings.optimiser, tuple(helper.model for helper in helpers.values()))
            for helper, inner in helpers.items():
                found[f"{name}.{helper}"] = Part(inner.model, inner.optimiser)
        for name, encoder in self.encoders.items():
            found[f"encoders.{name}"] = Part(encoder, self.config.encoders[name].optimiser)
        return with_tuned(found)

    def updated(self, task: str) -> list[str]:
        """The parts that a step on a task updates: its stage, those that gradients come back to, their encoders."""
        leaders = [] if "." in task else [task, *self.config.companions(task)]
        stages = list(dict.fromkeys(name for leader in leaders for name in self.config.reached(leader))) or [task]
        shared = dict.fromkeys(self.stages[name].trained_encoder for name in stages if name in self.stages)
        owners = [*stages, *(f"encoders.{name}" for name in shared if name)]
        return [*owners, *(name for name in self._tuned if owner_of(name) in owners)]

    def loss(
        self,
        batch: Batch,
        task: str,
        *,
        through: bool = True,
        watched: dict[Wire, Passed] | None = None,
        instead: AbstractEstimator | Mapping[str, AbstractEstimator] | None = None,
    ) -> Values:
        """One loss a sentence: that of the task, and of the stages that learn beside it if the batch has their gold.

        Args:
            batch: Sentences annotated for the task.
            task: A stage, or a helper of one as `stage.helper`.
            through: Whether gradients may pass the wires.
            watched: Filled with what passes each wire, if given.
            instead: An estimator to stand on all wires, or one for each of some by name, for whoever wants to see what
                it would do.
        """
        name, _, helper = task.partition(".")
        if name not in self.stages:
            raise ValueError(f"This system has no {task} to train; it has {', '.join(self.stages)}.")
        stage = self.stages[name]
        if helper:
            return stage.helper_loss(helper, batch)
        reading = _Reading(batch.keeping(), through, watched, instead)
        losses = stage.loss(reading.batch, self._read(stage, reading))
        for other in map(self.stages.get, self.config.companions(name)):
            if other is not None and other.name in batch.gold:
                losses = losses + other.loss(reading.batch, self._read(other, reading))
        return losses

    def read(self, name: str, batch: Batch, *, through: bool = True) -> list[Parts]:
        """The structures that a stage reads in training, one for each of its wires.

        Args:
            name: The stage.
            batch: The sentences.
            through: Whether gradients may pass the wires.
        """
        return self._read(self.stages[name], _Reading(batch.keeping(), through, None, None))

    def parse(
        self, batch: Batch, limits: Mapping[str, Any] | None = None, *, only: Collection[str] | None = None
    ) -> dict[str, Answer]:
        """What each stage finds: the best structure, also where another stage reads a soft one.

        Args:
            batch: The sentences.
            limits: What their structures must have and must not have. Stages read structures that keep to it.
            only: The stages whose answers are wanted; no other is asked, unless one of them reads it. All by default.
        """
        found = self._answers(batch, limits or {}, only, scored=True)
        return {name: answer for name, answer in found.items() if isinstance(answer, Answer)}

    def decide(self, batch: Batch, only: Collection[str] | None = None) -> dict[str, Answer | AbstractDecision]:
        """The same for those who will not ask for scores: a stage may have a shorter way to its structures.

        Args:
            batch: The sentences.
            only: The stages whose answers are wanted.
        """
        return self._answers(batch, {}, only, scored=False)

    @torch.no_grad()
    def _answers(
        self, batch: Batch, limits: Mapping[str, Any], only: Collection[str] | None, *, scored: bool
    ) -> dict[str, Answer | AbstractDecision]:
        batch = batch.keeping()
        needed = self.needed(self.stages if only is None else only)
        softly = {wire.source for wire in self.all_wires() if not wire.estimator.hard}
        found: dict[str, Answer | AbstractDecision] = {}
        shown: dict[str, Found] = {}  # what those who read a stage get to see
        decided: dict[str, Evidence] = {}
        soft: dict[tuple[str, AbstractEstimator], Parts] = {}
        for name, stage in self.stages.items():
            if name not in needed:
                continue
            if not stage.learns:
                shown[name] = z = stage.given(batch)
                found[name] = Answer(z, None)
                continue
            read: list[Found] = []
            for wire in self.wires[name]:
                key = wire.source, wire.estimator
                if wire.estimator.hard or wire.source not in decided:
                    read.append(shown[wire.source])
                    continue
                if key not in soft:
                    scores, mask = decided[wire.source]
                    soft[key] = spigot.argmax(
                        scores, self.stages[wire.source].structure, self.estimator_on(wire), mask=mask
                    )
                read.append(soft[key])
            limit = limits.get(name)
            # Scores do not change what is found: whoever asks for them, too, gets the structures of those who do not.
            decision = None if limit is not None or name in softly else stage.decided(batch, read)
            if decision is not None:
                shown[name] = decision
                if not scored:
                    found[name] = decision
                    continue
            dense = [z.parts() if isinstance(z, AbstractDecision) else z for z in read]
            evidence = stage.evidence(batch, dense, limits=limit)
            decided[name] = stage.decisive(evidence, limit)
            best = stage.structure.argmax(*decided[name]) if decision is None else decision.parts()
            found[name] = Answer(best, Evidence(evidence.scores, decided[name].mask))
            shown.setdefault(name, best)
        return found

    def needed(self, names: Collection[str]) -> set[str]:
        """Some stages, and whatever they read."""
        found = set(names)
        for name in reversed(self.stages):  # a stage reads none but those before it
            if name in found:
                found.update(wire.source for wire in self.wires[name])
        return found

    def limits(
        self, constraints: Sequence[Constraints | None], lengths: Sequence[int], size: int
    ) -> dict[str, Any] | None:
        """Constraints on sentences as what `parse` takes.

        Args:
            constraints: Those of each sentence.
            lengths: Words of each sentence.
            size: Positions of the batch, with the root.

        Raises:
            Infeasible: The constraints of a sentence do not fit it or this system, or leave it no structure.
        """
        for index, demand in enumerate(constraints):
            if demand is not None and (stranger := self._stranger(demand)):
                raise Infeasible(stranger, index)
        found = {name: stage.limits(constraints, lengths, size) for name, stage in self.stages.items() if stage.learns}
        return {name: limit for name, limit in found.items() if limit is not None} or None

    def _stranger(self, demand: Constraints) -> str:
        """Why constraints are about nothing that the system searches for; empty if they are not."""
        for nouns, alone in demand.by_kind().items():
            if not any(stage.learns and stage.is_concerned(alone) for stage in self.stages.values()):
                return (
                    f"This system does not search for {nouns}, so that nothing can be demanded of one: "
                    f"{alone.describe()}."
                )
        return ""

    def _read(self, stage: AbstractStage, reading: "_Reading") -> list[Parts]:
        """The structures a stage reads, decoded without cost and without dropped words, and each of them once."""
        read = []
        for wire in self.wires[stage.name]:
            source = self.stages[wire.source]
            if not source.learns:
                read.append(source.given(reading.batch))
                continue
            estimator = wire.watched_with(reading.instead)
            if wire.source in reading.batch.read and isinstance(estimator, spigot.Pipeline):
                read.append(reading.batch.read[wire.source])
                continue
            frozen = not torch.is_grad_enabled() or not reading.through or isinstance(estimator, spigot.Pipeline)
            key = wire.source, estimator, frozen
            if key not in reading.passed:
                with torch.set_grad_enabled(not frozen):
                    # Behind a wire that lets nothing through there is nothing to watch.
                    before = self._read(source, replace(reading, watched=None) if frozen else reading)
                    scores, mask = source.evidence(reading.batch, before)
                    learning = self.training and reading.watched is None
                    used = self.estimator_on(wire, estimator, learning=learning)
                    z = spigot.argmax(scores, source.structure, used, mask=mask)
                if reading.watched is not None:
                    z = z if z.requires_grad else z.detach().requires_grad_()  # what comes back ends here, but it comes
                    z.retain_grad()
                reading.passed[key] = Passed(scores, mask, z)
            if reading.watched is not None:
                reading.watched[wire] = reading.passed[key]
            read.append(reading.passed[key].z)
        return read
