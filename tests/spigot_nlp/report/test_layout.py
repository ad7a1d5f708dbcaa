"""Where words and arcs go, and how much room letters take."""

from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spigot_nlp.report.glyphs import clusters, columns, ems, shorten, visible
from spigot_nlp.report.layout import Metrics, Span, layout, levels
from tests.spigot_nlp.report.drawings import any_text


def spans_of(count: int):
    pairs = st.tuples(st.integers(0, count), st.integers(1, count)).filter(lambda pair: pair[0] != pair[1])
    return st.lists(st.builds(lambda pair, label: Span(pair[0], pair[1], label), pairs, st.integers(0, 9)), max_size=30)


@settings(max_examples=60, deadline=None)
@given(spans_of(9))
def test_arcs_that_share_a_stretch_are_on_different_levels(spans):
    heights = levels(spans)
    placed = [(*sorted(span[:2]), level) for span, level in zip(spans, heights, strict=True) if span.start]
    for (low, high, level), (other_low, other_high, other) in combinations(placed, 2):
        if max(low, other_low) < min(high, other_high):
            assert level != other
            if low <= other_low and other_high <= high and (low, high) != (other_low, other_high):
                assert level > other
            if other_low <= low and high <= other_high and (low, high) != (other_low, other_high):
                assert level < other
    for root in (span.end for span in spans if span.start == 0):
        assert all(level > 1 for low, high, level in placed if low < root < high)
    # None could be lower: it rests on something that shares a stretch with it, or that it must pass over.
    for low, high, level in placed:
        if level > 1:
            under = [(a, b) for a, b, l in placed if l == level - 1]
            roots = [(s.end, s.end) for s in spans if s.start == 0 and level == 2]
            assert any(max(low, a) < min(high, b) for a, b in under) or any(low < a < high for a, _ in roots)


METRICS = [Metrics(5, 3, 6, 4), Metrics(1, 1, 2, 3, whole=True), Metrics(5, 3, 6, 4, widest=12)]


@pytest.mark.parametrize("metrics", METRICS)
@settings(max_examples=30, deadline=None)
@given(above=spans_of(6), below=spans_of(6), widths=st.lists(st.integers(1, 9), min_size=6, max_size=6))
def test_nothing_collides(metrics, above, below, widths):
    placed = layout(widths, above, below, metrics)
    edges = list(zip(placed.centres, placed.cells, strict=True))
    for (left, left_cell), (right, right_cell) in pairwise(edges):
        assert right - left >= (left_cell + right_cell) / 2 + metrics.gap - metrics.whole - 1e-6
    for spans, lines in ((above, placed.above), (below, placed.below)):
        # Every end has a place of its own, and arcs of one height keep apart.
        ends = sorted(x for span, line in zip(spans, lines, strict=True) for x in {line.start, line.end})
        least = metrics.port if metrics.widest > 100 else 0.01
        assert all(b - a >= least - 1e-6 for a, b in pairwise(ends))
        boxes = [(line.level, *sorted((line.start, line.end))) for line in lines]
        for (level, low, high), (other, other_low, other_high) in combinations(boxes, 2):
            assert level != other or high < other_low or other_high < low
        for span, line in zip(spans, lines, strict=True):
            low, high = sorted((line.start, line.end))
            if span.start:
                assert high - low >= span.label + metrics.room - 1e-6
                assert low <= line.label - span.label / 2 <= line.label + span.label / 2 <= high


def test_a_label_keeps_clear_of_the_legs_of_taller_arcs():
    spans = [Span(1, 4, 4), Span(3, 6, 4)]
    lower, taller = layout([4] * 6, spans, [], Metrics(1, 1, 1, 2)).above
    assert (lower.level, taller.level) == (1, 2)
    assert abs(lower.label - taller.start) >= 2


def test_crossing_arcs_in_a_row_need_two_levels():
    assert set(levels([Span(i, i + 2) for i in range(1, 400)])) == {1, 2}


@settings(max_examples=60, deadline=None)
@given(any_text)
def test_visible_text_has_a_shape_and_a_width(string):
    shown = visible(string)
    ElementTree.fromstring(f"<t>{shown.replace('&', '').replace('<', '').replace(']]>', '')}</t>")
    shown.encode()
    assert "".join(cluster for cluster, _ in clusters(shown)) == shown
    assert columns(shown) >= 1
    assert ems(shown) > 0
    assert columns(shorten(shown, 5)) <= 5
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("string", "width"),
    [("naïve", 5), ("nai\u0308ve", 5), ("東京", 4), ("👩\u200d🚀", 2),
     ("👍🏽", 2), ("🇫🇮🇸🇪", 4), ("❤\ufe0f", 2),
     ("각", 2), ("\u1100\u1161", 2)],
)  # fmt: skip
def test_columns(string, width):
    assert columns(string) == width
