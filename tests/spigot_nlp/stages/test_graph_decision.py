"""Graphs by how likely their labelled arcs are: the kernel against marginals and the argmax of all scores."""

from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot import kernels
from spigot_nlp.annotations.graphs import Graphs
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import Answer
from spigot_nlp.nn.biaffine import WholeSides
from spigot_nlp.nn.quantised import WIDEST, whole_weights
from spigot_nlp.stages.graph_scores import Scored, dense_parts, graph_marginals
from spigot_nlp.stages.graphs import GraphDecision, GraphStage, RoleRules, likely_roles
from spigot_nlp.training.start import build
from tests.spigot_nlp.parsing import corpus, experiment, sentences

pytestmark = pytest.mark.skipif(not kernels.available, reason="there are no kernels")
TAGS = 5


class Case:
    """Scores of roles, arcs and predicates by chance, and which roles there can be."""

    def __init__(self, labels: int, n: int, *, width: int = 12, seed: int = 0, sharp: float = 0.5) -> None:
        torch.manual_seed(seed)
        self.lengths = torch.tensor([n - 1, 0, n // 2, 1])
        self.sides = torch.randn(4, n, width), torch.randn(4, n, width)
        self.weight = sharp * torch.randn(width + 1, labels, width + 1)
        self.predicates, self.arcs = torch.randn(4, n), torch.randn(4, n, n) - 2
        self.tags = torch.randint(TAGS, (4, n))
        self.tags[:, 0] = 0
        self.possible = torch.rand(TAGS, TAGS, labels) < 0.7
        self.possible[1, 2] = False
        self.reach = torch.randint(1, n, (2, TAGS, TAGS))
        self.labels = labels

    def rules(self, deterministic: tuple[int, ...], threshold: float) -> RoleRules:
        bits = (self.possible.long() << torch.arange(self.labels)).sum(-1)
        single = torch.zeros(self.labels, dtype=torch.bool)
        single[list(deterministic)] = True
        return RoleRules(bits, self.reach, single, threshold)

    def found(self, rules: RoleRules) -> Tensor:
        turning = whole_weights(self.weight[:-1].flatten(1).t(), self.weight[-1].flatten())
        sides = WholeSides(*self.sides, turning)
        return likely_roles(sides, self.lengths, self.tags, self.predicates, self.arcs, rules)

    def right(self, structure: spigot.SemanticGraphs, threshold: float) -> tuple[Tensor, Tensor, Tensor]:
        """What parts are worth, which exist, and the best graphs by that."""
        place = torch.arange(self.tags.shape[1])
        offset = place - place.unsqueeze(-1)
        head, argument = self.tags.unsqueeze(-1), self.tags.unsqueeze(-2)
        near = offset.abs() <= self.reach[(offset > 0).long(), head, argument]
        inside = (place <= self.lengths.unsqueeze(-1)) & (self.lengths > 0).unsqueeze(-1)
        pairs = (inside.unsqueeze(-1) & inside.unsqueeze(-2) & (offset != 0) & (place > 0) & near).nonzero()
        one = torch.ones(*self.tags.shape, 1)
        sides = [torch.cat((side, one), -1) for side in self.sides]
        labelled = torch.einsum("bik,hlk,bjh->bijl", sides[0], self.weight, sides[1])
        at = pairs.unbind(-1)
        possible = self.possible[self.tags[at[0], at[1]], self.tags[at[0], at[2]]]
        scored = Scored(self.predicates, pairs, self.arcs[at], labelled[at], possible)
        scores, mask = dense_parts(scored.worth(graph_marginals(scored), threshold), self.lengths)
        return scores, mask, structure.argmax(scores, mask)


def as_parts(roles: Tensor, labels: int) -> Tensor:
    return GraphDecision(Graphs("graph", tuple(f"role {k}" for k in range(labels))), roles).parts()


def system(**settings: Any) -> Parser:
    return build(experiment("spigot", **settings), corpus(16))


@pytest.mark.parametrize("labels", [1, 2, 7, 33, 64])
@pytest.mark.parametrize(("n", "width"), [(3, 5), (9, 12), (26, 33), (40, 8)])
@pytest.mark.parametrize("threshold", [0.05, 0.35])
def test_no_graph_is_worth_more(labels: int, n: int, width: int, threshold: float) -> None:
    case = Case(labels, n, width=width, seed=labels + n)
    deterministic = tuple(range(0, labels, 2))
    structure = spigot.SemanticGraphs(labels, deterministic)
    z = as_parts(case.found(case.rules(deterministic, threshold)), labels)
    scores, mask, best = case.right(structure, threshold)
    assert structure.contains(z, mask).all()
    # Sums of products of twelve bits are near the exact ones; among near equals either may be taken.
    torch.testing.assert_close((z * scores).sum((-1, -2, -3)), (best * scores).sum((-1, -2, -3)), atol=2e-2, rtol=5e-3)


def test_roles_that_come_once_are_assigned() -> None:
    assigned = 0
    for seed in range(20):
        case = Case(3, 12, seed=seed)
        free, single = (case.found(case.rules(some, 0.1)) for some in ((), (0, 1, 2)))
        twice = [(free == role).sum(-1) > 1 for role in range(3)]
        assigned += int(torch.stack(twice).any(0).sum())
        untouched = ~torch.stack(twice).any(0)
        assert torch.equal(free[untouched], single[untouched])
        assert all(((single == role).sum(-1) <= 1).all() for role in range(3))
    assert assigned > 20


def test_it_depends_neither_on_threads_nor_on_the_batch() -> None:
    case, before = Case(9, 21), torch.get_num_threads()
    rules = case.rules((0, 3), 0.2)
    try:
        torch.set_num_threads(1)
        roles = case.found(rules)
        torch.set_num_threads(3)
        assert torch.equal(case.found(rules), roles)
    finally:
        torch.set_num_threads(before)
    size = int(case.lengths[2]) + 1
    alone = Case(9, 21)
    alone.lengths, alone.tags = alone.lengths[2:3], alone.tags[2:3, :size]
    alone.sides = alone.sides[0][2:3, :size], alone.sides[1][2:3, :size]
    alone.predicates, alone.arcs = alone.predicates[2:3, :size], alone.arcs[2:3, :size, :size]
    assert torch.equal(alone.found(rules)[0], roles[2, :size, :size])
    assert (roles[1] == -1).all()
    assert (roles[2, size:] == -1).all()


@pytest.mark.parametrize("what", ["predicates", "arcs", "heads", "dependents"])
def test_what_is_no_number_is_refused(what: str) -> None:
    case = Case(4, 8)
    numbers = {"predicates": case.predicates, "arcs": case.arcs, "heads": case.sides[0], "dependents": case.sides[1]}
    numbers[what][2, 3] = torch.nan
    with pytest.raises(ValueError, match="not numbers"):
        case.found(case.rules((), 0.3))


def test_what_is_not_there_is_refused() -> None:
    case = Case(4, 8)
    case.lengths[0] = 8
    with pytest.raises(ValueError, match="lengths go from 0 to 8; they must be between 0 and 7"):
        case.found(case.rules((), 0.3))
    case = Case(4, 8)
    case.tags[1, 1] = TAGS
    with pytest.raises(ValueError, match="tags go from 0 to 5"):
        case.found(case.rules((), 0.3))
    case = Case(2, 4, width=WIDEST + 1)
    with pytest.raises(ValueError, match=f"{WIDEST} are the most"):
        case.found(case.rules((), 0.3))


@pytest.mark.parametrize("determinism", [True, False])
def test_a_stage_decides_without_scores_of_all_roles(determinism: bool) -> None:
    parser = system(
        semantics__scorer="biaffine",
        semantics__loss="log",
        semantics__decoding="marginals",
        semantics__threshold=0.02,
        semantics__determinism=determinism,
        semantics__pruning__learned=False,
    )
    given = [sentence.without_annotation() for sentence in sentences(12, seed=3)]
    ((order, batch),) = parser.batches(given, tokens=1 << 20)
    assert isinstance(parser.model.decide(batch)["semantics"], Answer)  # single precision has no such way
    parser.model.compute_in("int16")
    answer, decision = parser.model.parse(batch)["semantics"], parser.model.decide(batch)["semantics"]
    assert isinstance(decision, GraphDecision)
    assert answer.evidence is not None
    z, stage = decision.parts(), parser.model.stages["semantics"]
    assert isinstance(stage, GraphStage)
    assert stage.structure.contains(z, answer.evidence.mask).all()
    assert torch.equal(answer.z, z)  # whoever asks for scores gets the same graphs
    best = stage.structure.argmax(*answer.evidence)
    worth, best = ((some * answer.evidence.scores).sum((-1, -2, -3)) for some in (z, best))
    assert float(best.sum()) > 0
    torch.testing.assert_close(worth, best, atol=1e-2, rtol=1e-2)
    lengths = batch.lengths.tolist()
    assert decision.found(lengths) == stage.found(z, None, lengths)
    parsed = list(parser.pipe(given))
    assert [parsed[k].graph for k in order] == [some["graph"] for some in decision.found(lengths)]


@pytest.mark.parametrize("other", ["best", "pruned", "many roles"])
def test_other_graphs_go_the_usual_way(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if other == "many roles":
        monkeypatch.setattr("spigot_nlp.stages.graphs.MOST_ROLES", 1)
    parser = system(
        semantics__scorer="biaffine",
        semantics__loss="log",
        semantics__decoding="best" if other == "best" else "marginals",
        semantics__pruning__learned=other == "pruned",
    )
    parser.model.compute_in("int16")
    ((_, batch),) = parser.batches([sentence.without_annotation() for sentence in sentences(3, seed=3)])
    assert isinstance(parser.model.decide(batch)["semantics"], Answer)
