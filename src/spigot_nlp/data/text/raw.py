r"""Plain text as sentences: of any size, in any pieces, with all its characters accounted for.

A sentence ends at a full stop, question or exclamation mark that is not that of an abbreviation, at a blank line,
before an item of a list, and at the full stops of other scripts. A single line break ends none by itself, since lines
are wrapped. A stretch of `LONGEST` tokens without any end is cut, after a comma or the like if there is one, so that
neither memory nor a parser, whose time grows with the cube of the length, is at the mercy of what it is given.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.boundaries import ends, inner_ends, keeps_stop, last_word, line_breaks
from spigot_nlp.data.text.spacing import Spacing, detokenise
from spigot_nlp.data.text.tokens import SPACE, split, tokenise

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
