"""What an export takes from the receipt log, and the one entry that it adds."""

from dataclasses import dataclass

from sqlalchemy import func, select

from app.db.engine import Database
from app.db.tables import log_entry
from app.receipts.log import LogReader, LogWriter, retried, rotations_until
from app.receipts.log_repository import LogRepository
from app.receipts.sequencer import LogTerms, Sequencer
from ledger.checkpoint import LogProof
from ledger.log_entry import EntryKind
from ledger.manifest import ExportManifest
from ledger.merkle import LogIndex
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
        self._reader = LogReader(database)

    @property
    def origin(self) -> str:
        """The log's name."""
        return self._terms.origin

    async def rotations(self, size: int) -> list[KeyEntry]:
        """Return the key rotations of a log of `size`, each with its proof, in order."""
        async with self._database.transaction() as tx:
            found = await rotations_until(LogRepository(tx), size)
        return [KeyEntry(each.entry, await self.proof(each.index)) for each in found]

    async def proof(self, index: int) -> LogProof:
        """Return an entry's proof for the checkpoint just after it."""
        return await self._reader.proof(LogIndex(index), index + 1)

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
        return LoggedManifest(note, await self.proof(logged.index), logged.is_new)
