"""Puts an agent together from its settings, and runs it until a signal."""

import asyncio
import signal
from collections.abc import Callable

import structlog
import uvloop

from supplier_agent.agent import Agent, Terms
from supplier_agent.config import AgentSettings
from supplier_agent.engine.attached import Attached
from supplier_agent.engine.child import LlamaChild, LlamaChildOptions
from supplier_agent.engine.llamacpp import Host, LlamaCpp
from supplier_agent.engine.outcome import Deadlines
from supplier_agent.identity import load_or_create_key
from supplier_agent.metering import Meter
from supplier_agent.release import Release, load_release
from supplier_agent.session import Caller
from supplier_agent.slots import Limits, SlotTable
from supplier_agent.workbench import Offer, Workbench


def build_agent(settings: AgentSettings, *, unix_now: Callable[[], float]) -> Agent:
    """Return an agent that is ready to run; must be called inside a running event loop.

    Raises:
        BadKeyFile, BadRelease: see there.
    """
    key = load_or_create_key(settings.key_file)
    release = load_release(settings.release)
    engine = LlamaCpp(
        _host(settings, release), release, weights=settings.weights, deadlines=Deadlines()
    )
    bench = Workbench(
        Offer(settings.deployment, release.id, settings.slots),
        engine,
        SlotTable(Limits(slots=settings.slots)),
        Meter(key, release.fingerprint),
    )
    terms = Terms(
        deployment=settings.deployment,
        release=release.id,
        release_fingerprint=release.fingerprint,
        capacity_class=settings.capacity_class,
        region=settings.region,
        ask_nano_per_slot_second=settings.ask_nano_per_slot_second,
        drain_seconds=settings.drain_seconds,
    )
    return Agent(
        caller=Caller(url=settings.connect_url, agent_id=settings.agent_id, key=key),
        terms=terms,
        engine=engine,
        bench=bench,
        unix_now=unix_now,
    )


def run_agent(settings: AgentSettings, *, unix_now: Callable[[], float]) -> None:
    """Run until SIGTERM or SIGINT; a second signal ends it at once.

    Raises:
        AgentError: what it cannot start or go on with.
        CancelledError: a second signal came.
    """
    uvloop.run(_run(settings, unix_now))


async def _run(settings: AgentSettings, unix_now: Callable[[], float]) -> None:
    loop = asyncio.get_running_loop()
    agent = build_agent(settings, unix_now=unix_now)
    running = asyncio.current_task()
    assert running is not None
    signalled = 0

    def on_signal() -> None:
        nonlocal signalled
        signalled += 1
        structlog.get_logger("offpeak.agent").info("stopping", signals=signalled)
        if signalled == 1:
            agent.stop()
        else:
            running.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    await agent.run()


def _host(settings: AgentSettings, release: Release) -> Host:
    if settings.engine_url is not None:
        return Attached(settings.engine_url)
    assert settings.weights is not None
    return LlamaChild(
        LlamaChildOptions(
            weights=settings.weights,
            name=release.id,
            slots=settings.slots,
            context_tokens=release.context_tokens,
            threads=settings.threads,
        )
    )
