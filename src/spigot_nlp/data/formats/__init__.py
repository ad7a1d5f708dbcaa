"""Reading and writing sentences, whatever the file: the format by name, gzip or not, path or stream."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TextIO, cast

from spigot_nlp.data.formats import conll, json_lines, lines, sdp, sst
from spigot_nlp.data.formats.files import (
    Block,
    FormatError,
    Layout,
    Location,
    Malformed,
    Stream,
    decode,
    is_text,
    opened,
    require,
    split_blocks,
    split_lines,
    written,
)
from spigot_nlp.data.sentence import Sentence

__all__ = ["FORMATS", "Format", "FormatError", "Writer", "guess", "read", "write"]


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is read and written.

    Attributes:
        parse: Turns a block of lines into a `Sentence`, or into any number of them; raises `Malformed` where it
            cannot, and before the first of several.
        render: Turns a sentence into its text, without the last line's end, and the white space around it. It is
            told whether the sentence opens the file.
        suffixes: The ends of file names that mean this format.
        by_line: Whether every line is a block of its own; or else blocks are separated by blank lines.
        header: What a file without any sentence holds.
        variant: Names the format that a first block is really in, where a suffix stands for several.

    Example:
        >>> FORMATS["conllu"].suffixes
        ('.conllu',)
    """

    parse: Callable[[Block], Sentence | Iterable[Sentence]]
    render: Callable[[Sentence, bool], tuple[str, Layout]]
    suffixes: tuple[str, ...] = ()
    by_line: bool = False
    header: str = ""
    variant: Callable[[Block], str] | None = None


FORMATS: dict[str, Format] = {
    "conllx": Format(conll.parse_conllx, conll.render_conllx, (".conllx", ".conll")),
    "conllu": Format(conll.parse_conllu, conll.render_conllu, (".conllu",)),
    "sdp": Format(sdp.parse_sdp, sdp.render_sdp, (".sdp",), header=f"{sdp.HEADER}\n", variant=sdp.variant),
    "sdp2014": Format(sdp.parse_sdp2014, sdp.render_sdp2014, (".sdp2014",)),
    "sst": Format(sst.parse_sst, sst.render_sst, by_line=True),
    "sst-binary": Format(sst.parse_sst_binary, sst.render_sst, by_line=True),
    "sst-phrases": Format(sst.parse_sst_phrases, sst.render_sst_phrases, by_line=True),
    "sst-binary-phrases": Format(sst.parse_sst_binary_phrases, sst.render_sst_phrases, by_line=True),
    "labelled": Format(lines.parse_labelled, lines.render_labelled, (".tsv",), by_line=True),
    "text": Format(lines.parse_text, lines.render_text, (".txt",), by_line=True),
    "jsonl": Format(json_lines.parse_jsonl, json_lines.render_jsonl, (".jsonl",), by_line=True),
}
"""Every format by its name. A new one is one entry."""


def guess(path: str | os.PathLike[str]) -> str:
    """The format that a file's name stands for.

    Args:
        path: The name, with or without `.gz`.

    Returns:
        A key of `FORMATS`.

    Raises:
        ValueError: The name ends like none of them.

    Example:
        >>> guess("corpus/train.conllu.gz")
        'conllu'
    """
    name = os.fspath(path).lower().removesuffix(".gz")
    for key, format in FORMATS.items():
        if name.endswith(format.suffixes):
            return key
    endings = ", ".join(f"{suffix} ({key})" for key, format in FORMATS.items() for suffix in format.suffixes)
    raise ValueError(f"{os.fspath(path)}: no format has names that end so; use {endings}, or name the format.")


def _find(format: str | None, location: Location) -> Format:
    if format is None:
        if not isinstance(location, str | os.PathLike):
            raise ValueError(
                f"a stream has no name to guess a format from; give format as one of {', '.join(FORMATS)}."
            )
        format = guess(location)
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; it must be one of {', '.join(FORMATS)}.")
    return FORMATS[format]


def read(
    path: Location, format: str | None = None, *, skip_bad: Callable[[FormatError], object] | None = None
) -> Iterator[Sentence]:
    """Reads sentences one after another, so that a file of any length takes little memory.

    Args:
        path: A file, gzipped or not, or an open stream of text or bytes, which is left open.
        format: A key of `FORMATS`; by default the one the name stands for, and for `.sdp` the contents.
        skip_bad: Told of each sentence that is not in the format, which is then left out. By default it is raised.

    Returns:
        The sentences, read as they are asked for.

    Raises:
        FormatError: A sentence is not in the format, or the file cannot be decompressed.
        FileNotFoundError: There is no such file.
        ValueError: The format is unknown.

    Example:
        >>> import io
        >>> text = "1\\tRain\\t_\\t_\\tNN\\t_\\t2\\tnsubj\\t_\\t_\\n2\\tfell\\t_\\t_\\tVBD\\t_\\t0\\troot\\t_\\t_\\n"
        >>> [sentence.heads for sentence in read(io.StringIO(text), "conllu")]
        [(2, 0)]
    """
    if isinstance(path, str | os.PathLike):
        require(path)  # before its name is looked at: one that is misspelt may end in anything
    found = _find(format, path)
    return _read(path, found, format is None, skip_bad)


def _read(
    location: Location, format: Format, guessed: bool, skip_bad: Callable[[FormatError], object] | None
) -> Iterator[Sentence]:
    split = split_lines if format.by_line else split_blocks
    with opened(location) as (found, name):
        for raw in split(found, name):
            try:
                block = decode(raw)
                if raw.opens and guessed and format.variant is not None:
                    format = FORMATS[format.variant(block)]
                parsed = format.parse(block)
            except Malformed as error:
                bad = FormatError(name, raw.first + error.offset, error.reason)
                if skip_bad is None:
                    raise bad from None
                skip_bad(bad)
                continue
            if isinstance(parsed, Sentence):
                yield parsed
            else:
                yield from parsed


def write(sentences: Iterable[Sentence], path: Location, format: str | None = None) -> int:
    """Writes sentences. What was read and not changed is written as it was, byte for byte.

    A file appears when it is complete: if anything fails before, whatever was there stays.

    Args:
        sentences: What to write.
        path: A file, gzipped if its name ends in `.gz`, or an open stream of text or bytes, which is left open.
        format: A key of `FORMATS`; by default the one the name stands for.

    Returns:
        How many sentences were written.

    Raises:
        ValueError: The format is unknown, or a sentence cannot be written in it.

    Example:
        >>> import io
        >>> stream = io.StringIO()
        >>> write([Sentence(("Rain", "fell"), heads=(2, 0))], stream, "conllx")
        1
        >>> stream.getvalue()
        '1\\tRain\\t_\\t_\\t_\\t_\\t2\\t_\\t_\\t_\\n2\\tfell\\t_\\t_\\t_\\t_\\t0\\t_\\t_\\t_\\n\\n'
    """
    found = _find(format, path)
    if isinstance(path, str | os.PathLike):
        with written(path) as file:
            return _write(sentences, found, file)
    return _write(sentences, found, path)


def _write(sentences: Iterable[Sentence], format: Format, stream: Stream) -> int:
    writer = Writer(format, stream)
    for sentence in sentences:
        writer.add(*format.render(sentence, not writer.count))
    writer.close()
    return writer.count


class Writer:
    """Puts rendered sentences into a file, one behind the other.

    Attributes:
        count: How many there are so far.
    """

    def __init__(self, format: Format, stream: Stream) -> None:
        self._format, self._stream, self._text = format, stream, is_text(stream)
        self._least = 1 if format.by_line else 2
        self.count, self._tail, self._newline, self._is_put = 0, "", "\n", False

    def add(self, text: str, layout: Layout) -> None:
        """A sentence: what the format's `render` gave."""
        lead = layout.lead
        if self.count:
            if not self._is_put:
                # The last sentence of a file may end without a blank line; here another one follows it.
                self._put(self._tail if self._separates else self._newline * self._least)
            lead = lead.lstrip("\ufeff")
        self._newline, self._tail, self._is_put = layout.newline, layout.tail, False
        self._put(lead + (text if layout.newline == "\n" else text.replace("\n", layout.newline)))
        self.count += 1

    @property
    def _separates(self) -> bool:
        return self._tail.count("\n") >= self._least and not self._tail.strip()

    def flush(self) -> None:
        """Put what separates the last sentence from the next, as far as that is known, for whoever waits for it."""
        if self.count and self._separates and not self._is_put:
            self._put(self._tail)
            self._is_put = True
        self._stream.flush()

    def close(self) -> None:
        """Put the end of the file."""
        if not self._is_put:
            self._put(self._tail if self.count else self._format.header)

    def _put(self, text: str) -> None:
        if self._text:
            cast(TextIO, self._stream).write(text)
        else:
            cast(BinaryIO, self._stream).write(text.encode())
