"""Which trees: the two questions on which all algorithms for them differ."""

from typing import NamedTuple


class TreeKind(NamedTuple):
    """A kind of dependency trees. Operators take its two fields, `*kind`.

    Attributes:
        projective: Whether arcs must not cross.
        single_root: Whether exactly one word hangs on the root, or any number of them.

    Example:
        >>> TreeKind(projective=False, single_root=True).words
        'tree with a single root'
    """

    projective: bool
    single_root: bool

    @property
    def words(self) -> str:
        """What an error calls it."""
        return ("projective tree" if self.projective else "tree") + (" with a single root" if self.single_root else "")
