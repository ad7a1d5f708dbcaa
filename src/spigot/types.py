"""Shape aliases, and what projections onto hulls answer with.

Axis names are the same everywhere: `*batch` for any number of leading axes, `n` for tokens with the
root at position 0, `l` for labels, `k` for choices. `*parts` stands for the trailing axes of a structure,
as many as its `event_ndim` says.
"""

from typing import NamedTuple, TypeAlias

from jaxtyping import Bool, Float
from torch import Tensor

Parts: TypeAlias = Float[Tensor, "*batch_and_parts"]
"""One number for each part: scores, a structure z, a point of a polytope, or a gradient."""

Mask: TypeAlias = Bool[Tensor, "*batch_and_parts"]
"""True where a part exists."""

Values: TypeAlias = Float[Tensor, "*batch"]
"""One number for each instance."""

Scales: TypeAlias = Float[Tensor, "*batch_and_ones"]
"""One number for each instance, beside its parts: an axis of size one for each axis of parts."""

Flags: TypeAlias = Bool[Tensor, "*batch"]
"""One truth value for each instance."""

Members: TypeAlias = Float[Tensor, "count *batch_and_parts"]
"""Several structures of each instance: draws, or the best ones."""

MemberValues: TypeAlias = Float[Tensor, "count *batch"]
"""One number for each of several structures of each instance."""

Saved: TypeAlias = tuple[Tensor, ...]
"""What the forward pass of an estimator keeps for its backward pass."""


class PackedSupport(NamedTuple):
    """The structures that make up each projection, and their weights, as ragged arrays.

    Instance `b` owns the structures `offsets[b] : offsets[b + 1]`; structure `t` is non-zero at the flat part indices
    `indices[starts[t] : starts[t + 1]]`, where it has `values`.
    """

    offsets: Tensor
    weights: Tensor
    starts: Tensor
    indices: Tensor
    values: Tensor


class HullResult(NamedTuple):
    """Projections `(batch, parts)`, the duality gap of each, and their support."""

    point: Tensor
    gap: Tensor
    support: PackedSupport
