"""Errors that name what was given, what was expected and what to do."""

from typing import Any

import torch
from torch import Tensor

from spigot._runtime.precision import HALF


def require_kind(thing: object, kind: type, name: str, example: str) -> None:
    """Refuse an argument that is something else; a class instead of one of its objects, say.

    Args:
        thing: The argument.
        kind: What it must be an object of.
        name: What the argument is called.
        example: Such an object, as one writes it.

    Example:
        >>> require_kind(3, str, "name", "'pear'")
        Traceback (most recent call last):
        TypeError: name is an object of int; give a str, such as 'pear'.
    """
    if isinstance(thing, kind):
        return
    what = f"the class {thing.__name__}" if isinstance(thing, type) else f"an object of {type(thing).__name__}"
    noun = kind.__name__.removeprefix("Abstract").lower() if kind.__name__.startswith("Abstract") else kind.__name__
    raise TypeError(f"{name} is {what}; give {'an' if noun[0] in 'aeiou' else 'a'} {noun}, such as {example}.")


def check_parts(parts: Tensor, mask: Tensor | None, event_ndim: int, what: str = "scores") -> Tensor:
    """Shapes and dtypes of a part tensor and its mask; values are checked inside the operators.

    Returns:
        The mask, broadcast to the shape of the parts; all True if there was none.
    """
    if not isinstance(parts, Tensor):
        raise TypeError(f"{what} must be a tensor, not {type(parts).__name__}.")
    if parts.dtype not in (torch.float32, torch.float64, *HALF):
        raise TypeError(f"{what} has dtype {parts.dtype}; it must be floating point, e.g. {what}.float().")
    if parts.ndim < event_ndim:
        raise ValueError(f"{what} has shape {tuple(parts.shape)}; its last {event_ndim} axes must be parts.")
    if mask is None:
        return torch.ones_like(parts, dtype=torch.bool)
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask is a {type(mask).__name__}; it must be a torch.bool tensor, True where a part exists.")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask has dtype {mask.dtype}; it must be torch.bool, True where a part exists.")
    if mask.device != parts.device:
        raise ValueError(f"mask is on {mask.device} and {what} on {parts.device}; move one to the other.")
    if mask.shape == parts.shape:
        return mask
    fits = mask.ndim <= parts.ndim and all(
        m == 1 or m == p for m, p in zip(mask.shape[::-1], parts.shape[::-1], strict=False)
    )
    if not fits or mask.shape[mask.ndim - event_ndim :] != parts.shape[parts.ndim - event_ndim :]:
        raise ValueError(f"mask has shape {tuple(mask.shape)} and {what} {tuple(parts.shape)}; they must be equal.")
    return mask.expand_as(parts)


def resolve_mask(structure: Any, scores: Tensor, mask: Tensor | None) -> Tensor:
    """The parts of a structure that exist, spelt out and checked."""
    checked = check_parts(scores, mask, structure.event_ndim)
    possible = structure.full_mask(scores)
    return possible if mask is None else checked & possible


def check_arcs(arcs: Tensor, mask: Tensor | None, what: str = "scores") -> Tensor:
    """As `check_parts`, for `(*batch, n, n)` indexed `[head, modifier]`."""
    mask = check_parts(arcs, mask, 2, what)
    if arcs.shape[-1] != arcs.shape[-2] or arcs.shape[-1] == 0:
        raise ValueError(f"{what} has shape {tuple(arcs.shape)}; arc {what} must be square (*batch, n, n), n >= 1.")
    return mask


def check_labelled_arcs(parts: Tensor, mask: Tensor | None, labels: int | None, what: str = "scores") -> Tensor:
    """As `check_parts`, for `(*batch, n, n, labels)` indexed `[head, modifier, label]`; None: any number."""
    mask = check_parts(parts, mask, 3, what)
    if parts.shape[-2] != parts.shape[-3] or parts.shape[-2] == 0 or parts.shape[-1] == 0:
        raise ValueError(
            f"{what} has shape {tuple(parts.shape)}; labelled arc {what} must be (*batch, n, n, labels), n >= 1 and "
            "labels >= 1."
        )
    if labels is not None and parts.shape[-1] != labels:
        raise ValueError(f"{what} has {parts.shape[-1]} labels in shape {tuple(parts.shape)}; there must be {labels}.")
    return mask


def check_graphs(parts: Tensor, mask: Tensor | None, channels: int | None = None, what: str = "scores") -> Tensor:
    """As `check_parts`, for `(*batch, n, n, channels)`: arcs, with predicates on their diagonal, and what belongs to
    them; None: any number, the arcs at least."""
    mask = check_parts(parts, mask, 3, what)
    fits = parts.shape[-1] > 0 if channels is None else parts.shape[-1] == channels
    if parts.shape[-2] != parts.shape[-3] or parts.shape[-2] == 0 or not fits:
        wanted = "1 + labels" if channels is None else channels
        raise ValueError(f"{what} has shape {tuple(parts.shape)}; it must be (*batch, n, n, {wanted}), n >= 1.")
    return mask


def check_rank(k: int) -> int:
    """How many of the best are wanted."""
    if not isinstance(k, int) or k < 0:
        raise ValueError(f"k is {k!r}; it must be a whole number, zero or more.")
    return k


def check_spans(spans: Tensor, mask: Tensor | None, what: str = "scores", labels: int | None = None) -> Tensor:
    """As `check_parts`, for `(*batch, n, n, labels)` indexed `[first, last, label]`."""
    mask = check_parts(spans, mask, 3, what)
    if spans.shape[-3] != spans.shape[-2] or (labels is not None and spans.shape[-1] != labels):
        wanted = "labels" if labels is None else labels
        raise ValueError(f"{what} has shape {tuple(spans.shape)}; span {what} must be (*batch, n, n, {wanted}).")
    return mask


def check_bounds(minimum: int, maximum: int | None) -> None:
    """How many entries a subset may have: whole numbers, the first not above the second."""
    for name, value in (("minimum", minimum), ("maximum", maximum)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ValueError(f"{name} is {value!r}; it counts entries and must be a whole number, zero or more.")
    if maximum is not None and maximum < minimum:
        raise ValueError(f"minimum is {minimum} and maximum {maximum}; the minimum cannot be the larger one.")


def instance_name(index: int, batch: tuple[int, ...]) -> str:
    """The instance with this flat index, in the words of the caller's batch axes."""
    if not batch:
        return "the instance"
    where = []
    for size in reversed(batch):
        index, here = divmod(index, size)
        where.append(here)
    return f"instance {where[0]}" if len(where) == 1 else f"instance ({', '.join(map(str, reversed(where)))})"


def nan_error(index: int, batch: tuple[int, ...], part: tuple[int, ...], what: str = "scores") -> ValueError:
    """A NaN inside the mask."""
    where = ", ".join(map(str, part))
    return ValueError(f"{what} of {instance_name(index, batch)} are NaN at part [{where}], which the mask says exists.")


def first_part(marked: Tensor, event_ndim: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Flat instance, batch axes and part of the first True. Looks at values: only inside operators and for errors."""
    first = tuple(int(i) for i in marked.nonzero()[0])
    split = marked.ndim - event_ndim
    batch, instance = tuple(marked.shape[:split]), 0
    for size, index in zip(batch, first[:split], strict=True):
        instance = instance * size + index
    return instance, batch, first[split:]


class NoStructureError(ValueError):
    """The mask leaves no structure at all; whoever asks whether there is one catches this and nothing wider."""

    __module__ = "spigot"  # its public place, which tracebacks show


class MissingVerbError(AttributeError, TypeError):
    """A verb that a structure does not have, said in a sentence."""


def missing_verb(structure: object, name: str, why: str, *kinds: type) -> AttributeError:
    """What is raised where a structure has no such attribute; a sentence if structures of other kinds have it."""
    if not any(hasattr(kind, name) for kind in kinds):
        return AttributeError(f"{type(structure).__name__!r} object has no attribute {name!r}")
    return MissingVerbError(
        f"{structure} has no {name}: {why}. Use an estimator or a loss that needs the argmax only, such as Spigot or "
        "structured_hinge, or a structure that has it."
    )


def zero_one(z: Tensor, mask: Tensor, event_ndim: int) -> Tensor:
    """Which instances are 0 or 1 where the mask holds, and 0 elsewhere, `(*batch)`."""
    return ((z == 0) | ((z == 1) & mask)).flatten(z.ndim - event_ndim).all(-1)


def any_violation(messages: list[list[str]], z: Tensor, event_ndim: int) -> Tensor:
    """Which instances break a constraint, `(*batch)`."""
    broken = torch.tensor([bool(several) for several in messages], dtype=torch.bool, device=z.device)
    return broken.reshape(z.shape[: z.ndim - event_ndim])


def headless_error(index: int, batch: tuple[int, ...], word: int) -> NoStructureError:
    """A word that exists without any possible head."""
    return NoStructureError(
        f"word {word} of {instance_name(index, batch)} exists but the mask leaves it no possible head; unmask an arc "
        "into it, or mask its whole row and column if it is padding."
    )


def impossible_error(index: int, batch: tuple[int, ...], structure: str, parts: str = "arcs") -> NoStructureError:
    """A mask that leaves no structure although every word has a head."""
    return NoStructureError(f"the mask of {instance_name(index, batch)} leaves no {structure}; unmask more {parts}.")


def contradiction_error(index: int, batch: tuple[int, ...]) -> NoStructureError:
    """Factors that nothing satisfies."""
    return NoStructureError(
        f"no values suit all factors of {instance_name(index, batch)}: the factors contradict each other, or the mask "
        "leaves too few parts."
    )


def too_few_error(index: int, batch: tuple[int, ...], left: int, minimum: int) -> NoStructureError:
    """A mask that leaves fewer entries than a subset must have."""
    return NoStructureError(
        f"the mask of {instance_name(index, batch)} leaves {left} of the {minimum} entries that a subset needs at "
        "least; unmask more, or mask all of them if the instance is padding."
    )


def no_mass_error(index: int, batch: tuple[int, ...], structure: str) -> ValueError:
    """Nothing to draw from."""
    return ValueError(
        f"every {structure} of {instance_name(index, batch)} has a score of -inf, so that there is none to draw; raise "
        "some scores, or forbid parts by the mask."
    )


def overflow_error(index: int, batch: tuple[int, ...], part: tuple[int, ...], value: float, limit: float) -> ValueError:
    """A score so near to the largest number that sums with it overflow."""
    where = ", ".join(map(str, part))
    return ValueError(
        f"scores of {instance_name(index, batch)} are {value:.3g} at part [{where}], too large to be summed; they must "
        f"be at most {limit:g}. Scale them down."
    )


def infinite_error(index: int, batch: tuple[int, ...], what: str = "points") -> ValueError:
    """Infinities that leave no answer: a point without a nearest point, a sum without an end."""
    return ValueError(f"{what} of {instance_name(index, batch)} are infinite; they must be finite here.")
