"""What is of another kind than a layer, an estimator or a polytope needs is refused where it is given."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import spigot

_any: Any = spigot  # as it is to those who do not check types


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: _any.Argmax(spigot.Spigot(), spigot.OneOf()), "structure is an object of Spigot; give a structure"),
        (lambda: _any.Argmax(spigot.OneOf(), "ste"), "estimator is an object of str; give an estimator"),
        (lambda: _any.Argmax(spigot.OneOf, spigot.Spigot()), "structure is the class OneOf; give a structure"),
        (lambda: _any.argmax(spigot.OneOf(), torch.zeros(3)), "structure is an object of Tensor"),
        (lambda: _any.Spigot().explain("t", *torch.zeros(2, 3)), "structure is an object of str"),
        (lambda: _any.Spigot(polytope=spigot.OneOf()), "polytope is an object of OneOf; give a polytope, such as"),
        (lambda: _any.LPGD(polytope=spigot.Simplex), "polytope is the class Simplex"),
        (lambda: _any.SpigotCE(polytope="simplex"), "polytope is an object of str"),
        (lambda: _any.ConvexHull(spigot.OneOf), "structure is the class OneOf"),
    ],
)
def test_what_is_of_another_kind_is_refused_at_once(make: Callable[[], object], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        make()
