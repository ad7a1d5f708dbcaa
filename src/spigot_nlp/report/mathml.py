"""Formulas as MathML, which browsers draw by themselves: no script runs and nothing is fetched."""

import re
import unicodedata
from xml.etree import ElementTree

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"

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


def mathml(latex: str, *, block: bool = False) -> str:
    r"""A formula as a `<math>` element.

    Args:
        latex: The formula, as TeX writes it.
        block: Whether it has a line of its own.

    Raises:
        ImportError: If latex2mathml, which is among the extras `nlp` and `docs`, is not installed.
        ValueError: If some of it is not understood.

    Example:
        >>> mathml(r"\hat z = s").count("<mi>")
        2
    """
    from latex2mathml.converter import convert

    latex = " ".join(latex.split())
    for pattern, replacement in _SPELT_OTHERWISE:
        latex = pattern.sub(replacement, latex)
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
    made = ElementTree.tostring(root, encoding="unicode")
    if "\\" in made:
        raise ValueError(f"not all of the formula {latex!r} is understood: {made}")
    return made


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
