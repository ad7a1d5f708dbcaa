"""What an estimator does to the structure inside a system: the step, the projection, and what goes on to the scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

import spigot
from spigot.data.batch import collate, encode
from spigot.data.sentence import Arc, Sentence
from spigot.interface import AbstractEstimator
from spigot.models.parser import Parser, with_tags
from spigot.models.syntax import SyntacticParser


@dataclass(frozen=True)
class PartAccount:
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
        >>> PartAccount(Arc(2, 1, ""), z=1.0, grad=0.5, stepped=0.5, projected=0.75, gradient=0.25).gradient
        0.25
    """

    part: Arc
    z: float
    grad: float
    stepped: float
    projected: float
    gradient: float


@dataclass(frozen=True)
class Account:
    """What an estimator did to the intermediate structure of an annotated sentence.

    Attributes:
        sentence: The sentence, with the annotation the loss compares with.
        loss: The end task's loss, weighted as in training.
        estimator: The estimator and its settings.
        parts: The parts that are in the structure or that a gradient or the projection touched, those with the largest
            gradient first.

    Example:
        >>> Account(Sentence(("Rain",), label=1), 0.5, "StraightThrough(eta=1.0, max_norm=None)", ()).loss
        0.5
    """

    sentence: Sentence
    loss: float
    estimator: str
    parts: tuple[PartAccount, ...]


def account(
    parser: Parser, sentence: Sentence, estimator: AbstractEstimator | None = None, *, top: int = 40
) -> Account:
    """What an estimator does to the intermediate structure of a training sentence.

    The end task's loss and its gradient are those of a training step, but that no words and units are dropped, and
    that pruning does not spare gold arcs.

    Args:
        parser: The system.
        sentence: A sentence with what the end task learns from: a graph for parsing, a label for classification. Its
            tags and lemmas are taken as they are; one without gets those of the system's tagger.
        estimator: The estimator to watch; the system's own if omitted.
        top: How many parts to list.

    Raises:
        ValueError: The system has no intermediate structure, or the sentence not the annotation.

    Example:
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Graph
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import JointParser
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> vocab = Vocab.of([rain])
        >>> told = account(Parser(config, vocab, JointParser(config, vocab)), rain)
        >>> told.estimator
        'Spigot(eta=1.0, polytope=None, max_norm=None)'
        >>> all(abs(part.z - part.projected - part.gradient) < 1e-5 for part in told.parts)
        True
    """
    model, config = parser.model, parser.config
    intermediate = model.intermediate
    if intermediate is None:
        raise ValueError(
            f"system = {config.system!r} learns no intermediate structure, so there is no gradient to show."
        )
    wanted = "graph" if config.task == "parsing" else "label"
    if getattr(sentence, wanted) is None:
        raise ValueError(f"The end task learns from a {wanted}, and the sentence has none.")
    if sentence.tags is None or sentence.lemmas is None:
        sentence = with_tags(sentence, parser.read([sentence])[0])
    encoded = encode(sentence, parser.vocab)
    if wanted == "label" and encoded.label is None:
        raise ValueError(
            f"The label is {sentence.label}; the system knows {', '.join(map(str, parser.vocab.classes))}."
        )
    estimator, batch = estimator or model.estimator, collate([encoded])
    with torch.enable_grad():
        scores, mask = model.evidence(batch)
        scores = scores.detach().requires_grad_()  # some estimators add noise only where a gradient is asked for
        z = spigot.argmax(scores, intermediate.structure, estimator, mask=mask).detach().requires_grad_()
        loss = model.loss_given(batch, z).sum() * _weight(parser)
        (grad,) = torch.autograd.grad(loss, z)
    told = estimator.explain(intermediate.structure, scores.detach(), grad, mask)
    stepped, projected = (told.z if value is None else value for value in (told.stepped, told.projected))
    values = torch.stack((told.z, told.grad, stepped, projected, told.gradient), -1)[0].detach()
    roles = () if isinstance(intermediate, SyntacticParser) else parser.vocab.roles
    return Account(sentence, float(loss.detach()), repr(estimator), _listed(values, roles, top))


def _weight(parser: Parser) -> float:
    """The weight of the end task's loss where both tasks are trained."""
    config = parser.config
    weight = config.training.end_weight
    return weight if weight is not None and config.is_joint and not config.is_latent else 1.0


def _listed(values: Tensor, roles: Sequence[str], top: int) -> tuple[PartAccount, ...]:
    """The parts where z, grad or projected is not zero, largest gradient first, ties in order of position."""
    touched = (values[..., [0, 1, 3]] != 0).any(-1).nonzero()
    rows = values[touched.unbind(-1)]
    order = rows[:, -1].abs().argsort(descending=True, stable=True)[:top]
    return tuple(
        PartAccount(_part(place, roles), *row)
        for place, row in zip(touched[order].tolist(), rows[order].tolist(), strict=True)
    )


def _part(place: Sequence[int], roles: Sequence[str]) -> Arc:
    return Arc(place[0], place[1], roles[place[2] - 1] if len(place) > 2 and place[2] else "")
