"""The sequencer: seals signed records into batches, logs their headers, signs checkpoints.

Every step is a transaction of its own and is found done or undone by the next round: records,
header, log entry, checkpoint. A crash at any point resumes to the same bytes, and a second
sequencer is refused by the database what does not follow on the first one's work.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from app.db.engine import Database
from app.receipts.appending import LogWriter, append
from app.receipts.batch import (
    BEFORE_FIRST,
    BatchDraft,
    Leaf,
    chunk_roots,
    following,
    leaf_of,
)
from app.receipts.errors import CheckpointKeyRetired, LogDamaged
from app.receipts.log_repository import BatchRow, EntryRow, LogRepository
from app.receipts.proofs import MAX_ROTATIONS, hashes_of, root_of
from app.receipts.record import StoredRecord
from app.receipts.repository import ReceiptRepository
from ledger.accounts import wallet_account
from ledger.checkpoint import Checkpoint
from ledger.encoding import Address, Domain
from ledger.errors import BadProof, LedgerError
from ledger.log_entry import BatchHeader, EntryKind, entry_leaf_hash
from ledger.log_keys import KeyRole, KeyTable, LogKey
from ledger.merkle import LogIndex, Range, Tree, TreeHead, consistency_ranges, verify_consistency
from ledger.note import Note, NoteSigner

READ_AT_ONCE = 500
"""Records read and hashed at a time: what is in memory, and how long a thread holds the GIL."""
HEADERS_AT_ONCE = 100

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LogTerms:
    """Who the log is: its checkpoint signer (named by the origin), record key and domain."""

    signer: NoteSigner
    record_key: Address
    record_domain: Domain

    @property
    def origin(self) -> str:
        """The log's name."""
        return self.signer.verifier.name


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    sealed: int
    """Records."""
    logged: int
    """Batch headers."""
    checkpoints: int


@dataclass(slots=True)
class Sequencer:
    """Brings the log up to date; safe to run anywhere, any number of times at once."""

    database: Database
    terms: LogTerms
    batch_limit: int
    """Most records in a batch."""
    _broken: set[UUID] = field(default_factory=set)
    """Accounts with a record that does not verify; an operator must look."""

    async def run_once(self) -> Round:
        """Seal all that is signed, log it, and sign a checkpoint for each growth.

        Raises:
            CheckpointKeyRetired: another key is in force.
            LogDamaged: stored rows contradict what was sealed; nothing more is published.
            DatabaseConflict: another sequencer was faster; the next round goes on.
        """
        await self.begin_log()
        sealed = 0
        while count := await self.seal_once():
            sealed += count
        logged = await self.log_headers()
        checkpoints = await self.sign_checkpoints()
        if sealed:
            log.info("records sealed", records=sealed, checkpoints=checkpoints)
        return Round(sealed, logged, checkpoints)

    async def begin_log(self) -> None:
        """Make the first entry of a new log, who signs; nothing when it has begun."""
        async with self.database.transaction() as tx:
            repository = LogRepository(tx)
            if await repository.size():
                return
            table = genesis(self.terms)
            entry = table.sign([self.terms.signer])
            await append(repository, EntryKind.KEY_ROTATION, entry, expected=LogIndex(0))

    async def seal_once(self) -> int:
        """Seal one batch of what is signed; return how many records, 0 when there are none."""
        async with self.database.transaction() as tx:
            repository = LogRepository(tx)
            rotation = await last_rotation(repository)
            index = LogIndex(await repository.size())
            last = await repository.last_batch()
            keys = keys_for(self.terms, rotation, index + 1).record_keys(index)
            records = await repository.sealable(
                keys=keys, without=self._broken, limit=self.batch_limit
            )
        if not records:
            return 0
        draft = await self._draft(records, self._broken)
        if not draft.records:
            return 0
        before = BEFORE_FIRST if last is None else following(last.header)
        batch = draft.seal(before, key_id=self.terms.signer.verifier.id.hex())
        async with self.database.transaction() as tx:
            await LogRepository(tx).seal(
                batch, number=before.number + 1, start=before.end, keys=rotation.index
            )
        return len(batch.records)

    async def log_headers(self) -> int:
        """Append the headers of sealed batches in their order; return how many."""
        logged = 0
        while True:
            async with self.database.transaction() as tx:
                batches = await LogRepository(tx).unlogged(limit=HEADERS_AT_ONCE)
            if not batches:
                return logged
            for batch in batches:
                await LogWriter(self.database).append(
                    EntryKind.BATCH_HEADER, batch.header, batch_number=batch.number
                )
                logged += 1

    async def sign_checkpoints(self) -> int:
        """Sign a checkpoint of every size that has none, after checking what it commits to."""
        signed = 0
        while await self._sign_next():
            signed += 1
        return signed

    async def _draft(self, records: Sequence[UUID], broken: set[UUID]) -> BatchDraft:
        """Return the leaves of stored records, in order; accounts that break off go to `broken`."""
        draft = BatchDraft()
        for start in range(0, len(records), READ_AT_ONCE):
            ids = records[start : start + READ_AT_ONCE]
            async with self.database.statement() as tx:
                found = await ReceiptRepository(tx).records(ids)
            rows = [found[each] for each in ids]
            draft.add(await asyncio.to_thread(self._leaves, rows, broken))
            if draft.is_full:
                break
        return draft

    def _leaves(self, rows: Sequence[StoredRecord], broken: set[UUID]) -> list[Leaf]:
        """Return the leaves of rows that verify; a wallet stops at its first that does not."""
        leaves = []
        for stored in rows:
            account = wallet_account(stored.payer, stored.asset)
            if account in broken:
                continue
            try:
                leaves.append(leaf_of(stored, self.terms.record_domain))
            except LedgerError:
                broken.add(account)
                log.exception("a record does not verify", record=str(stored.record_id))
        return leaves

    async def _sign_next(self) -> bool:
        """Sign the checkpoint after the last one; return whether there was one to sign."""
        async with self.database.transaction() as tx:
            repository = LogRepository(tx)
            last = await repository.checkpoint()
            size = (last.size if last else 0) + 1
            entry = await repository.entry(size - 1)
            if entry is None:
                return False
            batch = None
            if entry.batch_number is not None:
                batch = await repository.batch(entry.batch_number)
            rotation = await last_rotation(repository)
            root = await root_of(repository, size)
            new = TreeHead(size, root)
            if last is not None:
                proof = await hashes_of(repository, consistency_ranges(last.size, size))
                _require_growth(TreeHead(last.size, last.root), new, proof)
            [stored_leaf] = await hashes_of(repository, [Range(size - 1, size)])
        if stored_leaf != entry_leaf_hash(entry.kind, entry.entry):
            raise LogDamaged(f"log entry {size - 1} is not what was logged")
        keys_for(self.terms, rotation, size)
        if batch is not None:
            await self._verify_batch(batch, entry.entry)
        note = Checkpoint(self.terms.origin, new).sign([self.terms.signer])
        async with self.database.transaction() as tx:
            await LogRepository(tx).store_checkpoint(size, root, note)
        return True

    async def _verify_batch(self, batch: BatchRow, entry: bytes) -> None:
        """Recompute a batch from its records' rows before anything shows it."""
        header = BatchHeader.parse(entry)
        if entry != batch.header or (header.start, header.end) != (batch.start, batch.end):
            raise LogDamaged(f"batch {batch.number} is not what was logged")
        async with self.database.statement() as tx:
            leaves = await LogRepository(tx).leaves(batch.start, batch.end)
        draft = await self._draft([record_id for record_id, _ in leaves], set())
        hashes = draft.hashes
        roots = chunk_roots(hashes)
        if hashes != [each for _, each in leaves] or Tree(roots).root != header.records_root:
            raise LogDamaged(f"the records of batch {batch.number} are not what was sealed")


async def last_rotation(repository: LogRepository) -> EntryRow:
    """Return the entry that says which keys are in force; a log begins with one."""
    return (await repository.entries(kind=EntryKind.KEY_ROTATION, limit=MAX_ROTATIONS))[-1]


def keys_for(terms: LogTerms, rotation: EntryRow, size: int) -> KeyTable:
    """Return the keys after a rotation, of which ours must be the one that signs `size`.

    Raises:
        CheckpointKeyRetired: it is not.
    """
    table = KeyTable.read(Note.parse(rotation.entry))
    key = table.checkpoint_key(size)
    if key != terms.signer.verifier:
        given = str(terms.signer.verifier)
        raise CheckpointKeyRetired(size=size, given=given, expected=str(key) if key else None)
    return table


def genesis(terms: LogTerms) -> KeyTable:
    """Return the keys of a new log: checkpoints from size 1, records from entry 1 on."""
    checkpoint = str(terms.signer.verifier)
    return KeyTable(
        terms.origin,
        (
            LogKey(role=KeyRole.CHECKPOINT, key=checkpoint, valid_from=1),
            LogKey(role=KeyRole.RECORD, key=terms.record_key, valid_from=1),
        ),
    )


def _require_growth(old: TreeHead, new: TreeHead, proof: Sequence[bytes]) -> None:
    try:
        verify_consistency(old, new, proof)
    except BadProof as error:
        raise LogDamaged(
            f"the log does not grow from its checkpoint of {old.size}: {error}"
        ) from error
