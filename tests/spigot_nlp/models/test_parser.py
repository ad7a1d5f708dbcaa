"""A trained system as a function of sentences."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from spigot import kernels
from spigot.kernels import kernel_threads
from spigot_nlp.config import make_config
from spigot_nlp.data.formats import FORMATS
from spigot_nlp.data.formats.conll import parse_conllu, render_conllu
from spigot_nlp.data.formats.files import Block
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.models import parser as module
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from spigot_nlp.threads import use_threads
from tests.spigot_nlp.parsing import (
    ALL_SYSTEMS,
    classifier,
    corpus,
    curly_parser,
    of_lengths,
    parser,
    semantics,
    sentences,
    text_sentences,
)

DATA = corpus()
SYSTEM = parser("spigot", DATA, semantics__pruning__learned=False)
SYSTEM.model.double()


def bare(sentence: Sentence) -> Sentence:
    return sentence.without_annotation()


def test_order_and_words_are_kept() -> None:
    given = of_lengths([5, 1, 9, 2, 0, 7, 3], seed=4)
    found = list(SYSTEM.pipe(given))
    assert [(sentence.forms, sentence.tags) for sentence in found] == [(s.forms, s.tags) for s in given]


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_trees_and_graphs_are_whole(system: str) -> None:
    whole = SYSTEM if system == "spigot" else parser(system, DATA)
    for sentence in whole.pipe(map(bare, of_lengths([4, 1, 0, 6], seed=5))):
        assert sentence.graph is not None
        if system == "neurboparser":
            assert sentence.heads is None
        else:
            assert sentence.heads is not None
            assert sentence.heads.count(0) == min(len(sentence), 1)
        words = set(range(1, len(sentence) + 1))
        assert {*sentence.graph.tops, *sentence.graph.predicates} <= words
        for arc in sentence.graph.arcs:
            assert {arc.predicate, arc.argument} <= words
            assert arc.predicate != arc.argument
            assert arc.predicate in sentence.graph.predicates
            assert arc.role in semantics(whole).annotation.roles[1:]
        assert len({arc[:2] for arc in sentence.graph.arcs}) == len(sentence.graph.arcs)


def test_what_is_annotated_is_not_looked_at() -> None:
    given = sentences(6, seed=9)
    answers = list(SYSTEM.pipe(map(bare, given)))
    wrong = [
        replace(s, heads=(0,) + (1,) * (len(s) - 1), graph=Graph.of([Arc(1, 2, "XX")], [1]), relations=("x",) * len(s))
        for s in given
    ]
    for answer, other in zip(answers, SYSTEM.pipe(wrong), strict=True):
        assert (answer.heads, answer.graph) == (other.heads, other.graph)
        assert other.relations is None


@pytest.mark.parametrize(
    "whole", [SYSTEM, parser("neurboparser", DATA), classifier("bilstm"), classifier(classifier__structure="gold")]
)
def test_nothing_that_was_annotated_is_handed_back(whole: Parser) -> None:
    given = [
        replace(s, relations=("x",) * len(s), graph=Graph.of([Arc(1, 2, "XX")], [1]), label=7, probabilities=(0.5, 0.5))
        for s in sentences(4, seed=9)
    ]
    for sentence, answer in zip(given, whole.pipe(given), strict=True):
        kinds = ("heads", "graph", "label")
        assert tuple(kind for kind in kinds if getattr(answer, kind) is not None) == whole.gives
        assert answer.relations is None
        assert (answer.probabilities is not None) == ("label" in whole.finds)
        assert answer.label != 7
        assert answer.graph != sentence.graph
        kept = ("forms", "tags", "lemmas", "id", "source")
        assert [getattr(answer, name) for name in kept] == [getattr(sentence, name) for name in kept]


def test_what_was_annotated_is_not_written_back_either() -> None:
    """What a format keeps to write a sentence unchanged has gold columns, too."""
    rows = ["1\tThe\tthe\tDET\tDT\t_\t2\tdet\t2:det\t_", "2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t0:root\t_"]
    given = parse_conllu(Block(rows))
    assert FORMATS["conllu"].render(given, True)[0].split("\n") == rows
    for whole in (parser("neurboparser", DATA), classifier("bilstm")):
        answer = next(whole.pipe([given])).put("graph", None)
        *comments, first, second = FORMATS["conllu"].render(answer, True)[0].split("\n")
        assert [row.split("\t")[6:9] for row in (first, second)] == [["_"] * 3] * 2
        assert comments == ([f"# label = {answer.label}"] if "label" in whole.gives else [])


def test_the_answer_does_not_depend_on_the_company() -> None:
    given = [bare(sentence) for sentence in of_lengths([3, 8, 1, 5, 2, 8, 4], seed=6)]
    together = list(SYSTEM.pipe(given))
    assert list(SYSTEM.pipe(given, batch=1)) == together  # one by one
    assert list(SYSTEM.pipe(reversed(given))) == together[::-1]
    for k in range(len(given)):
        assert list(SYSTEM.pipe(given[k : k + 1])) == together[k : k + 1]


def test_unknown_words_tags_and_very_long_sentences_are_parsed() -> None:
    strange = Sentence(("Ünbekannt", "", "\U0001f40c"), tags=("??", "NN", "VBZ"))
    untagged = Sentence(("cat", "sees"))
    longest = of_lengths([200], seed=7)[0]
    found = list(SYSTEM.pipe([strange, untagged, bare(longest)]))
    assert [len(sentence.heads or ()) for sentence in found] == [3, 2, 200]
    assert found[1].tags is None


def test_only_what_is_wanted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list(map(bare, of_lengths([4, 1, 0, 6], seed=5)))
    whole = list(SYSTEM.pipe(given))
    graphs = list(SYSTEM.pipe(given, only=["graph"]))
    assert [s.graph for s in graphs] == [s.graph for s in whole]  # which read trees
    assert all(s.heads is None for s in graphs)

    def unasked(*_: object, **__: object) -> None:
        raise AssertionError("nobody wants graphs")

    monkeypatch.setattr(SYSTEM.model.stages["semantics"], "evidence", unasked)
    trees = list(SYSTEM.pipe(given, only=["heads"]))
    assert [s.heads for s in trees] == [s.heads for s in whole]
    assert all(s.graph is None for s in trees)


def test_nothing_in_nothing_out() -> None:
    assert list(SYSTEM.pipe([])) == []


def test_sentences_are_read_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 3)
    taken = 0

    def stream() -> Iterator[Sentence]:
        nonlocal taken
        for sentence in itertools.cycle(sentences(2)):
            taken += 1
            yield sentence

    assert len(list(itertools.islice(SYSTEM.pipe(stream()), 4))) == 4
    assert taken == 6


def test_a_tagger_gives_tags_and_lemmas_whatever_there_is() -> None:
    tagged = Parser(SYSTEM.config, SYSTEM.vocab, SYSTEM.model, Tagger.train(DATA["trees"].train))
    plain = Sentence(("The", "dog", "sees"))
    found = next(tagged.pipe([plain]))
    assert found.tags is not None
    assert found.lemmas == ("the", "dog", "see")
    own = next(tagged.pipe([replace(plain, tags=("X", "Y", "Z"), lemmas=("a", "b", "c"), upos=("X", "Y", "Z"))]))
    assert own == found  # what a sentence comes with is neither read nor shown
    ready = replace(plain, tags=found.tags, lemmas=found.lemmas)
    assert next(tagged.pipe([ready], tagged=True)) == found


def test_columns_that_nobody_looks_at_are_not_handed_back() -> None:
    rain = Sentence(("Rain", "fell"), lemmas=("rain", "fall"), tags=("NN", "VBD"), upos=("NOUN", "VERB"), heads=(2, 0))
    for tag_dim, lemma_dim in ((0, 0), (4, 0), (0, 4)):
        encoder = {"hidden": 4, "tag_dim": tag_dim, "lemma_dim": lemma_dim}
        config = make_config(
            {"data": {"tags": "columns"}, "stages": {"syntax": {"annotation": "trees", "encoder": encoder}}}
        )
        blind = fresh(config, {"trees": [rain]})
        found = next(blind.pipe([rain]))
        assert found.tags == (rain.tags if tag_dim else None)
        assert found.lemmas == (rain.lemmas if lemma_dim else None)
        assert found.upos is None
        assert blind.misses_tags == bool(tag_dim)


def test_kernels_have_all_threads_where_they_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """And torch has one, as long as they work: its own would spin in wait of the next step."""
    whole, seen = parser("spigot", DATA), list[tuple[int, int]]()
    decide = whole.model.decide

    def watched(*args: Any) -> Any:
        seen.append((torch.get_num_threads(), kernel_threads()))
        return decide(*args)

    monkeypatch.setattr(whole.model, "decide", watched)
    with use_threads(3):
        for precision in ("float32", "int16"):
            whole.model.compute_in(precision)
            for _ in whole.pipe(DATA["trees"].dev[:1]):
                assert (torch.get_num_threads(), kernel_threads()) == (3, 3)
    assert seen == [(3, 3), (1, 3) if kernels.available else (3, 3)]


def test_features_of_words_are_not_copied_from_the_file() -> None:
    """Nor empty nodes, nor what else its last column says than white space; coarse tags make no fine ones."""
    lines = [
        "# sent_id = one",
        "# class = fiction",
        "# label = 1",
        "# class = good",
        "1-2\tDogs'll\t_\t_\t_\t_\t_\t_\t_\tCorrect=No|SpaceAfter=No",
        "1\tDogs\tdoggo\tADV\t_\tNumber=Plur\t2\tdet\t2:det\tEntity=(animal)",
        "2\t'll\tshall\tADV\t_\tMood=Ind\t0\troot\t0:root\tGap=1|SpaceAfter=No",
        "2.1\tbark\tbark\tVERB\t_\t_\t_\t_\t0:root\tCopyOf=2",
    ]
    given = parse_conllu(Block(lines, opens=True))
    tagged = Parser(SYSTEM.config, SYSTEM.vocab, SYSTEM.model, Tagger.train(DATA["trees"].train))
    found = next(tagged.pipe([given]))
    comment, other, range_line, *words = render_conllu(replace(found, graph=None))[0].split("\n")
    assert [comment, other, range_line] == [*lines[:2], lines[4].replace("Correct=No|", "")]
    assert found.tags is not None
    assert found.lemmas is not None
    for k, (cells, misc) in enumerate(zip((word.split("\t") for word in words), ("_", "SpaceAfter=No"), strict=True)):
        assert (cells[2], cells[4]) == (found.lemmas[k], found.tags[k])
        assert (cells[3], cells[5], cells[8], cells[9]) == ("_", "_", "_", misc)


def test_senses_are_not_copied_from_the_gold_graph() -> None:
    given = replace(DATA["graphs"].train[0], graph=Graph(frames=("sense",) * len(DATA["graphs"].train[0])))
    found = next(SYSTEM.pipe([given]))
    assert found.graph is not None
    assert found.graph.frames == ()


def test_text_is_cut_and_read_in_the_manner_of_the_training_data() -> None:
    whole = curly_parser()
    whole.model.double()
    tagged = Parser(whole.config, whole.vocab, whole.model, Tagger.train(DATA["trees"].train))
    text = 'The far-off dog cannot see. "Do n\'t!"'
    forms = [("The", "far-off", "dog", "cannot", "see", "."), ('"', "Do", "n't", "!", '"')]
    found = list(text_sentences(tagged, text))
    assert [sentence.forms for sentence in found] == forms  # as they are written
    pieces = tagged.conventions.sentences(iter(text))
    assert list(tagged.pipe(pieces, plain=True)) == found  # in pieces of any size
    spelt = list(tagged.pipe(map(Sentence, [forms[0], ("“", "Do", "n’t", "!", "”")])))
    assert tagged.read([Sentence(forms[1])], plain=True)[0].forms == spelt[1].forms
    for answer, other in zip(found, spelt, strict=True):
        assert (answer.heads, answer.graph, answer.tags) == (other.heads, other.graph, other.tags)
    assert found[1].lemmas == ('"', "do", "n't", "!", '"')
    assert [s.forms for s in text_sentences(tagged, "far - off .\nbut-so .", lines=True, tokenised=True)] == [
        ("far", "-", "off", "."),
        ("but-so", "."),
    ]
    assert list(text_sentences(tagged, "")) == []


def test_text_has_no_right_trees() -> None:
    with pytest.raises(ValueError, match="plain text has none"):
        classifier(classifier__structure="gold")("Rain fell.")


def test_tags_that_a_system_finds_are_no_input_of_its_stages() -> None:
    """In training as in parsing: a stage that reads tags would otherwise learn from what it is never given again."""
    tables = {"tagger": {"annotation": "tags"}, "syntax": {"annotation": "trees"}}
    config = make_config({"stages": tables, "data": {"tags": "columns"}})
    data = corpus()
    whole = fresh(config, data.train)
    sentence = data["trees"].train[0]
    encoded = whole.encoded(sentence, whole.model.annotations)
    assert not encoded.tokens[2, 1:-1].any()
    assert encoded.gold["tagger"][1:].all()
    _, batch = next(whole.batches([sentence]))
    assert batch.tags.tolist() == [encoded.tokens[2].tolist()]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("Rain.", "many texts or sentences"),
        (b"Rain.", "many texts or sentences"),
        ([Sentence(("Rain",)), "Rain."], "number 2 is 'str'"),
        (["Rain.", 5], "number 2 is 'int'"),
        ([b"Rain."], "number 1 is 'bytes'"),
    ],
)
def test_text_is_no_list_of_sentences(given: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        list(SYSTEM.pipe(given))
