"""`spigot corpus`: what it takes, prints and refuses."""

import json
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Sentence
from tests.spigot_nlp.corpora.builders.treebanks import FALL, document, skeletons, treebank

FELL = ["NN - (ARG1*)", "VBD fall.01 (V*)", ". - *"]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    ud = treebank(tmp_path / "ud", train=document("email-rain", FALL))
    propbank = skeletons(tmp_path / "pb", email_rain=[FELL])
    return ["corpus", "propbank-ewt", "--ud", str(ud), "--propbank", str(propbank), "--out", str(tmp_path / "data")]


def test_a_corpus_is_built_and_counted(words: list[str], tmp_path: Path, capsys) -> None:
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert "propbank-ewt (CC BY-SA 4.0)" in out
    assert "train.sdp" in out
    assert err.splitlines() == [
        f"propbank-ewt is in {tmp_path / 'data/propbank-ewt'}",
        f"For the configurations: export SPIGOT_DATA={tmp_path / 'data'}",
    ]
    assert cli.main([*words, "--json"]) == 0
    built = json.loads(capsys.readouterr().out)
    assert built["unchanged"]
    assert built["files"]["train.sdp"]["sentences"] == 1


def test_other_files_are_refused(words: list[str], tmp_path: Path, capsys) -> None:
    folder = tmp_path / "data/propbank-ewt"
    folder.mkdir(parents=True)
    (folder / "train.sdp").write_text("Mine.", encoding="utf-8")
    assert cli.main(words) == 1
    assert "train.sdp is there already, and is not what would be written" in capsys.readouterr().err
    assert cli.main([*words, "--replace"]) == 0


def test_options_of_a_command_below_are_known(words: list[str], capsys) -> None:
    assert cli.main([*words, "--replac"]) == 2
    said = "spigot: there is no option --replac; did you mean --replace? See spigot corpus propbank-ewt --help.\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rain"], 'Unknown command "rain"'),
        (["propbank-ewt", "--ud", "a", "--out", "b"], "--propbank is missing. See spigot corpus propbank-ewt --help."),
    ],
)
def test_what_cannot_be_is_said_in_a_line(words: list[str], message: str, capsys) -> None:
    assert cli.main(["corpus", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_what_to_clone_is_said(tmp_path: Path, capsys) -> None:
    words = ["--ud", str(tmp_path / "nowhere"), "--propbank", "pb", "--out", str(tmp_path / "data")]
    assert cli.main(["corpus", "propbank-ewt", *words]) == 1
    said = f"spigot: there is no folder {tmp_path / 'nowhere'}; it should hold UD_English-EWT: git clone "
    assert capsys.readouterr().err == f"{said}https://github.com/UniversalDependencies/UD_English-EWT\n"


def test_corpora_in_a_row(tmp_path: Path, capsys) -> None:
    """From clones to everything under one folder, the vectors last."""
    data, trees, vectors = tmp_path / "data", tmp_path / "trees", tmp_path / "glove.6B.2d.txt"
    trees.mkdir()
    for name, line in {"train": "(3 (2 The) (4 sun))", "dev": "(1 Rain)", "test": "(2 Wind)"}.items():
        (trees / f"{name}.txt").write_text(f"{line}\n", encoding="utf-8")
    vectors.write_text("sun 1 2\nfell 3 4\nfog 5 6\n", encoding="utf-8")
    fall = document("email-rain", FALL)
    ud = treebank(tmp_path / "UD_English-EWT", train=fall, dev=fall, test=fall)
    sdp = tmp_path / "osdp/sdp/2015"
    sdp.mkdir(parents=True)
    for name in ("en.dm.sdp", "en.id.dm.sdp", "en.ood.dm.sdp"):
        write([Sentence(("Fog",), id="20001001"), Sentence(("Mist",), id="22001001")], sdp / name)
    assert cli.main(["corpus", "sst", str(trees), "--out", str(data)]) == 0
    assert cli.main(["corpus", "enhanced-ud", str(ud), "--out", str(data), "--labels", "universal"]) == 0
    assert cli.main(["corpus", "open-sdp", str(tmp_path / "osdp"), "--out", str(data), "--graphs", "dm"]) == 0
    capsys.readouterr()
    places = [str(data / "sst"), str(data / "ud-ewt")]
    assert cli.main(["corpus", "glove", str(vectors), "--words-of", *places, "--out", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["of these with a vector"] == 2
    assert sorted(path.name for path in data.iterdir()) == ["glove", "sdp2015", "sst", "ud-ewt"]


def test_redwoods_is_a_command_too(tmp_path: Path, capsys) -> None:
    words = ["corpus", "redwoods-dm", "--erg", str(tmp_path / "erg"), "--out", str(tmp_path / "data")]
    assert cli.main(words) == 1
    assert "git clone https://github.com/delph-in/erg" in capsys.readouterr().err
