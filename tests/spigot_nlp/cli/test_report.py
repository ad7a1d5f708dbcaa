"""`spigot report`: one page about several runs."""

import json
from pathlib import Path

from spigot_nlp import cli


def test_a_report_of_two_systems(trained: Path, trained_without_syntax: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "report.html"
    runs = [str(trained), str(trained_without_syntax)]
    assert cli.main(["report", *runs, "--out", str(out), "--sentences", "3", "--threads", "1", "--json"]) == 0
    printed, said = capsys.readouterr()
    assert f"The report is in {out}" in said
    answer = json.loads(printed)
    assert answer["out"] == str(out)
    (graphs,) = (table for table in answer["tables"] if table["table"] == "Graphs")
    scores = json.loads((trained / "scores.json").read_text())
    assert graphs["rows"]["spigot"][1].startswith(f"{100 * scores['dev']['graphs']['labelled']['f1']:.2f}")
    assert list(graphs["rows"]) == ["neurboparser", "spigot"]
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_report_of_classifiers_and_latent_structures(
    classifier: Path, bilstm: Path, latent: Path, chains: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("spigot_nlp.report.results.curves", lambda *_, **__: "<svg></svg>")  # drawn by the other test
    out = tmp_path / "report.html"
    runs = [str(run) for run in (classifier, bilstm, latent, chains)]
    assert cli.main(["report", *runs, "--out", str(out), "--sentences", "3", "--threads", "1", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    (classes,) = (table for table in tables if table["table"] == "Classes")
    assert len(classes["rows"]) == 4


def test_what_cannot_be_done_is_said_in_one_line(trained: Path, tmp_path: Path, capsys) -> None:
    assert cli.main(["report", str(tmp_path), "--out", str(tmp_path / "report.html")]) == 1
    assert "is no run folder: it has no config.toml" in capsys.readouterr().err
    assert cli.main(["report", str(trained), "--out", str(tmp_path / "none" / "report.html")]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert cli.main(["report", "--out", str(tmp_path / "report.html")]) == 1
    assert "there are no runs to report on" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
