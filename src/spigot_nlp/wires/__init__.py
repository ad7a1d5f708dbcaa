"""What leads from one stage to another: how the structure is read, and what comes back."""

from spigot_nlp.wires.estimators import EstimatorSettings, build_estimator, estimator_settings
from spigot_nlp.wires.readers import READERS, AbstractReader, ChosenHeads, ReaderSettings, Source
from spigot_nlp.wires.wire import WireSettings

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
