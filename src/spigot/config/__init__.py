"""What an experiment is: values with ranges, read from one TOML file. Nothing is built here.

A configuration is put together from, in rising order of precedence, the defaults, what the preset (`paper` or
`release`) says about the task and the system, the file, and overrides by dotted name.
"""

from spigot.config.data import DATA_VARIABLE, Data, Files, ListOps, Synthetic
from spigot.config.experiment import SYSTEMS, Config, Estimator, System, Training
from spigot.config.load import PRESET_SYSTEMS, PRESETS, as_options, load_config, make_config, resolved_config
from spigot.config.models import Classifier, Encoder, Optimiser, Pruning, Semantics, Syntax
from spigot.config.shipped import find_config, shipped_configs
from spigot.config.values import Count, Positive, Rate, Values

__all__ = [
    "DATA_VARIABLE",
    "PRESETS",
    "PRESET_SYSTEMS",
    "SYSTEMS",
    "Classifier",
    "Config",
    "Count",
    "Data",
    "Encoder",
    "Estimator",
    "Files",
    "ListOps",
    "Optimiser",
    "Positive",
    "Pruning",
    "Rate",
    "Semantics",
    "Syntax",
    "Synthetic",
    "System",
    "Training",
    "Values",
    "as_options",
    "find_config",
    "load_config",
    "make_config",
    "resolved_config",
    "shipped_configs",
]
