"""Trees of one repository and skeletons of another, on documents of our own."""

import json
from pathlib import Path

import pytest

from spigot_nlp.corpora.builders import propbank_ewt
from spigot_nlp.data.formats import read
from spigot_nlp.data.merge import merge
from spigot_nlp.data.sentence import Arc
from tests.spigot_nlp.corpora.builders.treebanks import FALL, WET, document, skeletons, treebank

FELL = ["NN - (ARG1*)", "VBD fall.01 (V*)", ". - *"]
SANG = [
    "DT - (ARG0* (ARG0*",
    "NNS - *) *)",
    "VBD sing.01 (V*) *",
    ", - (ARGM-ADV* *",
    "CC - * *",
    "VBD swim.01 *) (V*)",
]


@pytest.fixture
def ud(tmp_path: Path) -> Path:
    weblogs = [f"weblog-storm{k}" for k in range(4)]
    return treebank(
        tmp_path / "ud",
        train=[*document("email-frogs", WET, FALL), *document(weblogs[0], FALL), *document(weblogs[1], FALL)],
        dev=[*document("answers-rain", FALL), *document(weblogs[2], WET)],
        test=[*document("reviews-unread", FALL), *document("reviews-rain", FALL), *document(weblogs[3], FALL)],
    )


@pytest.fixture
def propbank(tmp_path: Path) -> Path:
    weblogs = {f"weblog_storm{k}": [SANG if k == 2 else FELL] for k in range(4)}
    return skeletons(tmp_path / "pb", email_frogs=[SANG, FELL], answers_rain=[FELL], reviews_rain=[FELL], **weblogs)


def test_spans_become_the_words_that_head_them(ud: Path, propbank: Path, tmp_path: Path) -> None:
    built = propbank_ewt(ud, propbank, tmp_path / "data")
    frogs, rain = read(built.folder / "train.sdp")
    assert frogs.graph is not None
    # Of ", and swam" the comma and the conjunction hang on the verb; nothing but the verb has its head outside.
    assert frogs.graph.arcs == (Arc(3, 2, "ARG0"), Arc(3, 6, "ARGM-ADV"), Arc(6, 2, "ARG0"))
    assert (frogs.graph.tops, frogs.graph.predicates) == ((3,), (3, 6))
    assert frogs.graph.frames == ("_", "_", "sing.01", "_", "_", "swim.01")
    assert (frogs.id, frogs.lemmas and frogs.lemmas[1]) == ("email-frogs-0001", "frog")
    assert rain.graph is not None
    assert rain.graph.arcs == (Arc(2, 1, "ARG1"),)


def test_weblogs_are_out_of_domain_and_every_second_is_held_back(ud: Path, propbank: Path, tmp_path: Path) -> None:
    built = propbank_ewt(ud, propbank, tmp_path / "data")
    names = {part: [s.id for s in read(built.folder / f"{part}.conllu")] for part in ("train", "dev", "test", "ood")}
    assert names == {
        "train": ["email-frogs-0001", "email-frogs-0002"],
        "dev": ["answers-rain-0001"],
        "test": ["reviews-rain-0001"],
        "ood": ["weblog-storm0-0001", "weblog-storm2-0001"],
    }
    assert built.counts["weblog sentences held back"] == 2
    assert built.counts["documents without PropBank"] == 1


def test_trees_are_as_the_treebank_has_them(ud: Path, propbank: Path, tmp_path: Path) -> None:
    path = ud / "en_ewt-ud-dev.conllu"
    text = path.read_text(encoding="utf-8")
    first = text.index("1\tRain")
    path.write_text(f"{text[:first]}1-2\tRainfell\t{chr(9).join('_' * 8)}\n{text[first:]}", encoding="utf-8")
    built = propbank_ewt(ud, propbank, tmp_path / "data")
    made = (built.folder / "dev.conllu").read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8").startswith(made)
    assert "1-2\tRainfell" in made
    both = list(merge(read(built.folder / "dev.conllu"), read(built.folder / "dev.sdp")))
    assert both[0].graph is not None
    assert both[0].heads == (2, 0, 2)


def test_the_two_may_be_tokenised_and_divided_otherwise(tmp_path: Path) -> None:
    ud = treebank(tmp_path / "ud", train=document("email-frogs", FALL, WET))
    # One sentence there, two here; and a token that the treebank does not have, with an argument on it alone.
    joined = [
        *(f"{row} * * *" for row in FELL[:2]),
        "XX - (ARG2*) * * *",
        f"{FELL[2]} * * *",
        *(f"{row.split()[0]} {row.split()[1]} * {' '.join(row.split()[2:])} *" for row in SANG[:5]),
        "VBD swim.01 * *) (V*) (ARG3*)",
    ]
    propbank = skeletons(tmp_path / "pb", email_frogs=[joined])
    built = propbank_ewt(ud, propbank, tmp_path / "data")
    rain, frogs = read(built.folder / "train.sdp")
    assert rain.graph is not None
    assert frogs.graph is not None
    assert rain.graph.arcs == (Arc(2, 1, "ARG1"),)
    assert Arc(3, 2, "ARG0") in frogs.graph.arcs
    assert built.counts["arguments not aligned"] == 1
    assert (built.counts["tokens"], built.counts["tokens aligned"]) == (10, 9)


def test_an_argument_that_is_headed_by_its_predicate_is_none(tmp_path: Path) -> None:
    ud = treebank(tmp_path / "ud", train=document("email-rain", FALL))
    rows = ["NN - (ARG1(ARG0*)", "VBD fall.01 (V*)", ". - *)"]
    built = propbank_ewt(ud, skeletons(tmp_path / "pb", email_rain=[rows]), tmp_path / "data")
    (rain,) = read(built.folder / "train.sdp")
    assert rain.graph is not None
    assert rain.graph.arcs == (Arc(2, 1, "ARG0"),)
    assert built.counts["arguments of themselves"] == 1


def test_what_is_there_is_said(ud: Path, propbank: Path, tmp_path: Path) -> None:
    built = propbank_ewt(ud, propbank, tmp_path / "data")
    manifest = json.loads((built.folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["corpus"] == "propbank-ewt"
    assert manifest["licence"] == "CC BY-SA 4.0"
    assert [origin["name"] for origin in manifest["built from"]] == ["UD_English-EWT", "propbank-release"]
    assert manifest["files"]["train.sdp"]["arcs"] == 4
    assert "arcs" not in manifest["files"]["train.conllu"]
    assert (built.folder / "LICENSE.txt").read_text(encoding="utf-8") == "Share alike.\n"


def test_what_is_missing_is_named(ud: Path, tmp_path: Path) -> None:
    (tmp_path / "pb").mkdir()
    with pytest.raises(FileNotFoundError, match=r"pb has no data/google/ewt; .* git clone \S+propbank-release"):
        propbank_ewt(ud, tmp_path / "pb", tmp_path / "data")
    (tmp_path / "pb/data/google/ewt").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"ewt has no files \*\.xml\.gold_skel"):
        propbank_ewt(ud, tmp_path / "pb", tmp_path / "data")
    (ud / "en_ewt-ud-dev.conllu").unlink()
    with pytest.raises(FileNotFoundError, match=r"ud has no en_ewt-ud-dev\.conllu; .* git clone \S+UD_English-EWT"):
        propbank_ewt(ud, tmp_path / "pb", tmp_path / "data")
    assert not (tmp_path / "data").exists()
