"""The report: a verdict, and folded below it what it rests on, sentences to look at and how the trainings went."""

import datetime
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

import spigot
from spigot_nlp.models import Parser, checkpoint
from spigot_nlp.report.accounts import account_markup, live_wires
from spigot_nlp.report.answers import Answers, answers, is_whole
from spigot_nlp.report.explore import explorer, still
from spigot_nlp.report.material import Experiment, Run, experiments, read_run
from spigot_nlp.report.origin import origin
from spigot_nlp.report.page import Page, Section, environment, source
from spigot_nlp.report.results import curve_section, result_tables
from spigot_nlp.report.speed import speed_section
from spigot_nlp.report.verdict import verdict

SENTENCES = 100
"""How many sentences a report shows unless told otherwise."""

_ACCOUNTS = 5  # training sentences whose gradients are shown, for each wire


def report(
    runs: Sequence[Path],
    *,
    sentences: int = SENTENCES,
    baseline: Path | None = None,
    told: Callable[[str], None] = lambda what: None,
) -> Page:
    """Make a report on finished runs.

    Runs that were judged by the same sentences are compared with each other; those that differ only in their seed are
    one system. Nothing is read but the run folders.

    Args:
        runs: The run folders.
        sentences: How many sentences of the development data to show for each experiment.
        baseline: The run whose system the others are compared with; by default the pipeline, or else the first.
        told: Called with a few words before each piece of work.

    Returns:
        The page; `spigot_nlp.report.page.render` makes it text.

    Raises:
        FileNotFoundError: If a folder holds no finished run.
        ValueError: If there are no runs, or a file of one is damaged.

    Example:
        >>> report([])
        Traceback (most recent call last):
        ValueError: there are no runs to report on; give one run folder or more.
    """
    if sentences < 0:
        raise ValueError(f"sentences is {sentences}; it must be 0 or more.")
    found = experiments([read_run(Path(run)) for run in runs], None if baseline is None else Path(baseline))
    several = len(found) > 1
    verdicts = [verdict(experiment, experiment.name if several else "") for experiment in found]
    sections: list[Section] = []
    data: dict[str, object] = {}
    for number, experiment in enumerate(found):
        key = f"e{number + 1}"
        title = experiment.name if several else ""
        sections += _sections(experiment, key, title, sentences, data, told)
    return Page(
        title=_title(found),
        lead=_lead(found),
        sections=[
            *(each for each in verdicts if each is not None),
            *(replace(section, folded=True) for section in sections),
        ],
        facts=_facts(found),
        details=[
            (f"Configuration of {run.path}", (run.path / checkpoint.CONFIG).read_text(encoding="utf-8"))
            for experiment in found
            for run in experiment.runs
        ],
        styles=[source("explore.css")],
        scripts=[source("explore.js")] if data else [],
        data=data,
        made=[f"made on {datetime.date.today().isoformat()}", f"by {origin()}"],
        foot="How to make this again: versions, commands, seeds, configurations",
    )


def pieces_of_work(runs: Sequence[Path]) -> int:
    """About how often `report` calls `told`, for a bar.

    Example:
        >>> pieces_of_work([Path("a"), Path("b")])
        19
    """
    return 3 + len(runs) * (3 + _ACCOUNTS)


def _sections(
    experiment: Experiment,
    key: str,
    title: str,
    count: int,
    data: dict[str, object],
    told: Callable[[str], None],
) -> Iterator[Section]:
    name = f"{title}: " if title else ""
    told("results")
    everyone, notes = _answers(experiment, told)
    tables = result_tables(experiment)
    yield Section(
        f"{name}Results",
        tables=tables,
        notes=[*_sizes(experiment), *notes],
        key=f"{key}-results",
        about=f"every score of every system, with intervals: {', '.join(table.title.lower() for table in tables)}",
    )
    if everyone:
        baseline = next((k for k, each in enumerate(everyone) if each.contender == experiment.baseline), None)
        if count:
            data[f"{key}-data"] = shown = explorer(everyone, baseline, count, told)
            yield _explorer_section(everyone, baseline, key, name, still(shown))
        accounts = _account_section(everyone, key, name, told)
        if accounts is not None:
            yield accounts
    told("curves")
    curves = curve_section(experiment, key)
    if curves is not None:
        yield replace(curves, title=f"{name}{curves.title}")
    speed = speed_section(experiment, {each.contender.name: each.pace for each in everyone}, key)
    yield replace(speed, title=f"{name}{speed.title}")


def _answers(experiment: Experiment, told: Callable[[str], None]) -> tuple[list[Answers], list[str]]:
    """What the first run of each system says about the development data, and why some say nothing."""
    everyone: list[Answers] = []
    notes = []
    for contender in experiment.contenders:
        run = contender.first
        gold = run.gold("dev")
        if gold is None:
            notes.append(
                f"{run.path} has no {run.gold_path('dev').name}, so {contender.name} has no part in what follows; "
                f"write it with spigot train --resume {shlex.quote(str(run.path))}."
            )
        elif not (run.path / checkpoint.MODEL).exists():
            notes.append(f"{run.path} has no {checkpoint.MODEL}, so {contender.name} has no part in what follows.")
        elif everyone and [s.forms for s in gold] != [s.forms for s in everyone[0].gold]:
            notes.append(
                f"{run.gold_path('dev')} has other sentences than {everyone[0].contender.first.gold_path('dev')}, so "
                f"{contender.name} has no part in what follows; train both on the same files."
            )
        else:
            told(f"parsing with {contender.name}")
            everyone.append(answers(contender, Parser.load(run.path, precision="float32"), gold))
    several = [contender.name for contender in experiment.contenders if len(contender.runs) > 1]
    if several and everyone:
        notes.append(f"Of {', '.join(several)} the sentences below are those of the first seed.")
    return everyone, notes


def _explorer_section(everyone: Sequence[Answers], baseline: int | None, key: str, name: str, picture: str) -> Section:
    first = everyone[0]
    flips = bool(first.found) and is_whole(first.end, first.found[0])
    markup = (
        environment()
        .get_template("explore.html")
        .render(
            key=f"{key}-data",
            systems=[each.contender.name for each in everyone],
            baseline="" if baseline is None else everyone[baseline].contender.name,
            compared=baseline is not None,
            against=baseline if baseline is not None and flips else "gold",
            flips=first.end.noun if flips else "",
            picture=picture,
        )
    )
    prose = "A graph stands above the words, a tree below them, as far as a system has them; further ones have names."
    about = "development sentences to search, compare and save, as each system sees them"
    return Section(f"{name}Sentences", [prose], markup=markup, key=f"{key}-sentences", about=about)


def _account_section(everyone: Sequence[Answers], key: str, name: str, told: Callable[[str], None]) -> Section | None:
    """What the estimators did in training, wire by wire; of systems that train a structure through its readers."""
    blocks: list[str] = []
    clipped: set[float] = set()

    def projects(each: Answers) -> bool:
        return any(isinstance(wire.estimator, spigot.Spigot) for wire in live_wires(each.parser).values())

    for each in sorted(everyone, key=projects, reverse=True):
        gold, wires = each.contender.first.gold("train"), live_wires(each.parser)
        if wires and gold:
            markup = account_markup(
                each.parser, each.contender.name, gold, count=_ACCOUNTS, is_open=not blocks, told=told
            )
            blocks.append(markup)
            clipped.update(filter(None, (getattr(wire.estimator, "max_norm", None) for wire in wires.values())))
    if not any(blocks):
        return None
    norms = " or ".join(map(str, sorted(clipped)))
    prose = [
        "Training sentences, and what the gradient of the end task's loss does to the structure inside, with the "
        "trained parameters. A disc is a part of the structure that went forward (ẑ = 1), a ring one that is not in it "
        "(ẑ = 0). The cross is where the step of the gradient leads (p\u0302), the diamond what the estimator makes of "
        "it (z\u0303): ste keeps the step, spigot projects it back between 0 and 1, out of the shaded side. What goes "
        "on to the scores is ẑ − z\u0303." + (f" ∇L is clipped as in training, to a norm of {norms}." if norms else ""),
        "In the drawing of the structure, what has a + gains weight under spigot, and what has a − loses some.",
    ]
    if any(len(live_wires(each.parser)) > 1 for each in everyone):
        prose.append("A system with several wires has a part for each: the structure that passed, and what came back.")
    about = "to training sentences: the step, the projection, and what went back to the scores"
    return Section(f"{name}What the estimator did", prose, markup="".join(blocks), key=f"{key}-estimator", about=about)


def _title(found: Sequence[Experiment]) -> str:
    return " and ".join(dict.fromkeys(experiment.name for experiment in found))


def _lead(found: Sequence[Experiment]) -> str:
    parts = []
    for experiment in found:
        names = ", ".join(contender.name for contender in experiment.contenders)
        runs = sum(len(contender.runs) for contender in experiment.contenders)
        what = f"{_about(experiment)}: {names} ({runs} run{'s' if runs > 1 else ''})."
        parts.append(f"{experiment.name}: {what}" if len(found) > 1 else what[0].upper() + what[1:])
    return " ".join(parts)


def _about(experiment: Experiment) -> str:
    """What is found in the end, and on the way there."""
    judges = [judge for run in experiment.runs for judge in run.targets]
    inside = dict.fromkeys(judge.annotation.nouns for judge in judges if judge.is_read)
    others = [judge for run in experiment.runs for judge in run.targets[1:] if not judge.is_read and judge.file]
    beside = dict.fromkeys(judge.called or judge.stage for judge in others)
    said = experiment.end.annotation.nouns
    said += f" with {' and '.join(inside)} inside" if inside else ""
    return said + (f", beside {' and '.join(beside)}" if beside else "")


def _sizes(experiment: Experiment) -> Iterator[str]:
    """How much there was to learn from, and to be judged by."""
    run = experiment.contenders[-1].first
    nouns = {judge.stage: judge.annotation.nouns for judge in run.targets}
    kinds = Counter(nouns.values())
    trained = []
    for task in dict.fromkeys(step["task"] for step in run.steps if step["task"] in nouns):
        by_epoch: dict[tuple[str, int], int] = {}
        for step in run.steps:
            if step["task"] == task:
                place = step["phase"], step["epoch"]
                by_epoch[place] = by_epoch.get(place, 0) + step["sentences"]
        kind = nouns[task] if kinds[nouns[task]] == 1 else task
        trained.append(f"{max(by_epoch.values()):,} with {kind}")
    if trained:
        yield f"Training sentences in an epoch: {', '.join(trained)}."
    sizes = {part: run.scores[part][run.targets[0].key].get("sentences") for part in run.parts}
    judged = [f"{size:,} {part}" for part, size in sizes.items() if size is not None]
    if judged:
        yield f"Sentences of the end task to be judged by: {', '.join(judged)}."


def _facts(found: Sequence[Experiment]) -> list[tuple[str, str]]:
    every: list[Run] = [run for experiment in found for run in experiment.runs]
    seeds = sorted({run.config.seed for run in every})
    command = shlex.join(["spigot", "report", *(str(run.path) for run in every)])
    facts = [
        ("made by", f"{origin()}, {spigot.kernels.status()}"),
        ("with", f"Python {sys.version.split()[0]}, torch {torch.__version__}, {torch.get_num_threads()} threads"),
        ("again", command),
        ("seeds", ", ".join(map(str, seeds))),
    ]
    for run in every:
        again = shlex.join(["spigot", "train", str(run.path / checkpoint.CONFIG), "--out", f"runs/{run.name}"])
        facts.append((run.name, again))
    return facts
