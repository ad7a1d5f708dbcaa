r"""ListOps: nested lists of digits under operators, where the right tree is known.

    python -m research.listops --out DATA
    spigot train research/configs/listops.toml --data.root DATA

An expression such as `[MAX 2 9 [MIN 4 7 ] 0 ]` is a sentence; its words are the operators with their opening bracket,
the digits, and the closing brackets. The class of the sentence is the value of the expression, a digit, and the right
tree follows from the brackets: an operator heads its arguments and its own closing bracket.

References:
    Nangia and Bowman (2018), ListOps: a diagnostic dataset for latent tree learning.
"""

import argparse
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from spigot_nlp.corpora.synthetic import Splits
from spigot_nlp.data import Sentence, write

OPERATORS = ("MIN", "MAX", "MED", "SM")
"""Smallest, largest, median (rounded down where two values are in the middle), and sum modulo 10."""

_APPLY: dict[str, Callable[[list[int]], int]] = {
    "MIN": min,
    "MAX": max,
    "MED": lambda values: (sorted(values)[(len(values) - 1) // 2] + sorted(values)[len(values) // 2]) // 2,
    "SM": lambda values: sum(values) % 10,
}
_DIGITS = "0123456789"
_CLOSE = "]"
_FEWEST = 2  # arguments: with one, MIN, MAX, MED and SM are all the same
_TRIES = 400  # with SM among four operators, one expression in about 40 has the value wanted even if it is a rare one

Shape: TypeAlias = tuple["Shape", ...]
"""The arguments of an operator; a digit is the shape without any."""


def splits(
    *,
    seed: int = 0,
    train: int = 0,
    dev: int = 0,
    test: int = 0,
    ood: int = 0,
    operators: Sequence[str] = OPERATORS,
    min_length: int = 5,
    max_length: int = 25,
    min_depth: int = 1,
    max_depth: int = 3,
    max_arguments: int = 5,
) -> Splits:
    """Disjoint parts, of which the one out of domain is both longer and deeper than the others.

    Of each expression a depth is drawn first, each as likely, and a length among those that the depth allows; then the
    brackets, such that all expressions of that depth and length are equally likely. Then a value is drawn, and
    operators and digits until they give it: so with `SM` among the operators all values are equally frequent, and
    neither depth nor length nor brackets tell anything about them. Values that the operators give less than about once
    in 400 times (9 as the smallest of five digits, say) stay rare. No expression comes twice. The same arguments give
    the same expressions everywhere. Lemmas are the words themselves; tags are `OP`, `DIGIT` and `CLOSE`.

    Args:
        seed: Which corpus.
        train: How many expressions to learn from.
        dev: How many to choose by.
        test: How many of the same kind to report.
        ood: How many of `max_length + 1` to `2 * max_length` words and a depth of `max_depth + 1` or `+ 2`.
        operators: Which of `OPERATORS` occur.
        min_length: The fewest words, brackets included. An operator with its brackets is two words.
        max_length: The most words.
        min_depth: The fewest operators inside one another; 1 is an operator over digits.
        max_depth: The most operators inside one another.
        max_arguments: The most arguments of one operator; the fewest are two.

    Raises:
        ValueError: If there is no such expression for one of the depths, or fewer than are asked for.

    Example:
        >>> sentence = splits(train=1, seed=1, max_length=12, min_depth=2, max_depth=2).train[0]
        >>> " ".join(sentence.forms)
        '[MIN 4 0 2 [MAX 4 2 2 2 ] 4 ]'
        >>> sentence.label, sentence.heads
        (0, (0, 1, 1, 1, 1, 5, 5, 5, 5, 5, 1, 1))
    """
    for name, size in (("train", train), ("dev", dev), ("test", test), ("ood", ood)):
        if size < 0:
            raise ValueError(f"{name} is {size}; ask for 0 expressions or more.")
    known = _take(
        Grammar(operators, (min_length, max_length), (min_depth, max_depth), max_arguments),
        "listops",
        seed,
        train + dev + test,
    )
    other: list[Sentence] = []
    if ood:
        lengths, depths = (max_length + 1, 2 * max_length), (max_depth + 1, max_depth + 2)
        other = _take(Grammar(operators, lengths, depths, max_arguments), "listops-long", seed, ood)
    return Splits(known[:train], known[train : train + dev], known[train + dev :], other)


def _take(grammar: "Grammar", kind: str, seed: int, size: int) -> list[Sentence]:
    total = sum(map(sum, grammar.cells.values()))
    if size > total:
        raise ValueError(
            f"{size} expressions are wanted and only {total} exist; allow more operators, words, depth or arguments."
        )
    stream = _stream(grammar, kind, seed)
    return [next(stream) for _ in range(size)]


def _stream(grammar: "Grammar", kind: str, seed: int) -> Iterator[Sentence]:
    """Different expressions until there are none left."""
    # The one method whose sequence Python promises never to change.
    dice = random.Random(seed).random
    left = {depth: dict(enumerate(counts)) for depth, counts in grammar.cells.items()}
    left = {depth: {length: count for length, count in cells.items() if count} for depth, cells in left.items()}
    seen: set[tuple[str, ...]] = set()
    while left:
        depth = list(left)[int(dice() * len(left))]
        length = list(left[depth])[int(dice() * len(left[depth]))]
        shape = grammar.shape(depth, length, dice)
        wanted = int(dice() * 10)
        chosen: tuple[tuple[str, ...], tuple[int, ...], int] | None = None
        for _ in range(_TRIES):
            forms: list[str] = []
            heads: list[int] = []
            label = _write(shape, 0, grammar.operators, dice, forms, heads)
            fresh = tuple(forms) not in seen
            if fresh and (chosen is None or label == wanted):
                chosen = tuple(forms), tuple(heads), label
            if fresh and label == wanted:
                break
        if chosen is None:  # all or nearly all of this shape are taken
            continue
        words, tree, label = chosen
        seen.add(words)
        left[depth][length] -= 1
        if not left[depth][length]:
            del left[depth][length]
            if not left[depth]:
                del left[depth]
        tags = tuple("OP" if word[0] == "[" else "CLOSE" if word == _CLOSE else "DIGIT" for word in words)
        yield Sentence(words, lemmas=words, tags=tags, heads=tree, label=label, id=f"{kind}-{seed}-{len(seen)}")


def _write(
    shape: Shape,
    parent: int,
    operators: Sequence[str],
    dice: Callable[[], float],
    forms: list[str],
    heads: list[int],
) -> int:
    """Append the words and heads of an expression of this shape, with operators and digits by chance; its value."""
    heads.append(parent)
    if not shape:
        digit = int(dice() * 10)
        forms.append(_DIGITS[digit])
        return digit
    name = operators[int(dice() * len(operators))]
    forms.append("[" + name)
    me = len(forms)
    arguments = [_write(argument, me, operators, dice, forms, heads) for argument in shape]
    forms.append(_CLOSE)
    heads.append(me)
    return _APPLY[name](arguments)


class Grammar:
    r"""How many expressions there are of each depth and length, and drawing from them.

    With $e_d(n)$ the expressions of depth $d$ and $n$ words and $s_d(k, n)$ the sequences of $k$ arguments of depth at
    most $d$ and $n$ words in all,
    $$e_d(n) = |\text{operators}| \sum_k \big( s_{d-1}(k, n - 2) - s_{d-2}(k, n - 2) \big), \quad
    s_d(k, n) = \sum_m s_d(k - 1, n - m) \sum_{c \le d} e_c(m), \quad e_0(1) = 10.$$

    Attributes:
        operators: Which occur.
        cells: The numbers of expressions asked for: by depth, then by length.
    """

    def __init__(
        self, operators: Sequence[str], lengths: tuple[int, int], depths: tuple[int, int], max_arguments: int
    ) -> None:
        self.operators = tuple(operators)
        _check(self.operators, lengths, depths, max_arguments)
        longest, deepest = lengths[1], depths[1]
        self._arguments = range(_FEWEST, max_arguments + 1)
        self._exact = [[10 * (n == 1) for n in range(longest + 1)]]
        # Of depth -1 there is only the sequence without arguments.
        self._sequences = [[[int(n == k == 0) for n in range(longest + 1)] for k in range(max_arguments + 1)]]
        at_most = [0] * (longest + 1)
        for depth in range(deepest):
            at_most = [a + b for a, b in zip(at_most, self._exact[depth], strict=True)]
            rows = [[int(n == 0) for n in range(longest + 1)]]
            for _ in range(max_arguments):
                rows.append([sum(rows[-1][n - m] * at_most[m] for m in range(n + 1)) for n in range(longest + 1)])
            self._sequences.append(rows)
            self._exact.append(
                [
                    len(self.operators) * sum(self._ways(depth, k, n - 2, True) for k in self._arguments)
                    for n in range(longest + 1)
                ]
            )
        self.cells = {
            depth: [count * (n >= lengths[0]) for n, count in enumerate(self._exact[depth])]
            for depth in range(depths[0], deepest + 1)
        }
        for depth, counts in self.cells.items():
            if not any(counts):
                most = max_arguments**depth + 2 * sum(max_arguments**level for level in range(depth))
                raise ValueError(
                    f"no expression of depth {depth} with at most {max_arguments} arguments has {lengths[0]} to "
                    f"{lengths[1]} words; that depth has from {3 * depth + 1} to {most}. Change the lengths or the "
                    "depths."
                )
        self._choices: dict[tuple[int, int, int, bool], tuple[list[tuple[int, int]], list[int]]] = {}

    def _ways(self, depth: int, k: int, n: int, owed: bool) -> int:
        """Sequences of k arguments with n words of at most this depth; if it is owed, one at least has just it."""
        if n < 0:
            return 0
        return self._sequences[depth + 1][k][n] - (self._sequences[depth][k][n] if owed else 0)

    def shape(self, depth: int, length: int, dice: Callable[[], float]) -> Shape:
        """The brackets of an expression, all expressions of this depth and length being equally likely."""
        if not depth:
            return ()
        depth, words, owed = depth - 1, length - 2, True
        k = self._arguments[_draw([*accumulate(self._ways(depth, k, words, True) for k in self._arguments)], dice)]
        arguments: list[Shape] = []
        while k:
            k -= 1
            options, weights = self._next(depth, k, words, owed)
            c, m = options[_draw(weights, dice)]
            arguments.append(self.shape(c, m, dice))
            words, owed = words - m, owed and c < depth
        return tuple(arguments)

    def _next(self, depth: int, k: int, words: int, owed: bool) -> tuple[list[tuple[int, int]], list[int]]:
        """Depth and length of an argument that k others follow, and the running sum of how many ways there are."""
        key = depth, k, words, owed
        if key not in self._choices:
            options = [(c, m) for c in range(depth + 1) for m in range(1, words + 1) if self._exact[c][m]]
            ways = (self._exact[c][m] * self._ways(depth, k, words - m, owed and c < depth) for c, m in options)
            self._choices[key] = options, [*accumulate(ways)]
        return self._choices[key]


def _draw(running: list[int], dice: Callable[[], float]) -> int:
    """A position, as likely as its step in these running sums, which are too large for floating point."""
    return bisect_right(running, int(dice() * 2**53) * running[-1] >> 53)


def _check(operators: tuple[str, ...], lengths: tuple[int, int], depths: tuple[int, int], max_arguments: int) -> None:
    unknown = [name for name in operators if name not in _APPLY]
    if unknown or not operators or len(set(operators)) < len(operators):
        raise ValueError(f"operators is {operators}; give some of {', '.join(OPERATORS)}, each once.")
    if max_arguments < _FEWEST:
        raise ValueError(f"max_arguments is {max_arguments}; an operator has at least {_FEWEST} arguments.")
    if depths[0] < 1:
        raise ValueError(f"the smallest depth is {depths[0]}; the outermost operator alone makes it 1.")
    for name, (low, high) in (("lengths", lengths), ("depths", depths)):
        if low > high:
            raise ValueError(f"{name} from {low} to {high} are asked for; the first must not exceed the second.")


def main() -> None:
    """Write the parts of a corpus: by default that of `configs/listops.toml`."""
    arguments = argparse.ArgumentParser(prog="python -m research.listops", description=main.__doc__)
    arguments.add_argument("--out", type=Path, required=True, help="the folder of corpora; these files go to listops/")
    arguments.add_argument("--operators", nargs="+", default=OPERATORS, choices=OPERATORS)
    sizes = {"train": 20_000, "dev": 1000, "test": 1000, "ood": 1000}
    limits = {"min_length": 5, "max_length": 20, "min_depth": 2, "max_depth": 3, "max_arguments": 3}
    for name, value in {**sizes, "seed": 0, **limits}.items():
        arguments.add_argument(f"--{name.replace('_', '-')}", type=int, default=value, help=f"{value} unless given")
    options = vars(arguments.parse_args())
    folder = options.pop("out") / "listops"
    made = splits(**options)
    folder.mkdir(parents=True, exist_ok=True)
    for part, sentences in {"train": made.train, "dev": made.dev, "id": made.test, "ood": made.ood}.items():
        write(sentences, folder / f"{part}.jsonl.gz")


if __name__ == "__main__":
    main()
