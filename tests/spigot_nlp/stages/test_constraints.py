"""Decoding under constraints: against all structures that meet them, one by one."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot_nlp.batches import encode
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.models.inspection import inspect
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import Answer
from spigot_nlp.stages.constraints import Constraints, Infeasible
from spigot_nlp.stages.graphs import GraphLimits
from spigot_nlp.stages.stage import Evidence
from tests.spigot import brute
from tests.spigot_nlp.parsing import (
    batch_of,
    classes,
    classifier,
    parser,
    review_corpus,
    semantics,
    sentences,
    structures_read,
    syntax,
)

ROLES = ("TOP", "ARG1", "ARG2")


def two_roles() -> Corpus:
    """ARG1 once for each predicate, ARG2 and tops any number of times."""
    words = ("cat", "sees", "dog", "river")
    given = Sentence(words, tags=("NN", "VBZ", "NN", "NN"), heads=(2, 0, 2, 2))
    graph = Graph.of([Arc(2, 1, "ARG1"), Arc(2, 3, "ARG2"), Arc(2, 4, "ARG2")], tops=[2, 3])
    trees, graphs = given, Sentence(words, tags=given.tags, graph=graph)
    return Corpus({"trees": Split([trees], [trees]), "graphs": Split([graphs], [graphs])})


DATA = two_roles()
ANYTHING: dict[str, Any] = {f"semantics__pruning__{name}": False for name in ("learned", "dictionary", "distance")}


def small(system: str = "spigot", **overrides: Any) -> Parser:
    """A parser of all trees and graphs over two roles, with parameters that give scores of all sizes and signs."""
    made = parser(system, DATA, **{**ANYTHING, **overrides})
    dice = torch.Generator().manual_seed(3)
    for parameter in made.model.double().parameters():
        parameter.data.normal_(generator=dice)
    return made


def answer_to(whole: Parser, given: list[Sentence], constraints: list[Constraints | None]) -> dict[str, Answer]:
    """What each stage says."""
    batch = batch_of([sentence.without_annotation() for sentence in given], whole)
    return whole.model.parse(batch, whole.model.limits(constraints, batch.lengths.tolist(), batch.size))


def evidence_of(answer: Answer) -> Evidence:
    assert answer.evidence is not None
    return answer.evidence


def of_words(count: int) -> Sentence:
    forms, tags = ("sees", "cat", "dog", "river"), ("VBZ", "NN", "NN", "NN")
    return Sentence(forms[:count], lemmas=forms[:count], tags=tags[:count])


def meets_tree(z: Tensor, demands: Constraints) -> bool:
    wanted = all(z[head, word] == 1 for word, head in demands.heads)
    return wanted and all(z[head, word] == 0 for word, head in demands.not_heads)


def meeting_graphs(listed: Tensor, demands: Constraints) -> Tensor:
    """Which of the graphs meet the constraints."""
    fit = torch.ones(len(listed), dtype=torch.bool)
    for arcs, wanted in ((demands.arcs, 1), (demands.not_arcs, 0)):
        for arc in arcs:
            fit &= listed[:, arc.predicate, arc.argument, 1 + ROLES.index(arc.role) if arc.role else 0] == wanted
    return fit


def experienced(whole: Parser, data: Corpus) -> Parser:
    """A parser that has seen which roles stand between which tags, as training begins with."""
    train = [encode(sentence, whole.vocab, whole.model.annotations) for sentence in data["graphs"].train]
    semantics(whole).prepare(train)
    return whole


def pairs_of(count: int, *, root: bool) -> list[tuple[int, int]]:
    """(word, head) for all words."""
    return [(word, head) for word in range(1, count + 1) for head in range(not root, count + 1) if word != head]


def tree_demands(seed: int) -> Iterator[tuple[int, Constraints]]:
    """Sentence lengths, and constraints that do not contradict each other word by word."""
    dice = random.Random(seed)
    yield 1, Constraints(not_heads=((1, 0),))
    yield 3, Constraints(heads=((1, 2), (2, 3), (3, 1)))
    for _ in range(24):
        length = dice.randint(1, 4)
        chosen = dice.sample(range(1, length + 1), dice.randint(0, min(2, length)))
        heads = {word: dice.choice([h for h in range(length + 1) if h != word]) for word in chosen}
        free = [pair for pair in pairs_of(length, root=True) if heads.get(pair[0]) != pair[1]]
        not_heads = dice.sample(free, min(dice.randint(0, 4), len(free)))
        yield length, Constraints(tuple(heads.items()), tuple(not_heads))


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("trees", ["projective", "nonprojective"])
@pytest.mark.parametrize("pruned", [False, True])
def test_trees_are_the_best_of_those_that_meet_the_constraints(trees: str, single_root: bool, pruned: bool) -> None:
    pruning = {"syntax__pruning__learned": pruned, "syntax__pruning__top_heads": 1}
    whole = small(syntax__trees=trees, syntax__single_root=single_root, **pruning)
    structure = syntax(whole).structure
    feasible = 0
    for length, demands in tree_demands(seed=len(trees)):
        everything = structure.mask(torch.tensor([length]))[0]
        listed = brute.trees(everything, projective=trees == "projective", single_root=single_root)
        fit = [z for z in listed if meets_tree(z, demands)]
        if not fit:
            with pytest.raises(Infeasible, match=r"No .*tree.* meets these constraints together: word") as caught:
                answer_to(whole, [of_words(4), of_words(length)], [None, demands])
            assert caught.value.index == 1
            continue
        feasible += 1
        answer = answer_to(whole, [of_words(length)], [demands])["syntax"]
        if pruned:
            assert meets_tree(answer.z[0], demands)
            continue
        fitting, (scores, mask) = torch.stack(fit), evidence_of(answer)
        assert torch.equal(answer.z[0], fitting[brute.values(fitting, scores[0]).argmax()])
        marginals = structure.marginals(scores, mask)
        torch.testing.assert_close(marginals[0], brute.marginals(fitting, scores[0]))
    assert 10 < feasible < 26


def graph_demands(seed: int) -> Iterator[Constraints]:
    """Constraints on graphs over three words that do not contradict each other arc by arc."""
    dice = random.Random(seed)
    for _ in range(40):
        pairs = dice.sample([(head, word) for word, head in pairs_of(3, root=True)], dice.randint(1, 5))
        arcs, not_arcs = [], []
        for head, word in pairs:
            arc = Arc(head, word, "TOP" if head == 0 else dice.choice(("", "ARG1", "ARG2", "ARG1")))
            (arcs if dice.random() < 0.6 else not_arcs).append(arc)
            if arc.role == "" and arcs and arcs[-1] == arc and dice.random() < 0.3:
                not_arcs.append(Arc(head, word, "ARG2"))
        yield Constraints(arcs=tuple(arcs), not_arcs=tuple(not_arcs))


@pytest.mark.parametrize("determinism", [True, False])
def test_graphs_are_the_best_of_those_that_meet_the_constraints(determinism: bool) -> None:
    whole = small("neurboparser", semantics__determinism=determinism)
    structure = semantics(whole).structure
    assert semantics(whole).annotation.roles == ROLES
    assert structure.deterministic == ((1,) if determinism else ())
    sentence = of_words(3)
    plain = evidence_of(answer_to(whole, [sentence], [None])["semantics"])
    listed = brute.graphs(plain.mask[0], structure.deterministic)
    worth = brute.values(listed, plain.scores[0])
    assert 2 < listed[worth.argmax()][1:, 1:, 0].sum() < 7  # there is something to force, and something to forbid
    feasible = 0
    for demands in graph_demands(seed=2):
        fit = meeting_graphs(listed, demands)
        if not fit.any():
            with pytest.raises(Infeasible, match=r"No graph meets .* once at most: ARG1\)"):
                answer_to(whole, [sentence], [demands])
            continue
        feasible += 1
        answer = answer_to(whole, [sentence], [demands])["semantics"]
        assert torch.equal(answer.z[0], listed[worth.masked_fill(~fit, -torch.inf).argmax()])
        assert torch.equal(evidence_of(answer).scores, plain.scores)  # what is shown are the parser's own
    assert feasible == 40 if not determinism else 25 < feasible < 40


@pytest.mark.parametrize("system", ["neurboparser", "pipeline", "attention", "spigot", "sparsemap", "perturbed"])
def test_to_force_what_is_chosen_and_forbid_what_is_not_changes_nothing(system: str) -> None:
    whole = parser(system, review_corpus())  # with all pruning
    whole.model.double()
    given = sentences(3, seed=8)
    before = [found.sentence for found in inspect(whole, given)]
    demands = []
    for found in before:
        assert found.graph is not None
        heads = tuple(enumerate(found.heads or (), 1))
        chosen = (*found.graph.arcs, *(Arc(0, word, "") for word in found.graph.tops))
        absent = set(pairs_of(len(found), root=True)) - {(arc.argument, arc.predicate) for arc in chosen}
        not_heads = [
            (word, head) for word, head in pairs_of(len(found), root=True) if found.heads and (word, head) not in heads
        ]
        demands.append(Constraints(heads, tuple(not_heads), chosen, tuple(Arc(h, w, "") for w, h in absent)))
    if all(wire.estimator.hard for wire in whole.model.all_wires()):
        assert [found.sentence for found in inspect(whole, given, demands)] == before
    # Constraints on the tree change what a soft end model reads, not the tree; those on the graph can still be met.
    after = inspect(whole, given, demands)
    assert [(found.sentence.heads, found.sentence.graph) for found in after] == [(s.heads, s.graph) for s in before]


def test_forced_arcs_survive_every_pruning_and_take_a_role_that_training_has_seen() -> None:
    whole = experienced(parser("spigot", DATA), DATA)
    sentence = Sentence(("cat", "sees", "dog"), lemmas=("cat", "see", "dog"), tags=("NN", "VBZ", "NN"))
    never = Arc(1, 3, "ARG1")
    (found,) = inspect(whole, [sentence], [Constraints(arcs=(never, Arc(2, 1, ""), Arc(0, 3, "TOP")))])
    assert found.sentence.graph is not None
    assert never in found.sentence.graph.arcs
    assert 1 in found.sentence.graph.predicates
    assert 3 in found.sentence.graph.tops
    assert any(arc[:2] == (2, 1) for arc in found.sentence.graph.arcs)
    (left,) = inspect(whole, [sentence], [Constraints(arcs=(Arc(2, 1, ""),))])
    assert left.arcs is not None
    assert not any(score.arc[:2] == (1, 3) for score in left.arcs)  # it is not there unless forced


def test_roles_that_training_has_not_seen_are_taken_where_the_others_do_not_suffice() -> None:
    verb = Sentence(("cat", "sees"), tags=("NN", "VBZ"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
    other = Graph.of([Arc(1, 2, "ARG2"), Arc(1, 3, "ARG2")], tops=[3])
    article = Sentence(("the", "dog", "sees"), tags=("DT", "NN", "VBZ"), graph=other)
    data = Corpus({**DATA.sets, "graphs": Split([verb, article], [verb])})
    whole = experienced(parser("neurboparser", data), data)
    both = Sentence(("cat", "dog", "sees"), lemmas=("cat", "dog", "see"), tags=("NN", "NN", "VBZ"))
    (found,) = inspect(whole, [both], [Constraints(arcs=(Arc(3, 1, ""), Arc(3, 2, "")))])
    assert found.sentence.graph is not None
    roles = {arc.argument: arc.role for arc in found.sentence.graph.arcs if arc.predicate == 3}
    assert sorted(roles.values()) == ["ARG1", "ARG2"]  # the verb was seen with ARG1 only, and has it once


def test_the_semantic_parser_reads_the_constrained_tree() -> None:
    whole, sentence = small(), of_words(4)
    chain = Constraints(heads=((1, 0), (2, 1), (3, 2), (4, 3)))
    star = Constraints(heads=((1, 4), (2, 4), (3, 4), (4, 0)))
    answers = [evidence_of(answer_to(whole, [sentence], [demands])["semantics"]) for demands in (chain, star)]
    batch = batch_of([sentence], whole)
    for answer, heads in zip(answers, ((0, 1, 2, 3), (4, 4, 4, 0)), strict=True):
        z = torch.zeros(1, 5, 5, dtype=torch.float64)
        z[0, list(heads), range(1, 5)] = 1
        torch.testing.assert_close(answer.scores, semantics(whole).evidence(batch, [z]).scores)
    assert not torch.equal(answers[0].scores, answers[1].scores)


def test_attention_reads_marginals_of_the_trees_that_meet_the_constraints() -> None:
    whole, sentence = small("attention"), of_words(3)
    demands = Constraints(heads=((1, 3),), not_heads=((2, 0),))
    answer = evidence_of(answer_to(whole, [sentence], [demands])["semantics"])
    batch = batch_of([sentence], whole)
    scores, mask = syntax(whole).evidence(batch)
    listed = brute.trees(mask[0], projective=True, single_root=True)
    fit = torch.stack([z for z in listed if meets_tree(z, demands)])
    expected = semantics(whole).evidence(batch, [brute.marginals(fit, scores[0]).unsqueeze(0)])
    torch.testing.assert_close(answer.scores, expected.scores)


@pytest.mark.parametrize(
    ("system", "overrides"),
    [
        ("spigot", {}),
        ("attention", {"semantics__determinism": False}),
        ("sparsemap", {}),
        ("perturbed", {"estimator__samples": 5}),
        ("ste", {"classifier__latent": True, "classifier__roles": 2}),
    ],
)
def test_a_classifier_reads_the_constrained_graph(
    system: str, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = classifier(system, review_corpus(), **overrides)
    whole.model.double()
    model, stage, given = whole.model, semantics(whole), sentences(1, seed=11)[0]
    plain = answer_to(whole, [given], [None])
    graph = plain["semantics"].z
    head, word, role = next(place for place in (graph[0, 1:, 1:, 2:] == 0).nonzero().tolist() if place[0] != place[1])
    demands = Constraints(arcs=(Arc(head + 1, word + 1, stage.annotation.roles[role + 1]),))
    all_read = structures_read(model, monkeypatch)
    forced = answer_to(whole, [given], [demands])
    assert forced["semantics"].z[0, head + 1, word + 1, role + 2] == 1
    (read,) = all_read
    assert read[0, head + 1, word + 1, role + 2] > 1 - 1e-6
    batch = batch_of([given.without_annotation()], whole)
    if system != "perturbed":  # whose noise follows the scores to the last bit
        limits = (model.limits([demands], [len(given)], len(given) + 1) or {})["semantics"]
        assert isinstance(limits, GraphLimits)
        scores, mask = limits.decide(*stage.evidence(batch, limits=limits), stage.structure)
        (wire,) = model.all_wires()
        torch.testing.assert_close(spigot.argmax(scores, stage.structure, wire.estimator, mask=mask), read)
    expected = classes(whole).evidence(batch, [read]).scores.detach()
    torch.testing.assert_close(evidence_of(forced["classifier"]).scores, expected)
    assert not torch.allclose(evidence_of(plain["classifier"]).scores, expected, atol=1e-9)


def test_a_classifier_reads_the_constrained_tree() -> None:
    whole = classifier("spigot", review_corpus(), classifier__structure="trees")
    given = sentences(1, seed=11)[0]
    chain = Constraints(heads=tuple((word, word - 1) for word in range(1, len(given) + 1)))
    answer = answer_to(whole, [given], [chain])
    right = classifier("spigot", review_corpus(), classifier__structure="right")
    classes(right).load_state_dict(classes(whole).state_dict())
    other = answer_to(right, [given], [None])
    torch.testing.assert_close(*(evidence_of(found["classifier"]).scores for found in (answer, other)))


@pytest.mark.parametrize(
    ("make", "demands", "message"),
    [
        (lambda: parser("neurboparser", DATA), Constraints(heads=((1, 2),)), "does not search for trees.*: word 1 has"),
        (lambda: classifier("bilstm"), Constraints(not_heads=((1, 2),)), "does not search for trees"),
        (lambda: classifier("bilstm"), Constraints(arcs=(Arc(1, 2, ""),)), "does not search for graphs.*: an arc 1 ->"),
        (lambda: classifier("ste", classifier__structure="left"), Constraints(heads=((1, 2),)), "search for trees"),
        (lambda: classifier("ste", classifier__structure="trees"), Constraints(not_arcs=(Arc(1, 2, ""),)), "graphs"),
        (lambda: classifier("ste"), Constraints(heads=((1, 2),)), "does not search for trees"),
    ],
)
def test_a_system_refuses_constraints_on_what_it_does_not_search_for(
    make: Any, demands: Constraints, message: str
) -> None:
    whole = make()
    with pytest.raises(Infeasible, match=message) as caught:
        inspect(whole, sentences(2), [None, demands])
    assert caught.value.index == 1


def test_an_arc_whose_roles_are_all_forbidden_cannot_be_forced() -> None:
    demands = Constraints(arcs=(Arc(2, 1, ""),), not_arcs=(Arc(2, 1, "ARG1"), Arc(2, 1, "ARG2")))
    with pytest.raises(
        Infeasible, match="No graph meets these constraints together: an arc 2 -> 1, no arc 2 -> 1 with"
    ):
        answer_to(small("neurboparser"), [of_words(3)], [demands])


def test_worse_heads_are_kept_where_only_they_can_meet_the_constraints() -> None:
    whole = small(syntax__pruning__learned=True, syntax__pruning__top_heads=1)
    for heads in itertools.product(range(4), repeat=3):
        listed = brute.trees(torch.ones(4, 4, dtype=torch.bool), projective=True, single_root=True)
        demands = Constraints(heads=tuple((word, head) for word, head in enumerate(heads, 1) if word != head))
        if len(demands.heads) == 3 and any(meets_tree(z, demands) for z in listed):
            (found,) = inspect(whole, [of_words(3)], [demands])
            assert found.sentence.heads == heads


def test_nothing_is_demanded() -> None:
    whole, given = small(), [of_words(3), of_words(1)]
    assert whole.model.limits([None, Constraints()], [3, 1], 4) is None
    assert inspect(whole, given, [Constraints(), None]) == inspect(whole, given)
