"""Experiments in stage form, small enough to train in a test."""

from typing import Any

from spigot_nlp.config import Config, make_config

ENCODER = {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}
PRUNING = {"learned": False, "rare_role": 0}
TRAINING = {"epochs": 2, "batch": 4, "patience": 0}


def experiment(tables: dict[str, Any], **overrides: Any) -> Config:
    """An experiment; overrides use two underscores for the dot."""
    given = {"data": {"tags": "columns"}, "training": TRAINING, **tables}
    return make_config(given, {name.replace("__", "."): value for name, value in overrides.items()})


def three_stages(**overrides: Any) -> Config:
    """Trees inside graphs inside classes, with an estimator on each wire."""
    wires = {
        "semantics": {"stage": "syntax", "as": "heads", "estimator": {"name": "spigot", "max_norm": 0.5}},
        "mood": {"stage": "semantics", "as": "roles", "estimator": "ste"},
    }
    size = {"encoder": ENCODER, "mlp": 8}
    stages = {
        "syntax": {"annotation": "trees", **size},
        "semantics": {"annotation": "graphs", "reads": wires["semantics"], "pruning": PRUNING, **size},
        "mood": {"annotation": "label", "reads": wires["mood"], **size},
    }
    return experiment({"stages": stages}, **overrides)


def shared_encoder(**overrides: Any) -> Config:
    """Trees and classes that have the encoder in common; the classes read the trees, too."""
    stages = {
        "syntax": {"annotation": "trees", "encoder": "words", "mlp": 8},
        "mood": {
            "annotation": "label",
            "encoder": "words",
            "mlp": 8,
            "reads": {"stage": "syntax", "as": "roles", "estimator": "ste"},
        },
    }
    return experiment({"encoders": {"words": {"encoder": ENCODER}}, "stages": stages}, **overrides)


def alone(annotation: str, **settings: Any) -> dict[str, Any]:
    """A stage that nothing reads."""
    pruning = {"pruning": PRUNING} if annotation == "graphs" else {}
    return {"stages": {"only": {"annotation": annotation, "encoder": ENCODER, "mlp": 8, **pruning, **settings}}}
