"""`spigot` and `python -m spigot_nlp`: what has to be settled before anything is loaded."""

import os
import signal
import sys
from types import FrameType


def _terminate(number: int, frame: FrameType | None) -> None:
    """Ends the command as Ctrl-C does, so that it takes away what it has half written. Once is enough."""
    signal.signal(number, signal.SIG_IGN)
    print("spigot: terminated.", file=sys.stderr)
    sys.exit(128 + number)


def main() -> int:
    """Run the command of this process.

    Returns:
        The exit code.
    """
    # Threads that wait sleep instead of spinning: on a busy machine those that spin keep the one they wait for from
    # running. Read when torch is loaded; a choice of the user's own stands.
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["OMP_WAIT_POLICY"] = "passive"
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # what was ignored stays so
        signal.signal(signal.SIGTERM, _terminate)
    try:
        from spigot_nlp import cli
        from spigot_nlp.cli.streams import show_what_can_be_shown

        show_what_can_be_shown(sys.stdout)
        return cli.main()
    except KeyboardInterrupt:  # while the commands are being loaded
        print("spigot: interrupted.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
