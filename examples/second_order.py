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

SHORTEST, LONGEST, KINDS = 3, 5, 4  # words in a sentence, and kinds of words; kind 0 is the root
WEIGHTS = 2 * KINDS**2 + 2 * KINDS**3  # of arcs to either side, of grandparents and of siblings
UNSEEN = 40
TREES = spigot.ProjectiveTrees()


class Names(dict[tuple, int]):
    """Variables by name, such as ("arc", head, modifier): a name that is new gets the next number."""

    def __missing__(self, name: tuple) -> int:
        self[name] = number = len(self)
        return number


def first_order(n: int) -> tuple[Names, list[AbstractFactor]]:
    """Trees over n words, and nothing else."""
    names, places = Names(), range(n + 1)
    arcs = [[names["arc", h, m] if m and h != m else -1 for m in places] for h in places]
    return names, [Member(TREES, arcs)]


def second_order(n: int, states: int = LONGEST + 1) -> tuple[Names, list[AbstractFactor]]:
    """Trees over n words, with grandparents and consecutive siblings. All chains have `states`, more than n."""
    names, factors = first_order(n)
    for h, m in itertools.permutations(range(1, n + 1), 2):
        above = [g for g in range(n + 1) if g not in (h, m)]
        both = [names["grandparent", g, h, m] for g in above]
        factors.append(Pair([names["arc", g, h] for g in above], [names["arc", h, m]] * len(above), both))
        # A word has one head, so that an arc from it has one grandparent: not needed, but the relaxation gets tighter.
        factors.append(ExactlyOne([*both, names["arc", h, m]], negated=[*[False] * len(both), True]))
    for h in range(1, n + 1):
        for side in (range(h - 1, 0, -1), range(h + 1, n + 1)):
            if len(side) > 1:
                factors.append(Member(spigot.Chains(states), head_automaton(names, h, side, states)))
    return names, factors


def head_automaton(names: Names, h: int, side: range, states: int) -> np.ndarray:
    """The parts of a chain that walks away from a head. Its state is the last child so far; at first, none, state 0.

    At each word m the chain enters the state of m, which is the arc, coming from that of s, which is the sibling part;
    or m is no child, and it stays as it is. Nobody scores that: these variables only make the chain whole.
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
    if kind == "arc":
        h, m = words
        return head[m] == h
    if kind == "grandparent":
        g, h, m = words
        return head[h] == g and head[m] == h
    h, s, m = words
    latest = s in (h, *(k for k in range(len(head)) if head[k] == h))
    latest &= all(head[k] != h for k in range(min(s, m) + 1, max(s, m)))
    return latest and (head[m] == h) == (kind in ("sibling", "first"))


@functools.cache
def every_tree(n: int) -> Tensor:
    """All trees over n words as members of the second-order graph, one by one: for few words."""
    count = round(float(TREES.log_count(TREES.mask(torch.tensor(n))).exp()))
    heads = TREES.k_best(torch.zeros(n + 1, n + 1), count)[0].argmax(1).tolist()
    names, _ = second_order(n)
    return torch.tensor([[holds(name, [-1, *head[1:]]) for name in names] for head in heads]).double()


def semantic_graph(n: int, labels: int) -> tuple[Names, list[AbstractFactor]]:
    """Graphs over n words: predicates, labelled arcs to their arguments, siblings and co-parents.

    Label 0 is for one argument of a predicate at most.
    """
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


@functools.cache
def graph_of(n: int, order: int) -> tuple[Names, spigot.FactorGraph]:
    names, factors = (first_order, second_order)[order - 1](n)
    return names, spigot.FactorGraph(len(names), factors)


def weight_of(name: tuple, kinds: list[int]) -> int:
    """Which weight scores a part: there is one for all words of the same kinds. The last one is always zero."""
    kind, *words = name
    k = [kinds[word] for word in words]
    if kind == "arc":
        return (int(words[0] < words[1]) * KINDS + k[0]) * KINDS + k[1]
    if kind == "grandparent":
        return 2 * KINDS**2 + (k[0] * KINDS + k[1]) * KINDS + k[2]
    if kind == "sibling":
        return 2 * KINDS**2 + KINDS**3 + (k[0] * KINDS + k[1]) * KINDS + k[2]
    return WEIGHTS


class Sentences:
    """Sentences by their kinds of words, as one order of parser sees them, with the trees of a hidden grammar."""

    def __init__(self, kinds: list[list[int]], grammar: Tensor, order: int) -> None:
        self.words = sum(len(one) - 1 for one in kinds)
        self.graphs, slots, gold, arcs = [], [], [], []
        for one in kinds:
            names, graph = graph_of(len(one) - 1, order)
            self.graphs.append(graph)
            slots.append(torch.tensor([weight_of(name, one) for name in names]))
            gold.append(true_tree(one, grammar)[: len(names)])
            arcs.append(torch.tensor([name[0] == "arc" for name in names]))
        self.slots, self.gold, self.arcs = (pad_sequence(each, batch_first=True) for each in (slots, gold, arcs))
        self.mask = pad_sequence([torch.ones_like(each) for each in arcs], batch_first=True)

    def batch(self, rows: Tensor, **limits: int) -> tuple[spigot.FactorGraphs, Tensor, Tensor, Tensor, Tensor]:
        """Graphs, weights, trees, what exists, what is an arc."""
        graphs = spigot.FactorGraphs([self.graphs[row] for row in rows.tolist()], **limits)
        size = max(graph.parts for graph in graphs.graphs)
        return graphs, *(part[rows, :size] for part in (self.slots, self.gold, self.mask, self.arcs))


def true_tree(kinds: list[int], grammar: Tensor) -> Tensor:
    """The best of all trees under a grammar, with all its parts."""
    names, every = second_order(len(kinds) - 1)[0], every_tree(len(kinds) - 1)
    scores = F.pad(grammar, (0, 1))[[weight_of(name, kinds) for name in names]]
    return every[(every @ scores.double()).argmax()].float()


def train(data: Sentences, epochs: int) -> Tensor:
    weights = torch.zeros(WEIGHTS, requires_grad=True)
    optimiser = torch.optim.Adam([weights], lr=0.1)
    for _ in range(epochs):
        for rows in torch.randperm(len(data.graphs)).split(10):
            graphs, slots, gold, mask, arcs = data.batch(rows, max_iterations=20)  # a good tree will do, while learning
            scores = F.pad(weights, (0, 1))[slots]
            loss = spigot.structured_hinge(scores, gold, graphs, mask=mask, weight=arcs.float()).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return weights.detach()


def evaluate(weights: Tensor, data: Sentences) -> tuple[float, float, float, float]:
    """The share of right heads, of relaxations that are trees, of trees proven best; and how long one takes."""
    graphs, slots, gold, mask, arcs = data.batch(torch.arange(len(data.graphs)), max_iterations=200)
    began = time.process_time()
    found = graphs.solve(F.pad(weights, (0, 1))[slots], mask)
    taken = (time.process_time() - began) / len(data.graphs)
    right = float((found.z * gold * arcs).sum()) / data.words
    return right, float(found.integral.float().mean()), float(found.optimal.float().mean()), taken


def compare(seed: int, sentences: int, epochs: int) -> list[float]:
    """Both parsers on the same sentences; how many heads they get right where they have not been before."""
    torch.manual_seed(seed)
    grammar = torch.randn(WEIGHTS)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (sentences + UNSEEN,)).tolist()
    kinds = [[0, *torch.randint(1, KINDS, (n,)).tolist()] for n in lengths]
    results = []
    for order in (1, 2):
        data, unseen = (Sentences(some, grammar, order) for some in (kinds[:sentences], kinds[sentences:]))
        began = time.process_time()
        weights = train(data, epochs)
        taken = time.process_time() - began
        right, integral, proven, each = evaluate(weights, unseen)
        print(
            f"seed {seed}, order {order}: heads {right:5.1%}, integral {integral:4.0%}, proven best {proven:4.0%}, "
            f"{1000 * each:5.1f} ms a sentence, trained in {taken:.1f} s",
            flush=True,
        )
        results.append(right)
    return results


def main() -> None:
    torch.set_num_threads(1)  # small tensors: more threads only wait for each other
    parser = argparse.ArgumentParser(description="Second order against first order, on unseen sentences.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    each = [compare(seed, options.sentences, options.epochs) for seed in range(options.seeds)]
    first, second = np.mean(each, 0)
    print(f"heads right: {first:.1%} by arcs alone, {second:.1%} with grandparents and siblings")


if __name__ == "__main__":
    main()
