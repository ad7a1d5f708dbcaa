"""Structures with a decoder of their own as factors of a graph, against brute force."""

import pytest
import torch

import spigot
from spigot.factors import AtLeastOne, AtMostOne, Budget, Member
from tests.spigot import brute


@pytest.mark.parametrize("structure", [spigot.ProjectiveTrees(), spigot.NonProjectiveTrees()])
def test_coloured_trees(structure: spigot.ProjectiveTrees) -> None:
    """A tree of which at most one arc is red, and at least one is blue."""
    torch.manual_seed(3)
    projective = isinstance(structure, spigot.ProjectiveTrees)
    every = brute.trees(structure.mask(torch.tensor(3)), projective=projective, single_root=True)
    arcs = torch.full((4, 4), -1)
    exists = structure.mask(torch.tensor(3))
    arcs[exists] = torch.arange(int(exists.sum()))
    red, blue = [0, 2, 4, 6], [1, 3, 5]
    graph = spigot.FactorGraph(
        int(exists.sum()), [Member(structure, arcs), Budget(red, most=1), AtLeastOne(blue)], exact=True
    )
    flat = every[:, exists].double()
    allowed = flat[(flat[:, red].sum(1) <= 1) & (flat[:, blue].sum(1) >= 1)]
    assert 0 < len(allowed) < len(flat)
    scores = torch.randn(6, int(exists.sum()), dtype=torch.float64)
    solution = graph.solve(scores)
    assert solution.optimal.all()
    assert graph.contains(solution.z).all()
    torch.testing.assert_close(solution.value, (scores @ allowed.T).amax(1), rtol=0, atol=1e-5)
    assert graph.violations(flat[:1])[0] or any((row == flat[0]).all() for row in allowed)


def test_a_chain_follows_the_tree_whose_arcs_it_shares() -> None:
    """Rounding settles the tree first: no search is needed for a member, however early AD3 ends."""
    arcs = torch.tensor([[-1, 0, 1, 2], [-1, -1, 3, 4], [-1, 5, -1, 6], [-1, 7, 8, -1]])
    first, stays, both, other = 9, 10, 11, 12  # of words 2 and 3, which are children of word 1?
    chain = torch.full((2, 3, 2), -1)
    chain[0, 0], chain[1, 0] = torch.tensor([first, 3]), torch.tensor([13, 4])
    chain[1, 1], chain[1, 2] = torch.tensor([stays, other]), torch.tensor([14, both])
    graph = spigot.FactorGraph(
        15, [Member(spigot.ProjectiveTrees(), arcs), Member(spigot.Chains(2), chain)], max_iterations=1
    )
    torch.manual_seed(0)
    solution = graph.solve(torch.randn(50, 15, dtype=torch.float64))
    assert graph.contains(solution.z).all()
    assert not solution.nodes.any()


def test_alignments_and_chains_as_factors() -> None:
    torch.manual_seed(4)
    cells = torch.arange(9).reshape(3, 3)
    graph = spigot.FactorGraph(9, [Member(spigot.Alignments(), cells), AtMostOne([4, 1])], exact=True)
    every = brute.alignments(torch.ones(3, 3, dtype=torch.bool)).flatten(1).double()
    every = every[every[:, 4] + every[:, 1] <= 1]
    scores = torch.randn(5, 9, dtype=torch.float64)
    torch.testing.assert_close(graph.solve(scores).value, (scores @ every.T).amax(1), rtol=0, atol=1e-5)
