"""Figure 2: the file in the documents is what the command draws."""

from pathlib import Path

from spigot_nlp import cli

ROOT = Path(__file__).parents[3]
MADE_BY = ["draw", "examples/figure2.jsonl", "-o", "docs/figures/figure2.svg"]


def test_the_file_is_what_the_command_draws(tmp_path: Path) -> None:
    command, source, flag, target = MADE_BY
    assert cli.main([command, str(ROOT / source), flag, str(tmp_path / "again.svg")]) == 0
    again = f"draw it again: spigot {' '.join(MADE_BY)}"
    assert (ROOT / target).read_text(encoding="utf-8") == (tmp_path / "again.svg").read_text(encoding="utf-8"), again
