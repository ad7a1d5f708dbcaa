"""Drawings for TeX."""

import re

from hypothesis import given, settings

from spigot_nlp.report.arcs import Drawing
from spigot_nlp.report.tikz import escape, tikz
from tests.spigot_nlp.report.drawings import drawings, long_sentence


@settings(max_examples=40, deadline=None)
@given(drawings())
def test_tikz_is_well_formed(drawn):
    source = tikz(drawn)
    source.encode()
    check_tex(source)
    assert source.count(r"\draw[") == len(drawn.above) + len(drawn.below)
    assert len(re.findall(r"\\node\[(?:word|predicate)\]", source)) == len(drawn.words)
    assert source.rstrip().endswith(r"\end{document}")
    assert source.count(r"\end{document}") == 1
    body = tikz(drawn, standalone=False)
    assert body in source + "\n"
    assert r"\documentclass" not in body


def check_tex(source: str) -> None:
    """Reads TeX far enough to see braces, comments and mathematics as TeX does."""
    allowed = {
        "documentclass", "usepackage", "ifPDFTeX", "else", "fi", "usetikzlibrary", "begin", "end", "definecolor",
        "node", "draw", "sffamily", "bfseries", "fontsize", "selectfont", "textbackslash", "textasciicircum",
        "textasciitilde",
        "textquotesingle", "textasciigrave", "textquotedbl", "ldots", "times", "circ", "setsansfont",
        "emptyset", "rightarrow", "diamond",
    }  # fmt: skip
    depth, mathematics = 0, False
    for line in source.splitlines():
        if line.startswith("%"):
            continue
        for token in re.findall(r"\\[A-Za-z]+|\\.|.", line):
            if re.fullmatch(r"\\[A-Za-z]+", token):
                assert token[1:] in allowed
            elif token in "{}":
                depth += 1 if token == "{" else -1
                assert depth >= 0
            elif token == "$":
                mathematics = not mathematics
            else:
                assert token not in ("%", "#", "&", "~", "\\")
                assert mathematics or token not in ("^", "_")
        assert not mathematics
    assert depth == 0


def test_tex_escapes():
    assert escape("a_b & 50% {x}^~#$\\") == (
        r"a\_b \& 50\% \{x\}\textasciicircum{}\textasciitilde{}\#\$\textbackslash{}"
    )
    assert escape("--,,") == "-{}-{},{},"


def test_tex_lengths_stay_within_what_tex_knows():
    source = tikz(long_sentence(1200))
    assert max(float(x) for x in re.findall(r"\((-?[\d.]+),", source)) < 16_383


def test_tex_says_which_program_it_needs():
    assert tikz(Drawing(("naïve",))).startswith(r"\documentclass")
    assert tikz(Drawing(("“don’t”", "", "a\0b", "x → −1", "\u202e"))).startswith(r"\documentclass")
    assert tikz(Drawing(("東京",))).startswith("% !TeX program = lualatex")
    assert tikz(Drawing(("Ħal",))).startswith("% !TeX program = lualatex")


def test_signs_that_no_font_of_tex_has_are_written_otherwise():
    assert escape("a\0b\x7f\u202e→") == r"a\textbackslash{}x00b\textbackslash{}x7f$\diamond$$\rightarrow$"
    assert r"{$\emptyset$}" in tikz(Drawing(("",)))
