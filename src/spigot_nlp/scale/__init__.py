"""Corpora of any size: parsed in pieces by many workers, here or on a Ray cluster, every document once."""

from spigot_nlp.scale.corpus import Options, Progress, parse_corpus
from spigot_nlp.scale.datasets import parse
from spigot_nlp.scale.ledger import Manifest, read_manifest
from spigot_nlp.scale.pieces import Counts

__all__ = ["Counts", "Manifest", "Options", "Progress", "parse", "parse_corpus", "read_manifest"]
