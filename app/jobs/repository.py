"""Queries on jobs."""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.calls import SqlRead
from app.db.tables import job
from app.jobs.errors import JobNotFound
from app.jobs.job import ENDED, Job, JobLine, JobState
from ledger.encoding import Address


class _QuoteId(msgspec.Struct):
    """The one field of a stored quote that a job shows."""

    quoteId: str  # noqa: N815 -- EIP-712 name


_QUOTE = msgspec.json.Decoder(_QuoteId)

_VIEW = SqlRead(
    "SELECT j.id, j.state, j.release, j.region, j.accepted_at, j.deadline_at, j.ended_at, j.result,"
    " j.content_until, j.failure_code, j.failure_detail, a.payer, a.quote, h.amount,"
    " (SELECT s.name FROM offpeak.lease l JOIN offpeak.agent g ON g.id = l.agent_id"
    " JOIN offpeak.supplier s ON s.id = g.supplier_id WHERE l.job_id = j.id"
    " ORDER BY l.attempt DESC LIMIT 1) AS supplier,"
    " (SELECT count(*) FROM offpeak.lease l WHERE l.job_id = j.id) AS attempts"
    " FROM offpeak.job j JOIN offpeak.request_authorization a ON a.digest = j.authorization_digest"
    " JOIN offpeak.hold h ON h.id = j.id WHERE j.id = %(job)b AND a.payer = %(payer)t"
)

_PAGE = SqlRead(
    "SELECT j.id, j.state, j.release, j.region, j.accepted_at, j.ended_at, h.amount, r.charged"
    " FROM offpeak.job j JOIN offpeak.hold h ON h.id = j.id"
    " LEFT JOIN offpeak.hold_resolution r ON r.hold_id = j.id"
    " WHERE j.account_id = %(account)b AND j.id < %(before)b"
    " ORDER BY j.id DESC LIMIT %(limit)b::int"
)
_AFTER_ALL = UUID(int=2**128 - 1)


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
        found = await _VIEW.rows(self._tx, {"job": job_id, "payer": payer})
        if not found:
            raise JobNotFound
        [row] = found
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

    async def page(self, account_id: UUID, *, before: UUID | None, limit: int) -> list[JobLine]:
        """Return up to `limit` jobs of an account, newest first, all older than `before`.

        Ids carry their time and are never reused, so a page never shifts while jobs are added.
        """
        values = {"account": account_id, "before": before or _AFTER_ALL, "limit": limit}
        return [
            JobLine(
                id=row.id,
                state=JobState(row.state),
                release=row.release,
                region=row.region,
                held=row.amount,
                charge=row.charged if row.ended_at else None,
                accepted_at=row.accepted_at,
                ended_at=row.ended_at,
            )
            for row in await _PAGE.rows(self._tx, values)
        ]
