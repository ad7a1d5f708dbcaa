"""What an estimator did to the structures of training sentences: the step, the projection, and what went back."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape

import spigot
from spigot.data.sentence import Arc, Sentence
from spigot.interface import AbstractEstimator
from spigot.models.accounts import Account, account
from spigot.models.parser import Parser
from spigot.report.arcs import Drawing, DrawnArc, Mark, svg
from spigot.report.glyphs import visible
from spigot.report.step_chart import moves, part_name, parts_of, step_chart, touched, written

_ROWS = 14  # parts of a table or of a small drawing
_OTHERS = 2  # parts about a word that ste pushes and spigot does not
_EVERY = 100_000  # parts of an account: all of them, so that the same ones can be shown for each estimator


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
        ['ste', 'spigot']
    """
    choice = parser.config.estimator
    own = parser.model.estimator
    pair: dict[str, AbstractEstimator] = {
        "ste": own if isinstance(own, spigot.StraightThrough) else spigot.StraightThrough(choice.eta, choice.max_norm),
        "spigot": own if isinstance(own, spigot.Spigot) else spigot.Spigot(choice.eta, None, choice.max_norm),
    }
    if isinstance(own, spigot.StraightThrough | spigot.Spigot | spigot.Pipeline):
        return pair
    return {parser.config.system: own, **pair}


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
        return sum(abs(part.gradient) for part in account(parser, sentence, pair["spigot"], top=_EVERY).parts)

    blocks = []
    for number, sentence in enumerate(sorted(sentences, key=moved, reverse=True)[:count]):
        told(f"gradients of {name}")
        found = {title: account(parser, sentence, estimator, top=_EVERY) for title, estimator in pair.items()}
        graph = parser.config.intermediate == "semantics"
        blocks.append(_block(found, is_open=is_open and number == 0, graph=graph))
    return f"<h3>{escape(name)}</h3>{''.join(blocks)}"


def _block(found: dict[str, Account], *, is_open: bool, graph: bool) -> str:
    last = found["spigot"]
    words = escape(" ".join(map(visible, last.sentence.forms)))
    chosen = _chosen(found)
    pictures = "".join(f"<div>{_chart(name, found, chosen)}</div>" for name in found)
    return (
        f'<details class="account"{" open" if is_open else ""}><summary><span dir="auto">{words}</span> '
        f"<small>loss {last.loss:.3f}</small></summary>"
        f'<div class="picture">{svg(account_drawing(last, graph=graph))}</div>'
        f'<div class="steps">{pictures}</div>{_table(found, chosen)}</details>'
    )


def _chart(name: str, found: dict[str, Account], chosen: Sequence[Arc]) -> str:
    if not chosen:
        return f"<h4>{escape(name)}</h4><p>Nothing was sent back.</p>"
    chart = step_chart(found[name], chosen, title=f"{name}: what became of each part", others=[*found.values()])
    return chart if chart.startswith("<svg") else f"<h4>{escape(name)}</h4>{chart}"


def account_drawing(told: Account, *, graph: bool = False) -> Drawing:
    """The structure that went forward: arcs of it that lose weight are marked as gone, others that gain any as new.

    Args:
        told: What the estimator did.
        graph: Whether it is a graph, drawn above the words, or a tree.

    Example:
        >>> from spigot.models.accounts import PartAccount
        >>> parts = (PartAccount(Arc(2, 1, ""), 1.0, 0.5, 0.5, 0.4, 0.6), PartAccount(Arc(0, 1, ""), 0, -1, 1, 0.6, -1))
        >>> [(arc.start, arc.mark) for arc in account_drawing(Account(Sentence(("a", "b")), 0.1, "", parts)).below]
        [(2, 'gone'), (0, 'new')]
    """
    arcs = []
    least = touched([told])
    most = max(map(abs, moves(told.parts)), default=0.0)
    for part in told.parts:
        start, end, role = part.part
        if start == end or (graph and start and not role):
            continue  # a predicate, or an arc whose labelled twin is drawn
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
            arcs.append(DrawnArc(start, end, role if graph and start else "", mark, note))
    tags = told.sentence.tags or ()
    return Drawing(
        told.sentence.forms, above=tuple(arcs) if graph else (), below=() if graph else tuple(arcs), tags=tags
    )


def _table(found: dict[str, Account], chosen: Sequence[Arc]) -> str:
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


def _chosen(found: dict[str, Account]) -> list[Arc]:
    """The parts to show: those that SPIGOT moved, with the strongest of STE about the same words, word by word."""
    moved, pushed = (
        [part.part for part in found[name].parts if abs(part.gradient) >= touched([found[name]])]
        for name in ("spigot", "ste")
    )
    chosen: list[Arc] = []
    for word in dict.fromkeys(arc.argument for arc in (moved or pushed)):
        mine = [arc for arc in moved if arc.argument == word]
        others = [arc for arc in pushed if arc.argument == word and arc not in mine]
        chosen += [*mine, *others[:_OTHERS]]
    return chosen[:_ROWS]


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
