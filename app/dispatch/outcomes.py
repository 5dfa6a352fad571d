"""Carrying out what attempts decide: settle, give back, confirm; then tell agent and buyer."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

import structlog

from app.dispatch.attempt import AGENT_LOST, NOT_ACCEPTED, Attempt, GiveBack, Stage
from app.dispatch.dispatcher import Dispatcher
from app.dispatch.endings import Endings, MoveRequest
from app.dispatch.lease_repository import HeldLease, LeaseRepository
from app.dispatch.metering import Evidence, Metered
from app.dispatch.metrics import DispatchMetrics
from app.dispatch.repository import EndItem, FaultItem, Move, SettleItem
from app.dispatch.session import AgentSession, Stop
from app.dispatch.session_repository import SessionRepository
from app.jobs.content import StoredAnswer, seal_answer
from app.jobs.waiters import JobWaiters
from app.kit.ids import IdPrefix, format_id
from supplier_agent.protocol import Cancel, Settled

Result = TypeVar("Result")

RETRY_SECONDS = 0.25
"""Between tries while Postgres is away; the agent keeps its result meanwhile."""

NO_CAPACITY = frozenset({"busy", "engine-busy", "no-slot"})
"""Reasons that mean nobody had room; after any other, suppliers had their chance and failed."""

log = structlog.get_logger()


class Outcomes:
    """The steps of this replica's attempts."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        endings: Endings,
        waiters: JobWaiters,
        metrics: DispatchMetrics,
    ) -> None:
        self.dispatcher = dispatcher
        self.endings = endings
        self.waiters = waiters
        self.metrics = metrics
        self.jobs_queued = asyncio.Event()
        """Set when a job begins to wait for a slot, or a slot may have come free for one."""

    def settle(self, session: AgentSession, attempt: Attempt, metered: Metered) -> None:
        """Settle a checked result in the background."""
        attempt.stage = Stage.DECIDED
        self.dispatcher.spawn(self._settle(session, attempt, metered))

    def give_back(
        self,
        session: AgentSession,
        attempt: Attempt,
        step: GiveBack,
        evidence: Evidence | None = None,
    ) -> None:
        """Book an attempt as over without a result and try its job elsewhere, in the background."""
        attempt.stage = Stage.DECIDED
        if step.lease_state == "ending" or step is NOT_ACCEPTED:
            self.stop(session, attempt.work.accepted.lease_id)
        self.dispatcher.spawn(self._give_back(session, attempt, step, evidence))

    def stop(self, session: AgentSession, lease_id: UUID) -> None:
        """Tell an agent to stop a lease; its slot stays taken until it confirms."""
        now = time.monotonic()
        session.stops.setdefault(lease_id, Stop(now, now)).last_at = now
        session.send(Cancel(lease=format_id(IdPrefix.LEASE, lease_id)))

    async def lost(self, session: AgentSession) -> None:
        """A connection is over: unless the agent lives on elsewhere, move its leases now."""
        self.dispatcher.drop_session(session)
        if session.abandoned:
            return
        async with self.dispatcher.parts.database.transaction() as tx:
            if not await SessionRepository(tx).close(session.agent_id, session.epoch):
                return
        await self.lose_leases(session.agent_id)

    async def lose_leases(self, agent_id: UUID) -> None:
        """Move the active leases of an agent that is gone, and give half-ended slots back."""
        async with self.dispatcher.parts.database.transaction() as tx:
            held = await LeaseRepository(tx).occupying([agent_id])
        await asyncio.gather(*(self.lose(lease, AGENT_LOST) for lease in held))

    async def lose(self, lease: HeldLease, step: GiveBack) -> None:
        """End a lease whose agent does not have it any more; its job goes elsewhere."""
        if self.dispatcher.is_deciding(lease.lease_id):
            return
        self.dispatcher.forget(lease.lease_id)
        if lease.state == "ending":
            await self.endings.confirm(lease.lease_id, lease.agent_id, state="lost")
        else:
            await self.move(lease.lease_id, step)

    async def move(self, lease_id: UUID, step: GiveBack) -> None:
        """End a lease and follow its job to wherever it goes."""
        move = await self.endings.move(
            MoveRequest(lease_id, step.reason, step.fault, step.lease_state)
        )
        self.metrics.attempts.labels(step.reason).inc()
        await self._follow(move, lease_id, step)

    async def release(self, session: AgentSession, lease_id: UUID, *, is_result: bool) -> None:
        """Answer an ending that changes no money; a half-ended lease's slot comes back.

        `is_result`: it was a DONE, which counted for nothing.
        """
        state = "lost" if is_result else "done"
        await self.endings.confirm(lease_id, session.agent_id, state=state)
        self.answer(session, lease_id, settled=not is_result)
        self.jobs_queued.set()

    def answer(self, session: AgentSession, lease_id: UUID, *, settled: bool) -> None:
        """Tell an agent, over the session it has by now, that a lease's end has committed."""
        live = self.dispatcher.sessions.get(session.agent_id, session)
        live.send(
            Settled(
                lease=format_id(IdPrefix.LEASE, lease_id),
                outcome="settled" if settled else "refused",
            )
        )

    async def fail_job(self, job_id: UUID, lease_id: UUID | None, step: GiveBack) -> None:
        """End a job for good: hold released, zero-charge record, its buyer told."""
        code = "no-capacity" if step.reason in NO_CAPACITY else "supplier-failed"
        item = EndItem(
            job_id=job_id,
            lease_id=lease_id,
            state="failed",
            code=code,
            detail=f"no supplier finished it; the last try ended as {step.reason}",
            lease_state=step.lease_state,
            cap_ms=None,
        )
        if await self.endings.end(item) == "ok":
            self.metrics.jobs_failed.labels(code).inc()
            self.waiters.announce(job_id)

    async def blame(self, agent_id: UUID, lease_id: UUID | None, evidence: Evidence | None) -> None:
        """Count a wrong against an agent, whatever session it has."""
        self.metrics.agent_faults.inc()
        await self.endings.note_fault(FaultItem(agent_id, lease_id, evidence))

    async def _settle(self, session: AgentSession, attempt: Attempt, metered: Metered) -> None:
        accepted = attempt.work.accepted
        answer = StoredAnswer(metered.answer.content, metered.answer.finish_reason)
        sealed = seal_answer(self.dispatcher.parts.cipher, accepted.job_id, answer)
        item = SettleItem(accepted.lease_id, session.agent_id, metered, sealed)
        try:
            code = await self._persist(attempt, lambda: self.endings.settle(item))
        finally:
            self.dispatcher.forget(accepted.lease_id)
        if code in {"ok", "duplicate"}:
            self.waiters.announce(accepted.job_id)
            self.answer(session, accepted.lease_id, settled=True)
            self.metrics.attempts.labels("settled").inc()
            self.jobs_queued.set()
        else:
            await self.release(session, accepted.lease_id, is_result=True)
        if metered.flagged and code == "ok":
            self.metrics.flagged.inc()
            await self.blame(session.agent_id, accepted.lease_id, None)

    async def _give_back(
        self,
        session: AgentSession,
        attempt: Attempt,
        step: GiveBack,
        evidence: Evidence | None,
    ) -> None:
        lease_id = attempt.work.accepted.lease_id
        # not its detail: engines quote the prompt in it, broken streams the answer
        log.info("attempt failed", reason=step.reason, lease=str(lease_id))
        if step.reason == "unmetered":
            self.metrics.unmetered.inc()
        request = MoveRequest(lease_id, step.reason, step.fault, step.lease_state)
        try:
            move = await self._persist(attempt, lambda: self.endings.move(request))
        finally:
            self.dispatcher.forget(lease_id)
        self.metrics.attempts.labels(step.reason).inc()
        await self._follow(move, lease_id, step)
        if step.lease_state != "ending" and step is not NOT_ACCEPTED:
            await self.release(session, lease_id, is_result=evidence is not None)
        if step.blame:
            await self.blame(session.agent_id, lease_id, evidence)

    async def _follow(self, move: Move, lease_id: UUID, step: GiveBack) -> None:
        match move.code:
            case "ok":
                assert move.lease_id is not None
                assert move.replica is not None
                self.dispatcher.wake(move.lease_id, replica=move.replica)
            case "queued":
                self.jobs_queued.set()
            case "exhausted":
                assert move.job_id is not None
                await self.fail_job(move.job_id, lease_id, step)
            case "stale":
                pass

    async def _persist(self, attempt: Attempt, call: Callable[[], Awaitable[Result]]) -> Result:
        """Try until it is booked, or until no result counts any more."""
        while True:
            try:
                return await call()
            except Exception:
                if self.dispatcher.closing or attempt.expired(now=time.monotonic()):
                    raise
                log.exception("booking failed; trying again")
                await asyncio.sleep(RETRY_SECONDS)
