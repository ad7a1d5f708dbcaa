"""`spigot serve` under load: requests a second and latency, for 1 and for 50 clients.

    python -m benchmarks.serving [RUN] [--clients 1,50,200] [--requests 600] [--seconds 20] [--rounds 3] [--draw]

The server is a process of its own, and so are its clients, one thread for each, all of which send the next request when
they have the answer to the last one. A round ends after so many requests, or after so many seconds, with the answers to
what was asked till then. Without RUN, a parser of the paper's sizes is trained for a few steps first.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.parsing import briefly_trained
from benchmarks.timing import Row
from benchmarks.training import THREADS, sentences
from spigot_nlp.models import checkpoint

TEXTS = (
    "The old tailor quietly mended the coat that the children had torn.",
    "She promised to call.",
    "Nobody in the village expected the bridge to hold through another winter like that one.",
    "A slow and clumsy film, yet the last scene is a delight.",
    "When the rain had stopped, the two gardeners carried their tools back to the shed and talked about the harvest.",
)


@dataclass(frozen=True)
class Load:
    """What some clients saw.

    Attributes:
        rate: Requests a second, all clients together.
        median: Milliseconds that half of the requests took at most.
        slow: Milliseconds that 95 of 100 took at most.
        errors: Answers other than 200, and none at all.
    """

    rate: float
    median: float
    slow: float
    errors: int


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of a server for as long as the block lasts."""
    words = [sys.executable, "-m", "spigot_nlp", "serve", str(run), "--port", "0", "--threads", str(THREADS)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def load(address: str, clients: int, requests: int, *, seconds: float = 20.0, draw: bool = False) -> Load:
    """Let clients send requests as fast as they are answered, until they are through or the time is up."""
    end = time.perf_counter() + seconds

    def client(number: int) -> list[tuple[float, bool]]:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
        seen = []
        for k in range(number, requests, clients):
            start = time.perf_counter()
            if seen and start > end:
                break
            good = _answered(connection, json.dumps({"text": TEXTS[k % len(TEXTS)], "draw": draw}))
            seen.append((time.perf_counter() - start, good))
        connection.close()
        return seen

    with ThreadPoolExecutor(clients) as pool:
        start = time.perf_counter()
        seen = [one for each in pool.map(client, range(clients)) for one in each]
        took = time.perf_counter() - start
    times = sorted(1000 * waited for waited, _ in seen)
    slow = times[min(len(times) - 1, int(0.95 * len(times)))]
    good = sum(good for _, good in seen)
    return Load(good / took, statistics.median(times), slow, len(seen) - good)


def _answered(connection: http.client.HTTPConnection, body: str) -> bool:
    try:
        connection.request("POST", "/api/parse", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()  # the next request opens it again
        return False
    return answer.status == 200


def measure(
    run: Path,
    clients: tuple[int, ...] = (1, 50),
    requests: int = 600,
    *,
    seconds: float = 20.0,
    rounds: int = 3,
    draw: bool = False,
) -> Iterator[Row]:
    """One row for each number of clients, with the median of what a request took."""
    best: dict[int, Load] = {}
    with served(run) as address:
        load(address, 2, 20, draw=draw)  # to warm up
        # The best of several rounds: other processes disturb all of them.
        for count in clients * rounds:
            new = load(address, count, requests if count > 1 else requests // 4, seconds=seconds, draw=draw)
            old = best.get(count, new)
            best[count] = replace(max(old, new, key=lambda one: one.rate), errors=max(old.errors, new.errors))
    for count, found in best.items():
        yield Row(
            f"a served request, {count} client{'' if count == 1 else 's'}",
            found.median,
            note=f"{found.rate:.1f} requests/s; 95 of 100 within {found.slow:.0f} ms; {found.errors} errors",
        )


def serving() -> Iterator[Row]:
    """The same for a parser that is trained for a few steps."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        parser = briefly_trained(sentences(), **{"data.tags": "predicted"})
        checkpoint.save_start(run, parser)
        checkpoint.write_tensors(run / checkpoint.MODEL, parser.model.state_dict())
        yield from measure(run)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description="spigot serve under load.")
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--clients", default="1,50")
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=20, help="how long a round may take")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts")
    parser.add_argument("--draw", action="store_true", help="ask for drawings too")
    given = parser.parse_args()
    counts = tuple(map(int, given.clients.split(",")))
    asked = {"seconds": given.seconds, "rounds": given.rounds, "draw": given.draw}
    rows = measure(given.run, counts, given.requests, **asked) if given.run else serving()
    print(f"{os.cpu_count()} cores, {THREADS} threads")
    for row in rows:
        print(f"{row.name}: {row.ours:.1f} ms; {row.note}")


if __name__ == "__main__":
    main()
