"""Formulas as MathML, made when the site is built: no script runs and nothing is fetched when a page is read.

The markdown extension `arithmatex` finds the formulas, in pages as in docstrings; this hook turns each into MathML. A
formula that is not understood stops the build.
"""

import html
import re
import unicodedata
from xml.etree import ElementTree

from latex2mathml.converter import convert

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)

# What the converter does not know, in terms of what it does.
_SPELT_OTHERWISE = (
    (re.compile(r"\\arg\s*\\(max|min)(?![a-zA-Z])"), r"\\operatorname{arg\1}"),
    (re.compile(r"\\[bB]ig\\\{"), r"\\left\\{"),
    (re.compile(r"\\[bB]ig\|"), r"\\middle|"),
    (re.compile(r"\\[bB]ig\\\}"), r"\\right\\}"),
    (re.compile(r"\\[bB]ig(?![a-zA-Z])"), ""),  # other large brackets: plain ones will do
    (re.compile(r"\\mathrel\{(.)\}"), r"\1"),
)
_WITH_LIMITS = {"max", "min", "argmax", "argmin", "∑"}  # subscripts go underneath on a line of its own
_ACCENTS = {"^": "ˆ", "~": "˜"}


def on_page_content(content: str, **_: object) -> str:
    """Called by mkdocs with the HTML of each page."""
    return _FORMULA.sub(_formula, content)


def _formula(found: re.Match[str]) -> str:
    latex = " ".join(html.unescape(found[3]).split())
    for pattern, replacement in _SPELT_OTHERWISE:
        latex = pattern.sub(replacement, latex)
    block = found[2] == "["
    root = ElementTree.fromstring(convert(latex, display="block" if block else "inline").replace("<mi>&</mi>", "\\"))
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
        _use_characters(element)
        if element.tag == "mover" and (element[1].text or "") in _ACCENTS:
            element.attrib.pop("accent", None)  # as an accent proper it would touch the letter
            element[1].text = _ACCENTS[element[1].text or ""]
            element[1].set("stretchy", "false")
        if block and element.tag == "msub" and element[0].text in _WITH_LIMITS:
            element.tag = "munder"
    root.set("xmlns", _NAMESPACE)
    mathml = ElementTree.tostring(root, encoding="unicode")
    if "\\" in mathml:
        raise ValueError(f"docs/mathml.py does not understand all of the formula {latex!r}: {mathml}")
    return f'<div class="formula">{mathml}</div>' if block else mathml


def _use_characters(element: ElementTree.Element) -> None:
    """Browsers take letters of other alphabets as characters, not as an attribute of plain ones."""
    alphabet = element.get("mathvariant")
    if alphabet not in ("script", "bold") or not element.text:
        return
    del element.attrib["mathvariant"]
    element.text = "".join(_letter(letter, alphabet.upper()) for letter in element.text)


def _letter(letter: str, alphabet: str) -> str:
    name = unicodedata.name(letter).removeprefix("LATIN ").replace(" LETTER", "")
    for full in (f"MATHEMATICAL {alphabet} {name}", f"{alphabet} {name}"):
        try:
            return unicodedata.lookup(full)
        except KeyError:
            continue
    raise ValueError(f"there is no {alphabet.lower()} {letter}")
