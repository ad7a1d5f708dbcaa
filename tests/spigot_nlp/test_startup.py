"""What is loaded when, and how a command ends that is interrupted before it has begun."""

import importlib
import os
import pickle
import pkgutil
import signal
import subprocess
import sys
import textwrap

import pytest

import spigot
import spigot_nlp

HEAVY = ("torch", "numpy", "scipy", "matplotlib", "pydantic", "jinja2")


def loaded(code: str, *names: str) -> set[str]:
    """Which of some modules a new process has after some code, which may end it."""
    script = f"""
    import atexit, sys
    atexit.register(lambda: print("\\nloaded:", *(name for name in {names!r} if name in sys.modules)))
    """
    script = textwrap.dedent(script) + code
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


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


@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["--version"], ["train", "--help"], ["parse", "RUN", "--thread"], ["corpus", "sst", "--help"]],
)
def test_help_does_not_wait_for_torch(words: list[str]):
    assert loaded(f"from spigot_nlp.cli import main; main({words!r})", *HEAVY) == set()


def test_every_public_name_is_found_and_none_is_hidden_by_a_module():
    modules = {module.name for module in pkgutil.iter_modules(spigot.__path__)}
    assert modules & set(spigot.__all__) == {"kernels"}
    assert set(spigot.__all__) <= set(dir(spigot))
    assert {"nn", "data", "load"} <= set(dir(spigot_nlp))
    for name in spigot.__all__:
        assert getattr(spigot, name) is not None
    assert spigot_nlp.data is importlib.import_module("spigot_nlp.data")
    assert spigot_nlp.data.Tagger is importlib.import_module("spigot_nlp.data.tagging.tagger").Tagger
    assert pickle.loads(pickle.dumps(spigot.Spigot(eta=0.5))) == spigot.Spigot(eta=0.5)


def test_a_name_that_does_not_exist_is_an_error_as_in_any_module():
    with pytest.raises(AttributeError, match="module 'spigot' has no attribute 'Spiggot'"):
        _ = spigot.Spiggot  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ImportError, match="cannot import name 'Spiggot'"):
        exec("from spigot import Spiggot")
    with pytest.raises(AttributeError, match=r"module 'spigot_nlp\.data' has no attribute 'Taggger'"):
        _ = spigot_nlp.data.Taggger  # pyright: ignore[reportAttributeAccessIssue]


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


def test_an_interruption_while_a_command_is_being_loaded_is_one_line():
    code = """
    import os, signal, sys
    class Interrupter:
        def find_spec(self, name, path=None, target=None):
            if name == "spigot_nlp.cli.console":
                os.kill(os.getpid(), signal.SIGINT)
    sys.meta_path.insert(0, Interrupter())
    from spigot_nlp.__main__ import main
    sys.exit(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stderr) == (130, "spigot: interrupted.\n")


MISSING = 'spigot_nlp needs rich; install it with pip install "torch-spigot[nlp]".'


@pytest.mark.parametrize("program", ["/somewhere/bin/spigot", "-m"])
def test_without_the_extra_the_command_says_in_a_sentence_what_to_install(program: str):
    """The layer installs alone."""
    code = f"import sys; sys.modules['rich'] = None; sys.argv = [{program!r}, '--version']; "
    code += "from spigot_nlp.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"spigot: {MISSING}\n")


@pytest.mark.parametrize("statement", ["import spigot_nlp", "from spigot_nlp.data import read"])
def test_without_the_extra_an_import_says_what_to_install(statement: str):
    code = f"import sys; sys.modules['rich'] = None; import spigot; spigot.OneOf(); {statement}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"ModuleNotFoundError: {MISSING}")


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, "passive"),
        ({"OMP_WAIT_POLICY": "active"}, "active"),
        ({"GOMP_SPINCOUNT": "100"}, None),
    ],
)
def test_a_command_lets_waiting_threads_sleep_unless_the_user_says_otherwise(given: dict[str, str], policy: str | None):
    code = "import os, sys; sys.argv = ['spigot', '--version']; from spigot_nlp.__main__ import main; main(); "
    code += "print(os.environ.get('OMP_WAIT_POLICY'))"
    others = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    done = subprocess.run([sys.executable, "-c", code], env=others | given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(policy)
