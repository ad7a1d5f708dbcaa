"""Plain text: what is a word, what is a sentence, and that nothing is lost on the way."""

import io
import itertools
import os
import time
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spigot_nlp.data.formats import read, write
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.formats.files import FormatError
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.raw import LONGEST, Splitter, detokenise, sentences, tokenise
from spigot_nlp.data.text.reading import Decoder, Reader
from spigot_nlp.data.text.spacing import spacing_of, with_text

# Signs with a meaning to the tokeniser, and characters that break careless ones: lone surrogates, NUL, marks, joiners.
_SIGNS = st.sampled_from(
    [*".,;:!?'\"-/()[]$%#@&_*\n\r\t\f\v \x00\x85\xa0\xad", "\r\n", "\n\n", "...", "n't", "'s", "cannot", "U.S.", "Mr.",
     "Nov.", "No.", "12", "3.5", "http://a.b/c", "a@b.com", ":-)", "…", "’", "“", "\u0301", "\u200d", "\ufe0f",
     "\ufeff", "\u200b", "\u2028", "\u2029", "\ud800", "👩", "🇳", "字", "。", "ب", "ि", "अ", "ª", "\ue000"]
)  # fmt: skip
_TEXT = st.lists(
    st.one_of(_SIGNS, st.text(max_size=4), st.sampled_from(["The", "cat", "sat", "Bob"])), max_size=40
).map("".join)


def _forms(text: str | Iterable[str], **options: bool) -> list[tuple[str, ...]]:
    return [sentence.forms for sentence in sentences(text, **options)]


def _shown(text: str, **options: bool) -> str:
    """Spaces between tokens, bars between sentences."""
    return " | ".join(" ".join(forms) for forms in _forms(text, **options))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't, won't, can’t.", "I do n't , wo n't , ca n’t ."),
        ("It's Ann's; they'd've left", "It 's Ann 's ; they 'd 've left"),
        ("She cannot. Gonna dont", "She can not . Gon na do nt"),
        ("the boys' hats, O'Neil's too", "the boys ' hats , O'Neil 's too"),
        ("'Twas 'em in the '90s", "'T was 'em in the '90s"),
        ('"Yes," (he) [said]', '" Yes , " ( he ) [ said ]'),
        ("$1,000.50, €5 and 12.5% of US$3", "$ 1,000.50 , € 5 and 12.5 % of US$ 3"),
        ("on 03/04/2021, 2021-03-04 at 10:30pm", "on 03/04/2021 , 2021-03-04 at 10:30 pm"),
        ("the 21st of the 1980s", "the 21st of the 1980s"),
        ("see http://a.org/x?y=1, www.b.com.", "see http://a.org/x?y=1 , www.b.com ."),
        ("(http://a.org/b_(c)) http://a.org/b_(c).", "( http://a.org/b_(c) ) http://a.org/b_(c) ."),
        ("b.com/x) www.b.com/(y)_z, http://a.b/(c", "b.com/x ) www.b.com/(y)_z , http://a.b/ ( c"),
        ("mail jo.doe@x.co.uk or b.de!", "mail jo.doe@x.co.uk or b.de !"),
        ("#fun by @jo, not #5", "#fun by @jo , not # 5"),
        ("so :-) and ;) <3 :D!", "so :-) and ;) <3 :D !"),
        ("well-known 15-year e-mail anti-war mid-1980s", "well - known 15 - year e-mail anti-war mid-1980s"),
        ("call 555-1234 or 800-555-1234, rooms 4-12", "call 555-1234 or 800-555-1234 , rooms 4 - 12"),
        ("wait... what?! no!!! --yes", "wait ... what ?! no !!! -- yes"),
        ("R&D at AT&T's, and/or I/O", "R&D at AT&T 's , and / or I/O"),
        ("the U.S. and e.g. a Ph.D. in notes.txt", "the U.S. and e.g. a Ph.D. in notes.txt"),
        ("in /usr/lib/x.so, C:\\docs\\a.doc, and ~/a/b.", "in /usr/lib/x.so , C:\\docs\\a.doc , and ~/a/b ."),
        ("v1.2.3 of 2020-01-05T10:30:00Z", "v1.2.3 of 2020-01-05T10:30:00Z"),
        ("01-Feb-02, 3-may-2011 and 4-May-fly", "01-Feb-02 , 3-may-2011 and 4 - May - fly"),
        ("’Tis rock 'n' roll, 'bout 5 o'clock, y'all", "’T is rock 'n' roll , 'bout 5 o'clock , y'all"),
        ("👍🏽 👩\u200d👩\u200d👧🇳🇴 1\ufe0f\u20e3", "👍🏽 👩\u200d👩\u200d👧 🇳🇴 1\ufe0f\u20e3"),
        ("cafe\u0301s (\u0301", "cafe\u0301s (\u0301"),
        ("किताब पढ़ो।", "किताब पढ़ो ।"),
        ("مرحبا، كيف؟", "مرحبا ، كيف ؟"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)  # fmt: skip
def test_tokens(text: str, expected: str) -> None:
    assert " ".join(tokenise(text)) == expected


def test_tokens_in_the_manner_of_the_penn_treebank() -> None:
    assert tokenise("a well-made e-mail", hyphens=False) == ("a", "well-made", "e-mail")
    assert tokenise("I cannot", cannot=False) == ("I", "cannot")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained. It stopped.", "It rained . | It stopped ."),
        ("Mr. Poe met Dr. Lee. They left.", "Mr. Poe met Dr. Lee . | They left ."),
        ("J. R. Poe of the U.S. Senate", "J. R. Poe of the U.S. Senate"),
        ("He lives in the U.S. The rest do not.", "He lives in the U.S . | The rest do not ."),
        ("At 5 p.m. Bob left. See No. 5.", "At 5 p.m . | Bob left . | See No. 5 ."),
        ("He said no. 5 did not.", "He said no. 5 did not ."),
        ("He said no. Five did not.", "He said no . | Five did not ."),
        ("Nails, etc. are here, on Nov. 3, etc.", "Nails , etc. are here , on Nov. 3 , etc ."),
        ("Well... maybe. Well... Maybe.", "Well ... maybe . | Well ... | Maybe ."),
        ('"Stop!" he said. "Why?" Nobody knew.', '" Stop ! " he said . | " Why ? " | Nobody knew .'),
        ("(It rained.) Then (it did.) more", "( It rained . ) | Then ( it did . ) more"),
        ("Great! :) Thanks.", "Great ! :) | Thanks ."),
        ("Pi is 3.14. See a.com/b.c now.", "Pi is 3.14 . | See a.com/b.c now ."),
        ("A heading\n\nwrapped\nlines go\r\non.", "A heading | wrapped lines go on ."),
        ("one\r\n\r\ntwo\ftwo\u2029three", "one | two | two | three"),
        ("Buy:\n- milk\n- bread\n1. eggs", "Buy : | - milk | - bread | 1 . eggs"),
        ("He lives on Main St. They don't. See St. Ives.", "He lives on Main St . | They do n't . | See St. Ives ."),
        ("Poe et al. say so. So do Lee et al. We do not.", "Poe et al. say so . | So do Lee et al . | We do not ."),
        ("Poe et al., c. 1871 (Lee et al.). Al., too", "Poe et al. , c. 1871 ( Lee et al. ) . | Al . , too"),
        ("I. Birds\n\nIV. Fish swim. So did I. Then", "I. Birds | IV . Fish swim . | So did I . | Then"),
        ("Vol. II is out. See vol. IV, No. I know.", "Vol. II is out . | See vol. IV , No . | I know ."),
        ("Start\n=====\nIt rained ---\nthen\n\n---\nThe end", "Start ===== | It rained --- then | --- | The end"),
        ("It is over.The next", "It is over . | The next"),
        ("今天下雨。我们走吧！好。", "今 天 下 雨 。 | 我 们 走 吧 ！ | 好 。"),
        ("وصل. ثم ذهب؟ نعم", "وصل . | ثم ذهب ؟ | نعم"),
        ("so it goes. then it went! and so on", "so it goes . | then it went ! | and so on"),
    ],
)
def test_sentences(text: str, expected: str) -> None:
    assert _shown(text) == expected


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\ufeff", "\x00\x85 \u200b"])
def test_no_words_no_sentence(text: str) -> None:
    assert _forms(text) == []
    assert tokenise(text) == ()


def test_one_word() -> None:
    assert _forms("Go") == [("Go",)]
    assert _forms("\ufeffGo\x00\n") == [("Go",)]


def test_lines_and_tokens_as_they_are() -> None:
    text = "It 's mine . Yes .\n\ncan not do-it\nlast"
    assert _shown(text, lines=True) == "It 's mine . Yes . | can not do - it | last"
    assert _shown(text, lines=True, tokenised=True) == "It 's mine . Yes . | can not do-it | last"
    assert _shown(text, tokenised=True) == "It 's mine . | Yes . | can not do-it last"


@settings(max_examples=100, deadline=None)
@given(_TEXT, st.booleans(), st.booleans(), st.booleans())
def test_nothing_is_lost(text: str, lines: bool, tokenised: bool, hyphens: bool) -> None:
    found = list(sentences(text, lines=lines, tokenised=tokenised, hyphens=hyphens))
    assert all(found)
    assert all(form and not form.isspace() for sentence in found for form in sentence.forms)
    assert detokenise(found) == (text if found else "")
    if not found:
        assert tokenise(text) == ()


@settings(max_examples=100, deadline=None)
@given(_TEXT, st.lists(st.integers(0, 60), max_size=6))
def test_pieces_make_no_difference(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    assert list(sentences(pieces)) == list(sentences(text)) == list(sentences(list(text)))


@settings(max_examples=60, deadline=None)
@given(_TEXT)
def test_tokens_stay_tokens(text: str) -> None:
    """What was taken apart is not taken further apart, nor put together, when it comes as tokens on a line."""
    found = list(sentences(text))
    again = list(sentences("\n".join(" ".join(s.forms) for s in found), lines=True, tokenised=True))
    assert [sentence.forms for sentence in again] == [sentence.forms for sentence in found]


@settings(max_examples=60, deadline=None)
@given(_TEXT)
def test_white_space_goes_through_files(text: str) -> None:
    found = [
        sentence for sentence in sentences(text) if not any("\ud800" <= c < "\ue000" for c in "".join(sentence.forms))
    ]
    stream = io.StringIO()
    write(map(with_text, found), stream, "conllu")
    back = list(read(io.StringIO(stream.getvalue()), "conllu"))
    assert [sentence.forms for sentence in back] == [sentence.forms for sentence in found]
    assert detokenise(back) == detokenise(found)


def test_marks_are_never_parted() -> None:
    text = "e\u0301" * 3000 + " ok"
    forms = [form for sentence in sentences(text) for form in sentence.forms]
    assert not any(form.startswith("\u0301") for form in forms)
    assert max(map(len, forms)) <= 1000


def test_long_stretches_are_cut_where_it_hurts_least() -> None:
    text = " ".join(f"word{k}{',' if k % 100 == 99 else ''}" for k in range(2000))
    found = list(sentences(text))
    assert max(map(len, found)) < LONGEST
    assert all(sentence.forms[-1] == "," for sentence in found[:-1])
    assert detokenise(found) == text
    assert len(_forms(text, lines=True)) == 1
    assert max(map(len, _forms("x-" * 2000))) < LONGEST


@pytest.mark.parametrize(
    "unit",
    ["x", "a-", "a.", "1,", "(", "'", "x@", "http:", "\u0301", "字", ":-", "www.", "#a", "$a", "/a/", "-/a/(", "c:\\"],
)
def test_time_grows_with_the_text(unit: str) -> None:
    """No pattern looks through a long run again from each of its characters."""
    text = unit * (60_000 // len(unit))
    start = time.process_time()
    assert detokenise(sentences(text)) == text
    assert time.process_time() - start < 20  # far below a second; billions of looks would take longer than this


def test_a_stream_takes_little_memory() -> None:
    list(sentences(["It rained on day 1 of the year. "]))  # tables that are loaded once are none of the stream's
    pieces = (f"It rained on day {k % 100} of the year. " for k in range(2_000))
    tracemalloc.start()
    try:
        count = sum(1 for _ in sentences(pieces))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 2_000
    assert peak < 100_000  # all the sentences would take ten times that


def test_sentences_come_as_soon_as_their_line_ends() -> None:
    splitter = Splitter(eager=True)
    assert splitter.feed("It rai") == []
    assert [s.forms for s in splitter.feed("ned.\nIt")] == [("It", "rained", ".")]
    assert splitter.feed(" goes\non") == []
    assert [s.forms for s in splitter.feed("\r\n\r\n")] == [("It", "goes", "on")]
    assert splitter.feed("\n") == []
    assert splitter.feed("He went to St.\n") == splitter.feed("Ives of the U.S.\n") == []
    assert [s.forms[-1] for s in splitter.feed("Army at 5 p.m.\n")] == ["."]
    assert [s.forms for s in splitter.close()] == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["It rained.", "Mr.", "Main St.", "Poe left!", "and so", "---", "on", "\n", "\n\n", " "]),
        max_size=12,
    )
)
def test_haste_finds_the_same_sentences(parts: list[str]) -> None:
    text = " ".join(parts)
    splitter = Splitter(eager=True)
    hasty = [sentence for piece in text for sentence in splitter.feed(piece)] + splitter.close()
    assert [sentence.forms for sentence in hasty] == _forms(text)


def test_detokenise_needs_white_space() -> None:
    with pytest.raises(ValueError, match=r"sentence 'Rain fell' has no record of its white space"):
        detokenise(Sentence(("Rain", "fell")))


def test_multiword_tokens_give_their_text() -> None:
    text = "# text = don't.\n1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    text += "".join(f"{k}\t{form}\t_\t_\t_\t_\t_\t_\t_\t_\n" for k, form in enumerate(("do", "n't", "."), 1))
    (sentence,) = read(io.StringIO(text), "conllu")
    assert detokenise(sentence) == "don't. "


def test_what_has_no_white_space_is_left_alone() -> None:
    plain = Sentence(("Rain",), source=ConllSource(True, 1))
    assert with_text(plain) is plain


def test_undecodable_bytes_are_named() -> None:
    decoder = Decoder("notes.txt")
    decoder.feed("Één\nzin\n".encode())
    decoder.feed(b"caf\xe2\x82")
    with pytest.raises(FormatError, match=r"notes\.txt:3: byte 0xe2, byte 14 of the input, is not UTF-8"):
        decoder.feed(b"(")
    for coding in ("utf-16", "utf-16-le", "utf-16-be"):
        with pytest.raises(FormatError, match="x:1: UTF-16, not UTF-8; convert it"):
            Decoder("x").feed("\nhi".encode(coding))
    assert Decoder("x").feed(b"\0\0\0a\0b\0c") == "\0\0\0a\0b\0c"
    unfinished = Decoder("x")
    unfinished.feed(b"a\xc3")
    with pytest.raises(FormatError, match="byte 2 of the input"):
        unfinished.close()
    replacing = Decoder("x", "replace")
    assert replacing.feed(b"a\xffb\xc3") + replacing.close() == "a\ufffdb\ufffd"


def test_batches_of_several_files(tmp_path: Path) -> None:
    texts = {"a": "One. Two. Three", "b": "Four. Five.", "empty": ""}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    batches = list(Reader([tmp_path / f"{name}.txt" for name in texts], batch=2))
    assert [[sentence.id for sentence in batch] for batch in batches] == [["a-1", "a-2"], ["a-3", "b-1"], ["b-2"]]
    assert batches[1][0].forms == ("Three",)


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["a/x.txt", "b/x.txt"], ["a_x-1", "b_x-1"]),
        (["a/c/x.txt", "b/c/x.txt", "b/y.txt"], ["a_c_x-1", "b_c_x-1"]),
        (["a b/x.txt", "c/d/x.txt", "a_b/x.txt"], ["1-1", "2-1", "3-1"]),
        (["x.txt", "x.md"], ["x.txt-1", "x.md-1"]),
        (["a/x.txt", "b/x.txt", "b/x.md"], ["a_x.txt-1", "b_x.txt-1", "b_x.md-1"]),
        (["x.txt", "x.txt"], ["x-1", "x-2"]),
        (["x.txt", "y.txt"], ["x-1", "y-1"]),
        (["x.txt"], ["1"]),
    ],
)
def test_no_two_sentences_have_one_id(names: list[str], ids: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("It rained.", encoding="utf-8")
    found = [sentence.id for batch in Reader([tmp_path / name for name in names]) for sentence in batch]
    assert found[: len(ids)] == ids
    assert len(set(found)) == len(names)


def test_who_waits_is_answered() -> None:
    """A pipe that says nothing more for now is answered with what it said; a full batch comes first."""
    end, start = os.pipe()
    with open(end, "rb") as stream, open(start, "wb", buffering=0) as pipe:
        batches = iter(Reader([stream], batch=3))
        pipe.write(b"It rained.\nThen it")
        assert [sentence.forms for sentence in next(batches)] == [("It", "rained", ".")]
        pipe.write(b" stopped. Why?\nNobody knows\n\nOne. Two. Three.\n")
        assert [sentence.id for sentence in next(batches)] == ["2", "3", "4"]
        assert [sentence.id for sentence in next(batches)] == ["5", "6", "7"]
        pipe.write("caf\u00e9".encode()[:-1])
        pipe.write("\u00e9".encode()[1:])
        pipe.close()
        assert [sentence.forms for sentence in next(batches)] == [("café",)]
        assert list(batches) == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Really...? No!!..", "Really ... ? No !! .."),
        ("?! .?", "?! .?"),
        ("16.3hh 5.6t 1,350kg", "16.3 hh 5.6 t 1,350 kg"),
        ("a .doc file", "a .doc file"),
        ("write to @poe.com, @poe", "write to @poe.com , @poe"),
        ("alt.birds.open-forum", "alt.birds.open-forum"),
        ("---== News ==--- |---+--->", "---== News ==--- |---+--->"),
        ("well d*mn *so* what", "well d*mn * so * what"),
        ("fine :)thanks w/out it", "fine :) thanks w/out it"),
    ],
)
def test_odd_tokens(text: str, tokens: str) -> None:
    assert tokenise(text) == tuple(tokens.split())


@pytest.mark.parametrize(
    "text",
    [
        "Two things: 1. Bread. | Then tea.",
        "At 3 p.m. EST we left. | Then it rained.",
        "It works! ^_^ | Great.",
        "He fell. | ... The rest is known.",
        "We left. | PS. Bring tea.",
    ],
)
def test_odd_ends(text: str) -> None:
    found = [detokenise(sentence).strip() for sentence in sentences(text.replace("| ", ""))]
    assert found == text.split(" | ")


def test_contractions_are_written_as_multiword_tokens() -> None:
    (sentence,) = sentences("\tIt's the boys' and I can't've 'seen boys' - so.")
    stream = io.BytesIO()
    write([with_text(sentence)], stream, "conllu")
    lines = [line.split("\t") for line in stream.getvalue().decode().splitlines()[1:] if line]
    ranges = {cells[0]: cells[1] for cells in lines if "-" in cells[0]}
    assert ranges == {"1-2": "It's", "4-5": "boys'", "8-10": "can't've"}  # the last mark closes a quotation
    (back,) = read(io.BytesIO(stream.getvalue()), "conllu")
    assert spacing_of(back) == sentence.source
