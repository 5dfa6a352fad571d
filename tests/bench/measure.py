"""What measurements are made of: rows with bars, CPU of processes, medians, interleaved rounds.

Wall-clock rates are noisy on shared machines, so rows are CPU per operation, ratios of two things
done in turn in one run, or counts of bytes.
"""

import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import psutil
import uvloop

Result = TypeVar("Result")
Rule = Literal["at most", "at least"]
MICRO = 1e6
MILLI = 1e3


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure has to reach."""

    rule: Rule
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure; without a bar it explains another."""

    name: str
    measured: float
    unit: str
    bar: Bar | None = None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is reached; None without one."""
        if self.bar is None:
            return None
        above = self.measured - self.bar.value
        return above <= 0 if self.bar.rule == "at most" else above >= 0


def at_most(value: float) -> Bar:
    """Return a bar that is a ceiling."""
    return Bar("at most", value)


def at_least(value: float) -> Bar:
    """Return a bar that is a floor."""
    return Bar("at least", value)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured; `quick` shows that everything runs, its figures are rough."""

    quick: bool = False

    def of(self, full: int, *, quick: int) -> int:
        """Return the count to use."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Measurement:
    """A named measurement that gives one or more rows."""

    name: str
    run: Callable[[Effort], Sequence[Row]]


def run_async(work: Coroutine[object, object, Result]) -> Result:
    """Run on the event loop that the gateway serves with."""
    return uvloop.run(work)


@dataclass(slots=True)
class Spent:
    """CPU and wall seconds of a block, once it has ended."""

    cpu: float = 0.0
    wall: float = 0.0


@contextmanager
def own_cpu() -> Iterator[Spent]:
    """Account for what this process spends in the block."""
    spent = Spent()
    cpu, wall = time.process_time(), time.perf_counter()
    yield spent
    spent.cpu, spent.wall = time.process_time() - cpu, time.perf_counter() - wall


def tree_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and all below it, ended children included.

    Its clock ticks 100 times a second in each process: measure seconds, not milliseconds.
    """
    total = 0.0
    root = psutil.Process(pid)
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def resident_mb(pid: int) -> float:
    """Return the resident set of one process in 10^6 bytes."""
    return int(psutil.Process(pid).memory_info().rss) / MICRO


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that `percent` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    """Return the wall seconds of one awaited call."""
    begun = time.perf_counter()
    await call()
    return time.perf_counter() - begun


def cpu_per_call(call: Callable[[], object], *, calls: int, rounds: int = 5) -> float:
    """Return CPU seconds of one call: the median of rounds' means."""
    found = []
    for _ in range(rounds):
        with own_cpu() as spent:
            for _ in range(calls):
                call()
        found.append(spent.cpu / calls)
    return median(found)
