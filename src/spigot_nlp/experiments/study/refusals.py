"""What makes no sense of a study and its configuration together, or of what is asked of it beside its file."""

from collections.abc import Mapping
from typing import Any

from spigot_nlp.config import systems as known_systems
from spigot_nlp.experiments.study.file import Contestant, Point, Study


def check_named(systems: Mapping[str, Contestant]) -> None:
    """Refuse a system that neither its name nor its settings tell from what an experiment is by default."""
    known = known_systems(several=True)
    for name, system in systems.items():
        if name and name not in known and not system.settings and not system.tune:
            raise ValueError(
                f"systems.{name} has no settings, and {name} is no system that spigot knows; say which it is by "
                f"settings = {{ system = 'spigot' }}, or call it one of {', '.join(known)}."
            )


def check_overrides(overrides: Mapping[str, Any], study: Study, points: Mapping[str, Point]) -> None:
    """Refuse what would make trainings the same that are to differ, or be changed by the study again."""
    for name in overrides:
        if name == "seed":
            raise ValueError("seed is for the study to say; leave out --seed, and give --seeds.")
        if name == "training.tests":
            raise ValueError(
                "no training of a study reads its test sets; leave out --training.tests, and give --tests."
            )
        if name == "system" and any(study.systems):  # a search has one without a name
            raise ValueError("system is what the study compares; leave out --system, or choose some by --systems.")
        if tuned := [system for system, contestant in study.systems.items() if name in contestant.tune]:
            raise ValueError(f"{name} is tuned{f' for {tuned[0]}' if tuned[0] else ''}; leave out --{name}.")
        if name in study.vary:
            raise ValueError(f"{name} varies from point to point; leave out --{name}, or choose some by --points.")
    seen: dict[str, dict[str, Any]] = {}
    for name, point in points.items():
        left = {setting: value for setting, value in point.settings.items() if setting not in overrides}
        if same := next((other for other, values in seen.items() if values == left), None):
            said = next((f"--{setting}" for setting in point.settings if setting in overrides), "the file")
            raise ValueError(f"{said} makes the points {same} and {name} the same; choose one of them by --points.")
        seen[name] = left
