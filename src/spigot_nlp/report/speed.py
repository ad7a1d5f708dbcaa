"""How fast systems were trained, and how fast they are now."""

from dataclasses import dataclass

from spigot_nlp.report.material import Experiment, Run
from spigot_nlp.report.page import Section
from spigot_nlp.report.results import phase_name
from spigot_nlp.tables import Cell, Table, TableRow


@dataclass(frozen=True)
class Pace:
    """How fast something went.

    Attributes:
        sentences: How many.
        tokens: How many words they have.
        seconds: How long it took.

    Example:
        >>> Pace(10, 150, 0.5).cells()[1].text
        '300'
    """

    sentences: int
    tokens: int
    seconds: float | None

    def cells(self) -> list[Cell]:
        """Sentences and tokens a second."""
        if not self.seconds:
            return [Cell("–"), Cell("–")]
        return [Cell(f"{amount / self.seconds:,.0f}") for amount in (self.sentences, self.tokens)]


def speed_section(experiment: Experiment, parsing: dict[str, Pace], key: str) -> Section:
    """How long the trainings took, and how fast the systems are now.

    Args:
        experiment: The systems.
        parsing: How fast systems parsed just now, by name.
        key: Prefix of the element names, unique on a page.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import Config
        >>> from spigot_nlp.report.material import Contender
        >>> experiment = Experiment("dm", (Contender("spigot", (Run(Path("nowhere"), Config(), {}),), 0),), None)
        >>> section = speed_section(experiment, {"spigot": Pace(10, 150, 0.5)}, "a")
        >>> [cell.text for cell in section.table.rows[0].cells]
        ['–', '0', '–', '–', '20', '300']
    """
    rows, phase_rows = [], []
    for contender in experiment.contenders:
        run = contender.first
        steps = run.steps
        whole = Pace(sum(s["sentences"] for s in steps), sum(s["tokens"] for s in steps), run.seconds)
        now = parsing.get(contender.name)
        took = Cell("–" if run.seconds is None else duration(run.seconds))
        cells = [took, Cell(f"{whole.sentences:,}"), *whole.cells(), *(now.cells() if now else [Cell("–")] * 2)]
        rows.append(TableRow(contender.name, cells, contender.series))
        for phase, pace in _phases(run).items():
            if pace.seconds is None:  # a training that did not write down when its steps were taken
                continue
            cells = [
                Cell(duration(pace.seconds)),
                Cell(f"{pace.sentences:,}"),
                Cell(f"{pace.tokens:,}"),
                *pace.cells(),
            ]
            phase_rows.append(TableRow(f"{contender.name}: {phase_name(phase)}", cells, contender.series))
    heads = ["", "training time", "sentences", "sentences/s", "tokens/s", "parsing sentences/s", "parsing tokens/s"]
    about = "Training time includes scoring the development data after each epoch."
    if any(len(contender.runs) > 1 for contender in experiment.contenders):
        about += " Of several seeds, the first."
    if parsing:
        about += " Parsing was timed when this page was made, on the development data, on the machine that made it."
    by_phase = Table(
        ["", "time", "sentences", "tokens", "sentences/s", "tokens/s"], phase_rows, "By phase of the training"
    )
    return Section(
        "Speed",
        table=Table(heads, rows, note=about),
        tables=[by_phase] if phase_rows else [],
        key=f"{key}-speed",
        about="how long the trainings took, and how fast the systems parse",
    )


def _phases(run: Run) -> dict[str, Pace]:
    """The phases of a training; their time is known where the steps say when they were taken."""
    found: dict[str, Pace] = {}
    start = now = 0.0
    for step in run.steps:
        name = step["phase"]
        if name not in found:
            start = now
        pace = found.get(name, Pace(0, 0, None))
        now = step.get("seconds") or now
        seconds = now - start if step.get("seconds") is not None else None
        found[name] = Pace(pace.sentences + step["sentences"], pace.tokens + step["tokens"], seconds)
    return found


def duration(seconds: float) -> str:
    """A time as people say it.

    Example:
        >>> duration(3.25), duration(75), duration(4000)
        ('3.2 s', '1 min 15 s', '1 h 06 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
