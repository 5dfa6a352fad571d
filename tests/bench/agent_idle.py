"""What an idle agent costs its host: resident memory in MB and percent of one core.

Without its engine, which is a process of its own; its share is shown beside it. Run from the
repository's root, with OFFPEAK_WEIGHTS naming the GGUF file:
`python -m tests.bench.agent_idle [--seconds 30] [--json]`.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from supplier_agent.identity import load_or_create_key
from tests.integration.supplier_agent.gateway import TestGateway
from tests.unit.supplier_agent.samples import AGENT, new_lease, run_message

RELEASE = "app/models/releases/smollm2-135m-instruct/release.json"


@dataclass(frozen=True, slots=True)
class Figures:
    """MB are 10^6 bytes of resident set; percents are of one core."""

    agent_mb: float
    agent_percent: float
    engine_mb: float
    engine_percent: float
    seconds: float


async def measure(weights: Path, seconds: float) -> Figures:
    """Start the program, run one job, then watch it do nothing."""
    with tempfile.TemporaryDirectory() as folder:
        key_file = Path(folder) / "device.key"
        async with TestGateway(load_or_create_key(key_file).public) as gateway:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", "from supplier_agent.cli import main; main()", "run"),
                *("--gateway", gateway.url, "--agent-id", AGENT, "--key-file", str(key_file)),
                *("--release", RELEASE, "--weights", str(weights)),
                *("--deployment", "demo", "--ask", "0.000001000"),
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                session = await gateway.session()
                await session.offers(4)
                lease = new_lease()
                await session.send(run_message(lease))
                await session.ending(lease)
                return await _watch(psutil.Process(process.pid), seconds)
            finally:
                process.kill()
                await process.wait()


async def _watch(agent: psutil.Process, seconds: float) -> Figures:
    engine = agent.children()[0]
    before = [_cpu(agent), _cpu(engine)]
    await asyncio.sleep(seconds)
    used = [_cpu(agent) - before[0], _cpu(engine) - before[1]]
    return Figures(
        agent_mb=agent.memory_info().rss / 1e6,
        agent_percent=100 * used[0] / seconds,
        engine_mb=engine.memory_info().rss / 1e6,
        engine_percent=100 * used[1] / seconds,
        seconds=seconds,
    )


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = asyncio.run(measure(Path(os.environ["OFFPEAK_WEIGHTS"]), options.seconds))
    if options.json:
        print(json.dumps(asdict(figures)))
        return
    print(f"agent   {figures.agent_mb:6.1f} MB (bar 80)  {figures.agent_percent:5.2f} % (bar 1)")
    print(f"engine  {figures.engine_mb:6.1f} MB           {figures.engine_percent:5.2f} %")


if __name__ == "__main__":
    main()
