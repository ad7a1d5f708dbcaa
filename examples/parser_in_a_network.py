"""A parser inside a network, trained by a task that never shows it a tree.

Sentences of made-up words. A hidden grammar says how much each kind of word likes to be the head of each other kind,
and the best projective tree under it is the true tree. The task: label every word, where the right label depends on the
kind of its *head* alone. The network scores arcs, decodes a tree, looks up the head of each word through it (Eq. 7 of
the paper) and predicts the label from what it finds. It is told the labels and nothing else.

To label well it must parse well. We know the true trees, so we can watch it learn to.

On this task SPIGOT finds more of the tree than the straight-through estimator. That is a fact about this task: on the
hidden clusters of `python -m research.latent` it is the other way round, and so it was on a task tried before this one,
in which words had to reproduce a dense vector of their head. Try both on yours, with several seeds.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import spigot

KINDS, LONGEST = 10, 8  # kind 0 is the root
TREES = spigot.ProjectiveTrees()


class Sentences:
    """Words, the arcs that may exist, the true trees and the labels they lead to."""

    def __init__(self, count: int, grammar: Tensor, labels: Tensor) -> None:
        self.kinds = torch.randint(1, KINDS, (count, LONGEST + 1))
        self.kinds[:, 0] = 0
        lengths = torch.randint(4, LONGEST + 1, (count,))
        self.mask = TREES.mask(lengths, LONGEST + 1)
        self.trees = TREES.argmax(arc_scores(grammar, self.kinds), self.mask)
        heads = self.trees.argmax(1)
        self.labels = labels[self.kinds.gather(1, heads)]
        position = torch.arange(LONGEST + 1)
        self.words = (position > 0) & (position <= lengths[:, None])


def arc_scores(table: Tensor, kinds: Tensor) -> Tensor:
    """Scores `[sentence, head, modifier]` from a table `[kind of head, kind of modifier]`."""
    return table[kinds[:, :, None], kinds[:, None, :]]


class Network(nn.Module):
    def __init__(self, estimator: spigot.AbstractEstimator) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(KINDS, KINDS))
        self.parse = spigot.Argmax(TREES, estimator)
        self.label = nn.Linear(KINDS, KINDS)

    def forward(self, kinds: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        z = self.parse(arc_scores(self.table, kinds), mask)
        of_heads = torch.einsum("bij,bik->bjk", z, F.one_hot(kinds, KINDS).float())
        return z, self.label(of_heads)

    def loss(self, data: Sentences, rows: Tensor) -> Tensor:
        """Summed over words and sentences, not averaged: SPIGOT is not linear in the loss."""
        _, logits = self(data.kinds[rows], data.mask[rows])
        words = data.words[rows]
        return F.cross_entropy(logits[words], data.labels[rows][words], reduction="sum")

    @torch.no_grad()
    def evaluate(self, data: Sentences) -> tuple[float, float]:
        """Loss for each word, and how many words have their true head."""
        z, _ = self(data.kinds, data.mask)
        loss = self.loss(data, torch.arange(len(data.kinds))) / data.words.sum()
        return float(loss), float((z * data.trees).sum() / data.words.sum())


def train(estimator: spigot.AbstractEstimator, seed: int) -> tuple[Network, Sentences, list[tuple[float, float]]]:
    torch.manual_seed(seed)
    grammar, labels = torch.randn(KINDS, KINDS), torch.randperm(KINDS)
    data, unseen = Sentences(400, grammar, labels), Sentences(200, grammar, labels)
    network = Network(estimator)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    course = [network.evaluate(unseen)]
    for _ in range(15):
        for rows in torch.randperm(len(data.kinds)).split(20):
            optimizer.zero_grad()
            network.loss(data, rows).backward()
            optimizer.step()
        course.append(network.evaluate(unseen))
    return network, unseen, course


def inspect(network: Network, data: Sentences) -> None:
    """What the parser did with one sentence, and what the task would have it do instead."""
    with torch.no_grad():
        z, _ = network(data.kinds, data.mask)
        scores = arc_scores(network.table, data.kinds)
    assert TREES.contains(z, data.mask).all(), "whatever the scores are, what goes forward is a tree"

    # Without a decoder: each word takes the head it likes best, and the result need not be a tree.
    greedy = spigot.OneOf().argmax(scores.mT, data.mask.mT).mT
    broken = [messages for messages in TREES.violations(greedy, data.mask) if messages]
    print(f"\n{len(broken)} of {len(greedy)} sentences are no tree if each word picks its head alone. The first:")
    print("   " + "; ".join(broken[0]))
    assert broken

    # A sentence with a wrong head, and the gradient that the task sends back through the tree.
    wrong = ((z != data.trees).any(1) & data.words).any(1).nonzero()
    assert len(wrong), "nothing left to learn"
    row = wrong[0]
    leaf = z[row].clone().requires_grad_()
    of_heads = torch.einsum("bij,bik->bjk", leaf, F.one_hot(data.kinds[row], KINDS).float())
    words = data.words[row]
    F.cross_entropy(network.label(of_heads)[words], data.labels[row][words], reduction="sum").backward()
    assert leaf.grad is not None
    account = spigot.Spigot().explain(TREES, scores[row], leaf.grad, data.mask[row])
    moved = account.gradient[0]
    print(f"In sentence {int(row)}, SPIGOT steps {float(account.distance):.2f} outside its polytope, and moves heads:")
    for word in moved.abs().sum(0).nonzero().flatten().tolist():
        old, new = int(moved[:, word].argmax()), int(moved[:, word].argmin())
        true = int(data.trees[row][0, :, word].argmax())
        print(f"   word {word}: {moved[old, word]:.2f} away from {old}, most of it to {new} (the true head is {true})")
    untouched = [word for word in range(1, LONGEST + 1) if words[0, word] and not moved[:, word].any()]
    if untouched:
        print(f"   words {', '.join(map(str, untouched))}: exactly nothing, their head is the best already")


def main() -> None:
    torch.set_num_threads(1)  # small tensors: more threads only wait for each other
    seeds = range(3)
    print("on unseen sentences       before                 after training")
    for estimator in (spigot.Pipeline(), spigot.StraightThrough(), spigot.Spigot()):
        name = type(estimator).__name__
        for seed in seeds:
            network, unseen, course = train(estimator, seed)
            (loss, heads), (later_loss, later_heads) = course[0], course[-1]
            print(
                f"{name:16} seed {seed}   loss {loss:.2f}, heads {heads:4.0%}    "
                f"loss {later_loss:.2f}, heads {later_heads:4.0%}"
            )
            if name == "Pipeline":
                assert later_heads == heads, "nothing came back, so the parser is what it was"
            else:
                assert later_loss < 0.75 * loss
                assert later_heads > heads + 0.1
    inspect(network, unseen)


if __name__ == "__main__":
    main()
