"""Jobs that lost their slot and found no other at once: tried again, ahead of new accepts."""

import time

from app.db.engine import Database
from app.dispatch.attempt import GiveBack
from app.dispatch.lease_repository import LeaseRepository, QueuedJob
from app.dispatch.outcomes import Outcomes
from app.dispatch.repository import Move
from app.kit.periodic import Periodic

IDLE_SECONDS = 1.0
BUSY_SECONDS = 0.1

NO_SLOT = GiveBack("no-slot", fault=False, blame=False, lease_state="lost")


class QueueLoop:
    """Places waiting jobs. Every replica runs one; each step is conditional on the job's state."""

    def __init__(self, database: Database, outcomes: Outcomes) -> None:
        self._database = database
        self._outcomes = outcomes
        self._waiting = 0
        self._looked_at = 0.0

    async def run_once(self) -> int:
        """Try every waiting job once, and fail those that have waited long enough.

        Returns how many still wait.
        """
        self._outcomes.jobs_queued.clear()
        async with self._database.statement() as tx:
            queued = await LeaseRepository(tx).queued()
        if not queued:
            return 0
        moves = await self._outcomes.endings.place([(job.job_id, job.market) for job in queued])
        waiting = [await self._follow(*pair) for pair in zip(queued, moves, strict=True)]
        return sum(waiting)

    async def run(self) -> None:
        """Run until cancelled: as soon as a job begins to wait, often while any does."""
        await Periodic("waiting jobs", BUSY_SECONDS, self._run_if_due).run()

    async def _run_if_due(self) -> None:
        now = time.monotonic()
        idle = not self._waiting and not self._outcomes.jobs_queued.is_set()
        if idle and now - self._looked_at < IDLE_SECONDS:
            return
        self._looked_at = now
        self._waiting = 0
        self._waiting = await self.run_once()

    async def _follow(self, job: QueuedJob, move: Move) -> bool:
        """Start a placed job, fail one that waited too long; return whether it waits on."""
        if move.code == "ok":
            assert move.lease_id is not None
            assert move.replica is not None
            self._outcomes.dispatcher.wake(move.lease_id, replica=move.replica)
            return False
        if move.code != "queued":
            return False
        if job.waited_seconds < self._outcomes.dispatcher.parts.limits.queue_seconds:
            return True
        await self._outcomes.fail_job(job.job_id, None, NO_SLOT)
        return False
