"""`spigot convert`: what it prints and refuses."""

import json
from pathlib import Path

import pytest

from spigot_nlp import cli

ROWS = "1 Rain rain NOUN NN _ 2 nsubj 2:nsubj _\n2 fell fall VERB VBD _ 0 root 0:root _\n\n"


def test_a_treebank_is_converted_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "storm.conllu", tmp_path / "storm.sdp"
    path.write_text(ROWS.replace(" ", "\t"), encoding="utf-8")
    words = ["convert", str(path), "--out", str(out)]
    assert cli.main(words) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "storm.sdp" in line)
    assert row.split() == [str(out), "1", "2", "1", "0", "0"]
    assert cli.main(words) == 1
    assert capsys.readouterr().err == f"spigot: {out} is there already; choose another --out, or give --replace.\n"
    assert cli.main([*words, "--replace", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {str(out): {"sentences": 1, "words": 2, "arcs": 1, "empty": 0, "second": 0}}
