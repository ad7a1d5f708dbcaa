"""Code of users that brings kinds of its own: annotations, stages, readers, encoders, estimators, formats.

A plug-in is a Python file or module that registers them when it is imported. The command line imports those named by
`--plugin`, and those that installed packages announce under the entry point `spigot.plugins`. Nothing else is ever
imported: a run folder names its kinds, and does not bring their code.
"""

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

GROUP = "spigot.plugins"
"""The entry point that packages announce plug-ins under."""

PLUGINS = "SPIGOT_PLUGINS"
"""Where the processes that a command starts find the plug-ins it was given."""


def load_plugin(name: str) -> ModuleType:
    """Import a plug-in.

    Args:
        name: A Python file, or the name of a module.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it cannot be imported.

    Example:
        >>> load_plugin("no_such_task.py")
        Traceback (most recent call last):
        FileNotFoundError: there is no plug-in no_such_task.py; give a Python file, or the name of a module.
    """
    path = Path(name)
    if path.suffix != ".py":
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or name.partition(".")[0] != error.name.partition(".")[0]:
                raise ValueError(_broken(name, error)) from error
            raise ValueError(
                f"the plug-in {name} cannot be imported ({error}); give a Python file or a module."
            ) from None
        except Exception as error:
            raise ValueError(_broken(name, error)) from error
    if not path.is_file():
        raise FileNotFoundError(f"there is no plug-in {name}; give a Python file, or the name of a module.")
    # Two files of one name are two plug-ins.
    called = f"spigot_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    known = sys.modules.get(called)
    if known is not None and known.__file__ == str(path.resolve()):
        return known
    spec = importlib.util.spec_from_file_location(called, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[called] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[called]
        if not isinstance(error, Exception):
            raise
        raise ValueError(_broken(name, error)) from error
    return module


def _broken(name: str, error: Exception) -> str:
    """What is wrong with a plug-in, and where in it."""
    own = str(Path(name).resolve())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    place = "" if line is None else f" in line {line}"
    what = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"the plug-in {name} cannot be loaded: {type(error).__name__}{place}: {what.rstrip('.')}."


def load_announced() -> list[str]:
    """Import the plug-ins that installed packages announce, and say which."""
    found = list(entry_points(group=GROUP))
    for entry in found:
        entry.load()
    return [entry.name for entry in found]


def load_inherited() -> None:
    """Import the plug-ins that whoever started this process named, and those that are announced.

    Example:
        >>> load_inherited()
    """
    for name in filter(None, os.environ.get(PLUGINS, "").split(os.pathsep)):
        load_plugin(name)
    load_announced()
