"""Finished runs as the rows of a results table: `python -m benchmarks.results RUN...` (Markdown).

Each test set gets labelled and unlabelled F1 with its 95 % bootstrap interval over sentences, recomputed from the
predictions in the run folder and the gold files its configuration names; with `--against RUN`, also the difference to
that run with its interval and p. Trees get the attachment score.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spigot.data import Sentence, read
from spigot.evaluation.counts import Counts
from spigot.evaluation.metrics import graph_counts
from spigot.evaluation.significance import bootstrap, interval
from spigot.training.checkpoint import read_config, read_tensors


@dataclass(frozen=True)
class Run:
    """What a finished run left behind."""

    folder: Path

    def counts(self, test: str, labelled: bool = True) -> Counts:
        config = read_config(self.folder)
        gold = read(config.data.path(config.data.sets["graphs"].tests[test]))
        return graph_counts(gold, self._predictions(test), labelled=labelled)

    def attachment(self, name: str) -> float | None:
        scores = json.loads((self.folder / "scores.json").read_text())
        trees = scores.get(f"{name} trees")
        return None if trees is None else 100 * trees["uas"]

    def minutes(self) -> float:
        return read_tensors(self.folder / "checkpoint.safetensors")[1]["seconds"] / 60

    def _predictions(self, test: str) -> Iterator[Sentence]:
        return read(self.folder / f"predictions.{test}.sdp")


def main(arguments: list[str]) -> None:
    against = None
    if "--against" in arguments:
        place = arguments.index("--against")
        against = Run(Path(arguments[place + 1]))
        arguments = arguments[:place] + arguments[place + 2 :]
    print("| run | set | LF | UF | UAS | minutes |" + (" LF - base | p |" if against else ""))
    print("|---|---|---|---|---|---|" + ("---|---|" if against else ""))
    for run in map(Run, map(Path, arguments)):
        for test in read_config(run.folder).data.sets["graphs"].tests:
            labelled, unlabelled = (interval(run.counts(test, choice)) for choice in (True, False))
            attachment = run.attachment(test)
            cells = [
                run.folder.name,
                test,
                f"{100 * labelled.value:.2f} [{100 * labelled.low:.1f}, {100 * labelled.high:.1f}]",
                f"{100 * unlabelled.value:.2f} [{100 * unlabelled.low:.1f}, {100 * unlabelled.high:.1f}]",
                "" if attachment is None else f"{attachment:.2f}",
                f"{run.minutes():.1f}",
            ]
            if against is not None:
                change = bootstrap(run.counts(test), against.counts(test))
                low, high = 100 * change.low, 100 * change.high
                cells += [f"{100 * change.difference:+.2f} [{low:+.2f}, {high:+.2f}]", f"{change.p:.3f}"]
            print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
