"""Which version of spigot is at work, and which commit if that is known."""

import json
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import spigot

_PACKAGE = Path(spigot.__file__).parent


@cache
def origin() -> str:
    """The version, with the commit where the package was installed from one or is at work in a checkout.

    Example:
        >>> origin().startswith(f"spigot {spigot.__version__}")
        True
    """
    commit = _checked_out(_PACKAGE) or _installed()
    return f"spigot {spigot.__version__}" + (f", commit {commit}" if commit else "")


def _installed() -> str:
    """The commit that an installer wrote down."""
    try:
        record = json.loads(distribution("torch-spigot").read_text("direct_url.json") or "{}")
        return str(record["vcs_info"]["commit_id"])[:12]
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        return ""


def _checked_out(package: Path) -> str:
    """The commit of a checkout, and whether it was changed since; nothing if the package merely lies inside one."""
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return ""
    commit = _git(package, "rev-parse", "--short=12", "HEAD")
    changed = _git(package, "status", "--porcelain", "--", "..")
    return f"{commit}{' with changes' if changed else ''}" if commit else ""


def _git(folder: Path, *words: str) -> str | None:
    """What git says; `None` if it is not there, or complains."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
