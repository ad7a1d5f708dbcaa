"""Where English sentences end, and a few others: the decision between two stretches of text.

A decision looks at the tokens before a space, the space, and the text after it, and at nothing further away.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from spigot_nlp.data.text.abbreviations import MONTHS, NUMBERED, STARTERS, TITLES, WORDS
from spigot_nlp.data.text.tokens import CLOSERS, EMOJI

_DOTS = frozenset(".\u2026")
_ENDS = frozenset(".!?\u2026\u061f\u06d4\u0964\u0965\u0589\u1362\u203c\u2047\u2048\u2049\u3002\uff01\uff0e\uff1f\uff61")
_STOPS = (".", "!", "?")
_WIDE = frozenset("\u3002\uff01\uff0e\uff1f\uff61")  # no space follows them
_CLOSERS = frozenset(CLOSERS)
_TRAILING = (_CLOSERS | _ENDS) - frozenset("\"'\u2019")
_FACE = re.compile(rf"[<>]?[:;=][-o^'*]?[]()[DPpO|/\\]+|\([-o^']?[:;=]|</?3+|\^[_.-]*\^|xD+|{EMOJI}.*", re.IGNORECASE)

_LINE = re.compile("\r\n|[\n\r\v\x85\u2028]")
_PAGE = re.compile("[\f\x1c\x1d\u2029]")
_BULLET = re.compile(r"[-*+\u2022\u00b7\u25aa\u25e6\u2023\u2013\u2014\u25cf\u25a0]|\(?(?:\d{1,3}|[a-zA-Z])\)|\d{1,3}\.")
_BEFORE_WORD = re.compile(r"[^\w\s]*")
_GLUED = re.compile(r"[a-z]{2,}[.!?]+[A-Z][a-z]|[a-z]{2,}[.!?]+[AI]$|[a-z]{2,}\.[a-z]{2,}")
_HOURS = ("a.m", "p.m")
_OFTEN_LAST = ("etc", *_HOURS)
_REMARKS = ("p.s", "ps")
_ZONE = re.compile(r"(?:[ECMP][SD]?T|GMT|UTC)\b")
_AFTER_NAMES = ("st", "sr")  # Main St., Bob Sr.; before a name they are titles
_RULE = re.compile(r"([=*_~#-])\1{2,}")
_ROMAN = re.compile(r"(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3})(?!\w)(?<!\bI)")
_BEFORE_ITEMS = (":", "*", "\u2022")
_ITEM = re.compile(r"\d{1,3}|[^\W\d_]|[IVX]{1,4}")


def line_breaks(space: str) -> int:
    r"""How many lines end in a space between words; the end of a page or paragraph counts as two.

    Example:
        >>> line_breaks(" \r\n "), line_breaks("\n\n"), line_breaks("\f"), line_breaks(" ")
        (1, 2, 2, 0)
    """
    if space == " ":
        return 0
    return len(_LINE.findall(space)) + 2 * len(_PAGE.findall(space))


def last_word(forms: Sequence[str], spaces: Sequence[str]) -> int:
    """The place of the last token that does more than close a quotation or bracket.

    Args:
        forms: Tokens.
        spaces: What follows each of them.

    Example:
        >>> last_word(["(", "Yes", ".", ")"], ["", "", "", " "])
        2
    """
    k = len(forms) - 1
    while k > 0 and _CLOSERS.issuperset(forms[k]) and not spaces[k - 1]:
        k -= 1
    return k


def ends(forms: Sequence[str], spaces: Sequence[str], following: str) -> bool:
    """Whether a sentence ends after some tokens.

    Args:
        forms: The tokens of the sentence so far.
        spaces: What follows each of them; after the last, there is some.
        following: The text that comes next, up to a space.

    Example:
        >>> ends(["at", "5", "p.m."], [" ", " ", " "], "The"), ends(["Mr."], [" "], "The"), ends(["so"], [" "], "The")
        (True, False, False)
    """
    last = forms[-1]
    lines = line_breaks(spaces[-1])
    if lines > 1 or (lines and (_BULLET.fullmatch(following) or _is_ruled(forms, spaces))):
        return True
    k = last_word(forms, spaces)
    last, closed = forms[k], k < len(forms) - 1
    if _adds_nothing(following):
        # An ellipsis after a whole sentence stands for what is left out before the next.
        return last in _STOPS and len(following) > 1 and _DOTS.issuperset(following)
    bracketed = following[0] in "(["
    following = following[_BEFORE_WORD.match(following).end() :] or following  # pyright: ignore[reportOptionalMemberAccess]
    if not k and len(last) > 1 and _DOTS.issuperset(last):
        return False  # it opens a sentence
    if _ENDS.issuperset(last):
        if last in _DOTS and k:
            before = forms[k - 1]
            if not spaces[k - 1] and is_numbered(before, following):
                return False
            if not spaces[k - 1] and _ITEM.fullmatch(before) and (k == 1 or forms[k - 2] in _BEFORE_ITEMS):
                return False  # the number of a list item
        if following[0].islower():
            return not closed and not (_DOTS.issuperset(last) and last != ".")
        return True
    if last[-1] == "." and last[0].isalnum():
        if not k and _ITEM.fullmatch(last[:-1]):
            return False  # the letter of a list item, or an initial
        return not closed and not bracketed and _ends_with(last[:-1], following)
    return k > 0 and following[0].isupper() and _FACE.fullmatch(last) is not None


def _is_ruled(forms: Sequence[str], spaces: Sequence[str]) -> bool:
    """Whether the last token is a line of its own that underlines a heading, or parts two paragraphs."""
    return _RULE.fullmatch(forms[-1]) is not None and (len(forms) == 1 or line_breaks(spaces[-2]) > 0)


@lru_cache(maxsize=1 << 12)
def _adds_nothing(stretch: str) -> bool:
    """Whether a stretch can only belong to the sentence before it: an emoticon, a bracket, another full stop."""
    return _FACE.fullmatch(stretch) is not None or _TRAILING.issuperset(stretch)


def _ends_with(abbreviation: str, following: str) -> bool:
    """Whether a sentence ends in an abbreviation, by what comes next."""
    low = abbreviation.lower()
    if not following[0].isupper() or (low in TITLES and low not in _AFTER_NAMES) or low in _REMARKS:
        return False
    if low in _HOURS and _ZONE.match(following):
        return False
    opens = _opens(following)
    if len(low) == 1:
        return abbreviation == "I" or (opens and following[1:2].isalnum())
    return opens or low in _OFTEN_LAST


def _opens(following: str) -> bool:
    """Whether a word with a capital opens a sentence even after an abbreviation."""
    word = re.split(r"\W", following, maxsplit=1)[0]
    return word[:1].isupper() and word.lower() in STARTERS and (len(word) > 1 or word in "IA")


def keeps_stop(forms: Sequence[str], following: str) -> bool:
    """Whether a full stop that was taken for the end of a sentence is that of the word before it after all.

    Args:
        forms: The tokens so far; the last is the full stop.
        following: The text that comes next.

    Example:
        >>> keeps_stop(["See", "No", "."], "5")
        True
        >>> keeps_stop(["et", "al", "."], "say"), keeps_stop(["et", "al", "."], "We")
        (True, False)
    """
    if is_numbered(forms[-2], following):
        return True
    return [form.lower() for form in forms[-3:-1]] == ["et", "al"] and not _opens(following)


def is_numbered(word: str, following: str) -> bool:
    """Whether a full stop between a word and what follows is that of an abbreviation, as in `No. 5` or `Sat. 12`.

    Example:
        >>> is_numbered("No", "5"), is_numbered("Vol", "II,"), is_numbered("No", "Five"), is_numbered("cat", "5")
        (True, True, False, False)
    """
    low = word.lower()
    if not following[:1].isdecimal():
        return low in NUMBERED and _ROMAN.match(following) is not None
    return low in NUMBERED or (low in MONTHS and low in WORDS and word[0].isupper())


@lru_cache(maxsize=1 << 12)
def inner_ends(stretch: str, forms: tuple[str, ...]) -> tuple[int, ...]:
    """Where sentences end inside a stretch without space: after how many of its tokens.

    That is so in scripts without spaces, and where somebody forgot one: `over.The`.

    Args:
        stretch: The text.
        forms: Its tokens.

    Example:
        >>> inner_ends("over.The", ("over", ".", "The")), inner_ends("v2.The", ("v2", ".", "The"))
        ((2,), ())
    """
    if _WIDE.isdisjoint(stretch) and not _GLUED.search(stretch):
        return ()
    found = []
    for k in range(1, len(forms)):
        end = k - 1
        while end > 0 and _CLOSERS.issuperset(forms[end]):
            end -= 1
        if not _ENDS.issuperset(forms[end]) or _CLOSERS.issuperset(forms[k]) or _ENDS.issuperset(forms[k]):
            continue
        wide = not _WIDE.isdisjoint(forms[end])
        glued = end == k - 1 and k >= 2 and _GLUED.match(f"{forms[k - 2]}{forms[k - 1]}{forms[k]}")
        if wide or glued:
            found.append(k)
    return tuple(found)
