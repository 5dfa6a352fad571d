"""What dispatch reads: agents, leases with their jobs, and what was left behind."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dispatch.work import SlotSpeeds
from ledger.money import Nano
from pricing.rates import Rates

SWEEP_LIMIT = 500

AGENT = text(
    "SELECT a.device_key, a.state, s.state AS supplier_state"
    " FROM offpeak.agent a JOIN offpeak.supplier s ON s.id = a.supplier_id WHERE a.id = :agent"
)
WORK = text(
    "SELECT l.id, l.agent_id, l.deployment_id, l.job_id, l.state, d.name,"
    " d.prefill_tokens_per_second, d.decode_tokens_per_second, j.release, j.input_tokens,"
    " j.max_output_tokens, j.input_rate, j.output_rate, j.per_request, j.request, h.amount,"
    " a.request_digest,"
    " CAST(extract(epoch FROM l.ends_at - clock_timestamp()) AS float8) AS remaining"
    " FROM offpeak.lease l JOIN offpeak.job j ON j.id = l.job_id"
    " JOIN offpeak.hold h ON h.id = j.id JOIN offpeak.deployment d ON d.id = l.deployment_id"
    " JOIN offpeak.request_authorization a ON a.digest = j.authorization_digest"
    " WHERE l.id = ANY(CAST(:leases AS uuid[]))"
    " AND l.state = 'active' AND j.lease_id = l.id AND j.request IS NOT NULL"
)
OCCUPYING = text(
    "SELECT id, agent_id, state FROM offpeak.lease"
    " WHERE agent_id = ANY(CAST(:agents AS uuid[])) AND state IN ('active', 'ending')"
)
STATES = text(
    "SELECT id, agent_id, state FROM offpeak.lease WHERE id = ANY(CAST(:leases AS uuid[]))"
)
MARKETS = text(
    "SELECT l.id, j.release, j.region, j.ask_ceiling FROM offpeak.lease l"
    " JOIN offpeak.job j ON j.id = l.job_id WHERE l.id = ANY(CAST(:leases AS uuid[]))"
)
UNACCEPTED = text(
    "SELECT l.id, l.agent_id, l.state FROM offpeak.lease l"
    " JOIN offpeak.job j ON j.id = l.job_id AND j.lease_id = l.id"
    " WHERE l.state = 'active' AND j.state = 'accepted'"
    " AND l.started_at < clock_timestamp() - make_interval(secs => :seconds) LIMIT :limit"
)
QUEUED = text(
    "SELECT id, release, region, ask_ceiling,"
    " CAST(extract(epoch FROM clock_timestamp() - queued_at) AS float8) AS waited"
    " FROM offpeak.job WHERE state = 'queued' ORDER BY queued_at LIMIT :limit"
)
ORPHANED = text(
    "SELECT l.id, l.agent_id, l.state FROM offpeak.lease l"
    " JOIN offpeak.agent_session s ON s.agent_id = l.agent_id"
    " WHERE l.state IN ('active', 'ending') AND s.state = 'offline' LIMIT :limit"
)


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """A registered agent: its device key (32 bytes) and whether it may serve."""

    device_key: bytes
    state: str
    supplier_state: str


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease and where it stands."""

    lease_id: UUID
    agent_id: UUID
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWork:
    """An active lease with its job, as stored; the request sealed."""

    lease_id: UUID
    job_id: UUID
    agent_id: UUID
    deployment_id: UUID
    deployment: str
    speeds: SlotSpeeds
    release: str
    input_tokens: int
    max_output_tokens: int
    rates: Rates
    max_charge: Nano
    request_digest: bytes
    sealed_request: bytes
    remaining_seconds: float


@dataclass(frozen=True, slots=True)
class Market:
    """Where a job may run and what its quote covers, in nano per slot-second."""

    release: str
    region: str
    ask: Nano


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job without a slot and how long it has waited for one."""

    job_id: UUID
    market: Market
    waited_seconds: float


class LeaseRepository:
    """Reads inside one transaction."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def agent(self, agent_id: UUID) -> KnownAgent | None:
        """Return a registered agent."""
        row = (await self._tx.execute(AGENT, {"agent": agent_id})).one_or_none()
        if row is None:
            return None
        return KnownAgent(bytes(row.device_key), row.state, row.supplier_state)

    async def work(self, leases: Iterable[UUID]) -> list[StoredWork]:
        """Return those of the leases that are active and hold their job."""
        rows = await self._tx.execute(WORK, {"leases": list(leases)})
        return [
            StoredWork(
                lease_id=row.id,
                job_id=row.job_id,
                agent_id=row.agent_id,
                deployment_id=row.deployment_id,
                deployment=row.name,
                speeds=SlotSpeeds(
                    max(row.prefill_tokens_per_second, 1), max(row.decode_tokens_per_second, 1)
                ),
                release=row.release,
                input_tokens=row.input_tokens,
                max_output_tokens=row.max_output_tokens,
                rates=Rates(Nano(row.input_rate), Nano(row.output_rate), Nano(row.per_request)),
                max_charge=Nano(row.amount),
                request_digest=bytes(row.request_digest),
                sealed_request=bytes(row.request),
                remaining_seconds=row.remaining,
            )
            for row in rows
        ]

    async def occupying(self, agents: Iterable[UUID]) -> list[HeldLease]:
        """Return the leases that hold slots of these agents."""
        rows = await self._tx.execute(OCCUPYING, {"agents": list(agents)})
        return [HeldLease(row.id, row.agent_id, row.state) for row in rows]

    async def states(self, leases: Iterable[UUID]) -> dict[UUID, HeldLease]:
        """Return where these leases stand, those that exist."""
        rows = await self._tx.execute(STATES, {"leases": list(leases)})
        return {row.id: HeldLease(row.id, row.agent_id, row.state) for row in rows}

    async def orphaned(self) -> list[HeldLease]:
        """Return leases whose agent is offline: what a crash left half done."""
        rows = await self._tx.execute(ORPHANED, {"limit": SWEEP_LIMIT})
        return [HeldLease(row.id, row.agent_id, row.state) for row in rows]

    async def unaccepted(self, *, seconds: float) -> list[HeldLease]:
        """Return active leases older than this whose agent has not accepted the work."""
        rows = await self._tx.execute(UNACCEPTED, {"seconds": seconds, "limit": SWEEP_LIMIT})
        return [HeldLease(row.id, row.agent_id, row.state) for row in rows]

    async def markets(self, leases: Iterable[UUID]) -> dict[UUID, Market]:
        """Return the market of each lease's job."""
        rows = await self._tx.execute(MARKETS, {"leases": list(leases)})
        return {row.id: Market(row.release, row.region, Nano(row.ask_ceiling)) for row in rows}

    async def queued(self) -> list[QueuedJob]:
        """Return jobs that wait for a slot, longest first."""
        rows = await self._tx.execute(QUEUED, {"limit": SWEEP_LIMIT})
        return [
            QueuedJob(row.id, Market(row.release, row.region, Nano(row.ask_ceiling)), row.waited)
            for row in rows
        ]
