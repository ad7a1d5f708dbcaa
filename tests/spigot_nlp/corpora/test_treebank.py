"""Enhanced dependencies as graphs."""

from pathlib import Path

import pytest

from spigot_nlp.corpora.treebank import Converted, convert_treebank
from spigot_nlp.data import Arc, read
from spigot_nlp.data.enhanced import Labels

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


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "UD_English-Storm"
    folder.mkdir()
    lines = (line if line.startswith("#") else line.replace(" ", "\t") for line in ROWS.splitlines())
    (folder / "en_storm-ud-test.conllu").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return folder


def test_a_clone_becomes_a_folder_of_trees_and_graphs(clone: Path, tmp_path: Path) -> None:
    out = tmp_path / "data" / "ud-storm"
    assert convert_treebank(clone, out) == {out / "test.sdp": Converted(1, 7, 7, empty=2, second=1)}
    assert (out / "test.conllu").read_bytes() == (clone / "en_storm-ud-test.conllu").read_bytes()
    (sentence,) = read(out / "test.sdp")
    assert sentence.graph is not None
    assert sentence.graph.tops == (2,)
    assert sentence.graph.arcs == (
        Arc(2, 1, "nsubj"),
        Arc(2, 5, "xcomp:to"),  # not ccomp: the tree has xcomp
        Arc(5, 1, "nsubj:xsubj"),
        Arc(5, 3, "punct"),
        Arc(5, 4, "mark"),
        Arc(5, 7, "obl:tmod:in"),
        Arc(7, 6, "case"),
    )


@pytest.mark.parametrize(("labels", "time"), [("whole", "obl:tmod:in"), ("subtypes", "obl:tmod"), ("universal", "obl")])
def test_a_file_becomes_a_file_with_labels_as_wanted(clone: Path, tmp_path: Path, labels: Labels, time: str) -> None:
    out = tmp_path / "graphs.jsonl"
    convert_treebank(clone / "en_storm-ud-test.conllu", out, labels=labels)
    (sentence,) = read(out)
    assert sentence.graph is not None
    assert Arc(5, 7, time) in sentence.graph.arcs
    assert sentence.heads == (2, 0, 5, 5, 2, 7, 5)


def test_what_cannot_be_is_said_and_nothing_written(clone: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"data is no CoNLL-U file, nor a folder with files such as en_ewt-ud"):
        convert_treebank(tmp_path / "data", tmp_path / "data")
    out = tmp_path / "out"
    out.mkdir()
    (out / "test.conllu").write_text("Mine.", encoding="utf-8")
    with pytest.raises(
        FileExistsError, match=r"test\.conllu is there already; choose another --out, or give --replace"
    ):
        convert_treebank(clone, out)
    assert [path.name for path in out.iterdir()] == ["test.conllu"]
    convert_treebank(clone, out, overwrite=True)
    assert (out / "test.sdp").exists()
    file = clone / "en_storm-ud-test.conllu"
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    file.write_text("\n".join("\t".join([*row[:8], "_", "_"]) if row[1:] else row[0] for row in rows), encoding="utf-8")
    with pytest.raises(ValueError, match="UD_English-Storm has no enhanced dependencies"):
        convert_treebank(clone, tmp_path / "bare")
    assert not (tmp_path / "bare").exists()
