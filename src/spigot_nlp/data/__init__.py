"""Sentences: reading, writing, tagging, generating, and turning them into batches."""

from importlib import import_module
from typing import TYPE_CHECKING

from spigot_nlp.data.formats import FORMATS, FormatError, read, write
from spigot_nlp.data.sentence import Arc, Graph, Sentence

if TYPE_CHECKING:
    from spigot_nlp.data.combine import join, merge
    from spigot_nlp.data.enhanced import enhanced_graph
    from spigot_nlp.data.tagging.lemmas import Lemmatiser, annotate
    from spigot_nlp.data.tagging.tagger import Tagger, jackknife
else:
    _LATER = {
        "Lemmatiser": "tagging.lemmas",
        "annotate": "tagging.lemmas",
        "Tagger": "tagging.tagger",
        "jackknife": "tagging.tagger",
        "enhanced_graph": "enhanced",
        "join": "combine",
        "merge": "combine",
    }

    def __getattr__(name: str) -> object:
        """Load what only some need when it is asked for: numpy and word lists come with the tagger."""
        if name not in _LATER:
            raise AttributeError(f"module 'spigot_nlp.data' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"spigot_nlp.data.{_LATER[name]}"), name)
        return value


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
