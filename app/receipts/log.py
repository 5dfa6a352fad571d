"""The log as others see it: checkpoints, entries, proofs, keys. Reads only; and its one writer."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.kit.errors import DatabaseConflict
from app.receipts.batch import CHUNK, batch_proof
from app.receipts.errors import BatchNotFound, CheckpointNotFound, EntryNotFound, LogDamaged
from app.receipts.log_repository import BatchRow, CheckpointRow, EntryRow, LogRepository
from ledger.checkpoint import LogProof
from ledger.errors import BadProof
from ledger.log_entry import BatchHeader, EntryKind, entry_leaf_hash
from ledger.log_keys import KeyTable
from ledger.merkle import (
    BatchIndex,
    LogIndex,
    Range,
    TreeHead,
    complete_nodes,
    consistency_ranges,
    grow,
    inclusion_ranges,
    range_hash,
    root_nodes,
    verify_inclusion,
)
from ledger.note import Note
from ledger.receipt import BatchPart

ATTEMPTS = 5
"""How often a write to the log is tried when others write at the same moment."""
MAX_ROTATIONS = 64
"""A log has at most so many key rotations; a receipt carries them all."""

Returned = TypeVar("Returned")


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


async def find_checkpoint(log: LogRepository, size: int | None) -> CheckpointRow:
    """Return a stored checkpoint, the latest by default.

    Raises:
        CheckpointNotFound: there is none of this size, or none at all.
    """
    found = await log.checkpoint(size)
    if found is None:
        latest = await log.checkpoint()
        raise CheckpointNotFound(size or 0, latest=latest.size if latest else 0)
    return found


async def rotations_until(log: LogRepository, size: int) -> list[EntryRow]:
    """Return the key rotations of a log of `size`, in order."""
    found = await log.entries(kind=EntryKind.KEY_ROTATION, limit=MAX_ROTATIONS)
    return [each for each in found if each.index < size]


async def prove(tx: AsyncConnection, index: LogIndex, checkpoint: CheckpointRow) -> LogProof:
    """Return the proof of an entry for a checkpoint.

    Raises:
        EntryNotFound: the entry is not in it.
        LogDamaged: the stored nodes do not prove it.
    """
    log = LogRepository(tx)
    entry = await log.entry(index) if 0 <= index < checkpoint.size else None
    if entry is None:
        raise EntryNotFound(index, size=checkpoint.size)
    hashes = await hashes_of(log, inclusion_ranges(index, checkpoint.size))
    proof = LogProof(index, hashes, checkpoint.note)
    try:
        proof.verify(
            entry_leaf_hash(entry.kind, entry.entry), TreeHead(checkpoint.size, checkpoint.root)
        )
    except BadProof as error:
        raise LogDamaged(f"entry {index} is not proved at size {checkpoint.size}") from error
    return proof


async def hashes_of(log: LogRepository, ranges: list[Range]) -> tuple[bytes, ...]:
    """Return the hashes of subtrees of the log from its stored nodes, in one read."""
    wanted = [node for each in ranges for node in complete_nodes(each)]
    nodes = await log.nodes(wanted)
    return tuple(range_hash(each, nodes.__getitem__) for each in ranges)


async def root_of(log: LogRepository, size: int) -> bytes:
    """Return the root of the log at a size, at least 1, from its stored nodes."""
    [root] = await hashes_of(log, [Range(0, size)])
    return root


async def batch_part(log: LogRepository, batch: BatchRow, leaf_index: int) -> BatchPart:
    """Return the proof of a sealed record in its batch, checked.

    Raises:
        LogDamaged: the stored leaves do not prove it.
    """
    index = BatchIndex(leaf_index - batch.start)
    start = batch.start + index // CHUNK * CHUNK
    leaves = [each for _, each in await log.leaves(start, min(start + CHUNK, batch.end))]
    proof = batch_proof(index, chunk=leaves, roots=batch.chunk_roots)
    header = BatchHeader.parse(batch.header)
    try:
        leaf = leaves[index % CHUNK]
        root = header.records_root
        verify_inclusion(leaf, index, size=header.count, proof=proof, root=root)
    except BadProof as error:
        raise LogDamaged(f"record {leaf_index} is not proved in batch {batch.number}") from error
    return BatchPart(batch.header, index, proof)


async def find_batch(log: LogRepository, number: int) -> BatchRow:
    """Return a batch whose header is in the published log.

    Raises:
        BatchNotFound: there is none.
    """
    entry = await log.entry_of_batch(number)
    latest = await log.checkpoint()
    batch = await log.batch(number)
    if entry is None or latest is None or batch is None or entry.index >= latest.size:
        raise BatchNotFound(number)
    return batch


@dataclass(frozen=True, slots=True)
class Logged:
    """Where an entry stands, and whether it was there before."""

    index: LogIndex
    is_new: bool


class LogWriter:
    """Appends entries, each once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self, kind: EntryKind, entry: bytes, *, batch_number: int | None = None
    ) -> Logged:
        """Append an entry, or find where it stands already. Its checkpoint is signed later.

        Raises:
            DatabaseConflict: others appended at the same moment again and again; nothing was done.
        """

        async def once() -> Logged:
            async with self._database.transaction() as tx:
                return await append(LogRepository(tx), kind, entry, batch_number=batch_number)

        return await retried(once)


async def retried(work: Callable[[], Awaitable[Returned]]) -> Returned:
    """Return what `work` does, begun again while others write the log at the same moment.

    Raises:
        DatabaseConflict: the last of `ATTEMPTS` met others too.
    """
    for _ in range(ATTEMPTS - 1):
        with suppress(DatabaseConflict):
            return await work()
    return await work()


async def append(
    log: LogRepository,
    kind: EntryKind,
    entry: bytes,
    *,
    batch_number: int | None = None,
    expected: LogIndex | None = None,
) -> Logged:
    """Append an entry in the repository's transaction; see `LogWriter.append`.

    Args:
        log: The log, in the transaction to append in.
        kind: What the entry is.
        entry: Its bytes.
        batch_number: Of a batch header, its batch.
        expected: The only index at which it may stand, when that matters.
    """
    leaf = entry_leaf_hash(kind, entry)
    # The size first: whoever logs the same entry after this read moves the log on, which is a
    # conflict to retry; the other way round it would be a second entry with one leaf.
    size = await log.size()
    found = await log.index_of(leaf)
    if found is not None:
        return Logged(found, is_new=False)
    if expected is not None and size != expected:
        raise DatabaseConflict
    peaks = root_nodes(size)
    nodes = await log.nodes(peaks)
    added = grow([nodes[peak] for peak in peaks], size, leaf)
    await log.append(size, kind, entry, nodes=added, batch_number=batch_number)
    return Logged(LogIndex(size), is_new=True)
