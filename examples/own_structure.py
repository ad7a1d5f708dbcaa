"""A structure of your own: one recursion, and every verb of the library.

The structure is one unbroken span of a sequence. Below it, a network finds phrases that nobody marked.
"""

import itertools
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

import spigot


@final
@dataclass(frozen=True)
class Spans(spigot.AbstractDynamicProgram):
    """One unbroken run of positions, of any length but zero."""

    event_ndim: ClassVar[int] = 1  # the last axis holds the parts

    def total(self, values: Tensor, semiring: spigot.Semiring) -> Tensor:
        ending = ended = values[..., 0]
        for value in values.unbind(-1)[1:]:
            ending = semiring.plus(torch.stack((value, semiring.times(ending, value)), -1))  # begin here, or go on
            ended = semiring.plus(torch.stack((ended, ending), -1))
        return ended

    def violations(self, z: Tensor, mask: Tensor | None = None) -> list[list[str]]:
        mask = self.full_mask(z) if mask is None else mask.expand_as(z)
        starts = ((z != 0) & (torch.nn.functional.pad(z, (1, 0))[..., :-1] == 0)).sum(-1).flatten().tolist()
        wrong = (((z != 0) & ~mask) | ((z != 0) & (z != 1))).any(-1).flatten().tolist()
        return [
            [f"{found} spans, not {int(some)}"] * (found != some) + ["not 0 or 1, or outside the mask"] * bad
            for found, some, bad in zip(starts, mask.any(-1).flatten().tolist(), wrong, strict=True)
        ]


if __name__ == "__main__":
    # It is right: the verbs say what the list of all spans says.
    torch.manual_seed(0)
    structure, scores = Spans(), torch.randn(100, 6, dtype=torch.float64)
    place, ends = torch.arange(6), itertools.combinations(range(7), 2)
    spans = torch.stack([(place >= first) & (place < end) for first, end in ends])
    values = scores @ spans.double().T
    z = structure.argmax(scores)
    torch.testing.assert_close((z * scores).sum(-1), values.amax(-1))
    torch.testing.assert_close(structure.log_partition(scores), values.logsumexp(-1))
    torch.testing.assert_close(structure.marginals(scores), values.softmax(-1) @ spans.double())
    torch.testing.assert_close(structure.k_best(scores, 3)[1], values.topk(3).values.T)
    drawn = structure.sample(scores[:1], samples=4000).mean(0)
    assert (drawn - structure.marginals(scores[:1])).abs().max() < 0.05
    print(structure.violations(torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])))

    # It learns. Each sequence hides a phrase, whose tokens carry a marker in their last feature; of the phrase we are
    # told only the sum of its tokens.
    tokens, start = torch.randn(32, 10, 4), torch.randint(0, 7, (32, 1))
    phrase = ((torch.arange(10) >= start) & (torch.arange(10) < start + 4)).float()
    tokens[..., -1] = 0.25 * tokens[..., -1] + phrase
    answers = torch.einsum("st,stf->sf", phrase, tokens)
    scorer = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=0.1)
    for _ in range(30):
        chosen = spigot.argmax(scorer(tokens).squeeze(-1), structure, spigot.Spigot(eta=0.05))
        loss = (torch.einsum("st,stf->sf", chosen, tokens) - answers).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = float((structure.argmax(scorer(tokens).squeeze(-1).detach()) == phrase).float().mean())
    print(f"tokens rightly inside or outside the phrase: {right:.0%}")
    assert right > 0.9
