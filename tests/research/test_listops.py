"""ListOps: values and trees by a second algorithm, sizes by enumeration, and requests that cannot be met."""

import itertools
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.listops import OPERATORS, Grammar, Shape, main, splits
from spigot_nlp.config import load_config
from spigot_nlp.corpora.corpus import load_corpus
from spigot_nlp.data import Sentence

CONFIG = Path(__file__).parents[2] / "research" / "configs" / "listops.toml"
CORPUS = splits(train=1500, seed=4).train
APPLY = {"MIN": min, "MAX": max, "SM": lambda some: sum(some) % 10, "MED": lambda some: int(statistics.median(some))}


def value(sentence: Sentence) -> int:
    """By a stack, from left to right."""
    stack: list[tuple[str, list[int]]] = [("", [])]
    for form in sentence.forms:
        if form[0] == "[":
            stack.append((form[1:], []))
        elif form == "]":
            name, arguments = stack.pop()
            stack[-1][1].append(APPLY[name](arguments))
        else:
            stack[-1][1].append(int(form))
    return stack[0][1][0]


def tree(sentence: Sentence) -> tuple[int, ...]:
    """Each word on the operator whose brackets are the closest around it."""
    heads, around = [], [0]
    for place, form in enumerate(sentence.forms, 1):
        heads.append(around[-1])
        if form[0] == "[":
            around.append(place)
        elif form == "]":
            around.pop()
    return tuple(heads)


def depth(sentence: Sentence) -> int:
    return max(itertools.accumulate((form[0] == "[") - (form == "]") for form in sentence.forms))


def shapes(deepest: int, arguments: range) -> Iterator[Shape]:
    """Every bracketing of at most this depth."""
    yield ()
    if deepest:
        below = list(shapes(deepest - 1, arguments))
        for k in arguments:
            yield from itertools.product(below, repeat=k)


def words(shape: Shape) -> int:
    return 2 + sum(map(words, shape)) if shape else 1


def nesting(shape: Shape) -> int:
    return 1 + max(map(nesting, shape)) if shape else 0


def spelled(shape: Shape, operators: int) -> int:
    """How many expressions have this shape."""
    ways = operators if shape else 10
    for argument in shape:
        ways *= spelled(argument, operators)
    return ways


def test_labels_trees_and_tags_agree_with_the_brackets() -> None:
    for sentence in CORPUS:
        assert sentence.label == value(sentence)
        assert sentence.lemmas == sentence.forms
        assert sentence.tags is not None
        assert sentence.heads is not None
        assert sentence.heads == tree(sentence)
        assert {sentence.tags[head - 1] for head in sentence.heads[1:]} == {"OP"}
        assert sentence.tags.count("CLOSE") == sentence.tags.count("OP")


@given(
    seed=st.integers(0, 2**40),
    low=st.integers(4, 30),
    width=st.integers(0, 20),
    depths=st.tuples(st.integers(1, 4), st.integers(0, 2)),
    most=st.integers(2, 6),
)
def test_lengths_depths_and_arguments_are_kept_or_the_request_is_refused(
    seed: int, low: int, width: int, depths: tuple[int, int], most: int
) -> None:
    limits: dict[str, Any] = {
        "min_length": low,
        "max_length": low + width,
        "min_depth": depths[0],
        "max_depth": sum(depths),
    }
    try:
        found = splits(train=6, seed=seed, max_arguments=most, **limits).train
    except ValueError as error:
        assert "no expression of depth" in str(error)  # noqa: PT017 - either outcome is right, for its own arguments
        return
    for sentence in found:
        assert low <= len(sentence) <= low + width
        assert depths[0] <= depth(sentence) <= sum(depths)
        heads = [head for head, tag in zip(sentence.heads or (), sentence.tags or (), strict=True) if tag != "CLOSE"]
        assert all(2 <= count <= most for head, count in Counter(heads).items() if head)


@pytest.mark.parametrize(("operators", "arguments"), [(1, 2), (2, 3), (4, 3)])
def test_counts_are_those_of_enumeration(operators: int, arguments: int) -> None:
    expected = Counter[tuple[int, int]]()
    for shape in shapes(3 if arguments == 2 else 2, range(2, arguments + 1)):
        expected[nesting(shape), words(shape)] += spelled(shape, operators)
    deepest = max(level for level, _ in expected)
    grammar = Grammar(OPERATORS[:operators], (4, 24), (1, deepest), arguments)
    for level in range(1, deepest + 1):
        assert grammar.cells[level] == [expected[level, n] for n in range(25)]


def test_values_and_depths_are_even_and_the_brackets_matter() -> None:
    values = Counter(sentence.label for sentence in CORPUS)
    assert set(values) == set(range(10))
    assert max(values.values()) < 1.35 * min(values.values())
    depths = Counter(map(depth, CORPUS))
    assert all(abs(depths[level] / len(CORPUS) - 1 / 3) < 0.06 for level in (1, 2, 3))
    nested = [sentence for sentence in CORPUS if depth(sentence) > 1]
    flat = sum(APPLY[s.forms[0][1:]]([int(form) for form in s.forms if form.isdigit()]) == s.label for s in nested)
    assert flat < 0.45 * len(nested)


def test_every_expression_there_is_can_be_asked_for() -> None:
    """One operator over two digits: 100 expressions, of which only one has the value 9."""
    alone: dict[str, Any] = {"operators": ["MIN"], "min_length": 4, "max_length": 4, "max_depth": 1}
    found = {sentence.forms for sentence in splits(train=100, **alone).train}
    assert found == {("[MIN", a, b, "]") for a in "0123456789" for b in "0123456789"}
    with pytest.raises(ValueError, match="101 expressions are wanted and only 100 exist"):
        splits(train=101, **alone)


def test_parts_are_disjoint_and_the_last_is_longer_and_deeper() -> None:
    parts = splits(seed=4, train=300, dev=60, test=60, ood=60)
    known = parts.train + parts.dev + parts.test
    assert known == CORPUS[:420]
    assert known[:20] != splits(train=20, seed=5).train
    assert len({sentence.forms for sentence in known + parts.ood}) == 480
    assert len({sentence.id for sentence in known + parts.ood}) == 480
    assert max(map(depth, known)) == 3
    assert max(map(len, known)) <= 25
    assert {depth(sentence) for sentence in parts.ood} == {4, 5}
    assert all(26 <= len(sentence) <= 50 and sentence.label == value(sentence) for sentence in parts.ood)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dev": -1}, "dev is -1"),
        ({"operators": ["MIN", "AVG"]}, r"operators is \('MIN', 'AVG'\); give some of MIN, MAX, MED, SM"),
        ({"operators": ["MIN", "MIN"]}, "each once"),
        ({"min_length": 9, "max_length": 8}, "lengths from 9 to 8"),
        ({"min_depth": 0}, "the smallest depth is 0"),
        ({"max_arguments": 1}, "max_arguments is 1"),
        ({"min_length": 8}, "depth 1 with at most 5 arguments has 8 to 25 words; that depth has from 4 to 7"),
    ],
)
def test_impossible_requests_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        splits(**{"train": 3, **arguments})


def test_the_configuration_reads_what_the_script_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["listops", "--out", tmp_path, "--train", 30, "--dev", 5, "--test", 5, "--ood", 100]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    main()
    config = load_config(CONFIG, {"data.root": str(tmp_path)})
    labels = load_corpus(config.data)["labels"]
    assert (len(labels.train), len(labels.dev), len(labels.tests["id"])) == (30, 5, 5)
    assert {depth(sentence) for sentence in labels.train} == {2, 3}
    (wire,) = config.stages[config.end].reads
    for sentence in labels.tests["ood"]:
        assert depth(sentence) + 2 <= wire.model_dump()["as"]["rounds"]  # a digit, and the root reads after it
