"""The page of the experiment: who found what, a section for each task, and how to read it."""

from collections.abc import Sequence
from dataclasses import replace

import torch

import spigot
from spigot_nlp.experiments.latent.contenders import BOUND
from spigot_nlp.experiments.latent.data import TITLES
from spigot_nlp.experiments.latent.results import Outcome, Row, mean_and_spread, summarise
from spigot_nlp.experiments.latent.settings import Settings
from spigot_nlp.experiments.latent.tables import overview, ranked, result_table, tasks_of
from spigot_nlp.report.figures import Curve, curves
from spigot_nlp.report.page import Page, Picture, Section

_BEST = 5  # curves of contenders in a chart; more cannot be told apart


def latent_page(settings: Settings, outcomes: Sequence[Outcome]) -> Page:
    """Everything that the experiment shows, as one page.

    Args:
        settings: What was run.
        outcomes: What `run` yielded.

    Example:
        >>> from spigot_nlp.experiments.latent.results import run
        >>> from spigot_nlp.experiments.latent.contenders import contender_of
        >>> tiny = Settings(tasks=("paths",), seeds=2, steps=2, tuning_seeds=0, train=40, test=20)
        >>> page = latent_page(tiny, list(run(tiny, [contender_of("ste")])))
        >>> [section.title for section in page.sections]
        ['Who found what', 'Paths through a grid of 5 × 5, an oracle', 'How to read this']
    """
    rows = summarise(outcomes)
    return Page(
        title="Learning a hidden structure from the final answer",
        lead=(
            "A scorer chooses a structure, a second stage reads it and answers, and only the answer is ever given. "
            "The choice has no gradient: each estimator replaces it in its own way. Small tasks, whose structures can "
            "all be listed, so that the true gradient is known."
        ),
        sections=[
            _overview(rows),
            *(_task_section(task, outcomes, rows) for task in tasks_of(rows)),
            _reading(settings),
        ],
        facts=_facts(settings),
    )


def _overview(rows: Sequence[Row]) -> Section:
    caption = (
        "The share of the parts of the hidden structures that each contender finds on unseen instances, in the mean "
        "over seeds; a dash where an estimator does not fit the structure. In italics: bounds and the "
        "floor. The others stand in the order of how far they are ahead of the mean of all, over the tasks they are in."
    )
    return Section("Who found what", [], [Picture(overview(rows), caption)])


def _task_section(task: str, outcomes: Sequence[Outcome], rows: Sequence[Row]) -> Section:
    here = ranked(row for row in rows if row.task == task and row.found is not None)
    shown = [row.contender for row in here if row.aside and row.contender != BOUND.name]
    shown += [row.contender for row in here if not row.aside][:_BEST]
    series = {name: k for k, name in enumerate(shown)}
    drawn = [o for name in shown for o in outcomes if (o.task, o.contender) == (task, name)]
    caption = f"The {_BEST} that found most in the end; in dashes, what is no contender."
    pictures = [
        Picture(_chart(drawn, "found", TITLES[task], "parts found, %", f"{task}-found"), caption),
        Picture(_chart(drawn, "loss", TITLES[task], "loss on unseen instances", f"{task}-loss"), caption),
    ]
    table = replace(result_table(task, rows, series), title="")
    return Section(TITLES[task], [_headline(here)], pictures, table=table)


def _chart(outcomes: Sequence[Outcome], measure: str, title: str, label: str, key: str) -> str:
    lines = []
    for series, outcome in enumerate(outcomes):
        values = [mean_and_spread(getattr(measured, measure)) for measured in outcome.curve]
        steps, means, spreads = [m.step for m in outcome.curve], [v[0] for v in values], [v[1] for v in values]
        lines.append(Curve(outcome.contender, steps, means, spreads, series, dashed=outcome.aside))
    return curves(lines, title=title, x_label="step", y_label=label, key=key, shares=measure == "found")


def _headline(rows: Sequence[Row]) -> str:
    """What came out, in words, whoever won."""
    learnt = [row for row in rows if not row.aside]
    if not learnt:
        return "No estimator took part."
    (mean, spread), winner = learnt[0].found or (0.0, 0.0), learnt[0]
    text = f"Most parts found: {winner.contender}, {100 * mean:.1f}%"
    # A lead smaller than the spread over seeds is no lead: say who is level with the winner.
    level = [row.contender for row in learnt[1:] if row.found and row.found[0] >= mean - spread]
    if level:
        text += f"; within one standard deviation of it: {', '.join(level)}"
    floor = next((row for row in rows if row.contender == spigot.Pipeline.__name__ and row.found), None)
    if floor is None or floor.found is None:
        return text + "."
    low = floor.found[0] + floor.found[1]
    text += f". The floor, a scorer that never learns: {100 * floor.found[0]:.1f}%"
    near = [row.contender for row in learnt if row.found and row.found[0] <= low]
    return text + (f"; not a standard deviation above it: {', '.join(near)}." if near else ".")


def _reading(settings: Settings) -> Section:
    tuned = (
        f"Each contender has one main option and three values of it, and takes the one whose end loss on unseen points "
        f"of {settings.tuning_seeds} other seeds is least. The values were set after a trial on clusters, trees and "
        "paths with the seeds 0 to 4"
        if settings.tuning_seeds
        else "Each contender has the middle value of its main option: nothing was tuned in this run"
    )
    return Section(
        "How to read this",
        [
            "True structure: the hidden structure is given, in training and in use, a bound. Exact gradient: the "
            "gradient of the expected loss over all structures, found by listing them; no estimator, but what one "
            "without bias and noise could do. Pipeline: the scorer gets no gradient and keeps its random directions, "
            "the floor. At test time everyone decides by the plain argmax, the soft estimators too.",
            f"{tuned}. All share data, initial parameters, order of batches, optimiser and learning rate. An "
            "estimator whose only number scales the gradient has a clip for an option, because Adam does not see the "
            "scale; one without any number has its scores divided by a temperature.",
            "Cosine: between the estimator's mean gradient and the exact one, with respect to the scorer's parameters, "
            "for a batch at the initial parameters and halfway to the truth, with scores as they are, not divided by a "
            "temperature; the bias that no scaling could take away is the root of 1 - cosine². Noise: the standard "
            "deviation of the gradient over its draws, in lengths of its mean; 0 for estimators without randomness. A "
            "mean over draws of a noisy gradient has a noise of its own, which lowers the cosine. Time: the layer "
            "alone, forward and back, for the batches of all seeds at once; compare the ratios.",
            "What these tasks show is narrow. Nothing but the final answer is given, so nothing holds a good choice "
            "in place, unlike in a pipeline that also has gold structures for the scorer, which is what SPIGOT was "
            "made for: its gradient is zero where the choice is right, and pushes up whatever the loss would like "
            "where it is wrong, so that it corrects a choice but never confirms one. And the worths of parts are "
            "independent standard normal numbers, which suits StraightThrough: in the mean over worths its gradient "
            "is exactly the features of the chosen structure minus those of the hidden one, the perceptron's. Where "
            "the second stage ties parts together, that is not so.",
            "A high cosine is neither enough nor needed: a gradient that is right in the mean can be too noisy to "
            "follow, and one that follows another objective, such as the loss of the best structure, can lead to the "
            "same place. The tasks are small, the scorers linear, the data clean. Try several estimators on your own "
            "task, with several seeds.",
            "Clusters: after Mihaylova, Niculae, Martins (2020), Understanding the mechanics of SPIGOT; the data here "
            "are our own.",
        ],
    )


def _facts(settings: Settings) -> list[tuple[str, str]]:
    return [
        ("spread", f"standard deviation over {settings.seeds} seeds, each with data and parameters of its own"),
        ("training", f"{settings.steps} steps, batches of {settings.batch} of {settings.train} points, summed loss"),
        ("optimiser", f"Adam, learning rate {settings.learning_rate:g}"),
        ("test", f"{settings.test} unseen points of each seed"),
        ("gradients", f"{settings.batch} points, {settings.draws} draws"),
        ("first seed", str(settings.seed)),
        ("versions", f"spigot {spigot.__version__}, torch {torch.__version__}; {spigot.kernels.status()}"),
    ]
