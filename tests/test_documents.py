"""The documents are true: their code runs, and what they list is what the library has."""

import contextlib
import doctest
import importlib
import io
import json
import re
from code import InteractiveConsole
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot.config import Config, Values

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PASTED = ("index", "method", "structures", "estimators", "numerics", "own-structure")
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(text: str) -> Iterator[tuple[str, str, int]]:
    """Language, code and first line of each block."""
    for found in BLOCK.finditer(text):
        yield found[1], found[2], text[: found.start(2)].count("\n")


def run(document: Path) -> int:
    """Run every block in order, in one namespace that begins empty; returns how many there were."""
    text = document.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "document"}
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    count = 0
    for language, code, line in blocks(text):
        count += 1
        if language == "python":
            exec(compile("\n" * line + code, str(document), "exec"), namespace)
        else:
            parsed = doctest.DocTestParser().get_doctest(code, namespace, document.name, str(document), line)
            report: list[str] = []
            outcome = runner.run(parsed, out=report.append, clear_globs=False)
            assert outcome.failed == 0, "".join(report)
            namespace = parsed.globs
    return count


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile, about itself
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_in_documents_runs(document: Path) -> None:
    run(document)


def test_a_wrong_document_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.md"
    wrong.write_text("```pycon\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="Expected"):
        run(wrong)
    wrong.write_text("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        run(wrong)


def test_the_readme_shows_the_layer() -> None:
    """The block that a reader copies first does what its comments say."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    language, code, _ = next(blocks(text))
    assert language == "python"
    namespace: dict[str, Tensor] = {}
    exec(code, namespace)
    scores, z, mask, states = (namespace[name] for name in ("scores", "z", "mask", "states"))
    trees = spigot.ProjectiveTrees()
    assert trees.contains(z.detach(), mask).all()
    leaf = z.detach().requires_grad_()
    loss = torch.einsum("bij,bid->bjd", leaf, states).square().sum()
    g = torch.autograd.grad(loss, leaf)[0].masked_fill(~mask, 0)
    expected = z.detach() - spigot.HeadSimplex().project(z.detach() - g, mask)
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad, expected)


class Prompt(InteractiveConsole):
    """The plain interactive Python, just started, which keeps what it complains about."""

    said = ""

    def write(self, data: str) -> None:
        self.said += data


def paste(code: str) -> str:
    """What the prompt complains about when the code is pasted into it."""
    prompt = Prompt({"__name__": "__main__"})
    with contextlib.redirect_stdout(io.StringIO()):
        for line in [*code.splitlines(), ""]:
            prompt.push(line)
    return prompt.said


def typed(text: str) -> Iterator[str]:
    """What a reader of a document types, block after block, but for what is shown to fail."""
    for language, code, _ in blocks(text):
        if language == "python":
            yield code
        else:
            shown = doctest.DocTestParser().get_examples(code)
            yield "\n\n".join(example.source for example in shown if example.exc_msg is None)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile, about itself
@pytest.mark.parametrize("name", ["README", *(f"docs/{page}" for page in PASTED)])
def test_code_of_documents_can_be_pasted(name: str) -> None:
    """Block after block: the prompt ends a body at an empty line and nowhere else, unlike a file."""
    assert paste("\n".join(typed((ROOT / f"{name}.md").read_text(encoding="utf-8")))) == ""


def test_what_cannot_be_pasted_is_found() -> None:
    assert "SyntaxError" in paste("for i in range(2):\n    i\nx = 1\n")
    assert "NameError" in paste("my_network(1)\n")


def table(section: str) -> set[str]:
    """The names in the first column of the table under a heading of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    body = text.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `(\w+)\(", body, re.MULTILINE))


def public(kind: type) -> set[str]:
    """The concrete public classes of a kind."""
    found = {name: getattr(spigot, name) for name in spigot.__all__}
    return {
        name
        for name, value in found.items()
        if isinstance(value, type) and issubclass(value, kind) and not name.startswith("Abstract")
    }


def test_tables_list_every_structure_and_estimator() -> None:
    assert table("Structures") == public(spigot.AbstractStructure)
    assert table("Estimators") == public(spigot.AbstractEstimator)


def test_table_of_estimators_says_which_are_hard() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in public(spigot.AbstractEstimator):
        (row,) = re.findall(rf"^\| `{name}\(.*$", text, re.MULTILINE)
        assert ("| hard |" in row) == getattr(spigot, name).hard
        assert ("| soft |" in row) != getattr(spigot, name).hard


def reference() -> str:
    """All pages of the API reference."""
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md")))


def test_the_reference_has_every_public_name() -> None:
    listed = re.findall(r"^::: spigot\.(\w+)$", reference(), re.MULTILINE)
    assert sorted(listed) == sorted(spigot.__all__)


@pytest.mark.parametrize("package", ["data", "data.synthetic", "evaluation", "models", "training"])
def test_the_reference_has_every_name_of_the_pipeline(package: str) -> None:
    listed = re.findall(rf"^::: spigot\.{package}\.(\w+)$", reference(), re.MULTILINE)
    assert sorted(listed) == sorted(importlib.import_module(f"spigot.{package}").__all__)


def test_the_guide_lists_every_setting_with_its_default() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([\w.*]+)` \| (.*?) \|", text, re.MULTILINE))
    defaults: dict[str, list[Any]] = {}
    for name, value in sorted(leaves(Config()), key=lambda leaf: leaf[0].count(".")):
        defaults.setdefault(re.sub(r".*\b(encoder|optimiser)\.", r"*.\1.", name), []).append(value)
    assert listed.keys() == defaults.keys()
    for name, values in defaults.items():
        shown = {"absent": None, "[]": (), "{}": {}, '""': "", "true": True, "false": False}
        found = [shown.get(word, word) for word in re.findall(r"`(.*?)`", listed[name]) or [listed[name]]]
        pairs = zip(found, values, strict=False)
        found = [_as(word, value) if isinstance(word, str) else word for word, value in pairs]
        assert found == values[: len(found)], name
        assert len(found) == len(values) or len(set(values)) == 1, name


def _as(word: str, like: object) -> object:
    """What is written in the kind of what is meant."""
    return tuple(json.loads(word)) if isinstance(like, tuple) else type(like)(word)  # pyright: ignore[reportCallIssue]


def leaves(values: Values, above: str = "") -> Iterator[tuple[str, object]]:
    """Every setting by its dotted name, with its value."""
    for name in type(values).model_fields:
        value = getattr(values, name)
        if isinstance(value, Values):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield above + name, value


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n", 1)[1]
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert f": {name}\n" in navigation, name


@pytest.mark.parametrize("document", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Links within the repository; the site's own are checked when it is built."""
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]+)#?([^)]*)", document.read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target
        assert not anchor or anchor in anchors(ROOT / target), f"{target}#{anchor}"


def anchors(document: Path) -> set[str]:
    """What the headings of a page are called in links to them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
