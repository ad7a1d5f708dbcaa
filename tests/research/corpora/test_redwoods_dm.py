"""Profiles to graphs and trees; the sentences are of our own."""

import gzip
from pathlib import Path

import pytest
from delphin.tsdb import join

from research.corpora.redwoods import plain, tokens
from research.corpora.redwoods_dm import build
from spigot_nlp.data import Arc, merge, read

RELATIONS = """parse:
  parse-id :integer :key
  i-comment :string
  p-input :string

result:
  parse-id :integer :key
  derivation :string
  mrs :string
"""
PROFILES = (
    *(f"ws{number}" for number in range(201, 215)),
    *("bcs", "tg", "tgk", "ps", "psk", "rondane", "hike", "jhk", "jhu", "rtc000", "rtc001", "cb", "sh-spec"),
)


def token(number: int, start: int, form: str, tag: str) -> str:
    end = start + len(form)
    return f'({number}, {number - 1}, {number}, <{start}:{end}>, 1, "{form}", 0, "null", "{tag}" 0.9 "XX" 0.1)'


def fell(noun: str, full_stop: str = ".") -> tuple[str, str, str]:
    """The words, the derivation and the meaning of "NOUN fell." """
    size = len(noun)
    verb, dot = size + 1, size + 5
    words = [token(1, 0, noun, "NN"), token(2, verb, "fell", "VBD"), token(3, dot, full_stop, "NN")]

    def leaf(number: int, entry: str, form: str, start: int, end: int) -> str:
        tfs = f'token [ +FORM \\"{form}\\" +FROM \\"{start}\\" +TO \\"{end}\\" ]'
        return f'({number} {entry} 0.0 {number - 2} {number - 1} ("{form}" {number} "{tfs}"))'

    subject, predicate = leaf(2, "noun_n1", noun, 0, size), leaf(3, "fall_v1", "fell.", verb, dot + len(full_stop))
    derivation = f"(root_strict (1 sb-hd_mc_c 0.0 0 2 {subject} {predicate}))"
    mrs = (
        f"[ LTOP: h0 INDEX: e2 [ e SF: prop ] RELS: < [ udef_q<0:{size}> LBL: h4 ARG0: x3 RSTR: h5 BODY: h6 ]"
        f" [ _{noun.lower().strip('⌊/⌋')}_n_1<0:{size}> LBL: h7 ARG0: x3 [ x NUM: sg ] ]"
        f" [ _fall_v_1<{verb}:{dot + 1}> LBL: h1 ARG0: e2 ARG1: x3 ] > HCONS: < h0 qeq h1 h5 qeq h7 > ]"
    )
    return " ".join(words), derivation, mrs


def grammar(folder: Path, **profiles: list[tuple[str, str, str]]) -> Path:
    """A clone of the grammar with these items; other profiles are empty."""
    (folder / "etc").mkdir(parents=True)
    (folder / "etc/rules.hds").write_text("sb-hd_mc_c 2 1\n", encoding="utf-8")
    (folder / "LICENSE").write_text("As you like.\n", encoding="utf-8")
    for profile in PROFILES:
        place = folder / "tsdb/gold" / profile
        place.mkdir(parents=True)
        (place / "relations").write_text(RELATIONS, encoding="utf-8")
        items = list(enumerate(profiles.get(profile.replace("-", "_"), []), 10))
        parses = [join((number, "", words)) for number, (words, _, _) in items]
        results = [join((number, derivation, mrs)) for number, (_, derivation, mrs) in items]
        (place / "parse").write_text("".join(f"{row}\n" for row in parses), encoding="utf-8")
        (place / "result").write_text("".join(f"{row}\n" for row in results), encoding="utf-8")
    return folder


def names(folder: Path, part: str) -> list[str]:
    return [sentence.id for sentence in read(folder / f"{part}.sdp")]


def test_graphs_trees_and_words(tmp_path: Path) -> None:
    erg = grammar(tmp_path / "erg", ws201=[fell("⌊/Rains/⌋")])
    build(erg, tmp_path)
    (rain,) = merge(
        read(tmp_path / "redwoods-dm" / "wiki.train.dt.conllu"), read(tmp_path / "redwoods-dm" / "wiki.train.sdp")
    )
    assert rain.forms == ("Rains", "fell", ".")
    assert rain.lemmas == ("rain", "fall", ".")
    assert rain.tags == ("NN", "VBD", ".")
    assert (rain.heads, rain.relations) == ((2, 0, 2), ("sb-hd", "root", "mwe"))
    assert rain.graph is not None
    assert (rain.graph.arcs, rain.graph.tops) == ((Arc(2, 1, "ARG1"),), (2,))
    assert rain.graph.frames == ("n_1", "_", "_")  # the verb's predicate covers the full stop, too
    assert rain.id == "ws201-10"
    assert (tmp_path / "redwoods-dm" / "LICENSE").exists()


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
    counts = build(erg, tmp_path)
    assert {part: names(tmp_path / "redwoods-dm", part) for part in ("wiki.train", "wiki.dev", "wiki.test")} == {
        "wiki.train": ["ws201-10", "ws210-10"],
        "wiki.dev": ["ws211-11"],
        "wiki.test": ["ws214-10"],
    }
    assert names(tmp_path / "redwoods-dm", "brown.test") == ["bcs-10"]
    assert names(tmp_path / "redwoods-dm", "other.train") == ["tg-10", "tg-12"]
    assert counts["to judge by, and in wiki.train"] == 2
    assert counts["in other.train, and to judge by"] == 2


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
    counts = build(grammar(tmp_path / "erg", cb=items), tmp_path)
    assert names(tmp_path / "redwoods-dm", "other.train") == ["cb-16"]
    assert {what: number for what, number in counts.items() if "judge" not in what} == {
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
    build(erg, tmp_path)
    assert names(tmp_path / "redwoods-dm", "brown.test") == ["bcs-10"]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    erg = grammar(tmp_path / "erg", bcs=[fell("Rain")])
    (erg / "tsdb/gold/bcs/parse").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="bcs: there is a result for 10, and no parse; the profile is not complete"):
        build(erg, tmp_path)
    (erg / "etc/rules.hds").unlink()
    with pytest.raises(FileNotFoundError, match=r"no \S+/erg/etc/rules\.hds; get it: git clone \S+delph-in/erg"):
        build(erg, tmp_path)


def test_words_as_the_tables_have_them() -> None:
    row = token(1, 0, 'in \\"short\\"', ".") + token(2, 12, "***", ".") + '(3, 2, 3, <15:16>, 1, "(", 0, "null")'
    assert [(word.form, word.tag) for word in tokens(row)] == [('in_"short"', "."), ("***", "SYM"), ("(", "-LRB-")]


@pytest.mark.parametrize(
    ("form", "bare"), [("rain", "rain"), ("⌊/rain/⌋", "rain"), ("⌊λrain", "rain"), ("⌊/⌋", "/"), ("⌊", "_")]
)
def test_mark_up_is_taken_off(form: str, bare: str) -> None:
    assert plain(form) == bare
