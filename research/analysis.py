"""`python -m research.analysis RUN_A RUN_B [FILE]`: what the end task did to the structures inside (§5, Table 3).

System A is the one compared against, usually the pipeline, whose parser never felt the end task; B is another. All that
is found is tables of plain values, which are printed as they are, as JSON or as CSV.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from research.command import main
from research.study.tables import write_csv
from spigot_nlp.annotations import Trees, annotations_in
from spigot_nlp.cli.answers import Enhanced, answers, read_answers, read_gold
from spigot_nlp.cli.console import AsJson, print_json, printable, show_table
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation import (
    Counts,
    bootstrap,
    graph_counts,
    is_punctuation,
    label_counts,
    relation_counts,
    tree_counts,
)
from spigot_nlp.evaluation.joined import twins
from spigot_nlp.tables import plain_table
from spigot_nlp.threads import use_threads

Row: TypeAlias = dict[str, Any]
Analysis: TypeAlias = dict[str, list[Row]]
"""Tables by name; a share is a float between 0 and 1."""

_Judge: TypeAlias = Callable[[Sequence[Sentence], Sequence[Sentence]], Counts]
_Bools: TypeAlias = NDArray[np.bool_]

DISTANCES = (1, 2, 3, 6, 11)
"""Where the groups of arcs by distance begin."""
LENGTHS = (1, 11, 21, 31, 41)
"""Where the groups of sentences by length begin."""
KINDS = {
    "a": "new head is a semantic head",
    "b": "new head is a semantic modifier",
    "c": "old head was a semantic modifier",
    "any": "any of these",
}
"""The kinds of head change of section 5."""

_FREQUENT = 12  # rows of a table by role or relation that are printed


def analyse(
    gold: Sequence[Sentence],
    a: Sequence[Sentence],
    b: Sequence[Sentence],
    *,
    against: Literal["gold", "predicted"] = "gold",
    punctuation: bool = True,
    sample: int = 5,
    samples: int = 2000,
    seed: int = 0,
) -> Analysis:
    """Find out what differs between two systems, and whether it helped.

    Args:
        gold: Sentences with whatever is known to be right; what some lack is judged on the others.
        a: The same sentences as the first system sees them.
        b: The same as the second one does.
        against: Whether kinds of head change are about the right graphs or those of system B.
        punctuation: Whether punctuation counts in everything about trees.
        sample: How many of the sentences that gained and lost most to list.
        samples: How often the bootstrap draws the sentences anew.
        seed: Where its random numbers start.

    Returns:
        `scores` of all sentences, and of those with the same and with different structures inside (Table 3); `heads`,
        the kinds of head change, and `outcomes`, what became of heads and relations; `relations`, which became which;
        `graphs` and `roles`, arcs of one system only; `classes`, flipped or not by structures changed or not; `parts`,
        scores by distance, relation, role and length; `sentences` that gained and lost most. Empty ones are left out.

    Raises:
        ValueError: If the sentences are not the same on all sides, or there is nothing to compare.
    """
    for name, side in (("first", a), ("second", b)):
        if [s.forms for s in side] != [s.forms for s in gold]:
            raise ValueError(f"the {name} system has other sentences than the gold data; give the same ones.")
    kinds = {field for field in ("heads", "relations", "graph", "label") if _has(a, field) and _has(b, field)}
    kept = [[punctuation or not skip for skip in is_punctuation(sentence)] for sentence in gold]
    judges = _judges(kinds, punctuation) | _further_judges(gold, a, b)
    if not kinds and not judges:
        raise ValueError(
            "the systems have neither trees nor graphs nor classes in common: there is nothing to compare."
        )
    structure = _structure(kinds)
    changed = np.array([_differs(structure, *pair) for pair in zip(a, b, kept, strict=True)], dtype=np.bool_)
    groups = {"all": np.ones(len(gold), dtype=np.bool_)}
    if structure:
        groups |= {"same": ~changed}
        if structure == "heads" and "relations" in kinds:
            moved = np.array([_differs("unlabelled", *pair) for pair in zip(a, b, kept, strict=True)], dtype=np.bool_)
            groups |= {"relabelled": changed & ~moved, "different": moved}
        else:
            groups |= {"different": changed}
    found: Analysis = {"scores": list(_scores(gold, a, b, judges, groups, samples, seed))}
    if "heads" in kinds:
        graphs = b if against == "predicted" else gold
        if against == "predicted" and "graph" not in kinds:
            raise ValueError("against is 'predicted', and a system has no graphs to judge by; use 'gold'.")
        found["heads"] = _head_kinds(a, b, graphs, kept)
        found["outcomes"] = list(_outcomes(gold, a, b, kept, labelled="relations" in kinds))
    if "relations" in kinds:
        found["relations"] = _renamed(gold, a, b, kept)
    if "graph" in kinds:
        found["graphs"], found["roles"] = _graph_changes(a, b)
    if "label" in kinds:
        found["classes"] = _flips(gold, a, b, changed, structure)
    found["parts"] = list(_parts(gold, a, b, kept, kinds))
    found["sentences"] = _extremes(gold, a, b, judges, kinds, sample)
    return {name: rows for name, rows in found.items() if rows}


def _has(side: Sequence[Sentence], field: str) -> bool:
    there = [sentence.get(field) is not None for sentence in side]
    if any(there) and not all(there) and field != "relations":
        raise ValueError(f"a system has {field} for some of the sentences only; give its answer to all or to none.")
    return bool(there) and all(there)


def _structure(kinds: set[str]) -> str:
    """The intermediate structures: graphs or trees of classifiers, trees of parsers."""
    return "graph" if {"label", "graph"} <= kinds else "heads" if "heads" in kinds else ""


def _differs(structure: str, a: Sentence, b: Sentence, kept: Sequence[bool]) -> bool:
    if structure == "graph":
        return _arcs(a) != _arcs(b)
    if structure not in ("heads", "unlabelled"):
        return False
    sides = [zip(s.heads or (), (structure == "heads" and s.relations) or [""] * len(s), strict=True) for s in (a, b)]
    return any(one != other for one, other, counts in zip(*sides, kept, strict=True) if counts)


def _arcs(sentence: Sentence) -> set[tuple[int, int, str]]:
    """Arcs, and tops as arcs from the root."""
    graph = sentence.graph
    return set() if graph is None else {(0, top, "") for top in graph.tops}.union(map(tuple, graph.arcs))  # type: ignore[arg-type]


def _further_judges(gold: Sequence[Sentence], *answers: Sequence[Sentence]) -> dict[str, Callable[..., Counts]]:
    """What counts right answers of annotations beside the usual ones, by the name of the measure."""
    sides = (gold, *answers)
    labelled = Trees(relations=())
    found: dict[str, Callable[..., Counts]] = {}
    if all(s.get(name) is not None for side in sides for s in side for name in (labelled.name, *labelled.beside)):
        found[labelled.measures[0].name] = labelled.measures[0].counts
    others: dict[str, Callable[..., Counts]] = {
        measure.name if kind.is_usual else f"{name} {measure.name}": measure.counts
        for name, kind in annotations_in(gold).items()
        if name not in ("heads", "graph", "label")
        and all(sentence.get(name) is not None for side in sides for sentence in side)
        for measure in kind.measures
    }
    return found | others


def _judges(kinds: set[str], punctuation: bool) -> dict[str, _Judge]:
    found: dict[str, _Judge] = {}
    if "heads" in kinds:
        found["UAS"] = lambda gold, side: tree_counts(gold, side, punctuation=punctuation)
        found["exact trees"] = lambda gold, side: _exact(found["UAS"](gold, side))
    if "relations" in kinds:
        found["LAS"] = lambda gold, side: relation_counts(gold, side, punctuation=punctuation)
    if "graph" in kinds:
        found["LF"] = graph_counts
        found["UF"] = lambda gold, side: graph_counts(gold, side, labelled=False)
        found["exact graphs"] = lambda gold, side: _exact(graph_counts(gold, side))
    if "label" in kinds:
        found["accuracy"] = label_counts
    return found


_NEEDS = {"UAS": "heads", "exact trees": "heads", "LAS": "relations", "accuracy": "label"}
_NEEDS |= dict.fromkeys(("LF", "UF", "exact graphs"), "graph")


def _exact(counts: Counts) -> Counts:
    hits = (counts.correct == counts.predicted) & (counts.correct == counts.gold)
    return Counts(hits, np.ones_like(hits), np.ones_like(hits))


def _counted(
    gold: Sequence[Sentence], a: Sequence[Sentence], b: Sequence[Sentence], name: str, judge: _Judge
) -> tuple[_Bools, Counts, Counts] | None:
    """Which sentences can be judged, and both systems' counts in these; `None` if there are none."""
    field = _NEEDS.get(name)
    known = np.array([field is None or sentence.get(field) is not None for sentence in gold], dtype=np.bool_)
    if not known.any():
        return None
    places = np.flatnonzero(known).tolist()
    sides = [[side[k] for k in places] for side in (gold, a, b)]
    return known, judge(sides[0], sides[1]), judge(sides[0], sides[2])


def _scores(
    gold: Sequence[Sentence],
    a: Sequence[Sentence],
    b: Sequence[Sentence],
    judges: Mapping[str, _Judge],
    groups: Mapping[str, _Bools],
    samples: int,
    seed: int,
) -> Iterator[Row]:
    for measure, judge in judges.items():
        if (counted := _counted(gold, a, b, measure, judge)) is None:
            continue
        known, *sides = counted
        for name, members in groups.items():
            here = members[known]
            first, second = (Counts(c.correct[here], c.predicted[here], c.gold[here]) for c in sides)
            if not first.gold.any():
                continue
            result = bootstrap(second, first, samples=samples, seed=seed)
            yield {
                "sentences": name,
                "count": int(members.sum()),
                "measure": measure,
                "items": int(first.gold.sum()),
                "a": result.second,
                "b": result.first,
                "difference": result.difference,
                "low": result.low,
                "high": result.high,
                "p": result.p,
            }


def _head_kinds(
    a: Sequence[Sentence], b: Sequence[Sentence], graphs: Sequence[Sentence], kept: Sequence[Sequence[bool]]
) -> list[Row]:
    """Kinds of head change, how often they would be met by chance, and how often in the other direction.

    By chance: if both the old and the new head of each of these words were drawn from the root and all other words.
    """
    sums: dict[str, NDArray[np.float64]] = {kind: np.zeros(3) for kind in KINDS}
    changes = 0
    for one, other, semantic, counts in zip(a, b, graphs, kept, strict=True):
        if semantic.graph is None:
            continue
        pairs = {arc[:2] for arc in semantic.graph.arcs}
        for word, (old, new, here) in enumerate(zip(one.heads or (), other.heads or (), counts, strict=True), 1):
            if old == new or not here:
                continue
            changes += 1
            heads = {head for head, to in pairs if to == word} - {word}
            modifiers = {to for head, to in pairs if head == word} - {word}
            k = len(semantic)
            neither = (k - len(heads | modifiers)) * (k - len(modifiers) - 1) / (k * max(k - 1, 1))
            chance = {"a": len(heads) / k, "b": len(modifiers) / k, "c": len(modifiers) / k, "any": 1 - neither}
            for kind in KINDS:
                now, then = (_is_kind(kind, *pair, heads, modifiers) for pair in ((old, new), (new, old)))
                sums[kind] += now, chance[kind], then
    names = {kind: f"({kind}) {said}" if len(kind) == 1 else said for kind, said in KINDS.items()}
    return [
        {"kind": names[kind], "count": int(s[0]), **_shares(s / max(changes, 1))} for kind, s in sums.items() if changes
    ]


def _is_kind(kind: str, old: int, new: int, heads: set[int], modifiers: set[int]) -> bool:
    of_kind = {"a": new in heads, "b": new in modifiers, "c": old in modifiers}
    return of_kind[kind] if kind in of_kind else any(of_kind.values())


def _shares(values: NDArray[np.float64]) -> Row:
    return dict(zip(("share", "by chance", "other way"), map(float, values), strict=True))


def _words(
    gold: Sequence[Sentence], a: Sequence[Sentence], b: Sequence[Sentence], kept: Sequence[Sequence[bool]]
) -> Iterator[tuple[tuple[int | None, str | None], ...]]:
    """Head and relation of every word that counts: the right ones, those of A, those of B."""
    for sentences, counts in zip(zip(gold, a, b, strict=True), kept, strict=True):
        for k, here in enumerate(counts):
            if here:
                yield tuple((s.heads and s.heads[k], s.relations and s.relations[k]) for s in sentences)  # type: ignore[misc]


def _outcomes(
    gold: Sequence[Sentence],
    a: Sequence[Sentence],
    b: Sequence[Sentence],
    kept: Sequence[Sequence[bool]],
    *,
    labelled: bool,
) -> Iterator[Row]:
    parts: dict[str, slice] = {"heads": slice(0, 1)}
    if labelled:
        parts |= {"relations": slice(1, 2), "either": slice(0, 2)}
    for name, part in parts.items():
        row = Counter[str]()
        for right, first, second in ((x[part] for x in three) for three in _words(gold, a, b, kept)):
            row["words"] += 1
            if first != second:
                row["differ"] += 1
                if None not in right:
                    outcome = "put right" if second == right else "made wrong" if first == right else "wrong in both"
                    row[outcome] += 1
        yield {"of": name, **{key: row[key] for key in ("words", "differ", "put right", "made wrong", "wrong in both")}}


def _renamed(
    gold: Sequence[Sentence], a: Sequence[Sentence], b: Sequence[Sentence], kept: Sequence[Sequence[bool]]
) -> list[Row]:
    """Which relations became which, the most frequent first."""
    rows: dict[tuple[str, str], Row] = {}
    empty = {"words": 0, "same head": 0, "right in A": 0, "right in B": 0}
    for (_, right), (head_a, one), (head_b, other) in _words(gold, a, b, kept):
        if one != other:
            row = rows.setdefault((str(one), str(other)), {"A": one, "B": other, **empty})
            for key, said in zip(empty, (True, head_a == head_b, one == right, other == right), strict=True):
                row[key] += said
    return sorted(rows.values(), key=lambda row: (-row["words"], row["A"], row["B"]))


def _graph_changes(a: Sequence[Sentence], b: Sequence[Sentence]) -> tuple[list[Row], list[Row]]:
    """Arcs and tops of one system only; where the same two words are joined otherwise, an arc is relabelled."""
    sums, roles = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for one, other in zip(map(_arcs, a), map(_arcs, b), strict=True):
        sums["sentences"] += 1
        sums["changed"] += one != other
        sums["arcs of A"] += sum(head > 0 for head, _, _ in one)
        sums["arcs of B"] += sum(head > 0 for head, _, _ in other)
        gone, new = one - other, other - one
        pairs = [Counter((head, word) for head, word, _ in arcs if head) for arcs in (gone, new)]
        relabelled = (pairs[0] & pairs[1]).total()
        sums["relabelled"] += relabelled
        sums["removed"] += pairs[0].total() - relabelled
        sums["added"] += pairs[1].total() - relabelled
        sums["tops removed"] += sum(head == 0 for head, _, _ in gone)
        sums["tops added"] += sum(head == 0 for head, _, _ in new)
        for side, arcs in (("only A", gone), ("only B", new)):
            for head, _, role in arcs:
                if head:
                    roles[role][side] += 1
    by_role = sorted(roles.items(), key=lambda each: (-each[1].total(), each[0]))
    return [dict(sums)], [{"role": role, "only A": n["only A"], "only B": n["only B"]} for role, n in by_role]


def _flips(
    gold: Sequence[Sentence], a: Sequence[Sentence], b: Sequence[Sentence], changed: _Bools, structure: str
) -> list[Row]:
    """Classes flipped or not, by whether the structures that they are read off changed."""
    rows: dict[tuple[bool, bool], list[tuple[int | None, ...]]] = {}
    for three, moved in zip(zip(gold, a, b, strict=True), changed.tolist(), strict=True):
        labels = tuple(sentence.label for sentence in three)
        rows.setdefault((moved, labels[1] != labels[2]), []).append(labels)
    found = []
    for (moved, flipped), labels in sorted(rows.items()):
        known = [three for three in labels if three[0] is not None]
        right = [sum(three[0] == three[side] for three in known) for side in (1, 2)]
        row: Row = {
            structure or "structure": "different" if moved else "same",
            "class": "flipped" if flipped else "same",
        }
        row |= {"sentences": len(labels), "a": right[0] / max(len(known), 1), "b": right[1] / max(len(known), 1)}
        found.append(row)
    return found


def _parts(
    gold: Sequence[Sentence],
    a: Sequence[Sentence],
    b: Sequence[Sentence],
    kept: Sequence[Sequence[bool]],
    kinds: set[str],
) -> Iterator[Row]:
    """Scores by distance, relation, role and length of sentence: an answer counts as given at its own place."""
    if "heads" in kinds:
        words = [
            (k, right, one, other)
            for three, counts in zip(zip(gold, a, b, strict=True), kept, strict=True)
            if three[0].heads is not None
            for k, (right, one, other, here) in enumerate(zip(*(s.heads or () for s in three), counts, strict=True), 1)
            if here
        ]
        places = [_range(abs(right - k), DISTANCES) if right else "root" for k, right, _, _ in words]
        hits = [right == one for _, right, one, _ in words], [right == other for _, right, _, other in words]
        order = ["root", *_ranges(DISTANCES)]
        yield from _rows(
            "UAS", "distance", order, Counter(places), *((_where(places, h), Counter(places)) for h in hits)
        )
    if "relations" in kinds:
        known = [three for three in _words(gold, a, b, kept) if None not in three[0]]
        wanted = Counter(str(right[1]) for right, *_ in known)
        sides = []
        for n in (1, 2):
            hits = _where([str(three[0][1]) for three in known], [three[0] == three[n] for three in known])
            sides.append((hits, Counter(str(three[n][1]) for three in known)))
        yield from _rows("LAS", "relation", [name for name, _ in wanted.most_common()], wanted, *sides)
    if "graph" in kinds:
        arcs = [
            tuple(
                (k, arc) for k, (s, right) in enumerate(zip(side, gold, strict=True)) if right.graph for arc in _arcs(s)
            )
            for side in (gold, a, b)
        ]
        for by, place in (("distance", _arc_distance), ("role", lambda arc: arc[2] if arc[0] else "top")):
            wanted = Counter(place(arc) for _, arc in arcs[0])
            right = set(arcs[0])
            sides = [
                (Counter(place(x[1]) for x in side if x in right), Counter(place(arc) for _, arc in side))
                for side in arcs[1:]
            ]
            order = ["top", *_ranges(DISTANCES)] if by == "distance" else [name for name, _ in wanted.most_common()]
            yield from _rows("LF", by, order, wanted, *sides)
    for name, judge in _judges(kinds, punctuation=all(map(all, kept))).items():
        if name in ("UAS", "LF", "accuracy") and (counted := _counted(gold, a, b, name, judge)):
            known, *sides = counted
            here = [_range(len(s), LENGTHS) if len(s) else "" for s, one in zip(gold, known, strict=True) if one]
            columns = [[_sums(here, numbers) for numbers in (c.correct, c.predicted, c.gold)] for c in sides]
            (hits_a, given_a, wanted), (hits_b, given_b, _) = columns
            yield from _rows(name, "length", _ranges(LENGTHS), wanted, (hits_a, given_a), (hits_b, given_b))


def _arc_distance(arc: tuple[int, int, str]) -> str:
    return _range(abs(arc[0] - arc[1]), DISTANCES) if arc[0] else "top"


def _where(places: Iterable[str], hits: Iterable[bool]) -> Counter[str]:
    return Counter(place for place, hit in zip(places, hits, strict=True) if hit)


def _sums(places: Sequence[str], numbers: NDArray[np.int64]) -> Counter[str]:
    found = Counter[str]()
    for place, number in zip(places, numbers.tolist(), strict=True):
        found[place] += number
    return found


def _rows(
    measure: str, by: str, order: Iterable[str], wanted: Counter[str], *sides: tuple[Counter[str], Counter[str]]
) -> Iterator[Row]:
    """F1 of each part, from right, given and wanted answers."""
    for part in order:
        a, b = (2 * right[part] / max(given[part] + wanted[part], 1) for right, given in sides)
        if wanted[part]:
            row = {"measure": measure, "by": by, "part": part, "items": wanted[part]}
            yield {**row, "a": a, "b": b, "difference": b - a}


def _range(number: int, starts: Sequence[int]) -> str:
    return _ranges(starts)[sum(number >= start for start in starts) - 1]


def _ranges(starts: Sequence[int]) -> list[str]:
    ends = [start - 1 for start in starts[1:]]
    names = [str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=False)]
    return [*names, f"{starts[-1]} or more"]


def _extremes(
    gold: Sequence[Sentence],
    a: Sequence[Sentence],
    b: Sequence[Sentence],
    judges: Mapping[str, _Judge],
    kinds: set[str],
    sample: int,
) -> list[Row]:
    """The sentences that gained and lost most: classes put right and spoilt, or right minus wrong answers."""
    name = next((m for m in ("accuracy", "LF", "LAS", "UAS") if m in judges and _NEEDS[m] in kinds), "")
    counted = _counted(gold, a, b, name, judges[name]) if name else None
    if counted is None:
        return []
    known, first, second = counted
    gains = second.correct - first.correct
    if name == "LF":
        gains -= (second.predicted - second.correct) - (first.predicted - first.correct)
    places, order = np.flatnonzero(known).tolist(), np.argsort(-gains, kind="stable").tolist()
    chosen = [*(k for k in order[:sample] if gains[k] > 0), *(k for k in order[::-1][:sample] if gains[k] < 0)]
    return [
        {
            "gain": int(gains[k]),
            "of": name,
            "sentence": places[k] + 1,
            "id": gold[places[k]].id,
            "right in A": int(first.correct[k]),
            "right in B": int(second.correct[k]),
            "words": " ".join(gold[places[k]].forms),
        }
        for k in chosen
    ]


def analysis(
    first: Path,
    second: Path,
    file: Path | None = None,
    /,
    *,
    trees: Path | None = None,
    part: str = "dev",
    against: Literal["gold", "predicted"] = "gold",
    punctuation: bool = True,
    sample: int = 5,
    graph: Enhanced = False,
    samples: int = 2000,
    seed: int = 0,
    threads: int | None = None,
    format: str | None = None,
    csv: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Find out what differs between the structures inside two systems, and whether it helped.

    Parameters
    ----------
    first
        The folder of a run, or a file with its predictions: usually the pipeline.
    second
        The system to hold against it.
    file
        Gold sentences; by default those that the first run keeps, see --part.
    trees
        A file with gold trees for these sentences, which are found by their words.
    part
        Which of the gold sentences that are kept in the run: dev, or a test set such as id or ood.
    against
        Whether kinds of head change are judged by the gold graphs or by those that the second system predicts.
    punctuation
        Whether punctuation counts in everything about trees.
    sample
        How many of the sentences that gained and lost most to show.
    graph
        The enhanced column of CoNLL-U holds the semantic graphs.
    samples
        How often the bootstrap draws the sentences anew.
    seed
        Where the random numbers of the bootstrap start.
    threads
        How many threads torch may use; by default one for each core, up to four.
    format
        The format of FILE, if its name does not tell.
    csv
        A folder to write each table into.
    as_json
        Print the tables as JSON.
    """
    gold_file = file or first / f"gold.{part}.jsonl"
    if not gold_file.exists():
        raise FileNotFoundError(f"{gold_file} is not there; name a FILE with gold sentences after the systems.")
    gold = read_gold(gold_file, format, enhanced=graph, skip_bad=None)
    if trees is not None:
        gold = with_trees(gold, read_answers(trees, None, enhanced=False, skip_bad=None))
    with use_threads(threads):
        a, b = (answers(side, gold, file=gold_file, format=format, enhanced=graph) for side in (first, second))
    found = analyse(gold, a, b, against=against, punctuation=punctuation, sample=sample, samples=samples, seed=seed)
    for name, rows in found.items() if csv else ():
        assert csv is not None
        csv.mkdir(parents=True, exist_ok=True)
        write_csv(rows, csv / f"{name}.csv")
    if as_json:
        print_json({"first": first, "second": second, "file": gold_file, **found})
        return
    print(f"{gold_file}: {len(gold):,} sentences\nA = {first}\nB = {second}\n")
    for name, rows in found.items():
        frequent = rows[:_FREQUENT] if name in ("relations", "roles") else rows
        columns = list(rows[0])
        cells = [[_shown(row[column], column) for column in columns] for row in frequent]
        more = f"The {_FREQUENT} most frequent of {len(rows)}." if len(rows) > len(frequent) else ""
        show_table(plain_table(name.capitalize(), columns, cells, more))


def with_trees(gold: Sequence[Sentence], trees: Sequence[Sentence]) -> list[Sentence]:
    """The sentences with the trees that the same words have elsewhere, and no others."""
    bare = [replace(sentence, heads=None, relations=None) for sentence in gold]
    found = twins(bare, (tree for tree in trees if tree.heads is not None))
    if not any(found):
        raise ValueError("there is a tree for none of the sentences; give a file with the same words.")
    return [
        s if t is None else replace(s, heads=t.heads, relations=t.relations) for s, t in zip(bare, found, strict=True)
    ]


def _shown(value: Any, column: str) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if column == "p" else f"{100 * value:.2f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


if __name__ == "__main__":
    main(analysis)
