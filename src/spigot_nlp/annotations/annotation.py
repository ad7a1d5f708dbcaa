"""What a kind of annotation is: everything that anyone needs to know about it is asked of it."""

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor

from spigot import Registry
from spigot_nlp.data.sentence import Sentence

if TYPE_CHECKING:
    from spigot_nlp.evaluation.counts import Counts
    from spigot_nlp.tables import Table

ANNOTATIONS: "Registry[AbstractAnnotation]" = Registry("kind of annotation")
"""The kinds of annotation by name."""


class DrawnArc(NamedTuple):
    """An arc of a drawing, as an annotation gives it. Words count from 1; an arc from 0 comes from nowhere.

    Example:
        >>> DrawnArc(2, 1, "ARG1").label
        'ARG1'
    """

    start: int
    end: int
    label: str = ""


@dataclass(frozen=True)
class Drawn:
    """What an annotation looks like beside its words.

    Attributes:
        arcs: Arcs between words.
        above: Whether they are drawn above the words.
        labelled: Whether arcs that differ in their label differ.
        bold: The words that stand out, counted from 1.
        marks: A word or two under each word; empty if there are none.
        note: What is said about the whole sentence.

    Example:
        >>> Drawn(note="positive").arcs
        ()
        >>> len(Drawn((DrawnArc(2, 1), DrawnArc(0, 2))).parts ^ Drawn((DrawnArc(2, 1),)).parts)
        1
    """

    arcs: tuple[DrawnArc, ...] = ()
    above: bool = False
    labelled: bool = True
    bold: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    note: str = ""

    @property
    def parts(self) -> frozenset[Any]:
        """All that can differ between two of them."""
        arcs = self.arcs if self.labelled else (arc._replace(label="") for arc in self.arcs)
        return frozenset((*arcs, *enumerate(self.marks), *([self.note] if self.note else [])))


@dataclass(frozen=True)
class Measure:
    """A number by which answers are judged, in per cent when it is shown.

    Attributes:
        name: What it is called in print, and in the scores of development data.
        key: What the annotation's `score` calls it; with dots, what stands in tables inside.
        counts: Right, given and wanted answers of each sentence.
        about: What it is, in a sentence.

    Example:
        >>> rain = Sentence(("Rain",), label=1)
        >>> from spigot_nlp.annotations import Classes
        >>> [(measure.name, measure.counts([rain], [rain]).f1()) for measure in Classes().measures]
        [('accuracy', 1.0)]
    """

    name: str
    key: str
    counts: Callable[[Iterable[Sentence], Iterable[Sentence]], "Counts"]
    about: str = ""

    def value(self, scores: Mapping[str, Any]) -> float:
        """The number in what `score` gave, as JSON has it."""
        found: Any = scores
        for part in self.key.split("."):
            found = found[part]
        return found["f1"] if isinstance(found, Mapping) else found


Bounds = Mapping[str, tuple[float, float]]
"""Confidence intervals by the key of the number."""


def percent(share: float) -> str:
    """A share as it stands in tables.

    Example:
        >>> percent(0.91234)
        '91.23'
    """
    return f"{100 * share:.2f}"


def bounded(bounds: Bounds, key: str, cells: Sequence[str]) -> list[str]:
    """A row with the interval of its number behind it, where there are any."""
    if not bounds:
        return list(cells)
    return [*cells, f"{percent(bounds[key][0])} to {percent(bounds[key][1])}" if key in bounds else ""]


INTERVAL = "95 % interval"


@dataclass(frozen=True)
class AbstractAnnotation(abc.ABC):
    """A kind of analysis of a sentence, under a name.

    Beside where it stands it knows the names that its training data have (roles, classes), so that it can turn what is
    right into integers and what was found into values. A new one is one subclass, registered under its name.

    Attributes:
        name: Where it stands in a `Sentence`.

    Example:
        >>> from spigot_nlp.annotations import ANNOTATIONS, Tags
        >>> tags = Tags.learn("tags", [Sentence(("Rain", "fell"), tags=("NN", "VBD"))], None)
        >>> ANNOTATIONS["tags"] is Tags, tags.name, tags.nouns, tags.dataset
        (True, 'tags', 'tags', 'trees')
    """

    name: str = ""

    noun: ClassVar[str]
    """What one of them is called, e.g. `tree`."""

    nouns: ClassVar[str]
    """What several are called, e.g. `trees`."""

    dataset: ClassVar[str]
    """The data set that a stage learns it from unless told otherwise: a table `[data.NAME]`."""

    key: ClassVar[str]
    """What scores of it stand under, as JSON has them."""

    suffix: ClassVar[str]
    """The format that predictions are written in, by the ending of its files."""

    @classmethod
    @abc.abstractmethod
    def learn(cls, name: str, sentences: Sequence[Sentence], settings: Any) -> "AbstractAnnotation":
        """What training sentences teach about the annotation: its names.

        Args:
            name: Where it stands in a sentence.
            sentences: The training sentences of the stage.
            settings: Those of the stage.
        """

    @property
    def members(self) -> "tuple[AbstractAnnotation, ...]":
        """The annotations that it consists of, each under its own name in a sentence: usually itself alone."""
        return (self,)

    def value(self, sentence: Sentence) -> Any:
        """What a sentence has of it; `None` if nothing."""
        return sentence.get(self.name)

    @abc.abstractmethod
    def encode(self, value: Any, sentence: Sentence) -> Any:
        """A value as arrays of whole numbers; `None` if it cannot be learned from."""

    @abc.abstractmethod
    def collate(self, encoded: Sequence[Any], size: int) -> Any:
        """What `encode` gave of several sentences as one tensor, or a named tuple of tensors.

        Args:
            encoded: The values.
            size: Positions of the batch, with the root.
        """

    @abc.abstractmethod
    def decode(self, z: Tensor, lengths: Sequence[int]) -> list[Any]:
        """The values of structures that were found.

        Args:
            z: One structure a sentence.
            lengths: Words of each sentence.
        """

    @abc.abstractmethod
    def score(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Any:
        """Everything there is to say about predicted values, as a plain dataclass."""

    @property
    @abc.abstractmethod
    def measures(self) -> tuple[Measure, ...]:
        """The numbers it is judged by; a training goes by the first."""

    @property
    def further_measures(self) -> tuple[Measure, ...]:
        """The same numbers counted otherwise: without punctuation, without tops."""
        return ()

    def tables(self, scores: Mapping[str, Any], bounds: Bounds, *, every: bool = False) -> "list[Table]":
        """Scores of one set of sentences as tables.

        Args:
            scores: What `score` gave, as JSON has it.
            bounds: Confidence intervals of some of the numbers.
            every: Whether to give the numbers of every role or class too.
        """
        from spigot_nlp.tables import plain_table

        rows = [bounded(bounds, m.key, [m.name, percent(m.value(scores))]) for m in self.measures]
        columns = ["", "per cent", *([INTERVAL] if bounds else [])]
        return [plain_table(f"{self.nouns.capitalize()}: {scores['sentences']} sentences, per cent", columns, rows)]

    def summary(self, parts: Mapping[str, Mapping[str, Any]]) -> "Table":
        """Scores of several sets of sentences as one table, a row for each.

        Args:
            parts: What `score` gave of each, as JSON has it.
        """
        from spigot_nlp.tables import plain_table

        rows = [
            [name, str(scores["sentences"]), *(percent(measure.value(scores)) for measure in self.measures)]
            for name, scores in parts.items()
        ]
        names = (measure.name for measure in self.measures)
        return plain_table(f"{self.nouns.capitalize()}, per cent", ["", "sentences", *names], rows)

    @abc.abstractmethod
    def draw(self, value: Any) -> Drawn:
        """What a value looks like beside its words."""

    def places(self, value: Any) -> dict[Any, Any]:
        """What a value says, by the places where another value may say otherwise: pairs of words, words, the whole."""
        drawn = self.draw(value)
        arcs = {(arc.start, arc.end): arc.label for arc in drawn.arcs}
        return {**arcs, **dict(enumerate(drawn.marks)), **({"": drawn.note} if drawn.note else {})}

    def drawn(self, sentence: Sentence) -> Drawn | None:
        """What a sentence's value looks like, with whatever else it says about it; `None` if it has none."""
        value = sentence.get(self.name)
        return None if value is None else self.draw(value)

    @property
    def called(self) -> str:
        """What one of them is called where a sentence may have several: by its own name, if it has one."""
        return self.noun if self.is_usual else self.name

    @property
    def is_usual(self) -> bool:
        """Whether it stands where annotations of this kind usually do."""
        return self.name == type(self).name

    @property
    def beside(self) -> tuple[str, ...]:
        """What else stands in a sentence that is about this annotation, and means nothing beside another one's."""
        return (self.shares,) if self.shares else ()

    @property
    def shares(self) -> str:
        """Where a sentence has the probability of each of the `options`; empty if it has none."""
        return ""

    @property
    def options(self) -> tuple[Any, ...]:
        """The values there are, if a sentence has the probability of each."""
        return ()

    def fares(self, gold: Sentence, found: Sentence) -> str:
        """How what was found fares beside what is right, in words; empty if there is nothing to say."""
        if gold.get(self.name) is None or found.get(self.name) is None:
            return ""
        counts = self.measures[0].counts([gold], [found])
        right, given, wanted = (int(numbers[0]) for numbers in (counts.correct, counts.predicted, counts.gold))
        return f"{self.called}: {right} right, {given - right} wrong, {wanted - right} missed"

    @property
    def is_nameless(self) -> bool:
        """Whether its values have no names of their own, so that what nobody annotated can still be right or wrong."""
        return len(self.names()) == 1

    def written(self, sentence: Sentence) -> Sentence:
        """A sentence as formats write it: they know each kind of annotation by one name only."""
        return sentence if self.is_usual else sentence.put(type(self).name, sentence.get(self.name))

    def reread(self, sentence: Sentence) -> Sentence:
        """A sentence that was `written`, read again, with its value under its own name."""
        if self.is_usual or sentence.get(self.name) is not None:
            return sentence
        return sentence.put(self.name, sentence.get(type(self).name))

    def advice(self, values: Iterable[Any], file_format: str | None) -> str:
        """What to do about values that training has never seen, other than giving a file with the same ones."""
        return f"give a file with the same {self.nouns}"

    def known(self) -> str:
        """The values that training has seen, as the end of a sentence; empty if there is no list of them."""
        return ""

    def same(self, one: Any, other: Any) -> bool:
        """Whether two values say the same."""
        return one == other

    def plain(self, value: Any) -> Any:
        """A value as JSON has it."""
        return value

    def from_plain(self, plain: Any) -> Any:
        """What `plain` gave, as a value."""
        return tuple(plain) if isinstance(plain, list) else plain

    def names(self) -> dict[str, Any]:
        """All that it knows as plain values; `restored` takes them back."""
        return asdict(self)

    @classmethod
    def restored(cls, names: Mapping[str, Any]) -> "AbstractAnnotation":
        """The annotation that `names` came from."""
        values: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in names.items()}
        return cls(**values)


def padded(rows: Sequence[np.ndarray], size: int) -> np.ndarray:
    """Rows of different lengths as one array, with zeros behind.

    Example:
        >>> padded([np.array([0, 2]), np.array([0, 2, 1])], 4).tolist()
        [[0, 2, 0, 0], [0, 2, 1, 0]]
    """
    whole = np.zeros((len(rows), size), dtype=np.int64)
    for k, row in enumerate(rows):
        whole[k, : len(row)] = row
    return whole
