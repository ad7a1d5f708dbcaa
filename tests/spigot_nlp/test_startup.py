"""What the systems load, and when, and how a command ends that is interrupted before it has begun."""

import importlib
import os
import signal
import subprocess
import sys
import textwrap

import pytest

import spigot_nlp
from tests.spigot.loading import HEAVY, loaded


@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["--version"], ["train", "--help"], ["parse", "RUN", "--thread"], ["convert", "--help"]],
)
def test_help_does_not_wait_for_torch(words: list[str]):
    assert loaded(f"from spigot_nlp.cli import main; main({words!r})", *HEAVY) == set()


@pytest.mark.parametrize(
    "words",
    [
        ["train", "nothing"],
        ["parse", "nothing", "text.txt"],
        ["parse", "en", "nothing.txt"],
        ["evaluate", "nothing", "gold.sdp"],
        ["evaluate", "en", "nothing.sdp"],
        ["compare", "a", "b", "nothing.sdp"],
        ["report", "nothing"],
        ["serve", "nothing"],
        ["pack", "nothing", "out"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_said_before_torch_is_loaded(words: list[str]):
    assert loaded(f"from spigot_nlp.cli import main; main({words!r})", *HEAVY) == set()


def test_modules_of_the_systems_and_their_names_are_loaded_when_asked_for():
    assert {"nn", "data", "load", "Parser", "train", "evaluate"} <= set(dir(spigot_nlp))
    assert spigot_nlp.train is importlib.import_module("spigot_nlp.training").train
    assert spigot_nlp.data is importlib.import_module("spigot_nlp.data")
    assert spigot_nlp.data.Tagger is importlib.import_module("spigot_nlp.data.tagging.tagger").Tagger
    with pytest.raises(AttributeError, match=r"module 'spigot_nlp\.data' has no attribute 'Taggger'"):
        _ = spigot_nlp.data.Taggger  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match="module 'spigot_nlp' has no attribute 'dada'"):
        _ = spigot_nlp.dada  # pyright: ignore[reportAttributeAccessIssue]


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
