"""The configurations that come with spigot, by name."""

import difflib
import os
from pathlib import Path

from spigot_nlp.toml import brief

_FOLDER = Path(__file__).parent


def shipped_configs() -> dict[str, Path]:
    """The files of the experiments that come with spigot, by name.

    Example:
        >>> shipped_configs()["synthetic"].name
        'synthetic.toml'
    """
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def find_config(given: str | Path) -> Path:
    """The file of a configuration.

    Args:
        given: A file, which wins; or the name of a configuration that comes with spigot, also as it stands in the
            documents: `synthetic`, `synthetic.toml` or `configs/synthetic.toml`.

    Raises:
        OSError: If there is neither; it says which names there are.

    Example:
        >>> find_config("configs/synthetic.toml") == find_config("synthetic") == shipped_configs()["synthetic"]
        True
        >>> find_config("synthetics")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        FileNotFoundError: there is no configuration synthetics (did you mean synthetic?); give a TOML file, or ...
    """
    path = Path(given)
    if os.path.exists(path) and not os.path.isdir(path):  # of which a name can be too long for a file
        return path
    known = shipped_configs()
    name = path.name.removesuffix(".toml")
    if name in known and path.parent in (Path(), Path("configs")):
        return known[name]
    advice = f"give a TOML file, or one of {', '.join(known)}."
    if os.path.isdir(path):
        raise IsADirectoryError(f"{given} is a folder, not a configuration; {advice}")
    near = difflib.get_close_matches(name, known, n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise FileNotFoundError(f"there is no configuration {brief(given)}{meant}; {advice}")
