"""Finished runs as tables for a document: `python -m benchmarks.results RUN... [--against RUN] [--tests]` (Markdown).

Runs of one system are one row: mean and standard deviation over seeds, and the difference to the baseline with its
interval and p over seeds and sentences.
"""

import argparse
from pathlib import Path

from spigot_nlp.report.study_page import study_markdown
from spigot_nlp.report.study_results import study_results
from spigot_nlp.report.study_runs import study_of


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.results", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--against", type=Path, help="a run of the baseline")
    parser.add_argument("--tests", action="store_true", help="test sets, not development data alone")
    arguments = parser.parse_args()
    study = study_of(arguments.runs, baseline=arguments.against)
    print(study_markdown(study_results(study, tests=arguments.tests)), end="")


if __name__ == "__main__":
    main()
