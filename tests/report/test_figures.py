"""Charts: valid XML, theme variables instead of colours, nothing that could clash on a page."""

import re
from xml.etree import ElementTree

from spigot.report.figures import SERIES, Curve, colour, curves, dots, theme

LINES = [
    Curve("first & <only>", [0, 1, 2], [0.5, 0.8, 0.9], [0.1, 0.1, 0.2], 0),
    Curve("second", [0, 1, 2], [0.5, 0.6, 0.6], [0.0, 0.0, 0.0], 11, dashed=True),
]


def chart(key: str = "k") -> str:
    return curves(LINES, x_label="epoch", y_label="accuracy", key=key)


def test_charts_are_well_formed_and_repeat():
    ElementTree.fromstring(chart())
    assert chart() == chart()


def test_colours_are_variables_that_the_theme_defines():
    used = set(re.findall(r"var\((--[\w-]+)", chart() + dots([(0, 0)], [3])))
    assert used
    assert used <= theme(dark=False).keys() == theme(dark=True).keys()
    # what is left is the fallback inside a variable
    assert not re.search(r"(?<!, )#[0-9a-f]{6}", chart())


def test_charts_on_one_page_share_no_names():
    first, second = (set(re.findall(r' id="([^"]+)"', chart(key))) for key in ("a", "b"))
    assert first
    assert not first & second


def test_every_reference_has_its_target():
    svg = chart()
    names = set(re.findall(r' id="([^"]+)"', svg))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) <= names


def test_curves_can_be_picked_out_and_bring_no_rules():
    svg = chart()
    assert svg.count('class="line series-') == svg.count('class="band series-') == len(LINES)
    assert "<title>first &amp; &lt;only&gt;</title>" in svg
    assert "<style" not in svg


def test_colours_come_round_again():
    assert colour(len(SERIES)) == colour(0)


def test_dots_scale_to_the_frame():
    numbers = [float(x) for x in re.findall(r"M([\d.]+) ", dots([(-400, 0), (400, 3)], [0, 0]))]
    assert numbers == [3.0, 97.0]
    ElementTree.fromstring(dots([], []))


def test_numbers_that_are_no_shares_are_not_cut_off():
    line = Curve("loss", [1, 2], [7.5, 3.0], [0.5, 0.5], 0)
    percents, plain = (curves([line], x_label="x", y_label="y", key="k", shares=shares) for shares in (True, False))
    ElementTree.fromstring(plain)
    assert ">8<" in re.sub(r"\s", "", plain)
    assert ">800<" in re.sub(r"\s", "", percents) or percents != plain


def test_a_single_point_is_seen():
    assert (
        "<use" in curves([Curve("one", [1], [0.5], [0.0], 0)], x_label="x", y_label="y", key="k").split("k-line-0")[-1]
    )
