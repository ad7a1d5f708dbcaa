"""Sentences as tensors, and the order they come in."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot.data.batch import bucketed, collate, encode, task_order
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.vocab import RARE, TOP, Vocab
from tests.parsing import batch_of, of_lengths, reviews, sentences

TEXT = sentences(8)
VOCAB = Vocab.of(TEXT)


def test_indices_are_framed_and_padded() -> None:
    batch = batch_of(TEXT, VOCAB)
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
    batch = batch_of(TEXT, VOCAB)
    assert batch.heads is not None
    assert batch.arcs is not None
    assert batch.predicates is not None
    found = Counter(map(tuple, batch.arcs.tolist()))
    expected: Counter[tuple[int, ...]] = Counter()
    for k, sentence in enumerate(TEXT):
        assert sentence.heads is not None
        assert sentence.graph is not None
        assert batch.heads[k, 1 : len(sentence) + 1].tolist() == list(sentence.heads)
        assert not batch.heads[k, len(sentence) + 1 :].any()
        expected.update((k, a.predicate, a.argument, VOCAB.role_index[a.role]) for a in sentence.graph.arcs)
        expected.update((k, 0, top, VOCAB.role_index[TOP]) for top in sentence.graph.tops)
        assert batch.predicates[k].nonzero().flatten().tolist() == [0, *sentence.graph.predicates]
    assert found == expected


def test_classes_become_indices_in_ascending_order() -> None:
    chosen = reviews(6, classes=(7, -2, 3))
    vocab = Vocab.of(chosen)
    batch = batch_of(chosen, vocab)
    assert vocab.classes == (-2, 3, 7)
    assert batch.labels is not None
    assert [vocab.classes[k] for k in batch.labels.tolist()] == [sentence.label for sentence in chosen]
    assert batch.heads is None
    assert batch.arcs is None


def test_a_class_that_training_never_saw_has_no_index() -> None:
    chosen = reviews(6, classes=(0, 1))
    vocab = Vocab.of(chosen)
    strange = Sentence(("cat",), label=5)
    assert encode(strange, vocab).label is None
    assert batch_of([chosen[0], strange], vocab).labels is None
    assert batch_of([chosen[0], Sentence(("cat",))], vocab).labels is None
    assert batch_of([], vocab).labels is None


def test_annotation_that_some_lack_is_left_out_of_all() -> None:
    bare = TEXT[0].without_annotation()
    batch = batch_of([TEXT[1], bare], VOCAB)
    assert batch.heads is None
    assert batch.arcs is None
    assert batch.predicates is None
    assert batch.seeds is None
    assert batch_of([TEXT[1]], VOCAB, [5]).seeds is not None


def test_unknown_values_are_index_0() -> None:
    encoded = encode(Sentence(("Zebra",), lemmas=("zebra",), tags=("ZZ",)), VOCAB)
    assert encoded.tokens.tolist() == [[1, 0, 2]] * 3
    assert encode(Sentence(("cat",)), VOCAB).tokens[2].tolist() == [1, 0, 2]  # no tags at all


def test_roles_that_training_never_saw_are_rare_or_left_out() -> None:
    strange = Sentence(("a", "b"), graph=Graph.of([Arc(1, 2, "never"), Arc(2, 1, "ARG1")], tops=[1]))
    encoded = encode(strange, VOCAB)
    assert encoded.arcs is not None
    assert encoded.predicates is not None
    assert encoded.arcs.tolist() == [[0, 1, VOCAB.role_index[TOP]], [2, 1, VOCAB.role_index["ARG1"]]]
    assert encoded.predicates.tolist() == [True, True, True]
    with_rare = Vocab.of(TEXT, rare_role=5)
    assert RARE in with_rare.roles
    encoded = encode(strange, with_rare)
    assert encoded.arcs is not None
    assert [1, 2, with_rare.role_index[RARE]] in encoded.arcs.tolist()


def test_graphs_are_made_such_as_the_models_can_give() -> None:
    graph = Graph.of([Arc(1, 2, "ARG1"), Arc(1, 2, "ARG2"), Arc(2, 2, "ARG1"), Arc(2, 1, "BV")])
    arcs = encode(Sentence(("a", "b"), graph=graph), VOCAB).arcs
    assert arcs is not None
    assert arcs.tolist() == [[1, 2, VOCAB.role_index["ARG1"]], [2, 1, VOCAB.role_index["BV"]]]


def test_empty_graphs_and_empty_sentences_are_annotated_too() -> None:
    batch = batch_of([Sentence((), heads=(), graph=Graph()), Sentence(("a",), heads=(0,), graph=Graph())], VOCAB)
    assert batch.arcs is not None
    assert batch.heads is not None
    assert batch.predicates is not None
    assert batch.arcs.shape == (0, 4)
    assert batch.lengths.tolist() == [0, 1]
    assert not batch.predicates.any()
    assert len(collate([])) == 0


@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 9), st.integers(0, 5))
def test_every_sentence_comes_once(lengths: list[int], size: int, seed: int) -> None:
    batches = bucketed(lengths, size, (seed, 1))
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    assert all(0 < len(batch) <= size for batch in batches)
    assert len(batches) == -(-len(lengths) // size)
    assert batches == bucketed(lengths, size, (seed, 1))


def test_a_batch_has_sentences_of_close_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 600).tolist()
    for batch in bucketed(lengths, 8, (0, 0)):
        chosen = [lengths[k] for k in batch]
        assert max(chosen) <= 1.25 * min(chosen) + 1  # ten per cent of noise, and the gap between neighbours


def test_another_epoch_has_other_batches_in_another_order() -> None:
    lengths = [sentence.__len__() for sentence in of_lengths([5] * 40)]
    first, second = bucketed(lengths, 4, (0, 0)), bucketed(lengths, 4, (0, 1))
    assert first != second
    assert set(map(frozenset, first)) != set(map(frozenset, second))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 3))
def test_an_epoch_takes_every_step_of_both_tasks(syntax: int, semantics: int, seed: int) -> None:
    sizes = {"syntax": 4 * syntax, "semantics": 4 * semantics}
    order = list(task_order(sizes, {"syntax": syntax, "semantics": semantics}, (seed,)))
    assert Counter(order) == Counter({"syntax": syntax, "semantics": semantics})
    assert order == list(task_order(sizes, {"syntax": syntax, "semantics": semantics}, (seed,)))


@pytest.mark.parametrize(("large", "small"), [(9, 3), (5, 5)])
def test_a_task_is_drawn_in_proportion_to_its_size_at_every_step(large: int, small: int) -> None:
    epochs = [
        list(task_order({"a": 4 * large, "b": 4 * small}, {"a": large, "b": small}, (seed,))) for seed in range(1000)
    ]
    share = large / (large + small)
    for position in range(large + small):
        drawn = sum(epoch[position] == "a" for epoch in epochs)
        assert abs(drawn - 1000 * share) < 3.5 * (1000 * share * (1 - share)) ** 0.5


def test_what_is_left_of_a_task_decides_the_next_draw() -> None:
    """After a first step of the larger task, the chances are those of the sentences still to come."""
    second = Counter()
    for seed in range(3000):
        first, then = itertools.islice(task_order({"a": 40, "b": 20}, {"a": 4, "b": 2}, (seed,)), 2)
        second[first, then] += 1
    for first, share in (("a", 3 / 5), ("b", 4 / 5)):
        count = second[first, "a"] + second[first, "b"]
        assert abs(second[first, "a"] - count * share) < 3.5 * (count * share * (1 - share)) ** 0.5
