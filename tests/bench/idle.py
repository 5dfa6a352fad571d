"""Processes that have just started: seconds to ready, memory, CPU while nothing is asked."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.models.catalogue import Catalogue
from app.models.weights import cache_folder, fetch_weights
from supplier_agent.identity import load_or_create_key
from tests.bench.measure import (
    Effort,
    Measurement,
    Row,
    at_most,
    median,
    resident_mb,
    run_async,
)
from tests.bench.processes import RELEASE_FILE, open_site
from tests.integration.supplier_agent.gateway import TestGateway
from tests.unit.supplier_agent.samples import AGENT, new_lease, run_message

PERCENT = 100


@dataclass(frozen=True, slots=True)
class Started:
    """A gateway at the moment it is ready."""

    seconds: float
    cpu_seconds: float
    mb: float


def measure_gateway(effort: Effort) -> Sequence[Row]:
    """Return a gateway's boot and its memory when ready."""
    found = []
    with open_site() as site:
        for _ in range(effort.of(5, quick=1)):
            begun = time.perf_counter()
            site.gateway()
            seconds = time.perf_counter() - begun
            process = psutil.Process(site.processes["gateway"].pid)
            cpu = process.cpu_times()
            found.append(Started(seconds, cpu.user + cpu.system, resident_mb(process.pid)))
    return [
        Row(
            name="gateway memory after start",
            measured=median([each.mb for each in found]),
            unit="MB",
            bar=at_most(150),
            note="resident",
        ),
        Row(
            name="gateway boot to ready",
            measured=median([each.seconds for each in found]),
            unit="s",
            bar=at_most(3),
            note=f"of it {median([each.cpu_seconds for each in found]):.2f} s of CPU",
        ),
    ]


@dataclass(frozen=True, slots=True)
class Idle:
    """Memory and CPU share (of one core) of an agent and of its engine."""

    agent_mb: float
    agent_percent: float
    engine_mb: float
    engine_percent: float


async def idle_agent(weights: Path, seconds: float) -> Idle:
    """Start the program with the real engine, run one job, then watch it do nothing."""
    with tempfile.TemporaryDirectory() as folder:
        key_file = Path(folder) / "device.key"
        async with TestGateway(load_or_create_key(key_file).public) as gateway:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", "from supplier_agent.cli import main; main()", "run"),
                *("--gateway", gateway.url, "--agent-id", AGENT, "--key-file", str(key_file)),
                *("--release", str(RELEASE_FILE), "--weights", str(weights)),
                *("--deployment", "demo", "--ask", "0.000001000"),
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                session = await gateway.session()
                await session.offers(4)
                lease = new_lease()
                await session.send(run_message(lease))
                await session.ending(lease)
                return await watch(psutil.Process(process.pid), seconds)
            finally:
                process.kill()
                await process.wait()


async def watch(agent: psutil.Process, seconds: float) -> Idle:
    """Return what agent and engine spend over some seconds."""
    engine = agent.children()[0]
    before = cpu_of(agent), cpu_of(engine)
    await asyncio.sleep(seconds)
    return Idle(
        agent_mb=resident_mb(agent.pid),
        agent_percent=(cpu_of(agent) - before[0]) / seconds * PERCENT,
        engine_mb=resident_mb(engine.pid),
        engine_percent=(cpu_of(engine) - before[1]) / seconds * PERCENT,
    )


def cpu_of(process: psutil.Process) -> float:
    """Return the CPU seconds of a process alone."""
    times = process.cpu_times()
    return float(times.user + times.system)


def measure_agent(effort: Effort) -> Sequence[Row]:
    """Return an idle agent's memory and CPU; its engine is shown beside it."""
    release = Catalogue().get("smollm2-135m-instruct")
    weights = fetch_weights(release, cache_folder(os.environ))
    found = run_async(idle_agent(weights, effort.of(30, quick=5)))
    return [
        Row(name="agent memory", measured=found.agent_mb, unit="MB", bar=at_most(80)),
        Row(
            name="agent idle CPU",
            measured=found.agent_percent,
            unit="% of a core",
            bar=at_most(1),
            note=f"its engine: {found.engine_mb:.0f} MB, {found.engine_percent:.1f} %",
        ),
    ]


def measure_demo(effort: Effort) -> Sequence[Row]:
    """Return the demonstration's time; the median of its runs, all after a first one."""
    command = [sys.executable, "-m", "app.cli", "demo", "--json"]
    seconds = []
    for _ in range(effort.of(3, quick=1) + 1):
        ended = subprocess.run(command, check=True, capture_output=True, timeout=300)
        seconds.append(float(json.loads(ended.stdout)["seconds"]))
    return [
        Row(
            name="demo, warm",
            measured=median(seconds[1:]),
            unit="s",
            note=f"three tasks of the real model; first run here {seconds[0]:.1f} s",
        )
    ]


MEASUREMENTS = (
    Measurement("gateway", measure_gateway),
    Measurement("agent", measure_agent),
    Measurement("demo", measure_demo),
)
