"""The site works as its readers meet it: opened from a folder, on a screen of any width."""

import importlib.util
from pathlib import Path

import pytest

from tests.spigot_nlp.serve.browser import browser

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.xdist_group("browser")
def test_a_worker_runs_in_a_page_opened_from_a_folder(tmp_path: Path) -> None:
    """The search of the site is one. The page below asks before the worker can have been loaded, as the theme does."""
    (tmp_path / "worker.js").write_text(
        "addEventListener('message', async (event) => postMessage(event.data.toUpperCase()))", encoding="utf-8"
    )
    (tmp_path / "page.html").write_text(
        f"<script>{(DOCS / 'iframe-worker.js').read_text(encoding='utf-8')}</script><body><p></p><script>"
        "const worker = new Worker(new URL('worker.js', location));"
        "worker.addEventListener('message', (event) => document.querySelector('p').textContent += event.data);"
        "worker.postMessage('found'); worker.postMessage(' it')</script>",
        encoding="utf-8",
    )
    with browser() as page:
        page.open((tmp_path / "page.html").as_uri())
        page.until(lambda: page.text("p") == "FOUND IT", "the worker has not answered")
        assert page.count("iframe") == 1  # and not by a worker proper, which this browser was told to allow
        assert page.complaints() == []


def test_names_with_hyphens_stay_whole_in_tables() -> None:
    specification = importlib.util.spec_from_file_location("whole_words", DOCS / "whole_words.py")
    assert specification is not None
    assert specification.loader is not None
    hook = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hook)
    row = "<td><code>train sst-binary &lt;RUN&gt;</code> as-is</td>"
    whole = '<td><code>train <span class="whole">sst-binary</span> &lt;RUN&gt;</code> as-is</td>'
    assert hook.on_page_content(f"<p><code>a-b</code></p>{row}") == f"<p><code>a-b</code></p>{whole}"
