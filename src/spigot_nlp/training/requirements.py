"""What an experiment needs of its data, said before the first hour of training and not after the last."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from spigot_nlp.annotations import ANNOTATIONS, AbstractAnnotation, Graphs, annotations_in
from spigot_nlp.annotations.graphs import RARE
from spigot_nlp.config import Config, Values, make_config
from spigot_nlp.config.experiment import shared_encoder, trained_encoder
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import System
from spigot_nlp.scoring import unknown_labels
from spigot_nlp.stages.graphs import GraphSettings
from spigot_nlp.stages.stage import AbstractStage
from spigot_nlp.stages.trees import TreeSettings
from spigot_nlp.values import Optimiser

_NO_RECIPE = ("training.tests", "training.save_seconds", "training.patience")
"""Settings of which no preset says anything."""


def nothing_for(stage: str, annotation: type[AbstractAnnotation], data: str, given: int = 0, why: str = "") -> str:
    """What to tell a user whose experiment has no sentences for one of its stages.

    Args:
        stage: What the stage is called.
        annotation: What it predicts.
        data: The data set it learns from.
        given: How many sentences there are all the same.
        why: What they would have to be like.

    Example:
        >>> from spigot_nlp.annotations import Trees
        >>> nothing_for("syntax", Trees, "trees")
        "syntax has no trees to train on; set data.trees.train, or data.source = 'synthetic'."
    """
    if given:
        return (
            f"None of the {given} training sentences of data.{data} has {annotation.nouns} that {stage} can produce"
            f"{why}; give others, or leave {stage} out."
        )
    return f"{stage} has no {annotation.nouns} to train on; set data.{data}.train, or data.source = 'synthetic'."


def never_through(config: Config) -> str:
    """What to tell a user whose training ends before gradients may pass its wires; empty if they may, or none would.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> never_through(make_config({"system": "ste", "training": {"warm_up": 2, "epochs": 2}}))
        'training.warm_up is 2 and training.epochs 2: no gradient passes a wire, and ste does what any other would.'
        >>> never_through(make_config({"system": "ste", "training": {"warm_up": 2, "epochs": 3}}))
        ''
    """
    training = config.training
    through = any(not wire.is_frozen for _, wire in config.wires)
    if not through or not training.warm_up or training.warm_up < training.epochs:
        return ""
    return (
        f"training.warm_up is {training.warm_up} and training.epochs {training.epochs}: no gradient passes a wire, and "
        f"{config.system} does what any other would."
    )


def unread(config: Config) -> list[str]:
    """What to tell a user who has a shared encoder that no stage reads, or that nothing trains; empty if all is well.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> spare = make_config({"encoders": {"spare": {}}, "stages": {"syntax": {"annotation": "trees"}}})
        >>> unread(spare)
        ["No stage reads encoders.spare, and nothing trains it; name 'spare' as a stage's encoder, or leave it out."]
        >>> branch = {"annotation": "trees", "encoder": {"kind": "branch", "of": "words"}}
        >>> unread(make_config({"encoders": {"words": {}}, "stages": {"syntax": branch}}))
        ["Nothing trains encoders.words, whose vectors stay as they begin; name 'words' as a stage's encoder, or set \
syntax.encoder.over = 'states'."]
    """
    found = []
    for name, shared in config.encoders.items():
        readers = {stage: one for stage, one in config.stages.items() if shared_encoder(one) == name}
        if not readers:
            found.append(
                f"No stage reads encoders.{name}, and nothing trains it; name {name!r} as a stage's encoder, or leave "
                "it out."
            )
            continue
        filled = any(stage.start for stage in readers.values())  # by another run
        fixed = (shared.encoder.vectors_file or config.data.vectors) and shared.encoder.keeps_vectors
        if filled or fixed or not shared.encoder.learns or any(map(trained_encoder, readers.values())):
            continue
        found.append(
            f"Nothing trains encoders.{name}, whose vectors stay as they begin; name {name!r} as a stage's encoder, or "
            f"set {next(iter(readers))}.encoder.over = 'states'."
        )
    return found


def not_updated(config: Config) -> list[str]:
    """What to tell a user who says how to update a shared encoder of which nothing is updated so; empty if all is well.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> words = {"encoder": {"kind": "transformer", "model": "tiny"}, "optimiser": {"learning_rate": 0.002}}
        >>> stages = {"syntax": {"annotation": "trees", "encoder": "words"}}
        >>> not_updated(make_config({"encoders": {"words": words}, "stages": stages}))
        ['encoders.words.optimiser does nothing: all of that encoder is updated by encoders.words.encoder.optimiser.']
    """
    found = []
    for name, shared in config.encoders.items():
        if shared.optimiser != Optimiser() and not shared.encoder.learns_beside:
            rest = f"all of that encoder is updated by encoders.{name}.encoder.optimiser"
            found.append(
                f"encoders.{name}.optimiser does nothing: {rest if shared.encoder.learns else 'it is frozen'}."
            )
    return found


@runtime_checkable
class TellsIdle(Protocol):
    """Settings some of which may do nothing beside others.

    Example:
        >>> class Brush(Values):
        ...     wet: bool = False
        ...     water: int = 1
        ...     def idle(self):
        ...         return {} if self.wet else {"water": "wet = false"}
        >>> isinstance(Brush(), TellsIdle), isinstance(Optimiser(), TellsIdle)
        (True, False)
    """

    def idle(self) -> dict[str, str]:
        """The settings that do nothing, by name, and for each which other setting is the reason."""
        ...


def idle(config: Config) -> list[str]:
    """What to tell a user who says something in stages and encoders that has no effect beside the rest of it.

    Settings say so themselves, see `TellsIdle`; what stands at its default is not worth a word.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> idle(make_config({"stages": {"syntax": {"annotation": "trees", "relation_mlp": 8}}}))
        ['syntax.relation_mlp does nothing with labelled = false; change that, or leave it out.']
    """
    named = {**config.stages, **{f"encoders.{name}": shared for name, shared in config.encoders.items()}}
    found = []
    for place, group in _groups(named):
        if isinstance(group, TellsIdle):
            for name, reason in group.idle().items():
                if getattr(group, name) != type(group).model_fields[name].get_default(call_default_factory=True):
                    found.append(f"{place}.{name} does nothing with {reason}; change that, or leave it out.")
    return found


def _groups(values: Any, place: str = "") -> Iterator[tuple[str, Values]]:
    """All groups of settings within some, each with its dotted name."""
    if isinstance(values, Values):
        yield place, values
        values = dict(values)
    inside = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, tuple) else ()
    for name, value in inside:
        yield from _groups(value, f"{place}.{name}" if place else str(name))


def overridden(config: Config) -> str:
    """Which values of its preset an experiment of the paper overrides; empty if none, or it names stages of its own.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> overridden(make_config({"preset": "release", "syntax": {"loss": "crf"}, "training": {"epochs": 9}}))
        "In place of what preset = 'release' says: syntax.loss = 'crf' (not 'hinge'), training.epochs = 9 (not 100)."
    """
    if not config.task:
        return ""
    bare = make_config({"task": config.task, "system": config.system, "preset": config.preset}).by_name()
    groups = (*config.stages, "estimator", "training")
    own = [
        f"{name} = {value!r} (not {bare[name]!r})"
        for name, value in config.by_name().items()
        if name.partition(".")[0] in groups and bare.get(name, value) != value and name not in _NO_RECIPE
    ]
    return f"In place of what preset = {config.preset!r} says: {', '.join(own)}." if own else ""


def bare_heads(config: Config) -> list[str]:
    """What to tell a user whose parser of trees learns as in the paper's text, without a pruner of heads.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> bare_heads(make_config({"system": "pipeline"})), bare_heads(make_config({"preset": "release"}))
        ([], [])
    """
    training = config.training
    through = {wire.stage for _, wire in config.wires if not wire.is_frozen}
    return [
        f"{name} learns from scratch by a hinge, one sentence a step, while gradients come back to it: on open DM its "
        f"UAS was 31 after one such epoch, and 53 after eight. {name}.pruning.learned = true gives it a pretrained "
        "pruner, and the published program had one."
        for name, stage in config.stages.items()
        if isinstance(stage, TreeSettings) and name in through and not stage.latent and not stage.start
        if stage.loss == "hinge" and training.batch == 1 and not training.pretrain and not stage.pruning.learned
    ]


def remarks(config: Config) -> list[str]:
    """All that is worth saying of an experiment before it is trained: what of it will do nothing.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> remarks(make_config({"system": "spigot", "preset": "release"}))
        []
    """
    through = never_through(config)
    said = [*unread(config), *not_updated(config), *idle(config), *bare_heads(config)]
    return [through, *said] if through else said


def require_sentences(config: Config, corpus: Corpus) -> None:
    """Complain about a stage without any sentences.

    Raises:
        ValueError: If there are none; it says which setting to change.
    """
    for name in config.supervised:
        data = config.data_of(name)
        if data not in corpus.sets and config.stages[name].data:
            known = ", ".join(corpus.sets) or "none"
            raise ValueError(f"stages.{name}.data is {data!r}, and there is no such data set; there are {known}.")
        if not corpus[data].train:
            raise ValueError(nothing_for(name, ANNOTATIONS[config.stages[name].annotation], data))
        if getattr(config.stages[name], "graphs", None) == ():
            known = [one for one, kind in annotations_in(corpus[data].train).items() if isinstance(kind, Graphs)]
            names = ", ".join(f'"{one}"' for one in known)
            raise ValueError(
                f"{config.system or name} finds graphs of several formalisms, and {name}.graphs names none: add "
                f"--{name}.graphs '[{names}]', or fewer of those that the sentences of data.{data} have."
            )


def rare_labels(parser: Parser, corpus: Corpus) -> list[str]:
    """What to tell a user of whose training data a stage does not keep all roles apart.

    Args:
        parser: The system.
        corpus: What it is to be trained on.
    """
    found = []
    for name in parser.config.supervised:
        settings = parser.config.stages[name]
        for one in parser.model.annotations[name].members:
            rare, arcs = unknown_labels(one, corpus[parser.config.data_of(name)].train)
            if isinstance(one, Graphs) and isinstance(settings, GraphSettings) and rare:
                of, share = len(rare) + len(one.roles) - 2, 100 * rare.total() / arcs  # beside TOP and UNK
                found.append(
                    f"{name}: {len(rare)} of {of} roles occur less than {settings.pruning.rare_role} times in training "
                    f"and are found as {RARE} ({share:.1f} % of the arcs); {name}.pruning.rare_role = 0 keeps all."
                )
    return found


def check_judged(config: Config, corpus: Corpus, system: System) -> None:
    """Complain about development and test sentences that the last stage cannot be judged by.

    Raises:
        ValueError: If there are such sentences; it names their file.
    """
    stage, data = system.stages[config.end], config.data_of(config.end)
    if config.data.source != "files" or data not in config.data.sets:  # what a caller gives is not in files
        return
    files, split = config.data.sets[data], corpus[data]
    sides = tuple(files.join.values()) or (files,)  # of several files that are joined, the first may be to blame
    parts = [(next(side.dev for side in sides), split.dev)]
    for name, some in split.tests.items():
        parts.append((next((side.tests[name] for side in sides if name in side.tests), ""), some))
    for file, sentences in parts:
        strange = _strange(stage, sentences)
        if strange is not None:
            value = stage.annotation.value(strange)
            noun = stage.annotation.noun
            reason = f"has no {noun}" if value is None else f"is of {noun} {value}"
            raise ValueError(
                f"{config.data.path(file)}: the sentence {' '.join(strange.forms[:6])!r} {reason}"
                f"{stage.annotation.known()}. Correct the file or data.{data}.format, or leave the file out."
            )


def _strange(stage: AbstractStage, sentences: Sequence[Sentence]) -> Sentence | None:
    """The first sentence without the annotation, or with one that training has never seen."""
    annotation = stage.annotation
    for sentence in sentences:
        value = annotation.value(sentence)
        if value is None or annotation.encode(value, sentence) is None:
            return sentence
    return None
