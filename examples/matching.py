"""Learning to rank through a matching.

A shop puts six books on a shelf, the most wanted to the left, by a rule that we do not know. We see the features of the
books, and a blurred photograph of each shelf: what the spine at each place looks like, never which book it is. A scorer
guesses how wanted each book is, a matching of books to places sorts them (a book that is wanted more, times a place
that is seen more, is worth more), and the loss compares pictures. Sorting has no gradient; SPIGOT supplies one, and the
scorer learns the rule of the shop.
"""

import torch

import spigot

torch.manual_seed(0)
books, features, pixels, shelves = 6, 4, 16, 64
matchings = spigot.Matchings()
places = torch.linspace(1, -1, books)  # how much each place is seen

rule = torch.tensor([2.0, -1.0, 0.5, 1.0])
goods = torch.randn(shelves, books, features)
spines = torch.nn.functional.normalize(torch.randn(shelves, books, pixels), dim=-1)
standing = matchings.argmax((goods @ rule).unsqueeze(-1) * places)  # [shelf, book, place]
photograph = standing.mT @ spines + 0.05 * torch.randn(shelves, books, pixels)

scorer = torch.nn.Linear(features, 1, bias=False)
layer = spigot.Argmax(matchings, spigot.Spigot(eta=0.1))
optimizer = torch.optim.Adam(scorer.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=80)


def arrange() -> torch.Tensor:
    """The shelves as the current scorer would fill them."""
    return layer(scorer(goods) * places)


def agreement() -> float:
    """How many books stand where the shop has put them."""
    with torch.no_grad():
        return float((arrange() * standing).sum() / (shelves * books))


before = agreement()
for _ in range(80):
    loss = (arrange().mT @ spines - photograph).square().sum()  # summed, not averaged: SPIGOT is not linear in the loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
after = agreement()
angle = torch.cosine_similarity(scorer.weight.detach()[0], rule, dim=0).clamp(max=1).acos().rad2deg()
print(f"books where the shop has them, without ever being told: {before:.0%} before, {after:.0%} after training")
print(f"angle between the learnt rule and the true one: {angle:.0f} degrees")
assert matchings.contains(arrange()).all(), "every shelf holds every book once, during training as well"
assert before < 0.4
assert after > 0.7

# With the gold arrangements at hand, a loss trains the same scorer directly. There is no likelihood: sums over
# permutations are permanents. A perturbed loss needs the argmax only.
taught = torch.nn.Linear(features, 1, bias=False)
optimizer = torch.optim.Adam(taught.parameters(), lr=0.1)
for step in range(60):
    loss = spigot.fenchel_young(taught(goods) * places, standing, matchings, temperature=0.3, seed=step).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    told = float((matchings.argmax(taught(goods) * places) * standing).sum() / (shelves * books))
print(f"with gold arrangements and a perturbed loss: {told:.0%}")
assert told > 0.9

# The three best arrangements of the first shelf, and how much worse than the best they are.
with torch.no_grad():
    z, values = matchings.k_best(taught(goods[0]) * places, 3)
for arrangement, value in zip(z, values, strict=True):
    order = arrangement.argmax(0).tolist()
    print("books from left to right:", *order, f"({float(value - values[0]):+.3f})")
assert (values.diff() <= 0).all()
