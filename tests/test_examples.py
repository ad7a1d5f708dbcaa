"""Every example runs, and its own assertions hold."""

from pathlib import Path

import pytest

from tests.spigot_nlp import processes

FOLDER = Path(__file__).parents[1] / "examples"
PLUGINS = ("own_task",)
"""Those that are no programs, but brought to the commands by `--plugin`; see tests/spigot_nlp/cli/test_plugins.py."""
SMALLER = {"second_order": ("--sentences", "4", "--epochs", "1")}
"""Less of what takes long."""
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem.removesuffix("_data") not in PLUGINS)


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} >= {
        "choosing_an_estimator",
        "matching",
        "feature_selection",
        "own_encoder",
        "own_estimator",
        "own_structure",
        "parser_in_a_network",
        "second_order",
        "tagger",
        "zero_one_program",
    }
    for plugin in PLUGINS:
        assert (FOLDER / f"{plugin}.py").exists()
        assert (FOLDER / f"{plugin}.toml").exists()


def run(*arguments: str | Path) -> str:
    """What an example prints in a process of its own, with warnings as errors."""
    done = processes.run(*arguments)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert not done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    assert run(path, *SMALLER.get(path.stem, ())), "an example shows something"


@pytest.mark.slow
def test_the_example_of_programs_runs_without_the_solver() -> None:
    (path,) = (path for path in EXAMPLES if path.stem == "zero_one_program")
    hidden = "import runpy, sys; sys.modules['piqp'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    printed = run("-c", hidden, path)
    assert 'pip install "torch-spigot[piqp]"' in printed
    assert "after training" in printed
