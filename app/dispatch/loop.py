"""What runs by the clock: heartbeats, time-outs, and the sweep that finds what was left behind."""

import asyncio
import time
from uuid import UUID

import structlog

from app.db.engine import Database
from app.dispatch.attempt import AGENT_LOST, REPLICA_LOST, Stage
from app.dispatch.handshake import standing_refusal
from app.dispatch.lease_repository import HeldLease, LeaseRepository
from app.dispatch.liveness import LossGuard, SilenceLimits
from app.dispatch.outcomes import Outcomes
from app.dispatch.repository import AttemptRepository
from app.dispatch.session import GOING_AWAY, AgentSession
from app.dispatch.session_repository import LiveSession, SessionRepository
from app.kit.clock import format_time
from app.kit.periodic import Periodic
from supplier_agent.protocol import HEARTBEAT_SECONDS

TICK_SECONDS = 0.2
SWEEP_SECONDS = 1.0
SEEN_SECONDS = 2.0
CANCEL_AGAIN_SECONDS = 5.0
UNKNOWN_LEASE_SECONDS = 30.0
"""A live agent that was told to stop a lease this long ago and has not ended it has lost it."""

SUSPENDED = "suspended: what runs may finish, nothing new comes"

log = structlog.get_logger()


class DispatchLoop:
    """The clock of one replica's attempts and sessions."""

    def __init__(
        self, database: Database, outcomes: Outcomes, *, silence: SilenceLimits | None = None
    ) -> None:
        self._database = database
        self._outcomes = outcomes
        self._dispatcher = outcomes.dispatcher
        limits = silence or SilenceLimits()
        self._guard = LossGuard(limits)
        self._fleet_guard = LossGuard(limits)

    async def tick(self, *, now: float) -> None:
        """Give up overdue attempts, evict dead agents, mark accepted jobs as running."""
        self._expire(now=now)
        ages = {agent: now - s.heard_at for agent, s in self._dispatcher.sessions.items()}
        for agent_id in self._guard.evictable(ages, now=now):
            log.warning("agent silent, evicted", agent=str(agent_id))
            self._dispatcher.sessions[agent_id].end(GOING_AWAY)
        accepted = self._dispatcher.accepted
        if accepted:
            marked = sorted(accepted)
            async with self._database.statement() as tx:
                await AttemptRepository(tx).mark_running(marked)
            accepted.difference_update(marked)  # after the commit: a failed round tries them again

    async def sweep(self, *, now: float) -> None:
        """Compare what is in memory with Postgres, and repair the difference."""
        sessions = dict(self._dispatcher.sessions)
        if sessions:
            async with self._database.transaction() as tx:
                live = await SessionRepository(tx).live(sessions)
                held = await LeaseRepository(tx).occupying(sessions)
            busy = {lease.agent_id for lease in held}
            for agent_id, session in sessions.items():
                await self._check_standing(session, live.get(agent_id), busy=agent_id in busy)
            await self._reconcile(held, now=now)
        await self._sweep_orphans()

    async def seen(self, *, now: float) -> None:
        """Note in one statement when each of our agents was last heard."""
        ages = [
            (agent_id, session.epoch, int((now - session.heard_at) * 1000))
            for agent_id, session in sorted(self._dispatcher.sessions.items())
        ]
        if ages:
            async with self._database.statement() as tx:
                await SessionRepository(tx).seen(ages)

    async def bury(self, *, now: float) -> None:
        """Close the sessions of agents that no replica has heard for long: theirs died too."""
        async with self._database.transaction() as tx:
            silent = {one.agent_id: one for one in await SessionRepository(tx).silent()}
        ages = {agent_id: one.seconds for agent_id, one in silent.items()}
        for agent_id in self._fleet_guard.evictable(ages, now=now):
            if agent_id in self._dispatcher.sessions:
                continue
            async with self._database.transaction() as tx:
                closed = await SessionRepository(tx).close(agent_id, silent[agent_id].epoch)
            if closed:
                await self._outcomes.lose_leases(agent_id)

    async def run(self) -> None:
        """Run until cancelled; what fails is logged and tried again."""
        steps = (
            Periodic("attempts", TICK_SECONDS, lambda: self.tick(now=time.monotonic())),
            Periodic("lease sweep", SWEEP_SECONDS, lambda: self.sweep(now=time.monotonic())),
            Periodic("dead agents", SWEEP_SECONDS, lambda: self.bury(now=time.monotonic())),
            Periodic("seen agents", SEEN_SECONDS, lambda: self.seen(now=time.monotonic())),
        )
        async with asyncio.TaskGroup() as tasks:
            for step in steps:
                tasks.create_task(step.run(), name=step.name)
            tasks.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            for session in list(self._dispatcher.sessions.values()):
                session.beat()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    def _expire(self, *, now: float) -> None:
        for lease_id, attempt in list(self._dispatcher.attempts.items()):
            session = self._dispatcher.sessions.get(attempt.work.accepted.agent_id)
            if session is None or attempt.stage is Stage.DECIDED:
                continue
            if attempt.expired(now=now):
                self._outcomes.stop(session, lease_id)
                self._dispatcher.forget(lease_id)
            elif (step := attempt.overdue(now=now)) is not None:
                self._outcomes.give_back(session, attempt, step)

    async def _check_standing(
        self, session: AgentSession, live: LiveSession | None, *, busy: bool
    ) -> None:
        """End a session that may not go on. A suspended agent first finishes what it runs."""
        if live is None or live.epoch > session.epoch:
            session.abandoned = True
            session.refuse("superseded", "a newer session of this agent is live")
        elif (refusal := standing_refusal(live.state, live.supplier_state)) is None:
            session.withhold(self._why_no_work(session, live))
        elif refusal.reason == "suspended" and (busy or live.session_state == "online"):
            session.withhold(SUSPENDED)
            if live.session_state == "online":
                async with self._database.transaction() as tx:
                    await SessionRepository(tx).drain([session.agent_id])
        else:
            session.refuse(refusal.reason, refusal.detail)

    def _why_no_work(self, session: AgentSession, live: LiveSession) -> str:
        """Return why an agent that may serve gets no new work, in words; empty when it may."""
        if live.resting_until is not None:
            why = f"too many faults in a row: no new work until {format_time(live.resting_until)}"
            if session.reason != why:
                log.warning("agent rests after faults", agent=str(session.agent_id), reason=why)
            return why
        offers = [offer for offer in session.offers.values() if offer.offered]
        market = self._dispatcher.parts.market
        if offers and not any(
            market.is_covered(offer.release, offer.region, ask=offer.ask) for offer in offers
        ):
            return "price: the ask is above what the present price covers"
        return ""

    async def _reconcile(self, held: list[HeldLease], *, now: float) -> None:
        occupying = {lease.lease_id: lease for lease in held}
        for lease_id, started_at in list(self._dispatcher.started_at.items()):
            lease = occupying.get(lease_id)
            known = started_at < now and not self._dispatcher.is_deciding(lease_id)
            if known and (lease is None or lease.state == "ending"):
                self._ended_elsewhere(lease_id)
        for one in self._dispatcher.sessions.values():
            one.stops = {key: told for key, told in one.stops.items() if key in occupying}
        for lease in held:
            session = self._dispatcher.sessions.get(lease.agent_id)
            if session is not None and lease.state == "ending":
                await self._stop_again(session, lease.lease_id, now=now)
        await self._dispatcher.run_leases(
            lease.lease_id for lease in held if lease.state == "active"
        )

    def _ended_elsewhere(self, lease_id: UUID) -> None:
        """A lease we run was ended by another process: the agent stops it."""
        attempt = self._dispatcher.attempts[lease_id]
        session = self._dispatcher.sessions.get(attempt.work.accepted.agent_id)
        self._dispatcher.forget(lease_id)
        if session is not None:
            self._outcomes.stop(session, lease_id)

    async def _stop_again(self, session: AgentSession, lease_id: UUID, *, now: float) -> None:
        """Tell an agent again; one that lives and long says nothing does not have the lease."""
        told = session.stops.get(lease_id)
        if told is not None and now - told.first_at > UNKNOWN_LEASE_SECONDS:
            await self._outcomes.endings.confirm(lease_id, session.agent_id, state="lost")
        elif told is None or now - told.last_at > CANCEL_AGAIN_SECONDS:
            self._outcomes.stop(session, lease_id)

    async def _sweep_orphans(self) -> None:
        """Move leases whose agent is offline, and those that no replica has brought to theirs.

        A replica died between two steps, or with the agents' sockets: these agents look fresh for
        up to 15 s more, and accepting goes on to give them work.
        """
        async with self._database.transaction() as tx:
            leases = LeaseRepository(tx)
            orphaned = await leases.orphaned()
            unaccepted = await leases.unaccepted(
                seconds=self._dispatcher.parts.limits.unaccepted_seconds
            )
        for lease in orphaned:
            await self._outcomes.lose(lease, AGENT_LOST)
        for lease in unaccepted:
            if lease.lease_id not in self._dispatcher.attempts:
                await self._outcomes.lose(lease, REPLICA_LOST)
