"""What an estimator does to the structure inside a system: the step, the projection, and what goes on to the scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor

from spigot import AbstractEstimator, Explanation
from spigot_nlp.batches import collate
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.tagging.lemmas import with_tags
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import Passed, Wire
from spigot_nlp.stages.stage import AbstractStage
from spigot_nlp.wires.estimators import build_estimator, estimator_settings


@dataclass(frozen=True)
class PartTrace:
    r"""What an estimator did to one part of a structure.

    Attributes:
        part: The part. An arc of a tree from its head to its modifier has no role; nor has an arc of a graph beside its
            labelled arcs; a predicate is written as an arc to itself.
        z: Its value in the structure that went forward.
        grad: The gradient $\nabla_z L$ that came back to it, clipped if the estimator clips.
        stepped: Its value after the step, $z - \eta \nabla_z L$ (Eq. 4a); z where the estimator takes no step.
        projected: Its value after the projection (Eq. 4b), or in what the estimator moves towards; z where there is
            none.
        gradient: What went on to its score.

    Example:
        >>> PartTrace(Arc(2, 1, ""), z=1.0, grad=0.5, stepped=0.5, projected=0.75, gradient=0.25).gradient
        0.25
    """

    part: Arc
    z: float
    grad: float
    stepped: float
    projected: float
    gradient: float


@dataclass(frozen=True)
class SignStatistics:
    """How much of what went on to the scores pushes whom, and where: sums of absolute gradients.

    A negative gradient pushes up: a step against it raises the score.

    Attributes:
        absent_up: Parts that are not in the structure, towards being chosen.
        absent_down: Those, further away from it.
        present_up: Parts that are in the structure, to stay there.
        present_down: Those, towards being dropped.
        absent: How many parts are not there.
        present: How many are.

    Example:
        >>> pushed = SignStatistics.of(z=torch.tensor([1.0, 0.0, 0.0]), gradient=torch.tensor([0.5, -0.75, 0.25]))
        >>> pushed.absent_up, pushed.shares()["absent_up"], pushed.present
        (0.75, 0.5, 1)
    """

    absent_up: float = 0.0
    absent_down: float = 0.0
    present_up: float = 0.0
    present_down: float = 0.0
    absent: int = 0
    present: int = 0

    @classmethod
    def of(cls, z: Tensor, gradient: Tensor, mask: Tensor | None = None) -> "SignStatistics":
        """Those of one structure, or of several together.

        Args:
            z: What went forward.
            gradient: What came back to the scores.
            mask: Parts that exist; all if omitted.
        """
        there = z > 0
        exists = torch.ones_like(there) if mask is None else mask
        up, down = (-gradient).clamp(min=0).double(), gradient.clamp(min=0).double()
        sums = [float(side[there == chosen].sum()) for chosen in (False, True) for side in (up, down)]
        return cls(*sums, absent=int((exists & ~there).sum()), present=int((exists & there).sum()))

    def __add__(self, other: "SignStatistics") -> "SignStatistics":
        return SignStatistics(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    @property
    def total(self) -> float:
        """All that was sent."""
        return self.absent_up + self.absent_down + self.present_up + self.present_down

    def shares(self) -> dict[str, float]:
        """The four sums, each as a share of them all; zeros if nothing came back."""
        sums = {name: getattr(self, name) for name in ("absent_up", "absent_down", "present_up", "present_down")}
        return {name: value / self.total if self.total else 0.0 for name, value in sums.items()}


@dataclass(frozen=True)
class Trace:
    """What an estimator does on a wire, over some sentences.

    Attributes:
        wire: The wire, such as `"syntax -> semantics"`.
        estimator: The estimator, as it was asked for.
        sentences: How many sentences were looked at.
        loss: The mean loss, weighted as in training.
        signs: How much of the gradient that reaches scores pushes which parts, and which way.
    """

    wire: str
    estimator: str
    sentences: int
    loss: float
    signs: "SignStatistics"


@dataclass(frozen=True)
class SentenceTrace:
    """What an estimator did to the intermediate structure of an annotated sentence.

    Attributes:
        sentence: The sentence, with the annotation the loss compares with.
        loss: The end task's loss, weighted as in training.
        estimator: The estimator and its settings.
        parts: The parts that are in the structure or that a gradient or the projection touched, those with the largest
            gradient first.
        signs: How much of the gradient of all parts pushes whom, and where.

    Example:
        >>> SentenceTrace(Sentence(("Rain",), label=1), 0.5, "StraightThrough(eta=1.0)", ()).loss
        0.5
    """

    sentence: Sentence
    loss: float
    estimator: str
    parts: tuple[PartTrace, ...]
    signs: SignStatistics = SignStatistics()


def trace_sentence(
    parser: Parser,
    sentence: Sentence,
    estimator: AbstractEstimator | Mapping[str, AbstractEstimator] | None = None,
    *,
    task: str = "",
    top: int = 40,
) -> dict[str, SentenceTrace]:
    """What estimators do to the structures that pass the wires of a system, on a training sentence.

    The loss and its gradient are those of a training step, but that no words and units are dropped, and that pruning
    does not spare gold arcs.

    Args:
        parser: The system.
        sentence: A sentence with what the stage learns from. Its tags and lemmas are taken as they are; one without
            gets those of the system's tagger.
        estimator: The estimator to watch on every wire, or those to watch on some of them, by name; the system's own
            if omitted.
        task: The stage whose loss comes back; the last one if omitted.
        top: How many parts to list.

    Returns:
        An account for each wire that the loss comes back through, by the name of the wire.

    Raises:
        ValueError: The system has no such wire, or the sentence not the annotation.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Graph
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))
        >>> told = trace_sentence(fresh(make_config({"data": {"tags": "columns"}}), {"graphs": [rain]}), rain)
        >>> list(told), told["syntax -> semantics"].estimator
        (['syntax -> semantics'], 'Spigot(eta=1.0, polytope=None)')
        >>> all(abs(part.z - part.projected - part.gradient) < 1e-5 for part in told["syntax -> semantics"].parts)
        True
    """
    model, task = parser.model, task or parser.config.end
    stage = model.stages[task]
    if not any(model.stages[wire.source].learns for wire in model.wires[task]):
        raise ValueError(f"{task} reads no structure that is learned, so there is no gradient to show.")
    if stage.annotation.value(sentence) is None:
        raise ValueError(f"{task} learns from a {stage.annotation.noun}, and the sentence has none.")
    if sentence.tags is None or sentence.lemmas is None:
        sentence = with_tags(sentence, parser.read([sentence])[0])
    encoded = parser.encoded(sentence, model.annotations)
    if task not in encoded.gold:
        given, known = stage.annotation.value(sentence), stage.annotation.known()
        raise ValueError(f"The {stage.annotation.noun} of the sentence is {given}, which training has not seen{known}.")
    watched: dict[Wire, Passed] = {}
    with torch.enable_grad():
        batch = collate([encoded], model.annotations).to(model.device)
        loss = model.loss(batch, task, watched=watched, instead=estimator).sum() * _weight(parser, task)
        loss.backward()
    model.zero_grad()
    told = {}
    for wire, (scores, mask, z) in watched.items():
        grad = torch.zeros_like(z) if z.grad is None else z.grad
        source = model.stages[wire.source]
        used = wire.watched_with(estimator)
        explained = model.estimator_on(wire, used).explain(source.structure, scores.detach(), grad, mask)
        pushed = SignStatistics.of(explained.z, explained.gradient, mask)
        told[wire.name] = SentenceTrace(
            sentence, float(loss.detach()), repr(used), _listed(_columns(explained), source, top), pushed
        )
    return told


def trace(
    parser: Parser,
    sentences: Iterable[Sentence],
    estimators: Sequence[str | Mapping[str, Any] | AbstractEstimator] = (),
    *,
    task: str = "",
) -> list[Trace]:
    """What estimators do to your own model: which parts of its structures they push, which way, and how much.

    All estimators see the same losses, at the same parameters, and nothing is dropped. On parts that are not in a
    structure an estimator may push both ways, so that what is not meant cancels out, or up only; then it fills graphs
    with arcs, whatever the sentence says.

    Args:
        parser: A system in which a gradient passes a wire, such as `spigot_nlp.load("runs/mine", precision="float32")`.
        sentences: Sentences with what the stage learns from; those that it could not learn from are left out.
        estimators: Estimators to try: names, tables as a wire has them, or estimators. By default the system's own.
        task: The stage whose loss comes back; the last one if omitted.

    Returns:
        A record for each estimator and each wire that gradients come back by.

    Raises:
        ValueError: The system has no such wire, or no sentence has what the stage learns from.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Graph
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))
        >>> parser = fresh(make_config({"data": {"tags": "columns"}}), {"graphs": [rain]})
        >>> for found in trace(parser, [rain, rain], ["spigot", {"name": "ste", "eta": 0.5}]):
        ...     print(found.wire, found.estimator, found.signs.present)
        syntax -> semantics spigot 4
        syntax -> semantics ste 0.5 4
    """
    model, stage = parser.model, parser.model.stages[task or parser.config.end]
    known = {stage.name: stage.annotation}
    given = [s for s in sentences if stage.usable(s) and stage.name in parser.encoded(s, known).gold]
    if not given:
        raise ValueError(f"no sentence has a {stage.annotation.noun} that {stage.name} could learn from; give some.")
    wires = [wire for wire in model.all_wires() if model.stages[wire.source].learns]
    found: list[Trace] = []
    for asked in estimators or [None]:
        used: AbstractEstimator | dict[str, AbstractEstimator] | None
        if asked is None or isinstance(asked, AbstractEstimator):
            used, name = asked, "its own" if asked is None else repr(asked)
        else:
            settings = estimator_settings(asked if isinstance(asked, str) else dict(asked))
            options = [] if isinstance(asked, str) else [str(value) for key, value in asked.items() if key != "name"]
            name = " ".join([settings.name, *options])
            used = {
                w.name: build_estimator(settings, model.stages[w.source].structure, parser.config.seed) for w in wires
            }
        sums: dict[str, Trace] = {}
        for sentence in given:
            for wire, told in trace_sentence(parser, sentence, used, task=task, top=1).items():
                before = sums.get(wire, Trace(wire, name, 0, 0.0, SignStatistics()))
                signs, loss = before.signs + told.signs, before.loss + told.loss / len(given)
                sums[wire] = Trace(wire, name, before.sentences + 1, loss, signs)
        found += sums.values()
    return found


def _columns(told: Explanation) -> Tensor:
    """What happened to each part of the only structure there is, in the order of the fields of an account."""
    stepped, projected = (told.z if value is None else value for value in (told.stepped, told.projected))
    return torch.stack((told.z, told.grad, stepped, projected, told.gradient), -1)[0].detach()


def _weight(parser: Parser, task: str) -> float:
    """The weight of a stage's loss where several are trained together."""
    config = parser.config
    weight, together = config.training.end_weight, [name for name in config.trained if name in config.supervised]
    if weight is None or len(together) < 2:
        return 1.0
    return weight if task == config.end else 1 - weight


def _listed(values: Tensor, source: AbstractStage, top: int) -> tuple[PartTrace, ...]:
    """The parts where z, grad or projected is not zero, largest gradient first, ties in order of position."""
    touched = (values[..., [0, 1, 3]] != 0).any(-1).nonzero()
    rows = values[touched.unbind(-1)]
    order = rows[:, -1].abs().argsort(descending=True, stable=True)[:top]
    return tuple(
        PartTrace(source.part(place), *row)
        for place, row in zip(touched[order].tolist(), rows[order].tolist(), strict=True)
    )
