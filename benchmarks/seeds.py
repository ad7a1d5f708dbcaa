"""Classifier runs of several seeds as a table: `python -m benchmarks.seeds RUN... [--against SYSTEM]` (Markdown).

Runs of one system are one row: accuracy on each set, mean and standard deviation over the seeds, and what is known of
the structure inside. With `--against`, also the difference to that system on each test set: a paired bootstrap over
sentences, each with its answers of all seeds, so that p speaks of the test sentences and not of the seeds.
"""

import argparse
import json
import statistics
from collections import defaultdict
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from spigot.corpora.corpus import load_tests
from spigot.data import Sentence, read
from spigot.evaluation import Counts, bootstrap, label_counts
from spigot.stages.given import GivenSettings
from spigot.training.checkpoint import SCORES, read_config

STRUCTURE = {"graphs": ("labelled", "f1"), "trees": ("uas", None)}


def name_of(folder: Path) -> str:
    """The system of a run, or the trees that it is given."""
    config = read_config(folder)
    rules = [stage.rule for stage in config.stages.values() if isinstance(stage, GivenSettings)]
    return f"{rules[0]} trees" if rules else config.system


def scores_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / SCORES).read_text(encoding="utf-8"))


def spread(values: list[float]) -> str:
    """Mean and standard deviation of shares, in per cent."""
    wide = f" ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.2f}{wide}"


def inside(runs: list[dict[str, Any]], part: str) -> str:
    """The score of the parser inside, where there is one that can be scored."""
    for kind, (measure, key) in STRUCTURE.items():
        found = [run[f"{part} {kind}"][measure] for run in runs if f"{part} {kind}" in run]
        if found:
            return spread([value if key is None else value[key] for value in found])
    return ""


def gold_of(folder: Path) -> dict[str, list[Sentence]]:
    """The test sets of a run's labels; tags do not matter here."""
    return load_tests(read_config(folder).data, None)["labels"].tests


def pooled(folders: list[Path], test: str, gold: list[Sentence]) -> Counts:
    """Right answers on each sentence, of all seeds."""
    return reduce(add, (label_counts(gold, read(folder / f"predictions.{test}.jsonl")) for folder in folders))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.seeds", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--against", help="a system among the runs")
    arguments = parser.parse_args()
    systems: dict[str, list[Path]] = defaultdict(list)
    for folder in arguments.runs:
        systems[name_of(folder)].append(folder)
    gold = gold_of(arguments.runs[0])
    sets = ["dev", *gold]
    changes = [] if arguments.against is None else [f"{test} - {arguments.against}" for test in gold]
    header = ["system", "seeds", *sets, "structure, dev", *changes]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for system, folders in systems.items():
        runs = [scores_of(folder) for folder in folders]
        cells = [system, str(len(runs)), *(spread([run[part]["accuracy"] for run in runs]) for part in sets)]
        cells.append(inside(runs, "dev"))
        if arguments.against is not None:
            others = systems[arguments.against]
            for test, sentences in gold.items():
                if system == arguments.against or len(others) != len(folders):
                    cells.append("")
                    continue
                found = bootstrap(pooled(folders, test, sentences), pooled(others, test, sentences))
                low, high = 100 * found.low, 100 * found.high
                cells.append(f"{100 * found.difference:+.2f} [{low:+.2f}, {high:+.2f}], p {found.p:.3f}")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
