"""A test that hangs ends its process, and none pays for that."""

import pytest

from tests import conftest


def test_the_watchdog_counts_anew_now_and_then_and_after_every_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    now, counted = 100.0, list[tuple[float, bool]]()
    monkeypatch.setattr(conftest.time, "monotonic", lambda: now)
    monkeypatch.setattr(
        conftest.faulthandler, "dump_traceback_later", lambda seconds, exit, file: counted.append((seconds, exit))
    )
    monkeypatch.setattr(conftest.faulthandler, "cancel_dump_traceback_later", lambda: None)
    dog = conftest.Watchdog()
    for later, times in ((0, 1), (conftest.OFTEN / 2, 1), (conftest.OFTEN / 2, 2), (1, 2)):
        now += later
        next(dog.pytest_runtest_protocol())
        assert len(counted) == times
    dog.pytest_exception_interact()
    next(dog.pytest_runtest_protocol())
    dog.pytest_unconfigure()
    assert counted == [(conftest.HANGS + conftest.OFTEN, True)] * 3
