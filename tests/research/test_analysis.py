"""Two systems on the same sentences, against what is counted by hand."""

import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from research.analysis import analyse, with_trees
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Arc, Graph, Sentence


def quick(*sides: Sequence[Sentence], **settings: Any) -> Any:
    return analyse(*sides, samples=5, **settings)


def scores(analysis: Any, sentences: str) -> dict[str, tuple[float, float]]:
    return {row["measure"]: (row["a"], row["b"]) for row in analysis["scores"] if row["sentences"] == sentences}


def test_the_kinds_of_an_example_counted_by_hand():
    #          1      2        3     4       5      6
    words = ("Mary", "wants", "to", "read", "old", "books")
    graph = Graph.of([Arc(2, 1, "ARG1"), Arc(2, 4, "ARG2"), Arc(4, 1, "ARG1"), Arc(4, 6, "ARG2"), Arc(5, 6, "ARG1")])
    gold = Sentence(words, heads=(2, 0, 4, 2, 6, 4), graph=graph)
    a = replace(gold, heads=(2, 0, 4, 6, 6, 4))  # read <- books: "books" is a semantic modifier of "read"
    b = replace(gold, heads=(4, 0, 2, 2, 4, 5))
    # 1: wants -> read, (a), right to wrong.        3: read -> wants, none, right to wrong.
    # 4: books -> wants, (a) and (c), to right.     5: books -> read, but books modifies old: (c), right to wrong.
    # 6: read -> old, (a), right to wrong.
    analysis = quick([gold], [a], [b])
    assert [row["count"] for row in analysis["heads"]] == [3, 0, 2, 4]
    assert analysis["heads"][-1]["share"] == 0.8
    (outcome,) = analysis["outcomes"]
    assert list(outcome.values()) == ["heads", 6, 5, 1, 4, 0]
    turned = quick([gold], [b], [a])["heads"]
    assert [row["count"] for row in turned] == [2, 2, 0, 4]
    assert turned[1]["share"] == analysis["heads"][1]["other way"]
    # Of six places each, two are semantic heads of word 1, one of word 4, two of word 6.
    assert analysis["heads"][0]["by chance"] == pytest.approx((2 + 0 + 1 + 0 + 2) / 6 / 5)


def test_sentences_are_divided_by_what_is_inside():
    """Table 3; relations may differ where heads do not, and graphs divide the sentences of classifiers."""
    words = ("Rain", "fell")
    gold = Sentence(words, heads=(2, 0), relations=("nsubj", "root"))
    renamed, moved = replace(gold, relations=("obj", "root")), replace(gold, heads=(0, 1))
    analysis = quick([gold] * 3, [gold] * 3, [gold, renamed, moved])
    counts = {row["sentences"]: row["count"] for row in analysis["scores"]}
    assert counts == {"all": 3, "same": 1, "relabelled": 1, "different": 1}
    assert scores(analysis, "relabelled") == {"UAS": (1, 1), "exact trees": (1, 1), "LAS": (1, 0.5)}
    assert analysis["relations"] == [
        {"A": "nsubj", "B": "obj", "words": 1, "same head": 1, "right in A": 1, "right in B": 0}
    ]
    film = Sentence(("not", "bad"), label=1)
    one, other = (replace(film, graph=Graph.of([Arc(1, 2, role)]), label=k) for k, role in enumerate(("ARG1", "ARG2")))
    analysis = quick([film] * 2, [one, other], [other, other])
    (same, flipped) = analysis["classes"]
    assert (same["graph"], same["class"], same["sentences"]) == ("same", "same", 1)
    assert (flipped["class"], flipped["a"], flipped["b"]) == ("flipped", 0, 1)
    assert scores(analysis, "different") == {"accuracy": (0, 1)}


def test_changes_of_graphs_and_who_gained():
    words = ("she", "wants", "tea")
    right = [Arc(2, 1, "ARG1"), Arc(2, 3, "ARG2")]
    gold = Sentence(words, graph=Graph.of(right, [2]))
    wrong = replace(gold, graph=Graph.of([Arc(2, 1, "ARG2"), Arc(1, 3, "ARG2")], [2]))
    half = replace(gold, graph=Graph.of(right[:1], [2]))
    analysis = quick([gold] * 4, [wrong, gold, half, gold], [gold, half, gold, gold], sample=1)
    (graphs,) = analysis["graphs"]
    assert (graphs["changed"], graphs["relabelled"], graphs["removed"], graphs["added"]) == (3, 1, 2, 2)
    gain, loss = analysis["sentences"]
    # 3 right, against 1 right and 2 wrong: +4. 2 right against 3: -1.
    assert (gain["sentence"], gain["gain"], loss["sentence"], loss["gain"]) == (1, 4, 2, -1)
    by_role = {row["part"]: (row["items"], row["a"]) for row in analysis["parts"] if row["by"] == "role"}
    assert by_role["ARG1"] == (4, pytest.approx(6 / 7))


def test_what_is_not_known_is_left_out():
    words = ("Rain", "fell", ".")
    tree, other = Sentence(words, heads=(2, 0, 2)), Sentence(words, heads=(2, 0, 1))
    assert quick([tree], [tree], [other]).keys() == {"scores", "outcomes", "parts", "sentences"}
    without = quick([tree], [tree], [other], punctuation=False)
    assert "different" not in {row["sentences"] for row in without["scores"]}
    bare = Sentence(words)
    assert quick([bare], [replace(bare, label=0)], [replace(bare, label=1)]).keys() == {"classes"}
    with pytest.raises(ValueError, match="nothing to compare"):
        quick([tree], [tree], [bare])
    with pytest.raises(ValueError, match="other sentences"):
        quick([tree], [tree], [Sentence(("Snow",), heads=(0,))])


def test_other_annotations_are_scored_under_their_names():
    right, wrong = (Graph.of([Arc(2, 1, role)]) for role in ("ARG1", "ARG2"))
    gold, good, bad = (Sentence(("Rain", "fell")).put("second", graph) for graph in (right, right, wrong))
    assert scores(quick([gold], [bad], [good]), "all") == {"second LF": (0, 1), "second UF": (1, 1)}


def test_the_command_reads_files_and_writes_tables(tmp_path: Path):
    words = ("Rain", "fell")
    gold = Sentence(words, heads=(2, 0))
    for name, heads in (("gold", (2, 0)), ("a", (2, 0)), ("b", (0, 1))):
        write([replace(gold, heads=heads)], tmp_path / f"{name}.conllu")
    files = [str(tmp_path / f"{name}.conllu") for name in ("a", "b", "gold")]
    command = [sys.executable, "-m", "research.analysis", *files, "--csv", str(tmp_path / "tables"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    with (tmp_path / "tables" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["sentences"], rows[0]["measure"], float(rows[0]["b"])) == ("all", "UAS", 0)
    assert json.loads(done.stdout)["outcomes"][0]["made wrong"] == 2


def test_trees_from_elsewhere():
    found = with_trees([Sentence(("Go",), label=1), Sentence(("Rain",))], [Sentence(("Go",), heads=(0,))])
    assert [sentence.heads for sentence in found] == [(0,), None]
