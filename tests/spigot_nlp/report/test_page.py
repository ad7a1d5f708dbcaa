"""The page: self-contained, escaped, and written whole or not at all."""

import base64
import hashlib
import json
import os
import re
from html.parser import HTMLParser

import pytest

from spigot_nlp.data.formats.files import check_target
from spigot_nlp.report.page import Page, Picture, Section, policy, render, write
from spigot_nlp.tables import Cell, Table, TableRow

PAGE = Page(
    title="Title <1>",
    lead="Lead & more.",
    sections=[
        Section(
            "Numbers",
            ["A paragraph."],
            [Picture('<svg viewBox="0 0 1 1"></svg>', "A caption.")],
            table=Table(["", "a", "b"], [TableRow("row", [Cell("1.0", "± 0.1", 0.5, best=True), Cell("2")], 3)]),
            half=True,
        ),
        Section("Words", ["Nothing else."]),
    ],
    facts=[("seed", "0")],
)


class Outline(HTMLParser):
    """The nesting of the tags, one line each, without attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.lines: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.lines.append("." * len(self.open) + tag)
        if tag not in ("meta", "link", "br", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_structure_of_the_page():
    outline = Outline()
    outline.feed(render(PAGE))
    assert outline.open == []
    assert " ".join(line.replace(".", "") for line in outline.lines) == (
        "html head meta meta meta meta title style body main h1 p div "
        "section h2 p div figure svg figcaption div div div table thead tr th th th tbody tr th span td b small "
        "span td section h2 p dl dt dd"
    )


def test_nothing_is_fetched():
    html = render(PAGE)
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<script|<link|<img|\bsrc=", html)


def test_text_is_escaped_and_pictures_are_not():
    html = render(PAGE)
    assert "<h1>Title &lt;1&gt;</h1>" in html
    assert "Lead &amp; more." in html
    assert '<svg viewBox="0 0 1 1"></svg>' in html


def test_light_dark_and_phone():
    html = render(PAGE)
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html


def test_scripts_data_and_details_have_their_place():
    page = Page(
        "T",
        "L",
        [
            Section(
                "S",
                markup="<i>as it is</i>",
                notes=["a <note>"],
                tables=[Table(["", "n"], [], "One"), Table([""], [])],
                key="s",
            )
        ],
        details=[("name <1>", "text & more")],
        styles=[".a > .b { color: red; }"],
        scripts=["if (1 < 2) { let a = '&'; }"],
        data={"numbers": {"word": "</script>", "more": [1, "\u2028", "\ud800"]}},
    )
    html = render(page)
    Outline().feed(re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))
    assert "<i>as it is</i>" in html
    assert "a &lt;note&gt;" in html
    assert ".a > .b { color: red; }" in html
    assert "<details><summary>name &lt;1&gt;</summary><pre>text &amp; more</pre></details>" in html
    assert '<a href="#s">S</a>' in html
    assert '<section id="s">' in html
    (script,) = re.findall(r"<script>(.*?)</script>", html)
    assert script == page.scripts[0]
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy(page.scripts)
    (text,) = re.findall(r'<script type="application/json" id="numbers">(.*?)</script>', html)
    assert json.loads(text) == page.data["numbers"]


def test_folded_sections_open_for_links_and_printers():
    page = Page(
        "T",
        "L",
        [
            Section("Verdict <1>", ["Why."]),
            Section("Numbers", ["Many."], key="numbers", about="what <is> inside", folded=True),
        ],
        facts=[("seed", "0")],
        made=["made <today>", "by hand"],
        foot="How",
    )
    html = render(page)
    outline = Outline()
    outline.feed(re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))
    assert outline.open == []
    assert "made &lt;today&gt; · by hand" in html
    assert html.index("Verdict &lt;1&gt;") < html.index("<nav")
    assert '<summary><h2>Numbers</h2> <span class="about">what &lt;is&gt; inside</span></summary>' in html
    # A browser opens what the target of a link is folded into, so the target must be inside.
    assert html.index("<h2>Numbers</h2>") < html.index('id="numbers"') < html.index("Many.")
    assert html.index("<summary><h2>How</h2></summary>") < html.index("<dl>")
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert "beforeprint" in script
    assert policy([script]).replace("'", "&#39;").replace("+", "&#43;") in html.replace("+", "&#43;")
    assert "details::details-content" in html


def test_a_page_without_scripts_allows_none():
    html = render(PAGE)
    assert "script-src" not in html
    assert "default-src &#39;none&#39;" in html


def test_write_replaces_the_old_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "page.html"
    write("old", target)
    write("new", target)
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    write("old", target)

    def fail(source, destination):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write("new", target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_bad_targets_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        check_target(tmp_path / "none" / "page.html")
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        check_target(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        check_target(tmp_path / "file" / "page.html")
