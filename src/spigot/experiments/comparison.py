"""The paper's systems side by side: train them, several at a time, so that an interruption loses nothing."""

import os
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from spigot.experiments.children import TRAIN, Children
from spigot.experiments.comparison_plan import Plan, check_folder
from spigot.experiments.comparison_progress import Follower, Progress
from spigot.training.checkpoint import MODEL, SCORES
from spigot.training.plan import phases


def run_comparison(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    processes: int = 2,
    threads: int = 1,
    command: Sequence[str] = TRAIN,
    pause: float = 0.2,
) -> Generator[list[Progress], None, None]:
    """Train what is not finished yet.

    A run is in `out`/NAME, what its training says in `out`/NAME.log. Finished runs are left alone, and interrupted ones
    go on. A system that fails does not stop the others, but for those that start from its parser.

    Args:
        plan: What to train.
        out: The folder for the runs. It may hold some of them.
        processes: How many to train at a time.
        threads: How many threads each may use.
        command: What trains, before its arguments.
        pause: Seconds between two looks.

    Returns:
        How far each training is, in the order of the plan, at each look; the same list each time.

    Raises:
        KeyboardInterrupt: When asked to stop, after all trainings under way have saved their state.

    Example:
        >>> import tempfile
        >>> from spigot.experiments.comparison_plan import plan_comparison
        >>> out = Path(tempfile.mkdtemp())
        >>> plan = plan_comparison(out, systems=["neurboparser"])
        >>> (out / "neurboparser-0").mkdir()
        >>> _ = (out / "neurboparser-0" / "scores.json").write_text("{}")      # finished, so not trained again
        >>> for known in run_comparison(plan, out):
        ...     print([(progress.trial.name, progress.status) for progress in known])
        [('neurboparser-0', 'finished')]
    """
    if processes < 1 or threads < 1:
        raise ValueError(f"processes is {processes} and threads is {threads}; both must be at least 1.")
    folder = Path(out)
    check_folder(plan, folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = [Progress(trial) for trial in plan.trials]
    followers = [Follower(progress, folder / progress.trial.name) for progress in known]
    for progress, follower in zip(known, followers, strict=True):
        follower.update()
        if (folder / progress.trial.name / SCORES).exists():
            progress.status = "finished"
    with Children(folder, threads=threads, command=command) as children:
        while True:
            running = [follower for follower in followers if follower.progress.status == "running"]
            children.look()
            for follower in running:  # also those that have just ended: what they wrote last counts
                follower.update()
            _give_up(plan, known)
            for progress in known:
                if len(children) >= processes or children.stopped:
                    break
                if progress.status == "waiting" and _is_ready(plan, progress, known, folder):
                    children.start(progress)
                    progress.before = progress.done
            children.heed()
            for progress in known:
                progress.is_stopping = bool(children.stopped)
            yield known
            if not children and (children.stopped or not any(progress.status == "waiting" for progress in known)):
                break
            time.sleep(pause)
    children.raise_if_stopped(known, "trainings")


def _give_up(plan: Plan, known: Sequence[Progress]) -> None:
    """What starts from a parser that never came cannot be trained."""
    failed = {progress.trial.name for progress in known if progress.status == "failed"}
    for progress in known:
        source = plan.sources.get(progress.trial.name)
        if progress.status == "waiting" and source in failed:
            progress.status, progress.reason = "failed", f"It starts from the parser of {source}, which failed."


def _is_ready(plan: Plan, progress: Progress, known: Sequence[Progress], folder: Path) -> bool:
    """Whether the parser that a training starts from is there.

    It is there before its run has ended: in the last phase of a pipeline the parser is frozen, and the model on disk is
    the best one of the phase before, or one with the same parser.
    """
    name = plan.sources.get(progress.trial.name)
    if name is None:
        return True
    source = next(other for other in known if other.trial.name == name)
    if source.status == "finished":
        return True
    return source.phase == phases(source.trial.config)[-1].name and (folder / name / MODEL).exists()
