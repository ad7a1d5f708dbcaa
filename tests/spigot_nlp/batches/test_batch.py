"""Sentences as tensors."""

from collections import Counter
from dataclasses import replace

from spigot_nlp.annotations import Classes, Graphs, Tags, Trees
from spigot_nlp.annotations.graphs import TOP, GoldGraph
from spigot_nlp.batches import Annotations, Batch, collate, encode
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.vocab import Vocab
from tests.spigot_nlp.parsing import reviews, sentences

TEXT = sentences(8)
VOCAB = Vocab.of(TEXT)
GRAPHS = Graphs.learn("graph", TEXT, None)
BOTH: Annotations = {"syntax": Trees(), "semantics": GRAPHS}


def batch_of(chosen: list[Sentence], annotations: Annotations = BOTH, seeds: list[int] | None = None) -> Batch:
    return collate([encode(sentence, VOCAB, annotations) for sentence in chosen], annotations, seeds)


def test_indices_are_framed_and_padded() -> None:
    batch = batch_of(TEXT)
    widest = max(map(len, TEXT))
    assert batch.words.shape == batch.lemmas.shape == batch.tags.shape == (8, widest + 2)
    assert batch.size == widest + 1
    assert len(batch) == 8
    for k, sentence in enumerate(TEXT):
        padding = [0] * (widest - len(sentence))
        assert sentence.lemmas is not None
        assert sentence.tags is not None
        for found, index, values in (
            (batch.words, VOCAB.word_index, [form.lower() for form in sentence.forms]),
            (batch.lemmas, VOCAB.lemma_index, sentence.lemmas),
            (batch.tags, VOCAB.tag_index, sentence.tags),
        ):
            assert found[k].tolist() == [1, *(index[value] for value in values), 2, *padding]
        assert batch.lengths[k] == len(sentence)


def test_annotation_is_carried_over() -> None:
    batch = batch_of(TEXT)
    heads, graphs = batch.gold["syntax"], batch.gold["semantics"]
    assert isinstance(graphs, GoldGraph)
    found = Counter(map(tuple, graphs.arcs.tolist()))
    expected: Counter[tuple[int, ...]] = Counter()
    for k, sentence in enumerate(TEXT):
        assert sentence.heads is not None
        assert sentence.graph is not None
        assert heads[k, 1 : len(sentence) + 1].tolist() == list(sentence.heads)
        assert not heads[k, len(sentence) + 1 :].any()
        expected.update((k, a.predicate, a.argument, GRAPHS.role_index[a.role]) for a in sentence.graph.arcs)
        expected.update((k, 0, top, GRAPHS.role_index[TOP]) for top in sentence.graph.tops)
        assert graphs.predicates[k].nonzero().flatten().tolist() == [0, *sentence.graph.predicates]
    assert found == expected


def test_stages_may_learn_the_same_kind_from_different_places() -> None:
    """Two graphs of one sentence are no different from a tree and a graph."""
    chosen = [sentence.put("chain", Graph.of([Arc(1, 2, "next")])) for sentence in TEXT[:3]]
    chain = Graphs.learn("chain", chosen, None)
    batch = batch_of(chosen, {"semantics": GRAPHS, "order": chain})
    assert batch.gold["order"].arcs.tolist() == [[k, 1, 2, chain.role_index["next"]] for k in range(3)]
    assert len(batch.gold["semantics"].arcs) > 3


def test_classes_become_indices_in_ascending_order() -> None:
    chosen = reviews(6, classes=(7, -2, 3))
    classes = Classes.learn("label", chosen, None)
    batch = batch_of(chosen, {"mood": classes, **BOTH})
    assert classes.classes == (-2, 3, 7)
    assert [classes.classes[k] for k in batch.gold["mood"].tolist()] == [sentence.label for sentence in chosen]
    assert list(batch.gold) == ["mood"]


def test_a_class_that_training_never_saw_has_no_index() -> None:
    chosen = reviews(6, classes=(0, 1))
    mood = {"mood": Classes.learn("label", chosen, None)}
    strange = Sentence(("cat",), label=5)
    assert not encode(strange, VOCAB, mood).gold
    assert not batch_of([chosen[0], strange], mood).gold
    assert not batch_of([chosen[0], Sentence(("cat",))], mood).gold


def test_annotation_that_some_lack_is_left_out_of_all() -> None:
    bare = TEXT[0].without_annotation()
    batch = batch_of([TEXT[1], bare])
    assert not batch.gold
    assert batch.seeds is None
    assert list(batch_of([TEXT[1], replace(TEXT[0], graph=None)]).gold) == ["syntax"]
    assert batch_of([TEXT[1]], seeds=[5]).seeds is not None


def test_nobody_gets_what_no_stage_asks_for() -> None:
    assert not encode(TEXT[0], VOCAB).gold
    assert list(batch_of(TEXT, {"syntax": Trees()}).gold) == ["syntax"]


def test_a_batch_moves_with_all_it_has() -> None:
    annotations: Annotations = {**BOTH, "tagger": Tags.learn("tags", TEXT, None)}
    moved = batch_of(TEXT, annotations, list(range(8))).to("meta")
    assert moved.seeds is not None
    graphs = moved.gold["semantics"]
    assert isinstance(graphs, GoldGraph)
    parts = (moved.words, moved.lemmas, moved.tags, moved.lengths, moved.seeds, moved.gold["syntax"], *graphs)
    assert {tensor.device.type for tensor in (*parts, moved.gold["tagger"])} == {"meta"}
    here = batch_of(TEXT)
    assert here.to("cpu") is here


def test_unknown_values_are_index_0() -> None:
    encoded = encode(Sentence(("Zebra",), lemmas=("zebra",), tags=("ZZ",)), VOCAB)
    assert encoded.tokens.tolist() == [[1, 0, 2]] * 3
    assert encode(Sentence(("cat",)), VOCAB).tokens[2].tolist() == [1, 0, 2]  # no tags at all


def test_empty_graphs_and_empty_sentences_are_annotated_too() -> None:
    batch = batch_of([Sentence((), heads=(), graph=Graph()), Sentence(("a",), heads=(0,), graph=Graph())])
    assert batch.gold["semantics"].arcs.shape == (0, 4)
    assert batch.gold["syntax"].shape == (2, 2)
    assert batch.lengths.tolist() == [0, 1]
    assert not batch.gold["semantics"].predicates.any()
    assert len(collate([])) == 0
