"""How much room a text takes, whatever it is written in, and what stands in for characters that cannot be drawn."""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_SIGN = "\ufffd"
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
# They reorder what follows them, beyond the word they stand in.
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# How wide letters are in most sans serif fonts, in sizes of the font.
_THIN = frozenset("iljtfrI.,;:'`|!()[]{}/\\ ")
_BROAD = frozenset("mwMW@%&")


def visible(text: str) -> str:
    r"""The text with a visible sign for every character that has no shape of its own or that XML does not allow.

    Control characters become their pictures, halves of surrogate pairs, non-characters and marks that would turn the
    writing direction around become a replacement character, and a text that begins with a combining mark gets a
    circle to carry it.

    Args:
        text: Anything.

    Returns:
        A text of at least one character.

    Example:
        >>> visible("a\tb\x9f\ud800"), visible("")
        ('a␉b��', '∅')
    """
    if text.isascii() and text.isprintable() and text:
        return text
    shown = "".join(_shown(character) for character in text) or "∅"
    return f"\u25cc{shown}" if next(clusters(shown))[1] == 0 else shown


def _shown(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _BIDI or code & 0xFFFE == 0xFFFE:
        return _SIGN
    return character


def clusters(text: str) -> Iterator[tuple[str, int]]:
    r"""The characters as a reader counts them, with the columns each takes in a terminal.

    A letter and the marks on it are one, and so are the parts of an emoji.

    Args:
        text: What to divide.

    Returns:
        Pieces that together are the text, and 0, 1 or 2 for each; 0 only for marks with nothing to stand on.

    Example:
        >>> [(len(cluster), width) for cluster, width in clusters("e\u0301家👩\u200d🚀")]
        [(2, 1), (1, 2), (3, 2)]
    """
    held, width, flag = "", 0, False
    for character in text:
        own = _columns(character)
        is_flag = "\U0001f1e6" <= character <= "\U0001f1ff"
        if held and (own == 0 or held[-1] == _JOINER or (is_flag and flag)):
            held += character
            width = 2 if character == _EMOJI_STYLE or (is_flag and flag) else max(width, own)
            flag = False
            continue
        if held:
            yield held, width
        held, width, flag = character, own, is_flag
    if held:
        yield held, width


def _columns(character: str) -> int:
    if character < "\x7f":
        return 1
    code = ord(character)
    # Vowels and final consonants of Hangul stand inside the syllable; a skin tone colours the emoji before it.
    if 0x1160 <= code <= 0x11FF or 0x1F3FB <= code <= 0x1F3FF:
        return 0
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    r"""How many columns of a terminal a text takes.

    Args:
        text: One line, as `visible` gives it.

    Example:
        >>> columns("naïve"), columns("東京"), columns("👩\u200d🚀")
        (5, 4, 2)
    """
    return len(text) if text.isascii() else sum(width for _, width in clusters(text))


@lru_cache(maxsize=4096)
def ems(text: str) -> float:
    """About how wide a text is in a sans serif font, in sizes of the font; rather too much than too little.

    Args:
        text: One line, as `visible` gives it.

    Example:
        >>> ems("ill") < ems("arm") < ems("東京")
        True
    """
    return sum(_em(cluster, width) for cluster, width in clusters(text))


def _em(cluster: str, width: int) -> float:
    if width == 2:
        return 1.15 if ord(cluster[0]) >= 0x1F000 else 1.02
    if cluster[0] in _THIN:
        return 0.36
    if cluster[0] in _BROAD:
        return 0.92
    if cluster[0].isascii():
        return 0.68 if cluster[0].isupper() else 0.58
    return 0.72


def shorten(text: str, limit: int) -> str:
    """A text of at most so many columns, with an ellipsis if it was cut.

    Args:
        text: One line, as `visible` gives it.
        limit: The columns it may take, at least 1.

    Example:
        >>> shorten("compound", 20), shorten("compound", 5)
        ('compound', 'comp…')
    """
    if columns(text) <= limit:
        return text
    kept, used = "", 0
    for cluster, width in clusters(text):
        if used + width >= limit:
            break
        kept, used = kept + cluster, used + width
    return f"{kept}…"
