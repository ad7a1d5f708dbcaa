"""Why a system says what it says: scores and marginals of what it chose and of what it might have chosen instead."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, overload

import torch
from torch import Tensor

from spigot.data.batch import Batch, collate, encode
from spigot.data.sentence import Arc, Sentence
from spigot.data.vocab import TOP
from spigot.models.answers import Answer, Evidence
from spigot.models.constraints import Constraints, Infeasible
from spigot.models.parser import Parser, with_tags
from spigot.types import Parts


@dataclass(frozen=True)
class Alternative:
    """A head that a word has or might have had.

    Attributes:
        head: Which word; 0 is the root.
        score: The score of the arc from it.
        difference: The same less the score of the arc from the chosen head: negative means worse.
        marginal: How probable the arc is under all trees that meet the constraints; 0 where they rule it out.

    Example:
        >>> Alternative(head=2, score=1.5, difference=-0.25, marginal=0.4).difference
        -0.25
    """

    head: int
    score: float
    difference: float
    marginal: float | None = None


@dataclass(frozen=True)
class ArcScore:
    """An arc of a graph and its rivals.

    Attributes:
        arc: The arc; a top is an arc of predicate 0 with the role TOP.
        score: The scores of the arc and of its role, added up.
        alternatives: The next best roles of these two words, each with the difference it makes to the score.

    Example:
        >>> ArcScore(Arc(2, 1, "ARG1"), 3.5, (("ARG2", -1.25),)).alternatives[0]
        ('ARG2', -1.25)
    """

    arc: Arc
    score: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Inspection:
    """What a system found in a sentence, and by which scores.

    Attributes:
        sentence: The words with all that the system found, and nothing else.
        heads: For every word its heads by how probable they are, the chosen one among them; `None` if the system does
            not search for trees.
        arcs: The arcs of the graph, then its tops; `None` if the system does not search for graphs.

    Example:
        >>> Inspection(Sentence(("Rain",), heads=(0,)), heads=((Alternative(0, 2.0, 0.0, 1.0),),)).arcs is None
        True
    """

    sentence: Sentence
    heads: tuple[tuple[Alternative, ...], ...] | None = None
    arcs: tuple[ArcScore, ...] | None = None


@overload
def inspect(
    parser: Parser,
    sentences: Sequence[Sentence],
    constraints: Sequence[Constraints | None] | None = None,
    *,
    top: int = 5,
    tagged: bool = False,
    plain: bool = False,
    errors: Literal["raise"] = "raise",
) -> list[Inspection]: ...


@overload
def inspect(
    parser: Parser,
    sentences: Sequence[Sentence],
    constraints: Sequence[Constraints | None] | None = None,
    *,
    top: int = 5,
    tagged: bool = False,
    plain: bool = False,
    errors: Literal["return"],
) -> list[Inspection | Infeasible]: ...


def inspect(
    parser: Parser,
    sentences: Sequence[Sentence],
    constraints: Sequence[Constraints | None] | None = None,
    *,
    top: int = 5,
    tagged: bool = False,
    plain: bool = False,
    errors: Literal["raise", "return"] = "raise",
) -> list[Inspection] | list[Inspection | Infeasible]:
    """Parse sentences, and say what else might have been.

    Args:
        parser: The system.
        sentences: What to parse. Annotation they have is not looked at, but for trees if the system reads gold ones.
        constraints: What the structures of each sentence must have and must not have. The end model reads structures
            that meet them.
        top: How many heads of a word, and how many other roles of an arc, to list.
        tagged: Whether the sentences have the tags and lemmas of this system already.
        plain: Whether the words are as people write them, to be read in the spelling of the training data.
        errors: Whether constraints that cannot be met are raised, or returned in the place of that sentence's answer.

    Returns:
        One inspection a sentence, in the same order.

    Raises:
        Infeasible: Constraints do not fit their sentence or this system, or leave no structure; see its `index`.

    Example:
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Graph
        >>> from spigot.data.vocab import Vocab
        >>> from spigot.models.joint import JointParser
        >>> vocab = Vocab.of([Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))])
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> parser = Parser(config, vocab, JointParser(config, vocab))
        >>> rain = Sentence(("Rain", "fell"))
        >>> (found,) = inspect(parser, [rain], [Constraints(heads=((1, 2),), arcs=(Arc(2, 1, "ARG1"),))])
        >>> found.sentence.heads, [head.marginal for head in found.heads[0] if head.head == 2]
        ((2, 0), [1.0])
        >>> [score.arc for score in found.arcs if score.arc.predicate == 2]
        [Arc(predicate=2, argument=1, role='ARG1')]
    """
    if top < 1:
        raise ValueError(f"top is {top}; at least one head of a word must be listed.")
    demands = [None] * len(sentences) if constraints is None else list(constraints)
    if len(demands) != len(sentences):
        raise ValueError(
            f"There are {len(demands)} constraints for {len(sentences)} sentences; give one, or None, for each."
        )
    answers: dict[int, Inspection | Infeasible] = {}
    for k, demand in enumerate(demands):
        if demand is not None and (error := _refused(parser, demand, len(sentences[k]), k)):
            if errors == "raise":
                raise error
            answers[k] = error
    ready = parser.read(sentences, tagged=tagged, plain=plain)
    order = sorted((k for k in range(len(sentences)) if k not in answers), key=lambda k: len(sentences[k]))
    for group in parser.groups(order, [len(sentence) for sentence in sentences]):
        batch = collate([encode(parser.visible(ready[k]), parser.vocab) for k in group])
        lengths = batch.lengths.tolist()
        limits = parser.model.limits([demands[k] for k in group], lengths, batch.size, parser.vocab.roles)
        answer = parser.model.parse(batch, limits)
        found = [
            replace(with_tags(sentences[k], ready[k]).without_annotation(), **fields)
            for k, fields in zip(group, parser.found(answer, lengths), strict=True)
        ]
        heads = _heads(parser, answer, batch, top)
        arcs = _arcs(parser, answer.graph_evidence, batch, found, top)
        answers.update(zip(group, map(Inspection, found, heads, arcs), strict=True))
    return [answers[k] for k in range(len(sentences))]  # pyright: ignore[reportReturnType] (raised, or asked for)


def _refused(parser: Parser, demand: Constraints, length: int, index: int) -> Infeasible | None:
    """Why constraints cannot be met; that does not depend on any score."""
    try:
        parser.model.limits([demand], [length], length + 1, parser.vocab.roles)
    except Infeasible as error:
        return Infeasible(str(error), index)
    return None


def _heads(parser: Parser, answer: Answer, batch: Batch, top: int) -> list[tuple[tuple[Alternative, ...], ...] | None]:
    syntax = parser.model.syntax
    if syntax is None or answer.tree is None or answer.tree_evidence is None:
        return [None] * len(batch)
    scores, mask = answer.tree_evidence
    marginals = syntax.structure.marginals(scores, mask)
    chosen = answer.tree.argmax(-2, keepdim=True)
    best = scores.gather(-2, chosen)
    exists = syntax.structure.mask(batch.lengths, batch.size)
    listed = _ranked(scores, marginals.masked_fill(~exists, -1))[:, :top]
    # A tree may have to take a head that is not among the best.
    listed[:, -1:] = torch.where((listed == chosen).any(-2, keepdim=True), listed[:, -1:], chosen)
    several = [scores.gather(-2, listed), (scores - best).gather(-2, listed), marginals.gather(-2, listed)]
    # One row a word.
    rows = [values.transpose(-1, -2).tolist() for values in (listed, *several, exists.gather(-2, listed))]
    return [
        tuple(
            tuple(Alternative(*values[:4]) for values in zip(*(row[k][word] for row in rows), strict=True) if values[4])
            for word in range(1, length + 1)
        )
        for k, length in enumerate(batch.lengths.tolist())
    ]


def _ranked(scores: Parts, marginals: Parts) -> Tensor:
    """The heads of each word, best first: by marginals, and by scores where those are equal but for rounding.

    Not by scores alone: an arc may score well in a place where hardly any tree can have it.
    """
    by_score = scores.argsort(-2, descending=True)
    ranked = marginals.gather(-2, by_score).round(decimals=6).argsort(stable=True, dim=-2, descending=True)
    return by_score.gather(-2, ranked)


def _arcs(
    parser: Parser, evidence: Evidence | None, batch: Batch, found: Sequence[Sentence], top: int
) -> Iterator[tuple[ArcScore, ...] | None]:
    semantics, index, names = parser.model.semantics, parser.vocab.role_index, parser.vocab.roles
    if semantics is None or evidence is None:
        yield from (None for _ in found)
        return
    for k, sentence in enumerate(found):
        assert sentence.graph is not None
        arcs = [*sentence.graph.arcs, *(Arc(0, word, TOP) for word in sentence.graph.tops)]
        pairs = torch.tensor([(k, *arc[:2]) for arc in arcs], dtype=torch.int64).reshape(-1, 3)
        roles = torch.tensor([index[arc.role] for arc in arcs], dtype=torch.int64).unsqueeze(-1)
        scores = evidence.scores[pairs.unbind(-1)]
        own = scores[:, 1:].gather(-1, roles)
        # Roles that training never saw between such words have scores too, but nothing has taught them.
        others = (scores[:, 1:] - own).masked_fill(~semantics.seen.labels(batch, pairs), -torch.inf)
        better = others.scatter(-1, roles, -torch.inf).topk(min(top, len(names)), -1)
        total = (scores[:, :1] + own).squeeze(-1)
        yield tuple(
            ArcScore(
                arc, score, tuple((names[role], value) for role, value in zip(*row, strict=True) if value > -torch.inf)
            )
            for arc, score, *row in zip(
                arcs, total.tolist(), better.indices.tolist(), better.values.tolist(), strict=True
            )
        )
