"""How a transformer is asked for the states of subwords, and whether what it answers are states at all."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spigot_nlp.batches.pieces import Frame

_LONGER, _SHORTER = 9, 4
"""Subwords of the rows that a model is tried with, signs not counted."""

_asking: ContextVar[bool] = ContextVar("asking", default=False)


def ask(
    model: nn.Module,
    ids: Int[Tensor, "windows width"],
    there: Bool[Tensor, "windows width"] | None,
    *,
    mixed: bool = False,
) -> Sequence[Float[Tensor, "windows width d"]]:
    """States of subwords, without remarks of the library.

    Args:
        model: The transformer.
        ids: The subwords.
        there: Which of them exist; `None` if all do.
        mixed: Whether the states before and after each layer are wanted, and not only the last.

    Example:
        >>> from types import SimpleNamespace
        >>> class Ones(nn.Module):
        ...     def forward(self, input_ids, **_):
        ...         return SimpleNamespace(last_hidden_state=torch.ones(*input_ids.shape, 4))
        >>> [tuple(states.shape) for states in ask(Ones(), torch.zeros(2, 3, dtype=torch.int64), None)]
        [(2, 3, 4)]
    """
    said = _said(model, ids, there, mixed)
    return said.hidden_states if mixed else (said.last_hidden_state,)


def _said(model: nn.Module, ids: Tensor, there: Tensor | None, mixed: bool) -> Any:
    mask = None if there is None else there.long()
    with _unsaid():
        return model(input_ids=ids, attention_mask=mask, output_hidden_states=mixed, return_dict=True)


def check(name: str, model: nn.Module, frame: Frame, words: int, layers: int) -> None:
    """Refuse a transformer whose states cannot be those of words.

    Two rows of subwords are read alone, and together behind one another's padding. There must be a state of each
    subword in each layer, and the same one in any company.

    Args:
        name: What the settings call it.
        model: The transformer, not in training. One without values, on torch's `meta` device, is not tried.
        frame: What stands around subwords, and how many there may be.
        words: Of how many subwords it has vectors.
        layers: How many states a subword should have, one before the first layer.

    Raises:
        ValueError: If it cannot be used.
    """
    rows, device = _rows(frame, words), next(model.parameters()).device
    if not rows or device.type == "meta":
        return
    config: Any = model.config
    kind = f"encoder.model is {name}, of the kind {config.model_type!r}, which"
    widths = [len(row) for row in rows]
    ids = torch.tensor([row + [frame.padding] * (max(widths) - len(row)) for row in rows], device=device)
    there = torch.arange(max(widths), device=device) < torch.tensor(widths, device=device).unsqueeze(1)
    try:
        # Some draw numbers even where nothing is dropped; what is drawn afterwards must not depend on it.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            together = _states(model, ids, there)
            alone = [_states(model, ids[k : k + 1, :width], None) for k, width in enumerate(widths)]
    except MemoryError:
        raise
    except Exception as error:  # what a model raises that needs something else, nobody has written down
        reason = " ".join(str(error).partition("\n")[0].split()).rstrip(".:")
        raise ValueError(f"{kind} does not read subwords alone ({reason}); choose a model of text.") from None
    for found, width in zip((together, *alone), (max(widths), *widths), strict=True):
        if other := [states.shape[1] for states in found if states.shape[1] != width]:
            raise ValueError(
                f"{kind} makes {other[0]} states of {width} subwords in some layer; choose a model that makes one of "
                "each in all."
            )
        if len(found) != layers + 1:  # and the last one again
            raise ValueError(
                f"{kind} gives {len(found) - 1} states of a subword where its settings have {layers}, one before the "
                "first layer; choose a model that gives all."
            )
    if not all(states.isfinite().all() for found in alone for states in found):
        raise ValueError(f"{kind} makes states that are no finite numbers; its weights are damaged.")
    for k, width in enumerate(widths):
        if any(_differ(one[0], both[k, :width]) for one, both in zip(alone[k], together, strict=True)):
            raise ValueError(
                f"{kind} gives a sentence other states beside a longer one, since it reads padding, too; choose a "
                "model that heeds its attention mask."
            )


def _states(model: nn.Module, ids: Tensor, there: Tensor | None) -> list[Tensor]:
    """Those of all layers, and what it says are the last ones."""
    said = _said(model, ids, there, mixed=True)
    return [*(said.hidden_states or ()), said.last_hidden_state]


def _differ(one: Float[Tensor, "n d"], other: Float[Tensor, "n d"]) -> bool:
    """Whether by more than by rounding."""
    least = one.dtype if torch.get_float32_matmul_precision() == "highest" else torch.bfloat16
    error = (one - other).norm(dim=-1).max() / one.norm(dim=-1).max()
    return not error <= torch.finfo(least).eps ** 0.5


def _rows(frame: Frame, words: int) -> list[list[int]]:
    """Two rows of different lengths; none where all that a model can read are of the same."""
    signs = {*frame.before, *frame.after, frame.padding}
    usual = [k for k in range(0, words, max(1, words // 50)) if k not in signs]
    longer = min(_LONGER, frame.room)
    shorter = min(_SHORTER, longer - 1)
    if not usual or not (shorter or frame.before or frame.after):
        return []
    content = (usual * longer)[:longer]
    return [[*frame.before, *content[:count], *frame.after] for count in (longer, shorter)]


class _Remarks(logging.Filter):
    """Nothing but errors of the library while a model of it is asked, and by whom it is."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _asking.get() or record.levelno >= logging.ERROR


_REMARKS = _Remarks()


@contextlib.contextmanager
def _unsaid() -> Iterator[None]:
    """Without remarks of `transformers`, such as that it pads by itself; other threads still hear theirs."""
    for handler in logging.getLogger("transformers").handlers:
        handler.addFilter(_REMARKS)
    token = _asking.set(True)
    try:
        yield
    finally:
        _asking.reset(token)
