"""What an estimator did to the structures of training sentences: the step, the projection, and what went back."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape

import spigot
from spigot.data.sentence import Arc, Sentence
from spigot.interface import AbstractEstimator
from spigot.models.accounts import Account, PartAccount, account
from spigot.models.parser import Parser
from spigot.report.arcs import Drawing, DrawnArc, Mark, svg
from spigot.report.figures import colour
from spigot.report.glyphs import visible
from spigot.report.material import NAMES

_ROWS = 14  # parts of a table or of a small drawing
_OTHERS = 2  # parts about a word that STE pushes and SPIGOT does not
_EVERY = 100_000  # parts of an account: all of them, so that the same ones can be shown for each estimator
_TOUCHED = 5e-3  # what is smaller is printed as zero
_WIDTH, _ROW, _LEFT, _RIGHT, _TOP = 470, 22, 178, 18, 34


def estimators(parser: Parser) -> dict[str, AbstractEstimator]:
    """The estimators to set side by side: that of the system, if it is neither, then STE and SPIGOT with its step.

    Args:
        parser: The system.

    Example:
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Graph
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import joint_model
        >>> config = make_config({"system": "ste"})
        >>> vocab = Vocab.of([Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")]))])
        >>> list(estimators(Parser(config, vocab, joint_model(config, vocab))))
        ['STE', 'SPIGOT']
    """
    choice = parser.config.estimator
    own = parser.model.estimator
    pair: dict[str, AbstractEstimator] = {
        "STE": own if isinstance(own, spigot.StraightThrough) else spigot.StraightThrough(choice.eta, choice.max_norm),
        "SPIGOT": own if isinstance(own, spigot.Spigot) else spigot.Spigot(choice.eta, None, choice.max_norm),
    }
    if isinstance(own, spigot.StraightThrough | spigot.Spigot | spigot.Pipeline):
        return pair
    return {NAMES[parser.config.system]: own, **pair}


def account_markup(
    parser: Parser,
    name: str,
    sentences: Sequence[Sentence],
    *,
    count: int = 5,
    is_open: bool = True,
    told: Callable[[str], None] = lambda what: None,
) -> str:
    """Of the sentences that SPIGOT moves most the structure that went forward and what was done to it, as HTML.

    Args:
        parser: A system with a structure inside.
        name: What it is called.
        sentences: Training sentences with the annotation of the end task.
        count: How many of them to show.
        is_open: Whether the first one is unfolded.
        told: Called before each sentence that is shown.

    Example:
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Graph
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import joint_model
        >>> config = make_config({"system": "ste", "data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab = Vocab.of([rain])
        >>> account_markup(Parser(config, vocab, joint_model(config, vocab)), "STE & co.", [rain])[:22]
        '<h3>STE &amp; co.</h3>'
    """
    pair = estimators(parser)

    def moved(sentence: Sentence) -> float:
        return sum(abs(part.gradient) for part in account(parser, sentence, pair["SPIGOT"], top=_EVERY).parts)

    blocks = []
    for number, sentence in enumerate(sorted(sentences, key=moved, reverse=True)[:count]):
        told(f"gradients of {name}")
        found = {title: account(parser, sentence, estimator, top=_EVERY) for title, estimator in pair.items()}
        graph = parser.config.intermediate == "semantics"
        blocks.append(_block(found, is_open=is_open and number == 0, graph=graph))
    return f"<h3>{escape(name)}</h3>{''.join(blocks)}"


def _block(found: dict[str, Account], *, is_open: bool, graph: bool) -> str:
    last = found["SPIGOT"]
    words = escape(" ".join(map(visible, last.sentence.forms)))
    chosen = _chosen(found)
    pictures = "".join(
        f"<div><h4>{escape(title)}</h4>{step_drawing(each, chosen)}</div>" for title, each in found.items()
    )
    return (
        f'<details class="account"{" open" if is_open else ""}><summary><span dir="auto">{words}</span> '
        f"<small>loss {last.loss:.3f}</small></summary>"
        f'<div class="picture">{svg(account_drawing(last, graph=graph))}</div>'
        f'<div class="steps">{pictures}</div>{_table(found, chosen)}</details>'
    )


def account_drawing(told: Account, *, graph: bool = False) -> Drawing:
    """The structure that went forward: arcs of it that lose weight are marked as gone, others that gain any as new.

    Args:
        told: What the estimator did.
        graph: Whether it is a graph, drawn above the words, or a tree.

    Example:
        >>> parts = (PartAccount(Arc(2, 1, ""), 1.0, 0.5, 0.5, 0.4, 0.6), PartAccount(Arc(0, 1, ""), 0, -1, 1, 0.6, -1))
        >>> [(arc.start, arc.mark) for arc in account_drawing(Account(Sentence(("a", "b")), 0.1, "", parts)).below]
        [(2, 'gone'), (0, 'new')]
    """
    arcs = []
    for part in told.parts:
        start, end, role = part.part
        if start == end or (graph and start and not role):
            continue  # a predicate, or an arc whose labelled twin is drawn
        moved = part.projected - part.z
        mark: Mark = (
            "gone" if part.z > 0.5 and moved < -_TOUCHED else "new" if part.z < 0.5 and moved > _TOUCHED else "plain"
        )
        if part.z > 0.5 or mark == "new":
            note = (
                f"ẑ {_number(part.z)}, ∇L {_number(part.grad)}, p\u0302 {_number(part.stepped)}, "
                f"z\u0303 {_number(part.projected)}, sent back {_number(part.gradient)}"
            )
            arcs.append(DrawnArc(start, end, role if graph and start else "", mark, note))
    tags = told.sentence.tags or ()
    return Drawing(
        told.sentence.forms, above=tuple(arcs) if graph else (), below=() if graph else tuple(arcs), tags=tags
    )


def step_drawing(told: Account, chosen: Sequence[Arc]) -> str:
    """Parts of a structure, each on its line from 0 to 1: where it was, where the step went, where it ended.

    Args:
        told: What the estimator did.
        chosen: The parts to draw.

    Example:
        >>> part = PartAccount(Arc(2, 1, ""), 1.0, 0.5, 0.5, 0.75, 0.25)
        >>> picture = step_drawing(Account(Sentence(("Rain", "fell")), 0.1, "", (part,)), [part.part])
        >>> picture.startswith("<svg"), "fell → Rain" in picture
        (True, True)
    """
    by_arc = {part.part: part for part in told.parts}
    parts = [by_arc.get(arc, PartAccount(arc, 0.0, 0.0, 0.0, 0.0, 0.0)) for arc in chosen]
    if not parts:
        return "<p>Nothing was sent back.</p>"
    low = min(0.0, *(min(p.stepped, p.projected) for p in parts))
    high = max(1.0, *(max(p.stepped, p.projected) for p in parts))
    low, high = max(low, -1.0), min(high, 2.0)  # a far step is drawn at the edge; the table has the number

    def x(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    height = _TOP + _ROW * len(parts) + 8
    drawn = [
        f'<rect x="{x(0)}" y="{_TOP - 10}" width="{x(1) - x(0):g}" height="{height - _TOP + 4}" '
        'fill="var(--page, #eee)"/>'
    ]
    drawn += [f'<text x="{x(v)}" y="{_TOP - 16}" text-anchor="middle" class="s">{v}</text>' for v in (0, 1)]
    for row, part in enumerate(parts):
        y = _TOP + _ROW * row + 4
        z, p, home = x(part.z), x(part.stepped), x(part.projected)
        drawn.append(
            f"<g><title>{escape(_name(told, part))}: from {_number(part.z)} to {_number(part.stepped)}, "
            f"then {_number(part.projected)}</title>"
            f'<text x="{_LEFT - 16}" y="{y + 4}" text-anchor="end">{escape(_name(told, part, 22))}</text>'
            f'<path d="M{x(low)} {y}H{x(high)}" stroke="var(--line, #ddd)"/>'
            f'<path d="M{z} {y - 3}L{p} {y - 3}" stroke="{colour(3)}" stroke-width="2.5"/>'
            f'<path d="M{p - 3:g} {y - 6}l6 6m0-6l-6 6" stroke="{colour(3)}" stroke-width="1.8"/>'
            f'<path d="M{z} {y + 3}L{home} {y + 3}" stroke="{colour(1)}" stroke-width="3.5"/>'
            f'<path d="M{home} {y - 1.5}l4.5 4.5-4.5 4.5-4.5-4.5z" fill="{colour(1)}"/>'
            f'<circle cx="{z}" cy="{y}" r="4.5" fill="var(--ink, #000)"/></g>'
        )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="steps of {len(parts)} parts" fill="none" '
        'style="font: 12px system-ui, sans-serif"><style>.account .steps text { fill: var(--ink, #000); } '
        ".account .steps .s { fill: var(--muted, #666); font-size: 11px; }</style>" + "".join(drawn) + "</svg>"
    )


def _table(found: dict[str, Account], chosen: Sequence[Arc]) -> str:
    """The numbers: of the step, which all estimators share, and what each made of it."""
    if not chosen:
        return ""
    answers = {title: {part.part: part for part in each.parts} for title, each in found.items()}
    heads = "".join(f'<th scope="col">{escape(title)}: z\u0303</th><th scope="col">sent back</th>' for title in found)
    rows = []
    for arc in chosen:
        none = PartAccount(arc, 0.0, 0.0, 0.0, 0.0, 0.0)
        step = answers["STE"].get(arc, none)
        numbers = [step.z, step.grad, step.stepped]
        for parts in answers.values():
            numbers += [parts.get(arc, none).projected, parts.get(arc, none).gradient]
        cells = "".join(f"<td>{_number(number)}</td>" for number in numbers)
        rows.append(f'<tr><th scope="row">{escape(_name(found["STE"], none))}</th>{cells}</tr>')
    return (
        '<div class="scroll"><table><thead><tr><th></th><th scope="col">ẑ</th><th scope="col">∇L</th>'
        f'<th scope="col">p\u0302</th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _chosen(found: dict[str, Account]) -> list[Arc]:
    """The parts to show: those that SPIGOT moved, with the strongest of STE about the same words, word by word."""
    moved = [part.part for part in found["SPIGOT"].parts if abs(part.gradient) >= _TOUCHED]
    pushed = [part.part for part in found["STE"].parts if abs(part.gradient) >= _TOUCHED]
    chosen: list[Arc] = []
    for word in dict.fromkeys(arc.argument for arc in (moved or pushed)):
        mine = [arc for arc in moved if arc.argument == word]
        others = [arc for arc in pushed if arc.argument == word and arc not in mine]
        chosen += [*mine, *others[:_OTHERS]]
    return chosen[:_ROWS]


def _name(told: Account, part: PartAccount, longest: int | None = None) -> str:
    start, end, role = part.part
    forms = tuple(map(visible, told.sentence.forms))
    name = f"{forms[start - 1] if start else 'root'} → {forms[end - 1]}{f': {role}' if role else ''}"
    if start == end:
        name = f"{forms[end - 1]} is a predicate"
    return name if longest is None or len(name) <= longest else f"{name[: longest - 1]}…"


def _number(value: float) -> str:
    return f"{0.0 if abs(value) < _TOUCHED else value:.2f}".replace("-", "−")


def with_annotation(sentences: Sequence[Sentence], task: str, count: int) -> list[Sentence]:
    """The first sentences of readable length that have what the end task learns from.

    Args:
        sentences: Training sentences.
        task: `parsing` or `classification`.
        count: How many are wanted.

    Example:
        >>> some = [Sentence(("Rain",), label=1), Sentence(("It", "rained"), label=0)]
        >>> known = with_annotation(some, "classification", 5)
        >>> [sentence.forms for sentence in known]
        [('It', 'rained')]
    """
    field = "graph" if task == "parsing" else "label"
    usable = [replace(s, source=None) for s in sentences if getattr(s, field) is not None and len(s) > 1]
    return sorted(usable, key=lambda sentence: not 5 <= len(sentence) <= 16)[:count]
