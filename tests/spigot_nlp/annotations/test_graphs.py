"""What training graphs teach, and which graphs become integers."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from spigot import SemanticGraphs
from spigot_nlp.annotations.graphs import RARE, TOP, Graphs, graph_parts
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from tests.spigot_nlp.parsing import reviews, sentences

ROLES = st.sampled_from(["A", "B", "C", "D"])
ARCS = st.dictionaries(st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda p: p[0] != p[1]), ROLES)
TEXT = sentences(8)
GRAPHS = Graphs.learn("graph", TEXT, None)


def graph_of(arcs: dict[tuple[int, int], str], tops: list[int]) -> Sentence:
    return Sentence(("w",) * 4, graph=Graph.of([Arc(i, j, role) for (i, j), role in arcs.items()], tops))


def settings(rare: int = 0, *, latent: bool = False, roles: int = 4) -> Any:
    """What the annotation looks at in the settings of a stage."""
    return SimpleNamespace(latent=latent, roles=roles, pruning=SimpleNamespace(rare_role=rare))


@given(st.lists(st.tuples(ARCS, st.lists(st.integers(1, 4), max_size=2, unique=True)), max_size=5), st.integers(0, 4))
def test_roles_and_determinism_follow_their_definition(graphs: list[tuple[dict, list[int]]], rare: int) -> None:
    text = [graph_of(arcs, tops) for arcs, tops in graphs]
    found = Graphs.learn("graph", text, settings(rare))
    counts = Counter(role for arcs, _ in graphs for role in arcs.values())
    frequent = sorted(role for role, count in counts.items() if count >= rare)
    some = bool(counts) or any(tops for _, tops in graphs)
    assert found.roles == (TOP,) * some + (*frequent,) + (RARE,) * (len(frequent) < len(counts))
    repeated = {TOP for _, tops in graphs if len(tops) > 1}
    for arcs, _ in graphs:
        uses = Counter((i, role if role in frequent else RARE) for (i, _), role in arcs.items())
        repeated |= {role for (_, role), count in uses.items() if count > 1}
    assert {found.roles[k] for k in found.deterministic} == set(found.roles) - repeated


def test_a_role_that_is_called_like_the_rare_ones_joins_them() -> None:
    text = [graph_of({(1, 2): RARE, (2, 3): "A", (3, 4): "A", (1, 4): RARE}, [1])]
    found = Graphs.learn("graph", text, settings(2))
    assert found.roles == (TOP, "A", RARE)
    assert RARE not in {found.roles[k] for k in found.deterministic}


def test_sentences_without_graphs_bring_no_roles_along() -> None:
    assert Graphs.learn("graph", reviews(5), None) == Graphs("graph")
    assert Graphs().encode(Graph.of([Arc(1, 2, "A")]), Sentence(("a", "b"))) is None


def test_graphs_are_looked_for_under_their_own_name() -> None:
    text = [TEXT[0].put("other", Graph.of([Arc(1, 2, "next")]))]
    assert Graphs.learn("other", text, None).roles == (TOP, "next")


def test_latent_graphs_have_the_roles_they_are_told_to() -> None:
    found = Graphs.learn("graph", TEXT, settings(latent=True, roles=2))
    assert found == Graphs("graph", (TOP, "role 1", "role 2"))


def test_roles_that_training_never_saw_are_rare_or_left_out() -> None:
    strange = Sentence(("a", "b"), graph=Graph.of([Arc(1, 2, "never"), Arc(2, 1, "ARG1")], tops=[1]))
    assert strange.graph is not None
    encoded = GRAPHS.encode(strange.graph, strange)
    assert encoded is not None
    predicates, arcs = encoded
    assert arcs.tolist() == [[0, 1, GRAPHS.role_index[TOP]], [2, 1, GRAPHS.role_index["ARG1"]]]
    assert predicates.tolist() == [True, True, True]
    with_rare = Graphs.learn("graph", TEXT, settings(5))
    assert RARE in with_rare.roles
    encoded = with_rare.encode(strange.graph, strange)
    assert encoded is not None
    assert [1, 2, with_rare.role_index[RARE]] in encoded[1].tolist()


def test_graphs_are_made_such_as_the_models_can_give() -> None:
    graph = Graph.of([Arc(1, 2, "ARG1"), Arc(1, 2, "ARG2"), Arc(2, 2, "ARG1"), Arc(2, 1, "BV")])
    encoded = GRAPHS.encode(graph, Sentence(("a", "b"), graph=graph))
    assert encoded is not None
    assert encoded[1].tolist() == [[1, 2, GRAPHS.role_index["ARG1"]], [2, 1, GRAPHS.role_index["BV"]]]


def test_two_graphs_are_the_same_if_their_arcs_and_tops_are() -> None:
    one, marked = Graph.of([Arc(2, 1, "ARG1")], [2]), Graph.of([Arc(2, 1, "ARG1")], [2], predicates=[1])
    assert one != marked
    assert GRAPHS.same(one, marked)
    assert not GRAPHS.same(one, Graph.of(one.arcs))
    assert not GRAPHS.same(one, Graph.of([Arc(2, 1, "ARG2")], [2]))


def test_gold_parts_are_a_member_of_the_structure() -> None:
    structure = SemanticGraphs(len(GRAPHS.roles), GRAPHS.deterministic)
    encoded = [GRAPHS.encode(sentence.graph, sentence) for sentence in TEXT if sentence.graph is not None]
    gold = GRAPHS.collate([one for one in encoded if one is not None], 1 + max(map(len, TEXT)))
    z = graph_parts(gold, structure, torch.float64)
    assert z.dtype == torch.float64
    assert structure.contains(z, structure.mask(torch.tensor([len(s) for s in TEXT]), z.shape[1])).all()
