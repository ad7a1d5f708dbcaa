"""Trained systems by name, and what each of them gives."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spigot.config import Config
from spigot.data.conventions import Conventions
from spigot.data.sentence import Sentence
from spigot.models.constraints import Constraints, Infeasible
from spigot.models.inspection import Inspection, inspect
from spigot.models.parser import Parser
from spigot.serve.examples import Known, known_sentences
from spigot.training import load

_MOODS = {
    2: ("negative", "positive"),
    3: ("negative", "neutral", "positive"),
    5: ("very negative", "negative", "neutral", "positive", "very positive"),
}
"""What the classes of sentiment corpora are called, by how many there are."""


@dataclass(frozen=True)
class About:
    """What a system is, in plain values.

    Attributes:
        name: How requests call it.
        title: What it was trained as.
        task: `parsing` or `classification`.
        system: How it was trained, e.g. `spigot`.
        gives: What it finds: `heads`, `graph`, `label`.
        constrains: Of which of these the parts can be forced and forbidden.
        roles: The roles of its graphs.
        classes: Its classes, in the order of the probabilities.
        class_names: What to call them.
        tagger: Whether it finds the tags it needs by itself.

    Example:
        >>> About("rain", "tiny", "parsing", "spigot", ("graph",), ("graph",), ("ARG1",), (), (), True).gives
        ('graph',)
    """

    name: str
    title: str
    task: str
    system: str
    gives: tuple[str, ...]
    constrains: tuple[str, ...]
    roles: tuple[str, ...]
    classes: tuple[int, ...]
    class_names: tuple[str, ...]
    tagger: bool


@dataclass(frozen=True)
class System:
    """A trained system that answers requests.

    Attributes:
        name: How requests call it.
        parser: The system.
        run: The folder it comes from, if it comes from one.

    Example:
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Arc, Graph, Sentence
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import JointParser
        >>> vocab = Vocab.of([Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))])
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> System("rain", Parser(config, vocab, JointParser(config, vocab))).about.gives
        ('heads', 'graph')
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
    def about(self) -> About:
        """What it is."""
        config, vocab, model = self.parser.config, self.parser.vocab, self.parser.model
        classifies = self.parser.classifies
        return About(
            name=self.name,
            title=config.name,
            task=config.task,
            system=config.system,
            gives=self.parser.gives,
            constrains=tuple(field for field in self.parser.finds if field != "label"),
            roles=vocab.roles if model.semantics is not None else (),
            classes=vocab.classes if classifies else (),
            class_names=_class_names(config, vocab.classes) if classifies else (),
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


def open_systems(runs: Sequence[Path]) -> Iterator[System]:
    """Load runs, each under a name of its own: that of its folder, with more of its path if two are called the same.

    Args:
        runs: Folders that `spigot train` made.

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
        parser = load(run)
        if parser.reads_gold:
            raise ValueError(f"{run} reads the right trees, and text has none; serve a run that finds its own.")
        yield System(name, parser, run)


def _names(places: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    for length in range(1, max(len(place.parts) for place in places) + 1):
        names = ["/".join(place.parts[-length:]) for place in places]
        if len(set(names)) == len(names):
            return names
    return [str(place) for place in places]


def _class_names(config: Config, classes: Sequence[int]) -> tuple[str, ...]:
    data = config.data
    moods = data.source == "synthetic" or data.labels.format.startswith("sst")
    if moods and len(classes) in _MOODS:
        return _MOODS[len(classes)]
    return tuple(map(str, classes))
