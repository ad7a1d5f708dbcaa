"""The page in a real browser: typing, forcing, forbidding, comparing, sharing."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode
from xml.etree import ElementTree

import pytest

from spigot_nlp.data.formats import read
from spigot_nlp.serve import Server
from tests.spigot_nlp.serve.browser import SENTENCE, Browser, drawn

pytestmark = pytest.mark.xdist_group("browser")  # one browser will do


@pytest.fixture
def page(driven: Browser, site: Server) -> Iterator[Browser]:
    """The page, newly opened; it must have had nothing to complain about at the end."""
    driven.resize(1200, 1000)
    visit(driven, site, system="tiny")
    yield driven
    assert driven.complaints() == []


def visit(page: Browser, site: Server, **state: str) -> None:
    page.open(f"{site.address}/#{urlencode(state)}")
    page.wait_for("html[data-ready]")


def parsed(page: Browser, text: str = SENTENCE, panels: int = 1) -> None:
    """Put a sentence into the page and wait for its drawing."""
    page.paste("#text", text)
    drawn(page, text, panels)


def heads(page: Browser) -> dict[int, int]:
    """The heads in the drawing, without what is gone."""
    return dict(
        page.run(
            "return [...document.querySelectorAll('.arc[data-side=below]:not(.gone)')].map((arc) => "
            "[Number(arc.dataset.end), Number(arc.dataset.start)])"
        )
    )


def state(page: Browser) -> dict[str, list[str]]:
    return parse_qs(page.run("return location.hash").removeprefix("#"))


def test_a_sentence_is_drawn_as_it_is_typed(page):
    page.type("#text", SENTENCE)
    drawn(page, SENTENCE)
    assert sorted(heads(page)) == [1, 2, 3, 4, 5, 6]
    page.type("#text", " often", clear=False)
    drawn(page, f"{SENTENCE} often")
    assert state(page)["text"] == [f"{SENTENCE} often"]
    assert page.text("#busy").endswith("ms")
    page.paste("#text", "Rain. Sun.")
    page.wait_for(".sentence", 2)
    page.click("#examples button:last-child")
    page.wait_for(".sentence", 1)
    assert page.run("return document.querySelector('#text').value") == page.text("#examples button:last-child")
    page.paste("#text", " ")
    page.wait_for(".sentence", 0)


def test_what_passed_each_wire_can_be_looked_at(page, site):
    visit(page, site, system="three", text=SENTENCE)
    drawn(page, SENTENCE)
    assert page.count(".wire") == 0
    page.click(".passed summary")
    page.wait_for(".wire", 2)
    assert page.text(".wire h4") == "syntax → semanticstree · spigot"
    assert page.count('.wire[data-wire="syntax -> semantics"] .arc[data-side="below"]') == 6
    page.type("#text", " often", clear=False)
    page.wait_for('.wire[data-wire="syntax -> semantics"] .arc[data-side="below"]', 7)  # it stays unfolded


def test_annotations_with_names_of_their_own_are_shown(page, site):
    visit(page, site, system="named", text=SENTENCE)
    drawn(page, SENTENCE)
    assert page.count(".drawing .tag") == 6
    assert page.text(".said").startswith("mood ")
    visit(page, site, system="two", text=SENTENCE)
    drawn(page, SENTENCE)
    assert page.text(".panel h3 small") == "graphs · second, graph"
    page.click('.arc[data-side="second"]')
    page.wait_for("#menu:not([hidden])")
    assert "Nothing of this structure can be forced or forbidden." in page.text("#menu")


def test_whoever_arrives_sees_an_example_and_two_systems_compared(page, site, run):
    visit(page, site)
    example = page.run("return document.querySelector('#text').value")
    kept = {sentence.forms for name in ("dev", "train") for sentence in read(run / f"gold.{name}.jsonl")}
    page.wait_for(".drawing", 2)
    words = page.run(
        "return [...document.querySelector('.drawing').querySelectorAll('.word')].map((w) => w.textContent)"
    )
    assert tuple(words) in kept
    assert page.count("#examples button") > 1
    found = {name: value for name, (value,) in state(page).items()}
    assert found == {"text": example, "system": "tiny", "with": "trees"}
    # An address that says something is taken at its word, and only what it does not say is filled in.
    visit(page, site, system="trees")
    page.wait_for(".drawing", 1)
    assert page.run("return document.querySelector('#text').value") == page.text("#examples button")
    page.choose("#first", "tiny")
    page.until(lambda: page.text("#examples button") == example, "the examples are not those of the system")


def test_what_is_forced_looks_forced_and_what_is_forbidden_is_listed(page, site):
    demands = '[[0,0,1,4,2,"","the","cat"],[0,0,0,2,1,"","cat","The"],[0,0,0,6,5,"","here","dog"]]'
    visit(page, site, text=SENTENCE, system="tiny", c=demands)
    page.wait_for(".chips .forbid", 2)
    assert page.text(".chips .forced h4") == "Forced"
    assert page.count(".chips .forced .sign") == 1
    assert page.count(".chips .forbidden .sign") == 2
    assert "here → dog" in page.text(".chips .forbidden")
    arc = ".arc.forced[data-side=below][data-start='4'][data-end='2']"
    page.wait_for(f"{arc} .k")
    # A double line: another shape, not another colour.
    widths = page.run(
        "const arc = document.querySelector(arguments[0]); return ['path:not([class])', 'path.i'].map((one) => "
        "parseFloat(getComputedStyle(arc.querySelector(one)).strokeWidth))", arc
    )  # fmt: skip
    assert widths[0] > 2 * widths[1] > 0
    assert "forced" in page.run("return document.querySelector(arguments[0]).querySelector('title').textContent", arc)
    assert page.count(".drawing .arc.forced") == 1
    assert page.count(".drawing .arc.forbidden:not(.gone)") == 0
    for meaning in ("forced: must be there", "forbidden: must not be there"):
        assert meaning in page.text("#legend")
    page.choose("#second", "trees")
    page.wait_for(".drawing .arc.forced", 2)
    page.click(".chips .all")
    page.wait_for(".chips", 0)
    page.wait_for(".drawing .arc.forced", 0)


def test_a_head_is_forced_by_clicking_and_released(page):
    parsed(page)
    before = heads(page)
    page.click(".word[data-word='2']")
    page.wait_for("#menu:not([hidden])")
    choices = page.run("return [...document.querySelectorAll('#heads button')].map((b) => Number(b.dataset.head))")
    assert before[2] in choices
    wanted = next(head for head in choices if head != before[2])
    assert "%" in page.text("#heads")
    page.click(f"#heads button[data-head='{wanted}']")
    page.wait_for(".chips .force")
    page.wait_for(f".arc.new[data-side=below][data-start='{wanted}'][data-end='2']")
    page.wait_for(f".arc.gone[data-side=below][data-start='{before[2]}'][data-end='2']")
    assert heads(page)[2] == wanted
    assert page.count("#menu:not([hidden])") == 0
    # What was forced stays when the sentence goes on, and goes when its words do.
    page.type("#text", " often", clear=False)
    drawn(page, f"{SENTENCE} often")
    page.wait_for(".chips .force")
    page.until(lambda: heads(page).get(2) == wanted, "the head is not forced any more")
    page.click(".chips .force")
    page.wait_for(".chips", 0)
    page.wait_for(".drawing .arc.new", 0)
    assert "c" not in state(page)


def test_an_arc_is_forbidden_with_the_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    parsed(page)
    before = heads(page)
    arc = f".arc[data-side=below][data-end='5'][data-start='{before[5]}']"
    page.run("document.querySelector(arguments[0]).focus()", arc)
    page.press(Keys.ENTER)
    page.wait_for("#menu:not([hidden])")
    page.press(Keys.ESCAPE)
    page.wait_for("#menu:not([hidden])", 0)
    assert page.run("return document.activeElement.matches(arguments[0])", arc)
    page.press(Keys.ENTER)
    page.wait_for("#menu [data-action=forbid]")
    page.press(Keys.ARROW_DOWN)
    assert page.run("return document.activeElement.dataset.action") == "forbid"
    page.press(Keys.ENTER)
    page.wait_for(".chips .forbid")
    page.until(lambda: heads(page).get(5) not in (None, before[5]), "the arc is still there")
    # Forced by a click on what is gone; that takes the prohibition back.
    page.click(f"{arc}.gone")
    page.click("#menu [data-action=force]")
    page.wait_for(".chips .force")
    page.until(lambda: heads(page) == before, "the old tree is not back")
    page.wait_for(".chips .forbid", 0)


def test_two_systems_side_by_side_and_in_one(page):
    parsed(page)
    page.choose("#second", "trees")
    drawn(page, SENTENCE, panels=2)
    page.wait_for(".beside")
    first, second = (".panel[data-system=tiny]", ".panel[data-system=trees]")
    assert page.count(f"{first} .arc.gone") > 0
    assert page.count(f"{first} .arc.new") == 0
    assert page.count(f"{second} .arc.new") > 0
    assert page.count(f"{second} .arc.gone") == 0
    marks = page.count(f"{first} .arc.gone") + page.count(f"{second} .arc.new")
    page.click("#overlay")
    drawn(page, SENTENCE, panels=1)
    assert page.count(".drawing .gone") + page.count(".drawing .new") == marks
    assert {name: state(page)[name] for name in ("system", "with", "view")} == {
        "system": ["tiny"], "with": ["trees"], "view": ["one"]
    }  # fmt: skip
    page.choose("#second", "")
    page.wait_for(".panel", 1)
    page.wait_for(".drawing .arc.new", 0)


def test_constraints_go_when_another_system_cuts_other_words(page, site):
    demands = '[[0,0,1,0,1,"","root","The"],[0,0,1,1,5,"","The","cat"]]'
    visit(page, site, text="The far-off cat", c=demands)
    drawn(page, "The far - off cat")
    page.wait_for(".chips .force", 2)
    page.choose("#first", "uncut")
    drawn(page, "The far-off cat")
    page.wait_for(".chips .force", 1)
    assert page.text(".chips .force").split("\n")[0] == "root → The"
    assert heads(page)[1] == 0


def test_a_graph_arc_changes_the_class(page, site):
    visit(page, site, text=SENTENCE, system="mood")
    page.wait_for(".classes .bar", 2)
    before = page.text(".classes")
    page.click(".word[data-word='1']")
    page.run(
        "const [way, other, role] = document.querySelectorAll('#menu select'); other.value = 6; role.value = 'ARG2'"
    )
    page.click("#menu [data-action=force-arc]")
    page.wait_for(".arc[data-side=above][data-start='1'][data-end='6'][data-label=ARG2]")
    assert page.text(".classes") != before
    assert page.count(".classes .before") == 2
    assert "ARG2" in page.text(".chips")
    page.click(".word[data-word='4']")
    page.run("document.querySelectorAll('#menu select')[1].value = 0")
    page.click("#menu [data-action=force-arc]")
    page.wait_for_any(".arc[data-side=above][data-start='0'][data-end='4']")
    assert "top: the" in page.text(".chips")


def test_a_link_brings_everything_back(page, site):
    rows = '[[0,0,1,4,2,"","the","cat"]]'
    given = {"text": SENTENCE, "system": "trees", "with": "tiny", "c": rows}
    visit(page, site, **given)
    drawn(page, SENTENCE, panels=2)
    page.wait_for(".chips .force")
    assert page.count(".arc[data-side=below][data-start='4'][data-end='2']") == 2
    assert {name: value for name, (value,) in state(page).items()} == given
    visit(page, site, text="Rain fell", c='{"broken', system="nobody")
    drawn(page, "Rain fell")
    page.wait_for(".chips", 0)


def test_what_is_wrong_is_said_in_place(page, site):
    parsed(page)
    page.paste("#text", "cat " * 45)
    page.until(lambda: "a sentence may have 40" in page.text("#error").lower(), "there is no complaint")
    page.paste("#text", SENTENCE)
    page.wait_for("#error[hidden]")
    drawn(page, SENTENCE)
    # A demand that no tree can meet is said, and can be taken back.
    visit(page, site, text=SENTENCE, c='[[0,0,1,2,1,"","cat","The"],[0,0,1,1,2,"","The","cat"]]')
    page.until(lambda: "word 1 has head 2" in page.text("#error"), "there is no complaint")
    page.wait_for(".stale .chips .force", 2)
    page.click(".chips .force")
    page.wait_for("#error[hidden]")
    page.wait_for(".chips .force", 1)
    assert heads(page)[2] == 1


def test_words_are_never_markup(page):
    parsed(page, "< b > & ;")
    assert page.count(".drawing b") == 0
    # No tokeniser leaves such a word whole, but programs may send it.
    page.run(
        "const words = ['<img src=x onerror=window.hit=true>', '</text><script>window.hit=true</script>'];"
        "fetch('/api/parse', {method: 'POST', headers: {'Content-Type': 'application/json'},"
        " body: JSON.stringify({words, draw: true})}).then((answer) => answer.json()).then((answer) => {"
        " document.querySelector('.drawing').innerHTML = answer.sentences[0].answers[0].svg; });"
    )
    page.wait_for(".drawing .word", 2)
    assert page.count(".drawing img, .drawing script") == 0
    assert page.run("return window.hit === undefined")


def test_a_drawing_is_saved_as_a_file(page):
    parsed(page)
    page.run(
        "HTMLAnchorElement.prototype.click = function () { window.saved = this.download; };"
        "const make = URL.createObjectURL; URL.createObjectURL = (blob) => {"
        " blob.text().then((text) => { window.content = text; }); return make(blob); };"
    )
    page.click(".save")
    page.until(lambda: page.run("return window.content ?? ''"), "nothing was saved")
    assert page.run("return window.saved") == "sentence-1.svg"
    content = page.run("return window.content")
    assert content.startswith('<svg class="arcs" xmlns="http://www.w3.org/2000/svg"')
    words = [element.text for element in ElementTree.fromstring(content).iter() if "word" in element.get("class", "")]
    assert words == SENTENCE.split()


def test_a_phone_shows_it_all(page):
    page.resize(390, 800)
    parsed(page, SENTENCE)
    page.choose("#second", "graphs")
    drawn(page, SENTENCE, panels=2)
    assert page.count(".beside") == 0
    page.click(".word[data-word='3']")
    page.wait_for("#menu:not([hidden])")
    assert page.run("return document.documentElement.scrollWidth") <= 390
    left, right = page.run(
        "const b = document.querySelector('#menu').getBoundingClientRect(); return [b.left, b.right]"
    )
    assert left >= 0
    assert right <= 390
