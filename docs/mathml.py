"""Formulas as MathML, made when the site is built: no script runs and nothing is fetched when a page is read.

The markdown extension `arithmatex` finds the formulas, in pages as in docstrings; this hook turns each into MathML. A
formula that is not understood stops the build.
"""

import html
import re

from spigot_nlp.report.mathml import mathml

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: object) -> str:
    """Called by mkdocs with the HTML of each page."""
    return _FORMULA.sub(_formula, content)


def _formula(found: re.Match[str]) -> str:
    block = found[2] == "["
    made = mathml(html.unescape(found[3]), block=block)
    return f'<div class="formula">{made}</div>' if block else made
