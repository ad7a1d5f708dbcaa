"""What an experiment is: values with ranges, read from one TOML file. Nothing is built here.

A configuration is put together from, in rising order of precedence, the defaults, what the preset (`paper` or
`release`) says about the task and the system, the file, and overrides by dotted name.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from spigot_nlp.config.experiment import Config, SharedEncoder, Training, stage_class
from spigot_nlp.configs import find_config, shipped_configs
from spigot_nlp.corpora.settings import DATA_VARIABLE, Data, Files, Synthetic
from spigot_nlp.values import Count, Optimiser, Positive, Rate, Values

if TYPE_CHECKING:
    from spigot_nlp.config.load import (
        as_options,
        check_useful,
        load_config,
        make_config,
        read_tables,
        resolved_config,
        settings,
    )
    from spigot_nlp.config.presets import UNWIRED, systems
else:

    def __getattr__(name: str) -> object:
        """Load what puts configurations together when it is asked for: a finished run needs none of it."""
        if name not in __all__:
            raise AttributeError(f"module 'spigot_nlp.config' has no attribute {name!r}")
        module = "presets" if name in ("UNWIRED", "systems") else "load"
        value = globals()[name] = getattr(import_module(f"spigot_nlp.config.{module}"), name)
        return value


__all__ = [
    "DATA_VARIABLE",
    "UNWIRED",
    "Config",
    "Count",
    "Data",
    "Files",
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
    "read_tables",
    "resolved_config",
    "settings",
    "shipped_configs",
    "stage_class",
    "systems",
]
