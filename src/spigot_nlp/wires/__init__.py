"""What leads from one stage to another: how the structure is read, and what comes back."""

from typing import Annotated

from pydantic import BeforeValidator, Field, SerializeAsAny

from spigot_nlp.values import Values
from spigot_nlp.wires.estimators import EstimatorSettings, build_estimator, estimator_settings
from spigot_nlp.wires.readers import READERS, AbstractReader, ChosenHeads, ReaderSettings, Source, reader_settings

__all__ = [
    "READERS",
    "AbstractReader",
    "ChosenHeads",
    "EstimatorSettings",
    "ReaderSettings",
    "Source",
    "WireSettings",
    "build_estimator",
    "estimator_settings",
]


class WireSettings(Values):
    """From which stage, how it is read, and which estimator sends the gradient back.

    Attributes:
        stage: The stage that is read.
        reader: How; `as` in a configuration.
        estimator: What comes back.

    Example:
        >>> wire = WireSettings.model_validate({"stage": "syntax", "as": "heads", "estimator": "ste"})
        >>> wire.model_dump()["as"], wire.estimator.name, wire.is_frozen
        ({'name': 'heads', 'relation_dim': 0}, 'ste', False)
    """

    stage: str
    reader: Annotated[SerializeAsAny[ReaderSettings], BeforeValidator(reader_settings)] = Field(alias="as")
    estimator: Annotated[SerializeAsAny[EstimatorSettings], BeforeValidator(estimator_settings)] = Field(
        default_factory=lambda: estimator_settings("spigot")
    )

    @property
    def is_frozen(self) -> bool:
        """Whether no gradient ever comes back."""
        return self.estimator.name == "pipeline"
