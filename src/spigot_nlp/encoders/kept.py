"""What a model that stays as it is makes of sentences that are read again and again."""

from collections.abc import Callable, Iterable, Sequence

from jaxtyping import Float
from torch import Tensor

Forms = tuple[str, ...]
_TOGETHER = 32


class Kept:
    """States of sentences, read when one is first asked for, and kept.

    A model rounds a little otherwise in other company. So sentences are always read in the same groups, neighbours by
    length, whichever of them is asked for first: a training that was interrupted goes on with the same numbers.

    Args:
        sets: Sentences that will be asked for, as sets which are read at different times, if at all.

    Example:
        >>> import torch
        >>> kept = Kept([[("Rain", "fell"), ("Rain",)]])
        >>> kept.of(("Rain",), lambda group: torch.ones(1, len(group), 3, 4)).shape
        torch.Size([1, 2, 4])
        >>> ("Rain", "fell") in kept, ("Snow",) in kept, kept.positions
        (True, False, 5)
    """

    def __init__(self, sets: Iterable[Iterable[Forms]]) -> None:
        self._group: dict[Forms, list[Forms]] = {}
        self._states: dict[Forms, Float[Tensor, "layers n d"]] = {}
        for sentences in sets:
            new = sorted(dict.fromkeys(forms for forms in sentences if forms not in self._group), key=len)
            for start in range(0, len(new), _TOGETHER):
                group = new[start : start + _TOGETHER]
                self._group |= dict.fromkeys(group, group)

    def __contains__(self, forms: Forms) -> bool:
        return forms in self._group

    @property
    def positions(self) -> int:
        """Of all sentences together, each with its root."""
        return sum(len(forms) + 1 for forms in self._group)

    def of(self, forms: Forms, read: Callable[[Sequence[Forms]], Tensor]) -> Float[Tensor, "layers n d"]:
        """The states of a sentence, its root among them, in the memory of the CPU.

        Args:
            forms: Its words.
            read: How states `(layers, some, n, d)` of some sentences are made, padded to the longest.
        """
        if forms not in self._states:
            group = self._group[forms]
            for sentence, states in zip(group, read(group).unbind(1), strict=True):
                self._states[sentence] = states[:, : len(sentence) + 1].cpu().clone()  # without the padding
        return self._states[forms]
