"""What an experiment is: values with ranges, read from one TOML file. Nothing is built here.

A configuration is put together from, in rising order of precedence, the defaults, what the preset (`paper` or
`release`) says about the task and the system, the file, and overrides by dotted name.
"""

from spigot.config.experiment import Config, SharedEncoder, Training, stage_class
from spigot.config.known import settings
from spigot.config.load import as_options, check_useful, load_config, make_config, resolved_config
from spigot.config.presets import PRESET_SYSTEMS, PRESETS, UNWIRED, systems
from spigot.config.shipped import find_config, shipped_configs
from spigot.corpora.settings import DATA_VARIABLE, Data, Files, ListOps, Synthetic
from spigot.values import Count, Optimiser, Positive, Rate, Values

__all__ = [
    "DATA_VARIABLE",
    "PRESETS",
    "PRESET_SYSTEMS",
    "UNWIRED",
    "Config",
    "Count",
    "Data",
    "Files",
    "ListOps",
    "Optimiser",
    "Positive",
    "Rate",
    "SharedEncoder",
    "Synthetic",
    "Training",
    "Values",
    "as_options",
    "check_useful",
    "find_config",
    "load_config",
    "make_config",
    "resolved_config",
    "settings",
    "shipped_configs",
    "stage_class",
    "systems",
]
