"""Reads what an export needs in one snapshot, through cursors of the server.

Which rows belong to the interval says `booked_at`, half-open. At most `CHUNK` rows are here at a
time. What is not in the published log yet is not there for an export.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg.rows import namedtuple_row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.finance.export.errors import ExportContradicts
from app.finance.export.rows import AccountRow, BatchPlace, Leaf, Party, RecordRow, TransferRow
from app.finance.interval import Interval
from app.receipts.record import usage_record_of
from app.receipts.repository import RECORD_COLUMNS, RECORD_TABLES, stored_record
from ledger.accounts import AccountKind
from ledger.encoding import Address, Domain
from ledger.errors import LedgerError
from ledger.log_entry import record_leaf_hash
from ledger.money import Nano

CHUNK = 1_000
"""Rows that are in memory at once."""
BATCHES_AT_ONCE = 100
CURSOR = "offpeak_export"

RECORDS: LiteralString = "offpeak.booked_records(%(start)s, %(end)s)"
TRANSFERS_OF: LiteralString = "offpeak.booked_transfers(%(start)s, %(end)s)"
# Headers are logged in the order of the batches: one place parts what is logged from the rest.
STATE: LiteralString = (
    'SELECT floor(extract(epoch FROM now()))::bigint AS now, coalesce((SELECT max(r."end")'
    " FROM offpeak.receipt_batch r JOIN offpeak.log_entry e ON e.batch_number = r.number"
    " WHERE e.index < (SELECT max(c.size) FROM offpeak.log_checkpoint c)), 0) AS logged_end"
)
COUNTS: LiteralString = (
    "SELECT count(*) FILTER (WHERE u.leaf_index < %(logged_end)s) AS records,"
    " count(*) FILTER (WHERE u.leaf_index IS NULL OR u.leaf_index >= %(logged_end)s) AS pending,"
    f" (SELECT count(*) FROM {TRANSFERS_OF}) AS transfers"
    f" FROM {RECORDS} b JOIN offpeak.usage_record u ON u.record_id = b.record_id"
)
BATCHES: LiteralString = (
    'SELECT r.number, r.start, r."end", r.header, e.index AS log_index'
    " FROM offpeak.receipt_batch r JOIN offpeak.log_entry e ON e.batch_number = r.number"
    " WHERE r.number IN (SELECT width_bucket(u.leaf_index, (SELECT array_agg(x.start ORDER BY"
    f" x.start) FROM offpeak.receipt_batch x)) - 1 FROM {RECORDS} b"
    " JOIN offpeak.usage_record u ON u.record_id = b.record_id"
    " WHERE u.leaf_index < %(logged_end)s) ORDER BY r.number"
)
LEAVES: LiteralString = (
    "SELECT " + RECORD_COLUMNS + ", j.release, j.region,"
    " b.booked_at >= %(start)s AND b.booked_at < %(end)s AS wanted,"
    " floor(extract(epoch FROM b.booked_at))::bigint AS booked,"
    " (SELECT floor(extract(epoch FROM o.booked_at))::bigint FROM offpeak.booked_record o"
    " WHERE o.record_id = c.corrects) AS corrected_at"
    " FROM " + RECORD_TABLES + " JOIN offpeak.booked_record b ON b.record_id = u.record_id"
    " WHERE u.leaf_index >= %(first)s AND u.leaf_index < %(last)s ORDER BY u.leaf_index"
)
TRANSFERS: LiteralString = (
    "SELECT t.ref, t.leg, floor(extract(epoch FROM b.booked_at))::bigint AS booked,"
    " floor(extract(epoch FROM t.created_at))::bigint AS created, d.kind AS debit_kind,"
    " d.owner AS debit_owner, c.kind AS credit_kind, c.owner AS credit_owner, t.asset, t.amount"
    f" FROM {TRANSFERS_OF} b JOIN offpeak.transfer t ON t.ref = b.ref AND t.leg = b.leg"
    " JOIN offpeak.account d ON d.id = t.debit JOIN offpeak.account c ON c.id = t.credit"
    " ORDER BY b.booked_at, t.ref, t.leg"
)
ACCOUNTS: LiteralString = (
    "SELECT a.kind, a.owner, a.asset, s.opening, s.closing FROM (SELECT x.account,"
    " sum(x.amount)::numeric(38,0) AS closing, coalesce(sum(x.amount)"
    " FILTER (WHERE b.booked_at < %(start)s), 0)::numeric(38,0) AS opening"
    " FROM (SELECT t.ref, t.leg, t.debit AS account, t.amount FROM offpeak.transfer t"
    " UNION ALL SELECT t.ref, t.leg, t.credit, -t.amount FROM offpeak.transfer t) x"
    " JOIN offpeak.booked_transfer b ON b.ref = x.ref AND b.leg = x.leg"
    " WHERE b.booked_at < %(end)s GROUP BY x.account) s"
    " JOIN offpeak.account a ON a.id = s.account ORDER BY a.kind, a.owner, a.asset"
)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is: rows of the interval, and records of it that the log lacks."""

    now: int
    logged_end: int
    records: int
    pending: int
    transfers: int


class ExportSource:
    """One snapshot of the database, read for one interval."""

    def __init__(self, view: AsyncConnection, interval: Interval, domain: Domain) -> None:
        """Take a REPEATABLE READ view and the domain that records are signed under."""
        self._view = view
        self._domain = domain
        self._given: dict[str, object] = {"start": interval.start, "end": interval.end}

    async def extent(self) -> Extent:
        """Return counts and the database's time."""
        [state] = [row async for chunk in self._rows(STATE) for row in chunk]
        self._given["logged_end"] = state.logged_end
        [counts] = [row async for chunk in self._rows(COUNTS) for row in chunk]
        return Extent(state.now, state.logged_end, counts.records, counts.pending, counts.transfers)

    async def batches(self) -> AsyncIterator[list[BatchPlace]]:
        """Yield the logged batches that hold records of the interval, in order."""
        async for rows in self._rows(BATCHES, name="batches", size=BATCHES_AT_ONCE):
            yield [
                BatchPlace(
                    number=row.number,
                    start=row.start,
                    end=row.end,
                    header=bytes(row.header),
                    log_index=row.log_index,
                )
                for row in rows
            ]

    async def leaves(self, start: int, end: int) -> AsyncIterator[list[Leaf]]:
        """Yield all leaves of a stretch of the sequence, those of the interval with their rows.

        Raises:
            ExportContradicts: a leaf is missing, or is not its record's.
        """
        place = start
        async for rows in self._rows(LEAVES, first=start, last=end):
            leaves = [self._leaf(row) for row in rows]
            for leaf in leaves:
                if leaf.place != place:
                    raise ExportContradicts(f"place {place} of the sequence is empty")
                place += 1
            yield leaves
        if place != end:
            raise ExportContradicts(f"place {place} of the sequence is empty")

    async def transfers(self) -> AsyncIterator[list[TransferRow]]:
        """Yield the interval's transfers in the order of booking, reference and leg."""
        async for rows in self._rows(TRANSFERS):
            yield [_transfer(row) for row in rows]

    async def accounts(self) -> AsyncIterator[list[AccountRow]]:
        """Yield every account that money ever moved on, with both balances.

        In the order of kind, owner and asset: what one owner has stands together.
        """
        async for rows in self._rows(ACCOUNTS):
            yield [
                AccountRow(
                    party=Party(AccountKind(row.kind), row.owner),
                    asset=Address(row.asset),
                    opening=int(row.opening),
                    closing=int(row.closing),
                )
                for row in rows
            ]

    def _leaf(self, row: Any) -> Leaf:
        stored_hash = bytes(row.leaf_hash)
        if not row.wanted:
            return Leaf(row.leaf_index, stored_hash, None)
        stored = stored_record(row)
        try:
            record = usage_record_of(stored)
        except LedgerError as error:
            raise ExportContradicts(f"record {stored.record_id}: {error}") from error
        signature = stored.signature
        if (
            signature is None
            or record_leaf_hash(record.digest(self._domain), signature) != stored_hash
        ):
            raise ExportContradicts(f"record {stored.record_id} is not what was sealed")
        exported = RecordRow(
            record=record,
            signature=signature,
            place=row.leaf_index,
            booked_at=row.booked,
            model=row.release,
            region=row.region,
            corrected_at=row.corrected_at,
        )
        return Leaf(row.leaf_index, stored_hash, exported)

    async def _rows(
        self, query: LiteralString, *, name: str = "rows", size: int = CHUNK, **more: object
    ) -> AsyncIterator[list[Any]]:
        raw = await self._view.get_raw_connection()
        connection = raw.driver_connection
        assert isinstance(connection, psycopg.AsyncConnection)
        async with connection.cursor(f"{CURSOR}_{name}", row_factory=namedtuple_row) as cursor:
            await cursor.execute(query, self._given | more, binary=True)
            while rows := await cursor.fetchmany(size):
                yield rows


def _transfer(row: Any) -> TransferRow:
    return TransferRow(
        ref=str(row.ref),
        leg=row.leg,
        booked_at=row.booked,
        created_at=row.created,
        debit=Party(AccountKind(row.debit_kind), row.debit_owner),
        credit=Party(AccountKind(row.credit_kind), row.credit_owner),
        asset=Address(row.asset),
        amount=Nano(row.amount),
    )
