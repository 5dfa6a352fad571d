"""A background loop: one piece of work again and again, whatever becomes of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

FINISH_SECONDS = 5.0
"""How long a round under way may take to end when its loop is cancelled."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Periodic:
    """Work that is done once and then every `interval_seconds` after it has finished."""

    name: str
    interval_seconds: float
    run_once: Callable[[], Awaitable[object]]

    async def run(self) -> None:
        """Run until cancelled; a failed round is logged and the next one tried.

        A cancelled loop lets its round end first. Cutting a round off while it connects would
        leave a half-open connection, which Postgres keeps for its authentication time-out: 60 s
        in which the database can be neither dropped nor stopped (seen in the tests).
        """
        while True:
            work = asyncio.create_task(self._round(), name=self.name)
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                await asyncio.wait([work], timeout=FINISH_SECONDS)
                work.cancel()
                raise
            await asyncio.sleep(self.interval_seconds)

    async def _round(self) -> None:
        try:
            await self.run_once()
        except Exception:
            log.exception("background work failed", work=self.name)
