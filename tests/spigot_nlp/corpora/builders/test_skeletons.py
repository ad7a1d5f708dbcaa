"""PropBank's skeletons."""

from pathlib import Path

import pytest

from spigot_nlp.corpora.builders.skeletons import Argument, Proposition, read_skeletons
from spigot_nlp.data.formats import FormatError


def written(folder: Path, *rows: str) -> Path:
    path = folder / "storm.gold_skel"
    path.write_text("\n".join(f"d 0 {k} [WORD] {row}" if row else "" for k, row in enumerate(rows)), encoding="utf-8")
    return path


def test_nested_and_continued_arguments(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "NN * - - (ARG0(ARG1*)",
        "NN * - - *)",
        "VBD * blow blow.01 (V*)",
        "RP * - - (C-V*)",
        "",
        "UH * - -",
    )
    first, second = read_skeletons(path)
    spans = (Argument(0, 0, "ARG1"), Argument(0, 1, "ARG0"))
    assert first.propositions == (Proposition(2, "blow.01", spans),)
    assert first.tags == ("NN", "NN", "VBD", "RP")
    assert second.tags == ("UH",)
    assert second.propositions == ()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["NN * - - *", "VBD * - - (ARG1*"], r"storm.gold_skel:2: the argument 'ARG1' is never closed\."),
        (["NN * - - *", "VBD * - - *)"], r":2: '\*\)' closes an argument that was never opened\."),
        (["NN * - - *", "VBD * - -"], r":2: 8 columns where there should be 9 as in the first line"),
        (["NN * -"], r":1: 7 columns where there should be at least 8\."),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        list(read_skeletons(written(tmp_path, *rows)))
