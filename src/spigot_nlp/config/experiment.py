"""One experiment: which stages, how they are wired, on what they are trained, and how."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from torch import nn

from spigot_nlp.annotations import ANNOTATIONS
from spigot_nlp.corpora.settings import Data
from spigot_nlp.encoders import AnyEncoder, BiLSTMSettings
from spigot_nlp.stages.stage import STAGES, AbstractStage, AnyStage, StageSettings
from spigot_nlp.values import Count, Optimiser, Positive, Values
from spigot_nlp.wires import WireSettings


class SharedEncoder(Values):
    """An encoder that several stages read, trained by all of them.

    Attributes:
        encoder: Which.
        optimiser: How it is updated.

    Example:
        >>> SharedEncoder.model_validate({"encoder": {"hidden": 64}}).encoder.kind
        'bilstm'
    """

    encoder: AnyEncoder = BiLSTMSettings()
    optimiser: Optimiser = Optimiser()


class Training(Values):
    """How long, and in what order.

    Attributes:
        epochs: Passes over the last stage's training set, and over those of the others where they are trained with it.
        pretrain: Passes over each stage that another one reads, alone, before that. Stages that are trained through
            their wires start from scratch unless told otherwise; those of a pipeline get as many as `epochs`.
        batch: Sentences in a step.
        patience: Epochs without a better dev score after which training stops; never if 0.
        share: The part of the sentences of the stages before the last that an epoch of joint training draws, afresh
            each time.
        ratio: How many sentences of each of these stages an epoch draws for one of the last stage, in place of a share
            of what there is; all if there are fewer.
        restart_annealing: Whether the learning rates of pretrained stages start anew in joint training.
        end_weight: Weight of the last stage's loss, against 1 - end_weight for the others (§2.3); all count fully if
            absent.
        reduction: Whether what comes back to structures is the gradient of the sum of a batch's losses, or of their
            mean. Parameters get that of the sum in both, so that clipping and learning rates mean the same.
        warm_up: Epochs before gradients may pass the wires.
        average: How much of itself a running mean of the parameters keeps at each step, 0.999 say; the mean is what is
            scored after each epoch and kept. 0 for the parameters as they are.
        tests: Whether the test sets are read and scored when the training ends; `spigot evaluate RUN --tests` does it
            later if not.
        save_seconds: How often the state is saved beside the end of each epoch.

    Example:
        >>> Training(epochs=8).patience
        5
    """

    epochs: Positive = 30
    pretrain: Count = 0
    batch: Positive = 1
    patience: Count = 5
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    ratio: Annotated[float, Field(gt=0)] | None = None
    restart_annealing: bool = False
    end_weight: Annotated[float, Field(gt=0, lt=1)] | None = None
    reduction: Literal["sum", "mean"] = "sum"
    warm_up: Count = 0
    average: Annotated[float, Field(ge=0, lt=1)] = 0.0
    tests: bool = True
    save_seconds: Annotated[float, Field(ge=0)] = 60.0


class Config(Values):
    """One experiment.

    Attributes:
        name: What reports call it.
        task: The preset that its stages come from, if any.
        system: What reports call the way it is wired, e.g. `spigot`.
        preset: Whether defaults are those of the paper or of its published program.
        seed: Where random numbers start.
        encoders: Encoders that stages share, by name.
        stages: The stages by name, in the order they read each other; the last one is what the training goes by.

    Example:
        >>> stages = {"syntax": {"annotation": "trees"}}
        >>> config = Config.model_validate({"stages": stages})
        >>> config.end, config.supervised, config.data_of("syntax")
        ('syntax', ['syntax'], 'trees')
    """

    name: str = ""
    task: str = ""
    system: str = ""
    preset: Literal["paper", "release"] = "paper"
    seed: Count = 0
    data: Data = Data()
    encoders: dict[str, SharedEncoder] = Field(default={})
    stages: dict[str, AnyStage] = Field(default={})
    training: Training = Training()

    @model_validator(mode="after")
    def _fits_together(self) -> "Config":
        for name in (*self.stages, *self.encoders):
            if not re.fullmatch(r"[\w-]+", name) or hasattr(nn.ModuleDict(), name):
                raise ValueError(f"{name!r} cannot be the name of a stage or an encoder; call it otherwise")
        before: list[str] = []
        for name, stage in self.stages.items():
            if isinstance(stage.encoder, str) and stage.encoder not in self.encoders:
                raise ValueError(
                    f"stages.{name}.encoder names {stage.encoder!r}, and there is no encoders.{stage.encoder}"
                )
            for wire in stage.reads:
                if wire.stage not in before:
                    raise ValueError(
                        f"stages.{name} reads {wire.stage!r}, which is no stage before it; those are "
                        f"{', '.join(before) or 'none'}"
                    )
                source = self.stages[wire.stage]
                if reason := stage_class(source).refusal(source, wire.estimator):
                    raise ValueError(reason)
            before.append(name)
            if not is_learned(stage) and (stage.reads or not stage.latent or name == self.end):
                raise ValueError(f"stages.{name} follows a rule: it reads nothing, has no data, and cannot be the last")
        self._check_names()
        self._check_beside()
        self._check_trained()
        self._check_frozen()
        self._check_folds()
        return self

    def _check_names(self) -> None:
        """Two stages must not answer under one name."""
        places: dict[str, str] = {}
        for name, stage in self.stages.items():
            place = stage.field or ANNOTATIONS[stage.annotation].name
            if is_learned(stage) and places.setdefault(place, name) != name:
                raise ValueError(
                    f"stages.{places[place]} and stages.{name} both find {place!r}; give one of them a field of its own"
                )

    def _check_frozen(self) -> None:
        """What stands behind a frozen wire must stay as it is: its encoder, if that is a shared one."""
        names = {trained_encoder(self.stages[name]) for name in self.trained}
        shared = {name for name in names if name in self.encoders and self.encoders[name].encoder.learns}
        for name, stage in self.stages.items():
            if (
                is_learned(stage)
                and name not in self.trained
                and isinstance(stage.encoder, str)
                and stage.encoder in shared
            ):
                raise _unfrozen(name, str(stage.encoder))

    def check_trainable(self) -> None:
        """Complain about what can be loaded, since earlier versions trained it, and is not what it says if trained.

        Raises:
            ValueError: A stage is to be frozen or jackknifed, and what its encoder is built on goes on learning.
        """
        phases = [*self._pretrained(), self.trained]
        for name, stage in self.stages.items():
            shared = shared_encoder(stage)
            if not is_learned(stage) or name in self.trained or shared not in self.encoders:
                continue
            last = max((k for k, names in enumerate(phases) if name in names), default=-1)
            later = {other for names in phases[last + 1 :] for other in names}
            trained = any(trained_encoder(self.stages[other]) == shared for other in later)
            if trained and self.encoders[shared].encoder.learns:
                raise ValueError(f"{_unfrozen(name, shared, built=not isinstance(stage.encoder, str))}.")
        for name, stage in self.stages.items():
            if stage.folds and shared_encoder(stage):
                raise ValueError(f"{_unfolded(name)}.")

    def _pretrained(self) -> list[list[str]]:
        """The stages that learn in each pretraining, in order."""
        read = {wire.stage for _, wire in self.wires} if self.training.pretrain else ()
        leaders = [name for name in self.supervised if name in read and not self.stages[name].start]
        return [[*self.reached(name), *self.companions(name)] for name in leaders]

    def _check_folds(self) -> None:
        """Only what is trained once and for all, by itself, can be trained once for each fold."""
        read = {wire.stage for _, wire in self.wires}
        for name, stage in self.stages.items():
            if not stage.folds:
                continue
            if stage.folds == 1:
                raise ValueError(f"{name}.folds is 1; a jackknife has at least 2 folds, and none if it is 0")
            if name not in read:
                raise ValueError(f"{name}.folds is {stage.folds}, and no stage reads {name}; set {name}.folds = 0")
            if not is_learned(stage) or name in self.trained:
                raise ValueError(
                    f"{name}.folds is for a stage that is frozen after its pretraining, and {name} is not; use the "
                    f"system or estimator 'pipeline', or {name}.folds = 0 and data.{self.data_of(name)}.part to have "
                    "it learn from other sentences than those that read it"
                )
            if stage.reads or isinstance(stage.encoder, str):
                raise _unfolded(name)
            if not self.training.pretrain:
                raise ValueError(f"{name}.folds needs training.pretrain: how long its parsers are trained")

    def _check_beside(self) -> None:
        """A stage can learn in the steps of another that has steps, and the same sentences."""
        read = {wire.stage for _, wire in self.wires}
        for name, stage in self.stages.items():
            if not stage.beside:
                continue
            other = self.stages.get(stage.beside)
            if other is None or stage.beside == name:
                others = ", ".join(one for one in self.stages if one != name)
                raise ValueError(f"{name}.beside is {stage.beside!r}, which is no other stage; there are {others}")
            if other.beside or other.latent or stage.latent or self.data_of(name) != self.data_of(stage.beside):
                raise ValueError(
                    f"{name} cannot learn in the steps of {stage.beside}: both must have data, the same, and "
                    f"{stage.beside} steps of its own"
                )
            if name in read or name == self.end or stage_class(stage).helper_plans(stage):
                raise ValueError(
                    f"{name} cannot learn beside {stage.beside}: it must not be the last stage, be read by another, or "
                    f"have helpers; set {name}.beside = ''"
                )

    def _check_trained(self) -> None:
        """Every stage must learn from somewhere."""
        read = {wire.stage for _, wire in self.wires}
        for name, stage in self.stages.items():
            if is_learned(stage) and stage.latent and name not in read:
                raise ValueError(f"no stage reads the latent {name}, so nothing trains it; set {name}.latent = false")
            if not is_learned(stage) or name in self.trained:
                continue
            if stage.latent:
                raise ValueError(
                    f"'pipeline' never trains the latent {name}; choose another system or estimator, or "
                    f"{name}.latent = false"
                )
            if not self.training.pretrain and not stage.start:
                raise ValueError(
                    f"'pipeline' freezes {name}, so it needs training.pretrain or {name}.start; or let it "
                    f"learn on with {name}.freeze = false"
                )

    def by_name(self) -> dict[str, Any]:
        """All settings by their dotted names, as plain values: those of a stage under its own name, and those of the
        estimator under `estimator` if there is one wire only.

        Example:
            >>> from spigot_nlp.config import make_config
            >>> names = make_config({"system": "ste"}).by_name()
            >>> names["training.epochs"], names["syntax.mlp"], names["estimator.eta"]
            (30, 100, 1.0)
        """
        found: dict[str, Any] = {}
        several = len(list(self.wires)) > 1
        for name, value in _leaves(self.model_dump(mode="json")):
            name = name.removeprefix("stages.")
            _, wire, after = name.partition(".reads.")
            alone = wire and not several and after.startswith("0.estimator.")
            found[after.removeprefix("0.") if alone else name] = value
        return found

    def value(self, name: str) -> Any:
        """A setting by its dotted name, as a plain value.

        Raises:
            KeyError: If there is none.
        """
        return self.by_name()[name.removeprefix("stages.")]

    @property
    def end(self) -> str:
        """The last stage: what the training goes by."""
        return list(self.stages)[-1]

    @property
    def vector_files(self) -> list[str]:
        """The files of word vectors that encoders name beside the one of `data.vectors`."""
        own = [stage.encoder for stage in self.stages.values() if not isinstance(stage.encoder, str)]
        encoders = [*own, *(shared.encoder for shared in self.encoders.values())]
        return list(dict.fromkeys(encoder.vectors_file for encoder in encoders if encoder.vectors_file))

    @property
    def supervised(self) -> list[str]:
        """The stages that have data of their own."""
        return [name for name, stage in self.stages.items() if not stage.latent]

    @property
    def wires(self) -> Iterator[tuple[str, WireSettings]]:
        """All wires, each with the stage that reads."""
        return ((name, wire) for name, stage in self.stages.items() for wire in stage.reads)

    @property
    def trained(self) -> list[str]:
        """The stages that are trained to the end: those that nothing reads, those that gradients come back to, and
        those that have data and are not to be frozen."""
        read, leaders = {wire.stage for _, wire in self.wires}, {n: s for n, s in self.stages.items() if not s.beside}
        reached = {name for name, s in leaders.items() if name not in read or not (s.freeze or s.latent)}
        for name in reversed(list(self.stages)):
            if name in reached:
                reached.update(wire.stage for wire in self.stages[name].reads if not wire.is_frozen)
        reached.update(name for name, s in self.stages.items() if s.beside in reached)  # or it has no steps at all
        return [name for name in self.stages if name in reached and is_learned(self.stages[name])]

    def reached(self, stage: str) -> list[str]:
        """The stages that a stage's loss trains: itself, and those that its gradients pass to."""
        found = [stage]
        for name in found:
            found += [w.stage for w in self.stages[name].reads if not w.is_frozen and w.stage not in found]
        return [name for name in self.stages if name in found and is_learned(self.stages[name])]

    def companions(self, stage: str) -> list[str]:
        """The stages that learn in the steps of this one."""
        return [name for name, settings in self.stages.items() if settings.beside == stage]

    def data_of(self, stage: str) -> str:
        """The data set that a stage learns from, is chosen by and judged by."""
        settings = self.stages[stage]
        return settings.data or ANNOTATIONS[settings.annotation].dataset

    @property
    def text(self) -> tuple[str, ...]:
        """The data sets whose words the system knows."""
        return self.data.text or tuple(dict.fromkeys(map(self.data_of, self.supervised)))


def stage_class(settings: StageSettings) -> type[AbstractStage]:
    """The class that a stage's settings are of.

    Example:
        >>> import spigot_nlp.stages
        >>> stage_class(spigot_nlp.stages.TreeStage.Settings(annotation="trees")).__name__
        'TreeStage'
    """
    return STAGES.find(settings.model or settings.annotation)


def _unfrozen(name: str, encoder: str, *, built: bool = False) -> ValueError:
    on, other = (", which its encoder is built on,", ", built on no other") if built else ("", "")
    return ValueError(
        f"'pipeline' freezes {name}, and encoders.{encoder}{on} is trained by other stages; give {name} an encoder of "
        f"its own{other}"
    )


def _unfolded(name: str) -> ValueError:
    return ValueError(
        f"{name}.folds needs a stage that reads no other one and has an encoder of its own, built on no other; give "
        f"{name} such a one, or set {name}.folds = 0"
    )


def shared_encoder(settings: StageSettings) -> str:
    """The shared encoder that a stage reads: the one it names, or the one that its own is built on; empty if none.

    Example:
        >>> import spigot_nlp.stages
        >>> from spigot_nlp.encoders import BranchSettings
        >>> shared_encoder(StageSettings(annotation="trees", encoder=BranchSettings(of="words")))
        'words'
    """
    return settings.encoder if isinstance(settings.encoder, str) else settings.encoder.reads


def trained_encoder(settings: StageSettings) -> str:
    """The shared encoder that the loss of a stage trains; empty if none.

    Example:
        >>> import spigot_nlp.stages
        >>> from spigot_nlp.encoders import BranchSettings
        >>> over = {over: BranchSettings(of="words", over=over) for over in ("vectors", "states")}
        >>> {name: trained_encoder(StageSettings(annotation="trees", encoder=one)) for name, one in over.items()}
        {'vectors': '', 'states': 'words'}
    """
    return settings.encoder if isinstance(settings.encoder, str) else settings.encoder.trains


def is_learned(settings: StageSettings) -> bool:
    """Whether a stage has anything to learn."""
    return stage_class(settings).learns


def _leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{above}{name}.")
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            yield from _leaves({str(k): item for k, item in enumerate(value)}, f"{above}{name}.")
        else:
            yield above + name, value
