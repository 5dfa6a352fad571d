"""`GET /v1/jobs`: a wallet's jobs, newest first, a page at a time."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request

from app.db.engine import Database
from app.jobs.job import JobLine
from app.jobs.repository import JobRepository
from app.kit.clock import format_time, utc_now
from app.kit.ids import IdPrefix, format_id, parse_id
from app.requests.schemas import JobLineOut, JobPageOut
from app.wallets.endpoints import ReadHeader, read_gate
from app.wallets.read_access import ReadGate
from ledger.accounts import wallet_account
from ledger.encoding import Address
from ledger.money import Nano, format_amount

MAX_PAGE = 100
DEFAULT_PAGE = 20

router = APIRouter(prefix="/v1", tags=["requests"])


@dataclass(frozen=True, slots=True)
class JobListing:
    """The jobs that a wallet paid for in one token."""

    database: Database
    token: Address

    async def page(self, payer: Address, *, before: UUID | None, limit: int) -> JobPageOut:
        """Return up to `limit` jobs older than `before`, and where the next page begins."""
        account_id = wallet_account(payer, self.token)
        async with self.database.statement() as tx:
            lines = await JobRepository(tx).page(account_id, before=before, limit=limit + 1)
        more = len(lines) > limit
        shown = [line_out(line) for line in lines[:limit]]
        return JobPageOut(jobs=shown, next=shown[-1].id if more else None)


def line_out(line: JobLine) -> JobLineOut:
    """Return one line in wire form."""
    return JobLineOut(
        id=format_id(IdPrefix.JOB, line.id),
        state=line.state.value,
        model=line.release,
        region=line.region,
        created_at=format_time(line.accepted_at),
        completed_at=format_time(line.ended_at) if line.ended_at else None,
        held=format_amount(Nano(line.held)),
        charge=None if line.charge is None else format_amount(Nano(line.charge)),
    )


def job_listing(request: Request) -> JobListing:
    """Return the listing that the application was built with."""
    listing = request.app.state.job_listing
    assert isinstance(listing, JobListing)
    return listing


@router.get("/jobs")
async def list_jobs(
    listing: Annotated[JobListing, Depends(job_listing)],
    gate: Annotated[ReadGate, Depends(read_gate)],
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = DEFAULT_PAGE,
    before: Annotated[
        str | None, Query(description="Only jobs older than this one.", max_length=64)
    ] = None,
    authorization: ReadHeader = None,
) -> JobPageOut:
    """List the signing wallet's jobs, newest first; read access of scope `jobs`."""
    payer = await gate.payer(authorization, scope="jobs", now=utc_now())
    start = None if before is None else parse_id(IdPrefix.JOB, before)
    return await listing.page(payer, before=start, limit=limit)
