"""Reports: the numbers are those of the runs, nothing is fetched, and words from outside stay words."""

import base64
import hashlib
import json
import re
import shutil
import statistics
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import spigot
from spigot_nlp.config import make_config
from spigot_nlp.data.formats import read, write
from spigot_nlp.evaluation import graph_counts, interval
from spigot_nlp.models import checkpoint
from spigot_nlp.models.trace import trace_sentence
from spigot_nlp.report.accounts import account_drawing, account_markup, estimators, live_wires
from spigot_nlp.report.answers import Judged
from spigot_nlp.report.explore import choose, compared
from spigot_nlp.report.material import experiments, read_run
from spigot_nlp.report.page import Page, render
from spigot_nlp.report.results import SAMPLES
from spigot_nlp.report.runs import report
from spigot_nlp.report.step_chart import touched
from spigot_nlp.training import train
from tests.spigot_nlp.parsing import load
from tests.spigot_nlp.report.test_page import Outline

ENCODER = {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}
HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "{{ 7 * 7 }}",
    "\u2028&amp;'",
    "\u202ea\0b",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A pipeline and SPIGOT, trained for a moment. Tests may read them, not change them."""
    folder = tmp_path_factory.mktemp("runs")
    for system in ("pipeline", "spigot"):
        train(_config(system), folder / f"tiny-{system}-0")
    return [folder / "tiny-pipeline-0", folder / "tiny-spigot-0"]


def _config(system: str) -> Any:
    given = {
        "name": "tiny",
        "system": system,
        "data": {"source": "synthetic", "synthetic": {"train": 12, "dev": 9, "test": 5}, "tags": "columns"},
        "syntax": {"encoder": ENCODER, "mlp": 8, "optimiser": {"learning_rate": 0.02}},
        "semantics": {
            "encoder": ENCODER,
            "mlp": 8,
            "optimiser": {"learning_rate": 0.02},
            "pruning": {"learned": False, "rare_role": 0},
        },
        "training": {"epochs": 2, "pretrain": 1 if system == "pipeline" else 0, "batch": 4},
    }
    return make_config(given)


@pytest.fixture(scope="module")
def page(runs: list[Path]) -> Page:
    return report(runs, sentences=6)


@pytest.fixture(scope="module")
def html(page: Page) -> str:
    return render(page)


@pytest.fixture
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without drawings of curves, which take most of the time of a small report; their titles stay."""
    monkeypatch.setattr("spigot_nlp.report.results.curves", lambda *_, title, **__: f"<svg>{title}</svg>")


def copied(run: Path, target: Path, **settings: str) -> Path:
    """The same run somewhere else, with some lines of its configuration changed."""
    shutil.copytree(run, target)
    path = target / checkpoint.CONFIG
    text = path.read_text(encoding="utf-8")
    for name, value in settings.items():
        text = re.sub(rf"^{name} = .*$", f"{name} = {value}", text, count=1, flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")
    return target


def unpacked(sentence: dict[str, Any]) -> dict[str, Any]:
    return json.loads(zlib.decompress(base64.b64decode(sentence["packed"])))


def tables(page: Page, ending: str) -> dict[str, Any]:
    return {
        table.title: table
        for section in page.sections
        if section.key.endswith(ending)
        for table in section.all_tables()
    }


def test_numbers_are_those_of_the_runs(page: Page, runs: list[Path]) -> None:
    found = tables(page, "-results")
    for row, run in zip(found["Graphs"].rows, runs, strict=True):
        scores = json.loads((run / "scores.json").read_text())
        wanted = [
            f"{100 * scores[p]['graphs'][k]['f1']:.2f}"
            for p in ("dev", "id", "ood")
            for k in ("unlabelled", "labelled")
        ]
        assert [cell.text for cell in row.cells] == wanted
    for row, run in zip(found["The trees inside"].rows, runs, strict=True):
        scores = json.loads((run / "scores.json").read_text())
        assert [cell.text for cell in row.cells] == [
            f"{100 * scores[p]['trees']['uas']:.2f}" for p in ("dev", "id", "ood")
        ]


def test_the_report_opens_with_the_verdict_and_folds_the_rest(page: Page, html: str) -> None:
    opening, *rest = page.sections
    assert "in domain" in opening.title
    assert len(opening.pictures) == 2
    assert not opening.folded
    assert all(section.folded and section.about and section.key for section in rest)
    assert f"by spigot {spigot.__version__}" in page.made[1]
    assert re.fullmatch(r"made on \d{4}-\d\d-\d\d", page.made[0])
    assert html.index(opening.title) < html.index("<details")
    assert html.count('<details class="fold') == len(rest) + 1  # and how it was made


def test_intervals_are_those_of_the_bootstrap(page: Page, runs: list[Path]) -> None:
    gold, predicted = (list(read(runs[1] / name)) for name in ("gold.id.jsonl", "predictions.id.sdp"))
    expected = interval(graph_counts(gold, predicted), samples=SAMPLES)
    row = tables(page, "-results")["Graphs"].rows[1]
    assert row.name == "spigot"
    assert row.cells[3].detail == f"{100 * expected.low:.1f}–{100 * expected.high:.1f}"


def test_the_best_of_a_column_is_marked(page: Page) -> None:
    for table in tables(page, "-results").values():
        for column in zip(*(row.cells for row in table.rows), strict=True):
            top = max(float(cell.text) for cell in column)
            assert any(cell.best for cell in column)
            assert all((float(cell.text) == top) == cell.best for cell in column)


@pytest.mark.usefixtures("no_curves")
def test_runs_that_differ_in_the_seed_are_one_system(runs: list[Path], tmp_path: Path) -> None:
    twin = copied(runs[1], tmp_path / "twin", seed="1")
    scores = json.loads((twin / "scores.json").read_text())
    scores["dev"]["graphs"]["labelled"]["f1"] /= 2
    (twin / "scores.json").write_text(json.dumps(scores))
    first = json.loads((runs[1] / "scores.json").read_text())["dev"]["graphs"]["labelled"]["f1"]
    made = report([twin, *runs], sentences=0)
    row = tables(made, "-results")["Graphs"].rows[1]
    assert row.cells[1].text == f"{100 * 0.75 * first:.2f}"
    assert row.cells[1].detail == f"± {100 * statistics.stdev((first, first / 2)):.2f}"
    assert made.facts[3] == ("seeds", "0, 1")


def test_systems_that_share_a_name_are_told_apart(runs: list[Path], tmp_path: Path) -> None:
    other = copied(runs[1], tmp_path / "other", eta="0.5")
    (experiment,) = experiments([read_run(run) for run in (*runs, other)], runs[1])
    assert [contender.name for contender in experiment.contenders] == [
        "pipeline", "spigot, estimator.eta 1.0", "spigot, estimator.eta 0.5"
    ]  # fmt: skip
    assert experiment.baseline == experiment.contenders[1]
    assert experiment.contenders[2].first.config.by_name()["estimator.eta"] == 0.5


def test_other_test_data_are_another_experiment(runs: list[Path], tmp_path: Path) -> None:
    other = copied(runs[1], tmp_path / "other", name='"later"', test="6")
    found = experiments([read_run(run) for run in (*runs, other)])
    assert [experiment.name for experiment in found] == ["tiny", "later"]
    assert found[1].baseline is None


def test_the_page_is_whole_and_fetches_nothing(html: str) -> None:
    outline = Outline()
    outline.feed(re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))
    assert outline.open == []
    assert not re.search(r"<link|<img|<iframe|\bsrc=|@import|url\((?!#)", html)
    addresses = set(re.findall(r"https?://[^\"'\s<)]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    targets = re.findall(r'href="#([^"]+)"', html)
    assert targets
    assert all(f'id="{target}"' in html for target in targets)
    names = re.findall(r'\bid="([^"]+)"', html)
    assert len(names) == len(set(names))


def test_only_the_scripts_of_the_page_may_run(html: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;")
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy[1].replace("&#43;", "+")
    assert not re.search(r"\son[a-z]+=\"", html)


@pytest.mark.usefixtures("no_curves")
def test_words_from_outside_stay_words(runs: list[Path], tmp_path: Path) -> None:
    run = copied(runs[1], tmp_path / "hostile", name=json.dumps(HOSTILE[0]))
    for part in ("dev", "train"):
        gold = [
            replace(
                sentence,
                forms=tuple(HOSTILE[k % len(HOSTILE)] for k in range(len(sentence))),
                id=HOSTILE[0],
                source=None,
            )
            for sentence in read(run / f"gold.{part}.jsonl")
        ]
        write(gold, run / f"gold.{part}.jsonl")
    made = report([run], sentences=2)
    html = render(made)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "{{ 7 * 7 }}" in html
    assert not set("\0\u202e") & set(html)  # one is no HTML, the other turns the rest of a line around
    data = json.loads(re.findall(r'<script type="application/json" id="e1-data">(.*?)</script>', html, re.DOTALL)[0])
    assert HOSTILE[0] in data["sentences"][0]["text"]
    assert all("<script" not in picture and "<img" not in picture for picture in unpacked(data["sentences"][0])["svg"])


def test_the_explorer_has_every_drawing(page: Page, runs: list[Path]) -> None:
    data: Any = page.data["e1-data"]
    assert data["systems"] == ["pipeline", "spigot"]
    assert len(data["sentences"]) == 6
    gold = [sentence.forms for sentence in read(runs[0] / "gold.dev.jsonl")]
    for sentence in data["sentences"]:
        assert sentence["text"] == " ".join(gold[sentence["number"] - 1])
        found = unpacked(sentence)
        assert set(found["shown"]) == {
            "gold plain",
            *(f"{k} {m}" for k in "01" for m in ("plain", "gold", str(1 - int(k)))),
        }
        assert set(found["shown"].values()) == set(range(len(found["svg"])))
        assert len(found["svg"]) == len(found["tikz"])
        picture = found["svg"][found["shown"]["1 plain"]]
        assert picture.count("data-word=") == sentence["length"]
        arcs = re.findall(r'data-side="(\w+)" data-start="(\d+)" data-end="(\d+)"', picture)
        assert {" ".join(arc) for arc in arcs} == set(found["notes"][1])
        assert all("score" in note for note in found["notes"][1].values())


def test_without_scripts_there_is_one_drawing(page: Page, html: str) -> None:
    (shown,) = re.findall(r"<noscript>(.*?)</noscript>", html, re.DOTALL)
    data: Any = page.data["e1-data"]
    assert shown.count("data-word=") == data["sentences"][0]["length"]
    assert "<style></style>" not in shown


def test_flags_say_what_the_systems_did(page: Page, runs: list[Path]) -> None:
    data: Any = page.data["e1-data"]
    gold = list(read(runs[0] / "gold.dev.jsonl"))
    answers = [list(read(run / "predictions.dev.sdp")) for run in runs]
    for sentence in data["sentences"]:
        k = sentence["number"] - 1
        counts = [graph_counts([gold[k]], [each[k]]) for each in answers]
        worth = [int(2 * c.correct[0] - c.predicted[0]) for c in counts]
        flags = sentence["flags"]
        assert not set(flags[0]) & set("cfgl")
        assert ("g" in flags[1], "l" in flags[1]) == (worth[1] > worth[0], worth[1] < worth[0])
        for c, letters in zip(counts, flags, strict=True):
            assert ("w" in letters) == (not c.correct[0] == c.predicted[0] == c.gold[0])


def test_sentences_are_chosen_once_and_for_a_reason() -> None:
    answers = [Judged("", k % 2 == 0, k % 3 == 0, False, (k % 5) - 2) for k in range(40)]
    chosen = choose([answers], ["STE"], [k + 1 for k in range(40)], 12)
    assert len(chosen) == 12
    assert {"largest gain of STE", "largest loss of STE", "structure changed by STE", "long"} <= set(chosen.values())
    assert all(answers[k].gain == 2 for k, why in chosen.items() if why.startswith("largest gain"))
    assert len(choose([answers], ["STE"], [3] * 40, 1000)) == 40
    assert compared(3, 0) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert all(1 in pair for pair in compared(4, 1))


def test_accounts_show_the_same_parts_for_both_estimators(runs: list[Path]) -> None:
    parser = load(runs[1])
    sentence = next(read(runs[1] / "gold.train.jsonl"))
    markup = account_markup(parser, "spigot", [sentence])
    assert "nan" not in markup
    pictures = re.findall(r'aria-label="\w+: what became of each part: (\d+) parts"', markup)
    rows = markup.count('<th scope="row">')
    assert pictures == [str(rows)] * 2
    ((name, wire),) = live_wires(parser).items()
    spigot = trace_sentence(parser, sentence, estimators(wire)["spigot"], top=1000)[name]
    drawn = account_drawing(spigot).below
    for part in spigot.parts:
        assert part.gradient == pytest.approx(part.z - part.projected, abs=1e-5)
        marks = [arc.mark for arc in drawn if (arc.start, arc.end) == part.part[:2]]
        assert bool(marks) == (part.z == 1 or part.projected > touched([spigot]))


@pytest.mark.usefixtures("no_curves")
def test_a_run_without_gold_sentences_gives_a_page_without_them(runs: list[Path], tmp_path: Path) -> None:
    old = copied(runs[1], tmp_path / "old")
    for path in old.glob("gold.*"):
        path.unlink()
    made = report([runs[0], old], sentences=2)
    (results,) = (section for section in made.sections if section.key == "e1-results")
    assert any(
        f"{old} has no gold.dev.jsonl" in note and f"spigot train --resume {old}" in note for note in results.notes
    )
    assert made.data["e1-data"]["systems"] == ["pipeline"]  # pyright: ignore[reportIndexIssue]
    assert "e1-estimator" not in {section.key for section in made.sections}
    alone = report([old])
    assert not alone.data
    assert render(alone).count("<script>") == 1


def test_bad_runs_are_named_in_one_sentence(runs: list[Path], tmp_path: Path) -> None:
    unfinished = copied(runs[1], tmp_path / "unfinished")
    (unfinished / "scores.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"unfinished has no scores\.json: .* spigot train --resume"):
        report([unfinished])
    (unfinished / "scores.json").write_text("{")
    with pytest.raises(ValueError, match=r"scores\.json is damaged"):
        report([unfinished])
    (unfinished / "scores.json").write_text('{"dev": null}')
    with pytest.raises(ValueError, match=r"scores\.json is damaged \(it is no object of objects\)"):
        report([unfinished])
    (unfinished / "scores.json").write_text('{"dev": {"graphs": {"labelled": {"f1": 0.5}}}}')
    with pytest.raises(ValueError, match=r"scores\.json has no UF of graphs in dev; write it again"):
        report([unfinished], sentences=0)
    for name in ("steps.jsonl", "times.jsonl"):
        odd = copied(runs[1], tmp_path / name)
        (odd / name).write_text('{"phase": "joint"}\n')
        with pytest.raises(ValueError, match=rf"{name} is damaged; restore it"):
            report([odd], sentences=0)
    with pytest.raises(FileNotFoundError, match=r"is no run folder: it has no config\.toml"):
        report([tmp_path])
    with pytest.raises(ValueError, match="is given twice"):
        report([runs[0], runs[0]])
    with pytest.raises(ValueError, match="is none of the runs of the report"):
        report([runs[0]], baseline=runs[1])
    with pytest.raises(ValueError, match="sentences is -1"):
        report(runs, sentences=-1)


@pytest.mark.usefixtures("no_curves")
def test_phases_have_their_time_where_the_steps_say_it(runs: list[Path], tmp_path: Path) -> None:
    run = copied(runs[0], tmp_path / "timed")
    steps = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    ends = [
        {"phase": step["phase"], "epoch": step["epoch"], "seconds": 2.0 * k}
        for k, step in enumerate(steps, 1)
        if step["dev"] is not None
    ]
    (run / "times.jsonl").write_text("".join(f"{json.dumps(end)}\n" for end in ends))
    made = report([run], sentences=0)
    table = tables(made, "-speed")["By phase of the training"]
    phases = list(dict.fromkeys(step["phase"] for step in steps))
    assert len(table.rows) == len(phases) == 2
    for row, phase in zip(table.rows, phases, strict=True):
        mine = [step for step in steps if step["phase"] == phase]
        seconds, words = 2 * len(mine), sum(step["tokens"] for step in mine)
        pace = [f"{amount / seconds:,.0f}" for amount in (sum(step["sentences"] for step in mine), words)]
        assert [cell.text for cell in row.cells][2:] == [f"{words:,}", *pace]
    pictures = [picture.svg for section in made.sections for picture in section.pictures]
    assert "<svg>LF on the development data, by seconds</svg>" in pictures
    (run / "times.jsonl").unlink()  # as in runs of earlier versions
    assert not tables(report([run], sentences=0), "-speed").get("By phase of the training")
