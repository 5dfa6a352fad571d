"""A gateway process: seconds from its start to ready, and resident memory when it is.

Bars: ready within 3 s, at most 150 MB. Run from the repository's root:
`python -m tests.bench.gateway_idle [--rounds 3] [--json]`.
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import httpx
import psutil

from app.embedded.loopback import free_port
from app.embedded.valkey import EmbeddedValkey
from tests.engines import RunningCluster

PROBE_SECONDS = 0.02
GIVE_UP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians; MB are 10^6 bytes of resident set."""

    ready_seconds: float
    ready_cpu_seconds: float
    resident_mb: float
    rounds: int


def one_round(settings: dict[str, str]) -> tuple[float, float, float]:
    """Start a gateway, wait until it is ready, and read its figures."""
    port = str(free_port())
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "serve"],
        env={**os.environ, **settings, "OFFPEAK_PORT": port},
        stderr=subprocess.DEVNULL,
    )
    try:
        while not is_ready(port):
            assert time.monotonic() - started < GIVE_UP_SECONDS, "the gateway never became ready"
            time.sleep(PROBE_SECONDS)
        seen = psutil.Process(process.pid)
        cpu = seen.cpu_times()
        seconds = time.monotonic() - started
        return seconds, cpu.user + cpu.system, seen.memory_info().rss / 1e6
    finally:
        process.terminate()
        process.wait()


def is_ready(port: str) -> bool:
    """Return whether the gateway says it is."""
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/readyz")
        return bool(answer.json()["status"] == "ready")
    except (httpx.HTTPError, ValueError):
        return False


def measure(rounds: int) -> Figures:
    """Return the medians over some rounds on one Postgres and Valkey."""
    cluster = RunningCluster()
    try:
        with EmbeddedValkey.start() as valkey:
            settings = {
                "OFFPEAK_DATABASE_URL": cluster.cluster.create(),
                "OFFPEAK_REDIS_URL": valkey.url,
                "OFFPEAK_SIGNING_KEY": secrets.token_hex(32),
                "OFFPEAK_CONTENT_KEY": secrets.token_hex(32),
            }
            found = [one_round(settings) for _ in range(rounds)]
    finally:
        cluster.stop()
    ready, cpu, resident = (median([each[index] for each in found]) for index in range(3))
    return Figures(ready, cpu, resident, rounds)


def median(values: Sequence[float]) -> float:
    """Return the middle value, rounded for reading."""
    return round(sorted(values)[len(values) // 2], 2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures = asdict(measure(given.rounds))
    if given.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
