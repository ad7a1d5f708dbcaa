r"""The white space of tokenised text: kept beside the words, written to CoNLL-U, and put back.

In CoNLL-U it stands in the last column: `SpaceAfter=No` where nothing follows a word, and the usual `SpacesAfter` and
`SpacesBefore` where it is more than one space, with `\s`, `\t`, `\n`, `\r`, `\p` (a bar) and `\\`; `\uXXXX` is any
other.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.tokens import is_contraction

_MARKS = ("'", "\u2019")
_QUOTES = (*_MARKS, "\u2018", "`")


def contractions(forms: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The words that are one token in the English treebanks of Universal Dependencies.

    Args:
        forms: Words.
        after: The white space after each of them.

    Returns:
        Where each of these tokens begins, and where it ends, in the manner of slices.

    Example:
        >>> contractions(["I", "should", "n't", "'ve", "."], [" ", "", "", "", ""])
        [(1, 4)]
        >>> contractions(["the", "boys", "'", "room"], [" ", "", " ", ""])
        [(1, 3)]
    """
    found: list[tuple[int, int]] = []
    opened = False
    for k in range(len(forms)):
        form = forms[k]
        apart = k == 0 or bool(after[k - 1])
        if form in _MARKS and not apart and not opened and after[k] and forms[k - 1][-1:].lower() == "s":
            joined = True  # a possessive, since there is no quotation for it to close
        else:
            joined = not apart and is_contraction(forms[k - 1], form)
        if joined:
            first = found.pop()[0] if found and found[-1][1] == k else k - 1
            found.append((first, k + 1))
        elif form in _QUOTES:
            opened = apart
    return found


_NAMES = {" ": r"\s", "\t": r"\t", "\n": r"\n", "\r": r"\r", "|": r"\p", "\\": "\\\\"}
_CHARACTERS = {name: character for character, name in _NAMES.items()}
RANGE = re.compile(r"(\d+)-(\d+)\t([^\t]*)")
"""The beginning of the line of a multiword token: its first and last word, and how it is written."""
_NAME = re.compile(r"\\u[0-9a-fA-F]{4}|\\[stnrp\\]")


@dataclass(frozen=True, slots=True)
class Spacing:
    r"""The white space of a sentence, kept as its `source`: with the forms, it is the text.

    Attributes:
        before: What stands before the first token, if no sentence before it has that already.
        after: What follows each token, up to the next one.

    Example:
        >>> detokenise(Sentence(("It", "'s", "late"), source=Spacing("\n", ("", "  ", ""))))
        "\nIt's  late"
    """

    before: str
    after: tuple[str, ...]


def detokenise(found: Sentence | Iterable[Sentence]) -> str:
    r"""The text that sentences came from, to the last character.

    Args:
        found: A sentence, or all those of a text, from `spigot_nlp.data.text.raw.sentences`, or from CoNLL-U. There,
            the words of a multiword token are joined, which is right unless the token is spelt otherwise.

    Raises:
        ValueError: A sentence has no record of its white space.

    Example:
        >>> from spigot_nlp.data.text.raw import sentences
        >>> detokenise(sentences("Rain fell.  It's late.\n"))
        "Rain fell.  It's late.\n"
    """
    if isinstance(found, Sentence):
        found = [found]
    return "".join(part for sentence in found for part in _parts(sentence))


def _parts(sentence: Sentence) -> Iterator[str]:
    spacing = spacing_of(sentence)
    yield spacing.before
    for form, space in zip(sentence.forms, spacing.after, strict=True):
        yield form
        yield space


def spaces_after(sentence: Sentence) -> tuple[str, ...]:
    """What follows each word: known, or a space between any two.

    Example:
        >>> spaces_after(Sentence(("Rain", "fell")))
        (' ', '')
    """
    if not has_spacing(sentence):
        return (*((" ",) * (len(sentence) - 1)), *([""] * bool(sentence)))
    return spacing_of(sentence).after


def has_spacing(sentence: Sentence) -> bool:
    """Whether there is a record of its white space: in sentences of plain text, and of CoNLL-U.

    Example:
        >>> has_spacing(Sentence(("Rain", "fell")))
        False
    """
    source = sentence.source
    return isinstance(source, Spacing) or (
        isinstance(source, ConllSource) and source.universal and source.size == len(sentence)
    )


def spaced(sentence: Sentence, *, ends: bool = False) -> Sentence:
    """A sentence with a `Spacing` as its source: what is known of its white space, or a space after each of its words.

    Args:
        sentence: The sentence.
        ends: Whether the text ends with it, so that no space follows the last one.

    Example:
        >>> spaced(Sentence(("Rain", "fell"))).source
        Spacing(before='', after=(' ', ' '))
    """
    if isinstance(sentence.source, Spacing):
        return sentence
    if has_spacing(sentence):
        return replace(sentence, source=spacing_of(sentence))
    return replace(sentence, source=Spacing("", spaces_after(sentence) if ends else (" ",) * len(sentence)))


def with_ids(sentences: Iterable[Sentence], taken: Iterable[str] = ()) -> Iterator[Sentence]:
    """Sentences that all have an id: their own, or else their number, or the next one that is no id so far.

    Ids that they have stay as they are, also if two have one.

    Args:
        sentences: The sentences, as a stream.
        taken: Ids that are given to none of them.

    Example:
        >>> [sentence.id for sentence in with_ids([Sentence(("So",), id="2"), Sentence(("It",)), Sentence(("be",))])]
        ['2', '3', '4']
    """
    seen = {id for id in taken if id.isdecimal()}  # no other can be met
    number = 0
    for sentence in sentences:
        number += 1
        if not sentence.id:
            while str(number) in seen:
                number += 1
            sentence = replace(sentence, id=str(number))
        elif sentence.id.isdecimal():
            seen.add(sentence.id)
        yield sentence


def with_text(sentence: Sentence) -> Sentence:
    r"""A sentence from plain text, so that CoNLL-U is written with its `# text`, white space and multiword tokens.

    Args:
        sentence: A sentence with a `Spacing` as its source; any other is returned as it is.

    Example:
        >>> from spigot_nlp.data.formats.conll import render_conllu
        >>> sentence = Sentence(("So", "?"), source=Spacing("", ("", "\n\n")))
        >>> print(render_conllu(with_text(sentence))[0].replace("\t", " "))
        # text = So?
        1 So _ _ _ _ _ _ _ SpaceAfter=No
        2 ? _ _ _ _ _ _ _ SpacesAfter=\n\n
        >>> sentence = Sentence(("Do", "n't", "!"), source=Spacing("", ("", "", "")))
        >>> print(render_conllu(with_text(sentence))[0].replace("\t", " "))
        # text = Don't!
        1-2 Don't _ _ _ _ _ _ _ SpaceAfter=No
        1 Do _ _ _ _ _ _ _ _
        2 n't _ _ _ _ _ _ _ _
        3 ! _ _ _ _ _ _ _ SpaceAfter=No
    """
    spacing = sentence.source
    if not isinstance(spacing, Spacing):
        return sentence
    forms = sentence.forms
    text = "".join(form + (" " if space else "") for form, space in zip(forms, spacing.after, strict=True))
    misc = [_cell(space) for space in spacing.after]
    ranges = contractions(forms, spacing.after)
    # What surrounds a multiword token stands on its line, and its words have nothing around them.
    lines = {first: misc[last - 1] for first, last in ranges}
    for first, last in ranges:
        misc[first:last] = ["_"] * (last - first)
    if spacing.before:
        cells = lines if 0 in lines else misc
        rest = "" if cells[0] == "_" else f"|{cells[0]}"
        cells[0] = f"SpacesBefore={_escaped(spacing.before)}{rest}"
    empty = "\t".join("_" * 7)
    others = tuple(
        (first, f"{first + 1}-{last}\t{''.join(forms[first:last])}\t{empty}\t{lines[first]}") for first, last in ranges
    )
    comments = (f"# text = {text.rstrip(' ')}",)
    source = ConllSource(True, len(sentence), comments=comments, misc=tuple(misc), others=others)
    return replace(sentence, source=source)


def _cell(space: str) -> str:
    if space == " ":
        return "_"
    return f"SpacesAfter={_escaped(space)}" if space else "SpaceAfter=No"


def _escaped(space: str) -> str:
    # No white space, and nothing that is white space for the reader of a table, is outside of the first planes.
    return "".join(_NAMES.get(character) or f"\\u{ord(character):04x}" for character in space)


def _plain(cell: str) -> str:
    return _NAME.sub(lambda match: _CHARACTERS.get(match[0]) or chr(int(match[0][2:], 16)), cell)


def spacing_of(sentence: Sentence) -> Spacing:
    r"""The white space of a sentence.

    Args:
        sentence: A sentence of plain text or of a CoNLL file.

    Raises:
        ValueError: If there is no record of it.

    Example:
        >>> spacing_of(with_text(Sentence(("Do", "n't"), source=Spacing(" ", ("", "\t")))))
        Spacing(before=' ', after=('', '\t'))
    """
    source = sentence.source
    if isinstance(source, ConllSource):
        return _read(source, len(sentence))
    if not isinstance(source, Spacing):
        raise ValueError(
            f"sentence {' '.join(sentence.forms[:8])!r} has no record of its white space; give sentences of "
            "spigot_nlp.data.text.raw.sentences, or of a CoNLL-U file."
        )
    return source


def _read(source: ConllSource, size: int) -> Spacing:
    cells = list(source.misc or ("_",) * size)
    first = cells[0]
    for before, line in source.others:
        if match := RANGE.match(line):  # what follows a multiword token follows its last word
            last, cell = int(match[2]), line.rsplit("\t", 1)[1]
            cells[before:last] = ["SpaceAfter=No"] * (last - before - 1) + [cell]
            first = first if before else f"{cell}|{first}"
    values = list(map(_values, cells))
    usual = ("" if value.get("SpaceAfter") == "No" else " " for value in values)
    pairs = zip(values, usual, strict=True)
    after = (_plain(value["SpacesAfter"]) if "SpacesAfter" in value else space for value, space in pairs)
    return Spacing(_plain(_values(first).get("SpacesBefore", "")), tuple(after))


def _values(cell: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in cell.split("|"))}
