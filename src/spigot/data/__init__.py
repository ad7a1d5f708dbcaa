"""Sentences: reading, writing, tagging, generating, and turning them into batches."""

from importlib import import_module
from typing import TYPE_CHECKING

from spigot.data.enhanced import enhanced_graph
from spigot.data.formats import FORMATS, FormatError, read, write
from spigot.data.join import join
from spigot.data.merge import merge
from spigot.data.sentence import Arc, Graph, Sentence

if TYPE_CHECKING:
    from spigot.data.tagging.lemmas import Lemmatiser, annotate
    from spigot.data.tagging.tagger import Tagger, jackknife
else:

    def __getattr__(name: str) -> object:
        """Load the tagger and the lemmatiser when they are asked for: numpy and word lists come with them."""
        module = {"Lemmatiser": "lemmas", "annotate": "lemmas", "Tagger": "tagger", "jackknife": "tagger"}.get(name)
        if module is None:
            raise AttributeError(f"module 'spigot.data' has no attribute {name!r}")
        return getattr(import_module(f"spigot.data.tagging.{module}"), name)


__all__ = [
    "FORMATS",
    "Arc",
    "FormatError",
    "Graph",
    "Lemmatiser",
    "Sentence",
    "Tagger",
    "annotate",
    "enhanced_graph",
    "jackknife",
    "join",
    "merge",
    "read",
    "write",
]
