"""Keeps an engine running: start, probe, watch, and again with growing pauses."""

import asyncio
import random
from collections.abc import Callable

import structlog

from supplier_agent.engine.llamacpp import LlamaCpp
from supplier_agent.engine.outcome import EngineFailed, Speeds

_FIRST_PAUSE_SECONDS = 0.5
_LAST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0
"""An engine that ran this long starts again with the first pause."""

_log = structlog.get_logger("offpeak.engine")


async def keep(engine: LlamaCpp, *, on_ready: Callable[[Speeds], None]) -> None:
    """Run the engine until this task is cancelled, then stop it.

    Raises:
        WrongWeights, CanaryFailed: it must not be served; starting again would not help.
    """
    loop = asyncio.get_running_loop()
    pause = _FIRST_PAUSE_SECONDS
    try:
        await engine.prepare()
        while True:
            began = loop.time()
            reason = await _run_once(engine, on_ready)
            await engine.stop(reason)
            if loop.time() - began > _STEADY_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            _log.warning("engine ended", reason=reason, restart_seconds=pause)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause = min(pause * 2, _LAST_PAUSE_SECONDS)
    finally:
        await engine.stop()


async def _run_once(engine: LlamaCpp, on_ready: Callable[[Speeds], None]) -> str:
    """Serve until the engine is lost; return why."""
    try:
        await engine.start()
        on_ready(await engine.probe())
    except EngineFailed as error:
        return str(error)
    return await engine.lost()
