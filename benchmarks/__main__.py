"""Measure everything, or the cases named, and print a table."""

import argparse
import dataclasses
import json
import platform
import sys

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

import spigot
from benchmarks.cases import CASES
from benchmarks.timing import Row, threads


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args()
    unknown = [case for case in arguments.cases if case not in CASES]
    if unknown:
        parser.error(f"no case is called {unknown[0]}; there are {', '.join(CASES)}")
    messages = Console(stderr=True)
    messages.print(
        f"torch {torch.__version__}, {spigot.kernels.status()}, {platform.processor() or platform.machine()}"
    )
    rows: list[Row] = []
    with threads(1):
        chosen = arguments.cases or list(CASES)
        for case in track(chosen, "measuring", console=messages, disable=not sys.stderr.isatty()):
            rows.extend(CASES[case]())
    if arguments.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
        return
    table = Table(
        "what", "ours, ms", "against", "theirs, ms", "ratio", "target", "", "", title="Least of several times"
    )
    for row in rows:
        table.add_row(
            row.name,
            f"{row.ours:.3f}",
            row.other,
            "" if row.theirs is None else f"{row.theirs:.3f}",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.want,
            "" if row.met is None else "reached" if row.met else "missed",
            row.note,
        )
    Console(width=150).print(table)


main()
