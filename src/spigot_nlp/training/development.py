"""What the development data say about a system in training."""

from collections.abc import Mapping, Sequence
from typing import Any

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.batches import Annotations, collate
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.scoring import DEV, Target, development_measures, evaluate_corpus
from spigot_nlp.training.plan import Phase

CHANGED = "changed"
"""How much of the structures that other stages read is new since the last epoch."""

_BATCH = 64  # sentences


def judging_measure(parser: Parser, stage: str) -> str:
    """What the first measure of a stage is called among the scores: what its training goes by."""
    return _name(parser, stage, parser.model.annotations[stage].measures[0].name)


def development_scores(
    parser: Parser, corpus: Corpus, phase: Phase, before: Mapping[str, list[Any]]
) -> tuple[dict[str, float], dict[str, list[Any]]]:
    """Scores in per cent, that of the phase's own judge first, and the structures that stages inside find.

    Args:
        parser: The system.
        corpus: What it is trained on.
        phase: The part of the training that the epoch belongs to.
        before: The structures of an epoch ago, as plain values; none at the start.
    """
    if phase.judge is None:
        return _helper_scores(parser, corpus, phase.tasks[0]), {}
    config, annotations = parser.config, parser.model.annotations
    stages = list(annotations)
    known = stages[: stages.index(phase.judge) + 1]  # those behind it have not learned anything yet
    wanted = [Target(stage, annotations[stage], stage) for stage in reversed(known) if stage in config.supervised]
    seen: dict[str, tuple[Sequence[Sentence], Sequence[Sentence]]] = {}

    def keep(data: str, _: str, gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> None:
        seen[data] = gold, predicted

    dev = corpus.apply(lambda _, split: Split(dev=split.dev))
    found = evaluate_corpus(parser, dev, wanted=wanted, keep=keep).get(DEV, {})
    scores = {
        _name(parser, one.stage, measure.name): 100 * measure.value(found[one.key])
        for one in wanted
        if one.key in found
        for measure in one.annotation.measures
    }
    after: dict[str, list[Any]] = {}
    if phase.judge == config.end and config.data_of(config.end) in seen:
        _look_inside(parser, *seen[config.data_of(config.end)], before, scores, after)
    return scores, after


def _look_inside(
    parser: Parser,
    gold: Sequence[Sentence],
    predicted: Sequence[Sentence],
    before: Mapping[str, list[Any]],
    scores: dict[str, float],
    after: dict[str, list[Any]],
) -> None:
    """What there is to say about the structures inside, in the sentences of the last stage."""
    read = {wire.source for wire in parser.model.all_wires()}
    for name, stage in parser.model.stages.items():
        if not stage.learns or name not in read:
            continue
        annotation = stage.annotation
        if stage.settings.latent and all(annotation.value(sentence) is not None for sentence in gold):
            measure = annotation.measures[0]
            scores[_name(parser, name, measure.name)] = 100 * measure.counts(gold, predicted).f1()
        if name in before:
            key = CHANGED if CHANGED not in scores else f"{name} {CHANGED}"
            scores[key] = 100 * changed_share(annotation, before[name], predicted)
        after[name] = [annotation.plain(annotation.value(sentence)) for sentence in predicted]


def changed_share(annotation: AbstractAnnotation, before: Sequence[Any], predicted: Sequence[Sentence]) -> float:
    """How much of what is said differs: of all places that either answer speaks of, the share where they disagree.

    Args:
        annotation: What the values are of.
        before: Earlier values, as plain values.
        predicted: Sentences with the present ones.
    """
    differ = total = 0
    for old, sentence in zip(before, predicted, strict=True):
        values = annotation.from_plain(old), annotation.value(sentence)
        then, now = map(annotation.places, values)
        both = then.keys() | now.keys()
        differ, total = differ + sum(then.get(place) != now.get(place) for place in both), total + len(both)
    return differ / max(total, 1)


def _helper_scores(parser: Parser, corpus: Corpus, task: str) -> dict[str, float]:
    name, _, helper = task.partition(".")
    stage, model = parser.model.stages[name], parser.model
    own: Annotations = {name: stage.annotation}
    gold = [parser.encoded(sentence, own) for sentence in corpus[parser.config.data_of(name)].dev]
    encoded = sorted((sentence for sentence in gold if name in sentence.gold), key=lambda s: s.length)
    batches = (collate(encoded[k : k + _BATCH], own).to(model.device) for k in range(0, len(encoded), _BATCH))
    return stage.helper_scores(helper, batches)


def _name(parser: Parser, stage: str, measure: str) -> str:
    """What a measure of a stage is called; see `development_measures`."""
    known = development_measures(parser.config).items()
    return next(name for name, (owner, one) in known if owner == stage and one.name == measure)
