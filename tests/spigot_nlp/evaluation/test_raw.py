"""Scores of answers from plain text, by examples that can be counted by hand."""

from collections.abc import Iterable

import pytest

from spigot_nlp.data.formats.conll import parse_conllu
from spigot_nlp.data.formats.files import Block
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.raw import sentences
from spigot_nlp.data.text.treebank import treebank_text
from spigot_nlp.evaluation import score_labelled_trees, score_raw
from spigot_nlp.evaluation.raw import Surface, align


def conllu(*rows: str) -> Sentence:
    """A sentence of CoNLL-U: number, form and then, if given, head, relation, lemma, tag, the last column."""
    lines = []
    for row in rows:
        if row.startswith("#"):
            lines.append(row)
            continue
        number, form, head, relation, lemma, upos, misc = (*row.split(), *"_____")[:7]
        lines.append("\t".join((number, form, lemma, upos, "_", "_", head, relation, "_", misc)))
    return parse_conllu(Block(lines))


def pairs(gold: Iterable[Sentence], found: Iterable[Sentence]) -> list[tuple[int, int]]:
    return align(Surface.of(gold), Surface.of(found))


DONT = conllu(
    "1 I 4 nsubj I PRON",
    "2-3 don't",
    "2 do 4 aux do AUX",
    "3 n't 4 advmod not PART",
    "4 know 0 root know VERB SpaceAfter=No",
    "5 . 4 punct . PUNCT",
)


def test_same_division_gives_the_ordinary_scores() -> None:
    words = ("She", "was", "seen", "there")
    gold = Sentence(words, heads=(3, 3, 0, 3), relations=("nsubj:pass", "aux:pass", "root", "advmod"))
    found = Sentence(words, heads=(3, 3, 0, 2), relations=("nsubj", "cop", "root", "advmod"))
    scores, ordinary = score_raw([gold, gold], [found, gold]), score_labelled_trees([gold, gold], [found, gold])
    assert scores.tokens.f1 == scores.sentences.f1 == scores.words.f1 == 1
    assert scores.uas is not None
    assert scores.las is not None
    assert scores.uas.precision == scores.uas.recall == scores.uas.f1 == ordinary.uas == 7 / 8
    assert scores.las.f1 == ordinary.las_without_subtypes == 6 / 8
    # Content words: all but the auxiliaries, of which one was taken for a copula; `there` has the wrong head.
    assert scores.clas is not None
    assert (scores.clas.correct, scores.clas.predicted, scores.clas.gold) == (5, 6, 6)
    assert scores.upos is scores.xpos is scores.lemmas is scores.blex is None


def test_contractions_of_plain_text_are_multiword_tokens() -> None:
    found = [sentence.put("heads", (4, 4, 4, 0, 4)) for sentence in sentences("I don't know.")]
    scores = score_raw([DONT], found)
    assert (scores.tokens.correct, scores.tokens.predicted, scores.tokens.gold) == (4, 4, 4)
    assert scores.words.f1 == 1
    assert scores.uas is not None
    assert scores.uas.f1 == 1


def test_words_of_multiword_tokens_are_aligned_by_spelling() -> None:
    spelt_out = conllu("1-3 Dunno", "1 do", "2 not", "3 know")
    assert pairs([spelt_out], [conllu("1-2 Dunno", "1 Do", "2 know")]) == [(0, 0), (2, 1)]
    assert pairs([spelt_out], [conllu("1 Dunno")]) == []
    apart = conllu("1 I", "2 do", "3 n't", "4 know", "5 .")  # no multiword token on this side
    assert pairs([DONT], [apart]) == [(k, k) for k in range(5)]
    assert score_raw([DONT], [apart]).tokens.correct == 3
    overlapping = conllu("1-2 Idon't", "1 I", "2 don't", "3 know", "4 .")
    assert pairs([DONT], [overlapping]) == [(0, 0), (3, 2), (4, 3)]


def test_wrong_splits_cost_on_both_sides() -> None:
    gold = conllu("1 New-York 2 nsubj", "2 sleeps 0 root")
    found = conllu("1 New 3 amod", "2 - 3 punct", "3 York 4 nsubj", "4 sleeps 0 root")
    scores = score_raw([gold], [found])
    assert scores.aligned == 1
    assert (scores.words.precision, scores.words.recall) == (1 / 4, 1 / 2)
    assert scores.uas is not None
    assert scores.uas.correct == 1  # the root; a word without a partner has no head that could be right
    assert score_raw([found], [gold]).words.precision == scores.words.recall


def test_sentences_that_are_split_elsewhere() -> None:
    gold = [conllu("1 Go 0 root", "2 on 1 advmod"), conllu("1 Now 0 root")]
    found = [conllu("1 Go 0 root"), conllu("1 on 2 advmod", "2 Now 0 root")]
    scores = score_raw(gold, found)
    assert scores.sentences.correct == 0
    assert scores.words.f1 == 1
    assert scores.uas is not None
    assert scores.uas.correct == 2  # `Go` and `Now`, which are roots on both sides


def test_tags_and_lemmas() -> None:
    found = conllu(
        "1 I 4 nsubj i PRON",
        "2-3 don't",
        "2 do 4 aux do VERB",
        "3 n't 4 advmod n't PART",
        "4 know 0 root know VERB",
        "5 . 4 punct . PUNCT",
    )
    scores = score_raw([DONT], [found])
    assert scores.upos is not None
    assert scores.upos.correct == 4
    assert scores.xpos is None  # neither file has the other column of tags
    assert scores.lemmas is not None
    assert scores.lemmas.correct == 3
    assert scores.blex is not None
    assert (scores.blex.correct, scores.blex.gold) == (1, 3)
    nameless = conllu("1 I 2 nsubj _ X", "2 know 0 root know X")
    other = conllu("1 I 2 nsubj me X", "2 know 0 root know X")
    lemmas = score_raw([nameless], [other]).lemmas
    assert lemmas is not None
    assert lemmas.correct == 2


def test_penn_tags_are_not_compared_with_universal_ones() -> None:
    gold = conllu("1 Go 0 root go VERB")
    universal, penn = (Sentence(("Go",), tags=(tag,), heads=(0,)) for tag in ("VERB", "VB"))
    assert score_raw([gold], [universal]).upos is not None
    assert score_raw([gold], [penn]).upos is None


def test_nothing_at_all() -> None:
    scores = score_raw([], [])
    assert (scores.tokens.f1, scores.aligned, list(scores.named)) == (0, 0, ["Tokens", "Sentences", "Words"])
    invisible = Sentence(("\u200b",), heads=(0,))
    assert "".join(treebank_text([conllu("1 \u200b")])).strip("\u200b ") == ""
    scores = score_raw([invisible], [])
    assert (scores.words.gold, scores.words.predicted, scores.aligned) == (1, 0, 0)
    assert score_raw([invisible], [invisible]).aligned == 0


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (("It", "snowed"), "character 3 .*after 'It', in sentence 1, .* with 'rained', and the other with 'snowed'"),
        (("It", "rained", "."), "character 9 .* with nothing, and the other with '.'"),
        (("Rain",), "character 1 .*after its beginning"),
    ],
)
def test_other_texts(other: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        score_raw([Sentence(("It", "rained"))], [Sentence(other)])


def test_all_sentences_or_none_have_trees() -> None:
    some = [Sentence(("Go",), heads=(0,)), Sentence(("on",))]
    with pytest.raises(ValueError, match="sentence 2 has no heads in the gold data"):
        score_raw(some, some)


def test_white_space_inside_words_does_not_count() -> None:
    spaced = Sentence(("10\u00a0000", "cats"))
    assert pairs([spaced], [Sentence(("10000", "cats"))]) == [(0, 0), (1, 1)]


def test_many_words_take_little_time_and_no_recursion() -> None:
    """A pass over the words: a quadratic one would take hours here."""
    sentence = Sentence(("a",) * 50, heads=(0, *range(1, 50)))
    scores = score_raw([sentence] * 1000, [sentence] * 1000)
    assert scores.uas is not None
    assert scores.uas.correct == 50_000


def text_of(*rows: str) -> str:
    return "".join(treebank_text([conllu(*rows)]))


def test_text_of_a_treebank() -> None:
    words = "1-2 don't", "1 do", "2 n't", "3 , _ _ _ _ SpaceAfter=No", "4 go"
    assert text_of(*words) == "don't ,go "  # rebuilt from the last column
    assert text_of("# text = don't, go", *words) == "don't, go "  # which the text overrules
    breaks = "1 Go _ _ _ _ SpacesAfter=\\n", "2 on"
    assert text_of("# text = Go on", *breaks) == "Go\non "  # unless it knows of more than spaces
    with pytest.raises(ValueError, match=r"text of sentence s1 goes on with 'up' where its words go on with 'on'"):
        text_of("# sent_id = s1", "# text = Go up", "1 Go", "2 on")
    some = [conllu("# newdoc id = d", "1 Go"), conllu("1 on"), conllu("# newpar", "1 Now")]
    assert "".join(treebank_text(some)) == "Go on \n\nNow "


def test_text_of_a_treebank_needs_white_space() -> None:
    with pytest.raises(ValueError, match="no record of its white space"):
        list(treebank_text([Sentence(("Go",))]))
