"""The pictures of a study: scores, and differences to what systems are compared with, along a setting."""

from collections.abc import Sequence

from spigot_nlp.report.band_chart import Band, BandPoint, band_chart
from spigot_nlp.report.page import Picture
from spigot_nlp.report.results import place
from spigot_nlp.report.study import Difference, Results, Scores, value_text
from spigot_nlp.report.study_curves import StudyCurve, curves_of


def study_pictures(results: Results) -> list[Picture]:
    """Learning curves, and the differences along them: for every setting that is a number with three values or more.

    Example:
        >>> from spigot_nlp.report.study import Arm, Study
        >>> arms = [Arm("spigot", {"limit": size}) for size in (250, 500, 1000)]
        >>> scores = [Scores(arm, "Graphs", "dev", "LF", {0: 0.75}) for arm in arms]
        >>> results = Results(Study("c", arms), ["dev"], ["dev"], {"Graphs": ["LF"]}, "LF", {}, scores, [], [])
        >>> [picture.caption for picture in study_pictures(results)]
        ['LF on the development data by limit.']
    """
    found = []
    for curve in curves_of(results.study):
        for part in results.compared:
            found += [_levels(results, curve, part), _gaps(results, curve, part)]
    return [picture for picture in found if picture is not None]


def _levels(results: Results, curve: StudyCurve, part: str) -> Picture | None:
    """The scores themselves."""
    bands, over = [], set[str]()
    for series, system in enumerate(results.study.order):
        points = []
        for x, point in zip(curve.places, curve.points, strict=True):
            scores = results.score(system, point, part)
            if scores is not None:
                points.append(_score_point(x, scores))
                over |= {scores.interval.over} if scores.interval is not None else set()
        if points:
            bands.append(Band(system, points, series))
    title = f"{results.measure} {place(part)} by {curve.name}"
    return _picture(results, curve, bands, title, f"{results.measure}, per cent", over)


def _gaps(results: Results, curve: StudyCurve, part: str) -> Picture | None:
    """How far each system is above what it is compared with."""
    bands, over = [], set[str]()
    others = dict.fromkeys(against for _, against in results.study.pairs)
    for system, against in results.study.pairs:
        points = []
        for x, point in zip(curve.places, curve.points, strict=True):
            for each in results.differences:
                if (each.system, each.against, each.part, dict(each.point)) == (system, against, part, dict(point)):
                    points.append(_difference_point(x, each))
                    over |= {each.found.over} if each.found is not None else set()
        if points:
            name = system if len(others) == 1 else f"{system} − {against}"
            bands.append(Band(name, points, results.study.order.index(system)))
    what = f"Difference to {next(iter(others))}" if len(others) == 1 else "Differences"
    title = f"{what}, {results.measure} {place(part)}, by {curve.name}"
    return _picture(results, curve, bands, title, f"points of {results.measure}", over, zero=True)


def _score_point(x: float, scores: Scores) -> BandPoint:
    if scores.interval is None:
        return BandPoint(x, 100 * scores.mean)
    return BandPoint(x, 100 * scores.mean, 100 * scores.interval.low, 100 * scores.interval.high)


def _difference_point(x: float, difference: Difference) -> BandPoint:
    found = difference.found
    if found is None:
        return BandPoint(x, 100 * difference.value)
    return BandPoint(x, 100 * difference.value, 100 * found.low, 100 * found.high)


def _picture(
    results: Results,
    curve: StudyCurve,
    bands: Sequence[Band],
    title: str,
    y_label: str,
    over: set[str],
    *,
    zero: bool = False,
) -> Picture | None:
    if not bands:
        return None
    marks = [(x, value_text(point[curve.setting])) for x, point in zip(curve.places, curve.points, strict=True)]
    title = f"{title}, {curve.rest}" if curve.rest else title
    svg = band_chart(
        bands, title=title, x_label=curve.name, y_label=y_label, marks=marks, logarithmic=curve.is_wide, zero=zero
    )
    lines = f" Bands: 95 % intervals over {' or '.join(sorted(over))}, uncorrected." if over else ""
    scale = " The axis is logarithmic." if curve.is_wide else ""
    return Picture(svg, f"{title}.{lines}{scale}")
