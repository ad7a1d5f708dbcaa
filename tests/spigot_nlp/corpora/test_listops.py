"""ListOps: values and trees by a second algorithm, sizes by enumeration, and requests that cannot be met."""

import hashlib
import itertools
import random
import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import spigot
from spigot_nlp.corpora.listops import (
    OPERATORS,
    _Grammar,  # pyright: ignore[reportPrivateUsage]
    _Shape,  # pyright: ignore[reportPrivateUsage]
    listops,
    splits,
    tree_of,
    value,
)
from spigot_nlp.data.sentence import Sentence

CORPUS = listops(1500, seed=4)


def depth(sentence: Sentence) -> int:
    levels = itertools.accumulate((form[0] == "[") - (form == "]") for form in sentence.forms)
    return max(levels)


def shapes(deepest: int, arguments: range) -> Iterator[_Shape]:
    """Every bracketing of at most this depth."""
    yield ()
    if deepest:
        below = list(shapes(deepest - 1, arguments))
        for k in arguments:
            yield from itertools.product(below, repeat=k)


def words(shape: _Shape) -> int:
    return 2 + sum(map(words, shape)) if shape else 1


def nesting(shape: _Shape) -> int:
    return 1 + max(map(nesting, shape)) if shape else 0


def spelled(shape: _Shape, operators: int) -> int:
    """How many expressions have this shape."""
    ways = operators if shape else 10
    for argument in shape:
        ways *= spelled(argument, operators)
    return ways


def test_values_by_hand() -> None:
    cases = {
        "7": 7,
        "[MIN 4 2 9 ]": 2,
        "[MAX 4 2 9 ]": 9,
        "[SM 4 2 9 ]": 5,
        "[MED 4 2 9 ]": 4,
        "[MED 4 2 9 7 ]": 5,
        "[MED 1 2 ]": 1,
        "[MAX 2 9 [MIN 4 7 ] 0 ]": 9,
        "[SM [SM 9 9 ] [MAX [MIN 3 1 ] 0 ] 5 ]": 4,
    }
    for text, result in cases.items():
        assert value(text.split()) == result, text


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_operators_are_those_of_the_statistics_module(digits: list[int]) -> None:
    text = [str(digit) for digit in digits]
    assert value(["[MIN", *text, "]"]) == min(digits)
    assert value(["[MAX", *text, "]"]) == max(digits)
    assert value(["[SM", *text, "]"]) == sum(digits) % 10
    assert value(["[MED", *text, "]"]) == int(statistics.median(digits))


def test_labels_and_trees_agree_with_the_brackets() -> None:
    for sentence in CORPUS:
        assert sentence.label == value(sentence.forms)
        assert sentence.heads == tree_of(sentence.forms)


def test_trees_are_projective_with_a_single_root() -> None:
    trees = spigot.ProjectiveTrees()
    mask = trees.mask(torch.tensor([len(sentence) for sentence in CORPUS]))
    z = torch.zeros(mask.shape)
    for number, sentence in enumerate(CORPUS):
        z[number, list(sentence.heads or ()), range(1, len(sentence) + 1)] = 1
    assert trees.contains(z, mask).all()


def test_operators_head_everything() -> None:
    for sentence in CORPUS:
        assert sentence.heads is not None
        assert sentence.tags is not None
        assert sentence.heads[0] == 0
        assert sentence.heads.count(0) == 1
        assert {sentence.tags[head - 1] for head in sentence.heads if head} == {"OP"}
        closing = Counter(
            head for head, tag in zip(sentence.heads, sentence.tags, strict=True) if tag == "CLOSE" and head
        )
        assert set(closing.values()) == {1}
        assert len(closing) == sentence.tags.count("OP")
        assert sentence.lemmas == sentence.forms


@given(
    seed=st.integers(0, 2**40),
    low=st.integers(4, 30),
    width=st.integers(0, 20),
    depths=st.tuples(st.integers(1, 4), st.integers(0, 2)),
    arguments=st.integers(2, 6),
)
def test_lengths_depths_and_arguments_are_kept_or_the_request_is_refused(
    seed: int, low: int, width: int, depths: tuple[int, int], arguments: int
) -> None:
    shallow, deep = depths[0], sum(depths)
    try:
        found = listops(
            6,
            seed=seed,
            min_length=low,
            max_length=low + width,
            min_depth=shallow,
            max_depth=deep,
            max_arguments=arguments,
        )
    except ValueError as error:
        assert "no expression of depth" in str(error)  # noqa: PT017 - either outcome is right, for its own arguments
        return
    for sentence in found:
        assert low <= len(sentence) <= low + width
        assert shallow <= depth(sentence) <= deep
        heads = [head for head, tag in zip(sentence.heads or (), sentence.tags or (), strict=True) if tag != "CLOSE"]
        assert all(2 <= count <= arguments for head, count in Counter(heads).items() if head)


@pytest.mark.parametrize(("operators", "arguments"), [(1, 2), (2, 3), (4, 3)])
def test_counts_are_those_of_enumeration(operators: int, arguments: int) -> None:
    longest = 24
    expected = Counter[tuple[int, int]]()
    for shape in shapes(3 if arguments == 2 else 2, range(2, arguments + 1)):
        expected[nesting(shape), words(shape)] += spelled(shape, operators)
    deepest = max(level for level, _ in expected)
    grammar = _Grammar(OPERATORS[:operators], (4, longest), (1, deepest), arguments)
    for level in range(1, deepest + 1):
        assert grammar.cells[level] == [expected[level, n] for n in range(longest + 1)]


def test_brackets_are_drawn_as_often_as_expressions_have_them() -> None:
    grammar = _Grammar(("MIN", "SM"), (4, 12), (2, 2), 3)
    possible = {
        shape: spelled(shape, 2)
        for shape in shapes(2, range(2, 4))
        if (nesting(shape), words(shape)) in ((2, 12), (2, 11))
    }
    dice = random.Random(5).random
    for length in (11, 12):
        weights = {shape: weight for shape, weight in possible.items() if words(shape) == length}
        draws = 20_000
        found = Counter(grammar.shape(2, length, dice) for _ in range(draws))
        assert found.keys() <= weights.keys()
        for shape, weight in weights.items():
            share = weight / sum(weights.values())
            assert abs(found[shape] / draws - share) < 5 * (share * (1 - share) / draws) ** 0.5 + 1e-9


def test_values_are_even_and_do_not_follow_from_depth_or_the_outermost_operator() -> None:
    counts = Counter(sentence.label for sentence in CORPUS)
    assert set(counts) == set(range(10))
    assert max(counts.values()) < 1.35 * min(counts.values())
    for level in (1, 2, 3):
        here = Counter(sentence.label for sentence in CORPUS if depth(sentence) == level)
        assert max(here.values()) < 0.15 * here.total()
    best = sum(
        Counter(sentence.label for sentence in CORPUS if sentence.forms[0] == f"[{name}").most_common(1)[0][1]
        for name in OPERATORS
    )
    assert best < 0.25 * len(CORPUS)


def test_ignoring_the_brackets_does_not_give_the_value() -> None:
    nested = [sentence for sentence in CORPUS if depth(sentence) > 1]
    flat = sum(
        value([sentence.forms[0], *filter(str.isdigit, sentence.forms), "]"]) == sentence.label for sentence in nested
    )
    assert flat < 0.45 * len(nested)


def test_depths_are_even() -> None:
    counts = Counter(map(depth, CORPUS))
    assert all(abs(counts[level] / len(CORPUS) - 1 / 3) < 0.06 for level in (1, 2, 3))


def test_no_expression_comes_twice_and_size_only_adds() -> None:
    assert len({sentence.forms for sentence in CORPUS}) == len(CORPUS)
    assert len({sentence.id for sentence in CORPUS}) == len(CORPUS)
    assert CORPUS[:40] == listops(40, seed=4)
    assert listops(20, seed=5) != CORPUS[:20]
    assert listops(0) == []


def test_expressions_are_the_same_everywhere() -> None:
    """On every machine and Python; a change of the generator, and nothing else, changes this."""
    written = "\n".join(f"{sentence.forms} {sentence.heads} {sentence.label}" for sentence in CORPUS[:200])
    assert hashlib.sha256(written.encode()).hexdigest()[:16] == "3df732b939aa69c9"


def test_every_expression_there_is_can_be_asked_for() -> None:
    """One operator over two digits: 100 expressions, of which only one has the value 9."""
    found = listops(100, operators=["MIN"], min_length=4, max_length=4, max_depth=1)
    assert {sentence.forms for sentence in found} == {("[MIN", a, b, "]") for a in "0123456789" for b in "0123456789"}
    with pytest.raises(ValueError, match="101 expressions are wanted and only 100 exist"):
        listops(101, operators=["MIN"], min_length=4, max_length=4, max_depth=1)


def test_splits_are_disjoint_and_the_last_is_longer_and_deeper() -> None:
    parts = splits(seed=2, train=300, dev=60, test=60, ood=60)
    sets = [{sentence.forms for sentence in part} for part in (parts.train, parts.dev, parts.test, parts.ood)]
    assert [len(part) for part in sets] == [300, 60, 60, 60]
    assert len(set.union(*sets)) == 480
    known = parts.train + parts.dev + parts.test
    assert known == listops(420, seed=2)
    assert max(map(depth, known)) < min(map(depth, parts.ood))
    assert max(map(len, known)) < min(map(len, parts.ood))
    assert max(map(depth, parts.ood)) <= 5
    assert max(map(len, parts.ood)) <= 50
    assert all(sentence.label == value(sentence.forms) for sentence in parts.ood)
    assert all(sentence.heads == tree_of(sentence.forms) for sentence in parts.ood)
    assert not {sentence.id for sentence in known} & {sentence.id for sentence in parts.ood}


def test_splits_may_leave_parts_out() -> None:
    """A last part that is not asked for need not be possible either."""
    parts = splits(train=3, dev=0, test=2, ood=0, max_length=12, min_depth=3, max_depth=3, long_length=1)
    assert (len(parts.train), parts.dev, len(parts.test), parts.ood) == (3, [], 2, [])
    narrow = splits(train=1, dev=1, test=1, ood=4, long_length=27, long_depth=4)
    assert all(26 <= len(sentence) <= 27 and depth(sentence) == 4 for sentence in narrow.ood)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": -1}, "size is -1"),
        ({"operators": ["MIN", "AVG"]}, r"operators is \('MIN', 'AVG'\); give some of MIN, MAX, MED, SM"),
        ({"operators": []}, "operators is"),
        ({"operators": ["MIN", "MIN"]}, "each once"),
        ({"min_length": 9, "max_length": 8}, "lengths from 9 to 8"),
        ({"min_depth": 3, "max_depth": 2}, "depths from 3 to 2"),
        ({"min_depth": 0}, "the smallest depth is 0"),
        ({"max_arguments": 1}, "max_arguments is 1"),
        ({"min_length": 8}, "depth 1 with at most 5 arguments has 8 to 25 words; that depth has from 4 to 7"),
        ({"max_length": 9}, "depth 3 with at most 5 arguments has 5 to 9 words; that depth has from 10 to 187"),
        ({"max_length": -3, "min_length": -3}, "no expression of depth 1"),
        ({"min_length": 5, "max_length": 6, "max_arguments": 2, "max_depth": 1}, "no expression of depth 1"),
    ],
)
def test_impossible_requests_are_refused(arguments: dict[str, Any], message: str) -> None:
    request: dict[str, Any] = {"size": 3, **arguments}
    with pytest.raises(ValueError, match=message):
        listops(**request)


def test_sizes_of_splits_are_checked() -> None:
    with pytest.raises(ValueError, match="dev is -2"):
        splits(dev=-2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 operators are still open after 0 words"),
        ("[MIN 1 2", "1 operators are still open after 3 words"),
        ("[MIN 1 ] ]", "word 4 is ']', but the expression ends before it"),
        ("]", "word 1 is ']'"),
        ("[MIN ]", "word 2 is ']'"),
        ("[AVG 1 2 ]", r"word 1 is '\[AVG'"),
        ("[MIN 12 2 ]", "word 2 is '12'"),
        ("[MIN", "1 operators are still open"),
    ],
)
def test_words_that_are_no_expression_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        value(text.split())


@pytest.mark.parametrize("text", ["[MIN 1 2", "[MIN 1 ] ]", "]", "1 2"])
def test_brackets_that_do_not_match_have_no_tree(text: str) -> None:
    with pytest.raises(ValueError, match=r"open|ends before|word 1"):
        tree_of(text.split())
