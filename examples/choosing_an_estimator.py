"""Choosing an estimator: the same network, trained through the same choice, with four ways back.

Points belong to one of three hidden clusters, and each cluster labels its points by a rule of its own. The network
scores the clusters, chooses one, and lets a classifier of that choice predict the label. Only the label is given.

Things to know when choosing:

- `Pipeline` sends nothing back: the floor, and the right thing when the scorer is already good.
- `StraightThrough` sends the gradient back as it is. Cheap, and ignores what a valid structure looks like.
- `Spigot` projects the step back onto the valid structures. It is not linear in the loss, so losses are summed and its
  step size `eta` matters; it is at home where an intermediate loss also teaches the scorer.
- `StructuredAttention` goes forward with marginals: a true gradient, but no single structure to look at.
"""

import torch
from torch import nn
from torch.nn import functional as F

import spigot

CLUSTERS, SIZE = 3, 15
SEEDS = range(3)  # results differ a good deal from seed to seed: never judge by one


def points(count: int, centres: torch.Tensor, rules: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    cluster = torch.randint(CLUSTERS, (count,))
    place = centres[cluster] + torch.randn(count, SIZE)
    content = torch.randn(count, SIZE)
    label = ((rules[cluster] * content).sum(-1) > 0).float()
    return torch.cat([place, content], -1), label


class Network(nn.Module):
    def __init__(self, estimator: spigot.AbstractEstimator) -> None:
        super().__init__()
        self.scorer = nn.Linear(2 * SIZE, CLUSTERS)
        self.choose = spigot.Argmax(spigot.OneOf(), estimator)
        self.classifiers = nn.Linear(2 * SIZE, CLUSTERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.choose(self.scorer(x)) * self.classifiers(x)).sum(-1)


def accuracy_of(estimator: spigot.AbstractEstimator, seed: int) -> float:
    torch.manual_seed(seed)
    centres, rules = 6 * F.normalize(torch.randn(CLUSTERS, SIZE), dim=-1), torch.randn(CLUSTERS, SIZE)
    x, y = points(2000, centres, rules)
    network = Network(estimator)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(10):
        for rows in torch.randperm(len(x)).split(50):
            # Summed, not averaged: dividing the loss would change the direction of SPIGOT's gradient.
            loss = F.binary_cross_entropy_with_logits(network(x[rows]), y[rows], reduction="sum")
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        x, y = points(1000, centres, rules)
        return ((network(x) > 0) == (y > 0)).float().mean().item()


def main() -> None:
    torch.set_num_threads(1)  # small tensors: more threads only wait for each other
    estimators = (
        spigot.Pipeline(),
        spigot.Spigot(eta=0.1),
        spigot.StraightThrough(),
        spigot.StructuredAttention(),
    )
    results = {}
    for estimator in estimators:
        each = [accuracy_of(estimator, seed) for seed in SEEDS]
        name, kind = type(estimator).__name__, "hard" if estimator.hard else "soft"
        results[name] = sum(each) / len(each)
        print(f"{name:20} {kind} choice   {results[name]:6.1%}   seeds: {', '.join(f'{a:.1%}' for a in each)}")

    floor = results.pop("Pipeline")
    for name, accuracy in results.items():
        assert accuracy > floor + 0.03, f"{name} learnt no better choice than chance"


if __name__ == "__main__":
    main()
