"""Trained systems by name: what each of them gives, and sentences that it knows."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from spigot import ESTIMATORS
from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.annotations.graphs import TOP
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.text.raw import sentences
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import READING, Precision
from spigot_nlp.models.inspection import Inspection, inspect
from spigot_nlp.models.parser import Parser
from spigot_nlp.report.drawings import ABOVE, BELOW
from spigot_nlp.serve.responses import SystemInfo, WireInfo
from spigot_nlp.stages.constraints import Constraints, Infeasible
from spigot_nlp.stages.stage import AbstractStage

_SOME = Constraints(heads=((1, 0),), arcs=(Arc(0, 1, ""),)).by_kind()
_SIDES = {"trees": BELOW, "graphs": ABOVE}
"""Of each kind of constraint an example, and on which side of a drawing its parts stand."""

_POOL = 12  # sentences to choose examples from
_FILES = ("gold.dev.jsonl", "gold.train.jsonl")
_READ, _LENGTHS = 400, range(5, 13)  # of a file, and of a sentence that fits on a screen beside another
_BEFORE = re.compile(r" (?=(?:[.,;:!?%)\]}”’]|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b))", re.IGNORECASE)
_AFTER = re.compile(r"(?<=[(\[{“]) ")


@dataclass(frozen=True)
class Served:
    """A trained system that answers requests.

    Attributes:
        name: How requests call it.
        parser: The system.
        run: The folder it comes from, if it comes from one.
    """

    name: str
    parser: Parser
    run: Path | None = None

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

    @cached_property
    def roles(self) -> list[str]:
        """The roles of the graphs whose arcs can be forced."""
        return list(next(filter(None, (getattr(one.annotation, "roles", ()) for one in self.held.values())), ()))

    @cached_property
    def wires(self) -> list[WireInfo]:
        """How its stages read each other."""
        found = []
        for wire in self.parser.model.all_wires():
            annotation, estimator = self.parser.model.stages[wire.source].annotation, wire.estimator
            name = ESTIMATORS.name_of(type(estimator))
            found.append(
                WireInfo(
                    name=wire.name,
                    annotation=annotation.name,
                    noun=annotation.called,
                    estimator=name,
                    hard=estimator.hard,
                )
            )
        return found

    def info(self, examples: Sequence[str]) -> SystemInfo:
        """What it is, with texts to begin with."""
        config, usual = self.parser.config, [a for a in self.annotations if a.is_usual]
        chooser = next((annotation for annotation in usual if annotation.shares), None)
        return SystemInfo(
            name=self.name,
            title=config.name,
            task=config.task,
            system=config.system,
            gives=list(self.parser.gives),
            called={a.name: a.called for a in self.annotations},
            constrains=[stage.annotation.name for stage in self.held.values()],
            holds={_SIDES[kind]: stage.annotation.name for kind, stage in self.held.items()},
            roles=self.roles,
            classes=[] if chooser is None else list(chooser.options),
            class_names=list(self.parser.class_names.values()),
            wires=self.wires,
            tagger=not self.parser.misses_tags,
            examples=list(examples),
        )

    @cached_property
    def known(self) -> "list[Known]":
        """Sentences to begin with, of words that it knows."""
        return known_sentences(self.parser.vocab, self.run)

    def fitting(self, constraints: Constraints) -> Constraints:
        """The constraints without those on structures or roles that it does not have."""
        kept = {kind: alone for kind, alone in constraints.by_kind().items() if kind in self.held}

        def all_of_them(field: str) -> tuple[Any, ...]:
            return tuple(each for alone in kept.values() for each in getattr(alone, field))

        def known(field: str) -> tuple[Arc, ...]:
            return tuple(arc for arc in all_of_them(field) if arc.role in ("", TOP, *self.roles))

        return Constraints(all_of_them("heads"), all_of_them("not_heads"), known("arcs"), known("not_arcs"))

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
        parser = Parser.load(run, device=device, precision=precision)
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


@dataclass(frozen=True)
class Known:
    """A sentence whose words a system knows.

    Attributes:
        text: As a reader would type it; it is cut into the words of the sentence again.
        sentence: With its right annotation, as far as it is known.
    """

    text: str
    sentence: Sentence


def known_sentences(vocab: Vocab, run: Path | None = None) -> list[Known]:
    """Sentences of which a system knows every word: of those its run keeps, or else of the built-in corpus.

    If there is none, the most frequent words stand for one.
    """
    counted = {word: count for word, count in zip(vocab.words, vocab.counts, strict=True) if count}
    conventions = Conventions.of(vocab)
    for source in (_kept(run), splits(train=_READ).train):
        usable = (s for s in source if len(s) in _LENGTHS and all(form.lower() in counted for form in s.forms))
        found = list(itertools.islice(_as_text(usable, conventions), _POOL))
        if found:
            return found
    frequent = sorted(counted, key=lambda word: (-counted[word], word))
    words = [word for word in frequent if word.isalpha()][: _LENGTHS.start] or frequent[: _LENGTHS.start]
    return [Known(" ".join(words), Sentence(tuple(words)))] if words else []


def _kept(run: Path | None) -> Iterator[Sentence]:
    for path in () if run is None else (run / name for name in _FILES):
        try:
            yield from itertools.islice(read(path), _READ)
        except (OSError, ValueError):  # it is missing or damaged, which is no reason to serve nothing
            continue


def _as_text(found: Iterator[Sentence], conventions: Conventions) -> Iterator[Known]:
    """Those that can be written so that they are cut into the same words again."""
    for sentence in found:
        spaced = " ".join(sentence.forms)
        for text in (_AFTER.sub("", _BEFORE.sub("", spaced)), spaced):
            cut = list(sentences(text, hyphens=conventions.hyphens, cannot=conventions.cannot))
            if len(cut) == 1 and cut[0].forms == sentence.forms:
                yield Known(text, sentence)
                break


def best_first(
    pool: Sequence[Known], answers: Sequence[Sequence[Sentence]], annotations: Sequence[AbstractAnnotation]
) -> list[Known]:
    """The most telling sentences of a pool first: one that a system has right, and in which two systems differ.

    Args:
        pool: Sentences to choose from.
        answers: What each system says about each of them.
        annotations: By what they are compared.
    """

    def order(k: int) -> tuple[bool, int, int]:
        mine = [answer[k] for answer in answers]
        apart = _differences(mine[0], mine[1], annotations) if len(mine) > 1 else 0
        wrong = min((_differences(pool[k].sentence, each, annotations) for each in mine), default=0)
        return len(mine) > 1 and not apart, wrong, apart

    return [pool[k] for k in sorted(range(len(pool)), key=order)]


def _differences(one: Sentence, other: Sentence, annotations: Sequence[AbstractAnnotation]) -> int:
    """In how many heads, arcs and classes two analyses differ; what one of them lacks is not compared."""
    pairs = ((annotation.drawn(one), annotation.drawn(other)) for annotation in annotations)
    return sum(len(mine.parts ^ theirs.parts) for mine, theirs in pairs if mine is not None and theirs is not None)
