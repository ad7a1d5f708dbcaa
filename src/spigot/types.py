"""Shape aliases.

Axis names are the same everywhere: `*batch` for any number of leading axes, `n` for tokens with the
root at position 0, `l` for labels, `k` for choices. `*parts` stands for the trailing axes of a structure,
as many as its `event_ndim` says.
"""

from typing import TypeAlias

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
