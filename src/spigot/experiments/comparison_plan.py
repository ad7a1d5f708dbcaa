"""The paper's systems side by side on the built-in corpus: which trainings there are, and with what settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spigot.config import as_options, make_config
from spigot.config import systems as all_systems
from spigot.experiments.settings import difference
from spigot.experiments.sweep import Trial
from spigot.training.checkpoint import CONFIG, read_config

SYSTEMS = ("neurboparser", "pipeline", "attention", "ste", "spigot")
"""The rows of the paper's Table 1."""

_SIZE = {"word_dim": 50, "lemma_dim": 25, "tag_dim": 25, "hidden": 64}
_OPTIMISER = {"learning_rate": 4e-3, "max_norm": 5.0}

# Few graphs and many trees: what syntax is good for. With as many graphs as trees it brings nothing here.
FULL: dict[str, Any] = {
    "name": "demo",
    "data": {
        "source": "synthetic",
        "synthetic": {"train": 3000, "dev": 300, "test": 500},
        "graphs": {"limit": 500},
    },
    "syntax": {"loss": "crf", "mlp": 64, "encoder": _SIZE, "optimiser": _OPTIMISER},
    "semantics": {
        "loss": "log",
        "mlp": 64,
        "encoder": _SIZE,
        "optimiser": _OPTIMISER,
        "pruning": {"epochs": 5, "rare_role": 3},
    },
    "estimator": {"max_norm": 0.03},
    # The gradient of a semantic parser that knows nothing yet would spoil a parser that knows something: warm up.
    "training": {"batch": 8, "pretrain": 6, "epochs": 18, "patience": 0, "share": 0.15, "warm_up": 2},
}
"""The settings of all systems, as in a configuration file."""

QUICK: dict[str, Any] = {
    "data.synthetic.train": 800,
    "data.synthetic.dev": 80,
    "data.synthetic.test": 120,
    "data.graphs.limit": 200,
    "data.folds": 2,
    "training.pretrain": 3,
    "training.epochs": 7,
    "training.share": 0.15,
    # There is time for a few hundred steps only, so they are long ones.
    "syntax.optimiser.learning_rate": 5e-3,
    "semantics.optimiser.learning_rate": 5e-3,
    "semantics.pruning.optimiser.learning_rate": 4e-3,
    "semantics.pruning.epochs": 3,
}
"""What is different where less than a minute is all there is, by dotted name."""

_OURS = ("task", "system", "seed", "name", "sweep", "training.syntax_from")
# The pipeline first, as the others wait for its parser; then the slowest, so that none is left alone at the end.
_START = ("pipeline", "neurboparser", "attention", "spigot", "ste")


@dataclass(frozen=True)
class Plan:
    """What a comparison trains.

    Attributes:
        systems: The systems, in the order of the tables.
        seeds: The seeds each is trained with.
        trials: The trainings, in the order they are to be started.
        sources: For the name of a training, the name of the one whose syntactic parser it starts from.

    Example:
        >>> plan = plan_comparison("runs/demo", systems=["pipeline", "spigot"], seeds=[3])
        >>> [trial.name for trial in plan.trials], plan.sources
        (['pipeline-3', 'spigot-3'], {'spigot-3': 'pipeline-3'})
    """

    systems: tuple[str, ...]
    seeds: tuple[int, ...]
    trials: tuple[Trial, ...]
    sources: Mapping[str, str]

    def runs(self, out: Path) -> dict[str, list[Path]]:
        """The run folders of each system, one for each seed."""
        return {system: [out / f"{system}-{seed}" for seed in self.seeds] for system in self.systems}


def plan_comparison(
    out: str | Path,
    *,
    systems: Sequence[str] = SYSTEMS,
    seeds: Iterable[int] = (0,),
    quick: bool = False,
    overrides: Mapping[str, Any] | None = None,
) -> Plan:
    """Work out the trainings of a comparison, and check their settings.

    All systems see the same sentences. The pipeline pretrains a syntactic parser; the systems that train it further
    start from that one, so a comparison with any of them has the pipeline too.

    Args:
        out: The folder that the runs will be in.
        systems: Which to compare.
        seeds: The seeds to train each with.
        quick: Whether to be content with much smaller sizes.
        overrides: Settings that all of them have, by dotted name.

    Raises:
        ValueError: If there is no such system or setting, or none of them is left.

    Example:
        >>> [trial.name for trial in plan_comparison("runs/demo").trials]
        ['pipeline-0', 'neurboparser-0', 'attention-0', 'spigot-0', 'ste-0']
        >>> plan_comparison("runs/demo", systems=["spigott"])
        Traceback (most recent call last):
        ValueError: there is no system 'spigott'; choose from neurboparser, pipeline, attention, ste, spigot, ...
    """
    wanted = _systems(systems)
    seeds = tuple(dict.fromkeys(seeds))
    if not seeds:
        raise ValueError("there is no seed; give at least one.")
    overrides = dict(overrides or {})
    for name in overrides:
        if name in _OURS:
            raise ValueError(f"{name} is for the comparison to say; leave out --{name}.")
    chosen = {**(QUICK if quick else {}), **overrides}
    trials: list[Trial] = []
    sources: dict[str, str] = {}
    order = sorted(wanted, key=lambda system: _START.index(system) if system in _START else len(_START))
    for seed in seeds:
        parser = f"pipeline-{seed}"
        for system in order:
            own = {"system": system, "seed": seed}
            if system not in ("neurboparser", "pipeline"):
                own["training.syntax_from"] = str(Path(out) / parser)
                sources[f"{system}-{seed}"] = parser
            config = make_config(FULL, {**chosen, **own}, where="the demo", options=as_options(overrides))
            trials.append(Trial(f"{system}-{seed}", {"system": system}, seed, config))
    if trials[0].config.data.source != "synthetic":
        raise ValueError("the demo is about the built-in corpus; train on other data with spigot train CONFIG.")
    return Plan(wanted, seeds, tuple(trials), sources)


def _systems(given: Sequence[str]) -> tuple[str, ...]:
    known = (*SYSTEMS, *(system for system in all_systems("parsing") if system not in SYSTEMS))
    for system in given:
        if system not in known:
            raise ValueError(f"there is no system {system!r}; choose from {', '.join(known)}.")
    if not given:
        raise ValueError(f"there is no system to train; choose from {', '.join(known)}.")
    needed = {*given, *(["pipeline"] if set(given) - {"neurboparser"} else [])}
    return tuple(system for system in known if system in needed)


def check_folder(plan: Plan, out: Path) -> None:
    """Complain if a folder holds something else than these trainings, or a part of them.

    Raises:
        ValueError: If it is the folder of a run, or some run in it has other settings.

    Example:
        >>> check_folder(plan_comparison("nowhere"), Path("nowhere"))
    """
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; choose another --out for the demo.")
    if (out / CONFIG).exists():
        raise ValueError(f"{out} is the folder of one run; choose another --out for the demo.")
    for trial in plan.trials:
        run = out / trial.name
        if not (run / CONFIG).exists():
            continue
        # The folder may have been moved, or be named from another place.
        if found := difference(read_config(run), trial.config, but=["syntax.start"]):
            name, then, now = found
            raise ValueError(
                f"{run} was trained with {name} = {then!r}, not {now!r}; give the settings as they were, remove {out} "
                "to start afresh, or choose another --out."
            )
