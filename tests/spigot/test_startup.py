"""What the layer loads, and when."""

import pickle
import pkgutil
import subprocess
import sys
import textwrap

import pytest

import spigot
from tests.spigot.loading import HEAVY, loaded


def test_the_library_loads_nothing_before_it_is_asked():
    assert loaded("import spigot", *HEAVY, "rich", "cyclopts") == set()


def test_a_public_name_brings_neither_the_compiler_nor_solvers():
    code = "import spigot; spigot.argmax; spigot.ZeroOneProgram; dir(spigot)"
    others = ("torch._dynamo", "scipy.sparse", "scipy.optimize", "matplotlib", "pydantic", "jinja2", "rich", "cyclopts")
    assert loaded(code, "torch", *others) == {"torch"}


def test_operators_do_without_the_compiler_until_somebody_compiles():
    """There and back, of those with derivatives and those without; what is compiled afterwards still has them whole."""
    code = """
import sys, torch, spigot
scores = torch.randn(2, 5, 5, requires_grad=True)
trees = spigot.NonProjectiveTrees()
for estimator in (spigot.Spigot(), spigot.StructuredAttention()):
    spigot.argmax(scores, trees, estimator)[0, 0, 1].backward()
print("torch._dynamo" in sys.modules)
layer = spigot.Argmax(trees, spigot.Spigot())
compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
assert torch.equal(compiled(scores), layer(scores))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_every_public_name_is_found_and_none_is_hidden_by_a_module():
    modules = {module.name for module in pkgutil.iter_modules(spigot.__path__)}
    assert modules & set(spigot.__all__) == {"factors", "kernels"}
    assert set(spigot.__all__) <= set(dir(spigot))
    for name in spigot.__all__:
        assert getattr(spigot, name) is not None
    assert pickle.loads(pickle.dumps(spigot.Spigot(eta=0.5))) == spigot.Spigot(eta=0.5)


def test_a_name_that_does_not_exist_is_an_error_as_in_any_module():
    with pytest.raises(AttributeError, match="module 'spigot' has no attribute 'Spiggot'"):
        _ = spigot.Spiggot  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ImportError, match="cannot import name 'Spiggot'"):
        exec("from spigot import Spiggot")


def test_names_may_be_asked_for_first_inside_a_compiled_model():
    """The mark that lets a number stand for a structure must be there before the compiler is loaded."""
    code = """
    import torch, spigot
    model = lambda scores: spigot.argmax(scores, spigot.OneOf(), spigot.SparseMAP())
    scores = torch.tensor([[1.0, 0.5, -1.0]])
    print(torch.compile(model, fullgraph=True, backend="eager")(scores).tolist())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == "[[0.75, 0.25, 0.0]]\n"
