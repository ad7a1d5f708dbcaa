"""Snippets of film reviews, from files of our own."""

from pathlib import Path

import pytest

from research.corpora.rt_polarity import build
from spigot_nlp.data import read


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_every_snippet_is_in_one_part_with_its_label(tmp_path: Path, encoding: str) -> None:
    for name, word in {"neg": "dull", "pos": "fine"}.items():
        lines = [f"a {word} film number {k} , naïve ." for k in range(60)] + [f"a {word} film number 3 , naïve .", ""]
        (tmp_path / f"rt-polarity.{name}").write_bytes("\n".join(lines).encode(encoding))
    build(tmp_path, tmp_path / "data")
    parts = {name: list(read(tmp_path / f"data/rt-polarity/{name}.tsv")) for name in ("train", "dev", "test")}
    assert sum(map(len, parts.values())) == 122
    assert len(parts["train"]) > 70
    texts = [{sentence.forms for sentence in part} for part in parts.values()]
    assert not texts[0] & texts[1] | texts[0] & texts[2] | texts[1] & texts[2]  # copies stay together
    for part in parts.values():
        assert part
        assert all(("fine" in sentence.forms) == (sentence.label == 1) for sentence in part)
        assert all("naïve" in sentence.forms for sentence in part)
