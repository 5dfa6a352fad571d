"""A background loop: one piece of work again and again, whatever becomes of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Periodic:
    """Work that is done once and then every `interval_seconds` after it has finished."""

    name: str
    interval_seconds: float
    run_once: Callable[[], Awaitable[object]]

    async def run(self) -> None:
        """Run until cancelled; a failed round is logged and the next one tried."""
        while True:
            try:
                await self.run_once()
            except Exception:
                log.exception("background work failed", work=self.name)
            await asyncio.sleep(self.interval_seconds)
