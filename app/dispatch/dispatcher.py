"""The attempts and sessions of this replica, and how accepted work reaches its agent."""

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import msgspec
import structlog

from app.db.engine import Database
from app.dispatch.attempt import Attempt, AttemptLimits, Stage
from app.dispatch.lease_repository import LeaseRepository, StoredWork
from app.dispatch.session import SERVICE_RESTART, AgentSession
from app.dispatch.work import AcceptedWork, ServedRelease, SlotSpeeds, Work
from app.jobs.content import open_request
from app.kit.cipher import ContentCipher
from app.kit.errors import KitError
from app.kit.ids import IdPrefix, format_id
from app.kit.wakes import Wakes
from supplier_agent.protocol import Run, stream_of

UUID_BYTES = 16

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchParts:
    """What dispatch is built from."""

    database: Database
    cipher: ContentCipher
    wakes: Wakes
    releases: Mapping[str, ServedRelease]
    limits: AttemptLimits = field(default_factory=AttemptLimits)


class Dispatcher:
    """Knows every running attempt of this replica.

    `Channel` (frames), `DispatchLoop` (clocks) and `Outcomes` (what was decided) change what is
    here, each within one tick of the event loop.
    """

    def __init__(self, replica: str, parts: DispatchParts) -> None:
        self.replica = replica
        self.parts = parts
        self.sessions: dict[UUID, AgentSession] = {}
        self.attempts: dict[UUID, Attempt] = {}
        self.started_at: dict[UUID, float] = {}
        """When this replica took each attempt up, monotonic."""
        self.accepted: set[UUID] = set()
        """Leases that agents accepted and whose jobs are not yet marked as running."""
        self.closing = False
        self._forgotten = asyncio.Event()
        self._woken: set[UUID] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        parts.wakes.on(lease_channel(replica), self._on_wake)

    def start(self, work: AcceptedWork, *, replica: str) -> None:
        """Dispatch a lease that has just committed; returns at once.

        Args:
            work: The lease.
            replica: The one that holds the agent's session, as accepting returned it.
        """
        session = self.sessions.get(work.agent_id)
        offer = session.offers.get(work.deployment_id) if session else None
        if session is not None and offer is not None and not self.closing:
            speeds = SlotSpeeds(offer.prefill, offer.decode)
            self._run(session, work, deployment=offer.name, speeds=speeds)
        else:
            self.wake(work.lease_id, replica=replica)

    def wake(self, lease_id: UUID, *, replica: str) -> None:
        """Have the replica that holds the agent's session start a lease; its sweep does anyway."""
        if replica == self.replica:
            self._on_wake(lease_id.bytes)
        else:
            self.parts.wakes.publish(lease_channel(replica), lease_id.bytes)

    async def run_leases(self, leases: Iterable[UUID]) -> int:
        """Read active leases back and send RUN for those of our agents; return how many."""
        unknown = [lease_id for lease_id in leases if lease_id not in self.attempts]
        if not unknown or self.closing:
            return 0
        async with self.parts.database.transaction() as tx:
            found = await LeaseRepository(tx).work(unknown)
        return sum(self._run_stored(stored, resumed=False) for stored in found)

    async def resume(self, leases: Iterable[UUID]) -> int:
        """Carry on leases that an agent holds from an earlier session; return how many."""
        async with self.parts.database.transaction() as tx:
            found = await LeaseRepository(tx).work(leases)
        return sum(self._run_stored(stored, resumed=True) for stored in found)

    def forget(self, lease_id: UUID) -> None:
        """Drop an attempt whose end has been booked, here or elsewhere."""
        self.started_at.pop(lease_id, None)
        self.accepted.discard(lease_id)
        attempt = self.attempts.pop(lease_id, None)
        if attempt is None:
            return
        self._forgotten.set()
        session = self.sessions.get(attempt.work.accepted.agent_id)
        stream = stream_of(str(lease_id))
        if session is not None and session.streams.get(stream) is attempt:
            del session.streams[stream]

    def drop_session(self, session: AgentSession) -> None:
        """Forget a session that is over, and its attempts but those whose end is being booked."""
        for attempt in list(session.streams.values()):
            if attempt.stage is not Stage.DECIDED:
                self.forget(attempt.work.accepted.lease_id)
        if self.sessions.get(session.agent_id) is session:
            del self.sessions[session.agent_id]

    def is_deciding(self, lease_id: UUID) -> bool:
        """Return whether this replica is booking the end of a lease right now."""
        attempt = self.attempts.get(lease_id)
        return attempt is not None and attempt.stage is Stage.DECIDED

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Run in the background; a failure is logged and left to the sweep."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    async def finish(self, *, timeout_seconds: float) -> None:
        """Return once the attempts that run now have ended, or the time is over.

        Later ones start and run as ever: this is for the time before `close`.
        """
        running = set(self.attempts)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while running & self.attempts.keys():
                    self._forgotten.clear()
                    await self._forgotten.wait()

    async def close(self, *, timeout_seconds: float) -> None:
        """Take nothing new, finish what is being booked, and let the agents go elsewhere.

        Sockets close without their leases being moved: the agents keep running them and every
        result until SETTLED, and bring both to the replica they reach next.
        """
        self.closing = True
        end = time.monotonic() + timeout_seconds
        while self._tasks and time.monotonic() < end:
            await asyncio.wait(self._tasks, timeout=end - time.monotonic())
        for session in list(self.sessions.values()):
            session.abandoned = True
            session.end(SERVICE_RESTART)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("dispatch task failed", exc_info=task.exception())

    def _on_wake(self, message: bytes) -> None:
        if len(message) != UUID_BYTES or self.closing:
            return
        if not self._woken:
            self.spawn(self._run_woken())
        self._woken.add(UUID(bytes=message))

    async def _run_woken(self) -> None:
        await asyncio.sleep(0)  # what arrives in this tick is read in one query
        woken, self._woken = self._woken, set()
        await self.run_leases(woken)

    def _run_stored(self, stored: StoredWork, *, resumed: bool) -> bool:
        session = self.sessions.get(stored.agent_id)
        if session is None or stored.remaining_seconds <= 0:
            return False
        try:
            request = open_request(self.parts.cipher, stored.job_id, stored.sealed_request)
        except KitError as error:
            log.error("stored request unreadable", job=str(stored.job_id), code=error.code)  # noqa: TRY400
            return False
        work = AcceptedWork(
            lease_id=stored.lease_id,
            job_id=stored.job_id,
            agent_id=stored.agent_id,
            deployment_id=stored.deployment_id,
            release=stored.release,
            input_tokens=stored.input_tokens,
            max_output_tokens=stored.max_output_tokens,
            rates=stored.rates,
            max_charge=stored.max_charge,
            request_digest=stored.request_digest,
            salt=request.salt,
            request=request.canonical,
            remaining_seconds=stored.remaining_seconds,
        )
        return self._run(
            session, work, deployment=stored.deployment, speeds=stored.speeds, resumed=resumed
        )

    def _run(
        self,
        session: AgentSession,
        accepted: AcceptedWork,
        *,
        deployment: str,
        speeds: SlotSpeeds,
        resumed: bool = False,
    ) -> bool:
        """Take a lease up and, unless the agent runs it already, send RUN; False if it is known."""
        lease_id = accepted.lease_id
        if lease_id in self.attempts or session.ended.is_set():
            return False
        now = time.monotonic()
        work = Work(
            accepted=accepted,
            deployment=deployment,
            speeds=speeds,
            deadline=now + accepted.remaining_seconds,
        )
        attempt = Attempt(work, now=now, limits=self.parts.limits, resumed=resumed)
        self.attempts[lease_id] = attempt
        self.started_at[lease_id] = now
        session.streams[stream_of(str(lease_id))] = attempt
        if not resumed:
            session.send(run_message(work))
        return True


def run_message(work: Work) -> Run:
    """Return the RUN of a lease."""
    accepted = work.accepted
    return Run(
        lease=format_id(IdPrefix.LEASE, accepted.lease_id),
        job=format_id(IdPrefix.JOB, accepted.job_id),
        deployment=work.deployment,
        release=accepted.release,
        remaining_seconds=accepted.remaining_seconds,
        max_output_tokens=accepted.max_output_tokens,
        salt=accepted.salt.hex(),
        request_digest=accepted.request_digest.hex(),
        request=msgspec.Raw(accepted.request),
    )


def lease_channel(replica: str) -> str:
    """Return the wake-up channel of a replica's leases."""
    return f"offpeak:leases:{replica}"
