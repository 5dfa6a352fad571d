"""The processes of the all-in-one beside its engines: how they run, and when they are ready."""

import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import httpx

import app
from app.embedded.development import SECRETS, DevelopmentHome
from app.embedded.engines import Engines
from app.embedded.errors import ExitedEarly
from app.embedded.loopback import LOOPBACK, free_port
from app.embedded.supervisor import ChildProcess, Command
from app.embedded.weights import Say
from app.models.catalogue import Catalogue

RELEASE: Final = "smollm2-135m-instruct"
REGION: Final = "local"
ASK: Final = "0.000002000"
"""What the development supplier asks for a slot-second, in tokens."""
READY_SECONDS: Final = 60.0
PROBE_SECONDS: Final = 2.0
BETWEEN_PROBES_SECONDS: Final = 0.1
GRACE_SECONDS: Final = 15.0
_ROOT: Final = Path(app.__file__).resolve().parents[1]
_AGENT: Final = "from supplier_agent.cli import main; main()"


def service_commands(
    home: DevelopmentHome, environment: Mapping[str, str], *, persistent: bool
) -> tuple[Command, Command]:
    """Return how gateway and worker run."""
    gateway = _python(home, "gateway", environment, "-m", "app.cli", "serve")
    worker = _python(home, "worker", environment, "-m", "app.cli", "work")
    if not persistent:  # the gateway's guard, the last to end, removes it even when we are killed
        gateway = replace(gateway, remove=home.path)
    return gateway, worker


def chosen_port(wanted: int) -> int:
    """Return the wanted port of the loopback, or a free one for 0 or one that is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError:
            return free_port()
    return wanted or free_port()


def settled_port(wanted: int, say: Say) -> int:
    """Return `chosen_port`, saying so when it is another than the one that was wanted."""
    port = chosen_port(wanted)
    if wanted not in (0, port):
        say(f"port {wanted} is taken: using {port}")
    return port


def gateway_environment(home: DevelopmentHome, engines: Engines, port: int) -> dict[str, str]:
    """Return what gateway and worker must have set; other OFFPEAK_ variables of ours stay.

    Keys are named by file, never by value.
    """
    environment = {
        "OFFPEAK_ENVIRONMENT": "development",
        "OFFPEAK_DATABASE_URL": engines.database_url,
        "OFFPEAK_REDIS_URL": engines.redis_url,
        "OFFPEAK_HOST": LOOPBACK,
        "OFFPEAK_PORT": str(port),
        "OFFPEAK_PUBLIC_URL": f"http://{LOOPBACK}:{port}",
    }
    for name in SECRETS:
        environment[f"OFFPEAK_{name.upper()}_FILE"] = str(home.secret_file(name))
    return environment


def agent_command(
    home: DevelopmentHome, url: str, agent_id: str, weights: Path, *, slots: int
) -> Command:
    """Return how the agent runs: one deployment of the release, on llama.cpp, in this machine."""
    release = Catalogue()
    arguments = {
        "--gateway": url,
        "--agent-id": agent_id,
        "--key-file": str(home.device_key),
        "--release": str(release.folder_of(release.get(RELEASE)) / "release.json"),
        "--weights": str(weights),
        "--deployment": "local",
        "--region": REGION,
        "--ask": ASK,
        "--slots": str(slots),
    }
    flat = [part for pair in arguments.items() for part in pair]
    return _python(home, "agent", {}, "-c", _AGENT, "run", "--json", *flat)


def wait_until_listening(url: str, gateway: ChildProcess) -> None:
    """Return once the gateway answers, so that the agent's first dial is not in vain.

    Raises:
        ExitedEarly: it ended. StartTimeout: it took too long.
    """
    with httpx.Client(base_url=url, timeout=PROBE_SECONDS) as http:

        def alive() -> bool:
            try:
                return http.get("/healthz").is_success
            except httpx.HTTPError:
                return False

        gateway.wait_ready(alive, timeout_seconds=READY_SECONDS)


def wait_until_offered(url: str, processes: tuple[ChildProcess, ...], *, slots: int) -> None:
    """Return once the gateway is ready and quotes can be had for all slots of the agent.

    Raises:
        ExitedEarly: one of the processes ended. StartTimeout: it took too long.
    """
    with httpx.Client(base_url=url, timeout=PROBE_SECONDS) as http:

        def offered() -> bool:
            for process in processes[1:]:
                status = process.status()
                if status is not None:
                    name = process.command.name
                    raise ExitedEarly(name, status=status, log_tail=process.log_tail())
            ready = _slots_on_offer(http) >= slots
            if not ready:
                time.sleep(BETWEEN_PROBES_SECONDS)  # each probe costs the gateway two requests
            return ready

        processes[0].wait_ready(offered, timeout_seconds=READY_SECONDS)


def _slots_on_offer(http: httpx.Client) -> int:
    try:
        models = http.get("/v1/models").raise_for_status().json()
        capacity = http.get("/v1/capacity").raise_for_status().json()
    except httpx.HTTPError:
        return 0
    if not any(region["available"] for each in models["models"] for region in each["regions"]):
        return 0
    return sum(each["offered"] for each in capacity["capacity"])


def _python(home: DevelopmentHome, name: str, extra: Mapping[str, str], *argv: str) -> Command:
    return Command(
        name=name,
        argv=(sys.executable, *argv),
        log=home.logs / f"{name}.log",
        cwd=home.path,
        env={**os.environ, "PYTHONPATH": str(_ROOT), **extra},
        grace_seconds=GRACE_SECONDS,
    )
