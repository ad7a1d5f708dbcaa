"""Two processes do what one does."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import start_processes

from spigot_nlp.training.distributed import anyone, is_main, processes, rank, share, sum_gradients, total, wait
from spigot_nlp.training.start import build
from tests.spigot_nlp.parsing import classifier, experiment, review_corpus
from tests.spigot_nlp.processes import QUICK
from tests.spigot_nlp.training.stages import shared_encoder, three_stages
from tests.spigot_nlp.training.trainings import Training

GROUPS = [[5, 6, 7], [3], [1, 2]]  # the second leaves nothing for the other process

SHORT: dict[str, Any] = {"training__batch": 3, "training__epochs": 1}


class Small(nn.Module):
    """A table, a layer, and a layer that is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 3, sparse=True)
        self.layer = nn.Linear(3, 1)
        self.idle = nn.Linear(2, 2)


def gradients() -> list[list[torch.Tensor | None]]:
    """Of the sum over each group's members, whoever computes them."""
    found = []
    for group in GROUPS:
        torch.manual_seed(0)
        model = Small().double()
        mine = share(group)
        if mine:
            model.layer(model.table(torch.tensor([[k, 2 * k % 9] for k in mine]))).square().sum().backward()
        sum_gradients(list(model.parameters()))
        found.append([None if p.grad is None else p.grad.to_dense() for p in model.parameters()])
    return found


def trained() -> list[torch.Tensor]:
    """A few steps of joint trainings in float64; batches of three out of four leave one of one sentence."""
    found: list[torch.Tensor] = []
    data = review_corpus(train=4, dev=2)
    for config in (
        experiment("spigot", **SHORT, semantics__pruning__learned=False, syntax__pruning__learned=True),
        three_stages(**SHORT),
        shared_encoder(**SHORT),
    ):
        system = build(config, data)
        system.model.double()
        losses = [step.loss for step in Training(system, data).steps()]
        found += [torch.tensor(losses, dtype=torch.float64), *system.model.state_dict().values()]
    return found


def trained_classifiers() -> list[torch.Tensor]:
    """The same for joint and latent trainings of a classifier."""
    found: list[torch.Tensor] = []
    data = review_corpus(train=4, dev=2)
    latent_trees: dict[str, Any] = {"classifier__latent": True, "classifier__structure": "trees"}
    for settings in ({"training__share": 0.5, "semantics__pruning__learned": False}, latent_trees):
        system = classifier("spigot", data, training__batch=3, training__epochs=2, **settings)
        system.model.double()
        losses = [step.loss for step in Training(system, data).steps()]
        found += [torch.tensor(losses, dtype=torch.float64), *system.model.state_dict().values()]
    return found


def worker(number: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=2)
    try:
        assert (rank(), is_main()) == (number, number == 0)
        assert total(number + 0.5) == 2.0
        assert anyone(number == 1)
        assert not anyone(False)
        with processes():  # joined already
            wait()
        torch.save((gradients(), [*trained(), *trained_classifiers()]), Path(folder) / f"{number}.pt")
    finally:
        dist.destroy_process_group()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[tuple]:
    folder = tmp_path_factory.mktemp("processes")
    start_processes(worker, (str(folder),), nprocs=2, start_method=QUICK)
    return [torch.load(folder / f"{number}.pt") for number in (0, 1)]


@pytest.mark.slow
def test_gradients_are_summed_also_where_one_process_has_none(both: list[tuple]) -> None:
    expected = gradients()
    for found, _ in both:
        for group, wanted in zip(found, expected, strict=True):
            for one, other in zip(group, wanted, strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    torch.testing.assert_close(one, other)


@pytest.mark.slow
def test_two_processes_train_the_models_that_one_does(both: list[tuple]) -> None:
    expected = [*trained(), *trained_classifiers()]
    for _, found in both:
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)
    for one, other in zip(both[0][1], both[1][1], strict=True):
        assert torch.equal(one, other)  # and the two are the same to the last bit


def test_one_process_is_the_main_one_and_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with processes():
        assert not dist.is_initialized()
        assert is_main()
        assert share([3, 1, 2]) == [3, 1, 2]
        assert total(1.5) == 1.5
        assert anyone(True)
        assert not anyone(False)
        wait()
    assert "WORLD_SIZE" not in os.environ


def test_sparse_gradients_list_each_row_once() -> None:
    table = nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([3, 1, 3])).sum().backward()
    sum_gradients(list(table.parameters()))
    assert table.weight.grad is not None
    assert table.weight.grad.is_coalesced()
    assert table.weight.grad.indices().tolist() == [[1, 3]]
