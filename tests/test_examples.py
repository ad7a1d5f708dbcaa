"""Every example runs, and its own assertions hold."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} >= {
        "choosing_an_estimator",
        "own_structure",
        "parser_in_a_network",
        "zero_one_program",
    }


def run(*arguments: str) -> str:
    """What an example prints in a process of its own, as a reader would run it, with warnings as errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert not done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    assert run(str(path)), "an example shows something"


@pytest.mark.slow
def test_the_example_of_programs_runs_without_the_solver() -> None:
    (path,) = (path for path in EXAMPLES if path.stem == "zero_one_program")
    hidden = "import runpy, sys; sys.modules['piqp'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    printed = run("-c", hidden, str(path))
    assert 'pip install "torch-spigot[piqp]"' in printed
    assert "after training" in printed
