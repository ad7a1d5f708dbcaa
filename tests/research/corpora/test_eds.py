"""Elementary dependency structures of our own, as graphs over words."""

import pytest
from delphin.eds import EDS, Node
from delphin.lnk import Lnk

from research.corpora.eds import bilexical
from spigot_nlp.data import Arc, Graph


def convert(text: str, nodes: dict[str, tuple[str, str]], roles: dict[str, dict[str, str]], top: str) -> Graph:
    """Nodes are given by predicate and the words they cover; `~` before one keeps its word from being covered."""
    words = text.split()
    starts, place = [], 0
    for word in words:
        starts.append(place)
        place += len(word) + 1
    bare = [word.removeprefix("~") for word in words]
    spans = [(s, s if w.startswith("~") else s + len(w)) for s, w in zip(starts, words, strict=True)]

    def cover(some: str) -> Lnk:
        covered = [k for k, word in enumerate(bare) if word in some.split()]
        return Lnk.charspan(starts[covered[0]], starts[covered[-1]] + len(words[covered[-1]]))

    found = [Node(name, kind, edges=roles.get(name), lnk=cover(some)) for name, (kind, some) in nodes.items()]
    return bilexical(EDS(top, found), spans)


def shown(text: str, arcs: tuple[Arc, ...]) -> set[str]:
    words = text.replace("~", "").split()
    return {f"{words[head - 1]} {role} {words[word - 1]}" for head, word, role in arcs}


CASES: dict[str, tuple[str, dict[str, tuple[str, str]], dict[str, dict[str, str]], set[str], str]] = {
    "arguments and quantifiers": (
        "The frog sang ~.",
        {"q": ("_the_q", "The"), "x": ("_frog_n_1", "frog"), "e": ("_sing_v_1", "sang .")},
        {"q": {"BV": "x"}, "e": {"ARG1": "x"}},
        {"The BV frog", "sang ARG1 frog"},
        "sang",
    ),
    "a compound is an arc": (
        "rain water",
        {"x": ("_water_n_1", "water"), "y": ("_rain_n_1", "rain"), "c": ("compound", "rain water")},
        {"c": {"ARG1": "x", "ARG2": "y"}},
        {"rain compound water"},
        "water",
    ),
    "a conjunction is an arc between what it joins, and stands for the first": (
        "frogs and newts sang",
        {
            "x": ("_frog_n_1", "frogs"),
            "c": ("_and_c", "and"),
            "y": ("_newt_n_1", "newts"),
            "e": ("_sing_v_1", "sang"),
        },
        {"c": {"L-INDEX": "x", "R-INDEX": "y"}, "e": {"ARG1": "c"}},
        {"frogs _and_c newts", "sang ARG1 frogs"},
        "sang",
    ),
    "handles go before indices": (
        "sang but swam",
        {"e": ("_sing_v_1", "sang"), "c": ("_but_c", "but"), "f": ("_swim_v_1", "swam")},
        {"c": {"L-INDEX": "f", "R-INDEX": "e", "L-HNDL": "e", "R-HNDL": "f"}},
        {"sang _but_c swam"},
        "sang",
    ),
    "a conjunction that joins nothing is a word": (
        "But frogs sang",
        {"c": ("_but_c", "But"), "x": ("_frog_n_1", "frogs"), "e": ("_sing_v_1", "sang")},
        {"c": {"R-HNDL": "e"}, "e": {"ARG1": "x"}},
        {"But ARG2 sang", "sang ARG1 frogs"},
        "sang",
    ),
    "negation of a contraction stands on its second part": (
        "Frogs did n't sing",
        {"x": ("_frog_n_1", "Frogs"), "n": ("neg", "did n't"), "d": ("_do_v_1", "did n't"), "e": ("_sing_v_1", "sing")},
        {"n": {"ARG1": "e"}, "e": {"ARG1": "x"}, "d": {"ARG2": "e"}},
        {"n't neg sing", "sing ARG1 Frogs", "did ARG2 sing"},
        "n't",
    ),
    "a comparison stands on the word it is in": (
        "frogs are wetter than newts",
        {
            "x": ("_frog_n_1", "frogs"),
            "a": ("_wet_a_1", "wetter"),
            "c": ("comp", "wetter"),
            "y": ("_newt_n_1", "newts"),
        },
        {"a": {"ARG1": "x"}, "c": {"ARG1": "a", "ARG2": "y"}},
        {"wetter ARG1 frogs", "wetter than newts"},
        "wetter",
    ),
    "an expression of several words hangs together": (
        "frogs sang in front of newts",
        {
            "x": ("_frog_n_1", "frogs"),
            "e": ("_sing_v_1", "sang"),
            "p": ("_in+front+of_p", "in front of"),
            "y": ("_newt_n_1", "newts"),
        },
        {"e": {"ARG1": "x"}, "p": {"ARG1": "e", "ARG2": "y"}},
        {"sang ARG1 frogs", "of ARG1 sang", "of ARG2 newts", "front mwe in", "of mwe front"},
        "sang",
    ),
    "what has no word is passed through": (
        "Singing frogs matter",
        {
            "n": ("nominalization", "Singing frogs"),
            "e": ("_sing_v_1", "Singing"),
            "x": ("_frog_n_1", "frogs"),
            "m": ("_matter_v_1", "matter"),
        },
        {"n": {"ARG1": "e"}, "e": {"ARG1": "x"}, "m": {"ARG1": "n"}},
        {"Singing ARG1 frogs", "matter ARG1 Singing"},
        "matter",
    ),
    "a pair has one label, the first in the alphabet": (
        "frogs sang",
        {"x": ("_frog_n_1", "frogs"), "e": ("_sing_v_1", "sang")},
        {"e": {"ARG2": "x", "ARG1": "x"}},
        {"sang ARG1 frogs"},
        "sang",
    ),
}
TOPS = {
    "a compound is an arc": "c",
    "a conjunction that joins nothing is a word": "e",
    "handles go before indices": "c",
    "negation of a contraction stands on its second part": "n",
    "a comparison stands on the word it is in": "a",
    "what has no word is passed through": "m",
}


@pytest.mark.parametrize("case", CASES)
def test_words_of_nodes(case: str) -> None:
    text, nodes, roles, arcs, top = CASES[case]
    graph = convert(text, nodes, roles, TOPS.get(case, "e"))
    words = text.replace("~", "").split()
    assert shown(text, graph.arcs) == arcs
    assert [words[word - 1] for word in graph.tops] == [top]


def test_a_top_without_a_word_leads_to_one() -> None:
    nodes = {"s": ("discourse", "Well frogs sang"), "w": ("udef_q", "Well"), "e": ("_sing_v_1", "sang")}
    nodes["x"] = ("_frog_n_1", "frogs")
    graph = convert("Well frogs sang", nodes, {"s": {"ARG1": "w", "ARG2": "e"}, "e": {"ARG1": "x"}}, "s")
    assert graph.tops == (3,)


def test_a_top_that_leads_nowhere_is_the_first_word_without_a_head() -> None:
    nodes = {"s": ("subord", "frogs sang"), "x": ("_frog_n_1", "frogs"), "e": ("_sing_v_1", "sang")}
    assert convert("frogs sang", nodes, {"e": {"ARG1": "x"}}, "s").tops == (2,)
    assert convert("frogs sang", nodes, {"e": {"ARG1": "x"}, "x": {"ARG1": "e"}}, "s").tops == (1,)


def test_nothing_comes_to_nothing() -> None:
    graph = convert("Rain", {"x": ("_rain_n_1", "Rain")}, {}, "x")
    assert (graph.arcs, graph.tops) == ((), ())


def test_structures_that_turn_in_circles_end() -> None:
    nodes = {"u": ("unknown", "Rain fell"), "v": ("unknown", "Rain fell"), "e": ("_fall_v_1", "fell")}
    nodes["x"] = ("_rain_n_1", "Rain")
    graph = convert("Rain fell", nodes, {"u": {"ARG": "v"}, "v": {"ARG": "u"}, "e": {"ARG1": "x", "ARG2": "u"}}, "u")
    assert graph.arcs == (Arc(2, 1, "ARG1"),)
    assert graph.tops == (2,)
