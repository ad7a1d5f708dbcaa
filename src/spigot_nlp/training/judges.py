"""Under which names a run folder holds what the stages of an experiment were judged by."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spigot_nlp.annotations import ANNOTATIONS, AbstractAnnotation, Measure
from spigot_nlp.config import Config, stage_class
from spigot_nlp.models.build import learned_annotations
from spigot_nlp.training.plan import phases

TOGETHER = "micro"
"""What all annotations of a stage that finds several are called together."""


@dataclass(frozen=True)
class Judge:
    """What a stage was judged by.

    Attributes:
        stage: The stage.
        annotation: What it predicts, without the names that training data have.
        is_read: Whether another stage reads it.
        ending: What the names of its sets of sentences end in within `scores.json`.
        file: What its predictions end in: `predictions.dev.{file}`; empty if there are none.
        called: Which of several annotations of the stage this is about; empty if it has one.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> [(judge.stage, judge.ending, judge.file) for judge in judges(make_config({}))]
        [('semantics', '', 'sdp'), ('syntax', ' trees', 'conllu')]
    """

    stage: str
    annotation: AbstractAnnotation
    is_read: bool
    ending: str
    file: str
    called: str = ""

    @property
    def title(self) -> str:
        """What its answers are called in print: those that another stage reads are inside."""
        nouns = self.annotation.nouns
        title = f"the {nouns} inside" if self.is_read else nouns
        return f"{title[0].upper()}{title[1:]}" + (
            f": {self.called}" if self.called else "" if self.annotation.is_usual else f": {self.stage}"
        )


def endings(config: Config) -> dict[str, str]:
    """How the names of the scores of each stage end in `scores.json`: nothing for the last one.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> endings(make_config({"system": "ste"}))
        {'semantics': '', 'syntax': ' trees'}
    """
    found: dict[str, str] = {}
    for name in [config.end, *(other for other in config.stages if other != config.end)]:
        settings = config.stages[name]
        if not stage_class(settings).learns:
            continue
        usual = "" if name == config.end else f" {ANNOTATIONS[settings.annotation].nouns}"
        found[name] = usual if usual not in found.values() else f" {name}"
    return found


def judges(config: Config) -> list[Judge]:
    """The stages that learn: the last one first, then the others in their order.

    Args:
        config: The experiment.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> graphs = {"first": {"annotation": "graphs", "field": "first"}, "second": {"annotation": "graphs"}}
        >>> [(judge.title, judge.ending, judge.file) for judge in judges(make_config({"stages": graphs}))]
        [('Graphs', '', 'sdp'), ('Graphs: first', ' graphs', 'first.sdp')]
        >>> several = {"semantics": {"annotation": "formalisms", "graphs": ["dm", "psd"]}}
        >>> [(judge.title, judge.ending, judge.file) for judge in judges(make_config({"stages": several}))]
        [('Graphs: dm', '', 'sdp'), ('Graphs: psd', ' psd', 'psd.sdp'), ('Graphs: micro', ' micro', '')]
    """
    found: list[Judge] = []
    read = {wire.stage for _, wire in config.wires}
    annotations = learned_annotations(config, {})
    for name, ending in endings(config).items():
        settings, annotation = config.stages[name], annotations[name]
        if len(annotation.members) > 1:
            found += _several(name, annotation, name in read, ending, found)
            continue
        taken = any(annotation.suffix == other.file for other in found)
        file = "" if settings.latent else f"{name}.{annotation.suffix}" if taken else annotation.suffix
        found.append(Judge(name, annotation, name in read, ending, file))
    return found


def _several(
    stage: str, annotation: AbstractAnnotation, is_read: bool, ending: str, before: Sequence[Judge]
) -> Iterator[Judge]:
    """Each of the annotations that a stage finds, and then all of them together."""
    taken = {judge.file for judge in before}
    for one in annotation.members:
        first = one is annotation.members[0] and not ending
        file = one.suffix if first and one.suffix not in taken else f"{one.name}.{one.suffix}"
        yield Judge(stage, one, is_read, ending if first else f"{ending} {one.name}", file, one.name)
    yield Judge(stage, annotation, is_read, f"{ending} {TOGETHER}", "", TOGETHER)


def development_measures(config: Config) -> dict[str, tuple[str, Measure]]:
    """The measures that scores of the development data may have, by name, with the stage that each is about.

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


def changing(config: Config) -> dict[str, set[str]]:
    """The stages that each phase of a training changes, by its name.

    Args:
        config: The experiment.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> {name: sorted(stages) for name, stages in changing(make_config({"system": "pipeline"})).items()}
        {'semantics.pruner': ['semantics.pruner'], 'syntax': ['syntax'], 'semantics': ['semantics']}
    """
    return {
        phase.name: {
            stage
            for task in phase.tasks
            for stage in (config.reached(task) if phase.through and "." not in task else [task])
        }
        for phase in phases(config)
    }
