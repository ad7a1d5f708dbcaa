"""Formats: files of sentences, read and written byte for byte."""

from spigot_nlp.data.formats.formats import FORMATS, Format, FormatError, guess, read, write, write_several

__all__ = ["FORMATS", "Format", "FormatError", "guess", "read", "write", "write_several"]
