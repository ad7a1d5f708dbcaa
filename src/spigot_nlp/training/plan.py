"""What an experiment trains, and in what order."""

from dataclasses import dataclass

from spigot_nlp.config import Config, stage_class

JOINT, LATENT = "joint", "latent"


@dataclass(frozen=True)
class Phase:
    """A part of a training.

    Attributes:
        name: What it is called.
        tasks: The stages whose losses it mixes, or a helper of one as `stage.helper`.
        epochs: How long it lasts.
        judge: The stage whose first measure on the development data it goes by; `None` for the last parameters.
        through: Whether gradients pass the wires.
        fold: The part of its sentences that a stage does not learn from, from 0; `None` if it learns from all.
        batch: Sentences in a step; as many as the experiment says if 0.
    """

    name: str
    tasks: tuple[str, ...]
    epochs: int
    judge: str | None = None
    through: bool = True
    fold: int | None = None
    batch: int = 0


def phases(config: Config) -> list[Phase]:
    """The parts of an experiment, in order: helpers, stages that are read, and then everything that is wired together.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> def plan(config):
        ...     return [(phase.name, phase.tasks) for phase in phases(config)]
        >>> plan(make_config({"system": "spigot"}))
        [('semantics.pruner', ('semantics.pruner',)), ('joint', ('syntax', 'semantics'))]
        >>> [name for name, _ in plan(make_config({"system": "pipeline", "training": {"epochs": 2}}))]
        ['semantics.pruner', 'syntax', 'semantics']
    """
    plan, settings = [], config.training
    together = tuple(name for name in config.trained if name in config.supervised and not config.stages[name].beside)
    read = {wire.stage for _, wire in config.wires}
    # A stage that is taken from another run brings its helpers along.
    begun = {name: config.stages[name] for name in config.supervised if not config.stages[name].start}
    for name, stage in begun.items():
        for helper, own in stage_class(stage).helper_plans(stage).items():
            plan.append(Phase(f"{name}.{helper}", (f"{name}.{helper}",), own.epochs, batch=own.batch))
    if settings.pretrain:
        plan += [_alone(config, name) for name in begun if name in read]
        plan += [phase for name in config.supervised for phase in _folds(config, name)]
    latent = any(config.stages[name].latent for name in config.trained)
    name = JOINT if len(together) > 1 else LATENT if latent else config.end
    return [*plan, Phase(name, together, settings.epochs, config.end)]


def _folds(config: Config, name: str) -> list[Phase]:
    """The pretraining of a stage once more for each of its folds."""
    folds, epochs = config.stages[name].folds, config.training.pretrain
    titles = [f"{name} fold {k}/{folds}" for k in range(1, folds + 1)]
    return [Phase(title, (name,), epochs, name, through=False, fold=k) for k, title in enumerate(titles)]


def _alone(config: Config, name: str) -> Phase:
    """The pretraining of a stage. One that is frozen afterwards trains what it reads now, or never."""
    epochs, reached = config.training.pretrain, config.reached(name)
    if name in config.trained or reached == [name]:
        return Phase(name, (name,), epochs, name, through=False)
    return Phase(name, tuple(stage for stage in reached if stage in config.supervised), epochs, name)


def changing(config: Config) -> dict[str, set[str]]:
    """The stages that each phase of a training changes, by its name.

    Args:
        config: The experiment.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> {name: sorted(stages) for name, stages in changing(make_config({"system": "pipeline"})).items()}
        {'semantics.pruner': ['semantics.pruner'], 'syntax': ['syntax'], 'semantics': ['semantics']}
    """
    return {
        phase.name: {
            stage
            for task in phase.tasks
            for stage in (config.reached(task) if phase.through and "." not in task else [task])
        }
        for phase in phases(config)
    }
