"""`offpeak log check`: everything recomputed, from the records' rows to the signed checkpoints.

It trusts no stored hash: leaves come from the rows and their signatures, roots from the leaves, the
log's tree from the entries' bytes, keys from the entries that introduce them. It stops at the first
difference, because what follows on a wrong hash is wrong too.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.db.engine import Database
from app.receipts.batch import BEFORE_FIRST, BatchDraft, LastBatch, Leaf, following, leaf_of
from app.receipts.log_repository import BatchRow, CheckpointRow, EntryRow, LogRepository
from app.receipts.record import StoredRecord
from app.receipts.repository import ReceiptRepository
from ledger.checkpoint import open_checkpoint
from ledger.encoding import Address, Domain
from ledger.errors import LedgerError
from ledger.log_entry import BatchHeader, EntryKind, entry_leaf_hash
from ledger.log_keys import KeyTable, follow
from ledger.manifest import ExportManifest
from ledger.merkle import Node, Range, grow, range_hash, root_nodes
from ledger.note import Note, VerifierKey

AT_ONCE = 500

Progress = Callable[[int, int], None]
"""Told how many log entries are done, of how many."""


class Difference(Exception):
    """The first thing that does not hold."""


@dataclass(frozen=True, slots=True)
class LogReport:
    """What was recomputed, and the first difference, None when all holds."""

    entries: int
    checkpoints: int
    batches: int
    records: int
    difference: str | None

    @property
    def is_clean(self) -> bool:
        """Whether everything is as it was sealed and signed."""
        return self.difference is None


@dataclass(slots=True)
class _Seen:
    entries: int = 0
    checkpoints: int = 0
    batches: int = 0
    records: int = 0
    nodes: dict[Node, bytes] = field(default_factory=dict)
    """The complete nodes that the log's growth still needs."""
    table: KeyTable | None = None
    last: LastBatch = BEFORE_FIRST

    def report(self, difference: str | None) -> LogReport:
        return LogReport(self.entries, self.checkpoints, self.batches, self.records, difference)


class LogCheck:
    """Recomputes the log of a database."""

    def __init__(self, database: Database, *, origin: str, record_domain: Domain) -> None:
        """Take the database, the log's name and the usage records' domain."""
        self._database = database
        self._origin = origin
        self._domain = record_domain

    async def run(self, progress: Progress = lambda _done, _all: None) -> LogReport:
        """Recompute everything up to the present; changes nothing."""
        seen = _Seen()
        try:
            async with self._database.transaction() as tx:
                size = await LogRepository(tx).size()
            while seen.entries < size:
                async with self._database.transaction() as tx:
                    entries = await LogRepository(tx).entries(start=seen.entries, limit=AT_ONCE)
                if not entries:
                    break
                for entry in entries:
                    await self._check_entry(seen, entry)
                    progress(seen.entries, size)
            await self._check_rest(seen)
        except Difference as difference:
            return seen.report(str(difference))
        return seen.report(None)

    async def _check_entry(self, seen: _Seen, entry: EntryRow) -> None:
        where = f"log entry {entry.index}"
        _require(entry.index == seen.entries, f"log entry {seen.entries} is missing")
        leaf = entry_leaf_hash(entry.kind, entry.entry)
        _require(leaf == entry.leaf_hash, f"{where}: its bytes are not what was logged")
        peaks = [seen.nodes[node] for node in root_nodes(entry.index)]
        added = dict(grow(peaks, entry.index, leaf))
        size = entry.index + 1
        known = {**seen.nodes, **added}
        seen.nodes = {node: known[node] for node in root_nodes(size)}
        async with self._database.transaction() as tx:
            log = LogRepository(tx)
            stored = await log.nodes(list(added))
            checkpoint = await log.checkpoint(size)
            batch = None
            if entry.batch_number is not None:
                batch = await log.batch(entry.batch_number)
        _require(stored == added, f"{where}: the stored tree is not that of the entries")
        if entry.kind is EntryKind.KEY_ROTATION:
            seen.table = self._follow(seen.table, entry)
        _require(seen.table is not None, "the log does not begin with its keys")
        if entry.kind is EntryKind.BATCH_HEADER:
            _require(batch is not None, f"{where}: its batch is missing")
            assert batch is not None
            await self._check_batch(seen, entry, batch)
        if entry.kind is EntryKind.EXPORT_MANIFEST:
            self._check_manifest(seen, entry)
        if checkpoint is not None:
            _require(
                seen.checkpoints == entry.index, f"the checkpoint of size {entry.index} is missing"
            )
            self._check_checkpoint(seen, checkpoint)
        seen.entries = size

    def _follow(self, before: KeyTable | None, entry: EntryRow) -> KeyTable:
        try:
            trusted: Sequence[VerifierKey] = ()
            if before is None:
                claimed = KeyTable.read(Note.parse(entry.entry)).checkpoint_key(entry.index + 1)
                trusted = [claimed] if claimed else []
            return follow(before, entry.entry, index=entry.index, trusted=trusted)
        except LedgerError as error:
            raise Difference(f"log entry {entry.index}: {error}") from error

    def _check_checkpoint(self, seen: _Seen, row: CheckpointRow) -> None:
        where = f"checkpoint of size {row.size}"
        assert seen.table is not None
        key = seen.table.checkpoint_key(row.size)
        try:
            shown, _ = open_checkpoint(row.note, origin=self._origin, keys=[key] if key else [])
        except LedgerError as error:
            raise Difference(f"{where}: {error}") from error
        root = range_hash(Range(0, row.size), seen.nodes.__getitem__)
        _require(shown.head.size == row.size, f"{where}: it is signed for another size")
        _require(shown.head.root == root == row.root, f"{where}: the entries have another root")
        seen.checkpoints = row.size

    def _check_manifest(self, seen: _Seen, entry: EntryRow) -> None:
        where = f"log entry {entry.index}: the export manifest"
        assert seen.table is not None
        key = seen.table.checkpoint_key(entry.index + 1)
        try:
            note = Note.parse(entry.entry)
            manifest = ExportManifest.read(note)
            signers = note.signers([key] if key else [])
        except LedgerError as error:
            raise Difference(f"{where}: {error}") from error
        _require(manifest.origin == self._origin, f"{where} is of {manifest.origin}")
        _require(bool(signers), f"{where} is not signed by the key of its place")

    async def _check_batch(self, seen: _Seen, entry: EntryRow, batch: BatchRow) -> None:
        where = f"batch {batch.number}"
        _require(batch.header == entry.entry, f"{where}: its header is not what was logged")
        try:
            header = BatchHeader.parse(batch.header)
        except LedgerError as error:
            raise Difference(f"{where}: {error}") from error
        numbers = (header.number, header.start, header.end)
        _require(numbers == (batch.number, batch.start, batch.end), f"{where}: another place")
        draft = await self._draft(seen, entry, batch)
        again = draft.seal(seen.last, key_id=header.key_id)
        _require(again.header == batch.header, f"{where}: its records make another header")
        _require(again.chunk_roots == batch.chunk_roots, f"{where}: stored chunk roots differ")
        seen.last = following(batch.header)
        seen.batches += 1
        seen.records += header.count

    async def _draft(self, seen: _Seen, entry: EntryRow, batch: BatchRow) -> BatchDraft:
        assert seen.table is not None
        keys = seen.table.record_keys(entry.index)
        draft = BatchDraft()
        for start in range(batch.start, batch.end, AT_ONCE):
            end = min(start + AT_ONCE, batch.end)
            async with self._database.transaction() as tx:
                leaves = await LogRepository(tx).leaves(start, end)
                rows = await ReceiptRepository(tx).records([each for each, _ in leaves])
            _require(len(leaves) == end - start, f"batch {batch.number}: a record is missing")
            stored = [(rows[record_id], leaf_hash) for record_id, leaf_hash in leaves]
            draft.add(await asyncio.to_thread(self._leaves, stored, keys))
        return draft

    def _leaves(
        self, rows: Sequence[tuple[StoredRecord, bytes]], keys: Sequence[Address]
    ) -> list[Leaf]:
        """Return the leaves of rows, each as its stored hash says and signed by one of the keys."""
        leaves = []
        for stored, leaf_hash in rows:
            where = f"record {stored.record_id}"
            try:
                leaf = leaf_of(stored, self._domain)
            except LedgerError as error:
                raise Difference(f"{where}: {error}") from error
            _require(leaf.hash == leaf_hash, f"{where}: it is not what was sealed")
            _require(stored.key_id in keys, f"{where}: signed by a key that is not in force")
            leaves.append(leaf)
        return leaves

    async def _check_rest(self, seen: _Seen) -> None:
        """Nothing may lie beyond what the log says."""
        async with self._database.transaction() as tx:
            log = LogRepository(tx)
            latest = await log.checkpoint()
            last = await log.last_batch()
            pending = await log.unlogged(limit=1)
        if latest is not None:
            _require(latest.size <= seen.entries, f"a checkpoint of size {latest.size} has no log")
            _require(latest.size == seen.checkpoints, f"checkpoint {latest.size} was not reached")
        if last is not None and not pending:
            _require(last.end == seen.last.end, "sealed records lie beyond the last batch")


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 -- an assertion reads so
    if not holds:
        raise Difference(otherwise)
