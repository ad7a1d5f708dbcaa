"""The command line: each command parses, calls the library and prints.

Results go to standard output, messages and progress to standard error. A failure is one message and a non-zero exit
code: 2 if the command was not understood, 1 if it could not be done. `--debug` shows the traceback instead.
"""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import cyclopts

import spigot
from spigot_nlp.bundled import Shadowed
from spigot_nlp.cli.console import is_first_process
from spigot_nlp.cli.options import unknown_option
from spigot_nlp.data.formats.files import FULL
from spigot_nlp.plugins import PLUGINS


def version() -> str:
    """The version, and whether the compiled kernels run.

    Example:
        >>> version().splitlines()[0] == f"spigot {spigot.__version__}"
        True
    """
    return f"spigot {spigot.__version__}\n{spigot.kernels.status()}"


app = cyclopts.App(
    name="spigot",
    help="Discrete structures inside PyTorch networks. --plugin FILE adds kinds of your own, --debug shows tracebacks.",
    version=version,
)
_COMMANDS = {
    "Train": ("convert:convert", "train:train"),
    "Use": ("parse:parse", "tag:tag", "models:models", "pack:pack"),
    "Measure": ("evaluate:evaluate", "compare:compare"),
    "Look": ("serve:serve", "report:report", "draw:draw"),
}
"""The modules of the commands, and their names. Only the one that is called is loaded, and all for their overview."""
for name, commands in _COMMANDS.items():
    group = cyclopts.Group.create_ordered(name)
    for command in commands:
        app.command(f"spigot_nlp.cli.{command}", group=group)
_NAMES = tuple(command.partition(":")[2] for commands in _COMMANDS.values() for command in commands)
_COMPLETION = "--install-completion"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The words after `spigot`; those of the process if omitted.

    Returns:
        The exit code.

    Example:
        >>> main(["--version"])  # doctest: +ELLIPSIS
        spigot ...
        0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    words, plugins = _divided(words)
    if words == ["--version"]:  # as it stands; the parser would wrap it like prose
        print(version())
        return 0
    try:
        if words[-1:] == ["--plugin"]:
            return _not_understood("--plugin has no value.", words)
        if _named(words) is None:
            _load_all()
        if reason := _unknown_option(words):
            return _not_understood(reason, words)
        _load_plugins(words, plugins)
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        with _our_warnings():
            command(*bound.args, **bound.kwargs)
    except cyclopts.CycloptsError as error:
        if debug:
            raise
        return _not_understood(_said(error), words)
    except KeyboardInterrupt as error:
        if is_first_process():
            print(f"spigot: {error if error.args else 'interrupted.'}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output has seen enough. Nothing more can be written, not even at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if debug:
            raise
        process = "" if is_first_process() else f" (process {os.environ['RANK']})"
        print(f"spigot{process}: {_message(error)}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _our_warnings() -> Iterator[None]:
    """Print warnings of our own as messages, and leave others to Python."""
    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, Shadowed):
            before(message, category, filename, lineno, file, line)
        elif is_first_process():
            print(f"spigot: {message}", file=sys.stderr)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def _divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command, and the plug-ins that are named among them by `--plugin`."""
    rest, plugins, waiting = [], [], False
    for word in words:
        if waiting:
            plugins.append(word)
        elif word.startswith("--plugin="):
            plugins.append(word.partition("=")[2])
        elif word != "--plugin":
            rest.append(word)
        waiting = word == "--plugin" and not waiting
    return [*rest, *(["--plugin"] if waiting else [])], plugins


def _load_plugins(words: Sequence[str], named: Sequence[str]) -> None:
    """Bring in the kinds of users, also those that whoever started this process named."""
    if _named(words) is None or {"--help", "-h"} & set(words):
        return
    from spigot_nlp.plugins import load_announced, load_plugin

    given = [name for name in os.environ.get(PLUGINS, "").split(os.pathsep) if name]
    plugins = list(
        dict.fromkeys([*given, *(os.path.abspath(name) if name.endswith(".py") else name for name in named)])
    )
    for name in plugins:
        load_plugin(name)
    if plugins:
        os.environ[PLUGINS] = os.pathsep.join(plugins)
    load_announced()


def _named(words: Sequence[str]) -> str | None:
    """The command that is called, if there is one of that name."""
    return words[0] if words and words[0] in _NAMES else None


def _load_all() -> None:
    """Load every command: the overview has the first line of each, and shells complete the options of all."""
    for name in _NAMES:
        app[name]
    if _COMPLETION not in app:
        app.register_install_completion_command(_COMPLETION, help="Let the shell complete commands and options.")


def _unknown_option(words: Sequence[str]) -> str:
    name = _named(words)
    command = None if name is None else app[name].default_command
    return "" if command is None or {"--help", "-h"} & set(words) else unknown_option(command, words[1:])


def _said(error: cyclopts.CycloptsError) -> str:
    """What the parser of the command line has to say, in one line."""
    if isinstance(error, cyclopts.MissingArgumentError) and error.argument is not None:
        option = error.argument.name.startswith("-") and not error.argument.required
        return f"{error.argument.name} {'has no value' if option else 'is missing'}."
    return " ".join(str(error).split())


def _not_understood(reason: str, words: Sequence[str]) -> int:
    program = " ".join(filter(None, ("spigot", _named(words))))
    print(f"spigot: {reason} See {program} --help.", file=sys.stderr)
    return 2


def _message(error: Exception) -> str:
    """What went wrong, in one line; what the system says about a file without its number."""
    if isinstance(error, OSError) and error.strerror:
        advice = "; make room, and go on: what was written before is whole." if error.errno in FULL else "."
        said = f"{error.strerror[0].lower()}{error.strerror[1:]}{advice}"
        return said if error.filename is None else f"{error.filename}: {said}"
    return str(error) or type(error).__name__
