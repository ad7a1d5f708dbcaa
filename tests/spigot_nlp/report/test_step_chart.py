"""The chart of an estimator's steps: as wide as they are, however small."""

import re
from xml.etree import ElementTree

import pytest

from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.models.trace import PartTrace, SentenceTrace
from spigot_nlp.report.axis import Axis
from spigot_nlp.report.step_chart import step_chart, written


def told(scale: float) -> SentenceTrace:
    into, other = Arc(2, 1, ""), Arc(0, 1, "")
    parts = (
        PartTrace(into, 1.0, scale, 1 - scale, 1 - scale / 2, scale / 2),
        PartTrace(other, 0.0, -scale, scale, scale / 2, -scale / 2),
    )
    return SentenceTrace(Sentence(("<Rain>", "fell")), 0.1, "", parts)


def chart(scale: float) -> str:
    account = told(scale)
    return step_chart(account, [part.part for part in account.parts], title="spigot")


@pytest.mark.parametrize("scale", [1e-4, 0.01, 1.0, 50.0])
def test_the_axis_spans_the_steps_and_no_more(scale: float) -> None:
    svg = chart(scale)
    ElementTree.fromstring(svg)
    crosses = [float(x) for x in re.findall(r'd="M([\d.]+) [\d.]+l7 7', svg)][1:]  # the first is in the legend
    assert max(crosses) - min(crosses) > 200  # of some 270 points that the axis has
    places = [float(x) for x in re.findall(r'"M([\d.-]+) ', svg)]
    assert all(0 <= place <= 440 for place in places)


def test_it_says_what_it_shows() -> None:
    svg = chart(0.01)
    assert ">spigot</text>" in svg
    assert "change of a part's value" in svg
    assert "fell → &lt;Rain&gt;" in svg
    assert ">0.01<" in svg or ">0.010<" in svg


def test_an_estimator_without_a_step_has_no_chart() -> None:
    account = SentenceTrace(Sentence(("Rain",)), 0.1, "", (PartTrace(Arc(0, 1, ""), 0.5, 1.0, 0.5, 0.5, 0.1),))
    assert step_chart(account, [Arc(0, 1, "")], title="attention").startswith("<p>It takes no step")


def test_numbers_have_the_digits_that_show_the_change() -> None:
    assert [written(value, 2e-4) for value in (0.99981, -0.00021, 0.0)] == ["0.999810", "−0.000210", "0"]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.013, 0.004), (57.3, 69.9), (-1e-7, 3e-7), (99.0, 99.4)])
def test_ticks_are_few_round_and_within(low: float, high: float) -> None:
    axis = Axis(low, high, 0.0, 100.0)
    ticks = axis.ticks(5)
    assert 2 <= len(ticks) <= 5
    assert all(low - 1e-12 <= tick <= high + 1e-12 for tick in ticks)
    texts = [axis.text(tick, 5) for tick in ticks]
    assert len(set(texts)) == len(texts)
