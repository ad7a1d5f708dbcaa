"""An encoder that reads the vectors of another one, and leaves them alone."""

import pytest
import torch

from spigot import kernels
from spigot_nlp.config import make_config
from spigot_nlp.encoders import AbstractEncoder, BranchEncoder
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from tests.spigot_nlp.parsing import batch_of, corpus

DATA = corpus(train=6, dev=2)
WORDS = {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8, "character_dim": 6}


def branching(of: str = "words", over: str = "vectors") -> Parser:
    stages = {
        "syntax": {"annotation": "trees", "encoder": "words", "mlp": 8},
        "semantics": {
            "annotation": "graphs",
            "encoder": {"kind": "branch", "of": of, "over": over, "hidden": 6},
            "mlp": 8,
            "pruning": {"learned": False},
        },
    }
    config = {"encoders": {"words": {"encoder": WORDS}}, "stages": stages, "data": {"tags": "columns"}}
    return fresh(make_config(config), DATA.train)


def test_nothing_goes_back_to_the_vectors() -> None:
    parser = branching()
    parser.model.loss(batch_of(DATA["graphs"].train, parser), "semantics").sum().backward()
    assert all(value.grad is None for value in parser.model.encoders["words"].parameters())
    branch = parser.model.stages["semantics"].encoder
    assert isinstance(branch, BranchEncoder)
    assert all(value.grad is not None for value in branch.parameters())
    assert not {id(p) for p in branch.parameters()} & {id(p) for p in parser.model.encoders["words"].parameters()}


def test_it_sees_what_its_trunk_sees() -> None:
    parser = branching()
    batch = batch_of(DATA["graphs"].dev, parser)
    branch, trunk = parser.model.stages["semantics"].encoder, parser.model.encoders["words"]
    before = branch(batch)
    with torch.no_grad():
        for value in trunk.lstm.parameters():  # pyright: ignore
            value.zero_()
    assert torch.equal(branch(batch), before)  # not the trunk's states
    with torch.no_grad():
        trunk.embedding.tables[0].weight.zero_()  # pyright: ignore
    assert not torch.equal(branch(batch), before)  # but its vectors


@pytest.mark.skipif(not kernels.available, reason="needs the kernels")
def test_in_whole_numbers_it_reads_each_distinct_word_once() -> None:
    parser = branching()
    parser.model.compute_in("int16")
    batch = batch_of(DATA["graphs"].dev, parser).keeping()
    branch, trunk = parser.model.stages["semantics"].encoder, parser.model.encoders["words"]
    assert isinstance(branch, BranchEncoder)
    with torch.no_grad():
        inputs, place = trunk.distinct_inputs(batch)
        assert len(inputs) < place.numel()
        assert trunk.distinct_inputs(batch)[0] is inputs
        torch.testing.assert_close(inputs[place], trunk.inputs_of(batch), atol=1e-5, rtol=1e-5)
        word_by_word = branch.lstm.read(*AbstractEncoder.distinct_inputs(trunk, batch), batch.lengths + 2)[:, :-1]
        torch.testing.assert_close(branch(batch), word_by_word, atol=1e-3, rtol=0)


def test_a_trunk_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"no encoders\.letters that an encoder could be a branch of; there are words"):
        branching("letters")


def test_shared_encoders_and_those_of_pruners_cannot_be_branches() -> None:
    branch = {"kind": "branch", "of": "words", "hidden": 4}
    shared = {"words": {"encoder": WORDS}, "b": {"encoder": branch}}
    graphs = {"annotation": "graphs", "encoder": "words", "pruning": {"encoder": branch}}
    for encoders, stage in (
        (shared, {"annotation": "trees", "encoder": "b"}),
        ({"words": shared["words"]}, graphs),
    ):
        config = make_config({"encoders": encoders, "stages": {"one": stage}, "data": {"tags": "columns"}})
        with pytest.raises(
            ValueError,
            match=r"^an encoder of the kind 'branch' reads encoders\.words, which only one of a stage may, and not a "
            r"shared one or a pruner's; write it as `encoder` of a stage, or choose another kind\.$",
        ):
            fresh(config, DATA.train)


def test_over_states_it_is_a_layer_more_and_trains_what_is_below() -> None:
    parser = branching(over="states")
    parser.model.loss(batch_of(DATA["graphs"].train, parser, list(range(6))), "semantics").sum().backward()
    assert all(value.grad is not None for value in parser.model.encoders["words"].lstm.parameters())  # pyright: ignore
    assert parser.model.updated("semantics") == ["semantics", "encoders.words"]
    states = parser.model.encoders["words"].states(batch := batch_of(DATA["graphs"].dev, parser), noisy=False)
    branch = parser.model.stages["semantics"].encoder
    assert isinstance(branch, BranchEncoder)
    assert torch.equal(branch(batch, noisy=False), branch.lstm(states, batch.lengths + 1))
