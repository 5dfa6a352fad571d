"""Queries and functions of the watcher: what is stored of the chain, and what is made of it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, bindparam, cast, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from app.chain.blocks import BlockId
from app.db.tables import chain_cursor, chain_event
from app.treasury.events import CREDITING, NOT_COUNTED, EventKind, LogPlace, SeenEvent
from app.treasury.fee import nano
from app.treasury.watching import StoredEvent, StoredSums
from ledger.encoding import Address
from ledger.money import Nano

RECORD = text(
    "SELECT offpeak.record_events(:chain, CAST(:number AS bigint[]), :block, :tx,"
    " CAST(:log AS int[]), CAST(:mined_at AS timestamptz[]), CAST(:kind AS text[]),"
    " CAST(:payer AS text[]), CAST(:amount AS numeric[]), :ref, :extra)"
).bindparams(
    bindparam("block", type_=ARRAY(BYTEA)),
    bindparam("tx", type_=ARRAY(BYTEA)),
    bindparam("ref", type_=ARRAY(BYTEA)),
    bindparam("extra", type_=ARRAY(JSONB)),
)
ORPHAN = text("SELECT offpeak.orphan_event(:event)")
BOOK = text("SELECT offpeak.book_event(:event, :asset)")
LAPSE = text("SELECT offpeak.lapse_exits(:chain, :at)")
COVER = text("SELECT offpeak.cover_receivables(:limit)")
SET_CURSOR = text("SELECT offpeak.set_cursor(:chain, :number, :hash)")
# The anchor before each one that is not passed yet must be stored, whether passed or not.
BROKEN_LINKS = text(
    "SELECT count(*) FROM offpeak.chain_event p"
    " WHERE p.chain_id = :chain AND p.payer = '' AND p.kind = 'published'"
    "   AND p.state <> 'orphaned' AND p.block_number > :after AND p.block_number <= :up_to"
    "   AND p.extra ->> 'previous_size' <> '0'"
    "   AND NOT EXISTS (SELECT FROM offpeak.chain_event q WHERE q.chain_id = p.chain_id"
    "     AND q.payer = '' AND q.kind = 'published' AND q.state <> 'orphaned'"
    "     AND q.block_number <= :up_to AND q.extra ->> 'size' = p.extra ->> 'previous_size')"
)
RECORD_AT_ONCE = 500

e, cursor = chain_event.c, chain_cursor.c


class WatchRepository:
    """Reads and books events of one chain; every call may be a transaction of its own."""

    def __init__(self, tx: AsyncConnection, *, chain_id: int, asset: Address) -> None:
        self._tx = tx
        self._chain_id = chain_id
        self._asset = asset

    async def cursor(self) -> BlockId | None:
        """Return the last final block up to which every event is stored."""
        query = select(cursor.number, cursor.hash).where(cursor.chain_id == self._chain_id)
        row = (await self._tx.execute(query)).one_or_none()
        return None if row is None else BlockId(row.number, bytes(row.hash))

    async def set_cursor(self, place: BlockId) -> None:
        """Move the cursor forward; back it does not go."""
        given = {"chain": self._chain_id, "number": place.number, "hash": place.hash}
        await self._tx.execute(SET_CURSOR, given)

    async def between(self, first: int, last: int) -> list[StoredEvent]:
        """Return the stored events of blocks first .. last that are not orphaned."""
        return await self._events(e.state != "orphaned", e.block_number.between(first, last))

    async def blocks_down_from(self, number: int, *, limit: int) -> list[BlockId]:
        """Return blocks with events up to a height, not orphaned, highest first."""
        query = (
            select(e.block_number, e.block_hash)
            .where(e.chain_id == self._chain_id, e.state != "orphaned", e.block_number <= number)
            .distinct()
            .order_by(e.block_number.desc())
            .limit(limit)
        )
        rows = await self._tx.execute(query)
        return [BlockId(row.block_number, bytes(row.block_hash)) for row in rows]

    async def waiting(
        self, *, up_to: int, limit: int, kind: EventKind | None = None
    ) -> list[StoredEvent]:
        """Return the first events up to a block that are not booked, in the chain's order."""
        of_kind = [] if kind is None else [e.kind == kind.value]
        return await self._events(e.state == "seen", e.block_number <= up_to, *of_kind, limit=limit)

    async def credited_after(self, number: int) -> Mapping[Address, Nano]:
        """Return what wallets were credited for deposits above a block, in nano."""
        query = (
            select(e.payer, func.sum(e.amount).label("amount"))
            .where(
                e.chain_id == self._chain_id,
                e.kind == EventKind.DEPOSITED.value,
                e.state == "booked",
                e.block_number > number,
            )
            .group_by(e.payer)
        )
        rows = await self._tx.execute(query)
        return {Address(row.payer): nano(int(row.amount)) for row in rows}

    async def deposited(self, payers: Collection[Address], *, up_to: int) -> dict[Address, int]:
        """Return what the chain has credited to wallets by the stored events, in base units."""
        query = (
            select(e.payer, func.sum(e.amount).label("amount"))
            .where(
                e.chain_id == self._chain_id,
                e.kind.in_([kind.value for kind in CREDITING]),
                e.payer.in_(payers),
                e.state != "orphaned",
                e.block_number <= up_to,
            )
            .group_by(e.payer)
        )
        rows = await self._tx.execute(query)
        return {Address(row.payer): int(row.amount) for row in rows}

    async def sums(self, *, after: int, up_to: int) -> StoredSums:
        """Return what the stored events of blocks after + 1 .. up_to add up to."""
        plain, credited = (
            func.coalesce(func.sum(e.amount).filter(e.kind == kind.value), 0)
            for kind in (EventKind.PLAIN_TRANSFER, EventKind.UNACCOUNTED_CREDITED)
        )
        size = cast(e.extra["size"].astext, BigInteger)
        query = select(
            func.count()
            .filter(e.kind.not_in([kind.value for kind in NOT_COUNTED]))
            .label("counted"),
            (plain - credited).label("unclaimed"),
            func.coalesce(func.max(size).filter(e.kind == EventKind.PUBLISHED.value), 0).label(
                "anchored"
            ),
        ).where(
            e.chain_id == self._chain_id,
            e.state != "orphaned",
            e.block_number > after,
            e.block_number <= up_to,
        )
        row = (await self._tx.execute(query)).one()
        given = {"chain": self._chain_id, "after": after, "up_to": up_to}
        return StoredSums(
            counted=row.counted,
            unclaimed=int(row.unclaimed),
            anchored=row.anchored,
            broken_links=int(await self._tx.scalar(BROKEN_LINKS, given) or 0),
        )

    async def record(self, events: Sequence[SeenEvent], mined_at: Mapping[bytes, datetime]) -> int:
        """Store events; return how many are new, or back on the chain."""
        new = 0
        for start in range(0, len(events), RECORD_AT_ONCE):
            some = events[start : start + RECORD_AT_ONCE]
            given = {
                "chain": self._chain_id,
                "number": [event.place.block_number for event in some],
                "block": [event.place.block_hash for event in some],
                "tx": [event.place.transaction for event in some],
                "log": [event.place.log_index for event in some],
                "mined_at": [mined_at[event.place.block_hash] for event in some],
                "kind": [event.kind.value for event in some],
                "payer": [event.payer or "" for event in some],
                "amount": [event.amount for event in some],
                "ref": [event.ref for event in some],
                "extra": [dict(event.extra) for event in some],
            }
            new += int(await self._tx.scalar(RECORD, given) or 0)
        return new

    async def book(self, event: UUID) -> str:
        """Book an event; return the database's code."""
        return str(await self._tx.scalar(BOOK, {"event": event, "asset": self._asset}))

    async def orphan(self, event: UUID) -> str:
        """Undo an event that is proved not to be on the chain; return the database's code."""
        return str(await self._tx.scalar(ORPHAN, {"event": event}))

    async def lapse_exits(self, at: datetime) -> int:
        """End exits that were not finalized in their time; return how many."""
        return int(await self._tx.scalar(LAPSE, {"chain": self._chain_id, "at": at}) or 0)

    async def cover_receivables(self, *, limit: int) -> int:
        """Let wallets that owe pay from what is available; return how many did."""
        return int(await self._tx.scalar(COVER, {"limit": limit}) or 0)

    async def _events(
        self, *conditions: ColumnElement[bool], limit: int | None = None
    ) -> list[StoredEvent]:
        query = (
            select(e.id, e.block_number, e.block_hash, e.tx_hash, e.log_index)
            .add_columns(e.kind, e.payer, e.amount, e.state)
            .where(e.chain_id == self._chain_id, *conditions)
            .order_by(e.block_number, e.log_index)
            .limit(limit)
        )
        return [_event(row) for row in await self._tx.execute(query)]


def _event(row: Any) -> StoredEvent:
    return StoredEvent(
        id=row.id,
        place=LogPlace(row.block_number, row.log_index, bytes(row.block_hash), bytes(row.tx_hash)),
        kind=EventKind(row.kind),
        payer=row.payer,
        amount=int(row.amount),
        is_booked=row.state == "booked",
    )
