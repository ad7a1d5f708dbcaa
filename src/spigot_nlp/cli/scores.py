"""Scores as people read them: a table of all sets, and everything about one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spigot_nlp.cli.console import percent, print_table, show_table
from spigot_nlp.cli.diagnose import NAMES

if TYPE_CHECKING:
    from spigot_nlp.config import Config
    from spigot_nlp.scoring import Scores, Target

Bounds = Mapping[str, Mapping[str, tuple[float, float]]]
"""Confidence intervals, by what is scored and by the number."""


def print_summary(scores: "Scores", config: "Config", changes: Sequence[float] = ()) -> None:
    """Print what `scores.json` holds: a table for each stage, with a row for each set of sentences.

    Args:
        scores: What it holds.
        config: The experiment.
        changes: How much of latent structures changed from epoch to epoch, as shares.

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
    from spigot_nlp.scoring import STRUCTURE, targets

    for target in targets(config):
        sets = {name: found[target.key] for name, found in scores.items() if target.key in found}
        if sets:
            table = target.annotation.summary(sets)
            name = target.called or ("" if target.annotation.is_usual else target.stage)
            show_table(replace(table, title=f"{name}: {table.title}") if name else table)
    structures = {name: found[STRUCTURE] for name, found in scores.items() if STRUCTURE in found}
    if structures:
        _print_structures(structures, changes)


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


def _print_structures(structures: dict[str, Any], changes: Sequence[float]) -> None:
    """A few words about latent structures; `spigot diagnose` has more."""
    others = [name for name in NAMES if any(name in part["answer"]["agreement"] for part in structures.values())]
    rows = []
    for name, part in structures.items():
        profile = part["answer"]
        known = (profile["agreement"].get(other) for other in others)
        agreement = ("" if share is None else percent(share) for share in known)
        rows.append([name, *agreement, percent(profile["predictable"]), percent(profile["distinct"])])
    columns = ["", *(NAMES[name] for name in others), "predictable", "distinct"]
    print_table("Latent structures: agreement, and what they look like, per cent", columns, rows)
    if changes:
        print(f"Changed from epoch to epoch in training, per cent: {', '.join(map(percent, changes))}")
