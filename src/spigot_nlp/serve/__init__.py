"""A local page to explore trained systems, and its JSON interface, as an ASGI application."""

from typing import TYPE_CHECKING

from spigot_nlp.serve.api import Api
from spigot_nlp.serve.application import create_app, from_environment
from spigot_nlp.serve.batching import Batcher, Busy
from spigot_nlp.serve.metrics import Metrics
from spigot_nlp.serve.openapi import openapi
from spigot_nlp.serve.query import Limits, Refused
from spigot_nlp.serve.server import Certificate, Server
from spigot_nlp.serve.settings import Settings
from spigot_nlp.serve.systems import Served, open_systems

if TYPE_CHECKING:
    from starlette.applications import Starlette

    app: Starlette

__all__ = [
    "Api",
    "Batcher",
    "Busy",
    "Certificate",
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
