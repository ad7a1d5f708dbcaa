"""The trained systems that come with spigot, by name."""

import difflib
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spigot_nlp.toml import brief, read_toml

_FOLDER = Path(__file__).parent
_CARD, _CONFIG = "card.toml", "config.toml"

DEFAULT = "en"
"""The model that commands use where none is named."""


class Shadowed(UserWarning):
    """A run folder is called like a model that comes with spigot."""


@dataclass(frozen=True)
class Card:
    """What is known about a model that comes with spigot.

    Attributes:
        name: What it is called.
        about: What it finds, in a sentence.
        licence: Under which terms it may be used and passed on.
        data: What it was trained on, each with its source and licence.
        scores: What it was measured by, under the name of the measure; per cent.
        limits: What it cannot do, and must not be used for.
        training: How it was made: the command, the commit, the time.
        folder: Where it is.

    Example:
        >>> card = Card("en", "Trees.", "CC BY-SA 4.0", folder=Path("nowhere"))
        >>> card.name, card.megabytes
        ('en', 0.0)
    """

    name: str
    about: str
    licence: str
    data: tuple[str, ...] = ()
    scores: dict[str, float] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    training: dict[str, Any] = field(default_factory=dict)
    folder: Path = field(default=Path(), compare=False)

    @property
    def megabytes(self) -> float:
        """How large its files are."""
        return sum(path.stat().st_size for path in self.folder.glob("*") if path.is_file()) / 1e6


def bundled_models() -> dict[str, Path]:
    """The folders of the models that come with spigot, by name.

    Example:
        >>> all((folder / "config.toml").exists() for folder in bundled_models().values())
        True
    """
    return {path.parent.name: path.parent for path in sorted(_FOLDER.glob(f"*/{_CONFIG}"))}


def default_model() -> Path:
    """The folder of the model that is used where none is named, whatever else is called like it.

    Example:
        >>> default_model().name
        'en'
    """
    return bundled_models().get(DEFAULT, Path(DEFAULT))


def name_of(run: str | os.PathLike[str]) -> str:
    """What messages call a run: the name of a model that comes with spigot, and the path of any other.

    Example:
        >>> name_of(default_model()), name_of("runs/first")
        ('en', 'runs/first')
    """
    path = Path(run)
    return path.name if path.parent == _FOLDER else str(path)


def card(name: str) -> Card:
    """What is known about one of them.

    Raises:
        FileNotFoundError: If there is none of that name.

    Example:
        >>> card("latin")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        FileNotFoundError: no model called latin comes with spigot; ...
    """
    models = bundled_models()
    if name not in models:
        raise FileNotFoundError(f"no model called {brief(name)} comes with spigot; {_advice(name)}")
    values = read_toml(models[name] / _CARD)
    for key in ("data", "limits"):
        values[key] = tuple(values.get(key, ()))
    return Card(name=name, folder=models[name], **values)


def is_model(run: str | os.PathLike[str]) -> bool:
    """Whether something is a run folder, or the name of a model that comes with spigot.

    Example:
        >>> is_model("book.txt")
        False
    """
    return os.path.exists(Path(run) / _CONFIG) or os.fspath(run) in bundled_models()


def run_folder(run: str | os.PathLike[str]) -> Path:
    """The folder of a run, or of a model that comes with spigot; a run folder of that name wins, and it is said.

    Args:
        run: A folder, or the name of a model.

    Raises:
        FileNotFoundError: If there is neither.

    Warns:
        Shadowed: If there is both.

    Example:
        >>> run_folder("nowhere")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        FileNotFoundError: nowhere is no run folder: it has no config.toml. Train one with spigot train...
    """
    path, models = Path(run), bundled_models()
    if os.path.exists(path / _CONFIG):  # of which a name can be too long for a file
        if os.fspath(run) in models:
            warnings.warn(
                f"{path} is a run folder here and the name of a model that comes with spigot; the folder is used. "
                "Rename it to use the model.",
                Shadowed,
                stacklevel=1,  # from one place, so that it is said once
            )
        return path
    if os.fspath(run) in models:
        return models[os.fspath(run)]
    known = f", or use a model that comes with spigot: {', '.join(models)}" if models else ""
    raise FileNotFoundError(f"{brief(path)} is no run folder: it has no {_CONFIG}. Train one with spigot train{known}.")


def base_folder(base: str) -> Path:
    """The folder of the model that another one builds on. One that comes with spigot wins, wherever one stands.

    Example:
        >>> base_folder("en") == default_model()
        True
    """
    return bundled_models().get(base) or run_folder(base)


def _advice(name: str) -> str:
    models = bundled_models()
    near = difflib.get_close_matches(name, models, n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    return f"there are {', '.join(models)}{meant}." if models else "there are none in this installation."
