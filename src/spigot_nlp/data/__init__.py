"""Sentences: reading, writing, tagging, generating, and turning them into batches."""

from importlib import import_module
from typing import TYPE_CHECKING

from spigot_nlp.data.enhanced import enhanced_graph
from spigot_nlp.data.formats import FORMATS, FormatError, read, write
from spigot_nlp.data.join import join
from spigot_nlp.data.merge import merge
from spigot_nlp.data.sentence import Arc, Graph, Sentence

if TYPE_CHECKING:
    from spigot_nlp.data.tagging.lemmas import Lemmatiser, annotate
    from spigot_nlp.data.tagging.tagger import Tagger, jackknife
else:

    def __getattr__(name: str) -> object:
        """Load the tagger and the lemmatiser when they are asked for: numpy and word lists come with them."""
        module = {"Lemmatiser": "lemmas", "annotate": "lemmas", "Tagger": "tagger", "jackknife": "tagger"}.get(name)
        if module is None:
            raise AttributeError(f"module 'spigot_nlp.data' has no attribute {name!r}")
        return getattr(import_module(f"spigot_nlp.data.tagging.{module}"), name)


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
