"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable

import psutil

_PROBE_SECONDS = 0.02


def wait_until(condition: Callable[[], bool], *, timeout_seconds: float = 30.0) -> None:
    """Return once `condition` holds.

    Raises:
        AssertionError: it did not within the time; that is generous, since nothing is timed here.
    """
    end = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(_PROBE_SECONDS)


def has_ended(pid: int) -> bool:
    """Whether no process of this number runs; one that only waits to be collected has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
