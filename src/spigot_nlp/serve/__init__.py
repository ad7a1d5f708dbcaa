"""A local page to explore trained systems, and its JSON interface, as an ASGI application."""

from typing import TYPE_CHECKING

from spigot_nlp.serve.api import Api, Metrics
from spigot_nlp.serve.application import create_app, from_environment, openapi
from spigot_nlp.serve.batching import Batcher, Busy
from spigot_nlp.serve.requests import Refused
from spigot_nlp.serve.server import Server
from spigot_nlp.serve.settings import Limits, Settings
from spigot_nlp.serve.systems import Served, open_systems

if TYPE_CHECKING:
    from starlette.applications import Starlette

    app: Starlette

__all__ = [
    "Api",
    "Batcher",
    "Busy",
    "Limits",
    "Metrics",
    "Refused",
    "Served",
    "Server",
    "Settings",
    "app",
    "create_app",
    "from_environment",
    "open_systems",
    "openapi",
]


def __getattr__(name: str) -> object:
    """`app` is made when it is asked for, from the variables of the process."""
    if name == "app":
        globals()["app"] = from_environment()
        return globals()["app"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
