"""How a transformer is asked for the states of subwords."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

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
