"""What an export takes from the receipt log, and the one entry that it adds."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from app.db.engine import Database
from app.db.tables import log_checkpoint, log_entry
from app.receipts.appending import Logged, append, retried
from app.receipts.errors import CheckpointNotFound
from app.receipts.log_repository import LogRepository
from app.receipts.proofs import rotations_until
from app.receipts.sequencer import LogTerms, Sequencer, keys_for, last_rotation
from ledger.checkpoint import LogProof
from ledger.log_entry import EntryKind, entry_leaf_hash
from ledger.log_keys import KeyTable
from ledger.manifest import ExportManifest
from ledger.merkle import LogIndex, complete_nodes, inclusion_ranges, range_hash
from ledger.note import Note
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
        """Return the note of this manifest if it was logged before, by the key of its place."""
        text = manifest.text().encode() + b"\n"
        e = log_entry.c
        query = (
            select(e.index, e.entry)
            .where(
                e.kind == EntryKind.EXPORT_MANIFEST.value,
                func.substring(e.entry, 1, len(text)) == text,
            )
            .order_by(e.index)
        )
        async with self._database.transaction() as tx:
            found = (await tx.execute(query)).all()
            if not found:
                return None
            table = KeyTable.read(Note.parse((await last_rotation(LogRepository(tx))).entry))
        for index, entry in found:
            key = table.checkpoint_key(index + 1)
            if key is not None and Note.parse(bytes(entry)).signers([key]):
                return bytes(entry)
        return None

    def sign(self, manifest: ExportManifest) -> bytes:
        """Return the manifest's note by the checkpoint key."""
        return manifest.sign([self._terms.signer])

    async def publish(self, note: bytes) -> LoggedManifest:
        """Log a manifest, once, and have its checkpoint signed.

        Raises:
            CheckpointKeyRetired: another key is in force than the one that is set; nothing was
                logged.
            DatabaseConflict: others sign at the same moment again and again.
        """
        sequencer = Sequencer(self._database, self._terms, batch_limit=1)
        await sequencer.begin_log()
        logged = await self._append(note)
        await retried(sequencer.sign_checkpoints)  # a worker may sign them at this moment
        [proof] = await self.proofs([logged.index])
        return LoggedManifest(note, proof, logged.is_new)

    async def _append(self, note: bytes) -> Logged:
        """Append a manifest under the key that signs the place that it gets, or find it."""
        async with self._database.transaction() as tx:
            log = LogRepository(tx)
            await log.lock()  # a rotation between check and entry would leave it without a signer
            if await log.index_of(entry_leaf_hash(EntryKind.EXPORT_MANIFEST, note)) is None:
                keys_for(self._terms, await last_rotation(log), await log.size() + 1)
                ExportManifest.read(Note.parse(note))  # as anybody will who checks it
            return await append(log, EntryKind.EXPORT_MANIFEST, note)
