"""What estimators did to the structures of training sentences: the step, the projection, and what went back."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import escape

import spigot
from spigot import ESTIMATORS, AbstractEstimator
from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import Wire
from spigot_nlp.models.trace import SentenceTrace, trace_sentence
from spigot_nlp.report.arcs import Drawing, DrawnArc, Mark, svg
from spigot_nlp.report.drawings import DrawnMark
from spigot_nlp.report.glyphs import visible
from spigot_nlp.report.step_chart import moves, part_name, parts_of, step_chart, touched, written
from spigot_nlp.stages.stage import AbstractStage

_ROWS = 14  # parts of a table or of a small drawing
_OTHERS = 2  # parts about a word that ste pushes and spigot does not
_TRIED = 15  # sentences of which the ones are shown that move most
_EVERY = 100_000  # parts of an account: all of them, so that the same ones can be shown for each estimator


def live_wires(parser: Parser) -> dict[str, Wire]:
    """The wires that gradients come back by, by name.

    Args:
        parser: The system.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Graph
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")]))
        >>> [list(live_wires(fresh(make_config({"system": name}), {"graphs": [rain]}))) for name in ("pipeline", "ste")]
        [[], ['syntax -> semantics']]
    """
    model = parser.model
    return {wire.name: wire for wire in model.all_wires() if model.stages[wire.source].learns and not wire.is_frozen}


def estimators(wire: Wire) -> dict[str, AbstractEstimator]:
    """The estimators to set side by side: that of the wire, if it is neither, then STE and SPIGOT with its step.

    Args:
        wire: Where they stand.

    Example:
        >>> list(estimators(Wire("syntax", "semantics", spigot.StraightThrough())))
        ['ste', 'spigot']
        >>> list(estimators(Wire("syntax", "semantics", spigot.IMLE())))
        ['imle', 'ste', 'spigot']
    """
    own = wire.estimator
    eta, max_norm = getattr(own, "eta", 1.0), getattr(own, "max_norm", None)
    pair: dict[str, AbstractEstimator] = {
        "ste": own if isinstance(own, spigot.StraightThrough) else spigot.StraightThrough(eta, max_norm=max_norm),
        "spigot": own if isinstance(own, spigot.Spigot) else spigot.Spigot(eta, max_norm=max_norm),
    }
    if isinstance(own, spigot.StraightThrough | spigot.Spigot | spigot.Pipeline):
        return pair
    return {ESTIMATORS.name_of(type(own)): own, **pair}


def account_markup(
    parser: Parser,
    name: str,
    sentences: Sequence[Sentence],
    *,
    count: int = 5,
    is_open: bool = True,
    told: Callable[[str], None] = lambda what: None,
) -> str:
    """Of the sentences that SPIGOT moves most the structures that went forward and what was done to them, as HTML.

    There is a part for each wire, about the loss of the last stage whose gradients come back by it. The other wires
    keep their own estimators.

    Args:
        parser: A system with a structure inside.
        name: What it is called.
        sentences: Training sentences.
        count: How many of them to show for each wire.
        is_open: Whether the first one is unfolded.
        told: Called before each sentence that is shown.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Graph
        >>> from spigot_nlp.models.build import fresh
        >>> config = make_config({"system": "ste", "data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> account_markup(fresh(config, {"graphs": [rain]}), "STE & co.", [rain])[:22]
        '<h3>STE &amp; co.</h3>'
    """
    wires = live_wires(parser)
    blocks: list[str] = []
    for wire in wires.values():
        task = _task(parser, wire)
        shown = _wire_blocks(parser, wire, task, sentences, count, is_open=is_open and not blocks, told=told, name=name)
        markup = "".join(shown)
        if markup and len(wires) > 1:
            about = (
                f" <small>{escape(ESTIMATORS.name_of(type(wire.estimator)))}, from the loss of {escape(task)}</small>"
            )
            markup = f"<h4>{escape(wire.name.replace('->', '→'))}{about}</h4>{markup}"
        if markup:
            blocks.append(markup)
    return f"<h3>{escape(name)}</h3>{''.join(blocks)}" if blocks else ""


def _task(parser: Parser, wire: Wire) -> str:
    """The last stage whose loss comes back by a wire."""
    config = parser.config
    return [name for name in config.supervised if wire.target in config.reached(name)][-1]


def _wire_blocks(
    parser: Parser,
    wire: Wire,
    task: str,
    sentences: Sequence[Sentence],
    count: int,
    *,
    is_open: bool,
    told: Callable[[str], None],
    name: str,
) -> Iterator[str]:
    model = parser.model
    source, pair = model.stages[wire.source], estimators(wire)
    known = with_annotation(sentences, model.stages[task].annotation)

    def watched(sentence: Sentence, estimator: AbstractEstimator) -> SentenceTrace:
        return trace_sentence(parser, sentence, {wire.name: estimator}, task=task, top=_EVERY)[wire.name]

    def moved(sentence: Sentence) -> float:
        return sum(abs(part.gradient) for part in watched(sentence, pair["spigot"]).parts)

    for number, sentence in enumerate(sorted(known, key=moved, reverse=True)[:count]):
        told(f"gradients of {name}")
        found = {title: watched(sentence, estimator) for title, estimator in pair.items()}
        yield _block(found, source, is_open=is_open and number == 0)


def _block(found: dict[str, SentenceTrace], source: AbstractStage, *, is_open: bool) -> str:
    last = found["spigot"]
    words = escape(" ".join(map(visible, last.sentence.forms)))
    chosen = _chosen(found)
    pictures = "".join(f"<div>{_chart(name, found, chosen)}</div>" for name in found)
    return (
        f'<details class="account"{" open" if is_open else ""}><summary><span dir="auto">{words}</span> '
        f"<small>loss {last.loss:.3f}</small></summary>"
        f'<div class="picture">{svg(account_drawing(last, source.arc_labels))}</div>'
        f'<div class="steps">{pictures}</div>{_table(found, chosen)}</details>'
    )


def _chart(name: str, found: dict[str, SentenceTrace], chosen: Sequence[Arc]) -> str:
    if not chosen:
        return f"<h4>{escape(name)}</h4><p>Nothing was sent back.</p>"
    chart = step_chart(found[name], chosen, title=f"{name}: what became of each part", others=[*found.values()])
    return chart if chart.startswith("<svg") else f"<h4>{escape(name)}</h4>{chart}"


def account_drawing(told: SentenceTrace, labels: int | None = 0) -> Drawing:
    """The structure that went forward: parts of it that lose weight are marked as gone, others that gain any as new.

    Args:
        told: What the estimator did.
        labels: How many labels its arcs have: a graph is drawn above the words, a tree below. `None` if it has no arcs
            but a choice for each word.

    Example:
        >>> from spigot_nlp.models.trace import PartTrace
        >>> parts = (PartTrace(Arc(2, 1, ""), 1.0, 0.5, 0.5, 0.4, 0.6), PartTrace(Arc(0, 1, ""), 0, -1, 1, 0.6, -1))
        >>> told = SentenceTrace(Sentence(("a", "b")), 0.1, "", parts)
        >>> [(arc.start, arc.mark) for arc in account_drawing(told).below]
        [(2, 'gone'), (0, 'new')]
    """
    forms, tags = told.sentence.forms, told.sentence.tags or ()
    least = touched([told])
    most = max(map(abs, moves(told.parts)), default=0.0)
    shown: list[tuple[Arc, Mark, str]] = []
    for part in told.parts:
        moved = part.projected - part.z
        mark: Mark = "gone" if part.z > 0.5 and moved < -least else "new" if part.z < 0.5 and moved > least else "plain"
        if part.z > 0.5 or mark == "new":
            values = {
                "ẑ": part.z,
                "∇L": part.grad,
                "p\u0302": part.stepped,
                "z\u0303": part.projected,
                "sent back": part.gradient,
            }
            note = ", ".join(f"{name} {written(value, most)}" for name, value in values.items())
            shown.append((part.part, mark, note))
    if labels is None:
        return Drawing(forms, rows=tuple(_choices(shown, len(forms))))
    arcs = tuple(
        DrawnArc(start, end, role if start else "", mark, note)
        for (start, end, role), mark, note in shown
        # Not a predicate, nor an arc whose labelled twin is drawn.
        if start != end and (role or not start or not labels)
    )
    return Drawing(forms, above=arcs if labels else (), below=() if labels else arcs, tags=tags)


def _choices(shown: Sequence[tuple[Arc, Mark, str]], words: int) -> Iterator[tuple[DrawnMark, ...]]:
    """What was chosen for each word, and below it what gains weight."""
    columns: list[list[DrawnMark]] = [[] for _ in range(words)]
    for (_, word, choice), mark, note in sorted(shown, key=lambda each: each[1] == "new"):
        if word:
            columns[word - 1].append(DrawnMark(choice, mark, note))
    for depth in range(max(map(len, columns), default=0)):
        yield tuple(column[depth] if depth < len(column) else DrawnMark(" ") for column in columns)


def _table(found: dict[str, SentenceTrace], chosen: Sequence[Arc]) -> str:
    """The numbers: of the step, which all estimators share, and what each made of it."""
    if not chosen:
        return ""
    accounts = {title: parts_of(each, chosen) for title, each in found.items()}
    most = max(abs(move) for parts in accounts.values() for move in (*moves(parts), *(p.gradient for p in parts)))
    heads = "".join(f'<th scope="col">{escape(title)}: z\u0303</th><th scope="col">sent back</th>' for title in found)
    rows = []
    for row, step in enumerate(accounts["ste"]):
        numbers = [step.z, step.grad, step.stepped]
        for parts in accounts.values():
            numbers += [parts[row].projected, parts[row].gradient]
        cells = "".join(f"<td>{written(number, most)}</td>" for number in numbers)
        rows.append(f'<tr><th scope="row">{escape(part_name(found["ste"], step))}</th>{cells}</tr>')
    return (
        '<div class="scroll"><table><thead><tr><th></th><th scope="col">ẑ</th><th scope="col">∇L</th>'
        f'<th scope="col">p\u0302</th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _chosen(found: dict[str, SentenceTrace]) -> list[Arc]:
    """The parts to show: those that SPIGOT moved, with the strongest of STE about the same words, word by word."""
    moved, pushed = (_moved(found[name]) for name in ("spigot", "ste"))
    chosen: list[Arc] = []
    for word in dict.fromkeys(arc.argument for arc in (moved or pushed)):
        mine = [arc for arc in moved if arc.argument == word]
        others = [arc for arc in pushed if arc.argument == word and arc not in mine]
        chosen += [*mine, *others[:_OTHERS]]
    return chosen[:_ROWS]


def _moved(told: SentenceTrace) -> list[Arc]:
    least = touched([told])
    return [part.part for part in told.parts if abs(part.gradient) >= least]


def with_annotation(sentences: Sequence[Sentence], annotation: AbstractAnnotation) -> list[Sentence]:
    """The first sentences of readable length that have what a stage learns from.

    Args:
        sentences: Training sentences.
        annotation: The annotation.

    Example:
        >>> some = [Sentence(("Rain",), label=1), Sentence(("It", "rained"), label=0)]
        >>> from spigot_nlp.annotations import Classes
        >>> [sentence.forms for sentence in with_annotation(some, Classes())]
        [('It', 'rained')]
    """
    usable = [replace(s, source=None) for s in sentences if annotation.value(s) is not None and len(s) > 1]
    return sorted(usable, key=lambda sentence: not 5 <= len(sentence) <= 16)[:_TRIED]
