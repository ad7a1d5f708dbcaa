"""Settings shared by all tests: seeds, threads, hypothesis, and an end to what hangs."""

import faulthandler
import getpass
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import torch

# What torch.compile builds for one instruction set is not valid for another, and its own folder mixes them.
_COMPILED = f"torchinductor_{getpass.getuser()}_{torch.backends.cpu.get_cpu_capability()}"
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(tempfile.gettempdir()) / _COMPILED))

# One thread for each process of tests, and for those that it begins: tensors are small, cores as many as processes, and
# threads that wait for one that has none spin: some files took many times as long where something else ran beside.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

# An environment that is activated may be another than the one that runs the tests, of which IPython would warn.
os.environ.pop("VIRTUAL_ENV", None)

hypothesis.settings.register_profile("spigot", deadline=None, derandomize=True, max_examples=30, database=None)
hypothesis.settings.load_profile("spigot")


HANGS = 480.0  # seconds that no test takes; the longest took 222 where ten processes shared two cores
OFTEN = 30.0


class Watchdog:
    """Ends a process of tests in which one hangs, also in a kernel that lets nobody else run, and says where.

    It is told of each test, and starts to count anew every now and then: to do so at each is a thread begun and waited
    for, twelve thousand times, which on a busy machine takes minutes.
    """

    def __init__(self) -> None:
        self._screen = os.dup(2)  # while nobody has taken that over
        self._told = -OFTEN

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        if time.monotonic() - self._told >= OFTEN:
            self._told = time.monotonic()
            faulthandler.dump_traceback_later(HANGS + OFTEN, exit=True, file=self._screen)
        return (yield)

    def pytest_exception_interact(self) -> None:
        self._told = -OFTEN  # pytest stops all counting then

    def pytest_unconfigure(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        os.close(self._screen)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Watchdog())


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: one that begins last would keep one core busy and leave the other idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
