"""Formats: files of sentences, read and written byte for byte."""

from spigot_nlp.data.formats.formats import FORMATS, Format, FormatError, Writer, guess, read, write

__all__ = ["FORMATS", "Format", "FormatError", "Writer", "guess", "read", "write"]
