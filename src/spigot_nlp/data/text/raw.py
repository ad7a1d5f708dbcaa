r"""Plain text as sentences: of any size, in any pieces, with all its characters accounted for.

A sentence ends at a full stop, question or exclamation mark that is not that of an abbreviation, at a blank line,
before an item of a list, and at the full stops of other scripts. A single line break ends none by itself, since lines
are wrapped. A stretch of `LONGEST` tokens without any end is cut, after a comma or the like if there is one, so that
neither memory nor a parser, whose time grows with the cube of the length, is at the mercy of what it is given.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.spacing import Spacing, detokenise
from spigot_nlp.data.text.tokens import (
    CLOSERS,
    EMOJI,
    MONTHS,
    NUMBERED,
    SPACE,
    STARTERS,
    TITLES,
    WORDS,
    split,
    tokenise,
)

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


__all__ = ["LONGEST", "Spacing", "Splitter", "detokenise", "sentences", "tokenise"]

LONGEST = 250
"""Tokens in a sentence. The longest of the English Web Treebank has some 160."""

_STRETCH = re.compile(rf"([^{SPACE}]*+)([{SPACE}]*+)")
_WIDEST = 1000  # characters of text without space; more is cut
_PIECE = 1 << 16
_BETWEEN = ((), (" ",), ("", " "))  # what follows the tokens of a word, by their number
_SOFT = frozenset(",;:-\u2013\u2014\u3001\uff0c\u060c")


def sentences(
    source: str | Iterable[str],
    *,
    lines: bool = False,
    tokenised: bool = False,
    hyphens: bool = True,
    cannot: bool = True,
) -> Iterator[Sentence]:
    """The sentences of a text, as they come.

    Only what is not yet a whole sentence is held, so a text of any size takes little memory. The answer does not
    depend on how the text is cut into pieces. A text without any word has no sentence.

    Args:
        source: The text, or its pieces one after another: the lines of a file, say.
        lines: Whether each line is a sentence; then no sentence is cut, however long it is.
        tokenised: Whether there is a space between all tokens already, so that nothing is taken apart.
        hyphens: Whether words are cut at hyphens; see `tokenise`.
        cannot: Whether `cannot` is two words.

    Returns:
        Sentences with their forms, and a `Spacing` as their source.

    Example:
        >>> [sentence.forms for sentence in sentences("Dr. No didn't come. Why?")]
        [('Dr.', 'No', 'did', "n't", 'come', '.'), ('Why', '?')]
    """
    splitter = Splitter(lines=lines, tokenised=tokenised, hyphens=hyphens, cannot=cannot)
    if isinstance(source, str):
        text = source
        source = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    elif isinstance(source, bytes | bytearray):
        raise TypeError("the text is in bytes; decode it first, with text.decode() for instance.")
    for piece in source:
        if not isinstance(piece, str):
            raise TypeError(f"the pieces of a text are strings, and one of these is {type(piece).__name__!r}.")
        yield from splitter.feed(piece)
    yield from splitter.close()


@dataclass
class Splitter:
    r"""Finds sentences in text that arrives piece by piece.

    Attributes:
        lines: Whether each line is a sentence.
        tokenised: Whether there is a space between all tokens already.
        hyphens: Whether words are cut at hyphens.
        cannot: Whether `cannot` is two words.
        eager: Whether a sentence that a line break follows is handed out at once, for people who wait; or else when
            the next one begins, so that all the white space between belongs to it.

    Example:
        >>> splitter = Splitter(eager=True)
        >>> [sentence.forms for sentence in splitter.feed("So be it.\nAnd th")]
        [('So', 'be', 'it', '.')]
        >>> [sentence.forms for sentence in splitter.feed("en?") + splitter.close()]
        [('And', 'then', '?')]
    """

    lines: bool = False
    tokenised: bool = False
    hyphens: bool = True
    cannot: bool = True
    eager: bool = False
    _rest: str = field(default="", init=False, repr=False)
    _before: str = field(default="", init=False, repr=False)
    _forms: list[str] = field(default_factory=list, init=False, repr=False)
    _spaces: list[str] = field(default_factory=list, init=False, repr=False)

    def feed(self, piece: str) -> list[Sentence]:
        """The sentences that are complete with another piece of the text.

        Args:
            piece: What comes next; of any length.
        """
        text = self._rest + piece if self._rest else piece
        found: list[Sentence] = []
        end = 0
        forms, spaces, hyphens, cannot = self._forms, self._spaces, self.hyphens, self.cannot
        words = not (self.lines or self.tokenised)
        for match in _STRETCH.finditer(text):
            stretch, space = match.groups()
            if not space:  # where the text ends, in the middle of a stretch for all we know
                break
            if (
                # A word after a word. Most are, and nothing can end between them, so that they need no closer look.
                space == " "
                and words
                and forms
                and spaces[-1] == " "
                and forms[-1].isalnum()
                and stretch.isalpha()
                and stretch.isascii()
                and len(stretch) <= _WIDEST
            ):
                tokens = split(stretch, hyphens, cannot)
                forms += tokens
                spaces += _BETWEEN[len(tokens)]
                if len(forms) >= LONGEST:
                    self._shorten(found)
            else:
                if len(stretch) > _WIDEST:
                    stretch = self._cut(stretch, found)
                self._take(stretch, space, found)
            end = match.end()
        self._rest = self._cut(text[end:], found)
        return found

    def close(self) -> list[Sentence]:
        """The sentences that end where the text does."""
        found: list[Sentence] = []
        if self._rest:
            self._take(self._cut(self._rest, found), "", found)
        self._rest = ""
        if self._forms:
            self._emit(len(self._forms), found)
        return found

    def _cut(self, stretch: str, found: list[Sentence]) -> str:
        """What is left of a stretch when all that is too wide has been taken."""
        start = 0
        while len(stretch) - start > _WIDEST:
            end = start + _WIDEST
            while end > start + _WIDEST // 2 and _sticks(stretch[end]):
                end -= 1
            self._take(stretch[start:end], "", found)
            start = end
        return stretch[start:]

    def _take(self, stretch: str, space: str, found: list[Sentence]) -> None:
        forms, spaces = self._forms, self._spaces
        if not stretch:
            if forms:
                spaces[-1] += space
            else:
                self._before += space
        else:
            if forms and self._ends(stretch):
                self._emit(len(forms), found)
            tokens = (stretch,) if self.tokenised else split(stretch, self.hyphens, self.cannot)
            if tokens[:2] == ("al", ".") and len(tokens) > 2 and forms and forms[-1].lower() == "et":
                tokens = ("al.", *tokens[2:])  # before a comma, say; `keeps_stop` sees to the others
            forms += tokens
            more = len(tokens) - 1
            if more:
                spaces += [""] * more
                if more > 1 and not self.lines:
                    self._break_inside(stretch, tokens, found)
            spaces.append(space)
            if len(forms) >= LONGEST and not self.lines:
                self._shorten(found)
        if self.eager and forms and space and line_breaks(space) and self._is_over():
            self._emit(len(forms), found)

    def _ends(self, following: str) -> bool:
        """Whether what was taken so far is a sentence, with this text after it."""
        space = self._spaces[-1]
        if self.lines:
            return line_breaks(space) > 0
        if space == " " and self._forms[-1].isalnum():
            return False
        if not space:  # in the middle of a stretch that was cut
            return False
        if line_breaks(space) > 1:  # whatever the words are, so that a text can be cut here
            return True
        forms, spaces = self._forms, self._spaces
        if (
            len(forms) > 1
            and forms[-1] == "."
            and not spaces[-2]
            and not self.tokenised
            and keeps_stop(forms, following)
        ):
            forms[-2:], spaces[-2:] = [f"{forms[-2]}."], spaces[-1:]
            return False
        return ends(forms, spaces, following)

    def _is_over(self) -> bool:
        """Whether the sentence ends here if another one may begin: not after an abbreviation that a name may follow."""
        if self.lines or line_breaks(self._spaces[-1]) > 1:
            return True
        return all(ends(self._forms, self._spaces, following) for following in ("The", "Poe"))

    def _break_inside(self, stretch: str, tokens: tuple[str, ...], found: list[Sentence]) -> None:
        before = len(self._forms) - len(tokens)
        for count in inner_ends(stretch, tokens):
            self._emit(before + count, found)
            before = -count

    def _shorten(self, found: list[Sentence]) -> None:
        """Hands out a sentence that has become too long, up to the last good place to cut it."""
        forms, spaces = self._forms, self._spaces
        while len(forms) >= LONGEST:
            places = range(LONGEST - 1, LONGEST // 2, -1)
            lines = (k for k in places if line_breaks(spaces[k - 1]))
            soft = (k for k in places if forms[k - 1] in _SOFT and spaces[k - 1])
            spaced = (k for k in places if spaces[k - 1])
            place = next(lines, 0) or next(soft, 0) or next(spaced, LONGEST - 1)
            self._emit(place, found)

    def _emit(self, count: int, found: list[Sentence]) -> None:
        forms, spaces = self._forms[:count], self._spaces[:count]
        if not self.tokenised:
            _part_full_stop(forms, spaces)
        found.append(Sentence(tuple(forms), source=Spacing(self._before, tuple(spaces))))
        self._before = ""
        del self._forms[:count], self._spaces[:count]


def _part_full_stop(forms: list[str], spaces: list[str]) -> None:
    """Gives a sentence that ends in an abbreviation a full stop of its own, as the treebanks do."""
    k = last_word(forms, spaces)
    if forms[k][-1] == "." and forms[k][0].isalnum():
        forms[k : k + 1] = [forms[k][:-1], "."]
        spaces.insert(k, "")


def _sticks(character: str) -> bool:
    """Whether a character belongs to the one before it."""
    return unicodedata.category(character)[0] == "M" or character in "\u200c\u200d"
