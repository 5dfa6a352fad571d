"""The fault engine, the real engine and an agent around either, for each test."""

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from app.models.catalogue import Catalogue
from app.models.weights import cache_folder, fetch_weights
from supplier_agent.agent import Agent, Terms
from supplier_agent.engine.attached import Attached
from supplier_agent.engine.child import LlamaChild, LlamaChildOptions
from supplier_agent.engine.faults import FaultEngine
from supplier_agent.engine.llamacpp import LlamaCpp
from supplier_agent.engine.outcome import Deadlines
from supplier_agent.identity import DeviceKey
from supplier_agent.metering import Meter
from supplier_agent.release import Release, load_release
from supplier_agent.session import Caller
from supplier_agent.slots import Limits, SlotTable
from supplier_agent.workbench import Offer, Workbench
from tests.integration.supplier_agent.gateway import GatewaySession, TestGateway
from tests.unit.supplier_agent.samples import AGENT

RELEASE = Path("app/models/releases/smollm2-135m-instruct/release.json")
KEY = DeviceKey(b"k" * 32)
SHORT = Deadlines(connect=2.0, first_token=3.0, between_tokens=1.0, confirm=0.5, start=20.0)


@pytest.fixture(scope="session")
def weights() -> Path:
    """The model's weights, fetched once into the cache that the product uses."""
    catalogue = Catalogue()
    given = os.environ.get("OFFPEAK_WEIGHTS")
    if given is not None:
        folder = Path(given)
        return folder if folder.is_file() else next(folder.glob("*.gguf"))
    return fetch_weights(catalogue.get("smollm2-135m-instruct"), cache_folder(os.environ))


@pytest.fixture
def small_release(tmp_path: Path) -> Path:
    """A release document for the fault engine, with files that exist."""
    gguf = tmp_path / "tiny.gguf"
    gguf.write_bytes(b"tiny")
    document = {
        "id": "smollm2-135m-instruct",
        "revision": "0x00",
        "files": [{"name": gguf.name, "sha256": hashlib.sha256(b"tiny").hexdigest(), "size": 4}],
        "context_tokens": 2048,
        "canary": {
            "messages": [{"role": "user", "content": "Count."}],
            "max_output_tokens": 8,
            "answer": "1 2 3",
        },
    }
    path = tmp_path / "release.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@dataclass(slots=True)
class Served:
    """The fault engine on a loopback port of this process."""

    engine: FaultEngine
    url: str


@pytest.fixture
async def faults(small_release: Path) -> AsyncIterator[Served]:
    engine = FaultEngine(canary=load_release(small_release).canary)
    runner = web.AppRunner(
        engine.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield Served(engine, f"http://{host}:{port}")
    await runner.cleanup()


@dataclass(slots=True)
class Rig:
    """A running agent, its parts, and the session it has opened."""

    gateway: TestGateway
    agent: Agent
    engine: LlamaCpp
    table: SlotTable
    session: GatewaySession
    running: asyncio.Task[None]
    child: LlamaChild | None = None


@dataclass(frozen=True, slots=True)
class RigOptions:
    """What differs between rigs."""

    deadlines: Deadlines = SHORT
    slots: int = 4
    limits: Limits = field(default_factory=lambda: Limits(slots=4))
    drain_seconds: float = 20.0


MakeRig = Callable[[LlamaCpp, Release, RigOptions], Awaitable[Rig]]


@pytest.fixture
async def make_rig() -> AsyncIterator[MakeRig]:
    """Starts an agent against a test gateway and waits for its session."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(engine: LlamaCpp, release: Release, options: RigOptions) -> Rig:
            gateway = await stack.enter_async_context(TestGateway(KEY.public))
            table = SlotTable(options.limits)
            bench = Workbench(
                Offer("demo", release.id, options.slots),
                engine,
                table,
                Meter(KEY, release.fingerprint),
            )
            agent = Agent(
                caller=Caller(url=gateway.url, agent_id=AGENT, key=KEY),
                terms=Terms(
                    deployment="demo",
                    release=release.id,
                    release_fingerprint=release.fingerprint,
                    capacity_class="flexible",
                    region="local",
                    ask_nano_per_slot_second=1000,
                    drain_seconds=options.drain_seconds,
                ),
                engine=engine,
                bench=bench,
                unix_now=lambda: 2_000_000_000.0,
            )
            running = asyncio.create_task(agent.run())
            stack.push_async_callback(_end, running)
            session = await gateway.session()
            return Rig(gateway, agent, engine, table, session, running)

        yield make


async def _end(running: "asyncio.Task[None]") -> None:
    running.cancel()
    await asyncio.wait((running,))


@pytest.fixture
async def rig(faults: Served, small_release: Path, make_rig: MakeRig) -> Rig:
    """An agent attached to the fault engine, with four slots on offer."""
    release = load_release(small_release)
    engine = LlamaCpp(Attached(faults.url), release, weights=None, deadlines=SHORT)
    made = await make_rig(engine, release, RigOptions())
    await made.session.offers(4)
    return made


@pytest.fixture
async def real_rig(weights: Path, make_rig: MakeRig) -> Rig:
    """An agent with the real llama.cpp server as its child."""
    release = load_release(RELEASE)
    child = LlamaChild(
        LlamaChildOptions(
            weights=weights, name=release.id, slots=4, context_tokens=release.context_tokens
        )
    )
    engine = LlamaCpp(child, release, weights=weights, deadlines=Deadlines())
    made = await make_rig(engine, release, RigOptions(deadlines=Deadlines()))
    made.child = child
    await made.session.offers(4)
    return made
