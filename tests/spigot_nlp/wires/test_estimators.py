"""Estimators as tables: their options are the fields of the class that they build."""

import dataclasses
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

import spigot
from spigot import ESTIMATORS, AbstractSurrogate
from spigot.estimators.surrogate import explanation
from spigot_nlp.config import make_config, systems
from spigot_nlp.models.trace import trace_sentence
from spigot_nlp.wires import EstimatorSettings, WireSettings, build_estimator, estimator_settings
from spigot_nlp.wires.estimators import settings_class
from tests.spigot_nlp.parsing import batch_of, corpus, gradient_at_the_scores, parser, scores_and_loss


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_options_are_the_fields_of_the_class(name: str) -> None:
    kind: Any = ESTIMATORS[name]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    known = settings_class(name).model_fields
    assert set(known) == {"name", *fields} - {"seed"}  # an experiment has one
    for option, field in fields.items():
        if option not in ("seed", "polytope"):
            assert known[option].default == field.default
    settings = estimator_settings(name)
    assert settings.name == name
    made = build_estimator(settings, None, seed=3)
    assert made == kind(**({"seed": 3} if "seed" in fields else {}))
    assert estimator_settings(settings.model_dump()) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_the_way_to_project_is_a_name() -> None:
    trees = spigot.ProjectiveTrees()
    for polytope, expected in (
        ("relaxation", None),
        ("hull", spigot.ConvexHull(trees)),
        ("sequential", spigot.ArcLabel(sequential=True)),
    ):
        settings = estimator_settings({"name": "spigot", "polytope": polytope})
        assert build_estimator(settings, trees) == spigot.Spigot(polytope=expected)
    with pytest.raises(ValueError, match="polytope"):
        estimator_settings({"name": "spigot", "polytope": "box"})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("sponge", "there is no estimator 'sponge'; there are "),
        ({"name": "spigott"}, "there is no estimator 'spigott'; did you mean spigot?"),
        ({"eta": 1.0}, "an estimator is its name, or a table with its name and options, not"),
        (3, "an estimator is its name, or a table with its name and options, not 3"),
        ({"name": "spigot", "etta": 1.0}, "etta"),
        ({"name": "spigot", "strength": 1.0}, "strength"),  # of another estimator
        ({"name": "imle", "seed": 1}, "seed"),  # an experiment has one
        ({"name": "attention", "eta": 1.0}, "eta"),
        ({"name": "spigot", "eta": -1.0}, "eta is -1.0; it must be a finite number, zero or more"),
        ({"name": "ste", "max_norm": 0.0}, "max_norm is 0.0; it must be a positive number, or None"),
        ({"name": "spigot", "eta": "much"}, "eta"),
        ({"name": "spigot", "eta": float("nan")}, "eta"),
        ({"name": "blackbox", "strength": -2.0}, "strength"),
        ({"name": "perturbed", "samples": 0}, "samples"),
    ],
)
def test_what_no_estimator_has_is_refused(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)" + message.replace("?", r"\?")):
        estimator_settings(table)


def test_a_wire_is_a_pipeline_or_lets_gradients_through() -> None:
    frozen = {
        name: WireSettings.model_validate({"stage": "syntax", "as": "heads", "estimator": name}).is_frozen
        for name in ESTIMATORS
    }
    assert [name for name, is_frozen in frozen.items() if is_frozen] == ["pipeline"]
    assert WireSettings.model_validate({"stage": "syntax", "as": "heads"}).estimator.name == "spigot"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"as": "heads"}, "stage"),
        ({"stage": "syntax"}, "as"),
        ({"stage": "syntax", "as": "heads", "through": True}, "through"),
        ({"stage": "syntax", "as": "hats"}, "there is no reader 'hats'"),
        ({"stage": "syntax", "as": "heads", "estimator": {"name": "ste", "strength": 1.0}}, "strength"),
    ],
)
def test_a_wire_refuses_what_it_does_not_know(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WireSettings.model_validate(table)


@pytest.fixture
def halfway(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """An estimator of a user, known for the length of a test."""
    monkeypatch.setattr(ESTIMATORS, "_kinds", dict(ESTIMATORS))

    @ESTIMATORS.register("halfway")
    @dataclass(frozen=True)
    class Halfway(AbstractSurrogate):
        """A share of the gradient."""

        share: float = 0.5
        hard: ClassVar[bool] = True

        def __post_init__(self) -> None:
            if not 0 <= self.share <= 1:
                raise ValueError(f"share is {self.share}; it must be from 0 to 1.")

        def pullback(self, structure: Any, scores: Any, z: Any, saved: Any, grad: Any, mask: Any) -> torch.Tensor:
            return self.share * grad

        def explain(self, structure: Any, scores: Any, grad: Any, mask: Any = None) -> spigot.Explanation:
            z = structure.argmax(scores, mask)
            return explanation(z, grad, self.share * grad, structure.event_ndim)

    yield Halfway
    settings_class.cache_clear()


def test_a_new_estimator_needs_no_second_list(halfway: type) -> None:
    settings = estimator_settings({"name": "halfway", "share": 0.25})
    assert isinstance(settings, EstimatorSettings)
    assert build_estimator(settings, None) == halfway(0.25)
    for table in ({"name": "halfway", "share": 2.0}, {"name": "halfway", "eta": 1.0}):
        with pytest.raises(ValueError, match=r"share|eta"):
            estimator_settings(table)
    assert "halfway" in systems("parsing")
    config = make_config({"system": "halfway", "estimator": {"share": 0.75}})
    assert [build_estimator(wire.estimator, None) for _, wire in config.wires] == [halfway(0.75)]
    with pytest.raises(ValueError, match=r"share is 3\.0; it must be from 0 to 1"):
        make_config({"system": "halfway", "estimator": {"share": 3.0}})


def test_a_new_estimator_trains_what_is_read_through_it(halfway: type) -> None:
    data = corpus()
    whole = parser("halfway", data, estimator__share=0.25)
    whole.model.double()
    batch = batch_of(data["graphs"].train[:3], whole, [1, 2, 3])
    scores, mask, loss = scores_and_loss(whole.model, batch)
    z = whole.model.stages["syntax"].structure.argmax(scores, mask).detach().requires_grad_()
    loss(z).backward()
    assert z.grad is not None
    whole.model.zero_grad()
    found = gradient_at_the_scores(whole.model, batch)
    torch.testing.assert_close(found, 0.25 * z.grad.masked_fill(~mask, 0))
    assert found.any()


def test_what_an_estimator_remembers_is_kept_with_the_system() -> None:
    data = corpus()
    whole = parser("adaptive-imle", data, estimator__rate=0.5)
    kept = {name for name in whole.model.state_dict() if name.startswith("_layers")}
    assert kept == {"_layers.syntax -> semantics.beta", "_layers.syntax -> semantics.average"}
    assert not any(name.startswith("_layers") for name in parser("imle", data).model.state_dict())
    (wire,) = whole.model.all_wires()
    batch = batch_of(data["graphs"].train[:3], whole, [1, 2, 3])
    before = float(whole.model.memory()[0])
    whole.model.eval()
    whole.model.loss(batch, "semantics").sum().backward()
    trace_sentence(whole, data["graphs"].train[0])
    assert float(whole.model.memory()[0]) == before, "nothing is learned outside of training"
    whole.model.train()
    whole.model.loss(batch, "semantics", watched={}).sum().backward()
    assert float(whole.model.memory()[0]) == before, "nor by looking on"
    whole.model.loss(batch, "semantics").sum().backward()
    after = float(whole.model.memory()[0])
    assert after in (pytest.approx(1.5 * before), pytest.approx(before / 1.5))
    assert float(whole.model.estimator_on(wire).beta) == after  # pyright: ignore[reportAttributeAccessIssue]
    instead = spigot.AdaptiveIMLE(start=3.0)
    whole.model.loss(batch, "semantics", instead=instead).sum().backward()
    assert float(whole.model.memory()[0]) == after, "what stands on a wire for now remembers nothing"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"name": "lpgd", "rho": "auto", "two_sided": True}, spigot.LPGD(rho="auto", two_sided=True)),
        ({"name": "lpgd", "rho": 5}, spigot.LPGD(rho=5.0)),
        ({"name": "spigot-ce", "start": "sparsemap", "soft": True}, spigot.SpigotCE(start="sparsemap", soft=True)),
        ({"name": "marginal-ste", "sampled": False}, spigot.MarginalStraightThrough(sampled=False, seed=3)),
        ({"name": "score-function", "samples": 4}, spigot.ScoreFunction(4, seed=3)),
    ],
)
def test_words_and_truth_values_are_options_too(table: Any, expected: spigot.AbstractEstimator) -> None:
    assert build_estimator(estimator_settings(table), None, seed=3) == expected


@pytest.mark.parametrize(
    "table", [{"name": "lpgd", "rho": "much"}, {"name": "lpgd", "rho": 0}, {"name": "spigot-ce", "start": "here"}]
)
def test_words_that_mean_nothing_are_refused(table: Any) -> None:
    with pytest.raises(ValueError, match=r"rho|start"):
        estimator_settings(table)


@pytest.mark.parametrize("name", ["spigot", "lpgd", "spigot-ce"])
def test_the_published_projection_of_graphs_stands_on_any_wire_that_projects(name: str) -> None:
    """On an arc that its own gradient holds down, the labels of the exact projection pull it up, and those do not."""
    graphs = spigot.SemanticGraphs(labels=2, deterministic=(0,))
    scores, grad = torch.full((3, 3, 3), -0.01), torch.zeros(3, 3, 3)
    grad[1, 2] = torch.tensor([0.1, -0.6, 0.0])
    extra = {"start": "vertex"} if name == "spigot-ce" else {}
    sent = {}
    for polytope in ("relaxation", "sequential"):
        estimator = build_estimator(estimator_settings({"name": name, "polytope": polytope, **extra}), graphs)
        sent[polytope] = estimator.explain(graphs, scores, grad).gradient[1, 2]
    assert (sent["relaxation"][:2] < -0.1).all()
    torch.testing.assert_close(sent["sequential"], torch.zeros(3), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["spigot", "lpgd", "spigot-ce"])
def test_the_hull_of_trees_stands_on_any_wire_that_projects(name: str) -> None:
    """Two words whose heads would like to be each other: the relaxation allows it, the hull does not."""
    trees, scores, grad = spigot.ProjectiveTrees(), torch.zeros(3, 3), torch.zeros(3, 3)
    scores[0, 1] = scores[1, 2] = 0.01
    grad[1, 2] = grad[2, 1] = -2.0
    grad[0, 1] = 1.0
    extra = {"start": "vertex"} if name == "spigot-ce" else {}
    sums = {}
    for polytope in ("relaxation", "hull"):
        estimator = build_estimator(estimator_settings({"name": name, "polytope": polytope, **extra}), trees)
        projected = estimator.explain(trees, scores, grad).projected
        assert projected is not None
        sums[polytope] = float(projected[1, 2] + projected[2, 1])
    assert sums["relaxation"] > 1.5
    assert sums["hull"] <= 1 + 1e-5
