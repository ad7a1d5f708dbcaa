"""What an experiment trains, and in what order."""

from dataclasses import dataclass

from spigot.config import Config

LF, UF, UAS, ACCURACY = "LF", "UF", "UAS", "accuracy"
MEASURES = {"syntax": UAS, "semantics": LF, "classifier": ACCURACY}
"""What each task is judged by on the development data."""


@dataclass(frozen=True)
class Phase:
    """A part of a training: the tasks it mixes, its length, and the dev score it is judged by."""

    name: str
    tasks: tuple[str, ...]
    epochs: int
    measure: str | None = None


def phases(config: Config) -> list[Phase]:
    """The parts of an experiment, in order.

    Example:
        >>> from spigot.config import make_config
        >>> [(phase.name, phase.tasks) for phase in phases(make_config({"system": "spigot"}))]
        [('pruner', ('pruner',)), ('joint', ('syntax', 'semantics'))]
        >>> [phase.name for phase in phases(make_config({"task": "classification"}))]
        ['pruner', 'semantics', 'joint']
    """
    parser, end, plan = config.intermediate, config.end, []
    pruned = "semantics" in (parser, end) and config.semantics.pruning.learned and not config.is_latent
    if pruned and not (parser == "semantics" and config.parser_from):  # a parser brings its pruner along
        plan.append(Phase("pruner", ("pruner",), config.semantics.pruning.epochs))
    if parser is not None and config.training.pretrain and not config.parser_from and not config.is_latent:
        plan.append(Phase(parser, (parser,), config.training.pretrain, MEASURES[parser]))
    if parser is None or not config.is_joint:
        return [*plan, Phase(end, (end,), config.training.epochs, MEASURES[end])]
    if config.is_latent:
        return [*plan, Phase("latent", (end,), config.training.epochs, MEASURES[end])]
    return [*plan, Phase("joint", (parser, end), config.training.epochs, MEASURES[end])]
