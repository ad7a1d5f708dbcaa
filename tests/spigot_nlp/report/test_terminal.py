"""Drawings for terminals."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spigot_nlp.report.arcs import Drawing, DrawnArc, drawing
from spigot_nlp.report.glyphs import columns, visible
from spigot_nlp.report.terminal import text
from tests.spigot_nlp.report.drawings import FOUND, RIGHT, WORDS, drawings, long_sentence

SNAPSHOT = [
    "           ╭┄┄○MANNER┄╮",
    " ┌─ARG1─┐✗ ┆┌╌✗ARG2╌┐ ┆ ○",
    " ▼      │▼ ┆╎       ▼ ▽ ▽",
    "Rain     fell       softly  on   roofs",
    " ▲      │▲┆╎│         ▲    ▲△╎   ▲ ┆ △",
    " └──────┘│┆╎└─────────┘    ╎┆└╌✗╌┘ ┆ ┆",
    "          ┆└╌╌╌╌╌╌╌✗╌╌╌╌╌╌╌┘╰┄┄┄○┄┄╯ ┆",
    "          ╰┄┄┄┄┄┄┄┄┄┄┄┄┄○┄┄┄┄┄┄┄┄┄┄┄┄╯",
]


def test_text_snapshot():
    drawn = drawing(FOUND, gold=RIGHT)
    assert text(drawn).splitlines() == SNAPSHOT


@settings(max_examples=40, deadline=None)
@given(drawings(), st.sampled_from([None, 7, 20, 40]))
def test_text_keeps_words_and_arrows_in_their_columns(drawn, width):
    lines = text(drawn, width=width).splitlines()
    heads = Counter(character for line in lines for character in line if character in "▼▽▲△")
    shown = Counter(c for word in (*drawn.words, *drawn.tags) for c in word if c in "▼▽▲△")
    shown += Counter(c for a in (*drawn.above, *drawn.below) for c in a.label if c in "▼▽▲△")
    if not shown:
        for side, (closed, opened) in (("above", "▼▽"), ("below", "▲△")):
            arcs = Counter(arc.mark in ("missed", "gone") for arc in getattr(drawn, side))
            assert (heads[closed], heads[opened]) == (arcs[False], arcs[True])
    widest = max((columns(visible(word)) for word in (*drawn.words, *drawn.tags)), default=0)
    ends = Counter((side, end) for side in ("above", "below") for a in getattr(drawn, side) for end in (a.start, a.end))
    if width is not None:
        assert all(columns(line) <= max(width, widest, *ends.values(), 1) for line in lines)


@pytest.mark.parametrize("words", [("東京", "e\u0301te\u0301", "👩\u200d🚀", "שלום", "a"), WORDS])
def test_arrows_point_at_their_words_whatever_the_letters(words):
    drawn = Drawing(words, above=tuple(DrawnArc(0, i, "TOP") for i in range(1, 6)))
    arrow, line = text(drawn).splitlines()[1:]
    starts, place = [], 0
    for word in words:
        prefix = line[: line.index(word, place)]
        starts.append((columns(prefix), columns(word)))
        place = len(prefix) + len(word)
    arrows = [x for x, character in enumerate(arrow) if character == "▼"]
    assert len(arrows) == 5
    assert all(start <= x < start + wide for x, (start, wide) in zip(arrows, starts, strict=True))


def test_a_wide_sentence_is_cut_into_pieces():
    drawn = long_sentence(60)
    shown = text(drawn, width=80)
    pieces = shown.split("\n\n")
    assert len(pieces) > 3
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert re.findall(r"word\d+", shown) == list(drawn.words)
    assert shown.count("ARG1") >= sum(arc.label == "ARG1" for arc in drawn.above)
    assert text(drawn).count("\n\n") == 0


def test_colours_are_only_added():
    drawn = drawing(FOUND, gold=RIGHT)
    coloured = text(drawn, colour=True)
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == text(drawn)
    assert {"\x1b[31m", "\x1b[34m", "\x1b[36m"} <= set(re.findall(r"\x1b\[[\d;]+m", coloured))
