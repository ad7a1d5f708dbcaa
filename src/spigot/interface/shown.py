"""What notebooks show of a structure or an estimator, where a prompt shows its `repr`."""

from importlib import import_module


class Shown:
    """Something whose formula and picture notebooks show.

    What draws is far above this file. So nothing here imports it: it is among the names that the package offers its
    users at its border, and is loaded when one asks; a notebook is such a user.
    """

    def _repr_html_(self) -> str:
        return import_module("spigot_nlp.report.portraits").portrait(self)
