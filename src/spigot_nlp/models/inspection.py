"""Why a system says what it says, what it might have said instead, and how sure of it one can be."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import torch

from spigot_nlp.batches import Batch
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import Answer
from spigot_nlp.stages.alternatives import Alternative, ArcScore
from spigot_nlp.stages.constraints import Constraints, Infeasible
from spigot_nlp.stages.trees import TreeStage


@dataclass(frozen=True)
class Inspection:
    """What a system found in a sentence, and by which scores.

    Attributes:
        sentence: The words with all that the system found, and nothing else.
        choices: For each annotation that was searched for, what was chosen and what might have been instead.

    Example:
        >>> Inspection(Sentence(("Rain",), heads=(0,)), {"heads": ((Alternative(0, 2.0, 0.0, 1.0),),)}).arcs is None
        True
    """

    sentence: Sentence
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def heads(self) -> tuple[tuple[Alternative, ...], ...] | None:
        """For every word its heads by how probable they are, the chosen one among them; `None` without trees."""
        return self.choices.get("heads")

    @property
    def arcs(self) -> tuple[ArcScore, ...] | None:
        """The arcs of the graph, then its tops; `None` without graphs."""
        return self.choices.get("graph")


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
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))
        >>> settings = {"data": {"tags": "columns"}, "semantics": {"pruning": {"rare_role": 0}}}
        >>> parser = fresh(make_config(settings), {"graphs": [rain]})
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
    asked = [k for k in range(len(sentences)) if k not in answers]
    with parser.reading():
        for places, batch in parser.batches([ready[k] for k in asked]):
            group, lengths = [asked[k] for k in places], batch.lengths.tolist()
            answer = parser.model.parse(batch, parser.model.limits([demands[k] for k in group], lengths, batch.size))
            found = [
                parser.answered(parser.written(sentences[k], ready[k]), annotations)
                for k, annotations in zip(group, parser.found(answer, lengths), strict=True)
            ]
            answers.update(zip(group, map(Inspection, found, _choices(parser, answer, batch, found, top)), strict=True))
    return [answers[k] for k in range(len(sentences))]  # pyright: ignore[reportReturnType] (raised, or asked for)


def _refused(parser: Parser, demand: Constraints, length: int, index: int) -> Infeasible | None:
    """Why constraints cannot be met; that does not depend on any score."""
    try:
        parser.model.limits([demand], [length], length + 1)
    except Infeasible as error:
        return Infeasible(str(error), index)
    return None


def _choices(
    parser: Parser, answer: Mapping[str, Answer], batch: Batch, found: Sequence[Sentence], top: int
) -> list[dict[str, tuple[Any, ...]]]:
    """What each stage might have chosen instead, by annotation, for each sentence."""
    choices: list[dict[str, tuple[Any, ...]]] = [{} for _ in found]
    for name, (z, evidence) in answer.items():
        stage = parser.model.stages[name]
        if evidence is None:
            continue
        values = [stage.annotation.value(sentence) for sentence in found]
        for mine, alternatives in zip(choices, stage.alternatives(z, evidence, batch, values, top), strict=True):
            if alternatives is not None:
                mine[stage.annotation.name] = alternatives
    return choices


@torch.no_grad()
def certificates(parser: Parser, sentences: Sequence[Sentence], *, tagged: bool = False) -> dict[str, dict[str, float]]:
    """Fraction of sentences with a certificate of optimality, and with an integral relaxation, for each stage.

    Stages that decode exactly have nothing to say: of a system that has no others this is empty.

    Args:
        parser: The system.
        sentences: What to parse.
        tagged: Whether the sentences have the tags and lemmas of this system already.
    """
    found: dict[str, Counter[str]] = {}
    total = 0
    for group, batch in parser.batches(parser.read(sentences, tagged=tagged)):
        total += len(group)
        for name, (_, evidence) in parser.model.parse(batch).items():
            known = {} if evidence is None else parser.model.stages[name].certainty(evidence)
            for what, which in known.items():
                found.setdefault(name, Counter())[what] += int(which.sum())
        if not found:
            return {}
    return {name: {what: count / total for what, count in counts.items()} for name, counts in found.items()}


@torch.no_grad()
def head_entropy(parser: Parser, sentences: Sequence[Sentence], *, tagged: bool = False) -> float:
    r"""Mean entropy in bits of the head of a word, under the distribution over trees that the scores stand for.

    With $p(z) \propto e^{s^\top z}$ and the marginals $\mu_{ij} = \Pr(\text{$i$ heads $j$})$, this is
    $$\frac1N \sum_j -\sum_i \mu_{ij} \log_2 \mu_{ij}$$
    over all $N$ words. It is 0 if there is one tree that counts, and at most the mean of $\log_2 n$ over the words,
    where $n$ is the number of words in the sentence, if every head is as likely as any other. A parser that was
    trained through hard trees need not mean its scores as a distribution; what the number tells is how far the best
    tree stands out.

    Args:
        parser: A system with a syntactic parser.
        sentences: What it parses.
        tagged: Whether they have the tags and lemmas of this system already.

    Returns:
        Bits a word; 0 if there are no words.

    Raises:
        ValueError: If the system has no syntactic parser.
    """
    syntax = parser.stage_of("heads")
    if not isinstance(syntax, TreeStage):
        raise ValueError("This system has no syntactic parser, so there are no heads to be sure of; give one that has.")
    bits, words = 0.0, 0
    for _, batch in parser.batches([s for s in parser.read(sentences, tagged=tagged) if len(s)]):
        answer = parser.model.parse(batch)[syntax.name]
        assert answer.evidence is not None
        arcs = syntax.arc_evidence(answer.evidence)
        marginals = syntax.trees.marginals(arcs.scores, arcs.mask).double()
        # A probability may come out a rounding error above 1.
        bits += float(torch.special.entr(marginals.clamp(0, 1)).sum()) / math.log(2)
        words += int(batch.lengths.sum())
    return bits / max(words, 1)
