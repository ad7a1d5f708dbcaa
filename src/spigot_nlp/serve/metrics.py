"""Counts for Prometheus, of one process or of several that share a folder."""

import os
from pathlib import Path

import numpy as np

import spigot

PATHS = ("/api/parse", "/api/systems", "other")
CODES = (200, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 422, 431, 500, 501, 503, 505)
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, float("inf"))
_REQUESTS, _TIMES = len(PATHS) * (len(CODES) + 1), len(BOUNDS) + 1
_SIZE = _REQUESTS + _TIMES + 4
_PROGRESS, _BATCHES, _SENTENCES, _WORDS = range(_SIZE - 4, _SIZE)
_COUNTERS = (
    ("batches", _BATCHES, "Batches that were parsed."),
    ("sentences", _SENTENCES, "Sentences that were parsed, once for each system and each set of constraints."),
    ("words", _WORDS, "Words of these sentences."),
)


class Metrics:
    """What has been asked and answered since the start.

    Several processes that serve at one address share a folder: each has its numbers in a file there, and whichever of
    them is asked answers for all.

    Args:
        folder: Where the processes keep their numbers; without one, those of this process are all there are.

    Example:
        >>> metrics = Metrics()
        >>> metrics.begin()
        >>> metrics.end("/api/parse", 200, 0.03)
        >>> 'spigot_requests_total{path="/api/parse",status="200"} 1' in metrics.text()
        True
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        if folder is None:
            self._values = np.zeros(_SIZE)
        else:
            self._values = np.memmap(folder / f"{os.getpid()}.metrics", np.float64, "w+", shape=(_SIZE,))

    def begin(self) -> None:
        """A request has come."""
        self._values[_PROGRESS] += 1

    def end(self, path: str, status: int, seconds: float) -> None:
        """A request has been answered.

        Args:
            path: What was asked.
            status: The code of HTTP that was answered.
            seconds: How long it took.
        """
        self._values[_PROGRESS] -= 1
        place = PATHS.index(path) if path in PATHS else len(PATHS) - 1
        code = CODES.index(status) if status in CODES else len(CODES)
        self._values[place * (len(CODES) + 1) + code] += 1
        if path == "/api/parse":
            self._values[_REQUESTS + next(k for k, bound in enumerate(BOUNDS) if seconds <= bound)] += 1
            self._values[_REQUESTS + len(BOUNDS)] += seconds

    def batch(self, lengths: list[int]) -> None:
        """Sentences of some lengths have been parsed together."""
        self._values[_BATCHES] += 1
        self._values[_SENTENCES] += len(lengths)
        self._values[_WORDS] += sum(lengths)

    def text(self) -> str:
        """All of it, in the text format of Prometheus."""
        values = self._all()
        lines = _described("requests_total", "counter", "Requests by path and status.")
        codes = [*map(str, CODES), "other"]
        for k in range(_REQUESTS):
            if values[k]:
                path, code = PATHS[k // len(codes)], codes[k % len(codes)]
                lines.append(f'spigot_requests_total{{path="{path}",status="{code}"}} {values[k]:.0f}')
        lines += _described("parse_seconds", "histogram", "How long requests to /api/parse took.")
        counts = np.cumsum(values[_REQUESTS : _REQUESTS + len(BOUNDS)])
        for bound, count in zip(BOUNDS, counts, strict=True):
            lines.append(
                f'spigot_parse_seconds_bucket{{le="{"+Inf" if bound == np.inf else f"{bound:g}"}"}} {count:.0f}'
            )
        lines += [
            f"spigot_parse_seconds_sum {values[_REQUESTS + len(BOUNDS)]:.6f}",
            f"spigot_parse_seconds_count {counts[-1]:.0f}",
        ]
        for name, place, meaning in _COUNTERS:
            lines += [*_described(f"{name}_total", "counter", meaning), f"spigot_{name}_total {values[place]:.0f}"]
        lines += _described("requests_in_progress", "gauge", "Requests that are being answered.")
        lines.append(f"spigot_requests_in_progress {values[_PROGRESS]:.0f}")
        lines += _described("info", "gauge", "The version.")
        lines.append(f'spigot_info{{version="{spigot.__version__}"}} 1')
        return "\n".join(lines) + "\n"

    def _all(self) -> np.ndarray:
        """The numbers of all processes; those of one that is gone count, but for what it has not finished."""
        if self._folder is None:
            return self._values
        total = np.zeros(_SIZE)
        for path in self._folder.glob("*.metrics"):
            if path.stat().st_size == total.nbytes:
                values = np.fromfile(path, np.float64)
                values[_PROGRESS] *= _lives(int(path.stem))
                total += values
        return total


def _described(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP spigot_{name} {meaning}", f"# TYPE spigot_{name} {kind}"]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
