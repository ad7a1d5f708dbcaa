"""Second-order parsing: trees and graphs in which neighbouring arcs have a say.

A first-order parser scores arcs one by one. Here a score may also go to a grandparent and its grandchild (g -> h -> m),
to two consecutive children of one head, to two arguments of one predicate, to two predicates of one argument. There is
no quick decoder for that, but a factor graph takes it apart: a tree over the arcs, a small chain for each head, pairs.

The first half is the graphs. The second learns to parse from the kinds of words, with truth by a hidden grammar that
looks at two arcs at a time, and compares a parser that can with one that cannot.
"""

import argparse
import functools
import itertools
import time

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

import spigot
from spigot.factors import AbstractFactor, AtMostOne, ExactlyOne, Implies, Member, Pair

LENGTHS, KINDS = range(3, 6), 4  # words in a sentence, and kinds of words; kind 0 is the root
TABLES = {"arc": 0, "grandparent": 2 * KINDS**2, "sibling": 2 * KINDS**2 + KINDS**3}  # where their weights begin
WEIGHTS = 2 * KINDS**2 + 2 * KINDS**3
TREES = spigot.ProjectiveTrees()


class Names(dict[tuple, int]):
    """Variables by name, such as ("arc", head, modifier): a name that is new gets the next number."""

    def __missing__(self, name: tuple) -> int:
        return self.setdefault(name, len(self))


def first_order(n: int) -> tuple[Names, list[AbstractFactor]]:
    """Trees over n words, and nothing else."""
    names, places = Names(), range(n + 1)
    arcs = [[names["arc", h, m] if m and h != m else -1 for m in places] for h in places]
    return names, [Member(TREES, arcs)]


def second_order(n: int, states: int = LENGTHS.stop) -> tuple[Names, list[AbstractFactor]]:
    """Trees over n words, with grandparents and consecutive siblings. All chains have `states`, more than n."""
    names, factors = first_order(n)
    for h, m in itertools.permutations(range(1, n + 1), 2):
        above = [g for g in range(n + 1) if g not in (h, m)]
        both = [names["grandparent", g, h, m] for g in above]
        factors.append(Pair([names["arc", g, h] for g in above], [names["arc", h, m]] * len(above), both))
        # A word has one head, so that an arc from it has one grandparent: not needed, but the relaxation gets tighter.
        factors.append(ExactlyOne([*both, names["arc", h, m]], negated=[*[False] * len(both), True]))
    sides = [(h, side) for h in range(1, n + 1) for side in (range(h - 1, 0, -1), range(h + 1, n + 1))]
    automata = [head_automaton(names, h, side, states) for h, side in sides if len(side) > 1]
    factors += [Member(spigot.Chains(states), parts) for parts in automata]
    return names, factors


def head_automaton(names: Names, h: int, side: range, states: int) -> np.ndarray:
    """The parts of a chain that walks away from a head. Its state is the last child so far, state 0 if there is none.

    At word m it enters the state of m, the arc, from that of s, the sibling part; or it stays as it is, unscored.
    """
    parts = np.full((len(side), 1 + states, states), -1)
    for t, m in enumerate(side):
        parts[t, 0, t + 1] = names["arc", h, m]
        for i, s in enumerate([h, *side[:t]]):
            parts[t, 0, i] = names["is", h, s, m]
            if t:
                parts[t, 1 + i, t + 1] = names["sibling" if i else "first", h, s, m]
                parts[t, 1 + i, i] = names["stays", h, s, m]
    return parts


def holds(name: tuple, head: list[int]) -> bool:
    """Whether a variable is on in a tree, by the meaning of its name."""
    kind, *words = name
    if kind in ("arc", "grandparent"):
        return all(head[m] == h for h, m in itertools.pairwise(words))
    h, s, m = words
    latest = (s == h or head[s] == h) and all(head[k] != h for k in range(min(s, m) + 1, max(s, m)))
    return latest and (head[m] == h) == (kind in ("sibling", "first"))


@functools.cache
def every_tree(n: int) -> Tensor:
    """All trees over n words as members of the second-order graph, one by one: for few words."""
    count = round(float(TREES.log_count(TREES.mask(torch.tensor(n))).exp()))
    heads = TREES.k_best(torch.zeros(n + 1, n + 1), count)[0].argmax(1).tolist()
    names, _ = second_order(n)
    return torch.tensor([[holds(name, [-1, *head[1:]]) for name in names] for head in heads]).double()


def semantic_graph(n: int, labels: int) -> tuple[Names, list[AbstractFactor]]:
    """Predicates, arcs to their arguments, labels, of which a predicate gives 0 just once, siblings and co-parents."""
    names, factors = Names(), []
    for p in range(n):
        arguments = [a for a in range(n) if a != p]
        arcs = [names["arc", p, a] for a in arguments]
        factors.append(Implies(arcs, output=names["predicate", p]))
        for a, arc in zip(arguments, arcs, strict=True):
            factors.append(ExactlyOne([names["label", p, a, l] for l in range(labels)], output=arc))
        factors.append(AtMostOne([names["label", p, a, 0] for a in arguments]))
        for a, b in itertools.combinations(arguments, 2):
            factors.append(Pair(names["arc", p, a], names["arc", p, b], both=names["siblings", p, a, b]))
            factors.append(Pair(names["arc", a, p], names["arc", b, p], both=names["co-parents", a, b, p]))
    return names, factors


def weight_of(name: tuple, kinds: tuple[int, ...]) -> int:
    """Which weight scores a part: there is one for all words of the same kinds. What nobody scores gets the last."""
    kind, *words = name
    place = int(kind == "arc" and words[0] < words[1])
    for word in words:
        place = place * KINDS + kinds[word]
    return TABLES[kind] + place if kind in TABLES else WEIGHTS


class Sentences:
    """Sentences by their kinds of words, as one order of parser sees them, with the trees of a hidden grammar."""

    def __init__(self, kinds: list[tuple[int, ...]], grammar: Tensor, order: int) -> None:
        self.words = sum(len(one) - 1 for one in kinds)
        self.graphs, slots, gold, arcs = [], [], [], []
        for one in kinds:
            names, factors = (first_order, second_order)[order - 1](len(one) - 1)
            self.graphs.append(spigot.FactorGraph(len(names), factors))
            slots.append(torch.tensor([weight_of(name, one) for name in names]))
            gold.append(true_tree(one, grammar)[: len(names)])
            arcs.append(torch.tensor([name[0] == "arc" for name in names]))
        self.parts = tuple(pad_sequence(each, batch_first=True) for each in (slots, gold, arcs))

    def batch(self, rows: Tensor, **limits: int) -> tuple[spigot.FactorGraphs, Tensor, Tensor, Tensor, Tensor]:
        """Graphs, what exists, weights, trees, what is an arc."""
        graphs = spigot.FactorGraphs([self.graphs[row] for row in rows.tolist()], **limits)
        mask = graphs.mask(torch.tensor([graph.parts for graph in graphs.graphs]))
        return graphs, mask, *(part[rows, : mask.shape[1]] for part in self.parts)


def true_tree(kinds: tuple[int, ...], grammar: Tensor) -> Tensor:
    """The best of all trees under a grammar, with all its parts."""
    names, every = second_order(len(kinds) - 1)[0], every_tree(len(kinds) - 1)
    scores = F.pad(grammar, (0, 1))[[weight_of(name, kinds) for name in names]]
    return every[(every @ scores.double()).argmax()].float()


def train(data: Sentences, epochs: int) -> Tensor:
    weights = torch.zeros(WEIGHTS, requires_grad=True)
    optimiser = torch.optim.Adam([weights], lr=0.1)
    for _ in range(epochs):
        for rows in torch.randperm(len(data.graphs)).split(10):
            graphs, mask, slots, gold, arcs = data.batch(rows, max_iterations=20)  # a good tree will do, while learning
            scores = F.pad(weights, (0, 1))[slots]
            loss = spigot.structured_hinge(scores, gold, graphs, mask=mask, weight=arcs.float()).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return weights.detach()


def evaluate(weights: Tensor, data: Sentences, title: str) -> float:
    """The share of right heads; printed with how many relaxations are trees, and how many trees are proven best."""
    graphs, mask, slots, gold, arcs = data.batch(torch.arange(len(data.graphs)), max_iterations=200)
    began = time.process_time()
    found = graphs.solve(F.pad(weights, (0, 1))[slots], mask)
    taken = (time.process_time() - began) / len(data.graphs)
    assert graphs.contains(found.z, mask).all(), "whether it is the best or not, it is a tree"
    right = float((found.z * gold * arcs).sum()) / data.words
    shares = f"integral {found.integral.float().mean():4.0%}, proven best {found.optimal.float().mean():4.0%}"
    print(f"{title}: heads {right:5.1%}, {shares}, {1000 * taken:5.1f} ms a sentence", flush=True)
    return right


def compare(seed: int, sentences: int, epochs: int) -> list[float]:
    """Both parsers learn from the same sentences, and parse others."""
    torch.manual_seed(seed)
    grammar = torch.randn(WEIGHTS)
    every = [(0, *k) for n in LENGTHS for k in itertools.product(range(1, KINDS), repeat=n)]
    kinds = [every[i] for i in torch.randperm(len(every))[: sentences + 30].tolist()]
    results = []
    for order in (1, 2):
        weights = train(Sentences(kinds[:sentences], grammar, order), epochs)
        results.append(evaluate(weights, Sentences(kinds[sentences:], grammar, order), f"seed {seed}, order {order}"))
    return results


def main() -> None:
    torch.set_num_threads(1)  # small tensors: more threads only wait for each other
    parser = argparse.ArgumentParser(description="Second order against first order, on unseen sentences.")
    for name, default in (("seeds", 1), ("sentences", 50), ("epochs", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    first, second = np.mean([compare(seed, options.sentences, options.epochs) for seed in range(options.seeds)], 0)
    print(f"heads right: {first:.1%} by arcs alone, {second:.1%} with grandparents and siblings")


if __name__ == "__main__":
    main()
