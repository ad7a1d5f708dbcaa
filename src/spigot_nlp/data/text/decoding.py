"""Bytes that arrive piece by piece as text, with the place of what cannot be text."""

import codecs
import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from spigot_nlp.data.formats.files import FormatError

Errors: TypeAlias = Literal["strict", "replace"]
"""What to do about bytes that are no text: complain, or put U+FFFD in their place."""

# With its mark, or without: every other byte of what is mostly ASCII is 0.
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|(?:[^\0]\0){2}|(?:\0[^\0]){2}", re.DOTALL)


@dataclass
class Decoder:
    """Decodes UTF-8.

    Attributes:
        name: What messages call the source.
        errors: Whether bytes that are no UTF-8 are an error, or become U+FFFD each.

    Example:
        >>> decoder = Decoder("notes.txt")
        >>> [decoder.feed(piece) for piece in (b"caf", b"\\xc3", b"\\xa9")] + [decoder.close()]
        ['caf', '', 'é', '']
        >>> decoder.feed(b"\\nna\\xefve")
        Traceback (most recent call last):
        spigot_nlp.data.formats.files.FormatError: notes.txt:2: byte 0xef, byte 9 of the input, is not UTF-8; \
convert it to UTF-8, or have such bytes replaced (--errors replace).
    """

    name: str
    errors: Errors = "strict"
    _bytes: int = field(default=0, init=False, repr=False)
    _lines: int = field(default=0, init=False, repr=False)
    _decoder: codecs.IncrementalDecoder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(self.errors)

    def feed(self, piece: bytes) -> str:
        """The text of what comes next, as far as its characters are complete.

        Raises:
            FormatError: Some byte is not UTF-8; it says which.
        """
        return self._decode(piece, False)

    def close(self) -> str:
        """The rest of the text.

        Raises:
            FormatError: The last character is not complete.
        """
        return self._decode(b"", True)

    def _decode(self, piece: bytes, final: bool) -> str:
        if not self._bytes and self.errors == "strict" and _UTF_16.match(piece):
            raise FormatError(self.name, 1, "UTF-16, not UTF-8; convert it to UTF-8.")
        waiting = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            place = self._bytes - waiting + error.start + 1
            line = self._lines + error.object.count(b"\n", 0, error.start) + 1
            raise FormatError(
                self.name,
                line,
                f"byte 0x{error.object[error.start]:02x}, byte {place:,} of the input, is not UTF-8; convert it to "
                "UTF-8, or have such bytes replaced (--errors replace).",
            ) from None
        self._bytes += len(piece)
        self._lines += piece.count(b"\n")
        return text
