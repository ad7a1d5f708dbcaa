"""Scores as people read them: a table of all sets, and everything about one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spigot_nlp.cli.console import show_table

if TYPE_CHECKING:
    from spigot_nlp.config import Config
    from spigot_nlp.scoring import Scores, Target

Bounds = Mapping[str, Mapping[str, tuple[float, float]]]
"""Confidence intervals, by what is scored and by the number."""


def print_summary(scores: "Scores", config: "Config") -> None:
    """Print what `scores.json` holds: a table for each stage, with a row for each set of sentences.

    Args:
        scores: What it holds.
        config: The experiment.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> trees = {"sentences": 2, "uas": 0.9, "uas_without_punctuation": 0.95, "exact": 0.5}
        >>> print_summary({"dev": {"trees": trees}}, make_config({"stages": {"syntax": {"annotation": "trees"}}}))
        Trees, per cent
        <BLANKLINE>
                sentences     UAS   no punctuation   exact
         ──────────────────────────────────────────────────
          dev           2   90.00            95.00   50.00
        <BLANKLINE>
    """
    from spigot_nlp.scoring import targets

    for target in targets(config):
        sets = {name: found[target.key] for name, found in scores.items() if target.key in found}
        if sets:
            table = target.annotation.summary(sets)
            name = target.called or ("" if target.annotation.is_usual else target.stage)
            show_table(replace(table, title=f"{name}: {table.title}") if name else table)


def print_scores(scores: Mapping[str, Any], wanted: "Sequence[Target]", bounds: Bounds, *, every: bool = False) -> None:
    """Print everything about one set of sentences.

    Args:
        scores: The numbers, by what is scored.
        wanted: What that is.
        bounds: The confidence intervals of some of them.
        every: Whether to print those of every role and of every class too.
    """
    for target in wanted:
        if target.key in scores:
            name = target.called or ("" if target.annotation.is_usual else target.annotation.name)
            for table in target.annotation.tables(scores[target.key], bounds.get(target.key, {}), every=every):
                show_table(replace(table, title=f"{name}: {table.title}") if name else table)
