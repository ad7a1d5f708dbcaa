"""A structure of your own, in thirty lines.

The structure: one unbroken span of a sequence. It needs a best member for given scores, a word about what is wrong with
a non-member, and a mask. With these, every estimator works that asks only for an argmax; SPIGOT projects onto the
convex hull. Below it, a network finds a phrase in a sequence that nobody has marked.
"""

import itertools
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

import spigot


@final
@dataclass(frozen=True)
class Spans(spigot.AbstractStructure):
    """One unbroken run of positions, of any length but zero."""

    event_ndim: ClassVar[int] = 1  # the last axis holds the parts

    def argmax(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        mask = self.full_mask(scores) if mask is None else mask
        n = scores.shape[-1]
        position = torch.arange(n)
        spans = torch.stack([(a <= position) & (position < b) for a, b in itertools.combinations(range(n + 1), 2)])
        exists = ~(spans & ~mask.unsqueeze(-2)).any(-1)  # spans without a masked position
        totals = torch.where(spans, scores.unsqueeze(-2), 0.0).sum(-1)
        best = totals.masked_fill(~exists, -torch.inf).argmax(-1)
        return spans[best].to(scores.dtype) * exists.any(-1, keepdim=True)

    def violations(self, z: Tensor, mask: Tensor | None = None) -> list[list[str]]:
        mask = self.full_mask(z) if mask is None else mask.expand_as(z)
        starts = ((z != 0) & (z.roll(1, -1) * (torch.arange(z.shape[-1]) > 0) == 0)).sum(-1).flatten().tolist()
        stray = ((z != 0) & ~mask).any(-1).flatten().tolist()
        wanted = mask.any(-1).flatten().tolist()
        return [
            [f"{found} spans, not {int(some)}"] * (found != some) + ["outside the mask"] * out
            for found, some, out in zip(starts, wanted, stray, strict=True)
        ]

    def mask(self, lengths: Tensor, size: int | None = None) -> Tensor:
        return torch.arange(int(lengths.max()) if size is None else size) < lengths.unsqueeze(-1)

    def full_mask(self, parts: Tensor) -> Tensor:
        return torch.ones_like(parts, dtype=torch.bool)

    @property
    def relaxation(self) -> spigot.ConvexHull:
        return spigot.ConvexHull(self)


# It is right: no span has a higher score, and what is no span is told so.
torch.manual_seed(0)
structure = Spans()
scores = torch.randn(100, 6)
z = structure.argmax(scores)
totals = [scores[:, a:b].sum(-1) for a, b in itertools.combinations(range(7), 2)]
torch.testing.assert_close((z * scores).sum(-1), torch.stack(totals).amax(0))
assert structure.contains(z).all()
print(structure.violations(torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])))

# It is a layer: gradients flow, and the projection has a certificate.
solution = structure.relaxation.solve(scores.double())
print(f"projection onto the hull of all spans: duality gap {solution.gap.max():.0e}")
assert solution.gap.max() < 1e-8

# It learns. Each sequence hides a phrase, whose tokens carry a marker in their last feature; of the phrase we are
# told only the sum of its tokens.
sequences, length, features = 32, 10, 4
tokens = torch.randn(sequences, length, features)
start = torch.randint(0, 7, (sequences, 1))
phrase = ((torch.arange(length) >= start) & (torch.arange(length) < start + 4)).float()
tokens[..., -1] = 0.25 * tokens[..., -1] + phrase
answers = torch.einsum("st,stf->sf", phrase, tokens)

scorer = torch.nn.Linear(features, 1)
optimizer = torch.optim.Adam(scorer.parameters(), lr=0.1)
for _ in range(30):
    z = spigot.argmax(scorer(tokens).squeeze(-1), structure, spigot.Spigot(eta=0.05))
    loss = (torch.einsum("st,stf->sf", z, tokens) - answers).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
z = structure.argmax(scorer(tokens).squeeze(-1).detach())
right = float((z == phrase).float().mean())
print(f"tokens rightly inside or outside the phrase: {right:.0%}")
assert right > 0.9
