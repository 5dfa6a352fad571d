"""Who waits for which job to end, and how they hear of it.

Woken at once by this process, by Valkey from another one, and in any case by a look at Postgres
once a second, in one query for all that wait.
"""

import asyncio
from collections import OrderedDict
from uuid import UUID

from app.db.engine import Database
from app.jobs.repository import JobRepository
from app.kit.periodic import Periodic
from app.kit.wakes import Wakes

CHANNEL = "offpeak:jobs-ended"
POLL_SECONDS = 1.0
REMEMBERED = 10_000
"""Ended jobs kept in mind, for whoever begins to wait just after the end."""
UUID_BYTES = 16


class JobWaiters:
    """The waiting requests of one process."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._wakes = wakes
        self._waiting: dict[UUID, set[asyncio.Future[None]]] = {}
        self._ended: OrderedDict[UUID, None] = OrderedDict()
        wakes.on(CHANNEL, self._heard)

    @property
    def waiting(self) -> int:
        """Jobs somebody waits for."""
        return len(self._waiting)

    async def wait(self, job_id: UUID, timeout_seconds: float) -> bool:
        """Return True once the job has ended, False when the time is over first."""
        if job_id in self._ended:
            return True
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, set()).add(woken)
        try:
            async with asyncio.timeout(timeout_seconds):
                await woken
        except TimeoutError:
            return False
        finally:
            self._forget(job_id, woken)
        return True

    def announce(self, job_id: UUID) -> None:
        """Wake whoever waits for this job, here and in other processes. After the commit."""
        self._wake(job_id)
        self._wakes.publish(CHANNEL, job_id.bytes)

    async def poll_once(self) -> int:
        """Look all awaited jobs up in one query and wake for the ended ones; return how many."""
        if not self._waiting:
            return 0
        async with self._database.statement() as tx:
            ended = await JobRepository(tx).ended_among(self._waiting)
        for job_id in ended:
            self._wake(job_id)
        return len(ended)

    async def run(self) -> None:
        """Poll once a second until cancelled."""
        await Periodic("awaited jobs", POLL_SECONDS, self.poll_once).run()

    def _heard(self, message: bytes) -> None:
        if len(message) == UUID_BYTES:
            self._wake(UUID(bytes=message))

    def _wake(self, job_id: UUID) -> None:
        self._ended[job_id] = None
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        for woken in self._waiting.get(job_id, ()):
            if not woken.done():
                woken.set_result(None)

    def _forget(self, job_id: UUID, woken: asyncio.Future[None]) -> None:
        others = self._waiting[job_id]
        others.discard(woken)
        if not others:
            del self._waiting[job_id]
