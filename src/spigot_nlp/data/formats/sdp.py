"""The formats of the shared tasks on broad-coverage semantic dependency parsing (SDP), of 2014 and of 2015.

A word on each line: number, form, lemma, tag, whether it is a top, whether it is a predicate, its frame (2015 only),
then one column for each predicate of the sentence, in their order, with the role the word has for that predicate.

References:
    Oepen et al. (2014), SemEval 2014 task 8: broad-coverage semantic dependency parsing, §4.
    Oepen et al. (2015), SemEval 2015 task 18: broad-coverage semantic dependency parsing, §3.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from sys import intern

from spigot_nlp.data.formats.conll import (
    check_graph,
    check_order,
    check_rows,
    count,
    describe,
    join_rows,
    known,
    names,
    rows_of,
)
from spigot_nlp.data.formats.files import PLAIN, Block, Layout, Malformed, shown
from spigot_nlp.data.sentence import Arc, Graph, Sentence

HEADER = "#SDP 2015"
_HEADER = re.compile(r"#\s*SDP 20[0-9][0-9]\s*$")
_SIGNS = ("-", "+")


@dataclass(frozen=True, slots=True)
class SdpSource:
    """What an SDP file says about a sentence that `Sentence` has no field for.

    Attributes:
        frames: Whether the file has a column of frames: that of 2015.
        opens: Whether the sentence is the first of its file, so that the file's header is among its comments.
        layout: The white space around it.
        comments: The lines before the first word.
    """

    frames: bool
    opens: bool = False
    layout: Layout = PLAIN
    comments: tuple[str, ...] = ()


def parse_sdp(block: Block) -> Sentence:
    r"""Reads one sentence of an SDP 2015 file.

    Example:
        >>> lines = ["#SDP 2015", "#1", "1\tRain\train\tNN\t-\t-\t_\tARG1", "2\tfell\tfall\tVBD\t+\t+\tv_1\t_"]
        >>> sentence = parse_sdp(Block(lines, opens=True))
        >>> sentence.graph.arcs, sentence.graph.frames
        ((Arc(predicate=2, argument=1, role='ARG1'),), ('_', 'v_1'))
    """
    return _parse(block, frames=True)


def parse_sdp2014(block: Block) -> Sentence:
    r"""Reads one sentence of an SDP 2014 file.

    Example:
        >>> sentence = parse_sdp2014(Block(["#1", "1\tRain\train\tNN\t-\t-\tARG1", "2\tfell\tfall\tVBD\t+\t+\t_"]))
        >>> sentence.graph.tops, sentence.graph.frames
        ((2,), ())
    """
    return _parse(block, frames=False)


def render_sdp(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    r"""The text of a sentence in SDP 2015, after the file's header if it opens the file.

    Example:
        >>> render_sdp(Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")]), id="7"))[0]
        '#SDP 2015\n#7\n1\tRain\t_\t_\t-\t-\t_\tARG1\n2\tfell\t_\t_\t-\t+\t_\t_'
    """
    return _render(sentence, opens, frames=True)


def render_sdp2014(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    r"""The text of a sentence in SDP 2014.

    Example:
        >>> render_sdp2014(Sentence(("Go",), graph=Graph(tops=(1,)), id="7"))[0]
        '#7\n1\tGo\t_\t_\t+\t-'
    """
    return _render(sentence, opens, frames=False)


def variant(block: Block) -> str:
    r"""Which of the two formats a file is in, by its header or else by the columns of its first sentence.

    Example:
        >>> variant(Block(["#20001001", "1\tGo\tgo\tVB\t+\t-"], opens=True))
        'sdp2014'
    """
    comments, rows = rows_of(block)
    for line in (*block.layout.lead.splitlines(), *comments):
        if not _is_id(line):
            return "sdp2014" if "2014" in line else "sdp"
    predicates = sum(row[5:6] == ["+"] for row in rows)
    return "sdp2014" if all(len(row) == 6 + predicates for row in rows) else "sdp"


def _parse(block: Block, *, frames: bool) -> Sentence:
    comments, rows = rows_of(block)
    start = len(comments)
    fixed = 7 if frames else 6
    width = fixed + sum(row[5:6] == ["+"] for row in rows)
    if set(map(len, rows)) != {width}:
        check_rows(rows, start)
        _check_width(rows, start, fixed, width)
    columns = list(zip(*rows, strict=True))
    if list(columns[0]) != names(len(rows)):
        check_rows(rows, start)
        check_order(columns[0], range(start, start + len(rows)))
    if any("" in column for column in columns):
        check_rows(rows, start)
    tops = _marked(columns[4], start, "top")
    predicates = _marked(columns[5], start, "predicate")
    arcs: list[Arc] = []
    for predicate, column in zip(predicates, columns[fixed:], strict=True):
        if column[predicate - 1] != "_":
            raise Malformed(start + predicate - 1, f"word {predicate} is an argument of itself.")
        if column.count("_") < len(column):
            arcs += [Arc(predicate, word, intern(role)) for word, role in enumerate(column, 1) if role != "_"]
    return Sentence(
        forms=tuple(map(intern, columns[1])),
        lemmas=known(columns[2]),
        tags=known(columns[3]),
        graph=Graph(tuple(arcs), tops, predicates, tuple(map(intern, columns[6])) if frames else ()),
        id=_id(comments),
        source=SdpSource(frames, block.opens, block.layout, comments),
    )


def _check_width(rows: list[list[str]], start: int, fixed: int, width: int) -> None:
    year = 2015 if fixed == 7 else 2014
    for offset, row in enumerate(rows, start):
        if len(row) < fixed:
            raise Malformed(
                offset, f"{count(len(row), 'column')} where SDP {year} has at least {fixed}, separated by tabs."
            )
    for word, row in enumerate(rows, 1):
        if len(row) != width:
            columns, predicates = count(len(row) - fixed, "argument column"), count(width - fixed, "predicate")
            raise Malformed(start + word - 1, f"word {word} has {columns} but the sentence has {predicates}.")


def _marked(column: tuple[str, ...], start: int, what: str) -> tuple[int, ...]:
    """The words marked with a plus."""
    if column.count("-") + column.count("+") < len(column):
        word = next(word for word, sign in enumerate(column, 1) if sign not in _SIGNS)
        sign = column[word - 1]
        raise Malformed(start + word - 1, f"the {what} column of word {word} has {shown(sign)}; it must be + or -.")
    return tuple(word for word, sign in enumerate(column, 1) if sign == "+")


def _is_id(comment: str) -> bool:
    return _HEADER.match(comment) is None


def _id(comments: Sequence[str]) -> str:
    # The line nearest to the words names the sentence, whatever other comments a file has.
    return comments[-1][1:].strip() if comments and _is_id(comments[-1]) else ""


def _render(sentence: Sentence, opens: bool, *, frames: bool) -> tuple[str, Layout]:
    size = len(sentence)
    where = describe(sentence)
    source = sentence.source
    if not isinstance(source, SdpSource) or source.frames != frames:
        source = SdpSource(frames)
    graph = sentence.graph or Graph()
    check_graph(graph, size, where)
    unknown = ("_",) * size
    predicates = sorted({arc.predicate for arc in graph.arcs}.union(graph.predicates))
    arguments = {predicate: ["_"] * size for predicate in predicates}
    for predicate, argument, role in graph.arcs:
        column = arguments[predicate]
        if role == "_" or column[argument - 1] != "_":
            raise ValueError(
                f"{where}: the arc {predicate} -{role}-> {argument} cannot be written; SDP has one cell for the pair, "
                f"which holds {shown(column[argument - 1])}, and `_` there means no arc. Keep one role for each pair."
            )
        column[argument - 1] = role
    tops = set(graph.tops)
    columns: list[Sequence[str]] = [
        names(size),
        sentence.forms,
        sentence.lemmas or unknown,
        sentence.tags or unknown,
        [_SIGNS[word in tops] for word in range(1, size + 1)],
        [_SIGNS[word in arguments] for word in range(1, size + 1)],
    ]
    if frames:
        columns.append(graph.frames or unknown)
    rows = join_rows([*columns, *arguments.values()], where)
    # What stands before the first sentence of a file, its header, has no place before a later one.
    layout = source.layout if opens or not source.opens else source.layout._replace(lead="")
    return "\n".join((*_comments(sentence, source, opens), *rows)), layout


def _comments(sentence: Sentence, source: SdpSource, opens: bool) -> tuple[str, ...]:
    comments = source.comments
    if sentence.id != _id(comments):
        kept = comments[:-1] if comments and _is_id(comments[-1]) else comments
        comments = (*kept, f"#{sentence.id}") if sentence.id else kept
    if not source.frames or source.opens == opens:
        return comments
    if opens:
        return (HEADER, *comments)
    return tuple(filter(_is_id, comments))
