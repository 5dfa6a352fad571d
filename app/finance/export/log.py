"""What an export takes from the receipt log, and the one entry that it adds."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from app.db.engine import Database
from app.db.tables import log_checkpoint, log_entry
from app.receipts.errors import CheckpointNotFound
from app.receipts.log import LogWriter, retried, rotations_until
from app.receipts.log_repository import LogRepository
from app.receipts.sequencer import LogTerms, Sequencer
from ledger.checkpoint import LogProof
from ledger.log_entry import EntryKind
from ledger.manifest import ExportManifest
from ledger.merkle import LogIndex, complete_nodes, inclusion_ranges, range_hash
from ledger.receipt import KeyEntry


@dataclass(frozen=True, slots=True)
class LoggedManifest:
    """A manifest's note and its proof for the checkpoint just after it."""

    note: bytes
    proof: LogProof
    is_new: bool


class ExportLog:
    """The receipt log as exports need it."""

    def __init__(self, database: Database, terms: LogTerms) -> None:
        self._database = database
        self._terms = terms

    @property
    def origin(self) -> str:
        """The log's name."""
        return self._terms.origin

    async def rotations(self, size: int) -> list[KeyEntry]:
        """Return the key rotations of a log of `size`, each with its proof, in order."""
        async with self._database.transaction() as tx:
            found = await rotations_until(LogRepository(tx), size)
        proofs = await self.proofs([each.index for each in found])
        return [KeyEntry(each.entry, proof) for each, proof in zip(found, proofs, strict=True)]

    async def proofs(self, indexes: Sequence[int]) -> list[LogProof]:
        """Return the proofs of entries, each for the checkpoint just after it; two queries in all.

        Raises:
            CheckpointNotFound: one of these checkpoints is not signed yet.
        """
        ranges = [inclusion_ranges(index, index + 1) for index in indexes]
        wanted = {node for found in ranges for each in found for node in complete_nodes(each)}
        sizes = [index + 1 for index in indexes]
        c = log_checkpoint.c
        async with self._database.transaction() as tx:
            nodes = await LogRepository(tx).nodes(sorted(wanted))
            rows = await tx.execute(select(c.size, c.note).where(c.size.in_(sizes)))
            notes = {size: bytes(note) for size, note in rows}
        for size in sizes:
            if size not in notes:
                raise CheckpointNotFound(size, latest=max(notes, default=0))
        return [
            LogProof(
                LogIndex(index),
                tuple(range_hash(each, nodes.__getitem__) for each in found),
                notes[index + 1],
            )
            for index, found in zip(indexes, ranges, strict=True)
        ]

    async def find(self, manifest: ExportManifest) -> bytes | None:
        """Return the note of this manifest if it was logged before, by whichever key."""
        text = manifest.text().encode() + b"\n"
        entry = log_entry.c.entry
        query = select(entry).where(
            log_entry.c.kind == EntryKind.EXPORT_MANIFEST.value,
            func.substring(entry, 1, len(text)) == text,
        )
        async with self._database.transaction() as tx:
            found = await tx.scalar(query.order_by(log_entry.c.index).limit(1))
        return None if found is None else bytes(found)

    def sign(self, manifest: ExportManifest) -> bytes:
        """Return the manifest's note by the checkpoint key."""
        return manifest.sign([self._terms.signer])

    async def publish(self, note: bytes) -> LoggedManifest:
        """Log a manifest, once, and have its checkpoint signed.

        Raises:
            CheckpointKeyRetired: another key is in force than the one that is set.
            DatabaseConflict: others sign at the same moment again and again.
        """
        logged = await LogWriter(self._database).append(EntryKind.EXPORT_MANIFEST, note)
        sequencer = Sequencer(self._database, self._terms, batch_limit=1)
        await retried(sequencer.sign_checkpoints)  # a worker may sign them at this moment
        [proof] = await self.proofs([logged.index])
        return LoggedManifest(note, proof, logged.is_new)
