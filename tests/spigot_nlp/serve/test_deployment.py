"""The container file and the guide: what they copy is there, and what they run is what the project has."""

import json
import re
import shlex
import sys
import types
from fnmatch import fnmatch
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.cli.options import options_of
from spigot_nlp.cli.serve import serve
from spigot_nlp.serve import Settings

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")


def steps() -> list[tuple[str, str]]:
    """The instructions of the container file, each with what stands after it."""
    lines = [line for line in (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines() if line]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if not line.startswith("#"))]


def test_what_is_copied_is_there_and_not_kept_out() -> None:
    ignored = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line]
    assert ignored[0] == "*"
    copied = [
        word
        for name, rest in steps()
        if name == "COPY" and not rest.startswith("--from=build")
        for word in rest.split()[:-1]
    ]
    assert {"pyproject.toml", "constraints.txt", "src", "native"} <= set(copied)
    for word in copied:
        assert (ROOT / word).exists(), word
        assert f"!{word}" in ignored
        assert not any(fnmatch(word, line.removeprefix("**/")) for line in ignored[1:] if not line.startswith("!"))
    # What the build reads must be among it.
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for needed in (re.search(r'readme = "(.+?)"', project), re.search(r'license-files = \["(.+?)"\]', project)):
        assert needed is not None
        assert needed[1] in copied


def test_commands_are_those_of_the_project() -> None:
    run = " && ".join(rest for name, rest in steps() if name == "RUN")
    assert 'pip install --no-cache-dir -c constraints.txt ".[nlp]"' in run
    assert 'pip install ".[nlp]"' in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "spigot.kernels.available" in run
    named = dict(steps())
    program, command, *words = json.loads(named["ENTRYPOINT"])
    assert (program, command) == ("spigot", "serve")
    assert {word for word in words if word.startswith("--")} <= set(options_of(serve))
    port = words[words.index("--port") + 1]
    assert named["EXPOSE"] == port
    assert f":{port}/ready" in named["HEALTHCHECK"]
    compile(json.loads(named["HEALTHCHECK"].partition("CMD ")[2])[2], "HEALTHCHECK", "exec")
    assert named["USER"] != "root"
    assert {name for name, _ in steps()} <= {
        "FROM", "RUN", "ENV", "WORKDIR", "COPY", "ARG", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT",
    }  # fmt: skip


def test_options_and_variables_of_the_guide_exist(capsys: pytest.CaptureFixture[str]) -> None:
    known = set(options_of(serve))
    for line in re.findall(r"^(?:ExecStart=\S*/)?spigot serve .*$", GUIDE, re.MULTILINE):
        words = shlex.split(line.partition(" serve ")[2])
        assert {word for word in words if word.startswith("--")} <= known, line
    names = {f"SPIGOT_SERVE_{name.upper()}" for name in Settings.model_fields}
    said = set(re.findall(r"SPIGOT_SERVE_[A-Z]+", GUIDE)) | {"SPIGOT_SERVE_PRECISION", "SPIGOT_SERVE_THREADS"}
    assert said == names
    assert cli.main(["serve", "--help"]) == 0
    assert "--certificate" in capsys.readouterr().out


def test_the_example_for_ray_builds_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for Ray Serve, which takes a function that makes an application."""
    built: list[object] = []

    class Bound:
        def bind(self) -> "Bound":
            return self

    def ingress(build):
        built.append(build())
        return lambda: Bound

    ray, fake = types.ModuleType("ray"), types.ModuleType("ray.serve")
    fake.ingress, fake.deployment = ingress, lambda **_: lambda kind: kind()  # pyright: ignore[reportAttributeAccessIssue]
    ray.serve = fake  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.serve", fake)
    (code,) = re.findall(r"^```py\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "docs/deploy.md", "exec"), names)
    assert isinstance(names["service"], Bound)
    (app,) = built
    assert app.state.settings.runs == (Path("/shared/runs/first"),)  # pyright: ignore[reportAttributeAccessIssue]
