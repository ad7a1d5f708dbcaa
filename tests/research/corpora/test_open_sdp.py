"""The shared task's files and the trees of the Penn Treebank in their layout, divided; the sentences are of our own."""

import sys
from pathlib import Path
from typing import Any

import pytest

from research.corpora.open_sdp import build, main
from spigot_nlp.config import load_config
from spigot_nlp.corpora.corpus import load_corpus
from spigot_nlp.data import Arc, Graph, Sentence, read, write

CONFIGS = Path(__file__).parents[3] / "research" / "configs"


def rain(name: str) -> Sentence:
    return Sentence(("Rain", "fell"), tags=("NN", "VBD"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]), id=name)


def release(folder: Path, graphs: str = "dm", **formats: Any) -> Path:
    place = folder / "sdp" / "2015"
    (place / "test").mkdir(parents=True)
    write([rain("20001001"), rain("21901001"), rain("22001001")], place / f"en.{graphs}.sdp", **formats)
    write([rain("22101001")], place / f"test/en.id.{graphs}.sdp", **formats)
    write([rain("40001001"), rain("22001002")], place / f"test/en.ood.{graphs}.sdp", **formats)
    return folder


def penn(folder: Path) -> Path:
    """Trees whose first word says which section they are of."""
    for section in ("00", "02", "19", "20", "21", "24"):
        (folder / section).mkdir(parents=True)
        for number in (2, 1):
            tree = Sentence(
                (f"{section}{number:02}", "fell"), tags=("NN", "VBD"), heads=(2, 0), relations=("nsubj", "root")
            )
            write([tree], folder / section / f"wsj_{section}{number:02}.mrg.conllx")
    (folder / "README.conllx").write_text("No tree.\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("format", ["sdp", "sdp2014"])
@pytest.mark.parametrize("inner", [".", "sdp", "sdp/2015"])
def test_section_20_is_for_development(tmp_path: Path, inner: str, format: str) -> None:
    build(release(tmp_path / "osdp-12", format=format) / inner, tmp_path)
    made = tmp_path / "sdp2015"
    assert {path.name: [sentence.id for sentence in read(path)] for path in made.iterdir()} == {
        "dm.train.sdp": ["20001001", "21901001"],
        "dm.dev.sdp": ["22001001"],
        "dm.id.sdp": ["22101001"],
        "dm.ood.sdp": ["40001001", "22001002"],
    }
    assert (made / "dm.dev.sdp").read_text(encoding="utf-8").startswith("#SDP 2015\n")


@pytest.mark.parametrize("name", ["dm", "psd"])
def test_the_configurations_of_the_paper_read_what_the_script_makes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Following what `obtain` says, with files of the licensed layout."""
    config = load_config(CONFIGS / f"{name}.toml", {"data.root": str(tmp_path)})
    folder, trees = release(tmp_path / "osdp", name), penn(tmp_path / "wsj")
    words = [word.rstrip(",;") for word in config.data.obtain.split()]
    start = words.index("research.corpora.open_sdp")
    places = {"FOLDER": str(folder), "TREES": str(trees), "DATA": str(tmp_path)}
    command = words[start : words.index("DATA", start) + 1]
    monkeypatch.setattr(sys, "argv", [places.get(word, word) for word in command])
    main()
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove/glove.6B.100d.txt").write_text("rain 1 2\n", encoding="utf-8")
    corpus = load_corpus(config.data.model_copy(update={"tags": "columns"}))
    found = {part: [s.forms[0] for s in getattr(corpus["trees"], part)] for part in ("train", "dev")}
    assert found == {"train": ["0001", "0002", "0201", "0202", "1901", "1902", "2401", "2402"], "dev": ["2001", "2002"]}
    assert [s.forms[0] for s in corpus["trees"].tests["id"]] == ["2101", "2102"]
    assert len(corpus["graphs"].train) == 2
    assert len(corpus["graphs"].tests["ood"]) == 2


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = release(tmp_path / "osdp")
    with pytest.raises(FileNotFoundError, match=r"osdp has no sdp/2015/en\.psd\.sdp, .* obtain LDC2016T10"):
        build(folder, tmp_path, graphs="psd")
    monkeypatch.setattr(sys, "argv", ["open_sdp", str(folder), "--trees", str(tmp_path), "--out", str(tmp_path)])
    with pytest.raises(FileNotFoundError, match=r"no files such as wsj_2001\.conllx for train and dev and test"):
        main()
    write([rain("20001001")], folder / "sdp/2015/en.dm.sdp")
    with pytest.raises(ValueError, match="none of section 20, whose names begin with 220"):
        build(folder, tmp_path / "data")
    assert not (tmp_path / "data/sdp2015").exists()
