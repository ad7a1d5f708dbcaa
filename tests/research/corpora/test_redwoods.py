"""Derivations of our own, as trees."""

from pathlib import Path

import pytest
from delphin.derivation import UDFNode, UDFTerminal, UDFToken

from research.corpora.redwoods import dependencies, read_heads
from spigot_nlp.data import FormatError

SPANS = [(0, 3), (4, 8), (9, 13), (13, 14)]  # "The rain fell."
HEADS = {"sp-hd_n_c": 1, "sb-hd_mc_c": 1, "hd-pct_c": 0}


def leaf(start: int, end: int):
    token = UDFToken(1, f'token [ +FROM "{start}" +TO "{end}" ]')
    return UDFNode(0, "entry", daughters=[UDFTerminal("form", [token])])


def phrase(rule: str, *daughters):
    return UDFNode(0, rule, daughters=list(daughters))


def test_heads_of_phrases_govern_the_others() -> None:
    subject = phrase("sp-hd_n_c", leaf(0, 3), phrase("n_sg_ilr", leaf(4, 8)))
    clause = phrase("root_strict", phrase("sb-hd_mc_c", subject, phrase("hd-pct_c", leaf(9, 13), leaf(13, 14))))
    assert dependencies(clause, SPANS, HEADS) == ((2, 3, 0, 3), ("sp-hd", "sb-hd", "root", "hd-pct"))


def test_entries_of_several_words_and_words_of_none() -> None:
    clause = phrase("sb-hd_mc_c", leaf(0, 8), leaf(9, 13))
    assert dependencies(clause, SPANS, HEADS) == ((3, 1, 0, 3), ("sb-hd", "mwe", "root", "punct"))
    first = phrase("sb-hd_mc_c", leaf(4, 8), leaf(9, 13))
    assert dependencies(first, SPANS, HEADS) == ((2, 3, 0, 3), ("punct", "sb-hd", "root", "punct"))


@pytest.mark.parametrize(("rule", "root"), [("xp-hd_new_c", 2), ("hd-xp_new_c", 1)])
def test_rules_that_are_not_listed_go_by_their_names(rule: str, root: int) -> None:
    found = dependencies(phrase(rule, leaf(0, 3), leaf(4, 8)), SPANS[:2], {})
    assert found is not None
    assert found[0].index(0) + 1 == root


def test_what_is_no_tree_is_none() -> None:
    assert dependencies(phrase("sb-hd_mc_c", leaf(90, 91), leaf(92, 93)), SPANS, HEADS) is None
    assert dependencies(phrase("sb-hd_mc_c", leaf(90, 91), leaf(4, 8)), SPANS[:2], HEADS) == ((2, 0), ("punct", "root"))


def test_a_table_of_heads_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rules.hds"
    path.write_text("; daughters, head\nsb-hd_mc_c 2 1\n\nhd-cmp 2\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"rules\.hds:4: 'hd-cmp 2' is not a rule"):
        read_heads(path)
