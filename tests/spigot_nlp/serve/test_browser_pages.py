"""The pages beside the page, in a real browser: reports, the interface, a server behind a token."""

from urllib.parse import urlencode

import pytest

from spigot_nlp.report.page import render, write
from spigot_nlp.report.runs import report
from spigot_nlp.serve import Server
from tests.spigot_nlp.serve.browser import SENTENCE, drawn
from tests.spigot_nlp.serve.conftest import settings

pytestmark = pytest.mark.xdist_group("browser")  # one browser will do


def test_a_report_is_explored_from_disk(driven, run, tmp_path, monkeypatch):
    from selenium.webdriver.common.keys import Keys

    monkeypatch.setattr(
        "spigot_nlp.report.results.curves", lambda *_, **__: "<svg></svg>"
    )  # they take most of the time
    file = tmp_path / "report.html"
    write(render(report([run], sentences=4)), file)
    driven.resize(1200, 1000)
    driven.open(file.as_uri())
    # It opens with the verdict; everything else is folded, and opens for a key, a link, a printer, or all at once.
    folds = driven.count("details.fold")
    assert driven.count("details.fold[open]") == 0
    driven.wait_for(".verdict svg", 2)
    driven.run("document.querySelector('details.fold summary').focus()")
    driven.press(Keys.ENTER)
    driven.wait_for("details.fold[open]", 1)
    driven.run("document.querySelector('nav a:last-of-type').click()")
    driven.wait_for("details.fold[open]", 2)
    driven.run("dispatchEvent(new Event('beforeprint'))")
    driven.wait_for("details:not([open])", 0)
    driven.run("dispatchEvent(new Event('afterprint'))")
    driven.wait_for("details.fold[open]", 2)
    driven.click("[data-unfold]")
    driven.wait_for("details.fold[open]", folds)
    # The explorer: all sentences, then those with a word, then none.
    driven.wait_for(".explorer-list li", 4)
    driven.wait_for_any(".explorer-picture .arc")
    word = driven.run("return document.querySelector('.explorer-list li span').textContent.split(' ')[1]")
    driven.type("[name=words]", word)
    texts = "return [...document.querySelectorAll('.explorer-list li span')].map((span) => span.textContent)"
    shown = driven.run(texts)
    assert shown
    assert all(word.lower() in sentence.lower() for sentence in shown)
    driven.paste("[name=words]", "xyzzy")
    driven.wait_for(".explorer-list li", 0)
    driven.wait_for(".explorer-picture svg", 0)
    driven.paste("[name=words]", " ")
    driven.wait_for(".explorer-list li", 4)
    # Beside gold, and by itself.
    driven.wait_for_any(".explorer-picture :is(.right, .wrong, .missed)")
    driven.paste("[name=against]", "plain")
    driven.wait_for_any(".explorer-picture .plain")
    driven.wait_for(".explorer-picture :is(.right, .wrong, .missed)", 0)
    driven.resize(390, 800)
    assert driven.run("return document.documentElement.scrollWidth") <= 390
    assert driven.complaints() == []


def test_a_server_with_a_token_asks_for_it(driven, systems):
    driven.resize(1200, 1000)
    with Server(systems[:1], port=0, settings=settings(token="open-sesame-42")) as private, private.running():
        driven.open(f"{private.address}/#{urlencode({'text': SENTENCE})}")
        driven.wait_for("#token")
        driven.type("#token input", "open-barley\n")
        driven.wait_for("#token .trouble")
        driven.type("#token input", "open-sesame-42\n")
        drawn(driven, SENTENCE)
        assert driven.count("#token") == 0
        assert "sesame" not in driven.run("return location.href")
        driven.open(f"{private.address}/#{urlencode({'text': SENTENCE})}")  # the tab remembers it
        drawn(driven, SENTENCE)
        assert driven.complaints() == []


def test_the_interface_can_be_tried_on_a_page_of_its_own(driven, site):
    driven.resize(1200, 1000)
    driven.open(f"{site.address}/docs")
    driven.wait_for("html[data-ready]")
    paths = driven.run("return [...document.querySelectorAll('[data-path]')].map((one) => one.dataset.path)")
    assert paths == ["/api/parse", "/api/systems", "/health", "/ready", "/metrics"]
    driven.click("[data-path='/api/parse'] button")
    driven.wait_for("[data-path='/api/parse'] pre:not([hidden])")
    driven.until(lambda: driven.text("[data-path='/api/parse'] pre").startswith("200, "), "there is no answer")
    assert '"next_heads"' in driven.text("[data-path='/api/parse'] pre")
    broken = driven.run(
        "return [...document.querySelectorAll('a[href^=\"#\"]')].map((a) => a.getAttribute('href').slice(1))"
        ".filter((name) => !document.getElementById(name))"
    )
    assert broken == []
    fetched = driven.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert fetched
    assert all(name.startswith(site.address) for name in fetched)  # nothing from elsewhere
    assert driven.complaints() == []
