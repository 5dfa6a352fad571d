"""The published log as others see it: checkpoints, entries, proofs, keys. Reads only."""

from app.db.engine import Database
from app.receipts.errors import BatchNotFound, EntryNotFound
from app.receipts.log_repository import BatchRow, CheckpointRow, EntryRow, LogRepository
from app.receipts.proofs import (
    batch_part,
    find_batch,
    find_checkpoint,
    hashes_of,
    prove,
    rotations_until,
)
from ledger.checkpoint import LogProof
from ledger.log_keys import KeyTable
from ledger.merkle import LogIndex, consistency_ranges
from ledger.note import Note
from ledger.receipt import BatchPart


class LogReader:
    """Reads the published log. What has no checkpoint yet is not shown to anybody."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def checkpoint(self, size: int | None = None) -> CheckpointRow:
        """Return the checkpoint of a size, or the latest.

        Raises:
            CheckpointNotFound: there is none.
        """
        async with self._database.transaction() as tx:
            return await find_checkpoint(LogRepository(tx), size)

    async def entry(self, index: int) -> EntryRow:
        """Return a published entry.

        Raises:
            EntryNotFound: the index is at or beyond the latest checkpoint's size.
        """
        async with self._database.transaction() as tx:
            log = LogRepository(tx)
            latest = await log.checkpoint()
            size = latest.size if latest else 0
            found = await log.entry(index) if index < size else None
        if found is None:
            raise EntryNotFound(index, size=size)
        return found

    async def proof(self, index: LogIndex, size: int | None = None) -> LogProof:
        """Return the proof that an entry is in the log of a checkpoint, the latest by default.

        Raises:
            CheckpointNotFound, EntryNotFound: there is no such checkpoint, or entry in it.
        """
        async with self._database.transaction() as tx:
            checkpoint = await find_checkpoint(LogRepository(tx), size)
            return await prove(tx, index, checkpoint)

    async def consistency(self, old: int, new: int) -> tuple[bytes, ...]:
        """Return the proof that the log of size `old` is the start of that of size `new`.

        Raises:
            CheckpointNotFound: one of the two was never published. BadProof: `old` is above `new`.
        """
        async with self._database.transaction() as tx:
            log = LogRepository(tx)
            for size in (old, new):
                await find_checkpoint(log, size)
            return await hashes_of(log, consistency_ranges(old, new))

    async def batch(self, number: int) -> BatchRow:
        """Return a receipt batch whose header is published.

        Raises:
            BatchNotFound: there is none.
        """
        async with self._database.transaction() as tx:
            return await find_batch(LogRepository(tx), number)

    async def batch_proof(self, number: int, index: int) -> tuple[bytes, BatchPart]:
        """Return a leaf's hash in a batch and the proof of it.

        Raises:
            BatchNotFound: there is no such batch, or no such place in it.
        """
        async with self._database.transaction() as tx:
            log = LogRepository(tx)
            batch = await find_batch(log, number)
            place = batch.start + index
            found = await log.leaves(place, min(place + 1, batch.end))
            if not found:
                raise BatchNotFound(number)
            return found[0][1], await batch_part(log, batch, place)

    async def keys(self) -> tuple[KeyTable, int]:
        """Return the keys in the published log, and its size.

        Raises:
            CheckpointNotFound: nothing is published yet.
        """
        async with self._database.transaction() as tx:
            log = LogRepository(tx)
            checkpoint = await find_checkpoint(log, None)
            rotations = await rotations_until(log, checkpoint.size)
        return KeyTable.read(Note.parse(rotations[-1].entry)), checkpoint.size
