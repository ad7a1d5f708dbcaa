"""Standard output that cannot show every character: drawings, tables and words still come through."""

import codecs
import io
import unicodedata
from typing import TextIO

_LIKENESS = str.maketrans(
    {
        **dict.fromkeys("─╌┄┈−–—", "-"),
        **dict.fromkeys("│╎┆┊┃╵╷", "|"),
        **dict.fromkeys("┌┐└┘╭╮╰╯┏┓┗┛┼├┤┬┴", "+"),
        **dict.fromkeys("▼▽", "v"),
        **dict.fromkeys("▲△", "^"),
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("“”", '"'),
        "━": "=",
        "▸": ">",
        "→": ">",
        "✓": "+",
        "✗": "x",
        "×": "x",
        "·": ".",
        "±": "+-",
    }
)
_HANDLER = "spigot.likeness"


def show_what_can_be_shown(stream: TextIO | None) -> None:
    """Let a stream write what is most like a character that its encoding lacks, where it would fail otherwise.

    Args:
        stream: Standard output. One that was given a way of its own (`PYTHONIOENCODING=ascii:replace`) keeps it.

    Example:
        >>> stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        >>> show_what_can_be_shown(stream)
        >>> _ = stream.write("┌─ naïve ─▼ 東")
        >>> stream.flush()
        >>> stream.buffer.getvalue()
        b'+- naive -v ?'
    """
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors=_HANDLER)


def _like(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(map(_alike, lost)), error.end


def _alike(character: str) -> str:
    likeness = character.translate(_LIKENESS)
    if likeness.isascii():
        return likeness
    if unicodedata.combining(character):
        return ""
    letter = unicodedata.normalize("NFKD", character)[0]
    return letter if letter.isascii() else "?"


codecs.register_error(_HANDLER, _like)
