"""Dispatch put together: what a gateway starts, serves, and closes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from app.dispatch.dispatcher import Dispatcher, DispatchParts
from app.dispatch.endings import Endings
from app.dispatch.endpoints import AgentEndpoint
from app.dispatch.loop import DispatchLoop
from app.dispatch.metrics import DispatchMetrics
from app.dispatch.outcomes import Outcomes
from app.dispatch.queue import QueueLoop
from app.dispatch.work import ServedRelease, SlotSpeeds
from app.jobs.waiters import JobWaiters
from app.kit.ids import IdSource
from app.models.catalogue import Catalogue
from app.models.release import ModelRelease
from app.receipts.service import RecordService


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchNeeds:
    """What dispatch shares with the rest of the gateway."""

    records: RecordService
    waiters: JobWaiters
    metrics: DispatchMetrics
    ids: IdSource
    settle_queue_length: int = 2_000
    drain_seconds: float = 30.0


class DispatchService:
    """One replica's dispatch: `dispatcher` for accepting, `endpoint` for the agents' socket."""

    def __init__(self, replica: str, parts: DispatchParts, needs: DispatchNeeds) -> None:
        self.dispatcher = Dispatcher(replica, parts)
        self._endings = Endings(
            parts.database,
            needs.records,
            needs.ids,
            market=parts.market,
            queue_length=needs.settle_queue_length,
        )
        self.outcomes = Outcomes(self.dispatcher, self._endings, needs.waiters, needs.metrics)
        self.endpoint = AgentEndpoint(self.outcomes, needs.ids)
        self.loop = DispatchLoop(parts.database, self.outcomes)
        self.queue = QueueLoop(parts.database, self.outcomes)
        self._drain_seconds = needs.drain_seconds
        needs.metrics.watch(
            "agent_sessions", "Agents connected here.", lambda: len(self.dispatcher.sessions)
        )
        needs.metrics.watch(
            "idle_sessions",
            "Agents connected here that get no work, each told why.",
            lambda: sum(bool(one.reason) for one in self.dispatcher.sessions.values()),
        )
        needs.metrics.watch(
            "running_attempts", "Attempts of this replica.", lambda: len(self.dispatcher.attempts)
        )

    async def run(self) -> None:
        """Run the loops until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.loop.run())
            tasks.create_task(self.queue.run())

    async def drain(self) -> None:
        """Let running attempts settle; agents with nothing left to do go elsewhere at once."""
        await self.dispatcher.drain(timeout_seconds=self._drain_seconds)

    async def close(self) -> None:
        """Finish what is being booked, hand the rest over, close the agents' sockets."""
        await self.dispatcher.close(timeout_seconds=self._drain_seconds)
        await self._endings.drain()


def served_releases(
    catalogue: Catalogue,
    count_text: Callable[[ModelRelease], Callable[[str], int]],
    priced: SlotSpeeds,
) -> dict[str, ServedRelease]:
    """Return every approved release as dispatch needs it, with its token counter."""
    return {
        release.id: ServedRelease(release.id, release.fingerprint, count_text(release), priced)
        for release in catalogue
    }
