"""What of a system has an optimiser of its own."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torch import nn

from spigot_nlp.encoders import AbstractEncoder
from spigot_nlp.values import Optimiser


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
