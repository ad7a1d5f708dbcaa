"""What is kept of trainings, and the table and picture of it."""

import json
from pathlib import Path

import pytest

from research.curves import curves


def run_folder(folder: Path, scores: list[tuple[float, float]]) -> Path:
    folder.mkdir()
    (folder / "config.toml").write_text("seed = 0\n")
    (folder / "scores.json").write_text("{}")
    steps = [{"phase": "syntax.pruner", "epoch": 1, "dev": {"UAS": 80.0}}]
    for epoch, (uas, lf) in enumerate(scores, 1):
        steps.append({"phase": "joint", "epoch": epoch, "dev": None})
        steps.append({"phase": "joint", "epoch": epoch, "dev": {"LF": lf, "UAS": uas}})
    (folder / "steps.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    return folder


def test_runs_are_kept_and_shown_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, picture = tmp_path / "kept", tmp_path / "curves.svg"
    curves(run_folder(tmp_path / "ste", [(70.0, 24.06), (71.5, 60.0)]), keep=kept)
    capsys.readouterr()
    curves(run_folder(tmp_path / "spigot", [(78.25, 23.65)]), keep=kept, picture=picture)
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| spigot | 78.2 / 23.6 |  |",
        "| ste | 70.0 / 24.1 | 71.5 / 60.0 |",
    ]
    assert (kept / "ste" / "config.toml").read_text() == "seed = 0\n"
    assert (kept / "ste" / "curve.csv").read_text().splitlines()[:2] == ["phase,epoch,UAS,LF", "syntax.pruner,1,80.0,"]
    assert "spigot" in picture.read_text()


def test_unfinished_runs_are_refused(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "ste", [(70.0, 24.0)])
    (run / "scores.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"ste has no scores\.json"):
        curves(run, keep=tmp_path / "kept")
