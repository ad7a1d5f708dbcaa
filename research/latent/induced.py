r"""`python -m research.latent.induced RUN`: whether structures that no one supervised are more than trivial.

A tree is the set of its arcs `(head, word)` with `(0, word)` for the word on the root; a graph is the set of its arcs
`(predicate, argument, role)` with `(0, word)` for a top. Nearly everything here is said about such sets, so that trees
and graphs are described by the same numbers. The trivial structures that an answer is held against are described too:
a number alone says little, beside that of random structures it says much.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from research.command import main
from spigot_nlp.cli.answers import Enhanced, read_answers
from spigot_nlp.cli.console import AsJson, FormatName, percent, print_json, print_table, progress
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.inspection import head_entropy
from spigot_nlp.models.parser import Parser
from spigot_nlp.threads import use_threads

Field = Literal["heads", "graph"]
_Arc = tuple[int, int, str]  # head, word, role; the head of a root or top is 0, the role of a tree's arc is empty
_Arcs = frozenset[_Arc]
_NONE: Mapping[str, Sequence[Sentence]] = MappingProxyType({})


@dataclass(frozen=True)
class Profile:
    r"""What a list of structures looks like.

    Attributes:
        agreement: Unlabelled $F_1$ with each of the other lists, by name: $2|A \cap B| / (|A| + |B|)$ over all arcs of
            the corpus, those from the root included. Between trees this is the UAS.
        left: Share of sentences whose structure is exactly `left_branching`; roles do not matter. This and the next two
            are over sentences of three or more words, since shorter ones hardly have other trees.
        right: Share of sentences whose structure is exactly `right_branching`.
        flat: Share of sentences in which one word is the only root or top and heads all others.
        depth: Mean over sentences of the largest distance of a word from the root, along arcs; 1 if all words are on
            the root. Words that cannot be reached from a top do not count.
        arc_length: Mean distance of the two words of an arc; arcs from the root have none.
        root_share: Share of arcs that come from the root.
        arcs_per_word: 1 for trees.
        entropy: Entropy in bits of the offset from word to head (and, in graphs, the role), over all arcs; arcs from
            the root are one further outcome. 0 if all arcs are alike.
        predictable: Share of words with the heads that are the most common in the *other* sentences of the same length,
            for a word in the same place; ties count by chance. 1 if length and place decide everything. Words without
            another sentence to compare with are left out.
        distinct: How often a sentence adds a new structure to those of the same length, $\sum_n (d_n - 1) /
            \sum_n (m_n - 1)$, where $d_n$ of the $m_n$ structures over $n$ words are different. 0 if the length decides
            the structure, 1 if none comes twice.

    Example:
        >>> chains = [Sentence(("so", "it", "goes"), heads=(0, 1, 2)), Sentence(("all", "is", "well"), heads=(0, 1, 2))]
        >>> profile = describe(chains).answer
        >>> profile.right, profile.depth, profile.arc_length, profile.predictable, profile.distinct
        (1.0, 3.0, 1.0, 1.0, 0.0)
    """

    agreement: dict[str, float]
    left: float
    right: float
    flat: float
    depth: float
    arc_length: float
    root_share: float
    arcs_per_word: float
    entropy: float
    predictable: float
    distinct: float


@dataclass(frozen=True)
class Induced:
    """Structures, and beside them those that they are held against.

    Attributes:
        field: Which structures: `heads` or `graph`.
        sentences: How many.
        words: How many.
        answer: The structures themselves.
        others: By name: `left`, `right`, `flat` (with the first word as its centre) and `random`; `gold`, if given; and
            every reference. Each says in its `agreement` how it fares against all others, and under the name `answer`
            against the structures themselves.

    Example:
        >>> gold = [Sentence(("she", "drinks", "tea"), heads=(2, 0, 2))]
        >>> induced = describe([Sentence(("she", "drinks", "tea"), heads=(2, 3, 0))], gold)
        >>> {name: round(value, 2) for name, value in induced.answer.agreement.items() if name != "random"}
        {'left': 1.0, 'right': 0.0, 'flat': 0.0, 'gold': 0.33}
        >>> round(induced.others["left"].agreement["gold"], 2)
        0.33
    """

    field: Field
    sentences: int
    words: int
    answer: Profile
    others: dict[str, Profile]


def describe(
    sentences: Sequence[Sentence],
    gold: Sequence[Sentence] | None = None,
    references: Mapping[str, Sequence[Sentence]] = _NONE,
    *,
    seed: int = 0,
    field: Field | None = None,
) -> Induced:
    """Describe structures, and hold them against trivial ones, the right ones and other answers.

    Random trees are drawn by `random_trees`. A random graph has as many arcs as the answer, between any two different
    words, with the roles of the answer in any order, and as many tops. For graphs, the trivial trees are taken
    without roles, with the word on the root as the top.

    Args:
        sentences: With the structures in question.
        gold: The same sentences with the right structures.
        references: The same sentences with other structures, by name: those of a pretrained parser, say.
        seed: Of the random structures.
        field: Whether trees or graphs are meant. Needed only if the sentences have both.

    Raises:
        ValueError: If the sentences do not all have the structure, or the words of the others differ.

    Example:
        >>> words = ("we", "hear", "the", "rain")
        >>> answer, parser = Sentence(words, heads=(2, 0, 4, 2)), Sentence(words, heads=(0, 1, 2, 3))
        >>> induced = describe([answer], references={"parser": [parser]})
        >>> induced.answer.agreement["parser"], induced.answer.depth, induced.others["parser"].right
        (0.0, 3.0, 1.0)
    """
    field = field or _field(sentences, "answer")
    lengths = [len(sentence) for sentence in sentences]
    lists = {"answer": _structures(sentences, field, "answer")}
    lists["left"] = [_tree(left_branching(n)) for n in lengths]
    lists["right"] = [_tree(right_branching(n)) for n in lengths]
    lists["flat"] = [_tree(flat(n)) for n in lengths]
    if field == "heads":
        lists["random"] = [_tree(heads) for heads in random_trees(lengths, seed)]
    else:
        dice = random.Random(seed).random
        lists["random"] = [_random_graph(arcs, n, dice) for arcs, n in zip(lists["answer"], lengths, strict=True)]
    known = {} if gold is None else {"gold": gold}
    for name in references:
        if name in lists or name in known:
            raise ValueError(
                f"a reference is called {name!r}; {', '.join([*lists, *known])} are taken, choose another."
            )
    for name, others in {**known, **references}.items():
        _same_words(sentences, others, "answer", name)
        lists[name] = _structures(others, field, name)
    profiles = {name: _profile(name, lists, lengths) for name in lists}
    return Induced(field, len(lengths), sum(lengths), profiles.pop("answer"), profiles)


def changed(before: Sequence[Sentence], after: Sequence[Sentence], *, field: Field | None = None) -> float:
    """How much of the structures differs between two answers for the same sentences.

    For trees, the share of words whose heads differ. For graphs, of all arcs and tops in either answer, the share of
    those that the other does not have or gives another role. 0 if there is nothing to compare.

    Args:
        before: One answer.
        after: Another.
        field: Whether trees or graphs are meant. Needed only if the sentences have both.

    Example:
        >>> before, after = Sentence(("rain", "fell"), heads=(2, 0)), Sentence(("rain", "fell"), heads=(0, 1))
        >>> changed([before, before], [before, after])
        0.5
    """
    field = field or _field(before, "first answer")
    _same_words(before, after, "first answer", "second answer")
    pairs = zip(_structures(before, field, "first answer"), _structures(after, field, "second answer"), strict=True)
    differ = total = 0
    for first, second in pairs:
        # A word of a tree is counted once, an arc of a graph by the two words that it joins.
        keys = [_by(arcs, lambda arc: arc[1] if field == "heads" else arc[:2]) for arcs in (first, second)]
        both = keys[0].keys() | keys[1].keys()
        total += len(both)
        differ += sum(keys[0].get(key) != keys[1].get(key) for key in both)
    return _share(differ, total)


def _random_graph(arcs: _Arcs, n: int, dice: Callable[[], float]) -> _Arcs:
    """As many arcs and tops over other words. Arcs that differ in their role only become arcs between other words."""
    roles = sorted(role for head, _, role in arcs if head)
    tops = len(arcs) - len(roles)
    places = _sample(n * (n - 1), min(len(roles), n * (n - 1)), dice)
    pairs = [(1 + place // (n - 1), 1 + place % (n - 1)) for place in places]
    found = {(head, word + (word >= head), role) for (head, word), role in zip(pairs, roles, strict=False)}
    return frozenset(found | {(0, 1 + place, "") for place in _sample(n, min(tops, n), dice)})


def _sample(size: int, count: int, dice: Callable[[], float]) -> list[int]:
    """Different numbers below `size`, in any order."""
    swapped: dict[int, int] = {}
    for i in range(count):
        j = i + int(dice() * (size - i))
        swapped[i], swapped[j] = swapped.get(j, j), swapped.get(i, i)
    return [swapped[i] for i in range(count)]


def _profile(name: str, lists: Mapping[str, list[_Arcs]], lengths: Sequence[int]) -> Profile:
    structures = lists[name]
    arcs = [arc for structure in structures for arc in structure]
    spans = [abs(head - word) for head, word, _ in arcs if head]
    exact = Counter(
        shape for structure, n in zip(structures, lengths, strict=True) if n > 2 for shape in _shapes(structure, n)
    )
    long = sum(n > 2 for n in lengths)
    return Profile(
        agreement={other: _agreement(structures, lists[other]) for other in lists if other != name},
        left=_share(exact["left"], long),
        right=_share(exact["right"], long),
        flat=_share(exact["flat"], long),
        depth=_share(sum(map(_depth, structures)), len(structures)),
        arc_length=_share(sum(spans), len(spans)),
        root_share=_share(len(arcs) - len(spans), len(arcs)),
        arcs_per_word=_share(len(arcs), sum(lengths)),
        entropy=_entropy(Counter((head - word, role) if head else None for head, word, role in arcs)),
        predictable=_predictable(structures, lengths),
        distinct=_distinct(structures, lengths),
    )


def _shapes(structure: _Arcs, n: int) -> Iterable[str]:
    pairs = _pairs(structure)
    for name, heads in (("left", left_branching(n)), ("right", right_branching(n))):
        if pairs == _pairs(_tree(heads)):
            yield name
    heads = {head for head, _ in pairs}
    if len(pairs) == n and len(heads) == 2 and 0 in heads and sum(head == 0 for head, _ in pairs) == 1:
        yield "flat"


def _agreement(first: list[_Arcs], second: list[_Arcs]) -> float:
    both = given = 0
    for one, other in zip(map(_pairs, first), map(_pairs, second), strict=True):
        both += len(one & other)
        given += len(one) + len(other)
    return _share(2 * both, given)


def _depth(structure: _Arcs) -> int:
    below = _by(structure, lambda arc: arc[0])
    level, reached, depth = {0}, {0}, 0
    while level:
        level = {word for head in level for _, word, _ in below.get(head, ())} - reached
        reached |= level
        depth += bool(level)
    return depth


def _entropy(counts: Counter[tuple[int, str] | None]) -> float:
    total = counts.total()
    return sum(count / total * math.log2(total / count) for count in counts.values())


def _predictable(structures: list[_Arcs], lengths: Sequence[int]) -> float:
    """How often the most common heads in the other sentences of the same length are those of a word."""
    places: dict[tuple[int, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for structure, n in zip(structures, lengths, strict=True):
        heads = _by(structure, lambda arc: arc[1])
        for word in range(1, n + 1):
            places[n, word][tuple(sorted({head for head, _, _ in heads.get(word, ())}))] += 1
    right = 0.0
    words = 0
    for counts in places.values():
        total = counts.total()
        if total == 1:
            continue
        words += total
        ranked = Counter(counts.values())  # how many different heads were chosen how many times
        for times, kinds in ranked.items():
            # Without this sentence its own choice has one vote fewer; the strongest of the others has `rival`.
            rival = max((other for other in ranked if other != times or kinds > 1), default=0)
            if times - 1 > rival:
                right += kinds * times
            elif times - 1 == rival:
                right += kinds * times / (1 + ranked[rival])
    return _share(right, words)


def _distinct(structures: list[_Arcs], lengths: Sequence[int]) -> float:
    groups: dict[int, list[_Arcs]] = defaultdict(list)
    for structure, n in zip(structures, lengths, strict=True):
        groups[n].append(structure)
    new = sum(len(set(group)) - 1 for group in groups.values())
    return _share(new, sum(len(group) - 1 for group in groups.values()))


def _structures(sentences: Sequence[Sentence], field: Field, name: str) -> list[_Arcs]:
    found: list[_Arcs] = []
    for number, sentence in enumerate(sentences, 1):
        if field == "heads" and sentence.heads is not None:
            found.append(_tree(sentence.heads))
        elif field == "graph" and sentence.graph is not None:
            tops: set[_Arc] = {(0, top, "") for top in sentence.graph.tops}
            found.append(frozenset(tops.union(sentence.graph.arcs)))
        elif field not in ("heads", "graph"):
            raise ValueError(f"field is {field!r}; it must be 'heads' or 'graph'.")
        else:
            who = f"sentence {number}" + (f" ({sentence.id})" if sentence.id else "")
            raise ValueError(f"{who} of the {name} has no {field}; give sentences in which all of them are annotated.")
    return found


def _field(sentences: Sequence[Sentence], name: str) -> Field:
    """Whichever of the two the sentences have."""
    trees = any(sentence.heads is not None for sentence in sentences)
    graphs = any(sentence.graph is not None for sentence in sentences)
    if trees and graphs:
        raise ValueError(f"the sentences of the {name} have heads and graphs; say which with field='heads' or 'graph'.")
    return "graph" if graphs else "heads"


def _same_words(first: Sequence[Sentence], second: Sequence[Sentence], name: str, other: str) -> None:
    if len(first) != len(second):
        raise ValueError(f"the {name} has {len(first)} sentences, the {other} {len(second)}; give the same ones.")
    for number, (one, two) in enumerate(zip(first, second, strict=True), 1):
        if one.forms != two.forms:
            raise ValueError(
                f"sentence {number} is {' '.join(one.forms)[:60]!r} in the {name} and {' '.join(two.forms)[:60]!r} in "
                f"the {other}; give the same text."
            )


def _tree(heads: Sequence[int]) -> _Arcs:
    return frozenset((head, word, "") for word, head in enumerate(heads, 1))


def _pairs(structure: _Arcs) -> set[tuple[int, int]]:
    return {(head, word) for head, word, _ in structure}


def _by(structure: _Arcs, key: Callable[[_Arc], Hashable]) -> dict[Hashable, set[_Arc]]:
    groups: dict[Hashable, set[_Arc]] = defaultdict(set)
    for arc in structure:
        groups[key(arc)].add(arc)
    return groups


def _share(part: float, whole: float) -> float:
    """A ratio, 0 if there is nothing to divide by."""
    return part / whole if whole else 0.0


def left_branching(n: int) -> tuple[int, ...]:
    """The chain that grows to the left: each word's head is the next one, and the last word is on the root.

    Example:
        >>> left_branching(4)
        (2, 3, 4, 0)
    """
    return (*range(2, _words(n) + 1), 0) if n else ()


def right_branching(n: int) -> tuple[int, ...]:
    """The chain that grows to the right: each word's head is the one before, and the first word is on the root.

    Example:
        >>> right_branching(4)
        (0, 1, 2, 3)
    """
    return tuple(range(_words(n)))


def flat(n: int, centre: int = 1) -> tuple[int, ...]:
    """All words on one, and that one on the root.

    Args:
        n: The number of words.
        centre: The word that heads all others.

    Example:
        >>> flat(4)
        (0, 1, 1, 1)
        >>> flat(4, centre=3)
        (3, 3, 0, 3)
    """
    if _words(n) and not 1 <= centre <= n:
        raise ValueError(f"centre is {centre}; it must be one of the words 1 to {n}.")
    return tuple(centre * (word != centre) for word in range(1, n + 1))


def random_trees(lengths: Iterable[int], seed: int = 0) -> list[tuple[int, ...]]:
    r"""Heads of random projective trees with a single root, all $\frac1n \binom{3n-2}{n-1}$ of them equally likely.

    Every word of such a tree has some dependents to its left and some to its right: $2n$ numbers with the sum $n - 1$,
    which, drawn uniformly and listed from heads to dependents, are a tree for exactly one of the $n$ ways to begin the
    list (the cycle lemma). Takes linear time; the same arguments give the same trees everywhere.

    Args:
        lengths: The number of words of each tree.
        seed: Which.

    Example:
        >>> random_trees([1, 2, 5], seed=3)
        [(0,), (0, 1), (3, 3, 4, 0, 4)]

    References:
        Dvoretzky and Motzkin (1947), A problem of arrangements: the cycle lemma.
    """
    # The one method whose sequence Python promises never to change.
    dice = random.Random(seed).random
    return [_random_tree(_words(n), dice) for n in lengths]


def _random_tree(n: int, dice: Callable[[], float]) -> tuple[int, ...]:
    if n == 0:
        return ()
    counts = [0]  # n - 1 stars among 2n - 1 bars; a bar begins the next number
    stars = n - 1
    for places in range(3 * n - 2, 0, -1):
        if dice() * places < stars:
            stars -= 1
            counts[-1] += 1
        else:
            counts.append(0)
    sides = list(zip(counts[::2], counts[1::2], strict=True))
    # Dependents still to come after each word, when the list is read from head to dependents. It may first run out of
    # them at the end only: so the list has to begin just behind the place where the sum is smallest.
    lowest = sums = 0
    start = 0
    for place, (before, after) in enumerate(sides, 1):
        sums += before + after - 1
        if sums < lowest:
            lowest, start = sums, place
    sides = sides[start:] + sides[:start]
    children: list[list[int]] = [[] for _ in sides]
    waiting: list[int] = []
    for node, (before, after) in enumerate(sides):
        if waiting:
            children[waiting.pop()].append(node)
        waiting.extend([node] * (before + after))
    # From left to right, with a word after all that is on its left. Chains would be too deep for recursion.
    order: list[int] = []
    agenda = [(0, False)]
    while agenda:
        node, is_next = agenda.pop()
        if is_next:
            order.append(node)
        else:
            before = sides[node][0]
            left, right = children[node][:before], children[node][before:]
            agenda += reversed(
                [*((child, False) for child in left), (node, True), *((child, False) for child in right)]
            )
    position = {node: place for place, node in enumerate(order, 1)}
    heads = [0] * n
    for node, below in enumerate(children):
        for child in below:
            heads[position[child] - 1] = position[node]
    return tuple(heads)


def _words(n: int) -> int:
    if n < 0:
        raise ValueError(f"a tree over {n} words is asked for; the number of words must be 0 or more.")
    return n


NAMES = {
    "answer": "this run",
    "left": "left-branching",
    "right": "right-branching",
    "flat": "flat",
    "random": "random",
    "gold": "gold",
    "parser": "the other parser",
}
"""What each list of structures is called in tables."""


def induced(
    run: Path,
    file: Path | None = None,
    /,
    *,
    parser: Path | None = None,
    part: str = "dev",
    graph: Enhanced = False,
    seed: int = 0,
    threads: int | None = None,
    format: FormatName = None,
    as_json: AsJson = False,
) -> None:
    """Describe the trees or graphs of a trained system beside trivial ones: are they more than that?

    Structures that length and place alone predict, or that agree with the right ones no better than chains, stars or
    random structures do, have found nothing.

    Parameters
    ----------
    run
        The folder of a run, or the name of a model.
    file
        The sentences to look at; by default those that the run keeps, see --part.
    parser
        A second run, to compare with: one whose parser was trained on right structures, say.
    part
        Which of the sentences that the run keeps.
    graph
        The enhanced column of CoNLL-U holds the right graphs.
    seed
        Of the random structures.
    threads
        How many threads torch may use; by default one for each core, up to four.
    as_json
        Print the numbers as JSON instead of tables.
    """
    system, other = Parser.load(run), None if parser is None else Parser.load(parser)
    field: Field | None = "heads" if "heads" in system.gives else "graph" if "graph" in system.gives else None
    if field is None:
        raise ValueError(f"{run} has no structures inside, its system is {system.config.system}.")
    if other is not None and field not in other.gives:
        raise ValueError(f"{parser} finds no {field}, as {run} does; give a --parser that does the same.")
    sentences = read_answers(file or run / f"gold.{part}.jsonl", format, enhanced=graph, skip_bad=None)
    with use_threads(threads):
        references = {} if other is None else {"parser": _parsed(other, sentences)}
        answer = _parsed(system, sentences)
        entropy = head_entropy(system, sentences) if "heads" in system.finds else None
    known = all(sentence.get(field) is not None for sentence in sentences)
    found = describe(answer, sentences if known else None, references, seed=seed, field=field)
    if as_json:
        print_json({"run": run, "structures": found, "entropy": entropy})
        return
    profiles = {"answer": found.answer, **found.others}
    agreement = [
        [NAMES[row], *(percent(one.agreement[name]) if name in one.agreement else "" for name in profiles)]
        for row, one in profiles.items()
    ]
    title = f"{found.sentences} sentences, {found.words} words; agreement with each other, per cent"
    print_table(title, ["", *(NAMES[name] for name in profiles)], agreement)
    shares = ("predictable", "distinct", "left", "right", "flat")
    numbers = ("depth", "arc_length", "entropy", "arcs_per_word")
    looks = [
        [
            NAMES[row],
            *(percent(getattr(one, name)) for name in shares),
            *(f"{getattr(one, name):.2f}" for name in numbers),
        ]
        for row, one in profiles.items()
    ]
    columns = [*(f"{name} %" for name in shares), *(name.replace("_", " ") for name in numbers)]
    print_table("What they look like", ["", *columns], looks)
    if entropy is not None:
        print(f"Entropy of the head of a word under the parser's own scores, in bits: {entropy:.2f}")


def _parsed(parser: Parser, sentences: Sequence[Sentence]) -> list[Sentence]:
    return list(progress(parser.pipe(sentences), "parsing", total=len(sentences)))


if __name__ == "__main__":
    main(induced)
