"""Proofs from what is stored of the log and its batches; each is checked before it is given out."""

from sqlalchemy.ext.asyncio import AsyncConnection

from app.receipts.batch import CHUNK, batch_proof
from app.receipts.errors import BatchNotFound, CheckpointNotFound, EntryNotFound, LogDamaged
from app.receipts.log_repository import BatchRow, CheckpointRow, EntryRow, LogRepository
from ledger.checkpoint import LogProof
from ledger.errors import BadProof
from ledger.log_entry import BatchHeader, EntryKind, entry_leaf_hash
from ledger.merkle import (
    BatchIndex,
    LogIndex,
    Range,
    TreeHead,
    complete_nodes,
    inclusion_ranges,
    range_hash,
    verify_inclusion,
)
from ledger.receipt import BatchPart

MAX_ROTATIONS = 64
"""A log has at most so many key rotations; a receipt carries them all."""


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
