"""`python -m spigot`."""

import sys

from spigot.cli import main

if __name__ == "__main__":
    sys.exit(main())
