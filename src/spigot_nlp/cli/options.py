"""The options of a command, and what to say about one that it does not have."""

import difflib
import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence

import cyclopts

from spigot_nlp.plugins import PLUGINS

SETTINGS = "settings"
"""What commands call the words that may be settings of a configuration, and so cannot be judged here."""

_ALWAYS = ("--help", "-h", "--version", "--debug", "--plugin")
_OPTION = re.compile(r"--?[^\W\d]")  # not - and not a negative number


def options_of(command: Callable[..., object]) -> list[str]:
    """What a command takes, as it is written: `--threads`, `-o`.

    Example:
        >>> def draw(file: str, /, *, out: str = "", as_svg: bool = False) -> None: ...
        >>> options_of(draw)
        ['--out', '--as-svg', '--no-as-svg', '--help', '-h', '--version', '--debug', '--plugin']
    """
    app = cyclopts.App()
    app.default(command)
    arguments = app.assemble_argument_collection()
    return [*(name for argument in arguments for name in argument.names if name.startswith("-")), *_ALWAYS]


def plugin_options() -> str:
    """The plug-ins of this process as options, for a command that is to be given again.

    Example:
        >>> plugin_options()
        ''
    """
    names = filter(None, os.environ.get(PLUGINS, "").split(os.pathsep))
    return "".join(f" --plugin {shlex.quote(name)}" for name in names)


def unknown_option(command: Callable[..., object], words: Sequence[str]) -> str:
    """What to say about the first option that a command does not have, lest it be taken for a file; or nothing.

    Args:
        command: The command.
        words: What stands after its name.

    Example:
        >>> def draw(*files: str, threads: int = 1) -> None: ...
        >>> unknown_option(draw, ["-", "a.conllu", "--thread", "1"])
        'there is no option --thread; did you mean --threads?'
        >>> unknown_option(draw, ["a.conllu", "--threads=1", "--", "--odd-name"])
        ''
    """
    if SETTINGS in inspect.signature(command).parameters:
        return ""
    known = options_of(command)
    for word in words:
        if word == "--":  # what follows is no option, whatever it looks like
            break
        name = word.partition("=")[0]
        short = not word.startswith("--") and word[:2] in known  # with its value behind it, as in -o-
        if _OPTION.match(word) and name not in known and not short:
            return f"there is no option {name}{suggestion(name, known) or '.'}"
    return ""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Which option may be meant, as the end of a sentence; nothing if none is near.

    Example:
        >>> suggestion("--treads", ["--threads", "--out"]), suggestion("--colour", ["--out"])
        ('; did you mean --threads?', '')
    """
    near = difflib.get_close_matches(name.replace("_", "-"), list(known), n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""
