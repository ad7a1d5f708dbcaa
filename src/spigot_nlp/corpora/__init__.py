"""Corpora: read from files, or generated, divided and tagged as an experiment wants them."""

from spigot_nlp.corpora.settings import DATA_VARIABLE, Data, Files, ListOps, Synthetic

__all__ = ["DATA_VARIABLE", "Data", "Files", "ListOps", "Synthetic"]
