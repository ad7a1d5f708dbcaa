"""Sentences: reading, writing, tagging, generating, and turning them into batches."""

from spigot.data.formats import FORMATS, FormatError, read, write
from spigot.data.lemmas import Lemmatiser, annotate
from spigot.data.merge import merge
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.tagger import Tagger, jackknife

__all__ = [
    "FORMATS",
    "Arc",
    "FormatError",
    "Graph",
    "Lemmatiser",
    "Sentence",
    "Tagger",
    "annotate",
    "jackknife",
    "merge",
    "read",
    "write",
]
