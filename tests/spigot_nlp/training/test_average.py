"""Running means of parameters: their formula, and what a training does with them."""

import pytest
import torch
from torch import nn

from spigot_nlp.training.average import RunningMean
from tests.spigot_nlp.parsing import corpus, experiment, parser
from tests.spigot_nlp.training.trainings import Training, check_resumes

DATA = corpus(train=8, dev=3)


def trainer(average: float) -> Training:
    return Training(parser("spigot", DATA, training__average=average, training__epochs=2), DATA)


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.999])
def test_the_mean_is_that_of_its_formula(decay: float) -> None:
    torch.manual_seed(2)
    model = nn.Linear(3, 2).double()
    mean, expected = RunningMean(model, decay), torch.zeros(2, 3).double()
    for n in range(30):
        model.weight.data = torch.randn(2, 3).double()
        mean.update()
        keep = min(decay, n / (n + 10))
        expected = keep * expected + (1 - keep) * model.weight.detach()
    now = model.weight.detach().clone()
    with mean.in_place():
        torch.testing.assert_close(model.weight.detach(), expected)
    assert torch.equal(model.weight, now)


def test_parameters_come_back_whatever_happens() -> None:
    model = nn.Linear(1, 1)
    mean = RunningMean(model, 0.9)
    mean.update()
    model.weight.data.fill_(7.0)
    with pytest.raises(RuntimeError), mean.in_place():
        raise RuntimeError
    assert model.weight.tolist() == [[7.0]]


def test_training_goes_on_from_the_parameters_and_keeps_the_mean() -> None:
    plain, averaged = trainer(0.0), trainer(0.9)
    for one, other in zip(plain.steps(), averaged.steps(), strict=True):
        assert one.loss == other.loss  # the mean does not lead the way
    raw, best = plain.parser.model.state_dict(), averaged.parser.model.state_dict()
    assert not all(torch.equal(raw[name], value) for name, value in best.items())


def test_an_interrupted_training_has_the_same_mean() -> None:
    check_resumes(experiment(training__average=0.9), DATA, every=3)
