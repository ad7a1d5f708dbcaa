"""The reference and the work side by side: is anything more than five per cent slower?

`python -m benchmarks.side_by_side REFERENCE_PYTHON [WORK_PYTHON]`: each is the Python of an environment that has this
version installed; the work is what the Python that runs this has, unless it is given. Each version runs in a child, in
an empty folder, on one thread. The two take turns, case by case, and start anew in each round: whatever else the
machine does meets both.
"""

import argparse
import contextlib
import inspect
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

MOST = 1.05  # times as long as the reference
SMALL = {"data.trees.limit": 320, "data.graphs.limit": 320, "training.epochs": 2, "semantics.pruning.epochs": 1}
TRAINING = {**SMALL, "data.tags": "columns", "training.warm_up": 0, "training.tests": False}
NOUNS = ("judge", "river", "committee", "painter", "argument", "engine", "village", "winter", "report", "song")
VERBS = ("remembered", "crossed", "praised", "ignored", "repaired", "followed", "described", "wanted")
PREPOSITIONS = ("in", "near", "after", "without", "beyond", "during", "and")
Measure = Callable[[], float]  # milliseconds: of a call, of a sentence, of a token


def systems(module: str = "") -> Any:
    """A module of the systems, in whichever package they live."""
    return import_module(f"{'spigot_nlp' if find_spec('spigot_nlp') else 'spigot'}{module}")


def layer(verb: str, structure: str = "ProjectiveTrees", n: int = 50) -> Measure:
    """One verb on 32 sentences of n/2 to n words, in single precision; hulls project scores."""
    import torch

    import spigot
    from benchmarks.timing import best

    chance, trees = torch.Generator().manual_seed(n), getattr(spigot, structure)()
    mask = trees.mask(torch.randint(n // 2, n + 1, (32,), generator=chance), n + 1)
    scores, grad = (torch.randn(32, n + 1, n + 1, generator=chance) for _ in range(2))
    leaf, hull, simplex = scores.clone().requires_grad_(), spigot.ConvexHull(trees), spigot.Simplex()
    z = spigot.argmax(leaf, trees, spigot.Spigot(), mask=mask)
    calls: dict[str, Callable[[], object]] = {
        "argmax": lambda: trees.argmax(scores, mask),
        "marginals": lambda: trees.marginals(scores, mask),
        "backward": lambda: torch.autograd.grad(z, leaf, grad, retain_graph=True),
        "hull": lambda: hull.project(scores, mask),
        "simplex": lambda: simplex.project(scores),
    }
    return lambda: best(calls[verb], seconds=0.4)


def training() -> float:
    """Steps of syntax and semantics together on the built-in corpus; what scores them in between is not counted."""
    config, train = systems(".config").load_config("synthetic", TRAINING), systems(".training").train
    seen: list[tuple[float, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        if "on_step" in inspect.signature(train).parameters:
            train(config, f"{folder}/run", on_step=lambda step: seen.append((time.perf_counter(), step)))
        else:
            seen.extend((time.perf_counter(), step) for step in train(config, f"{folder}/run"))
    steps = [(end - start, step) for (start, _), (end, step) in itertools.pairwise(seen)]
    counted = [(took, step.sentences) for took, step in steps if step.phase == "joint" and step.dev is None]
    return 1e3 * sum(took for took, _ in counted) / sum(sentences for _, sentences in counted)


def parsing(precision: str) -> Measure:
    """The English model, on other sentences at each call, which are the same for both versions."""
    nlp, chance = systems().load("en", precision=precision), random.Random(0)

    def sentence() -> str:
        more = (f" {chance.choice(PREPOSITIONS)} the {chance.choice(NOUNS)}" for _ in range(chance.randrange(8)))
        return f"The {chance.choice(NOUNS)} {chance.choice(VERBS)} the {chance.choice(NOUNS)}{''.join(more)}."

    def once(count: int = 600) -> float:
        texts = [sentence() for _ in range(count)]
        start = time.perf_counter()
        tokens = sum(len(found) for doc in nlp.pipe(texts) for found in doc)
        return 1e3 * (time.perf_counter() - start) / tokens

    once(16)
    return lambda: min(once() for _ in range(3))


TREES = {"projective": "ProjectiveTrees", "non-projective": "NonProjectiveTrees"}
CASES: dict[str, tuple[str, Callable[[], Measure]]] = {
    **{f"argmax, {kind} trees, n=50": ("", partial(layer, "argmax", name)) for kind, name in TREES.items()},
    **{f"marginals, {kind} trees, n=50": ("", partial(layer, "marginals", name)) for kind, name in TREES.items()},
    **{f"hull of {kind} trees, n=30": ("", partial(layer, "hull", name, 30)) for kind, name in TREES.items()},
    **{f"SPIGOT backward, {kind} trees, n=50": ("", partial(layer, "backward", name)) for kind, name in TREES.items()},
    "simplex projection, 32x51x51": ("", partial(layer, "simplex")),
    "joint training step, built-in corpus": ("sentences/s", lambda: training),
    "parse en, float32": ("tokens/s", partial(parsing, "float32")),
    "parse en, int16": ("tokens/s", partial(parsing, "int16")),
}  # the rate that is shown in place of milliseconds, if any, and what sets the case up
IMPORT = "import spigot, to its first name"


def answer() -> None:
    """What a child does: reads names of cases, and writes how long they took."""
    import torch

    start = time.perf_counter()
    import spigot

    assert spigot.argmax  # names may be loaded when they are asked for
    ready: dict[str, Measure] = {IMPORT: lambda took=1e3 * (time.perf_counter() - start): took}
    torch.set_num_threads(1)
    sys.path.append(str(Path(__file__).resolve().parents[1]))  # behind all others, for `benchmarks`
    for name in map(str.strip, sys.stdin):
        with contextlib.redirect_stdout(sys.stderr):
            took = (ready.get(name) or ready.setdefault(name, CASES[name][1]()))()
        print(took, flush=True)


def play(pythons: list[str], first: int, times: dict[str, list[tuple[float, float]]]) -> None:
    """One round: both start, and answer every case in turn."""
    with contextlib.ExitStack() as stack:
        children = []
        for python in pythons:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            words = [os.path.abspath(python), "-I", os.path.abspath(__file__), "--child"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            children.append(stack.enter_context(subprocess.Popen(words, cwd=folder, **pipes)))
            stack.callback(children[-1].kill)
        for name in times:
            took = [0.0, 0.0]
            for k in (first, 1 - first):
                print(name, file=children[k].stdin, flush=True)
                if not (said := children[k].stdout.readline()):
                    sys.exit(f"{pythons[k]} ended at: {name}")
                took[k] = float(said)
            times[name].append((took[0], took[1]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side")
    parser.add_argument("reference", metavar="REFERENCE_PYTHON")
    parser.add_argument("work", metavar="WORK_PYTHON", nargs="?", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    chosen, slow = parser.parse_args(), False
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in (IMPORT, *CASES)}
    for turn in range(chosen.rounds):
        play([chosen.reference, chosen.work], turn % 2, times)
    print(f"{'':46}{'reference':>10}{'work':>10}  {'':12}{'time':>6}")
    for name, pairs in times.items():
        ratio, unit = median(work / reference for reference, work in pairs), CASES.get(name, ("",))[0]
        both = (f"{1e3 / took:10,.0f}" if unit else f"{took:10,.3f}" for took in map(median, zip(*pairs, strict=True)))
        print(f"{name:46}{''.join(both)}  {unit or 'ms':12}{ratio:6.3f}{'  SLOWER' if ratio > MOST else ''}")
        slow |= ratio > MOST
    return int(slow)


if __name__ == "__main__":
    sys.exit(answer() if sys.argv[1:] == ["--child"] else main())
