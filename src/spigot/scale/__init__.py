"""Corpora of any size: parsed in pieces by many workers, here or on a Ray cluster, every document once."""

from spigot.scale.corpus import Options, Progress, parse_corpus
from spigot.scale.datasets import parse
from spigot.scale.ledger import Manifest, read_manifest
from spigot.scale.pieces import Counts

__all__ = ["Counts", "Manifest", "Options", "Progress", "parse", "parse_corpus", "read_manifest"]
