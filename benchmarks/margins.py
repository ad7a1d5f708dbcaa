"""How `rho` of LPGD should follow the scores: `python -m benchmarks.margins`.

A scorer of 60 independent arcs, trained before and nearly right, most of them far from being chosen; a second stage
learns from the arcs, and sends its gradient back. What is asked is whether the arcs get better or worse by it, at three
scales of the scores. Printed: the F1 of the arcs, and the squared error of the second stage over the variance.
"""

import torch
from torch import Tensor

import spigot
from spigot import LPGD, AbstractEstimator, Box, Oracle, Pipeline, Spigot

SEEDS, SCALES, STEPS = 3, (0.1, 1.0, 10.0), 300
SENTENCES, ARCS, FEATURES, BATCH = 512, 60, 16, 32

ABOVE_ZERO = Oracle(lambda scores, mask: ((scores > 0) & mask).to(scores.dtype), batched=True)
"""Every arc whose score is positive."""


def trial(rule: AbstractEstimator, scale: float, seed: int) -> tuple[float, float]:
    """F1 and error after a training; the learning rate of the scorer goes with its scale."""
    generator = torch.Generator().manual_seed(seed)
    arcs = torch.randn(SENTENCES, ARCS, FEATURES, generator=generator)
    true = _of_length(4.0, generator)
    gold = (arcs @ true > 6).float()
    weight = ((true + _of_length(1.2, generator)) * scale).requires_grad_()
    bias = torch.tensor(-6.0 * scale).requires_grad_()
    wanted = torch.einsum("bn,bnd->bd", gold, arcs) @ torch.randn(FEATURES, generator=generator)
    head = torch.zeros(FEATURES, requires_grad=True)
    optimiser = torch.optim.SGD([{"params": [weight, bias], "lr": 0.02 * scale}, {"params": [head], "lr": 0.02}])
    for _ in range(STEPS):
        chosen = torch.randint(SENTENCES, (BATCH,), generator=generator)
        z = spigot.argmax(arcs[chosen] @ weight + bias, ABOVE_ZERO, rule)
        found = torch.einsum("bn,bnd->bd", z, arcs[chosen]) @ head
        optimiser.zero_grad()
        (0.5 * (found - wanted[chosen]).square()).sum().backward()
        for parameter, share in ((weight, BATCH), (bias, BATCH), (head, 8 * BATCH)):
            assert parameter.grad is not None
            parameter.grad /= share  # here, and not in the loss: see "Not linear in the loss"
        optimiser.step()
    with torch.no_grad():
        z = (arcs @ weight + bias > 0).float()
        f1 = 2 * (z * gold).sum() / (z.sum() + gold.sum()).clamp(min=1)
        error = (torch.einsum("bn,bnd->bd", z, arcs) @ head - wanted).square().mean() / wanted.var()
    return float(f1), float(error)


def _of_length(length: float, generator: torch.Generator) -> Tensor:
    direction = torch.randn(FEATURES, generator=generator)
    return direction * length / direction.norm()


def main() -> None:
    """Print the table."""
    rules: dict[str, AbstractEstimator] = {"Pipeline": Pipeline(), "Spigot": Spigot(0.1, Box(), max_norm=1.0)}
    for rho in (10.0, 100.0, 1000.0, "auto"):
        rules[f"LPGD(rho={rho})"] = LPGD(0.1, rho, Box(), max_norm=1.0)  # pyright: ignore[reportArgumentType]
    print("F1 (error)".ljust(20), *(f"scores x {scale:<8}" for scale in SCALES))
    for name, rule in rules.items():
        cells = []
        for scale in SCALES:
            f1, error = torch.tensor([trial(rule, scale, seed) for seed in range(SEEDS)]).mean(0).tolist()
            cells.append(f"{f1:.3f} ({error:.3f})   ")
        print(name.ljust(20), *cells, flush=True)


if __name__ == "__main__":
    main()
