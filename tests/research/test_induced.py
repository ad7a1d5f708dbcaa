"""Induced structures: every number by a second, slower way, and random trees against all trees."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from research.latent.induced import (
    Profile,
    changed,
    describe,
    flat,
    left_branching,
    random_trees,
    right_branching,
)
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import score_graphs, score_trees
from tests.spigot import brute

WORDS = ("all", "the", "ships", "went", "home", "again")


def tree(*heads: int) -> Sentence:
    return Sentence(WORDS[: len(heads)], heads=heads)


def graph(n: int, arcs: Sequence[tuple[int, int, str]], tops: Sequence[int] = ()) -> Sentence:
    return Sentence(WORDS[:n], graph=Graph.of([Arc(*arc) for arc in arcs], tops))


def every_tree(n: int) -> list[tuple[int, ...]]:
    """All projective trees with a single root."""
    mask = ~torch.eye(n + 1, dtype=torch.bool)
    mask[:, 0] = False
    z = brute.trees(mask, projective=True, single_root=True)
    return [tuple(heads) for heads in z[:, :, 1:].argmax(1).tolist()]


@st.composite
def tree_lists(draw: st.DrawFn, lists: int = 2) -> list[list[Sentence]]:
    """The same sentences with several lists of trees, not all of them projective, nor with a single root."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    found: list[list[Sentence]] = [[] for _ in range(lists)]
    for n in lengths:
        order = draw(st.permutations(range(1, n + 1)))
        for answers in found:
            heads = [0] * n
            for place, word in enumerate(order):
                heads[word - 1] = draw(st.sampled_from([0, *order[:place]]))
            answers.append(tree(*heads))
    return found


@st.composite
def graph_lists(draw: st.DrawFn, lists: int = 2) -> list[list[Sentence]]:
    found: list[list[Sentence]] = [[] for _ in range(lists)]
    for n in draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)):
        pairs = [(i, j) for i in range(1, n + 1) for j in range(1, n + 1) if i != j]
        for answers in found:
            roles = draw(st.lists(st.sampled_from(["", "ARG1", "ARG2"]), min_size=len(pairs), max_size=len(pairs)))
            tops = draw(st.sets(st.integers(1, n)))
            arcs = [(i, j, role) for (i, j), role in zip(pairs, roles, strict=True) if role]
            answers.append(graph(n, arcs, sorted(tops)))
    return found


def test_chains() -> None:
    assert left_branching(0) == right_branching(0) == ()
    assert left_branching(1) == right_branching(1) == (0,)
    assert left_branching(3) == (2, 3, 0)
    assert right_branching(3) == (0, 1, 2)
    for wrong in (left_branching, right_branching, flat, lambda n: random_trees([n])):
        with pytest.raises(ValueError, match="a tree over -1 words"):
            wrong(-1)


def test_stars() -> None:
    assert flat(0) == ()
    assert flat(1) == (0,)
    assert flat(3) == (0, 1, 1)
    assert flat(3, centre=2) == (2, 0, 2)
    with pytest.raises(ValueError, match="centre is 4; it must be one of the words 1 to 3"):
        flat(3, centre=4)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_random_trees_are_uniform(n: int) -> None:
    possible = every_tree(n)
    assert len(possible) == math.comb(3 * n - 2, n - 1) // n
    draws = 1000 * len(possible)
    found = Counter(random_trees([n] * draws, seed=n))
    assert found.keys() == set(possible)
    chi_squared = sum((found[heads] - 1000) ** 2 / 1000 for heads in possible)
    freedom = len(possible) - 1
    assert chi_squared <= freedom + 4 * math.sqrt(2 * freedom)


@given(st.lists(st.integers(0, 30), max_size=5), st.integers(0, 2**40))
def test_random_trees_are_projective_trees_with_a_single_root(lengths: list[int], seed: int) -> None:
    found = random_trees(lengths, seed)
    assert found == random_trees(lengths, seed)
    assert [len(heads) for heads in found] == lengths
    for heads in filter(None, found):
        head = dict(enumerate(heads, 1))
        assert heads.count(0) == 1
        assert not brute.crossings(head)
        for word in head:
            path = list(itertools.islice(iterate(head, word), len(heads) + 1))
            assert 0 in path


def iterate(head: dict[int, int], word: int) -> Any:
    while True:
        yield (word := head.get(word, 0))


def test_random_trees_may_be_long_and_depend_on_the_seed() -> None:
    assert len(random_trees([20_000])[0]) == 20_000
    assert random_trees([9] * 5, 1) != random_trees([9] * 5, 2)


@given(tree_lists())
def test_agreement_of_trees_is_the_attachment_score(lists: list[list[Sentence]]) -> None:
    answer, gold = lists
    induced = describe(answer, gold, seed=3)
    assert induced.field == "heads"
    assert induced.answer.agreement["gold"] == pytest.approx(score_trees(gold, answer).uas)
    assert induced.others["gold"].agreement["answer"] == induced.answer.agreement["gold"]
    trivial = {
        "left": [left_branching(len(sentence)) for sentence in answer],
        "right": [right_branching(len(sentence)) for sentence in answer],
        "flat": [flat(len(sentence)) for sentence in answer],
        "random": random_trees(map(len, answer), 3),
    }
    for name, trees in trivial.items():
        sentences = [replace(sentence, heads=heads) for sentence, heads in zip(answer, trees, strict=True)]
        assert induced.answer.agreement[name] == pytest.approx(score_trees(sentences, answer).uas)
        assert induced.others[name].agreement["gold"] == pytest.approx(score_trees(gold, sentences).uas)


@given(graph_lists())
def test_agreement_of_graphs_is_unlabelled_f1(lists: list[list[Sentence]]) -> None:
    answer, gold = lists
    induced = describe(answer, gold)
    assert induced.field == "graph"
    assert induced.answer.agreement["gold"] == pytest.approx(score_graphs(gold, answer).unlabelled.f1)


@given(tree_lists(lists=1))
def test_shape_of_trees_by_hand(lists: list[list[Sentence]]) -> None:
    (answer,) = lists
    profile = describe(answer).answer
    heads = [(word, head) for sentence in answer for word, head in enumerate(sentence.heads or (), 1)]
    spans = [abs(word - head) for word, head in heads if head]
    offsets = Counter(str(head - word) if head else "root" for word, head in heads)
    assert profile.arcs_per_word == 1
    assert profile.root_share == pytest.approx(sum(head == 0 for _, head in heads) / len(heads))
    assert profile.arc_length == pytest.approx(sum(spans) / max(1, len(spans)))
    assert profile.entropy == pytest.approx(
        -sum(count / len(heads) * math.log2(count / len(heads)) for count in offsets.values())
    )
    depths = [max(depth(sentence.heads or (), word) for word in range(1, len(sentence) + 1)) for sentence in answer]
    assert profile.depth == pytest.approx(sum(depths) / len(depths))


def depth(heads: tuple[int, ...], word: int) -> int:
    return 0 if word == 0 else 1 + depth(heads, heads[word - 1])


@given(tree_lists(lists=1) | graph_lists(lists=1))
def test_predictable_and_distinct_by_leaving_one_out(lists: list[list[Sentence]]) -> None:
    (answer,) = lists
    profile = describe(answer).answer
    right, words, new, pairs = 0.0, 0, 0, 0
    for i, sentence in enumerate(answer):
        others = [other for j, other in enumerate(answer) if j != i and len(other) == len(sentence)]
        for word in range(1, len(sentence) + 1) if others else ():
            votes = Counter(heads_of(other, word) for other in others)
            best = [heads for heads, count in votes.items() if count == max(votes.values())]
            right += (heads_of(sentence, word) in best) / len(best)
            words += 1
        earlier = [other for other in answer[:i] if len(other) == len(sentence)]
        pairs += bool(earlier)
        new += bool(earlier) and all(
            (other.heads, other.graph) != (sentence.heads, sentence.graph) for other in earlier
        )
    assert profile.predictable == pytest.approx(right / max(words, 1))
    assert profile.distinct == pytest.approx(new / max(pairs, 1))


def heads_of(sentence: Sentence, word: int) -> frozenset[int]:
    if sentence.graph is None:
        return frozenset((sentence.heads or ())[word - 1 : word])
    tops = {0} if word in sentence.graph.tops else set()
    return frozenset(tops | {arc.predicate for arc in sentence.graph.arcs if arc.argument == word})


def test_trivial_trees_are_recognised() -> None:
    answer = [tree(2, 3, 0), tree(0, 1, 2, 3), tree(2, 0, 2, 2), tree(0, 1, 1), tree(2, 0), tree(0)]
    profile = describe(answer).answer
    assert (profile.left, profile.right, profile.flat) == (0.25, 0.25, 0.5)
    assert describe([tree(2, 0), tree(0)]).answer.left == 0  # too short to tell
    many_roots = describe([tree(0, 0, 0)]).answer
    assert (many_roots.flat, many_roots.depth, many_roots.root_share, many_roots.arc_length) == (0, 1, 1, 0)


def test_trivial_structures_have_their_own_numbers() -> None:
    others = describe([tree(2, 0, 2, 3, 3)] * 4).others
    assert others["left"].left == others["right"].right == 1
    assert others["left"].agreement["right"] == 0
    assert others["left"].predictable == others["right"].predictable == 1
    assert others["left"].distinct == 0
    assert (others["flat"].flat, others["flat"].depth) == (1, 2)
    assert others["right"].depth == 5


def test_shape_of_a_graph_by_hand() -> None:
    sentence = graph(5, [(2, 1, "ARG1"), (2, 5, "ARG2"), (4, 5, "ARG1"), (5, 2, "ARG1")], [2])
    profile = describe([sentence]).answer
    assert profile.depth == 2  # root, 2, then 1 and 5; word 4 cannot be reached
    assert profile.arc_length == (1 + 3 + 1 + 3) / 4
    assert profile.root_share == 0.2
    assert profile.arcs_per_word == 1
    assert profile.entropy == pytest.approx(math.log2(5))
    assert describe([graph(3, [])]).answer.depth == 0


def test_a_graph_may_be_a_chain() -> None:
    profile = describe([graph(3, [(2, 1, "ARG1"), (3, 2, "ARG2")], [3])]).answer
    assert (profile.left, profile.agreement["left"], profile.agreement["right"]) == (1, 1, 0)


@given(graph_lists(lists=1), st.integers(0, 99))
def test_random_graphs_are_of_the_size_of_the_answer(lists: list[list[Sentence]], seed: int) -> None:
    induced = describe(lists[0], seed=seed)
    random = induced.others["random"]
    assert random.arcs_per_word == induced.answer.arcs_per_word
    assert random.root_share == induced.answer.root_share
    assert induced == describe(lists[0], seed=seed)


def test_random_graphs_join_any_two_words() -> None:
    """Two of the twelve arcs are in the answer: two more at random are among them in one sixth of all cases."""
    answer = [graph(4, [(1, 2, "ARG1"), (4, 2, "ARG2")])] * 3000
    random = describe(answer).others["random"]
    assert random.agreement["answer"] == pytest.approx(1 / 6, abs=0.02)
    assert random.distinct == pytest.approx((12 * 11 - 1) / 2999)  # all pairs of arcs, with either order of the roles


@given(tree_lists())
def test_changed_heads(lists: list[list[Sentence]]) -> None:
    before, after = lists
    assert changed(before, after) == pytest.approx(1 - score_trees(before, after).uas)
    assert changed(before, after) == changed(after, before)
    assert changed(before, before) == 0


def test_changed_arcs() -> None:
    before = graph(4, [(2, 1, "ARG1"), (2, 3, "ARG2"), (4, 1, "ARG1")], [2])
    same = replace(before)
    assert changed([before], [same]) == 0
    assert changed([before], [graph(4, [(2, 1, "ARG1"), (2, 3, "ARG3"), (4, 1, "ARG1")], [2])]) == 0.25
    assert changed([before], [graph(4, [(2, 1, "ARG1"), (2, 3, "ARG2")], [2])]) == 0.25
    assert changed([before], [graph(4, [(2, 1, "ARG1"), (2, 3, "ARG2"), (4, 1, "ARG1")], [4])]) == 2 / 5
    assert changed([before], [graph(4, [])]) == 1
    assert changed([graph(4, [])], [graph(4, [])]) == 0
    assert changed([], []) == 0


@given(graph_lists())
def test_changed_arcs_by_pairs(lists: list[list[Sentence]]) -> None:
    before, after = lists
    tables = [
        {
            **{
                (i, arc.predicate, arc.argument): arc.role
                for i, s in enumerate(part)
                if s.graph
                for arc in s.graph.arcs
            },
            **{(i, 0, top): "top" for i, s in enumerate(part) if s.graph for top in s.graph.tops},
        }
        for part in (before, after)
    ]
    union = tables[0].keys() | tables[1].keys()
    differ = [key for key in union if tables[0].get(key) != tables[1].get(key)]
    assert changed(before, after) == pytest.approx(len(differ) / max(1, len(union)))


def test_numbers_are_ready_for_json() -> None:
    induced = describe([tree(2, 0, 2)], [tree(0, 1, 2)], {"parser": [tree(2, 3, 0)]})
    written = json.loads(json.dumps(asdict(induced)))
    assert list(written["others"]) == ["left", "right", "flat", "random", "gold", "parser"]
    assert list(written["answer"]["agreement"]) == ["left", "right", "flat", "random", "gold", "parser"]
    assert list(written["others"]["gold"]["agreement"]) == ["answer", "left", "right", "flat", "random", "parser"]
    assert all(isinstance(value, float) for key, value in written["answer"].items() if key != "agreement")


def test_nothing_to_describe() -> None:
    induced = describe([])
    assert (induced.sentences, induced.words) == (0, 0)
    assert induced.answer == Profile(dict.fromkeys(["left", "right", "flat", "random"], 0.0), *[0.0] * 10)


def test_sentences_with_both_need_to_say_which() -> None:
    both = replace(tree(2, 0), graph=Graph.of([], [1]))
    with pytest.raises(ValueError, match="have heads and graphs; say which"):
        describe([both])
    assert describe([both], field="graph").answer.arcs_per_word == 0.5
    assert describe([both], field="heads").answer.arcs_per_word == 1
    assert changed([both], [replace(both, heads=(0, 1))], field="graph") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sentences": [tree(2, 0), Sentence(("rain",), id="s2")]}, r"sentence 2 \(s2\) of the answer has no heads"),
        ({"gold": []}, "the answer has 1 sentences, the gold 0"),
        ({"gold": [Sentence(("Snow", "fell"), heads=(2, 0))]}, "sentence 1 is 'all the' in the answer and 'Snow fell'"),
        ({"gold": [graph(2, [])]}, "sentence 1 of the gold has no heads"),
        (
            {"references": {"random": [tree(2, 0)]}},
            "a reference is called 'random'; answer, left, right, flat, random are",
        ),
        ({"gold": [tree(2, 0)], "references": {"gold": [tree(2, 0)]}}, "a reference is called 'gold'"),
        ({"field": "tree"}, "field is 'tree'; it must be 'heads' or 'graph'"),
    ],
)
def test_errors_say_what_is_wrong(arguments: dict[str, Any], message: str) -> None:
    request: dict[str, Any] = {"sentences": [tree(2, 0)], **arguments}
    with pytest.raises(ValueError, match=message):
        describe(**request)


def test_changed_wants_the_same_sentences() -> None:
    with pytest.raises(ValueError, match="the first answer has 1 sentences, the second answer 2"):
        changed([tree(2, 0)], [tree(2, 0)] * 2)
    with pytest.raises(ValueError, match="sentence 1 of the second answer has no heads"):
        changed([tree(2, 0)], [Sentence(WORDS[:2])])
