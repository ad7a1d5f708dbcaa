"""Figure 1 to be moved by hand, put into the page that asks for it when the site is built."""

from spigot_nlp.report.figure1 import figure1_interactive

_PLACE = "<!-- figure 1, live -->"


def on_page_content(content: str, **_: object) -> str:
    """Called by mkdocs with the HTML of each page."""
    return content.replace(_PLACE, figure1_interactive()) if _PLACE in content else content
