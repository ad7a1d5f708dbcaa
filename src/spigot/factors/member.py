"""A structure as a factor."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from spigot._algorithms.factor_tables import FactorKind, Rows
from spigot.factors.factor import Numbers, PlainFactor, whole
from spigot.interface import AbstractStructure


@final
@dataclass(frozen=True, eq=False, repr=False)
class Member(PlainFactor):
    """Some variables, laid out as the parts of a structure, are a member of it: a tree, a chain, a matching.

    Args:
        structure: Any structure of the library, or of yours.
        variables: The variable of each part, in the structure's layout, -1 where there is none; with one axis more, as
            many factors.

    Example:
        A tree over two words, of which the first may not be the root's.

        >>> import spigot, torch
        >>> from spigot.factors import Budget
        >>> arcs = torch.tensor([[-1, 0, 1], [-1, -1, 2], [-1, 3, -1]])      # arcs[head, modifier]
        >>> tree = Member(spigot.ProjectiveTrees(), arcs)
        >>> graph = spigot.FactorGraph(4, [tree, Budget([0], most=0)])
        >>> graph.argmax(torch.tensor([5.0, 0.0, 1.0, 0.0]))
        tensor([0., 1., 0., 1.])
    """

    structure: AbstractStructure
    variables: Numbers

    def __post_init__(self) -> None:
        if not isinstance(self.structure, AbstractStructure):
            raise TypeError(f"Member is given {self.structure!r}; it needs a structure, such as ProjectiveTrees().")
        at, ndim = whole(self.variables, "Member"), self.structure.event_ndim
        if at.ndim not in (ndim, ndim + 1):
            raise ValueError(
                f"Member has variables of shape {at.shape}; {self.structure} has parts along {ndim} axes, so there "
                f"must be {ndim}, or {ndim + 1} for several factors."
            )
        object.__setattr__(self, "at", at if at.ndim == ndim + 1 else at[None])
        self._is(Rows(FactorKind.OUTSIDE, self.at.reshape(len(self.at), -1)))

    at: ClassVar[NDArray[np.int64]]

    def broken(self, row: int) -> str:
        return f"{self._named(row)} must be a member of {self.structure}"
