"""Python in processes of their own that need not load torch: copies of one that has loaded it, and done nothing else.

To load it takes a processor two seconds: longer than most of what such a process is asked to do. What a process loads
by itself, and what it does before, is the business of `test_startup.py`, and of those who run `sys.executable`.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

QUICK = "forkserver"
"""How `multiprocessing` calls such processes: with it, others begin as quickly."""

_CONTEXT = multiprocessing.get_context(QUICK)
_CONTEXT.set_forkserver_preload(["spigot_nlp.cli", "spigot_nlp.training.loop"])


class Ended(NamedTuple):
    """What came of a process.

    Attributes:
        returncode: What it returned; below zero, the signal that ended it.
        stdout: What it printed.
        stderr: What it complained about.
    """

    returncode: int
    stdout: str
    stderr: str


class Python:
    """A process, begun as if by `python` and some words; inside a `with`, at the end of which it is gone.

    Args:
        words: `-c` and code, `-m` and a module, or a file; then what that is given.
        environment: What is added to the environment.
        cwd: Where it runs.
    """

    def __init__(
        self, *words: str | Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self._said = tempfile.TemporaryDirectory()
        self._files = [Path(self._said.name) / name for name in ("stdout", "stderr")]
        given = (list(map(str, words)), {**os.environ, **(environment or {})}, str(cwd or Path.cwd()))
        self._process = _CONTEXT.Process(target=_become, args=(*given, list(map(str, self._files))))
        self._process.start()

    def __enter__(self) -> "Python":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._process.join()
        self._process.close()
        self._said.cleanup()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def wait(self, seconds: float = 230) -> Ended:
        """What comes of it. One that takes longer than it may is an error.

        Args:
            seconds: How long it may take.
        """
        self._process.join(seconds)
        code = self._process.exitcode
        said = [path.read_text(encoding="utf-8") if path.exists() else "" for path in self._files]
        assert code is not None, f"it hangs: {said}"
        return Ended(code, *said)


def run(*words: str | Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ended:
    """Have a process run to its end, with warnings as errors.

    Args:
        words: As for `Python`.
        environment: What is added to the environment.
        cwd: Where it runs.
    """
    with Python(*words, environment=environment, cwd=cwd) as process:
        return process.wait()


def _become(words: list[str], environment: dict[str, str], cwd: str, files: list[str]) -> None:
    """What the copy does: what `python` would do with these words."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for number, path in enumerate(files, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    warnings.simplefilter("error")
    kind, *rest = words
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv = rest
        sys.modules.pop(f"{rest[0]}.__main__", None)  # if something loaded has it
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")
