"""Whether the record is in the batch, the batch in the log, and the header fits the record."""

from ledger.hashing import sha256
from ledger.log_entry import (
    BatchHeader,
    EntryKind,
    entry_leaf_hash,
    record_leaf_hash,
    sums_of,
)
from ledger.log_keys import KeyTable
from ledger.merkle import LogIndex, TreeHead, verify_inclusion
from ledger.receipt import BatchPart, Receipt
from ledger.usage import UsageRecord
from ledger.verify.errors import Refused
from ledger.verify.places import Sealed


def check_in_batch(part: BatchPart, digest: bytes, signature: bytes) -> BatchHeader:
    """The header, once the signed record is known to be under its root.

    Raises:
        LedgerError: a header of another form, or a proof that does not lead to its root.
    """
    header = BatchHeader.parse(part.header)
    verify_inclusion(
        record_leaf_hash(digest, signature),
        part.index,
        size=header.count,
        proof=part.proof,
        root=header.records_root,
    )
    return header


def check_header(
    header: BatchHeader, record: UsageRecord, index: LogIndex, table: KeyTable | None
) -> None:
    """Check that what the header says of all its records leaves room for this one.

    Raises:
        Refused: it does not.
    """
    if not header.first_at <= record.completed_at <= header.last_at:
        raise Refused(
            f"completed at {record.completed_at}, outside of the batch's"
            f" {header.first_at}..{header.last_at}"
        )
    sums = next((each for each in header.sums if each.asset == record.asset), None)
    if sums is None:
        raise Refused("the batch has no sums for the record's asset")
    own = sums_of(record)
    if header.count == 1 and header.sums != (own,):
        raise Refused("the batch's sums are not those of its only record")
    for name, part, whole in (
        ("charge", own.charge, sums.charge),
        ("held", own.held, sums.held),
        ("released", own.released, sums.released),
    ):
        if part > whole:
            raise Refused(f"{name} of {part} in a batch whose sum is {whole}")
    if header.number >= index or header.start < header.number:
        raise Refused(f"batch {header.number} from {header.start} cannot be entry {index}")
    key = None if table is None else table.checkpoint_key(index + 1)
    if key is not None and key.id.hex() != header.key_id:
        raise Refused(f"made under key {header.key_id[:8]!a}, not {key.id.hex()}")


def check_in_log(receipt: Receipt, head: TreeHead) -> LogIndex:
    """Where the batch's header stands in the log of this head.

    Raises:
        BadProof: nowhere that the proof leads to.
    """
    assert receipt.batch is not None
    assert receipt.log_proof is not None
    leaf = entry_leaf_hash(EntryKind.BATCH_HEADER, receipt.batch.header)
    receipt.log_proof.verify(leaf, head)
    return receipt.log_proof.index


def sealed_at(receipt: Receipt, header: BatchHeader | None) -> Sealed | None:
    """Where the record stands, None while it is in no batch."""
    if header is None or receipt.batch is None or receipt.log_proof is None:
        return None
    return Sealed(
        log_index=receipt.log_proof.index,
        number=header.number,
        start=header.start,
        end=header.end,
        header=sha256(receipt.batch.header),
        previous=header.previous_header,
        place=header.start + receipt.batch.index,
    )


def entries_of(receipt: Receipt) -> tuple[tuple[LogIndex, bytes], ...]:
    """The log entries that the receipt proves: index and leaf hash, key rotations first."""
    found = [
        (each.log_proof.index, entry_leaf_hash(EntryKind.KEY_ROTATION, each.entry))
        for each in receipt.keys
    ]
    if receipt.batch is not None and receipt.log_proof is not None:
        leaf = entry_leaf_hash(EntryKind.BATCH_HEADER, receipt.batch.header)
        found.append((receipt.log_proof.index, leaf))
    return tuple(found)
