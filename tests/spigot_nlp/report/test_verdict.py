"""The verdict says who is best, by how much, and no more than the sentences bear."""

import json
from pathlib import Path

import pytest

from spigot_nlp.config import make_config
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import bootstrap, graph_counts, score_graphs
from spigot_nlp.models import checkpoint
from spigot_nlp.report.material import experiments, read_run
from spigot_nlp.report.page import Section
from spigot_nlp.report.verdict import verdict

GOLD = [
    Sentence(("Rain", "fell"), tags=("_", "_"), lemmas=("_", "_"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]), id=str(k))
    for k in range(40)
]


def run(folder: Path, system: str, right: int, *, seed: int = 0, kept: bool = True) -> Path:
    """A finished run that has the roles of the first so many of forty sentences right."""
    path = folder / f"{system}-{seed}"
    path.mkdir()
    wrong = Graph.of([Arc(2, 1, "ARG2")], [2])
    found = [
        Sentence(g.forms, tags=g.tags, lemmas=g.lemmas, graph=g.graph if k < right else wrong, id=g.id)
        for k, g in enumerate(GOLD)
    ]
    checkpoint.write_config(path / checkpoint.CONFIG, make_config({"name": "rain", "system": system, "seed": seed}))
    if kept:
        write(GOLD, path / "gold.id.jsonl")
        write(found, path / "predictions.id.sdp")
    scores = score_graphs(GOLD, found)
    f1 = {name: {"f1": getattr(scores, name).f1} for name in ("labelled", "unlabelled")}
    (path / checkpoint.SCORES).write_text(json.dumps({"dev": {"graphs": f1}, "id": {"graphs": f1}}))
    return path


def said(*runs: Path) -> Section:
    (experiment,) = experiments([read_run(path) for path in runs])
    found = verdict(experiment)
    assert found is not None
    return found


def test_a_lead_beyond_chance(tmp_path: Path) -> None:
    found = said(run(tmp_path, "pipeline", 10), run(tmp_path, "spigot", 38))
    assert found.title == "spigot is best in domain: LF 97.50, 35.00 above pipeline, which is beyond chance."
    assert "the interval leaves out 0." in found.prose[0]
    assert found.notes == ["Each system was trained once; another seed moves its numbers too."]
    assert ">97.50<" in found.pictures[0].svg


def test_a_lead_that_may_be_chance_has_the_numbers_of_the_comparison(tmp_path: Path) -> None:
    found = said(run(tmp_path, "pipeline", 30), run(tmp_path, "spigot", 29), run(tmp_path, "ste", 10))
    assert found.title == "pipeline is best in domain: LF 87.50, but its lead of 1.25 over spigot may be chance."
    better, worse = (graph_counts(GOLD, [*GOLD[:k], *_wrong()[k:]]) for k in (30, 29))
    result = bootstrap(better, worse)
    interval = f"{100 * result.low:+.2f} to {100 * result.high:+.2f}"
    assert (
        f"difference +1.25, 95\u00a0% interval {interval}, p {result.p:.4f}; the interval includes 0." in found.prose[0]
    )


def _wrong() -> list[Sentence]:
    wrong = Graph.of([Arc(2, 1, "ARG2")], [2])
    return [Sentence(g.forms, tags=g.tags, lemmas=g.lemmas, graph=wrong, id=g.id) for g in GOLD]


def test_the_baseline_is_named_if_it_is_neither_of_the_best(tmp_path: Path) -> None:
    found = said(run(tmp_path, "pipeline", 5), run(tmp_path, "ste", 30), run(tmp_path, "spigot", 31))
    assert found.title.startswith("spigot is best")
    assert "Against the baseline, spigot against pipeline" in found.prose[0]
    assert found.prose[0].endswith(": beyond chance.")


def test_equal_scores_are_level(tmp_path: Path) -> None:
    found = said(run(tmp_path, "pipeline", 20), run(tmp_path, "spigot", 20))
    assert found.title == "pipeline and spigot are level in domain: LF 75.00."


def test_one_run_is_told_alone(tmp_path: Path) -> None:
    found = said(run(tmp_path, "spigot", 20))
    assert found.title == "spigot scored LF 75.00 in domain."
    assert "40 sentences" in found.prose[0]
    assert "nothing to compare it with" in found.prose[0]


def test_seeds_are_taken_together(tmp_path: Path) -> None:
    runs = [
        run(tmp_path, system, right + seed, seed=seed) for system, right in (("pipeline", 10), ("ste", 36))
        for seed in (0, 1)
    ]  # fmt: skip
    found = said(*runs)
    assert found.title == "ste is best in domain: LF 95.62, 32.50 above pipeline, which is beyond chance."
    assert found.notes == ["Means of 2 seeds. Intervals and p account for the choice of seeds and of sentences."]
    assert found.prose[0].startswith("Paired bootstrap over 2 seeds and 40 sentences: ste against pipeline")
    assert found.pictures[0].caption.startswith("Lines: 95 % bootstrap intervals over seeds and 40 sentences.")
    assert "Rings: seeds" in found.pictures[0].caption


def test_a_lead_that_other_seeds_may_not_have_is_no_verdict(tmp_path: Path) -> None:
    """By sentences alone it would be beyond chance."""
    rights = {"pipeline": (10, 10, 10), "ste": (40, 11, 12)}
    found = said(*(run(tmp_path, name, n, seed=k) for name, some in rights.items() for k, n in enumerate(some)))
    assert "may be chance" in found.title
    assert "the interval includes 0." in found.prose[0]


def test_systems_with_other_seeds_are_compared_all_the_same(tmp_path: Path) -> None:
    runs = [run(tmp_path, "pipeline", 10 + k, seed=k) for k in range(3)] + [run(tmp_path, "ste", 38, seed=7)]
    found = said(*runs)
    assert found.title == "ste is best in domain: LF 97.50, 33.75 above pipeline, which is beyond chance."
    assert found.prose[0].startswith("Paired bootstrap over 1 and 3 seeds and 40 sentences")
    assert "some systems have more than others" in found.notes[0]


@pytest.mark.parametrize("lacking", ["pipeline", "spigot"])
def test_what_is_not_kept_is_not_claimed(tmp_path: Path, lacking: str) -> None:
    runs = [run(tmp_path, name, n, kept=name != lacking) for name, n in (("pipeline", 10), ("spigot", 38))]
    found = said(*runs)
    assert found.title.endswith("35.00 above pipeline; whether by chance is not known.")
    assert f"{lacking}-0 does not keep gold.id.jsonl" in found.prose[0]
    assert len(found.pictures) == 1
