"""What an experiment needs of its data, said before the first hour of training and not after the last."""

from collections.abc import Sequence

from spigot.annotations import ANNOTATIONS, AbstractAnnotation
from spigot.config import Config
from spigot.corpora.corpus import Corpus
from spigot.data.sentence import Sentence
from spigot.models.system import System
from spigot.stages.stage import AbstractStage
from spigot.values import Optimiser


def nothing_for(stage: str, annotation: type[AbstractAnnotation], data: str, given: int = 0, why: str = "") -> str:
    """What to tell a user whose experiment has no sentences for one of its stages.

    Args:
        stage: What the stage is called.
        annotation: What it predicts.
        data: The data set it learns from.
        given: How many sentences there are all the same.
        why: What they would have to be like.

    Example:
        >>> from spigot.annotations import Trees
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
        >>> from spigot.config import make_config
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


def unread(config: Config) -> str:
    """What to tell a user who has a shared encoder that no stage reads; empty if all are read.

    Example:
        >>> from spigot.config import make_config
        >>> spare = make_config({"encoders": {"spare": {}}, "stages": {"syntax": {"annotation": "trees"}}})
        >>> unread(spare)
        "No stage reads encoders.spare, and nothing trains it; name 'spare' as a stage's encoder, or leave it out."
    """
    encoders = [stage.encoder for stage in config.stages.values()]
    read = {encoder if isinstance(encoder, str) else encoder.reads for encoder in encoders}
    spare = [name for name in config.encoders if name not in read]
    if not spare:
        return ""
    names = ", ".join(f"encoders.{name}" for name in spare)
    return f"No stage reads {names}, and nothing trains it; name {spare[0]!r} as a stage's encoder, or leave it out."


def not_updated(config: Config) -> str:
    """What to tell a user who says how to update a shared encoder of which nothing is updated so; empty if all is well.

    Example:
        >>> from spigot.config import make_config
        >>> words = {"encoder": {"kind": "transformer", "model": "tiny"}, "optimiser": {"learning_rate": 0.002}}
        >>> stages = {"syntax": {"annotation": "trees", "encoder": "words"}}
        >>> not_updated(make_config({"encoders": {"words": words}, "stages": stages}))
        'encoders.words.optimiser does nothing: all of that encoder is updated by encoders.words.encoder.optimiser.'
    """
    for name, shared in config.encoders.items():
        if shared.optimiser != Optimiser() and not shared.encoder.learns_beside:
            rest = f"all of that encoder is updated by encoders.{name}.encoder.optimiser"
            return f"encoders.{name}.optimiser does nothing: {rest if shared.encoder.learns else 'it is frozen'}."
    return ""


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


def check_judged(config: Config, corpus: Corpus, system: System) -> None:
    """Complain about development and test sentences that the last stage cannot be judged by.

    Raises:
        ValueError: If there are such sentences; it names their file.
    """
    if config.data.source != "files":
        return
    stage, data = system.stages[config.end], config.data_of(config.end)
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
