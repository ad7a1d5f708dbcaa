"""What systems say about the development data, and how each answer fares beside the right one and the baseline's."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.report.material import Contender
from spigot_nlp.report.speed import Pace


@dataclass(frozen=True)
class Answers:
    """What one system says about the development data.

    Attributes:
        contender: The system.
        parser: Its first run, loaded.
        gold: The right answers, with the tags and lemmas that it sees.
        found: Its answers.
        pace: How fast it found them.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> from spigot_nlp.models.build import fresh
        >>> from spigot_nlp.report.material import Run
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> parser = fresh(config, {"graphs": [rain]})
        >>> contender = Contender("spigot", (Run(Path("nowhere"), config, {}),), 0)
        >>> Answers(contender, parser, [rain], [rain], Pace(1, 2, 0.5)).pace.tokens
        2
    """

    contender: Contender
    parser: Parser
    gold: list[Sentence]
    found: list[Sentence]
    pace: Pace

    @property
    def end(self) -> AbstractAnnotation:
        """What the system is for."""
        return self.parser.end.annotation.members[0]

    @property
    def annotations(self) -> list[AbstractAnnotation]:
        """All that it gives: what it is for, then what that reads, and so on back."""
        end, given = self.parser.end.annotation.members, self.parser.annotations
        return list({**{one.name: one for one in end}, **dict(reversed(given.items()))}.values())

    @property
    def inside(self) -> dict[str, AbstractAnnotation]:
        """What it learns to find on the way there, by name."""
        model = self.parser.model
        stages = (model.stages[wire.source] for wire in model.all_wires())
        return {one.name: one for stage in stages if stage.learns for one in stage.annotation.members}


def answers(contender: Contender, parser: Parser, gold: Sequence[Sentence]) -> Answers:
    """Let a system parse sentences, and take the time.

    Args:
        contender: The system.
        parser: Its first run, loaded.
        gold: The sentences.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> from spigot_nlp.models.build import fresh
        >>> from spigot_nlp.report.material import Run
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> parser = fresh(config, {"graphs": [rain]})
        >>> mine = answers(Contender("spigot", (Run(Path("nowhere"), config, {}),), 0), parser, [rain])
        >>> mine.found[0].forms, mine.pace.tokens
        (('Rain', 'fell'), 2)
    """
    for stage in parser.model.stages.values():
        if stage.settings.latent and not stage.annotation.is_nameless:
            # Names that nobody gave cannot be right or wrong.
            gold = [sentence.put(stage.annotation.name, None) for sentence in gold]
    started = time.perf_counter()
    found = list(parser.pipe(gold, tagged=True))
    pace = Pace(len(found), sum(map(len, found)), time.perf_counter() - started)
    return Answers(contender, parser, list(gold), found, pace)


@dataclass(frozen=True)
class Judged:
    """What is known about one system's answer to one sentence.

    Attributes:
        says: In words.
        wrong: Whether anything of the end task is wrong.
        changed: Whether a structure inside differs from the baseline's.
        flipped: Whether what is said about the whole sentence does: its class.
        gain: Right minus wrong answers (arcs, words, classes), less those of the baseline.

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
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> from spigot_nlp.models.build import fresh
        >>> from spigot_nlp.report.material import Run
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> parser = fresh(config, {"graphs": [rain]})
        >>> contender = Contender("spigot", (Run(Path("nowhere"), config, {}),), 0)
        >>> right = Answers(contender, parser, [rain], [rain], Pace(1, 2, 0.5))
        >>> from dataclasses import replace
        >>> wrong = replace(right, found=[replace(rain, heads=(0, 1), graph=Graph())])
        >>> judge(wrong, right)[0].flags(), judge(wrong, right)[0].says
        ('wcl', 'graph: 0 right, 0 wrong, 2 missed; tree: 0 of 2 heads right')
    """
    end, inside = mine.end, {} if baseline is None else mine.inside
    shared = [annotation for name, annotation in inside.items() if baseline is not None and name in baseline.inside]
    ours, theirs = _worth(mine), None if baseline is None else _worth(baseline)
    judged = []
    for k, (gold, found) in enumerate(zip(mine.gold, mine.found, strict=True)):
        other = None if baseline is None else baseline.found[k]
        said = (annotation.fares(gold, found) for annotation in mine.annotations)
        judged.append(
            Judged(
                says="; ".join(filter(None, said)),
                wrong=gold.get(end.name) is not None and not _same(end, gold, found),
                changed=other is not None and not all(_same(annotation, other, found) for annotation in shared),
                flipped=other is not None and is_whole(end, found) and not _same(end, other, found),
                gain=0 if theirs is None else ours[k] - theirs[k],
            )
        )
    return judged


def is_whole(annotation: AbstractAnnotation, sentence: Sentence) -> bool:
    """Whether an annotation says one thing about a sentence as a whole, and nothing about its words.

    Example:
        >>> from spigot_nlp.annotations import Classes, Trees
        >>> rain = Sentence(("Rain",), label=1, heads=(0,))
        >>> is_whole(Classes(), rain), is_whole(Trees(), rain)
        (True, False)
    """
    drawn = annotation.drawn(sentence)
    return drawn is not None and bool(drawn.note) and not drawn.arcs and not drawn.marks


def _same(annotation: AbstractAnnotation, one: Sentence, other: Sentence) -> bool:
    first, second = one.get(annotation.name), other.get(annotation.name)
    if first is None or second is None:
        return True
    if not annotation.same(first, second):
        return False
    # What stands beside the value: the relations of trees that have some on both sides.
    drawn = [annotation.drawn(sentence) for sentence in (one, other)]
    labelled = [each.arcs for each in drawn if each is not None and each.labelled]
    return len(labelled) < len(drawn) or labelled[0] == labelled[1]


def _worth(answers: Answers) -> list[int]:
    """Right minus wrong answers of each sentence that can be judged."""
    name, worth = answers.end.name, [0] * len(answers.gold)
    known = [k for k, gold in enumerate(answers.gold) if gold.get(name) is not None]
    counts = answers.end.measures[0].counts([answers.gold[k] for k in known], [answers.found[k] for k in known])
    for k, correct, predicted in zip(known, counts.correct, counts.predicted, strict=True):
        worth[k] = int(2 * correct - predicted)
    return worth
