"""What an experiment is: values with ranges, read from one TOML file. Nothing is built here.

A configuration is put together from, in rising order of precedence, the defaults below, the preset (`paper` or
`release`), the file, and overrides by dotted name.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

System = Literal["neurboparser", "pipeline", "attention", "ste", "spigot", "sparsemap"]
Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]

DATA_VARIABLE = "SPIGOT_DATA"


class Values(BaseModel):
    """A frozen group of values that refuses names it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Files(Values):
    """The files of one task, relative to `data.root`.

    Attributes:
        train: Training sentences; several files are read one after the other.
        dev: What early stopping and tuning look at.
        tests: Test sets by name, e.g. `id` and `ood`.
        limit: How many training sentences to use, from the start of a shuffled order; all if 0.
    """

    train: tuple[str, ...] = ()
    dev: str = ""
    tests: dict[str, str] = {}
    limit: Count = 0


class Synthetic(Values):
    """Sizes of the built-in corpus, in sentences."""

    train: Positive = 2000
    dev: Positive = 300
    test: Positive = 500
    seed: Count = 0


class Data(Values):
    """Where the sentences come from.

    Attributes:
        root: The folder that relative paths start from; the environment variable SPIGOT_DATA if empty.
        source: `files`, or the built-in `synthetic` corpus.
        trees: Syntactic trees: the intermediate task.
        graphs: Semantic graphs: the end task.
        vectors: Pretrained word vectors as GloVe text, plain or gzip; none if empty.
        tags: Whether tags and lemmas are `predicted` (training text by jackknifing) or taken from the files' `columns`.
        obtain: What to tell a user who lacks the files.
    """

    root: str = ""
    source: Literal["files", "synthetic"] = "files"
    trees: Files = Files()
    graphs: Files = Files()
    synthetic: Synthetic = Synthetic()
    vectors: str = ""
    tags: Literal["predicted", "columns"] = "predicted"
    folds: Annotated[int, Field(ge=2)] = 5
    obtain: str = ""

    def path(self, name: str) -> Path:
        """The place of a file, whether given in full or relative to the root."""
        path = Path(name)
        root = self.root or os.environ.get(DATA_VARIABLE, "")
        return path if path.is_absolute() or not root else Path(root) / path


class Encoder(Values):
    """Embeddings and BiLSTM (paper-wide defaults: 100-dimensional words, two layers of 200).

    Attributes:
        interleaved: Whether the second layer reads both directions of the first; the release runs two independent
            stacks.
        word_dropout: $\\alpha$: a word becomes unknown with probability $\\alpha/(\\alpha+\\text{count})$.
        drop_all: Whether the lemma and the tag of a dropped word go with it.
        lemma_from_form: Whether the lemma table is indexed by the word form.
        dropout: Share of units left out of the inputs and of the states, one mask a sentence.
    """

    word_dim: Positive = 100
    lemma_dim: Count = 50
    tag_dim: Count = 50
    hidden: Positive = 200
    layers: Positive = 2
    interleaved: bool = False
    word_dropout: Annotated[float, Field(ge=0)] = 0.25
    drop_all: bool = False
    lemma_from_form: bool = False
    dropout: Rate = 0.0


class Optimiser(Values):
    """Adam, with its own gradient clipping and annealing for each model."""

    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    max_norm: Annotated[float, Field(gt=0)] = 1.0
    weight_decay: Rate = 1e-6
    anneal_every: Count = 10
    anneal_by: Annotated[float, Field(gt=0, le=1)] = 0.5


class Syntax(Values):
    """The syntactic parser.

    Attributes:
        trees: What it decodes into.
        single_root: Whether exactly one word hangs on the root.
        mlp: Hidden units of the arc scorer.
        mlp_layers: Its hidden layers.
        loss: The structured hinge, or the likelihood of a CRF over trees.
    """

    encoder: Encoder = Encoder()
    trees: Literal["projective", "nonprojective"] = "projective"
    single_root: bool = True
    mlp: Positive = 100
    mlp_layers: Annotated[int, Field(ge=1, le=3)] = 1
    loss: Literal["hinge", "crf"] = "hinge"
    keep: Count = Field(default=0, description="Arc pruning: the best heads a word keeps; 0 keeps all.")
    optimiser: Optimiser = Optimiser(anneal_every=5)


class Pruning(Values):
    """Which arcs and labels of the semantic parser are worth scoring."""

    dictionary: bool = True
    distance: bool = True
    rare_role: Count = 30
    learned: bool = True
    threshold: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    keep: Positive = 20
    epochs: Positive = 3
    encoder: Encoder = Encoder(word_dim=32, lemma_dim=16, tag_dim=16, hidden=32, layers=1)
    mlp: Positive = 32
    optimiser: Optimiser = Optimiser(max_norm=5.0)


class Semantics(Values):
    """The semantic parser.

    Attributes:
        loss: The structured hinge with costs, or the log loss of the same model without determinism.
        false_positive: Cost of a labelled arc too many (hinge).
        false_negative: Cost of a labelled arc missed (hinge).
        determinism: Whether roles that no training predicate repeats may be used once only.
    """

    encoder: Encoder = Encoder()
    mlp: Positive = 100
    mlp_layers: Annotated[int, Field(ge=1, le=3)] = 2
    loss: Literal["hinge", "log"] = "hinge"
    false_positive: Annotated[float, Field(ge=0)] = 0.4
    false_negative: Annotated[float, Field(ge=0)] = 0.6
    determinism: bool = True
    pruning: Pruning = Pruning()
    optimiser: Optimiser = Optimiser(anneal_every=10)


class Estimator(Values):
    """How gradients pass through the tree; which estimator it is follows from the system."""

    eta: Annotated[float, Field(gt=0)] = 1.0
    max_norm: Annotated[float, Field(gt=0)] | None = None
    polytope: Literal["relaxation", "hull"] = "relaxation"


class Training(Values):
    """How long, and in what order.

    Attributes:
        epochs: Passes over both training sets; for `pipeline` over the graphs.
        pretrain: Passes over the trees alone before that. Joint systems start from scratch unless told otherwise; the
            pipeline's parser gets as many as `epochs`.
        batch: Sentences in a step.
        patience: Epochs without a better dev score after which training stops; never if 0.
        end_weight: Weight of the end task's loss, against 1 - end_weight for the intermediate loss (§2.3); both count
            fully if absent.
        warm_up: Epochs before the end task's gradient may reach the syntactic parser.
        syntax_from: A finished run whose syntactic parser to start from, instead of pretraining one.
        save_seconds: How often the state is saved beside the end of each epoch.
    """

    epochs: Positive = 30
    pretrain: Count = 0
    batch: Positive = 1
    patience: Count = 5
    end_weight: Annotated[float, Field(gt=0, lt=1)] | None = None
    warm_up: Count = 0
    syntax_from: str = ""
    save_seconds: Annotated[float, Field(ge=0)] = 60.0


class Config(Values):
    """One experiment.

    Example:
        >>> Config.model_validate({"system": "ste", "estimator": {"eta": 0.5}}).estimator.eta
        0.5
    """

    name: str = ""
    system: System = "spigot"
    preset: Literal["paper", "release"] = "paper"
    seed: Count = 0
    data: Data = Data()
    syntax: Syntax = Syntax()
    semantics: Semantics = Semantics()
    estimator: Estimator = Estimator()
    training: Training = Training()

    @model_validator(mode="after")
    def _fits_together(self) -> "Config":
        if self.system == "pipeline" and not (self.training.pretrain or self.training.syntax_from):
            raise ValueError(
                "system = 'pipeline' freezes the syntactic parser, so it needs training.pretrain or "
                "training.syntax_from."
            )
        return self

    @property
    def has_syntax(self) -> bool:
        """Whether there is a syntactic parser at all."""
        return self.system != "neurboparser"


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "release": {
        "syntax": {
            "mlp_layers": 2,
            "keep": 10,
            "encoder": {"lemma_from_form": True, "drop_all": True},
            "optimiser": {"anneal_every": 10},
        },
        "training": {"epochs": 100},
    },
}
"""Where the paper and the published program differ. Fields of a file override them one by one."""

PRESET_SYSTEMS: dict[tuple[str, str], dict[str, Any]] = {
    ("paper", "attention"): {
        "syntax": {"loss": "crf", "optimiser": {"learning_rate": 5e-4, "anneal_every": 4}},
    },
    ("release", "attention"): {"syntax": {"loss": "crf"}},
    ("release", "spigot"): {"estimator": {"max_norm": 1.0}},
}
"""What a preset says about one system: structured attention has its own loss and schedule."""


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read an experiment from a TOML file.

    Args:
        path: The file.
        overrides: Values by dotted name, e.g. `{"estimator.eta": 0.5}`. They win over the file.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = file.write_text("system = 'attention'")
        >>> load_config(file, {"training.epochs": 3}).syntax.loss
        'crf'
    """
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no configuration {path}; the examples are in configs/.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from None
    return make_config(given, overrides, where=str(path))


def make_config(
    given: Mapping[str, Any], overrides: Mapping[str, Any] | None = None, where: str = "the configuration"
) -> Config:
    """An experiment from nested values, with its preset filled in below them.

    Example:
        >>> make_config({"preset": "release"}).estimator.max_norm
        1.0
    """
    changes: dict[str, Any] = {}
    for name, value in (overrides or {}).items():
        place = changes
        *groups, last = name.split(".")
        for group in groups:
            place = place.setdefault(group, {})
            if not isinstance(place, dict):
                raise ValueError(f"{where}: {name} and a part of it are both given; give one of them.")
        if isinstance(place.get(last), dict):
            raise ValueError(f"{where}: {name} and a part of it are both given; give one of them.")
        place[last] = value
    chosen = _merge(dict(given), changes)
    preset, system = chosen.get("preset", "paper"), chosen.get("system", "spigot")
    values = _merge(Config().model_dump(), PRESETS.get(str(preset), {}))
    values = _merge(values, PRESET_SYSTEMS.get((str(preset), str(system)), {}))
    values = _merge(values, chosen)
    training = values["training"]
    if system == "pipeline" and isinstance(training, dict) and not training["syntax_from"]:
        named = chosen.get("training", {})
        if "pretrain" not in named:  # its parser gets as many passes as the joint ones give theirs
            training["pretrain"] = training["epochs"]
    return resolved_config(values, where)


def resolved_config(values: Mapping[str, Any], where: str = "the configuration") -> Config:
    """An experiment from values that need no preset below them, such as those of a finished run.

    Example:
        >>> resolved_config({"preset": "release", "estimator": {"eta": 2.0}}).estimator
        Estimator(eta=2.0, max_norm=None, polytope='relaxation')
    """
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        kind = "is not a known setting" if first["type"] == "extra_forbidden" else first["msg"]
        reason = kind.removeprefix("Value error, ").rstrip(".")
        raise ValueError(f"{where}: {name + ': ' if name else ''}{reason}.") from None


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dictionaries on top of each other."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        merged[name] = _merge(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return merged
