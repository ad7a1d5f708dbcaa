"""A local page to explore trained systems, and its JSON interface."""

from spigot.serve.api import Api
from spigot.serve.batching import Batcher, Busy
from spigot.serve.query import Limits, Refused
from spigot.serve.server import Server
from spigot.serve.systems import Served, open_systems

__all__ = ["Api", "Batcher", "Busy", "Limits", "Refused", "Served", "Server", "open_systems"]
