"""Agents' sessions and offers in Postgres, inside one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

OPEN = text("SELECT offpeak.open_session(:agent, :replica, :boot)")
CLOSE = text("SELECT offpeak.close_session(:agent, CAST(:epoch AS bigint))")
SEEN = text(
    "SELECT offpeak.seen_many("
    "CAST(:agent AS uuid[]), CAST(:epoch AS bigint[]), CAST(:age_ms AS int[]))"
)
OFFER = text(
    "SELECT offpeak.offer_capacity(:id, :agent, CAST(:epoch AS bigint), :name, :release,"
    " :capacity_class, :region, CAST(:ask AS bigint), CAST(:offered AS int), :offer_until,"
    " CAST(:prefill AS int), CAST(:decode AS int), CAST(:gpu_ppm AS int))"
)
DRAIN = text("SELECT offpeak.drain_sessions(CAST(:agents AS uuid[]))")
LIVE = text(
    "SELECT s.agent_id, s.epoch, s.state AS session_state, a.state, p.state AS supplier_state,"
    " CASE WHEN a.resting_until > clock_timestamp() THEN a.resting_until END AS resting_until"
    " FROM offpeak.agent_session s"
    " JOIN offpeak.agent a ON a.id = s.agent_id JOIN offpeak.supplier p ON p.id = a.supplier_id"
    " WHERE s.agent_id = ANY(CAST(:agents AS uuid[]))"
)
SILENT = text(
    "SELECT agent_id, epoch,"
    " CAST(extract(epoch FROM clock_timestamp() - seen_at) AS float8) AS silent"
    " FROM offpeak.agent_session WHERE state <> 'offline'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one deployment offers; ask in nano per slot-second, speeds in tokens per second."""

    name: str
    release: str
    capacity_class: str
    region: str
    ask: int
    offered: int
    offer_until: datetime
    prefill: int
    decode: int
    gpu_ppm: int | None


@dataclass(frozen=True, slots=True)
class LiveSession:
    """The session of an agent that counts, its state, and whether the agent may serve."""

    epoch: int
    session_state: str
    state: str
    supplier_state: str
    resting_until: datetime | None
    """Until when it gets no new work because of its faults."""


@dataclass(frozen=True, slots=True)
class Silence:
    """How long an agent that is not offline was seen by no replica."""

    agent_id: UUID
    epoch: int
    seconds: float


class SessionRepository:
    """Opens, keeps and closes agents' sessions."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def open(self, agent_id: UUID, *, replica: str, boot_id: str) -> int | None:
        """Make this the agent's live session; return its epoch, None if it may not serve."""
        given = {"agent": agent_id, "replica": replica, "boot": boot_id}
        epoch = await self._tx.scalar(OPEN, given)
        return None if epoch is None else int(epoch)

    async def close(self, agent_id: UUID, epoch: int) -> bool:
        """Withdraw the agent's offers; False when a newer session is live."""
        return bool(await self._tx.scalar(CLOSE, {"agent": agent_id, "epoch": epoch}))

    async def seen(self, sessions: Sequence[tuple[UUID, int, int]]) -> None:
        """Note when agents were last heard: (agent, epoch, age in ms)."""
        await self._tx.execute(
            SEEN,
            {
                "agent": [agent_id for agent_id, _, _ in sessions],
                "epoch": [epoch for _, epoch, _ in sessions],
                "age_ms": [age_ms for _, _, age_ms in sessions],
            },
        )

    async def offer(self, new_id: UUID, agent_id: UUID, epoch: int, offer: Offer) -> UUID | None:
        """Store an offer; return its deployment's id, None if this session is not live."""
        deployment_id: UUID | None = await self._tx.scalar(
            OFFER,
            {
                "id": new_id,
                "agent": agent_id,
                "epoch": epoch,
                "name": offer.name,
                "release": offer.release,
                "capacity_class": offer.capacity_class,
                "region": offer.region,
                "ask": offer.ask,
                "offered": offer.offered,
                "offer_until": offer.offer_until,
                "prefill": offer.prefill,
                "decode": offer.decode,
                "gpu_ppm": offer.gpu_ppm,
            },
        )
        return deployment_id

    async def live(self, agents: Iterable[UUID]) -> dict[UUID, LiveSession]:
        """Return the sessions that count, by agent."""
        rows = await self._tx.execute(LIVE, {"agents": list(agents)})
        return {
            row.agent_id: LiveSession(
                row.epoch,
                row.session_state,
                row.state,
                row.supplier_state,
                row.resting_until,
            )
            for row in rows
        }

    async def drain(self, agents: Iterable[UUID]) -> None:
        """Withdraw agents' offers for good; what they run may finish."""
        await self._tx.execute(DRAIN, {"agents": list(agents)})

    async def silent(self) -> list[Silence]:
        """Return every session that is not offline with the age of its last sign of life."""
        rows = await self._tx.execute(SILENT)
        return [Silence(row.agent_id, row.epoch, row.silent) for row in rows]
