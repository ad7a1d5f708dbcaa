"""Trained systems by name, and what each of them gives."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from spigot import ESTIMATORS
from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.encoders import READING, Precision
from spigot_nlp.models.inspection import Inspection, inspect
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.wire import Wire
from spigot_nlp.report.drawings import ABOVE, BELOW
from spigot_nlp.serve.examples import Known, known_sentences
from spigot_nlp.stages.constraints import Constraints, Infeasible
from spigot_nlp.stages.stage import AbstractStage
from spigot_nlp.training import load

_SOME = Constraints(heads=((1, 0),), arcs=(Arc(0, 1, ""),)).by_kind()
_SIDES = {"trees": BELOW, "graphs": ABOVE}
"""Of each kind of constraint an example, and on which side of a drawing its parts stand."""


@dataclass(frozen=True)
class AboutWire:
    """What a wire of a system is, in plain values.

    Attributes:
        name: What it is called.
        annotation: What passes it.
        noun: What one of these is called.
        estimator: What comes back by it, as configurations call it.
        hard: Whether it is one structure that passes, and not a mixture of which it is the best.

    Example:
        >>> AboutWire("syntax -> semantics", "heads", "tree", "spigot", hard=True).noun
        'tree'
    """

    name: str
    annotation: str
    noun: str
    estimator: str
    hard: bool


@dataclass(frozen=True)
class About:
    """What a system is, in plain values.

    Attributes:
        name: How requests call it.
        title: What it was trained as.
        task: The experiment that it comes from, if that has a name.
        system: How it was trained, e.g. `spigot`.
        gives: What it finds, by the names of the annotations: `heads`, `graph`, `label`.
        called: What each of these is called.
        constrains: Of which of these the parts can be forced and forbidden.
        holds: The same by the side of a drawing that it stands on.
        roles: The roles of the graphs whose arcs can be.
        classes: Its classes, in the order of the probabilities.
        class_names: What to call them.
        wires: How its stages read each other.
        tagger: Whether it finds the tags it needs by itself.

    Example:
        >>> About("rain", "", "", "ste", ("mood",), {"mood": "class"}, (), {}, (), (), (), (), True).called["mood"]
        'class'
    """

    name: str
    title: str
    task: str
    system: str
    gives: tuple[str, ...]
    called: dict[str, str]
    constrains: tuple[str, ...]
    holds: dict[str, str]
    roles: tuple[str, ...]
    classes: tuple[int, ...]
    class_names: tuple[str, ...]
    wires: tuple[AboutWire, ...]
    tagger: bool


@dataclass(frozen=True)
class Served:
    """A trained system that answers requests.

    Attributes:
        name: How requests call it.
        parser: The system.
        run: The folder it comes from, if it comes from one.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))
        >>> served = Served("rain", fresh(make_config({"data": {"tags": "columns"}}), {"graphs": [rain]}))
        >>> served.about.gives, [wire.name for wire in served.about.wires]
        (('heads', 'graph'), ['syntax -> semantics'])
    """

    name: str
    parser: Parser
    run: Path | None = None

    @cached_property
    def known(self) -> list[Known]:
        """Sentences to begin with, of words that it knows."""
        return known_sentences(self.parser.vocab, self.run)

    @cached_property
    def conventions(self) -> Conventions:
        """How the data it was trained on are tokenised and spelt."""
        return self.parser.conventions

    @cached_property
    def annotations(self) -> list[AbstractAnnotation]:
        """All that it gives, in the order of its stages, but first what can be forced: it must stand in its place."""
        held = [stage.annotation for stage in self.held.values()]
        given = self.parser.annotations
        return list({**{a.name: a for a in held if a.name in given}, **given}.values())

    @cached_property
    def held(self) -> dict[str, AbstractStage]:
        """The stage whose structures each kind of constraint is about; none where several stages could be meant."""
        stages = [stage for stage in self.parser.model.stages.values() if stage.learns]
        found = {kind: [stage for stage in stages if stage.is_concerned(some)] for kind, some in _SOME.items()}
        return {kind: concerned[0] for kind, concerned in found.items() if len(concerned) == 1}

    @property
    def wires(self) -> list[Wire]:
        """How its stages read each other."""
        return list(self.parser.model.all_wires())

    @cached_property
    def about(self) -> About:
        """What it is."""
        config, stages = self.parser.config, self.parser.model.stages
        usual = (stage for stage in stages.values() if stage.annotation.is_usual)
        chooser = next((stage for stage in usual if stage.annotation.shares), None)
        roles = (getattr(stage.annotation, "roles", ()) for stage in self.held.values())
        return About(
            name=self.name,
            title=config.name,
            task=config.task,
            system=config.system,
            gives=self.parser.gives,
            called={a.name: a.called for a in self.annotations},
            constrains=tuple(stage.annotation.name for stage in self.held.values()),
            holds={_SIDES[kind]: stage.annotation.name for kind, stage in self.held.items()},
            roles=next(filter(None, roles), ()),
            classes=() if chooser is None else chooser.annotation.options,
            class_names=tuple(self.parser.class_names.values()),
            wires=tuple(
                AboutWire(
                    wire.name,
                    stages[wire.source].annotation.name,
                    stages[wire.source].annotation.called,
                    ESTIMATORS.name_of(type(wire.estimator)),
                    wire.estimator.hard,
                )
                for wire in self.wires
            ),
            tagger=not self.parser.misses_tags,
        )

    def plain(self) -> dict[str, Any]:
        """What it is, for JSON."""
        return asdict(self.about)

    def inspect(
        self, sentences: Sequence[Sentence], constraints: Sequence[Constraints | None], *, top: int
    ) -> list[Inspection | Infeasible]:
        """What it finds in sentences, told to it in its own spelling; the answers have the spelling that was given.

        Args:
            sentences: What to parse.
            constraints: What the structures of each sentence must have and must not have.
            top: How many heads of a word, and how many other roles of an arc, to list.

        Returns:
            One answer a sentence, or why its constraints cannot be met.
        """
        return inspect(self.parser, sentences, constraints, top=top, plain=True, errors="return")


def open_systems(
    runs: Sequence[Path], device: torch.device | str = "cpu", precision: Precision = READING
) -> Iterator[Served]:
    """Load runs, each under a name of its own: that of its folder, with more of its path if two are called the same.

    Args:
        runs: Folders that `spigot train` made.
        device: Where they are to compute.
        precision: What their encoders are to compute in.

    Raises:
        ValueError: If there are none, if one is given twice, or if one cannot read text.
        FileNotFoundError: If a run lacks a file.

    Example:
        >>> list(open_systems([]))
        Traceback (most recent call last):
        ...
        ValueError: there is no run to serve; give the folder of at least one.
    """
    if not runs:
        raise ValueError("there is no run to serve; give the folder of at least one.")
    places = [run.resolve() for run in runs]
    for place, run in zip(places, runs, strict=True):
        if places.count(place) > 1:
            raise ValueError(f"{run} is given twice; give each run once.")
    for name, run in zip(_names(places), runs, strict=True):
        parser = load(run, device, precision=precision)
        if parser.reads_gold:
            read = [a.nouns for a in parser.model.annotations.values() if a.name in parser.reads_gold]
            nouns = " and ".join(dict.fromkeys(read))
            raise ValueError(f"{run} reads the right {nouns}, and text has none; serve a run that finds its own.")
        yield Served(name, parser, run)


def _names(places: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    for length in range(1, max(len(place.parts) for place in places) + 1):
        names = ["/".join(place.parts[-length:]) for place in places]
        if len(set(names)) == len(names):
            return names
    return [str(place) for place in places]
