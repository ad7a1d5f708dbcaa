"""A knapsack inside a network.

A shop packs parcels: from eight items it takes the most valuable set that fits the van. We see the items and what the
parcels contained *in total*, never which items went in. A scorer guesses the value of each item from its features, a
0/1 program packs the van, and the loss compares totals. The packing has no gradient; SPIGOT supplies one, and the
scorer learns to value items as the shop does.

SPIGOT projects, and onto these rows the projection is a quadratic program, for a solver that is an extra. Without it,
the projection goes onto the convex hull of the packings, which takes the packing program alone, and more of it.
"""

import torch

import spigot

torch.manual_seed(0)
items, features, parcels = 8, 4, 16

# The rows A z <= b: the van carries at most 10 kg, and at most one of the last two items (they are both fragile).
weight = torch.tensor([2.0, 3.0, 4.0, 5.0, 2.0, 3.0, 4.0, 3.0])
fragile = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
packing = spigot.ZeroOneProgram(A=torch.stack([weight, fragile]), b=torch.tensor([10.0, 1.0]))

# What the shop does: it values an item by a rule that we do not know.
rule = torch.tensor([2.0, -1.0, 0.5, 1.0])
goods = torch.randn(parcels, items, features)
packed = packing.argmax(goods @ rule)
totals = torch.einsum("pi,pif->pf", packed, goods)

scorer = torch.nn.Linear(features, 1, bias=False)
polytope = packing.relaxation
try:
    polytope.project(torch.ones(items))
except ImportError as missing:
    print(missing)
    polytope = spigot.ConvexHull(packing)
layer = spigot.Argmax(packing, spigot.Spigot(eta=0.03, polytope=polytope))
optimizer = torch.optim.Adam(scorer.parameters(), lr=0.4)


def pack() -> torch.Tensor:
    """The sets that the current scorer packs."""
    return layer(scorer(goods).squeeze(-1))


def agreement() -> float:
    """How many decisions about an item are those of the shop."""
    with torch.no_grad():
        return float((pack() == packed).float().mean())


before = agreement()
for _ in range(10):
    z = pack()
    guess = torch.einsum("pi,pif->pf", z, goods)
    loss = (guess - totals).square().sum()  # summed, not averaged: SPIGOT is not linear in the loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
after = agreement()

learnt = scorer.weight.detach().squeeze(0)
similarity = torch.cosine_similarity(learnt, rule, dim=0)
print(f"decisions as the shop takes them: {before:.0%} before, {after:.0%} after training")
print(f"angle between the learnt rule and the true one: {similarity.clamp(max=1).acos().rad2deg():.0f} degrees")

assert packing.contains(pack()).all(), "every parcel fits the van, during training as well"
assert before < 0.75
assert after > 0.85

# What a set breaks, in words: the scales say 12, and both fragile items are in it.
broken = packing.violations(torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0]))
print("packing items 3, 6 and 7:", "; ".join(broken[0]))
assert broken == [["row 0: 12 > 10", "row 1: 2 > 1"]]
