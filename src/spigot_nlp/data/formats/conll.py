"""CoNLL-X and CoNLL-U: a word on each line, ten columns, a syntactic tree.

The fields of a `Sentence` are written from the sentence; what it has no field for (comments, features,
multiword ranges, empty nodes) is kept in its `source`.

References:
    Buchholz and Marsi (2006), CoNLL-X shared task on multilingual dependency parsing, §3.
    The CoNLL-U format of Universal Dependencies, version 2.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from sys import intern

from spigot_nlp.data.formats.files import PLAIN, Block, Layout, Malformed, shown
from spigot_nlp.data.sentence import CLASS_NAME, Arc, Graph, Sentence

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


_COLUMNS = 10
# A number of ten digits is that of no word, and one of thousands is none that Python reads.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY = re.compile(r"(0|[1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")
_LABEL = re.compile(r"#\s*label\s*=\s*([0-9]{1,9})\s*")
_CLASS = re.compile(r"#\s*class\s*=.*")
_SENT_ID = re.compile(r"#\s*sent_id\s*=\s*(.*?)\s*")


@dataclass(frozen=True, slots=True)
class ConllSource:
    """What a CoNLL file says about a sentence that `Sentence` has no field for.

    Attributes:
        universal: CoNLL-U, or else CoNLL-X.
        size: How many words the sentence has.
        layout: The white space around it.
        comments: The lines before the first word.
        fine: Whether the sentence's tags are those of the fine-grained column, or else of the coarse one.
        features: The morphological features; None where a whole column is unknown, here and below.
        links: The enhanced dependencies, or projective heads, as they are written.
        misc: The last column.
        others: Lines that are no words, each with the number of words before it.
        graph: What the enhanced dependencies say; they are written back while the sentence still says the same.
    """

    universal: bool
    size: int
    layout: Layout = PLAIN
    comments: tuple[str, ...] = ()
    fine: bool = True
    features: tuple[str, ...] | None = None
    links: tuple[str, ...] | None = None
    misc: tuple[str, ...] | None = None
    others: tuple[tuple[int, str], ...] = ()
    graph: Graph | None = None


def parse_conllx(block: Block) -> Sentence:
    r"""Reads one sentence of a CoNLL-X file.

    Example:
        >>> block = Block(["1\tRain\train\tN\tNN\t_\t2\tsbj\t_\t_", "2\tfell\tfall\tV\tVBD\t_\t0\troot\t_\t_"])
        >>> parse_conllx(block).heads
        (2, 0)
    """
    return _parse(block, universal=False)


def parse_conllu(block: Block) -> Sentence:
    r"""Reads one sentence of a CoNLL-U file.

    Example:
        >>> block = Block(["# sent_id = s1", "1\tRun\trun\tVERB\tVB\t_\t0\troot\t0:root\t_"])
        >>> sentence = parse_conllu(block)
        >>> sentence.id, sentence.tags, sentence.graph.tops
        ('s1', ('VB',), (1,))
    """
    return _parse(block, universal=True)


def render_conllx(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    r"""The text of a sentence in CoNLL-X. CoNLL-X has no comments, so only those of its source are written.

    Example:
        >>> render_conllx(Sentence(("Go",), heads=(0,)))[0]
        '1\tGo\t_\t_\t_\t_\t0\t_\t_\t_'
    """
    return _render(sentence, universal=False)


def render_conllu(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    r"""The text of a sentence in CoNLL-U; a graph goes to the enhanced dependencies, a class to the comments.

    Example:
        >>> render_conllu(Sentence(("Go",), graph=Graph(tops=(1,)), id="s1"))[0]
        '# sent_id = s1\n1\tGo\t_\t_\t_\t_\t_\t_\t0:root\t_'
    """
    return _render(sentence, universal=True)


def bare(sentence: Sentence, *, tagged: bool = True) -> Sentence:
    r"""The same sentence, whose source has no annotation of its words either: only comments, ranges and white space.

    Args:
        sentence: The sentence.
        tagged: Whether its tags stay, in the column where they stand; others are fine-grained.

    Example:
        >>> line = "1\tRain\train\tNOUN\tNN\tNumber=Sing\t0\troot\t0:root\tSpaceAfter=No|Entity=(abstract)"
        >>> print(render_conllu(bare(parse_conllu(Block([line], True))).with_only({}))[0].replace("\t", " "))
        1 Rain rain NOUN NN _ _ _ _ SpaceAfter=No
    """
    source = sentence.source
    if not isinstance(source, ConllSource):
        return sentence
    misc = source.misc and known(tuple(_SPACED.get(cell) or _spaces(cell) for cell in source.misc))
    others = tuple((place, _spaced_range(line)) for place, line in source.others if _RANGE.match(line))
    blank = replace(
        source,
        fine=source.fine or not tagged,
        features=None,
        links=None,
        misc=misc,
        others=others,
        graph=None,
        comments=_unclassed(source.comments),
    )
    return replace(sentence, source=blank)


_SPACED = {"_": "_", "SpaceAfter=No": "SpaceAfter=No"}


def _unclassed(comments: tuple[str, ...]) -> tuple[str, ...]:
    """The comments but for those that tell the class of the sentence: its number, and its name right after that."""
    told = [bool(_LABEL.fullmatch(comment)) for comment in comments]
    named = [is_label and bool(_CLASS.fullmatch(after)) for is_label, after in zip(told, comments[1:], strict=False)]
    kept = zip(comments, told, (False, *named), strict=bool(comments))
    return tuple(comment for comment, is_label, is_name in kept if not (is_label or is_name))


def _spaced_range(line: str) -> str:
    """The line of a multiword token with no more than its word and its white space."""
    places, form, *_, misc = line.split("\t")
    return "\t".join((places, form, *"_" * (_COLUMNS - 3), _spaces(misc)))


def _spaces(cell: str) -> str:
    """What a cell of the last column says of white space."""
    return "|".join(part for part in cell.split("|") if part.startswith("Space")) or "_"


def _parse(block: Block, *, universal: bool) -> Sentence:
    comments, rows = rows_of(block)
    start = len(comments)
    if set(map(len, rows)) != {_COLUMNS}:
        check_rows(rows, start)
        for offset, row in enumerate(rows, start):
            if len(row) != _COLUMNS:
                raise Malformed(
                    offset, f"{count(len(row), 'column')} where {_COLUMNS}, separated by tabs, are expected."
                )
    offsets: Sequence[int] = range(start, start + len(rows))
    others: tuple[tuple[int, str], ...] = ()
    if [row[0] for row in rows] != names(len(rows)):
        check_rows(rows, start)
        if universal:
            rows, offsets, others = _set_apart(rows, start)
        check_order([row[0] for row in rows], offsets)
    columns = list(zip(*rows, strict=True))
    if any("" in column for column in columns):
        check_rows(rows, start)
    _, forms, lemmas, coarse, fine, features, heads, relations, links, misc = columns
    tags, upper = known(fine), known(coarse)
    graph = _graph(links, offsets) if universal else None
    source = ConllSource(
        universal=universal,
        size=len(forms),
        layout=block.layout,
        comments=comments,
        fine=tags is not None or upper is None,
        features=known(features),
        links=known(links),
        misc=known(misc),
        others=others,
        graph=graph,
    )
    return Sentence(
        forms=tuple(map(intern, forms)),
        lemmas=known(lemmas),
        tags=upper if tags is None else tags,
        upos=None if tags is None else upper,
        heads=_heads(heads, offsets),
        relations=known(relations),
        graph=graph,
        label=_label(comments) if universal else None,
        id=_id(comments),
        source=source,
    )


def _set_apart(rows: list[list[str]], start: int) -> tuple[list[list[str]], Sequence[int], tuple[tuple[int, str], ...]]:
    """The words, the offset of each, and the other lines: multiword ranges and empty nodes."""
    words: list[list[str]] = []
    offsets: list[int] = []
    others: list[tuple[int, str]] = []
    covered, ranges, empties = 0, 0, 0
    for offset, row in enumerate(rows, start):
        name = row[0]
        if name.isdecimal():
            words.append(row)
            offsets.append(offset)
            empties = 0
            continue
        before = len(words)
        if match := _RANGE.fullmatch(name):
            first, last = int(match[1]), int(match[2])
            if first != before + 1 or last < first or first <= covered:
                expected = f"a range that begins at {before + 1} and overlaps no other"
                raise Malformed(offset, f"the multiword range {shown(name)} where {expected} is expected.")
            covered, ranges = last, offset
        elif match := _EMPTY.fullmatch(name):
            empties += 1
            if (int(match[1]), int(match[2])) != (before, empties):
                raise Malformed(
                    offset, f"the empty node is numbered {shown(name)} where {before}.{empties} is expected."
                )
        else:
            raise Malformed(
                offset, f"{shown(name)} is no number of a word, no range such as 3-4, no empty node such as 3.1."
            )
        others.append((before, "\t".join(row)))
    if not words:
        raise Malformed(start, "the sentence has no words.")
    if covered > len(words):
        raise Malformed(ranges, f"the multiword range ends at {covered} but the sentence has {len(words)} words.")
    return words, offsets, tuple(others)


def _heads(column: tuple[str, ...], offsets: Sequence[int]) -> tuple[int, ...] | None:
    size = len(column)
    if column.count("_") == size:
        return None
    number_of = numbers(size)
    heads = tuple([number_of.get(head, -1) for head in column])
    if min(heads) < 0 or max(heads) > size:
        word = next(word for word, head in enumerate(heads, 1) if not 0 <= head <= size)
        expected = f"it must be a number from 0 to {size}, or `_` for every word"
        raise Malformed(offsets[word - 1], f"the head of word {word} is {shown(column[word - 1])}; {expected}.")
    if cycle := find_cycle(heads):
        raise Malformed(offsets[cycle[0] - 1], cycle_reason(cycle))
    return heads


def _graph(column: tuple[str, ...], offsets: Sequence[int]) -> Graph | None:
    size = len(column)
    if column.count("_") == size:
        return None
    arcs: list[Arc] = []
    for word, cell in enumerate(column, 1):
        if cell != "_":
            try:
                arcs += _arcs(word, cell)
            except ValueError as error:
                raise Malformed(offsets[word - 1], str(error)) from None
    arcs.sort()
    if arcs and arcs[-1].predicate > size:
        head, word, _ = arcs[-1]
        expected = f"it must be a number from 0 to {size}, or that of an empty node"
        raise Malformed(offsets[word - 1], f"an enhanced head of word {word} is {head}; {expected}.")
    tops = bisect_left(arcs, (1,))
    predicates = sorted({arc[0] for arc in arcs[tops:]})
    return Graph(tuple(arcs[tops:]), tuple([arc.argument for arc in arcs[:tops]]), tuple(predicates))


@lru_cache(maxsize=1 << 16)
def _arcs(word: int, cell: str) -> tuple[Arc, ...]:
    """The arcs of one enhanced cell, but for those from empty nodes, which a `Graph` cannot hold.

    Cells repeat, so remembering them saves most of the work, and equal arcs are one object.
    """
    arcs: list[Arc] = []
    parts = cell.split("|")
    for part in parts:
        head, _, label = part.partition(":")
        if not label or not (_NUMBER.fullmatch(head) or _EMPTY.fullmatch(head)):
            raise ValueError(f"the enhanced dependency {shown(part)} is not of the form HEAD:RELATION, as in 4:nsubj.")
        if "." not in head:
            arcs.append(Arc(int(head), word, intern(label)))
    if any(arc.predicate == word for arc in arcs):
        raise ValueError(f"word {word} is its own head in the enhanced dependencies {shown(cell)}.")
    if len(set(parts)) < len(parts) or sum(not arc.predicate for arc in arcs) > 1:
        raise ValueError(f"the enhanced dependencies {shown(cell)} name one arc twice.")
    return tuple(arcs)


def _id(comments: Iterable[str]) -> str:
    for comment in comments:
        if match := _SENT_ID.fullmatch(comment):
            return match[1]
    return ""


def _label(comments: Iterable[str]) -> int | None:
    for comment in comments:
        if match := _LABEL.fullmatch(comment):
            return int(match[1])
    return None


def _render(sentence: Sentence, *, universal: bool) -> tuple[str, Layout]:
    size = len(sentence)
    where = describe(sentence)
    source = sentence.source
    if not isinstance(source, ConllSource) or source.universal != universal or source.size != size:
        source = ConllSource(universal=universal, size=size)
    unknown = ("_",) * size
    tags = sentence.tags or unknown
    fine = source.fine or sentence.upos is not None
    others = source.others
    links = source.links or unknown
    if universal and sentence.graph != source.graph:
        # An empty node means nothing beside arcs that its own graph does not have.
        others = tuple(other for other in others if _RANGE.match(other[1]))
        links = unknown if sentence.graph is None else _cells(sentence.graph, size, where)
    rows = join_rows(
        (
            names(size),
            sentence.forms,
            sentence.lemmas or unknown,
            sentence.upos or (unknown if fine else tags),
            tags if fine else unknown,
            source.features or unknown,
            unknown if sentence.heads is None else _written_heads(sentence.heads, where),
            sentence.relations or unknown,
            links,
            source.misc or unknown,
        ),
        where,
    )
    # From the end, so that earlier places stay where they are.
    for before, line in reversed(others):
        rows.insert(before, line)
    comments = source.comments
    if sentence.id != _id(comments) and (universal or comments):
        comments = _renamed(comments, sentence.id)
    name = sentence.get(CLASS_NAME)  # if `with_class` has given it one
    if universal and (name is not None or sentence.label != _label(comments)):
        told = () if sentence.label is None else (f"# label = {sentence.label}",)
        named = () if name is None else (f"# class = {' '.join(name.split())}",)  # which may be any text
        comments = (*_unclassed(comments), *told, *named)
    return "\n".join((*comments, *rows)), source.layout


def _renamed(comments: tuple[str, ...], id: str) -> tuple[str, ...]:
    """The comments with another name for the sentence, in its old place."""
    place = next((place for place, comment in enumerate(comments) if _SENT_ID.fullmatch(comment)), 0)
    kept = [comment for comment in comments if not _SENT_ID.fullmatch(comment)]
    if id:
        kept.insert(place, f"# sent_id = {id}")
    return tuple(kept)


def _written_heads(heads: tuple[int, ...], where: str) -> tuple[str, ...]:
    size = len(heads)
    if min(heads) < 0 or max(heads) > size:
        word = next(word for word, head in enumerate(heads, 1) if not 0 <= head <= size)
        raise ValueError(
            f"{where}: the head of word {word} is {heads[word - 1]}; it must be a number from 0 to {size}."
        )
    if cycle := find_cycle(heads):
        raise ValueError(f"{where}: {cycle_reason(cycle)}")
    return tuple(map(str, heads))


def _cells(graph: Graph, size: int, where: str) -> list[str]:
    """The enhanced column of a graph."""
    check_graph(graph, size, where)
    links: list[list[tuple[int, str]]] = [[] for _ in range(size)]
    for top in graph.tops:
        links[top - 1].append((0, "root"))
    for predicate, argument, role in graph.arcs:
        if not role or "|" in role:
            raise ValueError(
                f"{where}: the role {shown(role)} of word {argument} is empty or holds a `|`, which ends an arc."
            )
        links[argument - 1].append((predicate, role))
    return ["|".join(f"{head}:{role}" for head, role in sorted(cell)) or "_" for cell in links]
