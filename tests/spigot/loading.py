"""Which modules a process has loaded."""

import subprocess
import sys
import textwrap

HEAVY = ("torch", "numpy", "scipy", "matplotlib", "pydantic", "jinja2")


def loaded(code: str, *names: str) -> set[str]:
    """Which of some modules a new process has after some code, which may end it."""
    script = f"""
    import atexit, sys
    atexit.register(lambda: print("\\nloaded:", *(name for name in {names!r} if name in sys.modules)))
    """
    script = textwrap.dedent(script) + code
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])
