"""Text in, documents out: a trained system as a function of text, and what it found, token by token."""

from spigot_nlp.documents.document import Doc, DocSentence, Token
from spigot_nlp.documents.reader import TextParser, load

__all__ = ["Doc", "DocSentence", "TextParser", "Token", "load"]
