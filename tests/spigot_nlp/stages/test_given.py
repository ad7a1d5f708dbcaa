"""Trees that nobody learns."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import spigot
from spigot_nlp.annotations import Trees
from spigot_nlp.batches import Batch, collate, encode
from spigot_nlp.config import make_config
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.models.build import fresh
from spigot_nlp.stages import GivenStage, Surroundings
from spigot_nlp.stages.stage import stage_settings
from tests.spigot_nlp.parsing import of_lengths, reviews, sentences

KINDS = ("gold", "left", "right", "random")
LENGTHS = st.lists(st.integers(0, 7), min_size=1, max_size=4)
VOCAB = Vocab.of(of_lengths([7] * 9))


def batch(chosen: list[Sentence]) -> Batch:
    trees = {"chain": Trees()}
    return collate([encode(sentence, VOCAB, trees) for sentence in chosen], trees)


def stage(kind: str) -> GivenStage:
    settings = stage_settings({"annotation": "trees", "model": "given", "rule": kind})
    return GivenStage("chain", settings, Trees(), Surroundings(VOCAB))  # pyright: ignore[reportArgumentType]


def given_trees(some: Batch, kind: str) -> torch.Tensor:
    return stage(kind).given(some)


def heads(trees: torch.Tensor, lengths: list[int]) -> list[tuple[int, ...]]:
    return Trees().decode(trees, lengths)


@pytest.mark.parametrize("kind", KINDS)
@given(LENGTHS, st.integers(0, 9))
def test_they_are_trees_without_crossing_arcs(kind: str, lengths: list[int], seed: int) -> None:
    some = batch(of_lengths(lengths, seed))
    found = given_trees(some, kind)
    trees = spigot.ProjectiveTrees()
    assert trees.contains(found, trees.mask(some.lengths, some.size)).all()
    assert not found[:, :, 0].any()
    for row, length in zip(found, lengths, strict=True):
        assert not row[:, length + 1 :].any()
        assert not row[length + 1 :].any()
        assert int(row.sum()) == length


@given(LENGTHS)
def test_chains_hang_on_the_neighbour_they_are_named_after(lengths: list[int]) -> None:
    some = batch(of_lengths(lengths))
    assert heads(given_trees(some, "left"), lengths) == [(*range(2, n + 1), 0) if n else () for n in lengths]
    assert heads(given_trees(some, "right"), lengths) == [tuple(range(n)) for n in lengths]


def test_gold_trees_are_the_sentences_own() -> None:
    chosen = sentences(5)
    found = given_trees(batch(chosen), "gold")
    assert heads(found, [len(sentence) for sentence in chosen]) == [sentence.heads for sentence in chosen]
    with pytest.raises(ValueError, match="chain needs trees, and this batch has none"):
        given_trees(batch([sentence.without_annotation() for sentence in chosen]), "gold")


@pytest.mark.parametrize("kind", KINDS)
@given(LENGTHS, st.integers(0, 9))
def test_a_sentence_keeps_its_tree_in_any_batch(kind: str, lengths: list[int], seed: int) -> None:
    chosen = of_lengths(lengths, seed)
    together = heads(given_trees(batch(chosen), kind), lengths)
    for k, sentence in enumerate(chosen):
        assert heads(given_trees(batch([sentence]), kind), [len(sentence)]) == [together[k]]
    backwards = heads(given_trees(batch(chosen[::-1]), kind), lengths[::-1])
    assert backwards == together[::-1]


def test_random_trees_differ_between_sentences_and_are_of_all_kinds() -> None:
    chosen = of_lengths([4] * 300)
    different = {sentence.forms for sentence in chosen}
    found = heads(given_trees(batch(chosen), "random"), [4] * 300)
    trees = dict(zip((sentence.forms for sentence in chosen), found, strict=True))
    assert len(different) > 100
    assert all(trees[sentence.forms] == tree for sentence, tree in zip(chosen, found, strict=True))
    assert len(set(found)) == 30  # all projective trees over four words with one root
    for word in range(4):
        assert {tree[word] for tree in found} == set(range(5)) - {word + 1}


def test_words_in_another_order_get_another_tree() -> None:
    one = Sentence(("cat", "dog", "river", "stone", "gate", "tailor"))
    other = Sentence(one.forms[::-1])
    found = heads(given_trees(batch([one, other]), "random"), [6, 6])
    assert found[0] != found[1]


def test_other_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"(?s)rule.*'gold', 'left', 'right' or 'random'.*'upwards'"):
        stage("upwards")


def test_nothing_is_scored_and_nothing_is_learned() -> None:
    chain = stage("left")
    assert not chain.learns
    assert not list(chain.parameters())
    with pytest.raises(TypeError, match="the trees of chain follow a rule; there are no scores behind them"):
        chain.evidence(batch(sentences(1)))
    with pytest.raises(TypeError, match="there is nothing to learn"):
        chain.loss(batch(sentences(1)))


def test_only_a_stage_by_rule_has_structures_to_give() -> None:
    whole = fresh(make_config({"stages": {"mood": {"annotation": "label"}}}), {"labels": reviews(4)})
    with pytest.raises(TypeError, match="mood learns its structures; they follow from scores"):
        whole.end.given(batch(sentences(1)))
