"""Changing the keys of the log: an entry that the old and the new checkpoint key sign."""

from dataclasses import dataclass, replace

from app.db.engine import Database
from app.kit.errors import DatabaseConflict
from app.receipts.appending import append, retried
from app.receipts.errors import CheckpointKeyRetired, RotationRefused
from app.receipts.log_repository import LogRepository
from app.receipts.proofs import MAX_ROTATIONS, rotations_until
from app.receipts.sequencer import Sequencer
from ledger.encoding import Address
from ledger.errors import LedgerError
from ledger.log_entry import EntryKind
from ledger.log_keys import KeyRole, KeyTable, LogKey, follow
from ledger.merkle import LogIndex
from ledger.note import Note, NoteSigner


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """What is to change. At least one of the three is given.

    `checkpoint_key` replaces the present one; `record_key` counts from the next entry on beside
    the others; `retired_record_key` counts for nothing after this entry.
    """

    checkpoint_key: NoteSigner | None = None
    record_key: Address | None = None
    retired_record_key: Address | None = None

    def apply(self, table: KeyTable, index: LogIndex) -> KeyTable:
        """Return the table after an entry at `index`.

        Raises:
            RotationRefused: nothing changes, a key came before, or none would be left.
        """
        keys = list(table.keys)
        if self.checkpoint_key is not None:
            keys = [_ended(each, index + 1, role=KeyRole.CHECKPOINT) for each in keys]
            added = str(self.checkpoint_key.verifier)
            keys.append(_new(keys, KeyRole.CHECKPOINT, added, index + 1))
        if self.retired_record_key is not None:
            ended = [
                _ended(each, index + 1, role=KeyRole.RECORD, key=self.retired_record_key)
                for each in keys
            ]
            if ended == keys:
                raise RotationRefused(f"{self.retired_record_key} is no record key in force")
            keys = ended
        if self.record_key is not None:
            keys.append(_new(keys, KeyRole.RECORD, self.record_key, index + 1))
        after = KeyTable(table.origin, tuple(keys))
        if after == table:
            raise RotationRefused("name a key to introduce or to retire")
        if not after.record_keys(LogIndex(index + 1)):
            raise RotationRefused("no record key would be left; introduce the next one first")
        return after


def _ended(each: LogKey, until: int, *, role: KeyRole, key: str | None = None) -> LogKey:
    is_meant = each.role is role and each.valid_until is None and key in (None, each.key)
    return replace(each, valid_until=until) if is_meant else each


def _new(keys: list[LogKey], role: KeyRole, key: str, start: int) -> LogKey:
    if any(each.key == key for each in keys):
        raise RotationRefused(f"{key} is or was a key of this log; make a new one")
    return LogKey(role=role, key=key, valid_from=start)


async def rotate(database: Database, sequencer: Sequencer, rotation: Rotation) -> LogIndex:
    """Seal and publish all there is, then log the change and its checkpoint.

    After a new checkpoint key the workers must be given it: they refuse to sign until then, and
    lose nothing.

    Args:
        database: The database.
        sequencer: Holds the checkpoint key in force.
        rotation: What is to change.

    Returns:
        Where the entry stands.

    Raises:
        RotationRefused: see `Rotation.apply`; or records of a key that is to be retired are not
            sealed yet; or the entry would be one that nobody could follow.
        CheckpointKeyRetired, LogDamaged: see `Sequencer.run_once`.
        DatabaseConflict: the log grew again and again meanwhile; `offpeak log keys` shows whether
            the change was logged.
    """

    async def once() -> LogIndex:
        await sequencer.run_once()
        return await _log(database, sequencer, rotation)

    index = await retried(once)
    signer = rotation.checkpoint_key or sequencer.terms.signer
    terms = replace(sequencer.terms, signer=signer)
    await retried(Sequencer(database, terms, sequencer.batch_limit).sign_checkpoints)
    return index


async def _log(database: Database, sequencer: Sequencer, rotation: Rotation) -> LogIndex:
    signer = sequencer.terms.signer
    async with database.transaction() as tx:
        log = LogRepository(tx)
        await log.lock()
        index = LogIndex(await log.size())
        checkpoint = await log.checkpoint()
        if checkpoint is None or checkpoint.size != index or await log.unlogged(limit=1):
            raise DatabaseConflict  # sealed or logged since: publish that under the old keys first
        retired = rotation.retired_record_key
        if retired is not None and await log.unsealed(keys=[retired]):
            raise RotationRefused(
                f"records signed by {retired} are not sealed yet: stop the gateways that use it,"
                " wait for the next round of `offpeak work`, and try again"
            )
        rotations = await rotations_until(log, index)
        table = KeyTable.read(Note.parse(rotations[-1].entry))
        if table.checkpoint_key(index) != signer.verifier:
            expected = table.checkpoint_key(index)
            raise CheckpointKeyRetired(
                size=index, given=str(signer.verifier), expected=str(expected)
            )
        after = rotation.apply(table, index)
        signers = [signer] if rotation.checkpoint_key is None else [signer, rotation.checkpoint_key]
        entry = after.sign(signers)
        _require_followed(table, entry, index, rotations=len(rotations))
        await append(log, EntryKind.KEY_ROTATION, entry, expected=index)
    return index


def _require_followed(before: KeyTable, entry: bytes, index: LogIndex, *, rotations: int) -> None:
    """Check, as every reader will, an entry that could never be taken back.

    Raises:
        RotationRefused: more keys or rotations than a table and a receipt hold, or a false entry.
    """
    if rotations >= MAX_ROTATIONS:
        raise RotationRefused(f"the log has had {MAX_ROTATIONS} rotations, the most it can have")
    try:
        follow(before, entry, index=index, trusted=())
    except LedgerError as error:
        raise RotationRefused(f"nobody could follow it: {error}") from error
