"""What all programs of the workshop share: a function as a command, and its errors in one line."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn

import cyclopts


def main(command: Callable[..., object]) -> NoReturn:
    """Run a function with the words of the command line, and end the process.

    `--debug` shows where an error came from. The exit code is 2 if the command was not understood, 1 if it could not
    be done, and 130 if it was interrupted.
    """
    words = sys.argv[1:]
    debug = "--debug" in words
    app = cyclopts.App()
    app.default(command)
    try:
        app([word for word in words if word != "--debug"], exit_on_error=not debug)
    except KeyboardInterrupt as error:
        print(error if error.args else "interrupted.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (ValueError, OSError, RuntimeError, ModuleNotFoundError) as error:
        if debug:
            raise
        print(error, file=sys.stderr)
        sys.exit(1)
    sys.exit(0)
