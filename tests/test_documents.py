"""The documents are true: their code runs, and what they list is what the library has."""

import contextlib
import doctest
import importlib
import io
import re
import sys
import tomllib
from code import InteractiveConsole
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from research.study.plan import Plan, make_study
from spigot import ESTIMATORS, Registry
from spigot_nlp.annotations import ANNOTATIONS
from spigot_nlp.cli import main
from spigot_nlp.config import Config, Files, Optimiser, SharedEncoder, Values, make_config
from spigot_nlp.config import settings as known_settings
from spigot_nlp.config.presets import CONSUMED, POSSIBLE
from spigot_nlp.data import FORMATS
from spigot_nlp.encoders import ENCODERS, BiLSTMSettings, TransformerSettings
from spigot_nlp.plugins import load_plugin
from spigot_nlp.stages import STAGES, StageSettings
from spigot_nlp.wires import READERS, estimator_settings

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PASTED = ("index", "method", "structures", "estimators", "numerics", "own-structure")
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(text: str) -> Iterator[tuple[str, str, int]]:
    """Language, code and first line of each block."""
    for found in BLOCK.finditer(text):
        yield found[1], found[2], text[: found.start(2)].count("\n")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Kinds that a document registers are gone afterwards: other tests list those that come with spigot."""
    known = [kinds._kinds for kinds in (ANNOTATIONS, ENCODERS, ESTIMATORS, READERS, STAGES)]  # pyright: ignore[reportPrivateUsage]
    places: list[dict[str, Any]] = [*known, FORMATS]
    before = [dict(place) for place in places]
    yield
    for place, kinds in zip(places, before, strict=True):
        place.clear()
        place.update(kinds)
    for name in [name for name in sys.modules if name.startswith("spigot_plugin_")]:
        del sys.modules[name]  # so that whoever needs it registers it again


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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_configurations_in_documents_are_valid(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    found = re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    configurations = [given for given in map(tomllib.loads, found) if "project" not in given]
    studies = [given for given in configurations if "config" in given]
    for given in studies:
        assert Plan(make_study(given), Path("runs")).named()
    configurations = [given for given in configurations if given not in studies]
    if any("focus" in given.get("stages", {}) for given in configurations):
        load_plugin(str(ROOT / "examples" / "own_task.py"))
    for given in configurations:
        make_config(given)


def test_the_guide_to_a_task_shows_the_example() -> None:
    """All of it, in its order."""
    page = (ROOT / "docs" / "own-task.md").read_text(encoding="utf-8")
    example = (ROOT / "examples" / "own_task.py").read_text(encoding="utf-8")
    shown = "\n\n".join(code.strip() for language, code, _ in blocks(page) if language == "python")
    assert re.sub(r"\n+", "\n", shown) in re.sub(r"\n+", "\n", example)
    assert re.sub(r"\n+", "\n", example).strip().endswith(re.sub(r"\n+", "\n", shown))
    (configuration, _) = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert tomllib.loads(configuration) == tomllib.loads((ROOT / "examples" / "own_task.toml").read_text("utf-8"))


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
    """The block that a reader copies first sends back what the formula says."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = next(code for language, code, _ in blocks(text) if language == "pycon" and "spigot.argmax" in code)
    namespace: dict[str, Tensor] = {}
    exec("".join(example.source for example in doctest.DocTestParser().get_examples(code)), namespace)
    scores, z, states = (namespace[name] for name in ("scores", "z", "states"))
    assert spigot.ProjectiveTrees().contains(z.detach()).all()
    leaf = z.detach().requires_grad_()
    g = torch.autograd.grad(torch.einsum("bhm,bhd->bmd", leaf, states).square().sum(), leaf)[0]
    expected = z.detach() - spigot.HeadSimplex().project(z.detach() - g)
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad, expected)


def test_the_readme_shows_what_the_command_draws(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[0]
    assert main(["draw", "--text", "The poet didn't sleep."]) == 0
    drawn = capsys.readouterr().out
    assert [line.rstrip() for line in drawn.splitlines()] == [line.rstrip() for line in shown.splitlines()]


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
    return set(re.findall(r"^\| `(\w+)`", body, re.MULTILINE))


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
        (row,) = re.findall(rf"^\| `{name}` .*$", text, re.MULTILINE)
        assert ("| hard |" in row) == getattr(spigot, name).hard
        assert ("| soft |" in row) != getattr(spigot, name).hard


def reference() -> str:
    """All pages of the API reference."""
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md")))


def test_the_reference_has_every_public_name() -> None:
    listed = re.findall(r"^::: spigot\.(\w+)$", reference(), re.MULTILINE)
    assert sorted(listed) == sorted(spigot.__all__)


PACKAGES = (
    "annotations",
    "batches",
    "config",
    "corpora",
    "corpora.synthetic",
    "data",
    "encoders",
    "evaluation",
    "models",
    "stages",
    "training",
    "wires",
)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_name_of_the_pipeline(package: str) -> None:
    """On the page of the package, or on that of the one that a name comes from."""
    module = importlib.import_module(f"spigot_nlp.{package}")
    listed = re.findall(r"^::: spigot_nlp\.([\w.]+)\.(\w+)$", reference(), re.MULTILINE)
    assert {name for owner, name in listed if owner == package} <= {*module.__all__}
    others = [(importlib.import_module(f"spigot_nlp.{owner}"), name) for owner, name in listed if owner in PACKAGES]
    known = {(name, id(getattr(other, name))) for other, name in others}
    assert [name for name in module.__all__ if (name, id(getattr(module, name))) not in known] == []


def test_the_reference_has_no_name_twice() -> None:
    listed = re.findall(r"^::: (spigot(?:_nlp)?\.[\w.]+)$", reference(), re.MULTILINE)
    assert len(listed) == len(set(listed))


def settings_of(*headings: str) -> dict[str, str]:
    """The names in the tables under some headings of the page of settings, with their second column."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^##+ (.*?)\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE))
    rows = [row for heading in headings for row in re.findall(r"^\| `([\w.-]+)` \| (.*?) \|", sections[heading], re.M)]
    assert len(rows) == len(dict(rows)), headings
    return dict(rows)


def shown(cell: str) -> object:
    """A default as the page has it: TOML, or nothing."""
    return None if cell == "none" else tomllib.loads(f"x = {cell.strip('`')}")["x"]


def leaves(values: Values, above: str = "") -> Iterator[tuple[str, object]]:
    """Every setting by its dotted name, with its value as TOML has it."""
    for name, field in type(values).model_fields.items():
        value, name = getattr(values, name), field.alias or name
        if isinstance(value, Values):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield above + name, list(value) if isinstance(value, tuple) else value


def check_settings(listed: dict[str, str], wanted: dict[str, object]) -> None:
    """What is listed are the settings and their defaults."""
    assert listed.keys() == wanted.keys()
    assert {name: shown(cell) for name, cell in listed.items()} == wanted


def test_the_guide_lists_every_setting_of_an_experiment_with_its_default() -> None:
    files = {f"data.NAME.{name}": value for name, value in leaves(Files())}
    shared = {f"encoders.NAME.{name}": {} for name in SharedEncoder.model_fields}
    wanted = {name: value for name, value in leaves(Config()) if name not in ("encoders", "stages")}
    check_settings(settings_of("The experiment", "Data", "Training"), {**wanted, **files, **shared})


# Any stage's settings, with an annotation that each must have.
ANY_STAGE = dict(leaves(StageSettings(annotation="trees")))


def test_the_guide_lists_what_all_stages_encoders_and_optimisers_can_be_told() -> None:
    own = {name: value for name, value in ANY_STAGE.items() if not name.startswith(("encoder.", "optimiser."))}
    check_settings(settings_of("Every stage"), {**own, "annotation": None, "encoder": {}, "optimiser": {}})
    check_settings(settings_of("Encoders"), dict(leaves(BiLSTMSettings())))
    usual = {f"optimiser.{name}": value for name, value in leaves(Optimiser())}
    transformer = leaves(TransformerSettings(model="any"))
    wanted = {name: value for name, value in transformer if name not in usual or usual[name] != value}
    check_settings(settings_of("Transformers"), {**wanted, "model": None})
    check_settings(settings_of("Optimisers"), dict(leaves(Optimiser())))


def ours(kinds: Registry[Any]) -> list[str]:
    """The kinds that come with spigot; tests may have brought others."""
    return [name for name, kind in kinds.items() if kind.__module__.startswith(("spigot.", "spigot_nlp."))]


@pytest.mark.parametrize("kind", ours(STAGES))
def test_the_guide_lists_what_a_kind_of_stage_can_be_told(kind: str) -> None:
    """All in which it differs from others, with its defaults."""
    settings = dict(leaves(STAGES[kind].Settings(annotation="trees")))
    own = {name: value for name, value in settings.items() if name not in ANY_STAGE or ANY_STAGE[name] != value}
    usual = {f"pruning.encoder.{name}": value for name, value in leaves(BiLSTMSettings())}
    usual |= {f"pruning.optimiser.{name}": value for name, value in leaves(Optimiser())}
    wanted = {name: value for name, value in own.items() if name not in usual or usual[name] != value}
    check_settings(settings_of(f"`{kind}`"), wanted)
    # And no more can be set than is listed here, for every stage, for encoders and for optimisers.
    tables = {"stages": {"mine": {"annotation": "trees", "model": kind}}}
    groups = {"encoder", "optimiser", "pruning", "pruning.encoder", "pruning.optimiser"}
    known = {name.removeprefix("mine.") for name in known_settings(tables) if name.startswith("mine.")}
    assert known - groups == {re.sub(r"\breads\..*", "reads", name) for name in settings}


@pytest.mark.parametrize(("heading", "kinds"), [("Readers", READERS), ("Estimators", ESTIMATORS)])
def test_the_guide_lists_every_reader_and_estimator_with_its_options(heading: str, kinds: Registry[Any]) -> None:
    listed = settings_of(heading)
    assert sorted(listed) == sorted(ours(kinds))
    for kind, cell in listed.items():
        options = {}
        for option in re.findall(r"`(.*?)`", cell):
            options |= tomllib.loads(option) if "=" in option else {option: None}
        model = READERS[kind].Settings(name=kind) if kinds is READERS else estimator_settings(kind)
        common = ("name", "max_norm", "clip_per", "centred") if kinds is ESTIMATORS else ("name",)
        assert options == {name: value for name, value in leaves(model) if name not in common}, kind


def test_the_guide_lists_the_short_forms() -> None:
    listed = settings_of("Short forms")
    consumed = {f"{group}.{name}": value for group, kind in CONSUMED.items() for name, value in leaves(kind())}
    tables = {"task", "system", "estimator", *POSSIBLE}
    check_settings({name: cell for name, cell in listed.items() if name not in tables}, consumed)
    assert tables <= listed.keys()


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
