"""Corpora: read from files, divided and tagged as an experiment wants them."""

from spigot_nlp.corpora.settings import DATA_VARIABLE, Data, Files, Synthetic

__all__ = ["DATA_VARIABLE", "Data", "Files", "Synthetic"]
