"""`spigot` and `python -m spigot`: what has to be settled before anything is loaded."""

import os
import sys


def main() -> int:
    """Run the command of this process.

    Returns:
        The exit code.
    """
    # Threads that wait sleep instead of spinning: on a busy machine those that spin keep the one they wait for from
    # running. Read when torch is loaded; a choice of the user's own stands.
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        from spigot import cli
        from spigot.cli.streams import show_what_can_be_shown

        show_what_can_be_shown(sys.stdout)
        return cli.main()
    except KeyboardInterrupt:  # while the commands are being loaded
        print("spigot: interrupted.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
