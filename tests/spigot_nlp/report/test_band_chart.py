"""The chart of scores along a number: well-formed, in the page's colours, with everything inside."""

import re
from xml.etree import ElementTree

import pytest

from spigot_nlp.report.band_chart import Band, BandPoint, band_chart
from spigot_nlp.report.figures import theme

POINTS = [BandPoint(x, y, y - 2, y + 2) for x, y in ((100, 50.0), (1000, 60.0), (10000, 65.0))]
MARKS = [(100.0, "100"), (1000.0, "1,000"), (10000.0, "all")]


def chart(bands: list[Band], **options: bool) -> str:
    return band_chart(bands, title="LF & more", x_label="graphs", y_label="LF", marks=MARKS, **options)


def test_it_is_well_formed_and_in_the_colours_of_the_page() -> None:
    svg = chart([Band("first & <only>", POINTS, 0), Band("second", POINTS, 13)], zero=True)
    ElementTree.fromstring(svg)
    used = set(re.findall(r"var\((--[\w-]+)", svg))
    assert used <= theme(dark=False).keys()
    assert not re.search(r"(?<!, )#[0-9a-f]{6}", svg)
    assert "first &amp; &lt;only&gt;" in svg


def test_steps_are_ratios_on_a_logarithmic_axis() -> None:
    for logarithmic in (True, False):
        x = [
            float(at)
            for at in re.findall(r'<circle cx="([\d.]+)"', chart([Band("a", POINTS, 0)], logarithmic=logarithmic))
        ]
        assert (x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)) == logarithmic


def test_points_without_intervals_have_no_band() -> None:
    svg = chart([Band("a", [BandPoint(100, 50.0), BandPoint(1000, 55.0)], 0)])
    assert 'class="band' not in svg
    assert svg.count("<circle") == 2


def test_a_band_without_end_stays_inside_and_leaves_the_lines_apart() -> None:
    wild = [BandPoint(100, 50.0, -900.0, 900.0), BandPoint(1000, 60.0, 59.0, 61.0)]
    svg = chart([Band("a", wild, 0)])
    height = float(re.search(r'viewBox="0 0 \d+ ([\d.]+)"', svg).group(1))  # type: ignore[union-attr] # it is there
    edge = re.search(r'class="band series-0" d="M([^Z]*)Z"', svg)
    assert edge is not None
    assert all(0 <= float(spot.split()[1]) <= height for spot in edge.group(1).split("L"))
    y = [float(at) for at in re.findall(r'cy="([\d.]+)"', svg)]
    assert y[0] - y[1] > 50


def test_marks_that_would_run_into_each_other_are_left_out() -> None:
    near = [(float(x), f"{x:,}") for x in range(1000, 1100)]
    svg = band_chart([Band("a", POINTS, 0)], title="t", x_label="x", y_label="y", marks=near)
    assert 0 < len(re.findall(r">1,0\d\d<", svg)) < 20


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="there are no points to draw"):
        band_chart([], title="t", x_label="x", y_label="y", marks=[])
    with pytest.raises(ValueError, match="0 has no logarithm; draw the places as they are"):
        chart([Band("a", [BandPoint(0, 1.0)], 0)], logarithmic=True)
