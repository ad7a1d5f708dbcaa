"""Discrete structures inside PyTorch networks, trained through their argmax.

The public names are those of the modules named in the first lines below, which list them. None is loaded before it is
asked for: `import spigot` does not wait for torch.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what editors and type checkers see; none of it runs
    from spigot import factors, kernels
    from spigot.estimators import *
    from spigot.factor_graphs import *
    from spigot.interface import *
    from spigot.layer import *
    from spigot.losses import *
    from spigot.polytopes import *
    from spigot.structures import *

    __all__: list[str]
    __version__: str
else:  # a type checker that saw this would take any name for a public one

    def __getattr__(name: str) -> object:
        """Load a public name or a module of the package when it is first asked for."""
        if name == "__all__":
            value = sorted({"factors", "kernels", *(public for module in _core() for public in module.__all__)})
        elif name == "__version__":
            value = _version()
        elif name.startswith("_"):  # tools ask any module for such names
            raise _unknown(name)
        elif find_spec(f"spigot.{name}") is not None:
            return import_module(f"spigot.{name}")
        elif (owner := next((module for module in _core() if name in module.__all__), None)) is not None:
            value = getattr(owner, name)
        else:
            raise _unknown(name)
        globals()[name] = value  # the next time it is found without asking here
        return value

    def __dir__() -> list[str]:
        modules = (module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
        return sorted({*globals(), *__getattr__("__all__"), *modules})


def _core() -> list[ModuleType]:
    """The modules whose public names are those of `spigot`, too."""
    names = ("estimators", "factor_graphs", "interface", "layer", "losses", "polytopes", "structures")
    return [import_module(f"spigot.{name}") for name in names]


def _unknown(name: str) -> AttributeError:
    return AttributeError(f"module 'spigot' has no attribute {name!r}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch-spigot")
    except PackageNotFoundError:  # a source tree on the path, not installed
        return "unknown"
