"""How good the answers of a system are: one way, after an epoch, at the end of a training, and for the commands."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from spigot_nlp.annotations import AbstractAnnotation, Graphs, Measure, Trees
from spigot_nlp.config import Config, stage_class
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.build import learned_annotations

if TYPE_CHECKING:
    from spigot_nlp.models.parser import Parser

MICRO = "micro"
"""What all annotations of a stage that finds several are called together."""

DEV = "dev"
"""What the development sentences of an experiment are called."""

Scores = dict[str, dict[str, Any]]
"""By the name of the sentences, and by what is scored, as JSON has it: `scores["dev"]["graphs"]["labelled"]["f1"]`."""

Watch = Callable[[Iterator[Sentence], int], Iterable[Sentence]]
"""Sees sentences pass as they are parsed, and how many there are."""


@dataclass(frozen=True)
class Target:
    """Something that is scored.

    Attributes:
        key: What stands for it in scores.
        annotation: What it is.
        stage: The stage that finds it; empty if files are compared.
        is_read: Whether another stage reads it.
        is_latent: Whether the stage has no data of its own.
        file: What files with predictions end in: `predictions.dev.{file}`; empty if there are none.
        called: Which of several annotations of the stage it is; empty if that has one.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> [(target.stage, target.key, target.file) for target in targets(make_config({}))]
        [('semantics', 'graphs', 'sdp'), ('syntax', 'trees', 'conllu')]
    """

    key: str
    annotation: AbstractAnnotation
    stage: str = ""
    is_read: bool = False
    is_latent: bool = False
    file: str = ""
    called: str = ""

    @property
    def title(self) -> str:
        """What its answers are called in print: those that another stage reads are inside."""
        nouns = self.annotation.nouns
        title = f"the {nouns} inside" if self.is_read else nouns
        return f"{title[0].upper()}{title[1:]}" + (
            f": {self.called}" if self.called else "" if self.annotation.is_usual else f": {self.stage}"
        )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Its numbers that intervals are given for."""
        return (*self.annotation.measures, *self.annotation.further_measures)

    def judged(self, gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> tuple[list[Sentence], list[Sentence]]:
        """Those of some sentences that say what is right, and what was found in them."""
        pairs = [(g, p) for g, p in zip(gold, predicted, strict=True) if self.annotation.value(g) is not None]
        return [g for g, _ in pairs], [p for _, p in pairs]


def targets(config: Config, annotations: Mapping[str, AbstractAnnotation] | None = None) -> list[Target]:
    """What the stages of an experiment that learn are judged by: the last one first, then the others in their order.

    Args:
        config: The experiment.
        annotations: What its stages find, with the names that training data have.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> several = {"semantics": {"annotation": "formalisms", "graphs": ["dm", "psd"]}}
        >>> [(target.title, target.key, target.file) for target in targets(make_config({"stages": several}))]
        [('Graphs: dm', 'dm', 'sdp'), ('Graphs: psd', 'psd', 'psd.sdp'), ('Graphs: micro', 'micro', '')]
    """
    known = learned_annotations(config, {}) if annotations is None else annotations
    read = {wire.stage for _, wire in config.wires}
    found: list[Target] = []
    for stage in [config.end, *(other for other in config.stages if other != config.end)]:
        settings, whole = config.stages[stage], known[stage]
        if not stage_class(settings).learns:
            continue
        several = len(whole.members) > 1
        for one in whole.members:
            taken = any(one.suffix == other.file for other in found)
            file = "" if settings.latent else f"{one.name if several else stage}.{one.suffix}" if taken else one.suffix
            called = one.name if several else ""
            found.append(Target(key_of(one), one, stage, stage in read, settings.latent, file, called))
        if several:
            key = MICRO if all(other.key != MICRO for other in found) else f"{stage} {MICRO}"
            found.append(Target(key, whole, stage, stage in read, settings.latent, "", MICRO))
    return found


def key_of(annotation: AbstractAnnotation) -> str:
    """What stands for an annotation in scores: its kind, or its name if that is unusual."""
    return annotation.key if annotation.is_usual else annotation.name


def development_measures(config: Config) -> dict[str, tuple[str, Measure]]:
    """The measures that scores after an epoch may have, by name, with the stage that each is about.

    Args:
        config: The experiment.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> {name: stage for name, (stage, _) in development_measures(make_config({})).items()}
        {'LF': 'semantics', 'UF': 'semantics', 'UAS': 'syntax'}
    """
    found: dict[str, tuple[str, Measure]] = {}
    annotations = learned_annotations(config, {})
    for stage in reversed(list(config.stages)):
        for measure in annotations[stage].measures:
            # One that a later stage has too bears the name of its own.
            name = measure.name if measure.name not in found else f"{stage} {measure.name}"
            found[name] = stage, measure
    return found


def evaluate(
    parser: "Parser",
    sets: Mapping[str, Sequence[Sentence]],
    *,
    wanted: Sequence[Target] | None = None,
    tagged: bool = False,
    watch: Watch | None = None,
    keep: Callable[[str, Sequence[Sentence], Sequence[Sentence]], None] | None = None,
) -> Scores:
    """Parse sentences, and score what is found in them.

    Args:
        parser: The system.
        sets: Sentences with what is right, by name. Each annotation is judged by the sentences that have it.
        wanted: What to score; all that the system finds if `None`.
        tagged: Whether the sentences have the tags and lemmas of this system already.
        watch: Sees the sentences of each set pass.
        keep: Given the name of each set, its sentences, and the same with what the system says.

    Returns:
        The numbers that `scores.json` has, by the name of the set and by what is scored.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> parser = fresh(make_config({"stages": {"syntax": {"annotation": "trees"}}}), {"trees": [rain]})
        >>> scores = evaluate(parser, {"rain": [rain]})
        >>> list(scores), list(scores["rain"]), 0 <= scores["rain"]["trees"]["uas"] <= 1
        (['rain'], ['trees'], True)
    """
    wanted = targets(parser.config, parser.model.annotations) if wanted is None else wanted
    scores: Scores = {}
    for name, gold in sets.items():
        found = parser.pipe(gold, tagged=tagged)
        predicted = list(watch(found, len(gold)) if watch else found)
        scores[name] = score(gold, predicted, wanted)
        if keep is not None:
            keep(name, gold, predicted)
    return scores


def evaluate_corpus(
    parser: "Parser",
    corpus: Corpus,
    *,
    wanted: Sequence[Target] | None = None,
    watch: Watch | None = None,
    keep: Callable[[str, str, Sequence[Sentence], Sequence[Sentence]], None] | None = None,
) -> Scores:
    """Score a system on the development and test sets of its experiment, each stage on those of its own data set.

    Args:
        parser: The system.
        corpus: The sentences, with the tags and lemmas of the system.
        wanted: What to score; all that the system finds if `None`.
        watch: Sees the sentences of each set pass.
        keep: Given the data set, the name of each of its sets, its sentences, and the same with what the system says.
    """
    config, scores = parser.config, dict[str, dict[str, Any]]()
    wanted = targets(config, parser.model.annotations) if wanted is None else wanted
    data_of = {one.stage: config.data_of(config.end if one.is_latent else one.stage) for one in wanted}
    for data in dict.fromkeys(data_of.values()):
        split = corpus[data]
        sets = {name: some for name, some in {DEV: split.dev, **split.tests}.items() if some}
        mine = [one for one in wanted if data_of[one.stage] == data]

        def keep_set(name: str, gold: Sequence[Sentence], predicted: Sequence[Sentence], data: str = data) -> None:
            if keep is not None:
                keep(data, name, gold, predicted)

        for name, found in evaluate(parser, sets, wanted=mine, tagged=True, watch=watch, keep=keep_set).items():
            scores.setdefault(name, {}).update(found)
    return scores


def score(gold: Sequence[Sentence], predicted: Sequence[Sentence], wanted: Sequence[Target]) -> dict[str, Any]:
    """Compare answers with what is right.

    Args:
        gold: Sentences with what is right.
        predicted: The same sentences with answers.
        wanted: What to score. Latent structures are only if they have no names of their own and all sentences have
            right ones.

    Returns:
        Everything there is to say, as JSON has it, by the key of each target that any sentence has.

    Example:
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> score([rain], [rain], [Target("trees", Trees())])["trees"]["uas"]
        1.0
    """
    found: dict[str, Any] = {}
    for target in wanted:
        annotation = target.annotation
        known = all(sentence.get(annotation.name) is not None for sentence in gold)
        right, answers = target.judged(gold, predicted)
        if right and (not target.is_latent or (known and annotation.is_nameless)):
            found[target.key] = asdict(annotation.score(right, answers))
    return found


def fitting(target: Target, gold: Sequence[Sentence]) -> Target:
    """The same for sentences that may say less than the system does: trees without relations are scored without."""
    annotation = target.annotation
    if isinstance(annotation, Trees) and annotation.relations is not None and any(s.relations is None for s in gold):
        return replace(target, annotation=replace(annotation, relations=None))
    return target


def unknown_labels(annotation: AbstractAnnotation, gold: Iterable[Sentence]) -> tuple[Counter[str], int]:
    """The roles or relations in sentences that a system has no name for, and how many there are in all.

    Example:
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))
        >>> unknown_labels(Trees(relations=("root", "obj"), root="root"), [rain])
        (Counter({'nsubj': 1}), 2)
    """
    known: Sequence[str] = ()
    labels: Iterable[str] = ()
    if isinstance(annotation, Graphs):
        known = annotation.roles
        labels = (arc.role for sentence in gold for arc in getattr(annotation.value(sentence), "arcs", ()))
    elif isinstance(annotation, Trees) and annotation.relations:
        known = annotation.relations
        labels = (name for sentence in gold for name in sentence.relations or ())
    counts = Counter(labels)
    return Counter({name: count for name, count in counts.items() if name not in known}), counts.total()
