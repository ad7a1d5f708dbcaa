"""The analysis of two systems: every number by a second, slower way, and an example counted by hand."""

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import (
    bootstrap,
    graph_counts,
    is_punctuation,
    label_counts,
    score_graphs,
    score_trees,
)
from spigot_nlp.evaluation.analysis import Group, analyse
from spigot_nlp.evaluation.heads import Kind

WORDS = ("all", "the", ",", "ships", "went", "home", ".")
ROLES = ("ARG1", "ARG2", "top")
SEEDS = st.integers(0, 2**32)


def answers(seed: int) -> Any:
    """The same few sentences as gold data and two systems see them; heads need not be trees here."""
    dice = random.Random(seed)
    lengths = [dice.randint(1, len(WORDS)) for _ in range(dice.randint(1, 4))]
    sides = [[_annotated(dice, n) for n in lengths] for _ in range(3)]
    # Systems often agree.
    sides[2] = [a if dice.random() < 0.3 else b for a, b in zip(*sides[1:], strict=True)]
    return sides


def _annotated(dice: random.Random, n: int) -> Sentence:
    def arc() -> Arc:
        predicate, argument = dice.sample(range(1, n + 1), 2)
        return Arc(predicate, argument, dice.choice(ROLES))

    heads = tuple(dice.choice([head for head in range(n + 1) if head != m]) for m in range(1, n + 1))
    arcs = {arc() for _ in range(dice.randint(0, 8))} if n > 1 else ()
    return Sentence(WORDS[:n], heads=heads, graph=Graph.of(arcs, dice.sample(range(1, n + 1), dice.randint(0, 1))))


def classified(sides: list[list[Sentence]], seed: int) -> Any:
    dice = random.Random(seed)
    return [[replace(sentence, label=dice.randint(-1, 1)) for sentence in side] for side in sides]


def quick(*sides: Sequence[Sentence], **settings: Any) -> Any:
    """An analysis. What is not there fails the test that asks for it."""
    return analyse(*sides, samples=5, **settings)


def group(analysis: Any, name: str) -> Group:
    (found,) = (group for group in analysis.groups if group.name == name)
    return found


def changes(gold: Sequence[Any], a: Sequence[Any], b: Sequence[Any], skip: bool) -> list[tuple]:
    """Sentence, word, old and new head."""
    found = []
    for k, sentence in enumerate(gold):
        ignored = is_punctuation(sentence) if skip else [False] * len(sentence)
        for m in range(1, len(sentence) + 1):
            old, new = a[k].heads[m - 1], b[k].heads[m - 1]
            if old != new and not ignored[m - 1]:
                found.append((k, m, old, new))
    return found


def naive_kinds(graphs: Sequence[Any], found: list[tuple]) -> dict[str, list[bool]]:
    kinds: dict[str, list[bool]] = {"a": [], "b": [], "c": [], "any": []}
    for k, m, old, new in found:
        joined = [(arc.predicate, arc.argument) for arc in graphs[k].graph.arcs]
        three = ((new, m) in joined, (m, new) in joined, (m, old) in joined)
        for name, value in zip(kinds, (*three, any(three)), strict=True):
            kinds[name].append(value)
    return kinds


def naive_chance(graphs: Sequence[Any], found: list[tuple]) -> dict[str, float]:
    """Every pair of different places is tried as the old and the new head."""
    means: dict[str, list[float]] = {"a": [], "b": [], "c": [], "any": []}
    for k, m, _, _ in found:
        places = [place for place in range(len(graphs[k]) + 1) if place != m]
        tried = [(k, m, *pair) for pair in itertools.permutations(places, 2)]
        for name, values in naive_kinds(graphs, tried).items():
            means[name].append(fmean(values))
    return {name: fmean(values) if values else 0.0 for name, values in means.items()}


@given(SEEDS, st.booleans(), st.sampled_from(["gold", "predicted"]))
@settings(max_examples=30)
def test_head_changes_are_what_a_loop_counts(seed, skip, against):
    gold, a, b = answers(seed)
    found = changes(gold, a, b, skip)
    analysis = quick(gold, a, b, against=against, punctuation=not skip)
    result = analysis.heads
    assert (result.changed, result.judged) == (len(found), len(found))
    assert result.sentences == len({k for k, *_ in found})
    graphs = gold if against == "gold" else b
    kinds = naive_kinds(graphs, found)
    backwards = naive_kinds(graphs, [(k, m, new, old) for k, m, old, new in found])
    chance = naive_chance(graphs, found)
    by_name: dict[str, Kind] = {
        "a": result.to_semantic_head,
        "b": result.to_semantic_modifier,
        "c": result.from_semantic_modifier,
        "any": result.any,
    }
    for name, kind in by_name.items():
        assert kind.count == sum(kinds[name])
        assert kind.share == pytest.approx(fmean(kinds[name]) if found else 0)
        assert kind.reverse == pytest.approx(fmean(backwards[name]) if found else 0)
        assert kind.chance == pytest.approx(chance[name])
    three = [by_name[name].count for name in "abc"]
    assert max(three) <= result.any.count <= sum(three)
    right = Counter((old == gold[k].heads[m - 1], new == gold[k].heads[m - 1]) for k, m, old, new in found)
    assert result.right_to_wrong == right[True, False]
    assert result.wrong_to_right == right[False, True]
    assert result.wrong_to_wrong == right[False, False]


@given(SEEDS)
@settings(max_examples=20)
def test_groups_are_scored_as_the_metrics_score_them(seed):
    sides = gold, a, b = answers(seed)
    analysis = quick(gold, a, b)
    same = [x.heads == y.heads for x, y in zip(a, b, strict=True)]
    chosen = {"all": [True] * len(gold), "same": same, "different": [not value for value in same]}
    assert analysis.split == "trees"
    assert group(analysis, "same").sentences + group(analysis, "different").sentences == len(gold)
    for name, members in chosen.items():
        some = [[s for s, is_in in zip(side, members, strict=True) if is_in] for side in sides]
        found = group(analysis, name)
        assert found.sentences == len(some[0])
        assert found.words == sum(map(len, some[0]))
        if not some[0]:
            assert found.scores == {}
            continue
        for side, answer in (("a", some[1]), ("b", some[2])):
            trees, graphs = score_trees(some[0], answer), score_graphs(some[0], answer)
            wanted = {
                "UAS": trees.uas,
                "exact trees": trees.exact,
                "LF": graphs.labelled.f1,
                "UF": graphs.unlabelled.f1,
                "exact graphs": graphs.exact_labelled,
            }
            assert {"UAS", "exact trees", "exact graphs"} <= found.scores.keys() <= wanted.keys()
            for key, score in found.scores.items():
                assert getattr(score, side) == pytest.approx(wanted[key]), (name, key)
        if "LF" in found.scores:
            again = bootstrap(graph_counts(some[0], some[2]), graph_counts(some[0], some[1]), samples=5)
            score = found.scores["LF"]
            assert (score.difference, score.low, score.high, score.p) == pytest.approx(
                (again.difference, again.low, again.high, again.p)
            )


@given(SEEDS)
@settings(max_examples=20)
def test_graph_changes_add_up(seed):
    gold, a, b = answers(seed)
    analysis = quick(gold, a, b, sample=100)
    found = analysis.graphs
    kept = relabelled = added = removed = 0
    differ = []
    for x, y in zip(a, b, strict=True):
        before, after = {}, {}
        for side, roles in ((x, before), (y, after)):
            for arc in side.graph.arcs:
                roles.setdefault((arc.predicate, arc.argument), set()).add(arc.role)
        number = len(set(x.graph.tops) ^ set(y.graph.tops))
        for pair in before.keys() | after.keys():
            old, new = before.get(pair, set()), after.get(pair, set())
            gone, come = len(old - new), len(new - old)
            both = min(gone, come)
            kept += len(old & new)
            relabelled, removed, added = relabelled + both, removed + gone - both, added + come - both
            number += max(gone, come)
        differ.append(number)
    assert (found.kept, found.relabelled, found.added, found.removed) == (kept, relabelled, added, removed)
    assert found.arcs_a == kept + relabelled + removed == sum(len(s.graph.arcs) for s in a)
    assert found.arcs_b == kept + relabelled + added == sum(len(s.graph.arcs) for s in b)
    assert found.changed == sum(number > 0 for number in differ)
    assert found.per_sentence == pytest.approx(fmean(differ))
    assert sum(one.only_a for one in found.by_role.values()) == relabelled + removed
    assert sum(one.only_b for one in found.by_role.values()) == relabelled + added
    examples = (*analysis.gains, *analysis.losses)
    assert all(example.arcs_changed == differ[example.index] for example in examples)


@given(SEEDS)
@settings(max_examples=20)
def test_breakdowns_are_filters(seed):
    sides = gold, a, b = answers(seed)
    found = {(one.measure, one.by): one for one in quick(*sides).breakdowns}
    wanted = {("UAS", "distance"), ("UAS", "length")}
    assert wanted <= found.keys() <= wanted | {("LF", "distance"), ("LF", "role"), ("LF", "length")}

    def arcs(side: Sequence[Any], distances: range) -> list[Any]:
        return [
            replace(s, graph=Graph.of(arc for arc in s.graph.arcs if abs(arc.predicate - arc.argument) in distances))
            for s in side
        ]

    ranges = {"1": (1, 1), "2": (2, 2), "3-5": (3, 5), "6-10": (6, 10), "11 or more": (11, 99)}
    for row in found["UAS", "distance"].rows:
        low, high = ranges.get(row.name, (0, 0))
        hits = [
            [head == answer for answer in answers]
            for three in zip(*sides, strict=True)
            for m, (head, *answers) in enumerate(zip(*(s.heads for s in three), strict=True), 1)
            if (head == 0 if row.name == "root" else head > 0 and low <= abs(head - m) <= high)
        ]
        assert row.items == len(hits)
        assert (row.a, row.b) == pytest.approx(tuple(map(fmean, zip(*hits, strict=True))))
        assert row.difference == row.b - row.a
    if ("LF", "role") not in found:
        return
    for row in found["LF", "distance"].rows:
        if row.name != "top":
            low, high = ranges[row.name]
            some = [arcs(side, range(low, high + 1)) for side in sides]
            assert row.items == sum(len(s.graph.arcs) for s in some[0])
            assert (row.a, row.b) == pytest.approx(tuple(graph_counts(some[0], side).f1() for side in some[1:]))
    scores = [score_graphs(gold, side) for side in (a, b)]
    by_role = {name: [one.by_label[name].f1 if name in one.by_label else 0.0 for one in scores] for name in ROLES}
    rows = found["LF", "role"].rows
    assert [row.items for row in rows] == sorted((row.items for row in rows), reverse=True)
    # A role may have the name that tops go by; it comes after them.
    tops = [one.tops for one in scores]
    for row in rows:
        pairs = [by_role[row.name]] if row.name != "top" else [by_role["top"], [one.f1 for one in tops]]
        assert any([row.a, row.b] == pytest.approx(pair) for pair in pairs)
    (row,) = found["LF", "length"].rows
    assert (row.name, row.items) == ("1-10", len(gold))
    assert (row.a, row.b) == pytest.approx(tuple(graph_counts(gold, side).f1() for side in (a, b)))


@given(SEEDS)
@settings(max_examples=20)
def test_label_changes_are_a_table(seed):
    sides = gold, a, b = classified(answers(seed), seed)
    analysis = quick(*sides, sample=100)
    found = analysis.labels
    assert found.structure == analysis.split == "graphs"
    assert sum(cell.sentences for cell in found.table) == found.sentences == len(gold)
    assert found.flipped == sum(cell.sentences for cell in found.table if cell.flipped)
    assert found.flipped == found.right_to_wrong + found.wrong_to_right + found.wrong_to_wrong
    for cell in found.table:
        here = [
            (g, x, y)
            for g, x, y in zip(gold, a, b, strict=True)
            if (x.label != y.label) == cell.flipped
            and ((set(x.graph.arcs), x.graph.tops) != (set(y.graph.arcs), y.graph.tops)) == cell.changed
        ]
        assert len(here) == cell.sentences
        if here:
            right, first, second = zip(*here, strict=True)
            assert cell.a == pytest.approx(label_counts(right, first).accuracy())
            assert cell.b == pytest.approx(label_counts(right, second).accuracy())
        else:
            assert cell.a is None
            assert cell.b is None
    assert group(analysis, "all").scores["accuracy"].b == label_counts(gold, b).accuracy()
    assert sorted(e.index for e in analysis.flips) == [k for k in range(len(gold)) if a[k].label != b[k].label]
    put_right = [example for example in analysis.flips if example.b.label == example.label]
    assert tuple(put_right) == analysis.flips[: len(put_right)]
    sizes = [example.arcs_changed for example in analysis.most_changed]
    assert sizes == sorted(sizes, reverse=True)
