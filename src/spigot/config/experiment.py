"""One experiment: which system, on what, how."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from spigot.config.data import Data
from spigot.config.models import Classifier, Semantics, Syntax
from spigot.config.values import Count, Positive, Values

System = Literal[
    "neurboparser",
    "bilstm",
    "pipeline",
    "attention",
    "ste",
    "spigot",
    "sparsemap",
    "identity",
    "blackbox",
    "imle",
    "perturbed",
]
_THROUGH: tuple[System, ...] = (
    "pipeline", "attention", "ste", "spigot", "sparsemap", "identity", "blackbox", "imle", "perturbed"
)  # fmt: skip
SYSTEMS: dict[str, tuple[System, ...]] = {
    "parsing": ("neurboparser", *_THROUGH),
    "classification": ("bilstm", *_THROUGH),
}
"""The systems of each task."""


class Estimator(Values):
    """How gradients pass through the structure; which estimator it is follows from the system.

    Attributes:
        eta: The step size (`spigot`, `ste`, `identity`).
        max_norm: The gradient of a sentence's structure is cut to this length first.
        polytope: What `spigot` projects onto: the structure's relaxation, or its convex hull; `sequential` is the
            published program's projection of graphs, which settles an arc before its labels.
        strength: How far scores are moved against the gradient (`blackbox`, `imle`).
        temperature: The size of the noise (`imle`, `perturbed`).
        samples: How often noise is drawn (`imle`, `perturbed`).
        normalise: Whether `identity` removes the length of the scores too.
    """

    eta: Annotated[float, Field(gt=0)] = 1.0
    max_norm: Annotated[float, Field(gt=0)] | None = None
    polytope: Literal["relaxation", "hull", "sequential"] = "relaxation"
    strength: Annotated[float, Field(gt=0)] = 10.0
    temperature: Annotated[float, Field(ge=0)] = 1.0
    samples: Positive = 1
    normalise: bool = False


class Training(Values):
    """How long, and in what order.

    Attributes:
        epochs: Passes over the end task's training set, and over the intermediate one's where both are trained.
        pretrain: Passes over the intermediate task alone before that. Joint parsers start from scratch unless told
            otherwise; the parser of a pipeline gets as many as `epochs`.
        batch: Sentences in a step.
        patience: Epochs without a better dev score after which training stops; never if 0.
        share: The part of the intermediate sentences that an epoch of joint training draws, afresh each time.
        end_weight: Weight of the end task's loss, against 1 - end_weight for the intermediate loss (§2.3); both count
            fully if absent.
        warm_up: Epochs before the end task's gradient may reach the intermediate parser.
        syntax_from: A finished run whose syntactic parser to start from, instead of pretraining one.
        semantics_from: A finished run whose semantic parser to start from, for `task = "classification"`.
        save_seconds: How often the state is saved beside the end of each epoch.
    """

    epochs: Positive = 30
    pretrain: Count = 0
    batch: Positive = 1
    patience: Count = 5
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    end_weight: Annotated[float, Field(gt=0, lt=1)] | None = None
    warm_up: Count = 0
    syntax_from: str = ""
    semantics_from: str = ""
    save_seconds: Annotated[float, Field(ge=0)] = 60.0


class Config(Values):
    """One experiment.

    Attributes:
        task: `parsing`: syntactic trees inside a semantic parser; `classification`: a structure inside a sentence
            classifier.
        sweep: Values to try for settings by dotted name, for `spigot sweep`.

    Example:
        >>> Config.model_validate({"system": "ste", "estimator": {"eta": 0.5}}).estimator.eta
        0.5
    """

    name: str = ""
    task: Literal["parsing", "classification"] = "parsing"
    system: System = "spigot"
    preset: Literal["paper", "release"] = "paper"
    seed: Count = 0
    data: Data = Data()
    syntax: Syntax = Syntax()
    semantics: Semantics = Semantics()
    classifier: Classifier = Classifier()
    estimator: Estimator = Estimator()
    training: Training = Training()
    sweep: dict[str, tuple[bool | int | float | str, ...]] = Field(default={})

    @model_validator(mode="after")
    def _fits_together(self) -> "Config":
        if self.system not in SYSTEMS[self.task]:
            raise ValueError(
                f"system = {self.system!r} is none of task = {self.task!r}; choose one of "
                f"{', '.join(SYSTEMS[self.task])}"
            )
        parser, start = self.intermediate, self.training.pretrain or self.parser_from
        if self.system == "pipeline" and parser is not None and not start:
            kind = "syntactic" if parser == "syntax" else "semantic"
            raise ValueError(
                f"system = 'pipeline' freezes the {kind} parser, so it needs training.pretrain or "
                f"training.{parser}_from."
            )
        if self.estimator.polytope == "sequential" and self.intermediate == "syntax":
            raise ValueError("estimator.polytope = 'sequential' is about semantic graphs; use 'relaxation' for trees")
        if self.system == "perturbed" and self.estimator.temperature == 0:
            raise ValueError("system = 'perturbed' needs noise; set estimator.temperature above 0")
        if self.task == "classification":
            self._check_classifier()
        return self

    def _check_classifier(self) -> None:
        structure = self.classifier.structure
        if self.system == "attention" and structure == "graphs" and not self.is_latent and self.semantics.determinism:
            raise ValueError(
                "system = 'attention' needs marginals, and no efficient algorithm gives those of semantic graphs with "
                "deterministic roles; use ste, spigot or another estimator, or set semantics.determinism = false"
            )
        if self.is_latent and self.system == "pipeline":
            raise ValueError("system = 'pipeline' never trains a latent parser; choose another, or latent = false")

    def by_name(self) -> dict[str, Any]:
        """All settings by their dotted names, as plain values.

        Example:
            >>> Config().by_name()["estimator.eta"]
            1.0
        """
        return dict(_leaves(self.model_dump(mode="json")))

    @property
    def intermediate(self) -> Literal["syntax", "semantics"] | None:
        """The parser whose structures the end model reads."""
        if self.task == "parsing":
            return None if self.system == "neurboparser" else "syntax"
        if self.system == "bilstm" or self.classifier.structure in ("gold", "left", "right", "random"):
            return None
        return "semantics" if self.classifier.structure == "graphs" else "syntax"

    @property
    def end(self) -> Literal["semantics", "classifier"]:
        """The end model."""
        return "semantics" if self.task == "parsing" else "classifier"

    @property
    def is_latent(self) -> bool:
        """Whether the intermediate parser has no data of its own."""
        return self.task == "classification" and self.classifier.latent and self.intermediate is not None

    @property
    def is_joint(self) -> bool:
        """Whether the end task trains the intermediate parser."""
        return self.intermediate is not None and self.system != "pipeline"

    @property
    def parser_from(self) -> str:
        """The run to take the intermediate parser from, if any."""
        return {"syntax": self.training.syntax_from, "semantics": self.training.semantics_from}.get(
            self.intermediate or "", ""
        )


def _leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield above + name, value
