"""Sentences to look at: which ones, drawn how, and packed so that a page with a hundred of them stays small."""

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from spigot_nlp.annotations import AbstractAnnotation, Graphs, Trees
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.inspection import Inspection
from spigot_nlp.report.answers import Answers, Judged, judge
from spigot_nlp.report.arcs import STYLE, Drawing, DrawnArc, drawing, svg
from spigot_nlp.report.glyphs import visible
from spigot_nlp.report.looks import sides
from spigot_nlp.report.marks import own_colours
from spigot_nlp.report.tikz import tikz
from spigot_nlp.stages.alternatives import Alternative, ArcScore

_ALL_PAIRS = 3  # systems that are all compared with each other
_TOP = 4  # heads of a word, roles of an arc, that a note lists
_READABLE = range(5, 19)  # words of a sentence that fits on most screens
_LONG = 30
_STYLES = f"<style>{STYLE}{own_colours()}</style>"


def choose(
    judged: Sequence[Sequence[Judged]], names: Sequence[str], lengths: Sequence[int], count: int, noun: str = "class"
) -> dict[int, str]:
    """Pick sentences worth a look.

    Args:
        judged: Of each system, what is known about its answers.
        names: What the systems are called.
        lengths: How many words each sentence has.
        count: How many to pick.
        noun: What it is that flips.

    Returns:
        The places of the sentences, the most telling first, and why each was picked.

    Example:
        >>> fine, better = Judged("", False, False, False, 0), Judged("", False, True, False, 2)
        >>> choose([[fine, fine, better]], ["SPIGOT"], [3, 9, 7], 2)
        {2: 'largest gain of SPIGOT', 1: 'long'}
    """
    queues: list[tuple[str, list[int]]] = []
    for name, answers in zip(names, judged, strict=True):
        # Sentences that fit on a screen first: a long one gains and loses most, and shows least.
        by_gain = sorted(range(len(answers)), key=lambda k: (-answers[k].gain, lengths[k] not in _READABLE))
        by_gain.sort(key=lambda k: lengths[k] > _LONG)
        by_loss = sorted(by_gain, key=lambda k: (lengths[k] > _LONG, answers[k].gain))
        queues.append((f"largest gain of {name}", [k for k in by_gain if answers[k].gain > 0]))
        queues.append((f"largest loss of {name}", [k for k in by_loss if answers[k].gain < 0]))
        queues.append((f"{noun} flipped by {name}", [k for k, answer in enumerate(answers) if answer.flipped]))
        changed = [k for k, answer in enumerate(answers) if answer.changed]
        short = [k for k in changed if lengths[k] in _READABLE]
        queues.append((f"structure changed by {name}", [*short, *(k for k in changed if k not in set(short))]))
    queues.append(("long", sorted(range(len(lengths)), key=lambda k: -lengths[k])[: max(1, count // 20)]))
    queues.append(("one of the first", [k for k in range(len(lengths)) if lengths[k]]))
    return _in_turn(queues, count)


def _in_turn(queues: Sequence[tuple[str, Sequence[int]]], count: int) -> dict[int, str]:
    """The first of each queue that is new, then the second of each, until there are enough; and which queue it was."""
    chosen: dict[int, str] = {}
    waiting = [(name, iter(queue)) for name, queue in queues]
    while waiting and len(chosen) < count:
        left = []
        for name, queue in waiting:
            place = next((k for k in queue if k not in chosen), None)
            if place is not None and len(chosen) < count:
                chosen[place] = name
                left.append((name, queue))
        waiting = left
    return chosen


def explorer(
    everyone: Sequence[Answers], baseline: int | None, count: int, told: Callable[[str], None]
) -> dict[str, Any]:
    """Everything that the explorer of a page needs, as plain values.

    Args:
        everyone: The answers of each system to the same sentences.
        baseline: Which of them the others are compared with.
        count: How many sentences to show.
        told: Called before each piece of work.

    Returns:
        What `explore.js` reads: the names of the `systems`, the `pairs` of them that are drawn against each other, the
        `styles` that all drawings share, and the `sentences`, each with its packed `views`.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> from spigot_nlp.models.build import fresh
        >>> from spigot_nlp.report.answers import answers
        >>> from spigot_nlp.report.material import Contender, Run
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> parser = fresh(config, {"graphs": [rain]})
        >>> mine = answers(Contender("spigot", (Run(Path("nowhere"), config, {}),), 0), parser, [rain])
        >>> made = explorer([mine], None, count=1, told=lambda what: None)
        >>> made["systems"], made["sentences"][0]["text"]
        (['spigot'], 'Rain fell')
    """
    first = everyone[0]
    judged = [judge(each, None if baseline in (None, k) else everyone[baseline]) for k, each in enumerate(everyone)]
    names = [each.contender.name for each in everyone]
    lengths = [len(sentence) for sentence in first.gold]
    chosen = choose(judged, names, lengths, count, first.end.noun)
    inspected = []
    for each in everyone:
        told(f"scores of {each.contender.name}")
        inspected.append(each.parser.inspect([each.gold[k] for k in chosen], top=_TOP, tagged=True))
    told("drawings")
    pairs = compared(len(everyone), baseline)
    annotations = _all_of_them(everyone)
    return {
        "systems": names,
        "pairs": pairs,
        "styles": _STYLES,
        "sentences": [
            {
                "number": place + 1,
                "id": first.gold[place].id,
                "text": " ".join(map(visible, first.gold[place].forms)),
                "length": lengths[place],
                "why": why,
                "flags": [answers[place].flags() for answers in judged],
                "says": [answers[place].says for answers in judged],
                "packed": packed(views(first.gold[place], [found[row] for found in inspected], pairs, annotations)),
            }
            for row, (place, why) in enumerate(chosen.items())
        ],
    }


def _all_of_them(everyone: Sequence[Answers]) -> list[AbstractAnnotation]:
    """What any of the systems gives, and the graph and the tree that gold sentences may have beside it."""
    given = [annotation for each in everyone for annotation in each.annotations]
    named = sorted(given, key=lambda annotation: not annotation.is_nameless)  # the last of a name counts
    found = {annotation.name: annotation for annotation in (Graphs(), Trees(), *named)}
    return [found[name] for name in dict.fromkeys(annotation.name for annotation in (*given, Graphs(), Trees()))]


def compared(systems: int, baseline: int | None) -> list[tuple[int, int]]:
    """Which systems are drawn against which: all pairs of a few, of many only those with the baseline.

    Example:
        >>> compared(2, 0), len(compared(5, 0))
        ([(0, 1), (1, 0)], 8)
    """
    pairs = [(k, j) for k in range(systems) for j in range(systems) if j != k]
    return pairs if systems <= _ALL_PAIRS else [pair for pair in pairs if baseline in pair]


def views(
    gold: Sentence,
    found: Sequence[Inspection],
    pairs: Sequence[tuple[int, int]],
    annotations: Sequence[AbstractAnnotation] = (Graphs(), Trees()),
) -> dict[str, Any]:
    """All drawings of a sentence: each system by itself, against the right answer, and against other systems.

    Args:
        gold: The right answer.
        found: What the systems found.
        pairs: Which systems are drawn against which.
        annotations: What is drawn.

    Returns:
        `shown`: which picture goes with which choice, e.g. `1 gold` or `1 0` (the second system against the first);
        `svg` and `tikz`: the pictures; `notes`: what each system's scores say about its arcs. They are kept apart:
        systems that found the same then share their pictures.

    Example:
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> made = views(rain, [Inspection(rain), Inspection(replace(rain, heads=(0, 1)))], [(1, 0)])
        >>> sorted(made["shown"]), len(made["svg"]) == len(made["tikz"])
        (['0 gold', '0 plain', '1 0', '1 gold', '1 plain', 'gold plain'], True)
    """
    shown: dict[str, int] = {}
    pictures: dict[Drawing, int] = {}

    def add(name: str, picture: Drawing) -> None:
        shown[name] = pictures.setdefault(picture, len(pictures))

    add("gold plain", drawing(gold, annotations=annotations))
    for k, mine in enumerate(found):
        add(f"{k} plain", drawing(mine.sentence, annotations=annotations))
        add(f"{k} gold", drawing(mine.sentence, gold=gold, annotations=annotations))
    for k, j in pairs:
        both = drawing(found[k].sentence, gold=gold, before=found[j].sentence, annotations=annotations)
        add(f"{k} {j}", _only_changes(both))
    return {
        "shown": shown,
        "svg": [svg(picture, standalone=True).replace(_STYLES, "<style></style>") for picture in pictures],
        "tikz": [tikz(picture, standalone=True) for picture in pictures],
        "notes": [
            {f"{side} {start} {end}": note for (side, start, end, _), note in notes_of(mine, annotations).items()}
            for mine in found
        ],
    }


def _only_changes(picture: Drawing) -> Drawing:
    """Leave what did not change unmarked, so that what did stands out."""

    def side(arcs: Sequence[DrawnArc]) -> Iterator[DrawnArc]:
        for arc in arcs:
            if arc.mark != "missed":
                yield arc if arc.mark in ("new", "gone") else replace(arc, mark="plain")

    rows = (
        tuple(each if each.mark == "new" else replace(each, mark="plain", note="") for each in row)
        for row in picture.rows
    )
    return replace(
        picture,
        above=tuple(side(picture.above)),
        below=tuple(side(picture.below)),
        rows=tuple(rows),
        beneath=None if picture.beneath is None else _only_changes(picture.beneath),
    )


def notes_of(
    found: Inspection, annotations: Sequence[AbstractAnnotation] = (Graphs(), Trees())
) -> dict[tuple[str, int, int, str], str]:
    """What the scores say about each arc, in the manner of `drawing`.

    Args:
        found: What was found.
        annotations: What is drawn of it.

    Example:
        >>> heads = ((Alternative(2, 3.0, 0.0, 0.9), Alternative(0, 1.0, -2.0, 0.1)), (Alternative(0, 4.0, 0.0, 1.0),))
        >>> notes_of(Inspection(Sentence(("Rain", "fell"), heads=(2, 0)), {"heads": heads}))["below", 2, 1, ""]
        'score 3.00, marginal 0.90; next: root −2.00 (0.10)'
    """
    sentence, named = found.sentence, sides(found.sentence, annotations)
    notes: dict[tuple[str, int, int, str], str] = {}
    for annotation in annotations:
        drawn = annotation.drawn(sentence)
        if annotation.name not in named or drawn is None:
            continue
        side, choices = named[annotation.name], tuple[Any, ...](found.choices.get(annotation.name, ()))
        # Heads are said by word; the arcs of a tree are drawn in their order.
        for arc, choice in zip(drawn.arcs, choices, strict=False):
            if isinstance(choice, ArcScore):
                rivals = ", ".join(f"{role} {_signed(difference)}" for role, difference in choice.alternatives[:_TOP])
                notes[side, *choice.arc] = f"score {_plain(choice.score)}" + (f"; next: {rivals}" if rivals else "")
            elif isinstance(choice, tuple):
                notes[side, *arc] = _head_note(sentence, arc.start, choice)
    return notes


def _head_note(sentence: Sentence, chosen: int, alternatives: Sequence[Alternative]) -> str:
    """The score of a word's head, and what came next."""

    def word(index: int) -> str:
        return visible(sentence.forms[index - 1]) if index else "root"

    own = next((a for a in alternatives if a.head == chosen), None)
    others = [
        f"{word(a.head)}{a.relation and f' ({a.relation})'} {_signed(a.difference)}"
        f"{'' if a.marginal is None else f' ({a.marginal:.2f})'}"
        for a in alternatives
        if a.head != chosen
    ]
    parts = []
    if own is not None:
        marginal = "" if own.marginal is None else f", marginal {own.marginal:.2f}"
        parts.append(f"score {_plain(own.score)}{marginal}")
    if others:
        parts.append(f"next: {', '.join(others)}")
    return "; ".join(parts)


def _plain(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def still(data: dict[str, Any]) -> str:
    """The first drawing of an explorer, for readers whose browser runs no scripts: the last system beside gold.

    Args:
        data: What `explorer` gave.

    Example:
        >>> made = {"shown": {"0 gold": 0}, "svg": ["<svg><style></style></svg>"]}
        >>> still({"systems": ["STE"], "styles": "<style>a{}</style>", "sentences": [{"packed": packed(made)}]})
        '<svg><style>a{}</style></svg>'
    """
    if not data["sentences"]:
        return ""
    found = json.loads(zlib.decompress(base64.b64decode(data["sentences"][0]["packed"])))
    picture = found["svg"][found["shown"][f"{len(data['systems']) - 1} gold"]]
    return picture.replace("<style></style>", data["styles"])


def packed(value: object) -> str:
    """Plain values as compressed JSON in letters; the script of the page unpacks them when they are wanted.

    Example:
        >>> json.loads(zlib.decompress(base64.b64decode(packed({"a": 1}))))
        {'a': 1}
    """
    return base64.b64encode(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 9)).decode()
