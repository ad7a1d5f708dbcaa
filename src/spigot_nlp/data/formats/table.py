"""Tab-separated words: what the CoNLL and SDP formats share below the level of a sentence."""

from collections.abc import Sequence
from sys import intern

from spigot_nlp.data.formats.files import Block, Malformed, shown
from spigot_nlp.data.sentence import Graph, Sentence

_NAMES = [str(number) for number in range(513)]
_NUMBERS = {name: number for number, name in enumerate(_NAMES)}


def names(size: int) -> list[str]:
    """The numbers 1 to `size` as they are written."""
    if size >= len(_NAMES):
        for number in range(len(_NAMES), 2 * size):
            _NAMES.append(str(number))
            _NUMBERS[_NAMES[-1]] = number
    return _NAMES[1 : size + 1]


def numbers(size: int) -> dict[str, int]:
    """A dictionary from the written form of at least 0 to `size`, and of nothing like `+1` or `01`, to the number."""
    names(size)
    return _NUMBERS


def rows_of(block: Block) -> tuple[tuple[str, ...], list[list[str]]]:
    """The comments of a block, and the columns of each line after them."""
    lines = block.lines
    start = 0
    while start < len(lines) and lines[start][:1] == "#":
        start += 1
    if start == len(lines):
        raise Malformed(0, "comments without a sentence after them.")
    return tuple(lines[:start]), [line.split("\t") for line in lines[start:]]


def check_rows(rows: list[list[str]], start: int) -> None:
    """Blames what is wrong with a line in any of the formats."""
    for offset, row in enumerate(rows, start):
        if row[0].startswith("#"):
            raise Malformed(offset, "a comment inside a sentence; comments stand before the first word.")
        if not "".join(row).strip():
            raise Malformed(offset, "a line of white space only; an empty line separates two sentences.")
        if "" in row:
            column = row.index("") + 1
            raise Malformed(offset, f"column {column} is empty; an unknown value is written as `_`.")


def check_order(ids: Sequence[str], offsets: Sequence[int]) -> None:
    """Blames the first word that is not numbered one more than the word before it."""
    for found, wanted, offset in zip(ids, names(len(ids)), offsets, strict=True):
        if found != wanted:
            raise Malformed(offset, f"the word is numbered {shown(found)} where {wanted} is expected.")


def count(number: int, noun: str) -> str:
    """A number of things in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def known(column: tuple[str, ...]) -> tuple[str, ...] | None:
    """The values of a column, each text held once in memory; None if no word has one."""
    if column.count("_") == len(column):
        return None
    return tuple(map(intern, column))


def join_rows(columns: Sequence[Sequence[str]], where: str) -> list[str]:
    """One line for each word. The cells are checked, for a tab in a form would shift every column after it."""
    lines = list(map("\t".join, zip(*columns, strict=True)))
    text = "\n".join(lines)
    clean = text.count("\t") == len(lines) * (len(columns) - 1) and text.count("\n") == len(lines) - 1
    if not clean or "\r" in text or "\0" in text or any("" in column for column in columns):
        for column in columns:
            for word, cell in enumerate(column, 1):
                if not cell or any(character in cell for character in "\t\n\r\0"):
                    raise ValueError(
                        f"{where}, word {word}: {shown(cell)} cannot be written in a column; "
                        f"it must not be empty, nor hold a tab, a line break or a NUL."
                    )
    return lines


def find_cycle(heads: Sequence[int]) -> list[int]:
    """The words of a cycle of heads, each followed by its head; empty if they make a tree or a forest under 0."""
    settled = bytearray(len(heads) + 1)
    settled[0] = 1
    for word in range(1, len(heads) + 1):
        if settled[word]:
            continue
        path = []
        while not settled[word]:
            settled[word] = 2
            path.append(word)
            word = heads[word - 1]
        if settled[word] == 2:
            return path[path.index(word) :]
        for passed in path:
            settled[passed] = 1
    return []


def cycle_reason(cycle: list[int]) -> str:
    """A cycle in words."""
    if len(cycle) == 1:
        return f"word {cycle[0]} is its own head."
    chain = " -> ".join(map(str, [*cycle, cycle[0]] if len(cycle) <= 10 else [*cycle[:8], "...", cycle[0]]))
    return f"word {cycle[0]} is its own ancestor ({chain}), so the heads are not a tree."


def describe(sentence: Sentence) -> str:
    """The sentence as a message about it calls it."""
    if not sentence.forms:
        raise ValueError(f"sentence {shown(sentence.id)} has no words; a sentence without words cannot be written.")
    if sentence.id:
        if any(character in sentence.id for character in "\n\r\0"):
            raise ValueError(f"sentence {shown(sentence.id)}: an id stands on one line, without line breaks or NUL.")
        return f"sentence {shown(sentence.id)}"
    more = " ..." if len(sentence) > 4 else ""
    return f"sentence {shown(' '.join(sentence.forms[:4]))}{more}"


def check_graph(graph: Graph, size: int, where: str) -> None:
    """Blames an arc or a top that is not about words of the sentence."""
    for predicate, argument, role in graph.arcs:
        if not (1 <= predicate <= size and 1 <= argument <= size) or predicate == argument:
            raise ValueError(
                f"{where}: the arc {predicate} -{role}-> {argument} must join two different words from 1 to {size}."
            )
    for word in (*graph.tops, *graph.predicates):
        if not 1 <= word <= size:
            raise ValueError(f"{where}: top or predicate {word} must be a word from 1 to {size}.")
    if graph.frames and len(graph.frames) != size:
        raise ValueError(f"{where}: {len(graph.frames)} frames for {size} words; give one for each, `_` for none.")
