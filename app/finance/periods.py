"""Accounting periods: months of UTC, opened by use, soft-closed for review, closed for good.

`app/db/functions/80_finance.sql` says when a row is booked and proves that a closed month stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import TextClause, select, text

from app.db.engine import Database
from app.db.tables import accounting_period
from app.finance.errors import (
    BadInterval,
    BadMonth,
    EarlierPeriodOpen,
    LaterPeriodClosed,
    PeriodClosed,
    PeriodError,
    PeriodNotOver,
    PeriodNotReviewed,
    RecordsUnsealed,
    TransfersInFlight,
)
from app.finance.interval import month_interval

SOFT_CLOSE = text("SELECT offpeak.soft_close_period(:month) AS code, 0 AS n")
REOPEN = text("SELECT offpeak.reopen_period(:month) AS code, 0 AS n")
CLOSE = text("SELECT code, n FROM offpeak.close_period(:month)")

_ERRORS: Final[Mapping[str, type[PeriodError]]] = {
    "not_over": PeriodNotOver,
    "not_soft_closed": PeriodNotReviewed,
    "closed": PeriodClosed,
    "later_closed": LaterPeriodClosed,
    "earlier_open": EarlierPeriodOpen,
    "unsealed": RecordsUnsealed,
    "in_flight": TransfersInFlight,
}


class PeriodState(StrEnum):
    """A period's state; a month without a row is open."""

    OPEN = "open"
    SOFT_CLOSED = "soft-closed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Period:
    """A month that has been soft-closed at least once: starts_at <= booked < ends_at.

    `closed_leaf` is the first place in the sequence of records that it does not hold.
    """

    name: str
    starts_at: datetime
    ends_at: datetime
    state: PeriodState
    soft_closed_at: datetime | None
    closed_at: datetime | None
    closed_leaf: int | None


def parse_month(text: str) -> str:
    """Return a month's name, YYYY-MM from 1970 on; BadMonth for anything else."""
    try:
        month_interval(text)
    except BadInterval:
        raise BadMonth(text) from None
    return text


class Periods:
    """Lists periods, and changes their state under the operator's role."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Period]:
        """Return every month that has a row, by time."""
        p = accounting_period.c
        query = select(
            p.name, p.starts_at, p.ends_at, p.state, p.soft_closed_at, p.closed_at, p.closed_leaf
        ).order_by(p.ends_at)
        async with self._database.statement() as tx:
            rows = (await tx.execute(query)).all()
        return [Period(*row[:3], PeriodState(row.state), *row[4:]) for row in rows]

    async def soft_close(self, month: str) -> None:
        """Begin the review of a month that is over; repeating it changes nothing.

        Raises:
            PeriodNotOver, PeriodClosed, LaterPeriodClosed: nothing was changed.
        """
        await self._change(SOFT_CLOSE, month)

    async def reopen(self, month: str) -> None:
        """End a review without closing. Raises PeriodNotReviewed or PeriodClosed."""
        await self._change(REOPEN, month)

    async def close(self, month: str) -> None:
        """Close a soft-closed month for good; repeating it changes nothing.

        Raises:
            PeriodNotReviewed, EarlierPeriodOpen, RecordsUnsealed: nothing was changed.
            TransfersInFlight: a transaction still runs; the same works in a few seconds.
        """
        await self._change(CLOSE, month)

    async def _change(self, statement: TextClause, month: str) -> None:
        async with self._database.transaction() as tx:
            row = (await tx.execute(statement, {"month": parse_month(month)})).one()
        if row.code != "ok":
            raise _ERRORS[row.code](month, int(row.n))
