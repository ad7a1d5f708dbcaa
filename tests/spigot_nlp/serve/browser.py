"""A real browser for tests, or the reason why there is none."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

_Found = TypeVar("_Found")
SENTENCE = "The cat sees the dog here"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--allow-file-access-from-files", "--window-size=1200,1000",
)  # fmt: skip


class Browser:
    """A page in chromium, and what a person does with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._opened = 0

    def open(self, address: str) -> None:
        """Go to a page, afresh even if only the fragment differs."""
        self._opened += 1
        place, _, fragment = address.partition("#")
        self.driver.get(f"{place}?{self._opened}#{fragment}")

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: Callable[[], _Found], what: str) -> _Found:
        """Wait until something is so."""
        end = time.monotonic() + 60
        while not (found := condition()):
            assert time.monotonic() < end, f"{what}; the page says: {self.text('body')[:2000]}"
            time.sleep(0.02)  # each look keeps the browser from its work
        return found

    def count(self, selector: str) -> int:
        """How many elements there are."""
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def text(self, selector: str) -> str:
        """What the first such element says; nothing if there is none."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def wait_for(self, selector: str, count: int = 1) -> None:
        """Wait until there are so many elements."""
        self.until(lambda: self.count(selector) == count, f"{selector} is not there {count} times")

    def type(self, selector: str, text: str, *, clear: bool = True) -> None:
        """Type into a field."""
        field = self.driver.find_element("css selector", selector)
        if clear:
            field.clear()
        field.send_keys(text)

    def paste(self, selector: str, text: str) -> None:
        """Put a text into a field at once."""
        self.run(
            "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
            "field.dispatchEvent(new Event('input', {bubbles: true}))",
            selector,
            text,
        )

    def click(self, selector: str) -> None:
        """Press the mouse where an element is drawn; whatever lies on top there gets the click."""
        self.wait_for_any(selector)
        x, y = self.run(
            "const element = document.querySelector(arguments[0]);"
            "const drawn = element.querySelector('path.x') ?? element;"
            "drawn.scrollIntoView({block: 'center', inline: 'center'});"
            "const box = drawn.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2].map(Math.round);",
            selector,
        )
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        actions = ActionBuilder(self.driver, duration=0)
        actions.pointer_action.move_to_location(x, y)
        actions.pointer_action.click()
        actions.perform()

    def wait_for_any(self, selector: str) -> None:
        """Wait until there is such an element."""
        self.until(lambda: self.count(selector) > 0, f"there is no {selector}")

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def choose(self, selector: str, value: str) -> None:
        """Choose an option."""
        self.run(
            "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
            "field.dispatchEvent(new Event('change', {bubbles: true}))",
            selector,
            value,
        )

    def complaints(self) -> list[str]:
        """What the console has said since the last time, but for answers that were refused on purpose."""
        said = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        return [line for line in said if "the server responded with a status of 4" not in line]

    def resize(self, width: int, height: int) -> None:
        """Make the screen as large as that of another device; none of them is so small by a window alone."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@contextmanager
def browser() -> Iterator[Browser]:
    """Start chromium; skips the test where it is not installed."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing = "chromium" if chromium is None else "chromedriver"
        pytest.skip(f"there is no {missing}; install Debian's chromium and chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    profile = tempfile.mkdtemp(prefix="spigot-browser-")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.page_load_strategy = "eager"  # tests wait for what they need
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    try:
        yield Browser(made)
    finally:
        made.quit()
        shutil.rmtree(Path(profile), ignore_errors=True)


def drawn(page: Browser, text: str, panels: int = 1) -> None:
    """Wait until the page shows a sentence, and nothing else."""
    page.until(
        lambda: page.run("return [...document.querySelectorAll('.drawing')].map((d) => "
                         "[...d.querySelectorAll('.word')].map((w) => w.textContent).join(' '))") == [text] * panels,
        f"{text!r} is not drawn {panels} times",
    )  # fmt: skip
