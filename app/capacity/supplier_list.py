"""Who is registered: suppliers with their agents, for the operator to read."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import agent, agent_session, supplier

MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplierLine:
    """One agent of a supplier. `session` is online, draining, offline, or None before the first."""

    supplier_id: UUID
    name: str
    state: str
    agent_id: UUID
    session: str | None


async def list_suppliers(tx: AsyncConnection) -> list[SupplierLine]:
    """Return every supplier's agents in order of registration, at most `MOST`."""
    query = (
        select(
            supplier.c.id.label("supplier_id"),
            supplier.c.name,
            supplier.c.state,
            agent.c.id.label("agent_id"),
            agent_session.c.state.label("session"),
        )
        .join(agent, agent.c.supplier_id == supplier.c.id)
        .outerjoin(agent_session, agent_session.c.agent_id == agent.c.id)
        .order_by(supplier.c.created_at, supplier.c.id, agent.c.id)
        .limit(MOST)
    )
    return [SupplierLine(**row) for row in (await tx.execute(query)).mappings()]
