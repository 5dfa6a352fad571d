"""The real agent over an engine that misbehaves, against a real gateway."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web

from app.jobs.content import open_answer
from supplier_agent.agent import Agent, Terms
from supplier_agent.engine.attached import Attached
from supplier_agent.engine.faults import Fault, FaultEngine
from supplier_agent.engine.llamacpp import LlamaCpp
from supplier_agent.engine.outcome import Deadlines
from supplier_agent.metering import Meter
from supplier_agent.release import Release, load_release
from supplier_agent.session import Caller
from supplier_agent.slots import Limits, SlotTable
from supplier_agent.workbench import Offer, Workbench
from tests.integration.dispatch.gateways import Gateway, World, gateway
from tests.integration.dispatch.test_recovery import impatient
from tests.integration.seed import SeededAgent, Wallet, register_agent

RELEASE = Path("app/models/releases/smollm2-135m-instruct/release.json")
SHORT = Deadlines(connect=2.0, first_token=0.5, between_tokens=0.5, confirm=0.5, start=20.0)
SLOTS = 4
StartAgent = Callable[[Gateway], Awaitable[SeededAgent]]

FREE = {
    Fault.BUSY: False,
    Fault.REFUSE: False,
    Fault.ERROR_EVENT: True,
    Fault.ABORT: True,
    Fault.NO_USAGE: True,
    Fault.NO_DONE: True,
    Fault.WRONG_INPUT: True,
    Fault.SILENCE: True,
    Fault.SILENT_PINGS: True,
    Fault.DROP: True,
    Fault.HUGE: True,
    Fault.GARBAGE: True,
    Fault.SERVER_ERROR: True,
}
"""Faults after which the buyer pays nothing, and whether they count against the agent."""


@pytest.fixture
def release() -> Release:
    return load_release(RELEASE)


@pytest.fixture
async def engine_url(release: Release) -> AsyncIterator[str]:
    engine = FaultEngine(slots=SLOTS, canary=release.canary)
    runner = web.AppRunner(
        engine.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


@pytest.fixture
async def start_agent(world: World, release: Release, engine_url: str) -> AsyncIterator[StartAgent]:
    """Starts a real agent and returns once its slots can be leased."""
    async with AsyncExitStack() as stack:

        async def start(replica: Gateway) -> SeededAgent:
            seeded = await register_agent(world.database)
            agent = build(replica, seeded, release, engine_url)
            running = asyncio.create_task(agent.run())
            stack.push_async_callback(end, running)
            await world.until(
                "SELECT coalesce((SELECT offered = 4 FROM offpeak.deployment"
                " WHERE agent_id = :id), false)",
                id=seeded.agent_id,
            )
            return seeded

        yield start


def build(replica: Gateway, seeded: SeededAgent, release: Release, engine_url: str) -> Agent:
    engine = LlamaCpp(Attached(engine_url), release, weights=None, deadlines=SHORT)
    bench = Workbench(
        Offer("gpu0", release.id, SLOTS),
        engine,
        SlotTable(Limits(slots=SLOTS)),
        Meter(seeded.key, release.fingerprint),
    )
    return Agent(
        caller=Caller(
            url=f"{replica.url}/v1/agents/connect",
            agent_id=f"agent_{seeded.agent_id}",
            key=seeded.key,
        ),
        terms=Terms(
            deployment="gpu0",
            release=release.id,
            release_fingerprint=release.fingerprint,
            capacity_class="flexible",
            region=replica.world.region,
            ask_nano_per_slot_second=1_000,
            drain_seconds=1.0,
        ),
        engine=engine,
        bench=bench,
        unix_now=lambda: 4_000_000_000.0,
    )


async def end(running: "asyncio.Task[None]") -> None:
    running.cancel()
    await asyncio.wait((running,))


async def faults_of(world: World, agent: SeededAgent) -> Any:
    row = await world.row("SELECT faults FROM offpeak.agent WHERE id = :id", id=agent.agent_id)
    return row["faults"]


async def test_a_real_agents_answer_is_settled(
    world: World, replica: Gateway, wallet: Wallet, start_agent: StartAgent
) -> None:
    agent = await start_agent(replica)
    placed = await world.accept(wallet, prompt="Say five words please", input_tokens=4)
    replica.start(placed)
    assert await replica.waiters.wait(placed.job_id, 20)
    job = await world.job(placed.job_id)
    assert job["state"] == "completed"
    assert isinstance(job["result"], bytes)
    answer = open_answer(world.cipher, placed.job_id, job["result"])
    assert answer.content == " one two three four five"
    signed = await replica.records.signed(placed.job_id)
    assert signed is not None
    assert (signed.record.input_tokens, signed.record.output_tokens) == (4, 6)
    assert await faults_of(world, agent) == 0


@pytest.mark.parametrize("fault", FREE, ids=str)
async def test_a_faulty_engine_costs_the_buyer_nothing(
    world: World, wallet: Wallet, start_agent: StartAgent, fault: Fault
) -> None:
    patient = dataclasses.replace(impatient(world).limits, accept_seconds=2, stall_seconds=10)
    shared = dataclasses.replace(world, limits=patient)
    async with gateway(shared, f"one-{world.region}") as replica:
        agent = await start_agent(replica)
        placed = await world.accept(wallet, prompt=f"[[fault:{fault}]] now", input_tokens=2)
        replica.start(placed)
        assert await replica.waiters.wait(placed.job_id, 20)
        job = await world.job(placed.job_id)
        assert job["state"] == "failed"
        signed = await replica.records.signed(placed.job_id)
        assert signed is not None
        assert signed.record.charge_nano == 0
        assert signed.record.released_nano == placed.max_charge
        if FREE[fault]:
            await world.until(
                "SELECT faults > 0 FROM offpeak.agent WHERE id = :id", id=agent.agent_id
            )
        else:
            assert await faults_of(world, agent) == 0


@pytest.mark.parametrize("fault", [*FREE, Fault.NONE], ids=str)
async def test_no_log_of_agent_or_gateway_carries_a_prompt_or_an_answer(
    world: World,
    wallet: Wallet,
    start_agent: StartAgent,
    fault: Fault,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    secret = "quetzalcoatlus"
    patient = dataclasses.replace(impatient(world).limits, accept_seconds=2, stall_seconds=10)
    shared = dataclasses.replace(world, limits=patient)
    with structlog.testing.capture_logs() as logs:
        async with gateway(shared, f"one-{world.region}") as replica:
            await start_agent(replica)
            prompt = f"[[fault:{fault}]] {secret}"
            placed = await world.accept(wallet, prompt=prompt, input_tokens=2)
            replica.start(placed)
            assert await replica.waiters.wait(placed.job_id, 20)
    written = repr(logs) + caplog.text + "".join(capfd.readouterr())
    assert "agent session ended" in written
    assert secret not in written
    assert "two three" not in written


async def test_an_engine_that_inflates_its_usage_is_paid_by_our_count_and_flagged(
    world: World, replica: Gateway, wallet: Wallet, start_agent: StartAgent
) -> None:
    agent = await start_agent(replica)
    placed = await world.accept(
        wallet, prompt="[[fault:inflated-usage]] now", input_tokens=2, max_output=64
    )
    replica.start(placed)
    assert await replica.waiters.wait(placed.job_id, 20)
    signed = await replica.records.signed(placed.job_id)
    assert signed is not None
    assert signed.record.output_tokens == 6 + 3
    await world.until("SELECT faults = 1 FROM offpeak.agent WHERE id = :id", id=agent.agent_id)
