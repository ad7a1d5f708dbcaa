"""The notebooks run from top to bottom, and are kept without what they print."""

import json
from pathlib import Path

import pytest

from tests.spigot_nlp import processes

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDS = {"parse_and_look": ("pandas", "networkx")}

# A shell of IPython, as in a kernel: cells see each other's names, and what a cell ends in is shown by `_repr_html_`.
RUN = """
import json, sys
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell

shell, shown = InteractiveShell.instance(), []
show = shell.displayhook.write_format_data
shell.displayhook.write_format_data = lambda data, *rest: shown.append(list(data.items())) or show(data, *rest)
for cell in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        result = shell.run_cell("".join(cell["source"]))
        if not result.success:
            sys.exit(1)
Path(sys.argv[2]).write_text(json.dumps(shown), encoding="utf-8")
"""


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["compare_estimators", "parse_and_look", "tree_in_a_network"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_what_they_print(path: Path) -> None:
    """So that a difference between two versions is one between their texts, and nothing in them can be out of date."""
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    assert notebook["cells"][0]["source"][0].startswith("# ")
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path) -> None:
    for name in ("IPython", *NEEDS.get(path.stem, ())):
        pytest.importorskip(name)
    own = {"IPYTHONDIR": str(tmp_path / "ipython")}  # no history, no settings of whoever runs this
    done = processes.run("-c", RUN, path, tmp_path / "shown.json", environment=own, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    shown = [dict(data) for data in json.loads((tmp_path / "shown.json").read_text(encoding="utf-8"))]
    assert any("<svg" in html or "$$" in html for html in (data.get("text/html", "") for data in shown))
