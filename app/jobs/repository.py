"""Queries on jobs."""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import agent, hold, job, lease, request_authorization, supplier
from app.jobs.errors import JobNotFound
from app.jobs.job import ENDED, Job, JobState
from ledger.encoding import Address


class _QuoteId(msgspec.Struct):
    """The one field of a stored quote that a job shows."""

    quoteId: str  # noqa: N815 -- EIP-712 name


_QUOTE = msgspec.json.Decoder(_QuoteId)


class JobRepository:
    """Reads jobs inside one transaction."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def ended_among(self, jobs: Iterable[UUID]) -> list[UUID]:
        """Return those of these jobs that have ended, whoever's they are."""
        query = select(job.c.id).where(job.c.id.in_(jobs), job.c.state.in_(ENDED))
        return list(await self._tx.scalars(query))

    async def get(self, job_id: UUID, *, payer: Address) -> Job:
        """Return the wallet's job.

        Raises:
            JobNotFound: there is none with this id, or it is another wallet's.
        """
        last = (
            select(supplier.c.name)
            .select_from(lease)
            .join(agent, agent.c.id == lease.c.agent_id)
            .join(supplier, supplier.c.id == agent.c.supplier_id)
            .where(lease.c.job_id == job_id)
            .order_by(lease.c.attempt.desc())
            .limit(1)
            .scalar_subquery()
        )
        attempts = (
            select(func.count())
            .select_from(lease)
            .where(lease.c.job_id == job_id)
            .scalar_subquery()
        )
        query = (
            select(
                job,
                request_authorization.c.payer,
                request_authorization.c.quote,
                hold.c.amount,
                last.label("supplier"),
                attempts.label("attempts"),
            )
            .join(
                request_authorization, request_authorization.c.digest == job.c.authorization_digest
            )
            .join(hold, hold.c.id == job.c.id)
            .where(job.c.id == job_id, request_authorization.c.payer == payer)
        )
        row = (await self._tx.execute(query)).one_or_none()
        if row is None:
            raise JobNotFound
        return Job(
            id=row.id,
            payer=Address(row.payer),
            state=JobState(row.state),
            release=row.release,
            region=row.region,
            supplier=row.supplier,
            attempts=row.attempts,
            quote_id=UUID(int=int(_QUOTE.decode(row.quote).quoteId, 16)),
            held=row.amount,
            accepted_at=row.accepted_at,
            deadline_at=row.deadline_at,
            ended_at=row.ended_at,
            result_sealed=row.result,
            content_until=row.content_until,
            failure_code=row.failure_code,
            failure_detail=row.failure_detail,
        )
