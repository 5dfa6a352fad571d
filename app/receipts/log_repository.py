"""Queries on the log's tables and on sealed records, inside one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.calls import SqlScalar
from app.db.tables import log_checkpoint, log_entry, log_node, receipt_batch, usage_record
from app.receipts.batch import SealedBatch
from ledger.encoding import Address
from ledger.log_entry import EntryKind
from ledger.merkle import LogIndex, Node

SEAL_BATCH = SqlScalar(
    "seal_batch",
    {
        "number": "bigint",
        "start": "bigint",
        "keys": "bigint",
        "record": "uuid[]",
        "hash": "bytea[]",
        "header": "bytea",
        "chunk_roots": "bytea",
    },
)
APPEND = SqlScalar(
    "append_log_entry",
    {
        "index": "bigint",
        "kind": "text",
        "entry": "bytea",
        "leaf_hash": "bytea",
        "batch": "bigint",
        "level": "smallint[]",
        "node": "bigint[]",
        "hash": "bytea[]",
    },
)
STORE_CHECKPOINT = SqlScalar(
    "store_checkpoint", {"size": "bigint", "root": "bytea", "note": "bytea"}
)
# The lock of `offpeak._lock_log`, which is for other functions only and not for this role to call.
LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('offpeak.receipt_log', 0))")
# A wallet's records up to its first one that is not signed by a key in force, in its own order.
SEALABLE = text(
    "SELECT x.record_id FROM ("
    " SELECT u.record_id, u.account_id, u.payer_seq, bool_and(u.key_id = ANY(:keys)"
    "   AND u.signature IS NOT NULL AND u.account_id <> ALL(:without))"
    "   OVER (PARTITION BY u.account_id ORDER BY u.payer_seq) AS ready"
    "  FROM offpeak.usage_record u WHERE u.leaf_index IS NULL) x"
    " WHERE x.ready ORDER BY x.account_id, x.payer_seq LIMIT :limit"
)


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A stored batch; its records' places are `start` .. `end` - 1."""

    number: int
    start: int
    end: int
    header: bytes
    chunk_roots: bytes


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A log entry as stored."""

    index: LogIndex
    kind: EntryKind
    entry: bytes
    leaf_hash: bytes
    batch_number: int | None


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A stored checkpoint."""

    size: int
    root: bytes
    note: bytes


class LogRepository:
    """Reads and extends the log."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    # --- batches ----------------------------------------------------------------------------

    async def sealable(
        self, *, keys: Iterable[Address], without: Iterable[UUID], limit: int
    ) -> list[UUID]:
        """Return records that may be sealed, each wallet's in its own order and without a gap.

        Args:
            keys: The record keys in force.
            without: Accounts whose records do not verify.
            limit: At most so many.
        """
        given = {"keys": list(keys), "without": list(without), "limit": limit}
        return list((await self._tx.execute(SEALABLE, given)).scalars())

    async def unsealed(self, *, keys: Iterable[str]) -> int:
        """Return how many records signed by these keys are not sealed."""
        u = usage_record.c
        query = select(func.count()).where(u.leaf_index.is_(None), u.key_id.in_(list(keys)))
        return int(await self._tx.scalar(query) or 0)

    async def lock(self) -> None:
        """Keep everybody else from sealing or logging until this transaction ends."""
        await self._tx.execute(LOCK)

    async def seal(self, batch: SealedBatch, *, number: int, start: int, keys: LogIndex) -> None:
        """Store a batch that was made under the key rotation at index `keys`.

        Raises:
            DatabaseConflict: another batch or another rotation came between.
        """
        await SEAL_BATCH.value(
            self._tx,
            {
                "number": number,
                "start": start,
                "keys": keys,
                "record": batch.records,
                "hash": batch.hashes,
                "header": batch.header,
                "chunk_roots": batch.chunk_roots,
            },
        )

    async def last_batch(self) -> BatchRow | None:
        """Return the newest batch."""
        query = select(receipt_batch).order_by(receipt_batch.c.number.desc()).limit(1)
        row = (await self._tx.execute(query)).one_or_none()
        return None if row is None else batch_row(row)

    async def batch(self, number: int) -> BatchRow | None:
        """Return a batch by its number."""
        query = select(receipt_batch).where(receipt_batch.c.number == number)
        row = (await self._tx.execute(query)).one_or_none()
        return None if row is None else batch_row(row)

    async def batch_of_leaf(self, leaf_index: int) -> BatchRow | None:
        """Return the batch that holds a place of the sequence."""
        start = receipt_batch.c.start
        query = select(receipt_batch).where(start <= leaf_index).order_by(start.desc()).limit(1)
        row = (await self._tx.execute(query)).one_or_none()
        return None if row is None or row.end <= leaf_index else batch_row(row)

    async def unlogged(self, *, limit: int) -> list[BatchRow]:
        """Return the first batches whose headers are not in the log."""
        logged = select(func.coalesce(func.max(log_entry.c.batch_number), -1)).scalar_subquery()
        number = receipt_batch.c.number
        query = select(receipt_batch).where(number > logged).order_by(number).limit(limit)
        return [batch_row(row) for row in await self._tx.execute(query)]

    async def leaves(self, start: int, end: int) -> list[tuple[UUID, bytes]]:
        """Return record ids and leaf hashes of the places `start` .. `end` - 1, in order."""
        u = usage_record.c
        query = (
            select(u.record_id, u.leaf_hash)
            .where(u.leaf_index >= start, u.leaf_index < end)
            .order_by(u.leaf_index)
        )
        return [(row.record_id, bytes(row.leaf_hash)) for row in await self._tx.execute(query)]

    # --- the log ----------------------------------------------------------------------------

    async def size(self) -> int:
        """Return how many entries the log has."""
        return int(await self._tx.scalar(select(func.max(log_entry.c.index) + 1)) or 0)

    async def nodes(self, wanted: Sequence[Node]) -> dict[Node, bytes]:
        """Return the stored nodes among those wanted."""
        if not wanted:
            return {}
        n = log_node.c
        query = select(log_node).where(tuple_(n.level, n.index).in_(wanted))
        rows = await self._tx.execute(query)
        return {(level, index): bytes(found) for level, index, found in rows}

    async def append(
        self,
        index: int,
        kind: EntryKind,
        entry: bytes,
        *,
        nodes: Sequence[tuple[Node, bytes]],
        batch_number: int | None = None,
    ) -> None:
        """Store an entry with its nodes, the leaf first.

        Raises:
            DatabaseConflict: another entry came between.
        """
        await APPEND.value(
            self._tx,
            {
                "index": index,
                "kind": kind.value,
                "entry": entry,
                "leaf_hash": nodes[0][1],
                "batch": batch_number,
                "level": [level for (level, _), _ in nodes],
                "node": [place for (_, place), _ in nodes],
                "hash": [each for _, each in nodes],
            },
        )

    async def entry(self, index: int) -> EntryRow | None:
        """Return the entry at an index."""
        row = (
            await self._tx.execute(select(log_entry).where(log_entry.c.index == index))
        ).one_or_none()
        return None if row is None else entry_row(row)

    async def entry_of_batch(self, number: int) -> EntryRow | None:
        """Return the entry that holds a batch's header."""
        query = select(log_entry).where(log_entry.c.batch_number == number)
        row = (await self._tx.execute(query)).one_or_none()
        return None if row is None else entry_row(row)

    async def index_of(self, leaf_hash: bytes) -> LogIndex | None:
        """Return where an entry with this leaf hash stands."""
        query = select(log_entry.c.index).where(log_entry.c.leaf_hash == leaf_hash)
        found = await self._tx.scalar(query)
        return None if found is None else LogIndex(int(found))

    async def entries(
        self, *, kind: EntryKind | None = None, start: int = 0, limit: int
    ) -> list[EntryRow]:
        """Return entries from `start` on, in order."""
        e = log_entry.c
        query = select(log_entry).where(e.index >= start).order_by(e.index).limit(limit)
        if kind is not None:
            query = query.where(e.kind == kind.value)
        return [entry_row(row) for row in await self._tx.execute(query)]

    async def checkpoint(self, size: int | None = None) -> CheckpointRow | None:
        """Return the checkpoint of a size, or the latest."""
        c = log_checkpoint.c
        query = select(log_checkpoint).order_by(c.size.desc()).limit(1)
        if size is not None:
            query = query.where(c.size == size)
        row = (await self._tx.execute(query)).one_or_none()
        return None if row is None else CheckpointRow(row.size, bytes(row.root), bytes(row.note))

    async def store_checkpoint(self, size: int, root: bytes, note: bytes) -> None:
        """Store the next checkpoint. Raises DatabaseConflict when it is not the next."""
        await STORE_CHECKPOINT.value(self._tx, {"size": size, "root": root, "note": note})


def batch_row(row: Any) -> BatchRow:
    """Return a row of `receipt_batch`."""
    header, roots = bytes(row.header), bytes(row.chunk_roots)
    return BatchRow(row.number, row.start, row.end, header, roots)


def entry_row(row: Any) -> EntryRow:
    """Return a row of `log_entry`."""
    index, kind, entry, leaf_hash, batch_number, _logged_at = row
    return EntryRow(LogIndex(index), EntryKind(kind), bytes(entry), bytes(leaf_hash), batch_number)
