"""Profiles to graphs and trees."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from spigot_nlp.corpora.builders import redwoods_dm
from spigot_nlp.corpora.builders.profiles import plain, tokens
from spigot_nlp.data.formats import read
from spigot_nlp.data.merge import merge
from spigot_nlp.data.sentence import Arc
from tests.spigot_nlp.corpora.builders.redwoods import fell, grammar, token

pytest.importorskip("delphin", reason="needs PyDelphin")


def names(folder: Path, part: str) -> list[str]:
    return [sentence.id for sentence in read(folder / f"{part}.sdp")]


def test_graphs_trees_and_words(tmp_path: Path) -> None:
    erg = grammar(tmp_path / "erg", ws201=[fell("⌊/Rains/⌋")])
    built = redwoods_dm(erg, tmp_path / "data")
    (rain,) = merge(read(built.folder / "wiki.train.dt.conllu"), read(built.folder / "wiki.train.sdp"))
    assert rain.forms == ("Rains", "fell", ".")
    assert rain.lemmas == ("rain", "fall", ".")
    assert rain.tags == ("NN", "VBD", ".")
    assert (rain.heads, rain.relations) == ((2, 0, 2), ("sb-hd", "root", "mwe"))
    assert rain.graph is not None
    assert (rain.graph.arcs, rain.graph.tops) == ((Arc(2, 1, "ARG1"),), (2,))
    assert rain.graph.frames == ("n_1", "_", "_")  # the verb's predicate covers the full stop, too
    assert rain.id == "ws201-10"
    assert (built.folder / "LICENSE").exists()


def test_no_sentence_is_on_both_sides(tmp_path: Path) -> None:
    rain, snow, hail, sleet = map(fell, ("Rain", "Snow", "Hail", "Sleet"))
    erg = grammar(
        tmp_path / "erg",
        ws201=[rain],
        ws210=[rain],
        ws211=[rain, snow],
        ws214=[hail],
        bcs=[snow, rain],
        tg=[rain, snow, sleet],
        sh_spec=[hail],
    )
    built = redwoods_dm(erg, tmp_path / "data")
    assert {part: names(built.folder, part) for part in ("wiki.train", "wiki.dev", "wiki.test")} == {
        "wiki.train": ["ws201-10", "ws210-10"],
        "wiki.dev": ["ws211-11"],
        "wiki.test": ["ws214-10"],
    }
    assert names(built.folder, "brown.test") == ["bcs-10"]
    assert names(built.folder, "other.train") == ["tg-10", "tg-12"]
    assert built.counts["to judge by, and in wiki.train"] == 2
    assert built.counts["in other.train, and to judge by"] == 2


def test_what_comes_to_nothing_is_counted(tmp_path: Path) -> None:
    words, derivation, mrs = fell("Rain")
    unheard = mrs.replace("_fall_v_1", "unheard_of")
    stray = derivation.replace("+FROM", "+FOR")
    items = [
        (token(1, 0, "Rain", "NN"), derivation, mrs),
        (words, derivation, "[ LTOP:"),
        (words, derivation, unheard),
        (words, stray, mrs),
        (words, "(unfinished", mrs),
        (" ".join([words] * 41), derivation, mrs),
        (words, derivation, mrs),
    ]
    built = redwoods_dm(grammar(tmp_path / "erg", cb=items), tmp_path / "data")
    assert names(built.folder, "other.train") == ["cb-16"]
    assert {what: number for what, number in built.counts.items() if "judge" not in what} == {
        "readings": 7,
        "of one word": 1,
        "without a meaning that can be read": 1,
        "without an arc": 1,
        "without a tree": 2,
        "of more than 120 words": 1,
    }


def test_tables_may_be_gzipped(tmp_path: Path) -> None:
    erg = grammar(tmp_path / "erg", bcs=[fell("Rain")])
    for name in ("parse", "result"):
        path = erg / "tsdb/gold/bcs" / name
        path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert redwoods_dm(erg, tmp_path / "data").parts["brown.test.sdp"].arcs == 1


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    erg = grammar(tmp_path / "erg", bcs=[fell("Rain")])
    (erg / "tsdb/gold/bcs/parse").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="bcs: there is a result for 10, and no parse; the profile is not complete"):
        redwoods_dm(erg, tmp_path / "data")
    (erg / "etc/rules.hds").unlink()
    with pytest.raises(FileNotFoundError, match=r"erg has no etc/rules\.hds; .* git clone \S+delph-in/erg"):
        redwoods_dm(erg, tmp_path / "data")


def test_without_pydelphin_the_extra_is_named(tmp_path: Path) -> None:
    erg = grammar(tmp_path / "erg")
    code = "import sys; sys.modules['delphin'] = None; from spigot_nlp.cli import main; "
    code += f"sys.exit(main(['corpus', 'redwoods-dm', '--erg', {str(erg)!r}, '--out', {str(tmp_path / 'data')!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = 'spigot: redwoods-dm needs PyDelphin, which is not installed: pip install "torch-spigot[corpora]".\n'
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_words_as_the_tables_have_them() -> None:
    row = token(1, 0, 'in \\"short\\"', ".") + token(2, 12, "***", ".") + '(3, 2, 3, <15:16>, 1, "(", 0, "null")'
    assert [(word.form, word.tag) for word in tokens(row)] == [('in_"short"', "."), ("***", "SYM"), ("(", "-LRB-")]


@pytest.mark.parametrize(
    ("form", "bare"), [("rain", "rain"), ("⌊/rain/⌋", "rain"), ("⌊λrain", "rain"), ("⌊/⌋", "/"), ("⌊", "_")]
)
def test_mark_up_is_taken_off(form: str, bare: str) -> None:
    assert plain(form) == bare
