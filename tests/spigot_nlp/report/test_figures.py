"""Charts: valid XML, theme variables instead of colours, nothing that could clash on a page."""

import re
from xml.etree import ElementTree

from spigot_nlp.report.figures import SERIES, Curve, colour, curves, theme

LINES = [
    Curve("first & <only>", [0, 1, 2], [0.5, 0.8, 0.9], [0.1, 0.1, 0.2], 0),
    Curve("second", [0, 1, 2], [0.5, 0.6, 0.6], [0.0, 0.0, 0.0], 11, dashed=True),
]


def chart(key: str = "k") -> str:
    return curves(LINES, title="Learning & more", x_label="epoch", y_label="accuracy", key=key)


def test_charts_are_well_formed_and_repeat():
    ElementTree.fromstring(chart())
    assert chart() == chart()


def test_colours_are_variables_that_the_theme_defines():
    used = set(re.findall(r"var\((--[\w-]+)", chart()))
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


def test_numbers_that_are_no_shares_are_not_cut_off():
    line = Curve("loss", [1, 2], [7.5, 3.0], [0.5, 0.5], 0)
    percents, plain = (
        curves([line], title="t", x_label="x", y_label="y", key="k", shares=shares) for shares in (True, False)
    )
    ElementTree.fromstring(plain)
    assert ">8<" in re.sub(r"\s", "", plain)
    assert ">800<" in re.sub(r"\s", "", percents) or percents != plain


def test_a_single_point_is_seen():
    one = Curve("one", [1], [0.5], [0.0], 0)
    assert "<use" in curves([one], title="t", x_label="x", y_label="y", key="k").split("k-line-0")[-1]


def test_a_chart_by_itself_says_what_it_shows():
    tree = ElementTree.fromstring(chart())  # a file of its own needs the name space
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    texts = ["".join(element.itertext()).strip() for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Learning & more", "epoch", "accuracy", "first & <only>", "second"} <= set(texts)


def test_names_of_curves_are_no_formulas():
    costly = Curve("$5 and $6", [0, 1], [0.5, 0.6], [0.0, 0.0], 0)
    assert "$5 and $6" in curves([costly], title="$x$", x_label="x", y_label="y", key="k")
