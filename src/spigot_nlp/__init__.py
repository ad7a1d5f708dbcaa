"""NLP systems of stages and wires, on the layer of `spigot`.

Nothing is loaded before it is asked for: `spigot --help` does not wait for torch.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

_NEEDED = (
    *("cyclopts", "jinja2", "matplotlib", "prometheus_client", "pydantic", "rich"),
    *("safetensors", "simplemma", "starlette", "tomli_w", "uvicorn"),
)

if _missing := [name for name in _NEEDED if find_spec(name) is None]:
    _sentence = f'spigot_nlp needs {", ".join(_missing)}; install it with pip install "torch-spigot[nlp]".'
    if Path(*sys.argv[:1]).name in ("spigot", "-m"):  # the command, which says so without a traceback
        sys.exit(f"spigot: {_sentence}")
    raise ModuleNotFoundError(_sentence, name=_missing[0])

_PUBLIC = {
    "Parser": "spigot_nlp.models",
    "evaluate": "spigot_nlp.scoring",
    "resume": "spigot_nlp.training",
    "trace": "spigot_nlp.models.trace",
    "train": "spigot_nlp.training",
}
"""The names that one starts with, and where they are."""

if TYPE_CHECKING:  # what editors and type checkers see; none of it runs
    from spigot_nlp import config, data, evaluation, models, nn, training
    from spigot_nlp.models import Parser
    from spigot_nlp.models.trace import trace
    from spigot_nlp.scoring import evaluate
    from spigot_nlp.training import resume, train

    load = Parser.load
else:  # a type checker that saw this would take any name for a public one

    def __getattr__(name: str) -> object:
        """Load a public name or a module of the package when it is first asked for."""
        if name == "load":
            from spigot_nlp.garbage import gc_paused

            with gc_paused():
                value = globals()[name] = import_module("spigot_nlp.models").Parser.load
            return value
        if name in _PUBLIC:
            value = globals()[name] = getattr(import_module(_PUBLIC[name]), name)
            return value
        if name.startswith("_") or find_spec(f"spigot_nlp.{name}") is None:  # tools ask any module for such names
            raise AttributeError(f"module 'spigot_nlp' has no attribute {name!r}")
        return import_module(f"spigot_nlp.{name}")

    def __dir__() -> list[str]:
        modules = (module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
        return sorted({*globals(), "load", *_PUBLIC, *modules})
