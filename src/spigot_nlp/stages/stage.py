"""What a stage is: a model that predicts one annotation, reading what other stages found."""

import abc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeAlias

from jaxtyping import Bool, Float
from pydantic import BeforeValidator, SerializeAsAny
from torch import Tensor, nn
from typing_extensions import TypeVar

from spigot import AbstractStructure, Registry
from spigot.types import Mask, Parts, Values
from spigot_nlp.annotations.annotation import ANNOTATIONS, AbstractAnnotation
from spigot_nlp.batches.batch import Batch, Encoded
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders.encoder import AbstractEncoder, EncoderSettings, WordTables, encoder_settings, make_encoder
from spigot_nlp.stages.constraints import Constraints
from spigot_nlp.toml import merged
from spigot_nlp.values import Count, Optimiser, Size
from spigot_nlp.values import Values as Settings
from spigot_nlp.wires import WireSettings
from spigot_nlp.wires.estimators import EstimatorSettings
from spigot_nlp.wires.readers import READERS, AbstractReader, ChosenHeads, Source


class Evidence(NamedTuple):
    """The scores that a structure is found by, and the parts that exist for it.

    Attributes:
        scores: The scores of the parts.
        mask: Which parts exist.

    Example:
        >>> import torch
        >>> Evidence(torch.zeros(1, 3, 3), torch.ones(1, 3, 3, dtype=torch.bool)).scores.shape
        torch.Size([1, 3, 3])
    """

    scores: Parts
    mask: Mask


class AbstractDecision(abc.ABC):
    """The structures that a stage decided for, found without a place in memory for the scores of all parts.

    Example:
        >>> class Nothing(AbstractDecision):
        ...     def parts(self):
        ...         return torch.zeros(0, 1)
        ...     def found(self, lengths):
        ...         return []
        >>> import torch
        >>> Nothing().parts().shape
        torch.Size([0, 1])
    """

    @abc.abstractmethod
    def parts(self) -> Parts:
        """The structures as those who read them want them."""

    def heads(self) -> ChosenHeads | None:
        """The structures as one head for each word; none unless that is what they are."""
        return None

    @abc.abstractmethod
    def found(self, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """What they say about sentences: the annotations of each, by name.

        Args:
            lengths: Words of each sentence.
        """


Found: TypeAlias = Parts | AbstractDecision
"""What a stage reads of another one: its structures, or what it decided for."""


def states_after(
    reader: AbstractReader, states: Float[Tensor, "batch n d"], found: Found, source: Source
) -> Float[Tensor, "batch n e"]:
    """States after a look at what another stage found, by the shorter way where there is one.

    Args:
        reader: How it is looked at.
        states: The states.
        found: What was found.
        source: The stage that found it.
    """
    if isinstance(found, AbstractDecision):
        chosen = found.heads()
        if chosen is not None and (after := reader.after_heads(states, chosen)) is not None:
            return after
        found = found.parts()
    return reader(states, found.to(states.dtype), source)


@dataclass(frozen=True)
class HelperPlan:
    """How long a smaller model inside a stage is trained.

    Attributes:
        epochs: Passes over the training set of the stage.
        batch: Sentences in a step; as many as in other steps if 0.

    Example:
        >>> HelperPlan(epochs=3).batch
        0
    """

    epochs: int
    batch: int = 0


@dataclass(frozen=True)
class Helper:
    """A smaller model inside a stage that is trained before it, on the same data.

    Attributes:
        model: The model.
        optimiser: How it is updated.

    Example:
        >>> Helper(nn.Linear(2, 1), Optimiser(max_norm=5.0)).optimiser.max_norm
        5.0
    """

    model: nn.Module
    optimiser: Optimiser


STAGES: "Registry[AbstractStage]" = Registry("stage")
"""The stages by the name of their model: usually that of the annotation they predict."""


def _wires(value: Any) -> Any:
    if isinstance(value, Mapping | WireSettings):
        return (value,)
    if not isinstance(value, list | tuple) or not all(isinstance(wire, Mapping | WireSettings) for wire in value):
        raise ValueError(f"a wire is a table such as {{ stage = 'syntax', as = 'heads' }}, not {value!r}")
    return value


def _encoder(value: Any) -> Any:
    return value if isinstance(value, str) else encoder_settings(value)


EncoderOrName = Annotated[str | SerializeAsAny[EncoderSettings], BeforeValidator(_encoder)]
"""The type of a setting that holds an encoder, or the name of one that stages share."""


class StageSettings(Settings):
    """What all stages can be told.

    Attributes:
        annotation: The kind of annotation it predicts: a key of `spigot_nlp.annotations.ANNOTATIONS`.
        model: The stage: a key of `STAGES`; that of the annotation's own name if empty.
        field: The name its annotation stands under in sentences; the usual one if empty.
        data: The data set it learns from, a table of `data`; the usual one of its annotation if empty.
        latent: Whether it has no data of its own, and other stages train it through their wires.
        start: A finished run to take the trained stage from, instead of pretraining it.
        freeze: Whether it stays as it is once it is pretrained, if nothing ever comes back to it through a wire;
            otherwise it goes on learning from its own data beside the stages that read it.
        folds: Into how many parts its training sentences are divided, so that the stages that read it learn from what
            a parser finds that has not seen the sentence; 0 for none of that. For stages that are frozen.
        beside: Another stage with the same data, in whose steps this one learns: both losses of the same sentences are
            added up, so that an encoder which they share reads them once. It has steps of its own if empty.
        reads: The stages it reads, how, and what comes back to them.
        encoder: How words become states; or the name of one in `encoders`, shared with other stages.
        mlp: Hidden units.
        optimiser: How it is updated.

    Example:
        >>> settings = StageSettings.model_validate(
        ...     {"annotation": "graphs", "reads": {"stage": "syntax", "as": "heads", "estimator": "ste"}}
        ... )
        >>> [(wire.stage, wire.estimator.name) for wire in settings.reads]
        [('syntax', 'ste')]
    """

    annotation: str
    model: str = ""
    field: str = ""
    data: str = ""
    latent: bool = False
    start: str = ""
    freeze: bool = True
    folds: Count = 0
    beside: str = ""
    reads: Annotated[tuple[WireSettings, ...], BeforeValidator(_wires)] = ()
    encoder: EncoderOrName = encoder_settings({})
    mlp: Size = 100
    optimiser: Optimiser = Optimiser()


_Settings = TypeVar("_Settings", bound=StageSettings, default=Any)
_Annotation = TypeVar("_Annotation", bound=AbstractAnnotation, default=AbstractAnnotation)
_Structure = TypeVar("_Structure", bound=AbstractStructure, default=AbstractStructure)


@dataclass(frozen=True)
class Surroundings:
    """What a stage is built into.

    Attributes:
        vocab: The indices of words, lemmas and tags.
        vectors: Pretrained word vectors in the vocabulary's order, by file.
        encoders: The encoders that stages share.
        stages: The stages before it.
        run: The folder of the training that it is part of, where its parameters are about to be read from one.

    Example:
        >>> Surroundings(Vocab.of([Sentence(("Rain", "fell"))])).encoders
        {}
    """

    vocab: Vocab
    vectors: WordTables | None = None
    encoders: Mapping[str, AbstractEncoder] = field(default_factory=dict)
    stages: "Mapping[str, AbstractStage]" = field(default_factory=dict)
    run: Path | None = None


class AbstractStage(nn.Module, abc.ABC, Generic[_Settings, _Annotation, _Structure]):
    """A model that predicts one annotation.

    A new one is a subclass, registered under the name of its model, with a class of settings: `evidence` scores the
    parts of its structure, `loss` compares them with what is right.

    Args:
        name: What the configuration calls it.
        settings: Its options.
        annotation: What it predicts.
        around: What it is built into.

    Attributes:
        structure: The set it decodes into.
        readers: One for each wire, in the order of `settings.reads`.
        width: Length of a state after all of them.

    Example:
        >>> import spigot
        >>> from spigot_nlp.annotations import Trees
        >>> from spigot_nlp.batches import collate, encode
        >>> class First(AbstractStage):                          # `@STAGES.register("first")` above it
        ...     def __init__(self, name, settings, annotation, around):
        ...         super().__init__(name, settings, annotation, around)
        ...         self.structure = spigot.ProjectiveTrees()
        ...     def evidence(self, batch, read=(), *, limits=None):
        ...         mask = self.structure.mask(batch.lengths, batch.size)
        ...         return Evidence(mask.float(), mask)
        ...     def loss(self, batch, read=()):
        ...         return self.states(batch, read, noisy=True).sum((-2, -1))
        >>> rain = Sentence(("Rain", "fell"))
        >>> vocab = Vocab.of([rain])
        >>> stage = First("first", StageSettings(annotation="trees"), Trees(), Surroundings(vocab))
        >>> stage.evidence(collate([encode(rain, vocab)])).scores.shape, stage.width
        (torch.Size([1, 3, 3]), 400)
    """

    Settings: ClassVar[type[StageSettings]] = StageSettings

    learns: ClassVar[bool] = True
    """Whether it has scores to find its structures by; they follow a rule if not, and `given` says which."""

    name: str
    settings: _Settings
    annotation: _Annotation
    structure: _Structure

    def __init__(self, name: str, settings: _Settings, annotation: _Annotation, around: Surroundings) -> None:
        super().__init__()
        self.name, self.settings, self.annotation = name, settings, annotation
        # What belongs to others is kept out of the parameters of this stage.
        self._others: tuple[Mapping[str, AbstractEncoder], Mapping[str, AbstractStage]] = around.encoders, around.stages
        self._own = None if isinstance(settings.encoder, str) else settings.encoder
        if self._own is not None:
            self.own_encoder = make_encoder(self._own, around.vocab, around.vectors, around.run, around.encoders)
        width, readers = self.encoder.outputs, []
        for wire in settings.reads:
            reader = READERS.find(wire.reader.name)(wire.reader, width, settings.mlp, self._source(wire))
            readers.append(reader)
            width = reader.outputs
        self.readers, self.width = nn.ModuleList(readers), width

    @property
    def encoder(self) -> AbstractEncoder:
        """Its own encoder, or the one it shares."""
        return self._others[0][self.shared_encoder] if self._own is None else self.own_encoder

    @property
    def shared_encoder(self) -> str:
        """The name of the encoder it shares; empty if it has its own."""
        return self.settings.encoder if isinstance(self.settings.encoder, str) else ""

    @property
    def trained_encoder(self) -> str:
        """The name of the shared encoder that its loss trains: the one it shares, or one that its own builds on."""
        return self.shared_encoder or (self._own.trains if self._own is not None else "")

    def _source(self, wire: WireSettings) -> Source:
        return self._others[1][wire.stage]

    @classmethod
    def refusal(cls, settings: Any, estimator: EstimatorSettings) -> str:
        """Why an estimator cannot stand on a wire from such a stage; empty if it can."""
        return ""

    def states(self, batch: Batch, read: Sequence[Found], *, noisy: bool) -> Float[Tensor, "batch n d"]:
        """States of the root and the words, after a look at what other stages found.

        Args:
            batch: The sentences.
            read: The structures, one for each wire.
            noisy: Whether dropout applies, if the batch has seeds.
        """
        return self.after_reading(self.encoder.states(batch, noisy=noisy), read)

    def after_reading(self, states: Float[Tensor, "batch n d"], read: Sequence[Found]) -> Float[Tensor, "batch n e"]:
        """States of an encoder, after a look at what other stages found.

        Args:
            states: The states.
            read: The structures, one for each wire.
        """
        for wire, reader, found in zip(self.settings.reads, self.readers, read, strict=True):
            assert isinstance(reader, AbstractReader)
            states = states_after(reader, states, found, self._source(wire))
        return states

    @abc.abstractmethod
    def evidence(self, batch: Batch, read: Sequence[Parts] = (), *, limits: Any = None) -> Evidence:
        """The scores of the structure's parts, and which exist; nothing is dropped, and nothing gold is looked at.

        Args:
            batch: The sentences.
            read: The structures of the stages it reads.
            limits: What `limits` made of constraints.
        """

    def decided(self, batch: Batch, read: Sequence[Found] = ()) -> AbstractDecision | None:
        """The best structures by a shorter way than `evidence`, which has no scores to show; none unless it says so."""
        return None

    def decisive(self, evidence: Evidence, limits: Any) -> Evidence:
        """The evidence by which the best structure is the best one that meets the constraints."""
        return evidence

    @abc.abstractmethod
    def loss(self, batch: Batch, read: Sequence[Parts] = ()) -> Values:
        """The loss of each sentence's gold annotation, as in training.

        Args:
            batch: The sentences, with what is right.
            read: The structures of the stages it reads.
        """

    def given(self, batch: Batch) -> Parts:
        """The structures of a stage that does not learn."""
        raise TypeError(f"{self.name} learns its structures; they follow from scores.")

    def gold(self, batch: Batch) -> Any:
        """What is right in a batch.

        Raises:
            ValueError: If the batch does not say.
        """
        if self.name not in batch.gold:
            raise ValueError(f"The loss of {self.name} needs {self.annotation.nouns}, and this batch has none.")
        return batch.gold[self.name]

    def found(self, z: Parts, evidence: Evidence | None, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """What structures say about sentences: the annotations of each, by name."""
        return [{self.annotation.name: value} for value in self.annotation.decode(z, lengths)]

    def alternatives(
        self, z: Parts, evidence: Evidence, batch: Batch, values: Sequence[Any], top: int
    ) -> "Sequence[tuple[Any, ...] | None]":
        """What was chosen for each sentence, and what might have been instead; `None` where there is nothing to say.

        Args:
            z: The structures.
            evidence: The scores they were found by.
            batch: The sentences.
            values: The structures as values.
            top: How many others to list.
        """
        return [None] * len(values)

    def certainty(self, evidence: Evidence) -> dict[str, Bool[Tensor, " batch"]]:
        """What is known about the best structures beside that they are valid, by name; nothing if they are exact.

        Args:
            evidence: The scores they were found by.
        """
        return {}

    @property
    def arc_labels(self) -> int | None:
        """How many labels its arcs have, 0 if they have none; `None` if its structures have no arcs."""
        return None

    @property
    def choices(self) -> int | None:
        """Of how many it chooses one, for each word or for the sentence; `None` if it does not."""
        return None

    def part(self, place: Sequence[int]) -> Arc:
        """What a part of its structure is called: an arc, a predicate as an arc to itself, a choice for a word.

        Args:
            place: Where it stands in the structure of a sentence.
        """
        return Arc(place[0], place[1] if len(place) > 1 else place[0], "")

    def arcs(self, z: Parts) -> tuple[Parts, Parts | None]:
        """Arcs i -> j of structures, and the same arcs by label if they have labels."""
        raise TypeError(f"the structures of {self.name} have no arcs.")

    @classmethod
    def helper_plans(cls, settings: Any) -> dict[str, HelperPlan]:
        """The helpers that a stage with these settings has, and how long each is trained."""
        return {}

    def helpers(self) -> dict[str, Helper]:
        """Smaller models inside it, by name, that are trained first."""
        return {}

    def helper_loss(self, helper: str, batch: Batch) -> Values:
        """The loss of one of them."""
        raise ValueError(f"{self.name} has no {helper} to train.")

    def helper_scores(self, helper: str, batches: Iterable[Batch]) -> dict[str, float]:
        """What development data say about one of them."""
        return {}

    def prepare(self, sentences: Sequence[Encoded]) -> None:
        """Learn what can be counted in the training sentences."""

    def usable(self, sentence: Sentence) -> bool:
        """Whether it can learn from a sentence."""
        return self.annotation.value(sentence) is not None

    def about_usable(self) -> str:
        """What sentences must be like to be usable, in brackets after a space; empty if all are."""
        return ""

    def is_concerned(self, demands: Constraints) -> bool:
        """Whether constraints are about its structures."""
        return False

    def limits(self, demands: Sequence[Constraints | None], lengths: Sequence[int], size: int) -> Any:
        """Constraints on the sentences of a batch, as `evidence` takes them; `None` if none concerns it.

        Args:
            demands: Those of each sentence.
            lengths: Words of each sentence.
            size: Positions of the batch, with the root.

        Raises:
            Infeasible: The constraints of a sentence do not fit it, or leave it no structure; see its `index`.
        """
        return None


def stage_settings(table: Any) -> StageSettings:
    """The settings of a stage from its table.

    Raises:
        ValueError: If it names no known annotation or stage, or an option that the stage does not have.

    Example:
        >>> import spigot_nlp.stages
        >>> stage_settings({"annotation": "trees", "loss": "crf"}).loss
        'crf'
        >>> stage_settings({"annotation": "twigs"})
        Traceback (most recent call last):
        ValueError: there is no kind of annotation 'twigs'; there are trees, graphs, label, tags, formalisms, and \
those of plug-ins (--plugin).
    """
    if isinstance(table, StageSettings):
        return table
    if not isinstance(table, Mapping) or "annotation" not in table:
        raise ValueError("a stage is a table with its annotation, e.g. annotation = 'trees'")
    ANNOTATIONS.find(table["annotation"])
    kind = STAGES.find(table.get("model") or table["annotation"])
    return kind.Settings.model_validate(filled(table, kind))


def filled(table: Mapping[str, Any], kind: type[AbstractStage]) -> dict[str, Any]:
    """A table over the defaults of its stage, so that a part of a group can be given without the rest."""
    defaults = kind.Settings(annotation=table["annotation"]).model_dump()
    if isinstance(table.get("encoder"), str):
        defaults.pop("encoder")
    return merged(defaults, table)


AnyStage = Annotated[SerializeAsAny[StageSettings], BeforeValidator(stage_settings)]
"""The type of a setting that holds a stage."""
