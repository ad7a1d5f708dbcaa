"""What the folder of a study says of itself: that it belongs to this study, and what is known of its trainings."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spigot_nlp.config import Config
from spigot_nlp.experiments.study.progress import Progress
from spigot_nlp.experiments.study.trials import Trial
from spigot_nlp.models.checkpoint import CONFIG, read_config, write_text

RECORD = "study.json"


@dataclass
class Record:
    """What is kept between two commands.

    Attributes:
        seconds: How long each training took, by name.
        suggested: What a search that learns from results has suggested so far.
        tests: When the test sets were scored; empty if they were not.
        budget: By how many trainings each system was tuned, written down before any test set is scored.

    Example:
        >>> Record().tests
        ''
    """

    seconds: dict[str, float] = field(default_factory=dict)
    suggested: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    tests: str = ""
    budget: dict[str, int] = field(default_factory=dict)


def read_record(folder: Path) -> Record:
    """The record of a study's folder; an empty one if there is none yet.

    Raises:
        ValueError: If it cannot be read, or the folder is that of one run.

    Example:
        >>> read_record(Path("nowhere")).seconds
        {}
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; choose another --out for the study.")
    if (folder / CONFIG).exists():
        raise ValueError(f"{folder} is the folder of one run; choose another --out for the study.")
    path = folder / RECORD
    if not path.exists():
        return Record()
    try:
        given = json.loads(path.read_bytes())
        seconds = {str(name): float(value) for name, value in given["seconds"].items()}
        suggested = {str(name): list(values) for name, values in given["suggested"].items()}
        return Record(seconds, suggested, str(given["tests"]), {str(k): int(v) for k, v in given["budget"].items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is damaged ({type(error).__name__}: {error}); restore it, or remove it to find the runs anew."
        ) from None


def write_record(folder: Path, record: Record, known: Sequence[Progress]) -> None:
    """Write the record, and beside it what is known of each training, of earlier commands' too.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_record(folder, Record(budget={"ste": 3}), [])
        >>> read_record(folder).budget
        {'ste': 3}
    """
    record.seconds.update({p.trial.name: p.seconds for p in known if p.seconds})
    trainings = [trial_record(progress) for progress in known]
    plain = {**vars(record), "trainings": trainings + _others(folder, {one["name"] for one in trainings})}
    write_text(folder / RECORD, json.dumps(plain, indent=1) + "\n")


def _others(folder: Path, names: Collection[str]) -> list[dict[str, Any]]:
    """What was written of trainings that are there, and that this command was not asked for."""
    try:
        before = json.loads((folder / RECORD).read_bytes())["trainings"]
        return [one for one in before if one["name"] not in names and (folder / one["name"]).is_dir()]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def trial_record(progress: Progress) -> dict[str, Any]:
    """What is known of a training, as plain values.

    Example:
        >>> from spigot_nlp.config import Config
        >>> trial_record(Progress(Trial("ste-0", "ste", "", 0, Config())))["status"]
        'waiting'
    """
    trial = progress.trial
    return {
        "name": trial.name,
        "system": trial.system,
        "point": trial.point,
        "seed": trial.seed,
        "role": trial.role,
        "values": dict(trial.values),
        "status": progress.status,
        "reason": progress.reason,
        "seconds": round(progress.seconds, 1),
        "measure": progress.measure,
        "dev": progress.score,
        "epoch": progress.best_epoch,
    }


def check_run(folder: Path, trial: Trial) -> None:
    """Complain if a folder holds a training with other settings than this one.

    Raises:
        ValueError: It does; it says which setting.

    Example:
        >>> check_run(Path("nowhere"), Trial("ste-0", "ste", "", 0, Config()))
    """
    run = folder / trial.name
    if not (run / CONFIG).exists():
        return
    before, after = read_config(run), trial.config
    # The folder may have been moved, or be named from another place: only its own name counts.
    starts = [name for name in (before.by_name() | after.by_name()) if re.search(r"(^|\.)start$", name)]
    found = difference(before, after, but=["name", "data.obtain", "training.tests", *starts])
    for name in starts:
        then, now = (str(config.by_name().get(name) or "") for config in (before, after))
        if Path(then).name != Path(now).name:
            found = found or (name, then, now)
    if found is None:
        return
    name, then, now = found
    if name in trial.values:
        raise ValueError(
            f"{run} was trained with {name} = {then!r}, and tuning now chooses {now!r}; remove that folder to train it "
            "afresh, or choose another --out."
        )
    raise ValueError(
        f"{run} was trained with {name} = {then!r}, not {now!r}; give the settings as they were, remove that folder to "
        "train it afresh, or choose another --out."
    )


def difference(then: Config, now: Config, *, but: Collection[str] = ()) -> tuple[str, Any, Any] | None:
    """The first setting in which two configurations differ, with both values.

    Args:
        then: A configuration.
        now: Another.
        but: Settings that do not matter, by dotted name.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> then, now = make_config({}), make_config({"name": "mine"}, {"estimator.eta": 0.5})
        >>> difference(then, now, but=["name"])
        ('estimator.eta', 1.0, 0.5)
        >>> difference(now, now) is None
        True
    """
    before, after = then.by_name(), now.by_name()
    for name in before | after:
        if name not in but and before.get(name) != after.get(name):
            return name, before.get(name), after.get(name)
    return None


def summary(known: Sequence[Progress], record: Record, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What `--json` prints of the trainings."""
    return {
        "trainings": [trial_record(progress) for progress in known],
        "budget": record.budget,
        "chosen": dict(chosen),
        "tests": record.tests,
    }
