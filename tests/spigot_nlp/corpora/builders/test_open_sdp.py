"""The shared task's files, divided."""

from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.corpora.builders import open_sdp
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Arc, Graph, Sentence


def rain(name: str) -> Sentence:
    return Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]), id=name)


def release(folder: Path, graphs: str = "dm", year: str = "2015", **formats: Any) -> Path:
    place = folder / "sdp" / year
    (place / "test").mkdir(parents=True)
    write([rain("20001001"), rain("21901001"), rain("22001001")], place / f"en.{graphs}.sdp", **formats)
    write([rain("22101001")], place / f"test/en.id.{graphs}.sdp", **formats)
    write([rain("40001001"), rain("22001002")], place / f"test/en.ood.{graphs}.sdp", **formats)
    return folder


@pytest.mark.parametrize("format", ["sdp", "sdp2014"])
@pytest.mark.parametrize("inner", [".", "sdp", "sdp/2015"])
def test_section_20_is_for_development(tmp_path: Path, inner: str, format: str) -> None:
    release(tmp_path / "osdp-12", format=format)
    built = open_sdp(tmp_path / "osdp-12" / inner, tmp_path / "data")
    parts = {name: [sentence.id for sentence in read(built.folder / name)] for name in built.parts}
    assert parts == {
        "dm.train.sdp": ["20001001", "21901001"],
        "dm.dev.sdp": ["22001001"],
        "dm.id.sdp": ["22101001"],
        "dm.ood.sdp": ["40001001", "22001002"],
    }
    first = (built.folder / "dm.dev.sdp").read_text(encoding="utf-8").splitlines()[0]
    assert first == "#SDP 2015"
    assert built.parts["dm.train.sdp"].arcs == 2


def test_other_graphs_stand_beside_them(tmp_path: Path) -> None:
    folder = release(tmp_path / "both")
    with pytest.raises(FileNotFoundError, match=r"both has no sdp/2015/en\.psd\.sdp, .* obtain LDC2016T10"):
        open_sdp(folder, tmp_path / "data", graphs="psd")
    built = open_sdp(folder, tmp_path / "data")
    again = open_sdp(release(tmp_path / "licensed", "psd"), tmp_path / "data", graphs="psd")
    assert (built.licence, again.licence) == ("CC BY-NC-SA", "LDC")
    there = {path.name for path in built.folder.iterdir()}
    assert {"dm.manifest.json", "psd.manifest.json", "dm.train.sdp", "psd.train.sdp"} <= there


def test_a_file_without_the_section_is_refused(tmp_path: Path) -> None:
    folder = release(tmp_path / "osdp")
    write([rain("20001001")], folder / "sdp/2015/en.dm.sdp")
    with pytest.raises(ValueError, match="should have a sentence of section 20, whose name begins with 220"):
        open_sdp(folder, tmp_path / "data")
    assert not (tmp_path / "data/sdp2015").exists()
