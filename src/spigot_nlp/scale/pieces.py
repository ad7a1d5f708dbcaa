"""The list of work: a corpus in pieces, each of which becomes one shard."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spigot_nlp.data.text.foreign import Foreign
from spigot_nlp.scale.survey import Span

_PLAIN = {name: getattr(Span("", "text"), name) for name in Span.__dataclass_fields__}


@dataclass(frozen=True)
class Piece:
    """What one worker parses at a time, and writes to one shard.

    Attributes:
        number: Which piece of the corpus it is, from 0; shards in the order of their names are the corpus in its order.
        spans: The parts of files it has, in their order.

    Example:
        >>> piece = Piece(3, (Span("a.txt", "text", start=10),))
        >>> Piece.from_line(piece.line()) == piece
        True
        >>> piece.shard(".parquet"), piece.errors
        ('part-0000003.parquet', 'errors-0000003.jsonl')
    """

    number: int
    spans: tuple[Span, ...]

    def shard(self, suffix: str) -> str:
        """The name of its shard."""
        return f"part-{self.number:07}{suffix}"

    @property
    def errors(self) -> str:
        """The name of the shard of what could not be read."""
        return f"errors-{self.number:07}.jsonl"

    def line(self) -> str:
        """The piece as a line of JSON, without what is as usual."""
        spans = [{name: value for name, value in asdict(s).items() if value != _PLAIN[name]} for s in self.spans]
        spans = [{"name": s.name, "kind": s.kind, **plain} for s, plain in zip(self.spans, spans, strict=True)]
        return json.dumps({"piece": self.number, "spans": spans}, ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> "Piece":
        """The piece of a line."""
        record: dict[str, Any] = json.loads(line)
        return cls(record["piece"], tuple(Span(**span) for span in record["spans"]))


def gathered(spans: Iterable[Span], size: int) -> list[Piece]:
    """Parts of files, in their order, as pieces of about one size: small files share one.

    Args:
        spans: The parts.
        size: How many bytes a piece should have.

    Example:
        >>> spans = [Span("a", "text", weight=3), Span("b", "text", weight=4), Span("c", "text", weight=9)]
        >>> [[span.name for span in piece.spans] for piece in gathered(spans, 8)]
        [['a', 'b'], ['c']]
    """
    groups: list[list[Span]] = []
    weight = 0
    for span in spans:
        if not groups or weight + span.weight > size:
            groups.append([])
            weight = 0
        groups[-1].append(span)
        weight += span.weight
    return [Piece(number, tuple(group)) for number, group in enumerate(groups)]


@dataclass(frozen=True)
class Counts:
    """How much there was in a piece, or in a corpus.

    Attributes:
        documents: Documents that were parsed. One that was cut counts where it begins.
        sentences: Their sentences.
        words: Their words.
        errors: Documents that could not be parsed.
        seconds: How long the workers took.
        lettered: Words with a letter in them.
        new: Those of them that are new to the model.

    Example:
        >>> Counts(1, 10, 200) + Counts(2, 5, 100, errors=1)
        Counts(documents=3, sentences=15, words=300, errors=1, seconds=0.0, lettered=0, new=0)
    """

    documents: int = 0
    sentences: int = 0
    words: int = 0
    errors: int = 0
    seconds: float = 0.0
    lettered: int = 0
    new: int = 0

    @property
    def foreign(self) -> Foreign:
        """How much of it is new to the model."""
        return Foreign(self.lettered, self.new)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, name) + getattr(other, name) for name in Counts.__dataclass_fields__))

    @classmethod
    def total(cls, some: Sequence["Counts"]) -> "Counts":
        """The sum of some.

        Example:
            >>> Counts.total([Counts(1), Counts(2)]).documents
            3
        """
        return sum(some, cls())
