"""How sure a parser is of its trees, against counting all of them."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from spigot import AbstractTrees
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemmas import annotate
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.models.inspection import head_entropy
from spigot_nlp.nn.scorers import PairScorer
from tests.spigot_nlp.parsing import batch_of, corpus, parser, sentences, syntax


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Nothing here is worth dividing."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def all_trees(length: int, structure: AbstractTrees):
    """Every tree over so many words, as arcs."""
    for heads in itertools.product(range(length + 1), repeat=length):
        z = torch.zeros(length + 1, length + 1)
        z[list(heads), list(range(1, length + 1))] = 1
        if not z.diagonal().any() and structure.contains(z, structure.mask(torch.tensor(length), length + 1)):
            yield heads, z


@pytest.mark.parametrize("trees", ["projective", "nonprojective"])
@pytest.mark.parametrize("single_root", [True, False])
def test_against_all_trees(trees, single_root):
    system = parser("ste", syntax__trees=trees, syntax__single_root=single_root)
    chosen = [replace(sentence, heads=None) for sentence in sentences(12, seed=7) if len(sentence) <= 4]
    assert len({len(sentence) for sentence in chosen}) > 1  # so that padding matters
    stage = syntax(system)
    bits, words = 0.0, 0
    for sentence in chosen:
        with torch.no_grad():
            scores, _ = stage.evidence(batch_of([sentence], system))
        shares: dict[tuple[int, int], float] = {}
        for heads, z in all_trees(len(sentence), stage.trees):
            weight = math.exp(float((scores[0] * z).sum()))
            for word, head in enumerate(heads):
                shares[word, head] = shares.get((word, head), 0.0) + weight
        total = sum(share for (word, _), share in shares.items() if word == 0)
        bits -= sum(share / total * math.log2(share / total) for share in shares.values())
        words += len(sentence)
    assert head_entropy(system, chosen) == pytest.approx(bits / words, rel=1e-5)


def test_order_and_company_do_not_matter():
    system, chosen = parser("spigot"), sentences(70, seed=1)  # more than a batch
    whole = head_entropy(system, chosen)
    assert head_entropy(system, chosen[::-1]) == pytest.approx(whole, rel=1e-6)
    alone = sum(head_entropy(system, [sentence]) * len(sentence) for sentence in chosen)
    assert whole == pytest.approx(alone / sum(map(len, chosen)), rel=1e-5)


def test_a_sure_parser():
    """Large scores leave one tree; equal ones leave every head alike where any is possible."""
    system, chosen = parser("spigot", syntax__trees="nonprojective", syntax__single_root=False), sentences(5)
    stage = syntax(system)
    assert isinstance(stage.scorer, PairScorer)
    with torch.no_grad():
        stage.scorer.out.weight.zero_()
        assert 0.5 < head_entropy(system, chosen) < math.log2(max(map(len, chosen)))
        torch.manual_seed(0)
        stage.scorer.out.weight.normal_(std=1e4)
    assert head_entropy(system, chosen) < 0.05


def test_gold_annotation_is_not_looked_at():
    system, chosen = parser("spigot"), sentences(4)
    plain = [sentence.without_annotation() for sentence in chosen]
    assert head_entropy(system, chosen) == head_entropy(system, plain)


def test_tags_come_from_the_tagger():
    data = corpus()
    system = replace(parser("spigot", data), tagger=Tagger.train(data["trees"].train))
    bare = [Sentence(sentence.forms) for sentence in sentences(4)]
    assert system.tagger is not None
    tagged = list(annotate(bare, system.tagger))
    assert head_entropy(system, bare) == head_entropy(system, tagged, tagged=True)
    assert head_entropy(system, bare) != head_entropy(system, bare, tagged=True)


def test_nothing_to_be_sure_of():
    system = parser("spigot")
    assert head_entropy(system, []) == head_entropy(system, [Sentence(())]) == 0
    with pytest.raises(ValueError, match="no syntactic parser"):
        head_entropy(parser("neurboparser"), sentences(1))
