"""Snippets of film reviews, from files of our own."""

from pathlib import Path

import pytest

from spigot_nlp.corpora.builders import rt_polarity
from spigot_nlp.data.formats import read


def snippets(folder: Path, encoding: str = "utf-8") -> Path:
    folder.mkdir(parents=True)
    for name, word in {"neg": "dull", "pos": "fine"}.items():
        lines = [f"a {word} film number {k} , naïve ." for k in range(60)] + [f"a {word} film number 3 , naïve .", ""]
        (folder / f"rt-polarity.{name}").write_bytes("\n".join(lines).encode(encoding))
    return folder


@pytest.mark.parametrize(("encoding", "inner"), [("utf-8", "."), ("cp1252", "rt-polaritydata")])
def test_every_snippet_is_in_one_part_with_its_label(tmp_path: Path, encoding: str, inner: str) -> None:
    snippets(tmp_path / "source" / inner, encoding)
    built = rt_polarity(tmp_path / "source", tmp_path / "data")
    parts = {name: list(read(built.folder / f"{name}.tsv")) for name in ("train", "dev", "test")}
    assert sum(map(len, parts.values())) == 122
    assert len(parts["train"]) > 70
    assert all(parts.values())
    texts = [{sentence.forms for sentence in part} for part in parts.values()]
    assert not texts[0] & texts[1] | texts[0] & texts[2] | texts[1] & texts[2]  # copies stay together
    for part in parts.values():
        assert all(("fine" in sentence.forms) == (sentence.label == 1) for sentence in part)
        assert all("naïve" in sentence.forms for sentence in part)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    snippets(tmp_path / "source")
    (tmp_path / "source" / "rt-polarity.pos").unlink()
    with pytest.raises(FileNotFoundError, match=r"rt-polarity\.pos"):
        rt_polarity(tmp_path / "source", tmp_path / "data")
