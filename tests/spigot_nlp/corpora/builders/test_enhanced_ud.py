"""Enhanced dependencies as graphs."""

from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.corpora.builders import enhanced_ud
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Arc

ROWS = """# sent_id = frogs-1
1 Frogs frog NOUN NNS _ 2 nsubj 2:nsubj|5:nsubj:xsubj _
2 hope hope VERB VBP _ 0 root 0:root _
3 , , PUNCT , _ 5 punct 5:punct _
4 to to PART TO _ 5 mark 5:mark _
5 swim swim VERB VB _ 2 xcomp 2:ccomp|2:xcomp:to _
6 in in ADP IN _ 7 case 7:case _
7 rain rain NOUN NN _ 5 obl:tmod 5:obl:tmod:in|7.1:dep _
7.1 falling fall VERB VBG _ _ _ 7:acl _
"""


def treebank(folder: Path, name: str = "en_storm", text: str = ROWS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = (line if line.startswith("#") else line.replace(" ", "\t") for line in text.splitlines())
    (folder / f"{name}-ud-test.conllu").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return folder


def arcs(folder: Path, **options: Any) -> tuple[Arc, ...]:
    built = enhanced_ud(treebank(folder / "UD_English-Storm"), folder / "data", **options)
    (sentence,) = read(built.folder / "test.sdp")
    assert sentence.graph is not None
    assert sentence.graph.tops == (2,)
    return sentence.graph.arcs


def test_graphs_have_what_sdp_can_have(tmp_path: Path) -> None:
    assert arcs(tmp_path) == (
        Arc(2, 1, "nsubj"),
        Arc(2, 5, "xcomp:to"),  # not ccomp: the tree has xcomp
        Arc(5, 1, "nsubj:xsubj"),
        Arc(5, 3, "punct"),
        Arc(5, 4, "mark"),
        Arc(5, 7, "obl:tmod:in"),
        Arc(7, 6, "case"),
    )


@pytest.mark.parametrize(
    ("labels", "subject", "time"), [("subtypes", "nsubj", "obl:tmod"), ("universal", "nsubj", "obl")]
)
def test_labels_can_be_cut(tmp_path: Path, labels: str, subject: str, time: str) -> None:
    found = arcs(tmp_path, labels=labels)
    assert Arc(5, 1, subject) in found
    assert Arc(5, 7, time) in found


def test_files_are_kept_and_counted(tmp_path: Path) -> None:
    folder = treebank(tmp_path / "UD_English-Storm")
    (folder / "README.md").write_text("# Summary\nLicense: CC0 1.0\n", encoding="utf-8")
    built = enhanced_ud(folder, tmp_path / "data")
    assert (built.folder / "test.conllu").read_bytes() == (folder / "en_storm-ud-test.conllu").read_bytes()
    assert (built.corpus, built.licence, built.origins[0].name) == ("ud-storm", "CC0 1.0", "UD_English-Storm")
    assert built.counts == {"arcs of empty nodes": 2, "second labels of a pair": 1}
    assert built.parts["test.sdp"].arcs == 7


def test_names(tmp_path: Path) -> None:
    folder = treebank(tmp_path / "UD_German-Sturm", "de_sturm")
    assert enhanced_ud(folder, tmp_path / "data").corpus == "ud-de-sturm"
    assert enhanced_ud(folder, tmp_path / "data", name="sturm").folder == tmp_path / "data/sturm"


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"empty has no files such as en_ewt-ud-train\.conllu"):
        enhanced_ud(tmp_path / "empty", tmp_path / "data")
    bare = treebank(tmp_path / "bare", text="1 Rain rain NOUN NN _ 0 root _ _")
    with pytest.raises(ValueError, match="bare has no enhanced dependencies"):
        enhanced_ud(bare, tmp_path / "data")
    with pytest.raises(ValueError, match=r"labels is 'short'; it must be whole, subtypes or universal\."):
        arcs(tmp_path, labels="short")
    with pytest.raises(ValueError, match=r"name is '\.\./x', and a folder is called so"):
        enhanced_ud(bare, tmp_path / "data", name="../x")
    assert not (tmp_path / "data/ud-storm").exists()
