"""`spigot_nlp.trace`: what estimators send to a system's own structures."""

import pytest

import spigot
import spigot_nlp
from spigot_nlp.config import make_config
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.models.build import fresh

RAIN = Sentence(("Rain", "fell", "again"), heads=(2, 0, 2), graph=Graph.of([Arc(2, 1, "ARG1"), Arc(3, 2, "ARG1")], [2]))


def parser(system: str = "spigot"):
    return fresh(make_config({"system": system, "data": {"tags": "columns"}}), {"graphs": [RAIN], "trees": [RAIN]})


def test_every_estimator_sees_the_same_losses():
    hull = spigot.Spigot(polytope=spigot.ConvexHull(spigot.ProjectiveTrees()))
    asked = ["ste", "spigot", {"name": "spigot", "polytope": "hull"}, hull]
    found = spigot_nlp.trace(parser(), [RAIN, Sentence(("Rain",)), RAIN], asked)
    assert [record.estimator for record in found] == ["ste", "spigot", "spigot hull", repr(hull)]
    assert {(record.wire, record.sentences, record.loss) for record in found} == {
        ("syntax -> semantics", 2, found[0].loss)
    }
    straight, projected, named, given = (record.signs for record in found)
    assert straight.absent_down > 0 == projected.absent_down
    assert named.absent_up == pytest.approx(given.absent_up, rel=1e-3)
    assert straight.present == projected.present == 6


def test_by_default_it_is_the_systems_own():
    (own,) = spigot_nlp.trace(parser("ste"), [RAIN])
    (ste,) = spigot_nlp.trace(parser("ste"), [RAIN], ["ste"])
    assert (own.estimator, own.signs) == ("its own", ste.signs)


@pytest.mark.parametrize(
    ("system", "sentences", "estimators", "says"),
    [
        ("spigot", [Sentence(("Rain",))], ["ste"], "no sentence has a graph that semantics could learn from"),
        ("neurboparser", [RAIN], ["ste"], "no gradient to show"),
        ("spigot", [RAIN], ["sponge"], "there is no estimator 'sponge'"),
        ("spigot", [RAIN], [{"name": "ste", "rho": 3.0}], "rho"),
    ],
)
def test_what_cannot_be_traced(system, sentences, estimators, says):
    with pytest.raises(ValueError, match=says):
        spigot_nlp.trace(parser(system), sentences, estimators)
