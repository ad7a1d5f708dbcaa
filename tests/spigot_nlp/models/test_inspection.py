"""What a system might have chosen instead, and what an estimator did."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import spigot
from spigot import AbstractEstimator
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.models.inspection import Inspection, inspect
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.trace import PartTrace, SentenceTrace
from spigot_nlp.models.trace import trace_sentence as all_accounts
from spigot_nlp.stages.alternatives import head_alternatives
from spigot_nlp.stages.constraints import Constraints, Infeasible
from tests.spigot import brute
from tests.spigot_nlp.parsing import (
    batch_of,
    classifier,
    corpus,
    gradient_at_the_scores,
    of_lengths,
    parser,
    review_corpus,
    reviews,
    scores_and_loss,
    semantics,
    sentences,
    syntax,
)

DATA = review_corpus()


def varied(whole: Parser) -> Parser:
    """The same system in double precision, with parameters that give scores of all sizes and signs."""
    dice = torch.Generator().manual_seed(5)
    for parameter in whole.model.double().parameters():
        parameter.data.normal_(generator=dice)
    return whole


SYSTEM = varied(parser("spigot", DATA, semantics__pruning__learned=False))
GRAPHS = varied(classifier("spigot", DATA, semantics__pruning__learned=False, semantics__pruning__dictionary=False))
TREES = varied(classifier("ste", DATA, classifier__structure="trees", estimator__eta=0.5))


def trace_sentence(
    whole: Parser, given: Sentence, estimator: AbstractEstimator | None = None, *, top: int = 40
) -> SentenceTrace:
    """The account of the only wire."""
    (told,) = all_accounts(whole, given, estimator, top=top).values()
    return told


def heads_of(found: Inspection) -> tuple[int, ...]:
    assert found.sentence.heads is not None
    return found.sentence.heads


def test_a_word_has_all_its_heads_with_scores_and_marginals() -> None:
    given = sentences(1, seed=3)[0]
    assert len(given) <= 5
    (found,) = inspect(SYSTEM, [given], top=99)
    assert found.heads is not None
    scores, mask = syntax(SYSTEM).evidence(batch_of([given], SYSTEM))
    scores = scores.detach()
    trees = brute.trees(mask[0], projective=True, single_root=True)
    expected = brute.marginals(trees, scores[0])
    for heads in found.heads:
        (root,) = [head for head in heads if head.head == 0]  # whose score is one by which it is as likely as it is
        weights = [math.exp(head.score) for head in heads]
        assert math.exp(root.score) / sum(weights) == pytest.approx(root.marginal, rel=1e-4)
    for word, heads in enumerate(found.heads, 1):
        chosen = heads_of(found)[word - 1]
        assert sorted(head.head for head in heads) == [head for head in range(len(given) + 1) if head != word]
        for head in heads:
            if head.head:
                assert head.score == pytest.approx(float(scores[0, head.head, word]))
            if head.head and chosen:
                assert head.difference == pytest.approx(float(scores[0, head.head, word] - scores[0, chosen, word]))
            assert head.marginal == pytest.approx(float(expected[head.head, word]), abs=1e-9)
        marginals = [round(head.marginal or 0, 6) for head in heads]
        assert marginals == sorted(marginals, reverse=True)
        assert sum(head.marginal or 0 for head in heads) == pytest.approx(1)


@pytest.mark.parametrize("offset", [-150.0, 0.0, 40.0])
def test_the_root_can_be_compared_with_other_heads(offset: float) -> None:
    """Whatever training has added to all arcs from the root, where exactly one of them is in each tree."""
    trees, lengths = spigot.ProjectiveTrees(), torch.tensor([4, 1, 0])
    scores, exists = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(1)), trees.mask(lengths, 5)
    moved = scores.clone()
    moved[:, 0] += offset
    batch = SimpleNamespace(lengths=lengths, size=5)
    first, *rest = head_alternatives(trees, trees.argmax(moved, exists), moved, exists, batch, 9)  # pyright: ignore
    (root,) = [heads for heads in first if any(head.head == 0 and not head.difference for head in heads)]
    weights = {head.head: math.exp(head.score) for head in root}
    (marginal,) = [head.marginal for head in root if head.head == 0]
    assert weights[0] / sum(weights.values()) == pytest.approx(marginal, rel=1e-4)
    assert [len(heads) for one in rest for heads in one] == [1]
    assert all(abs(head.score) < 20 for one in (first, *rest) for heads in one for head in heads)


def test_heads_that_constraints_rule_out_are_listed_as_impossible() -> None:
    given = sentences(1, seed=3)[0]
    (before,) = inspect(SYSTEM, [given], top=99)
    assert before.heads is not None
    first = heads_of(before)[0]
    (after,) = inspect(SYSTEM, [given], [Constraints(not_heads=((1, first),))], top=99)
    assert after.heads is not None
    (ruled_out,) = [head for head in after.heads[0] if head.head == first]
    assert (ruled_out.marginal, after.heads[0][-1].marginal) == (0, 0)
    (as_before,) = [head for head in before.heads[0] if head.head == first]
    assert (ruled_out.score, ruled_out.relation) == (as_before.score, as_before.relation)
    assert heads_of(after)[0] != first
    (forced,) = inspect(SYSTEM, [given], [Constraints(heads=((1, first),))], top=99)
    assert forced.sentence == before.sentence
    assert forced.heads is not None
    assert (forced.heads[0][0].head, forced.heads[0][0].marginal) == (first, 1)


@pytest.mark.parametrize("top", [1, 2])
def test_the_chosen_head_is_always_listed(top: int) -> None:
    given = [sentence.without_annotation() for sentence in of_lengths([9, 8, 1, 0], seed=3)]
    for found in inspect(SYSTEM, given, top=top):
        assert found.heads is not None
        for listed, chosen in zip(found.heads, heads_of(found), strict=True):
            assert 1 <= len(listed) <= top
            assert [head.difference for head in listed if head.head == chosen] == [0]
    with pytest.raises(ValueError, match="top is 0; at least one head"):
        inspect(SYSTEM, given, top=0)


@pytest.mark.parametrize("whole", [SYSTEM, GRAPHS])
def test_arcs_have_their_scores_and_the_next_roles(whole: Parser) -> None:
    given = sentences(2, seed=6)[1]
    (found,) = inspect(whole, [given], top=2)
    graph, stage = found.sentence.graph, semantics(whole)
    roles = stage.annotation.roles
    assert graph is not None
    assert found.arcs is not None
    assert [score.arc for score in found.arcs] == [*graph.arcs, *(Arc(0, word, "TOP") for word in graph.tops)]
    assert len(graph.arcs) > 3
    batch = batch_of([given], whole)
    states = stage.encoder(batch)
    if "syntax" in whole.model.stages:
        tree = whole.model.parse(batch)["syntax"].z
        states = torch.cat((states, tree.transpose(1, 2) @ states), -1)
    for score in found.arcs:
        pair = torch.tensor([(0, *score.arc[:2])])
        worth = stage.labels.at(states, pair)[0].detach()
        own = roles.index(score.arc.role)
        assert score.score == pytest.approx(float(stage.pairs.at(states, pair).detach() + worth[own]))
        possible = [] if score.arc.predicate == 0 else [k for k in range(1, len(roles)) if k != own]
        best = sorted(possible, key=lambda k: -float(worth[k]))[:2]
        assert score.alternatives == tuple((roles[k], pytest.approx(float(worth[k] - worth[own]))) for k in best)


@pytest.mark.parametrize("whole", [SYSTEM, GRAPHS, TREES])
def test_a_batch_is_answered_as_its_sentences_are_one_by_one(whole: Parser) -> None:
    given = of_lengths([4, 9, 1, 0, 6, 3], seed=12)
    trees, graphs = "heads" in whole.finds, "graph" in whole.finds
    demands = [
        Constraints(heads=((1, 3),) if trees else (), arcs=(Arc(2, 4, "BV"),) if graphs else ()),
        None,
        Constraints(heads=((2, 1),) if trees else (), arcs=(Arc(2, 1, ""),) if graphs else ()),  # there is no word 2
        None,
        Constraints(not_heads=((5, 4), (5, 6)) if trees else (), not_arcs=(Arc(0, 3, ""),) if graphs else ()),
        Constraints(heads=((1, 2), (2, 1)) if trees else (), arcs=() if trees else (Arc(1, 2, "x"),)),
    ]
    together = inspect(whole, given, demands, errors="return")
    refused = {k: found for k, found in enumerate(together) if isinstance(found, Infeasible)}
    assert {k: error.index for k, error in refused.items()} == {2: 2, 5: 5}
    for k, found in enumerate(together):
        (alone,) = inspect(whole, [given[k]], [demands[k]], errors="return")
        if isinstance(found, Infeasible):
            assert (type(alone), str(alone)) == (Infeasible, str(found))
        else:
            assert isinstance(alone, Inspection)
            assert replace(alone.sentence, probabilities=None) == replace(found.sentence, probabilities=None)
            assert alone.sentence.probabilities == pytest.approx(found.sentence.probabilities)
            assert repr_of(alone) == repr_of(found)
    with pytest.raises(Infeasible, match="there is no word 2 in a sentence of 1 word;") as caught:
        inspect(whole, given, demands)
    assert caught.value.index == 2


def repr_of(found: Inspection) -> list[Any]:
    """All numbers, rounded, since sums in a wider batch are taken in another order."""
    heads = [
        [(head.head, round(head.score, 6), round(head.marginal or 0, 6)) for head in word] for word in found.heads or ()
    ]
    arcs = [(score.arc, round(score.score, 6), [role for role, _ in score.alternatives]) for score in found.arcs or ()]
    return [heads, arcs, found.heads is None, found.arcs is None]


def test_what_is_found_is_what_the_parser_finds_and_nothing_else() -> None:
    given = sentences(4, seed=7)
    for whole in (SYSTEM, GRAPHS, TREES, parser("neurboparser", DATA), classifier("bilstm", DATA)):
        bare = [sentence.without_annotation() for sentence in given]
        found = inspect(whole, given)  # with annotation that must not be taken for an answer
        assert [one.sentence for one in found] == list(whole.pipe(bare))
        assert {one.heads is None for one in found} == {"heads" not in whole.finds}
        assert {one.arcs is None for one in found} == {"graph" not in whole.finds}
    assert inspect(SYSTEM, []) == []
    with pytest.raises(ValueError, match="There are 1 constraints for 4 sentences; give one, or None, for each"):
        inspect(SYSTEM, given, [None])


def test_trees_that_are_given_are_shown_without_scores() -> None:
    whole = classifier("ste", DATA, classifier__structure="right")
    (found,) = inspect(whole, reviews(1))
    assert found.sentence.heads == tuple(range(len(found.sentence)))
    assert (found.heads, found.arcs) == (None, None)


def test_a_tagger_is_used_unless_the_sentences_are_tagged() -> None:
    tagged = Parser(SYSTEM.config, SYSTEM.vocab, SYSTEM.model, Tagger.train(corpus()["trees"].train))
    plain = Sentence(("The", "dog", "sees"))
    (found,) = inspect(tagged, [plain])
    assert found.sentence == next(tagged.pipe([plain]))
    assert found.sentence.lemmas == ("the", "dog", "see")
    (ready,) = inspect(tagged, [replace(plain, tags=("NN", "NN", "NN"))], tagged=True)
    assert ready == inspect(SYSTEM, [replace(plain, tags=("NN", "NN", "NN"))])[0]


def parts_of(told: SentenceTrace) -> dict[Arc, PartTrace]:
    return {part.part: part for part in told.parts}


def test_an_account_of_trees_inside_a_semantic_parser_is_eq_4_by_hand() -> None:
    given = replace(sentences(1, seed=2)[0], heads=None)
    batch, stage = batch_of([given], SYSTEM), syntax(SYSTEM)
    scores, mask, loss_of = scores_and_loss(SYSTEM.model, batch)
    z = stage.structure.argmax(scores, mask).requires_grad_()
    loss = loss_of(z)
    (grad,) = torch.autograd.grad(loss, z)
    for eta in (1.0, 0.01):
        stepped = torch.where(mask, z - eta * grad, 0)
        projected = spigot.HeadSimplex().project(stepped.detach(), mask)
        told = trace_sentence(SYSTEM, given, spigot.Spigot(eta), top=999)
        assert told.loss == pytest.approx(float(loss.detach()))
        assert told.estimator == repr(spigot.Spigot(eta))
        assert told.sentence == given
        found = parts_of(told)
        for head, word in mask[0].nonzero().tolist():
            part = found.get(Arc(head, word, ""), PartTrace(Arc(head, word, ""), 0, 0, 0, 0, 0))
            values = [float(each[0, head, word].detach()) for each in (z, grad, stepped, projected, z - projected)]
            assert [part.z, part.grad, part.stepped, part.projected, part.gradient] == pytest.approx(values)
        sizes = [abs(part.gradient) for part in told.parts]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] > 0
        assert trace_sentence(SYSTEM, given, spigot.Spigot(eta), top=3).parts == told.parts[:3]


def test_an_account_is_what_training_sends_to_the_scores() -> None:
    given = replace(reviews(1, seed=2)[0], label=1)
    for whole in (TREES, GRAPHS):
        expected = gradient_at_the_scores(whole.model, batch_of([given], whole))[0]
        told = trace_sentence(whole, given, top=9999)
        (wire,) = whole.model.all_wires()
        assert told.estimator == repr(wire.estimator)
        for part in told.parts:
            place = (part.part.predicate, part.part.argument)
            if wire.source == "semantics":
                place = (*place, ("", *semantics(whole).annotation.roles).index(part.part.role))
            assert part.gradient == pytest.approx(float(expected[place]), abs=1e-12)
        assert sum(part.gradient != 0 for part in told.parts) == int((expected != 0).sum()) > 0


def test_accounts_of_other_estimators() -> None:
    given = sentences(1, seed=2)[0]
    still = trace_sentence(SYSTEM, given, spigot.Pipeline())
    assert {part.gradient for part in still.parts} == {0}
    assert all(part.stepped == part.projected == part.z for part in still.parts)
    through = trace_sentence(SYSTEM, given, spigot.StraightThrough(0.5))
    assert all(part.gradient == pytest.approx(0.5 * part.grad) for part in through.parts)
    soft = trace_sentence(SYSTEM, given, spigot.StructuredAttention(), top=999)
    heads = [sum(part.z for part in soft.parts if part.part.argument == word) for word in range(1, len(given) + 1)]
    assert heads == pytest.approx([1] * len(given))
    noisy = trace_sentence(SYSTEM, given, spigot.IMLE(temperature=5.0))
    assert sum(part.z for part in noisy.parts) == len(given)
    with pytest.raises(TypeError, match="StructuredAttention needs marginals"):
        trace_sentence(GRAPHS, reviews(1)[0], spigot.StructuredAttention())


def test_an_account_weighs_the_loss_as_training_does() -> None:
    given = sentences(1, seed=2)[0]
    halved = replace(SYSTEM, config=SYSTEM.config.model_copy(update={
        "training": SYSTEM.config.training.model_copy(update={"end_weight": 0.25})
    }))  # fmt: skip
    whole, quarter = trace_sentence(SYSTEM, given), trace_sentence(halved, given)
    assert quarter.loss == pytest.approx(whole.loss / 4)
    assert {part.part: part.grad for part in quarter.parts if part.z} == pytest.approx(
        {part.part: part.grad / 4 for part in whole.parts if part.z}
    )


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (lambda: parser("neurboparser", DATA), sentences(1)[0], "semantics reads no structure that is learned"),
        (lambda: classifier("bilstm", DATA), reviews(1)[0], "classifier reads no structure that is learned"),
        (lambda: classifier("ste", DATA, classifier__structure="left"), reviews(1)[0], "no structure that is learned"),
        (lambda: SYSTEM, reviews(1)[0], "semantics learns from a graph, and the sentence has none"),
        (lambda: GRAPHS, sentences(1)[0], "classifier learns from a class, and the sentence has none"),
        (lambda: GRAPHS, replace(reviews(1)[0], label=7), "is 7, which training has not seen; .* are 0, 1"),
    ],
)
def test_there_is_no_account_without_structure_or_annotation(make: Any, given: Sentence, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trace_sentence(make(), given)
