"""What the development data say about a system in training."""

from collections.abc import Mapping, Sequence
from typing import Any

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.batches import Annotations, collate
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.judges import development_measures
from spigot_nlp.training.plan import Phase

CHANGED = "changed"
"""How much of the structures that other stages read is new since the last epoch."""

_BATCH = 64  # sentences


class Development:
    """Scores a system after each epoch.

    Args:
        parser: The system.
        corpus: What it is trained on.
    """

    def __init__(self, parser: Parser, corpus: Corpus) -> None:
        self.parser, self.corpus, self.config = parser, corpus, parser.config

    def measure(self, stage: str) -> str:
        """What the first measure of a stage is called among the scores."""
        return self._name(stage, self.parser.model.annotations[stage].measures[0].name)

    def scores(self, phase: Phase, before: Mapping[str, list[Any]]) -> tuple[dict[str, float], dict[str, list[Any]]]:
        """Scores in per cent, that of the phase's own judge first, and the structures they go with.

        Args:
            phase: The part of the training that the epoch belongs to.
            before: The structures of an epoch ago, as plain values; none at the start.
        """
        if phase.judge is None:
            return self._helper_scores(phase.tasks[0]), {}
        stages = list(self.parser.model.stages)
        known = stages[: stages.index(phase.judge) + 1]  # those behind it have not learned anything yet
        parsed: dict[str, tuple[list[Sentence], list[Sentence]]] = {}
        scores: dict[str, float] = {}
        after: dict[str, list[Any]] = {}
        for stage in reversed(known):
            if stage not in self.config.supervised:
                continue
            annotation = self.parser.model.annotations[stage]
            gold, predicted = annotated(annotation, *self._parsed(self.config.data_of(stage), parsed))
            if gold:
                for measure in annotation.measures:
                    scores[self._name(stage, measure.name)] = 100 * measure.counts(gold, predicted).f1()
        if phase.judge == self.config.end:
            self._hidden_scores(parsed, before, scores, after)
        return scores, after

    def _hidden_scores(
        self,
        parsed: dict[str, tuple[list[Sentence], list[Sentence]]],
        before: Mapping[str, list[Any]],
        scores: dict[str, float],
        after: dict[str, list[Any]],
    ) -> None:
        """What there is to say about the structures inside, in the sentences of the last stage."""
        gold, predicted = self._parsed(self.config.data_of(self.config.end), parsed)
        if not gold:
            return
        read = {wire.source for wire in self.parser.model.all_wires()}
        for name, stage in self.parser.model.stages.items():
            if not stage.learns or name not in read:
                continue
            annotation = stage.annotation
            if stage.settings.latent and all(annotation.value(sentence) is not None for sentence in gold):
                measure = annotation.measures[0]
                scores[self._name(name, measure.name)] = 100 * measure.counts(gold, predicted).f1()
            if name in before:
                key = CHANGED if CHANGED not in scores else f"{name} {CHANGED}"
                scores[key] = 100 * changed_share(annotation, before[name], predicted)
            after[name] = [annotation.plain(annotation.value(sentence)) for sentence in predicted]

    def _parsed(
        self, data: str, parsed: dict[str, tuple[list[Sentence], list[Sentence]]]
    ) -> tuple[list[Sentence], list[Sentence]]:
        """The development sentences of a data set, and what the system finds in them; each is parsed once."""
        if data not in parsed:
            gold = self.corpus[data].dev
            parsed[data] = gold, list(self.parser.pipe(gold, tagged=True)) if gold else []
        return parsed[data]

    def _helper_scores(self, task: str) -> dict[str, float]:
        name, _, helper = task.partition(".")
        stage, model = self.parser.model.stages[name], self.parser.model
        own: Annotations = {name: stage.annotation}
        gold = [self.parser.encoded(sentence, own) for sentence in self.corpus[self.config.data_of(name)].dev]
        encoded = sorted((sentence for sentence in gold if name in sentence.gold), key=lambda s: s.length)
        batches = (collate(encoded[k : k + _BATCH], own).to(model.device) for k in range(0, len(encoded), _BATCH))
        return stage.helper_scores(helper, batches)

    def _name(self, stage: str, measure: str) -> str:
        """What a measure of a stage is called; see `development_measures`."""
        known = development_measures(self.config).items()
        return next(name for name, (owner, one) in known if owner == stage and one.name == measure)


def annotated(
    annotation: AbstractAnnotation, gold: Sequence[Sentence], predicted: Sequence[Sentence]
) -> tuple[list[Sentence], list[Sentence]]:
    """Those of some sentences that have an annotation, and what was found in them.

    Example:
        >>> rain, snow = Sentence(("Rain",), heads=(0,)), Sentence(("Snow",))
        >>> from spigot_nlp.annotations import Trees
        >>> annotated(Trees(), [rain, snow], [rain, rain]) == ([rain], [rain])
        True
    """
    sides = zip(gold, predicted, strict=True)
    pairs = [(right, found) for right, found in sides if annotation.value(right) is not None]
    return [right for right, _ in pairs], [found for _, found in pairs]


def changed_share(annotation: AbstractAnnotation, before: Sequence[Any], predicted: Sequence[Sentence]) -> float:
    """How much of what is said differs: of all places that either answer speaks of, the share where they disagree.

    Args:
        annotation: What the values are of.
        before: Earlier values, as plain values.
        predicted: Sentences with the present ones.

    Example:
        >>> from spigot_nlp.annotations import Trees
        >>> changed_share(Trees(), [[2, 0]], [Sentence(("Rain", "fell"), heads=(0, 1))])
        1.0
        >>> changed_share(Trees(), [[2, 0, 2]], [Sentence(("Rain", "fell", "hard"), heads=(2, 0, 1))]) * 3
        1.0
    """
    differ = total = 0
    for old, sentence in zip(before, predicted, strict=True):
        values = annotation.from_plain(old), annotation.value(sentence)
        then, now = map(annotation.places, values)
        both = then.keys() | now.keys()
        differ, total = differ + sum(then.get(place) != now.get(place) for place in both), total + len(both)
    return differ / max(total, 1)
