"""Commands killed at random moments, without room on the disk, in closed folders, and in one another's way.

`python -m tests.spigot_nlp.faults`, or `make faults`. Each command must end in the same bytes as undisturbed, once it
is given again, or in a sentence; none may hang. Trainings are tiny; what takes time is that many processes begin.
"""

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

CONFIG = """
name = "tiny"
[data]
source = "synthetic"
tags = "columns"
synthetic = { train = 24, dev = 6, test = 6 }
[syntax]
mlp = 8
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[semantics]
mlp = 8
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[semantics.pruning]
epochs = 1
rare_role = 1
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[training]
batch = 4
epochs = 2
save_seconds = 0.0
"""
HANGS = 600  # seconds that no command here takes
KEPT = (
    "model.safetensors",
    "config.toml",
    "vocab.json",
    "steps.jsonl",
    "predictions.dev.sdp",
    "predictions.dev.conllu",
)


class Failed(Exception):
    """A command that kept no promise."""


@dataclass
class Bench:
    """Where commands run.

    Attributes:
        folder: Everything is in here.
        dice: What decides when to strike.
        checks: How many things were found as promised.
    """

    folder: Path
    dice: Random
    checks: int = 0
    environment: dict[str, str] = field(default_factory=lambda: {**os.environ, "OMP_NUM_THREADS": "1"})

    def start(self, words: Sequence[str], before: Callable[[], None] | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
            start_new_session=True,
        )

    def end(self, process: "subprocess.Popen[str]") -> tuple[int, str]:
        try:
            _, said = process.communicate(timeout=HANGS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"{process.args} hangs") from None
        return process.returncode, said

    def run(self, words: Sequence[str], before: Callable[[], None] | None = None) -> tuple[int, str]:
        return self.end(self.start(words, before))

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise Failed(what)
        self.checks += 1

    def expect_sentence(self, code: int, said: str) -> None:
        self.expect(code != 0, "a command that could not do its work says that it did")
        self.expect("Traceback" not in said, f"a traceback instead of a sentence: {said[-1500:]}")
        self.expect(bool(said.strip()), "a command failed without a word")

    def expect_same(self, one: Path, other: Path, names: Sequence[str]) -> None:
        for name in names:
            self.expect(
                (one / name).read_bytes() == (other / name).read_bytes(), f"{other / name} is not as undisturbed"
            )
        leftovers = [path.name for path in other.iterdir() if path.name.endswith(".tmp") or path.name == ".lock"]
        self.expect(not leftovers, f"{leftovers} are left over in {other}")


def _train(out: str, *more: str) -> list[str]:
    return ["spigot_nlp", "train", "tiny.toml", "--out", out, "--threads", "1", *more]


def _kept(bench: Bench) -> list[str]:
    return [name for name in KEPT if (bench.folder / "reference" / name).exists()]


def _until_done(bench: Bench, out: str, seconds: float, strikes: int) -> None:
    """Train, killed a few times at random moments, then resumed to the end."""
    for _ in range(strikes):
        begun = (bench.folder / out / "config.toml").exists()
        process = bench.start(["spigot_nlp", "train", "--resume", out, "--threads", "1"] if begun else _train(out))
        time.sleep(bench.dice.uniform(0.3, 1.2) * seconds)
        os.killpg(process.pid, signal.SIGKILL)
        bench.end(process)
    begun = (bench.folder / out / "config.toml").exists()
    code, said = bench.run(["spigot_nlp", "train", "--resume", out, "--threads", "1"] if begun else _train(out))
    bench.expect(code == 0, f"a killed training cannot be resumed: {said[-1500:]}")


def killed_training(bench: Bench, seconds: float) -> None:
    """kill -9 in the middle of a training, again and again."""
    _until_done(bench, "killed", seconds, 3)
    bench.expect_same(bench.folder / "reference", bench.folder / "killed", _kept(bench))


def killed_parsing(bench: Bench, seconds: float) -> None:
    """kill -9 in the middle of parsing: no half of a file, and the whole one the next time."""
    (bench.folder / "text.txt").write_text("The poet slept . Rain fell .\n" * 400)
    words = ["spigot_nlp", "parse", "reference", "text.txt", "--threads", "1", "--out"]
    code, said = bench.run([*words, "whole.conllu"])
    bench.expect(code == 0, f"parsing fails undisturbed: {said[-800:]}")
    for _ in range(2):
        process = bench.start([*words, "again.conllu"])
        time.sleep(bench.dice.uniform(0.2, 1.0) * seconds)
        os.killpg(process.pid, signal.SIGKILL)
        bench.end(process)
        if (bench.folder / "again.conllu").exists():  # it was quicker
            break
    bench.expect(bench.run([*words, "again.conllu"])[0] == 0, "parsing fails after it was killed")
    whole, again = (bench.folder / name for name in ("whole.conllu", "again.conllu"))
    bench.expect(whole.read_bytes() == again.read_bytes(), "parsing after a kill gives other bytes")


def killed_process_of_two(bench: Bench, seconds: float) -> None:
    """kill -9 for one of two processes that train together: the other ends, too, and both can be resumed."""
    bench.environment = {**bench.environment, "GLOO_SOCKET_IFNAME": "lo"}
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    process = bench.start([*launch, *_train("two")])
    limit = time.monotonic() + HANGS
    while not (bench.folder / "two" / "checkpoint.safetensors").exists():
        if process.poll() is not None or time.monotonic() > limit:
            raise Failed(f"two processes do not train: {bench.end(process)[1][-1500:]}")
        time.sleep(0.05)
    children = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    if children:
        os.kill(int(bench.dice.choice(children)), signal.SIGKILL)
    bench.expect(bench.end(process)[0] != 0 or not children, "a training that lost a process says that all is well")
    code, said = bench.run(["spigot_nlp", "train", "--resume", "two", "--threads", "1"])
    bench.expect(code == 0, f"what two processes began, one cannot end: {said[-1500:]}")


def full_disk(bench: Bench, seconds: float) -> None:
    """No file may grow beyond a few kilobytes: a sentence; with room again, the same bytes."""

    def little_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    code, said = bench.run(_train("full"), little_room)
    bench.expect_sentence(code, said)
    _until_done(bench, "full", seconds, 0)
    bench.expect_same(bench.folder / "reference", bench.folder / "full", _kept(bench))


def read_only(bench: Bench, seconds: float) -> None:
    """A folder that may not be written to: a sentence, and nothing is changed."""
    shutil.copytree(bench.folder / "reference", bench.folder / "closed")
    (bench.folder / "one.txt").write_text("Rain fell .\n")
    before = {path.name: path.read_bytes() for path in (bench.folder / "closed").iterdir()}
    with _closed(bench.folder / "closed"):
        for words in (_train("closed/run"), ["spigot_nlp", "parse", "closed", "one.txt", "--out", "closed/out.conllu"]):
            code, said = bench.run(words)
            bench.expect_sentence(code, said)
    after = {path.name: path.read_bytes() for path in (bench.folder / "closed").iterdir()}
    bench.expect(before == after, "a folder that may not be written to has changed")


@contextmanager
def _closed(folder: Path) -> Iterator[None]:
    """A folder that nobody may write to; for the administrator, who may write everywhere, by a mount."""
    if os.getuid():
        folder.chmod(0o555)
        try:
            yield
        finally:
            folder.chmod(0o755)
        return
    place = str(folder)
    try:
        subprocess.run(["mount", "--bind", place, place], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
    except subprocess.CalledProcessError:
        raise Failed("cannot close a folder as administrator here; try as another user") from None
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def two_in_one_folder(bench: Bench, seconds: float) -> None:
    """Two trainings into one folder: one of them gets it, undisturbed, and the other is told."""
    processes = [bench.start(_train("shared")) for _ in range(2)]
    ends = [bench.end(process) for process in processes]
    codes = sorted(code for code, _ in ends)
    bench.expect(codes[0] == 0 and codes[1] != 0, f"two trainings in one folder end with {codes}: {ends}")
    for code, said in ends:
        if code:
            bench.expect_sentence(code, said)
    bench.expect_same(bench.folder / "reference", bench.folder / "shared", _kept(bench))


CASES = [
    killed_training, killed_parsing, killed_process_of_two, full_disk, read_only, two_in_one_folder,
]  # fmt: skip


def main(names: Sequence[str], seed: int) -> int:
    """Try each fault.

    Args:
        names: Which; all if there are none.
        seed: Decides when commands are killed.

    Returns:
        How many promises were broken.
    """
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), Random(seed))
        bench.folder.chmod(0o755)
        (bench.folder / "tiny.toml").write_text(CONFIG)
        begun = time.monotonic()
        code, said = bench.run(_train("reference"))
        seconds = time.monotonic() - begun
        if code:
            print(f"the training fails undisturbed: {said}")
            return 1
        broken = 0
        for case in CASES:
            if names and case.__name__ not in names:
                continue
            began = time.monotonic()
            try:
                case(bench, seconds)
            except Failed as error:
                broken += 1
                print(f"FAILED {case.__name__}: {error}", flush=True)
            else:
                print(f"{case.__name__}: as promised, in {time.monotonic() - began:.0f} s", flush=True)
        print(f"seed {seed}: {bench.checks} checks, {broken} broken promises, {time.monotonic() - begun:.0f} s.")
        return broken


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.spigot_nlp.faults", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(case.__name__ for case in CASES)}; all by default")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    given = parser.parse_args()
    sys.exit(bool(main(given.names, given.seed)))
