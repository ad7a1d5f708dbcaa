"""What systems say about the development data, and how each answer fares beside the right one and the baseline's."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spigot.data.sentence import Graph, Sentence
from spigot.evaluation import graph_counts, tree_counts
from spigot.models.parser import Parser
from spigot.report.material import System
from spigot.report.speed import Pace


@dataclass(frozen=True)
class Answers:
    """What one system says about the development data.

    Attributes:
        system: The system.
        parser: Its first run, loaded.
        gold: The right answers, with the tags and lemmas that it sees.
        found: Its answers.
        pace: How fast it found them.

    Example:
        >>> from pathlib import Path
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Arc, Graph
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import joint_model
        >>> from spigot.report.material import Run
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab = Vocab.of([rain])
        >>> parser = Parser(config, vocab, joint_model(config, vocab))
        >>> system = System("spigot", (Run(Path("nowhere"), config, {}),), 0)
        >>> Answers(system, parser, [rain], [rain], Pace(1, 2, 0.5)).pace.tokens
        2
    """

    system: System
    parser: Parser
    gold: list[Sentence]
    found: list[Sentence]
    pace: Pace


def answers(system: System, parser: Parser, gold: Sequence[Sentence]) -> Answers:
    """Let a system parse sentences, and take the time.

    Args:
        system: The system.
        parser: Its first run, loaded.
        gold: The sentences.

    Example:
        >>> from pathlib import Path
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Arc, Graph
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import joint_model
        >>> from spigot.report.material import Run
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab = Vocab.of([rain])
        >>> parser = Parser(config, vocab, joint_model(config, vocab))
        >>> mine = answers(System("spigot", (Run(Path("nowhere"), config, {}),), 0), parser, [rain])
        >>> mine.found[0].forms, mine.pace.tokens
        (('Rain', 'fell'), 2)
    """
    config = parser.config
    if config.is_latent and config.intermediate == "semantics":
        # Roles that nobody named cannot be right or wrong.
        gold = [replace(sentence, graph=None) for sentence in gold]
    started = time.perf_counter()
    found = list(parser.parse(gold, tagged=True))
    pace = Pace(len(found), sum(map(len, found)), time.perf_counter() - started)
    return Answers(system, parser, list(gold), found, pace)


@dataclass(frozen=True)
class Judged:
    """What is known about one system's answer to one sentence.

    Attributes:
        says: In words.
        wrong: Whether anything of the end task is wrong.
        changed: Whether the structure inside differs from the baseline's.
        flipped: Whether the class does.
        gain: Right minus wrong arcs, less those of the baseline; for classes 1, 0 or -1.

    Example:
        >>> Judged("class 1, right", wrong=False, changed=True, flipped=True, gain=1).flags()
        'cfg'
    """

    says: str
    wrong: bool
    changed: bool
    flipped: bool
    gain: int

    def flags(self) -> str:
        """One letter for each thing that a reader may look for."""
        kinds = {"w": self.wrong, "c": self.changed, "f": self.flipped, "g": self.gain > 0, "l": self.gain < 0}
        return "".join(letter for letter, holds in kinds.items() if holds)


def judge(mine: Answers, baseline: Answers | None) -> list[Judged]:
    """Judge every answer of a system by the right one and by that of the baseline.

    Args:
        mine: The answers of the system.
        baseline: Those of the baseline to the same sentences; `None` if there is none, or the system is it.

    Example:
        >>> from pathlib import Path
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Arc, Graph
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import joint_model
        >>> from spigot.report.material import Run
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab = Vocab.of([rain])
        >>> parser = Parser(config, vocab, joint_model(config, vocab))
        >>> system = System("spigot", (Run(Path("nowhere"), config, {}),), 0)
        >>> right = Answers(system, parser, [rain], [rain], Pace(1, 2, 0.5))
        >>> wrong = replace(right, found=[replace(rain, heads=(0, 1), graph=Graph())])
        >>> judge(wrong, right)[0].flags(), judge(wrong, right)[0].says
        ('wcl', 'graph: 0 right, 0 wrong, 2 missed; tree: 0 of 2 heads right')
    """
    ours, theirs = _worth(mine), None if baseline is None else _worth(baseline)
    parsers = [each.parser.config.intermediate for each in (mine, baseline) if each is not None]
    kind = {"syntax": "heads", "semantics": "graph", None: None}[parsers[0]] if len(set(parsers)) == 1 else None
    judged = []
    for k, (gold, found) in enumerate(zip(mine.gold, mine.found, strict=True)):
        other = None if baseline is None else baseline.found[k]
        before = None if other is None or kind is None else getattr(other, kind)
        judged.append(
            Judged(
                says=_says(gold, found),
                wrong=_is_wrong(gold, found),
                changed=before is not None and _shape(before) != _shape(getattr(found, kind or "")),
                flipped=other is not None and other.label != found.label,
                gain=0 if theirs is None else ours[k] - theirs[k],
            )
        )
    return judged


def _shape(structure: tuple[int, ...] | Graph) -> object:
    """A tree or graph without what is not compared."""
    return structure if isinstance(structure, tuple) else (structure.arcs, structure.tops)


def _worth(answers: Answers) -> list[int]:
    worth = []
    for gold, found in zip(answers.gold, answers.found, strict=True):
        if gold.label is not None and found.label is not None:
            worth.append(int(gold.label == found.label))
        elif gold.graph is not None and found.graph is not None:
            counts = graph_counts([gold], [found])
            worth.append(int(2 * counts.correct[0] - counts.predicted[0]))
        else:
            worth.append(0)
    return worth


def _is_wrong(gold: Sentence, found: Sentence) -> bool:
    if gold.label is not None:
        return gold.label != found.label
    return gold.graph is not None and found.graph is not None and _shape(gold.graph) != _shape(found.graph)


def _says(gold: Sentence, found: Sentence) -> str:
    """How an answer fares, in words."""
    parts = []
    if found.label is not None:
        sure = f" ({max(found.probabilities):.2f})" if found.probabilities else ""
        right = "" if gold.label is None else ", right" if gold.label == found.label else f", but {gold.label} is right"
        parts.append(f"class {found.label}{sure}{right}")
    if gold.graph is not None and found.graph is not None:
        counts = graph_counts([gold], [found])
        right, given, wanted = (int(n[0]) for n in (counts.correct, counts.predicted, counts.gold))
        parts.append(f"graph: {right} right, {given - right} wrong, {wanted - right} missed")
    if gold.heads is not None and found.heads is not None and len(gold):
        right = int(tree_counts([gold], [found]).correct[0])
        parts.append(f"tree: {right} of {len(gold)} heads right")
    return "; ".join(parts)
