"""Classes by name, and what is registered."""

from collections.abc import Mapping
from types import new_class
from typing import Any

import pytest

from spigot import ESTIMATORS, AbstractEstimator, Registry
from spigot_nlp.annotations import ANNOTATIONS, AbstractAnnotation
from spigot_nlp.encoders import ENCODERS, AbstractEncoder
from spigot_nlp.stages import STAGES, AbstractStage
from spigot_nlp.wires import READERS, AbstractReader

OURS: list[tuple[Registry[Any], type, str]] = [
    (ESTIMATORS, AbstractEstimator, "estimator"),
    (READERS, AbstractReader, "reader"),
    (ENCODERS, AbstractEncoder, "encoder"),
    (ANNOTATIONS, AbstractAnnotation, "kind of annotation"),
    (STAGES, AbstractStage, "stage"),
]


def fruits() -> tuple[Registry[object], type]:
    registry: Registry[object] = Registry("fruit")
    return registry, registry.register("plum")(new_class("Plum"))


def test_it_is_a_mapping_in_order_of_registration() -> None:
    registry, plum = fruits()
    pear = registry.register("pear")(new_class("Pear"))
    assert isinstance(registry, Mapping)
    assert dict(registry) == {"plum": plum, "pear": pear}
    assert list(registry) == ["plum", "pear"]
    assert (len(registry), "plum" in registry, "fig" in registry) == (2, True, False)
    assert registry.find("pear") is registry["pear"] is pear
    assert registry.name_of(pear) == "pear"


def test_a_name_is_taken_once() -> None:
    registry, plum = fruits()
    with pytest.raises(ValueError, match="there is a fruit 'plum' already, Plum; choose another name"):
        registry.register("plum")(new_class("Prune"))
    assert registry["plum"] is plum


def test_a_file_that_is_read_again_replaces_its_own_classes() -> None:
    registry, plum = fruits()
    again = new_class("Plum")
    assert (again.__module__, again.__qualname__) == (plum.__module__, plum.__qualname__)
    assert registry.register("plum")(again) is registry["plum"] is again


def test_what_is_not_there_is_said_with_what_may_be_meant() -> None:
    registry, _ = fruits()
    with pytest.raises(ValueError, match=r"^there is no fruit 'plumb'; did you mean plum\?$"):
        registry.find("plumb")
    with pytest.raises(ValueError, match=r"^there is no fruit 'xyz'; there are plum, and those of plug-ins"):
        registry.find("xyz")
    with pytest.raises(ValueError, match=r"there are none"):
        Registry("fruit").find("plum")


@pytest.mark.parametrize(("registry", "kind", "what"), OURS, ids=[what for _, _, what in OURS])
def test_everything_registered_is_of_its_kind(registry: Registry[Any], kind: type, what: str) -> None:
    assert registry.what == what
    assert registry
    for name, known in registry.items():
        assert issubclass(known, kind)
        assert registry.name_of(known) == name
