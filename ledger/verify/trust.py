"""From the policy's keys to a tree head and a key table that count.

The receipt brings key-rotation entries; each is believed for its signatures, starting with the
first that a key of the policy has signed. The table they lead to names the one key that may sign
the checkpoint's size. Then the entries must be in that very log.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.checkpoint import Checkpoint, LogProof
from ledger.encoding import Address
from ledger.log_entry import EntryKind, entry_leaf_hash
from ledger.log_keys import KeyTable, follow
from ledger.merkle import LogIndex, TreeHead
from ledger.note import Note, VerifierKey
from ledger.receipt import KeyEntry, Receipt
from ledger.verify.errors import Refused
from ledger.verify.policy import Policy


@dataclass(frozen=True, slots=True)
class Trusted:
    """A checkpoint whose signatures count, its exact bytes, and its signers."""

    head: TreeHead
    note: bytes
    signers: tuple[VerifierKey, ...]


def follow_keys(keys: Sequence[KeyEntry], policy: Policy) -> KeyTable | None:
    """The key table that the entries lead to; None where there are no entries.

    Raises:
        LedgerError: an entry of another form, or not signed as it must be.
        Refused: entries out of order, no entry signed by a key of the policy, or a retired key.
    """
    table: KeyTable | None = None
    last = -1
    for each in keys:
        index = each.log_proof.index
        if index <= last:
            raise Refused("the key entries do not stand in the log's order")
        last = index
        trusted = [key for key in policy.log_keys if policy.counts_at(str(key), index)]
        if table is None and not Note.parse(each.entry).signers(trusted):
            continue  # older than any key of the policy: believed for nothing
        if table is not None:
            _require_in_force(table.checkpoint_key(index), policy, index)
        table = follow(table, each.entry, index=index, trusted=trusted)
        if table.origin != policy.origin:
            raise Refused(f"keys of {table.origin}, not of {policy.origin}")
    if keys and table is None:
        raise Refused("no key entry is signed by a key of the policy that still counts")
    return table


def _require_in_force(key: VerifierKey | None, policy: Policy, place: int) -> None:
    if key is not None and not policy.counts_at(str(key), place):
        raise Refused(f"key {key.id.hex()} is retired by the policy before {place}")


def checkpoint_note(receipt: Receipt) -> bytes | None:
    """The one checkpoint that all proofs of a receipt are for; None where there is no proof.

    Raises:
        Refused: there are two.
    """
    proofs: list[LogProof] = [each.log_proof for each in receipt.keys]
    if receipt.log_proof is not None:
        proofs.append(receipt.log_proof)
    notes = {each.checkpoint for each in proofs}
    if len(notes) > 1:
        raise Refused("the proofs are for different checkpoints")
    return notes.pop() if notes else None


def open_trusted(note: bytes, table: KeyTable | None, policy: Policy) -> Trusted:
    """The checkpoint, signed by the key of its size.

    Without a table that is any key of the policy, and the policy must pin the record keys.

    Raises:
        LedgerError: another form, or a false signature.
        Refused: another log's, or not signed by a key that counts at its size.
    """
    parsed = Note.parse(note)
    checkpoint = Checkpoint.read(parsed)
    if checkpoint.origin != policy.origin:
        raise Refused(f"a checkpoint of {checkpoint.origin}, not of {policy.origin}")
    size = checkpoint.head.size
    named = policy.log_keys if table is None else (table.checkpoint_key(size),)
    counting = [key for key in named if key is not None and policy.counts_at(str(key), size)]
    signers = parsed.signers([*counting, *policy.witnesses.values()])
    if not set(counting) & set(signers):
        raise Refused(f"not signed by a key that counts for a log of {size} entries")
    return Trusted(checkpoint.head, note, signers)


def require_keys_logged(keys: Sequence[KeyEntry], head: TreeHead) -> None:
    """Check that each key entry is in the log.

    Raises:
        BadProof: one is not.
    """
    for each in keys:
        each.log_proof.verify(entry_leaf_hash(EntryKind.KEY_ROTATION, each.entry), head)


def require_record_key(
    signer: Address, table: KeyTable | None, policy: Policy, index: LogIndex
) -> None:
    """Check that an address may sign records of a batch whose header is at this log index.

    Raises:
        Refused: neither the policy nor the log's key table names it for this place.
    """
    if policy.record_keys and signer not in policy.record_keys:
        raise Refused(f"signed by {signer}, which the policy does not pin")
    if not policy.counts_at(signer, index):
        raise Refused(f"signed by {signer}, which the policy retires before {index}")
    if table is None and not policy.record_keys:
        raise Refused("the receipt brings no key entries and the policy pins no record key")
    if table is not None and signer not in table.record_keys(index):
        raise Refused(f"signed by {signer}, no record key at log index {index}")


def require_quote_key(
    signer: Address, table: KeyTable | None, policy: Policy, index: LogIndex
) -> None:
    """Check that an address could sign quotes: a record key that has begun, ended or not.

    A quote is older than its record, so its key may have ended before the record's batch.

    Raises:
        Refused: it could not.
    """
    if policy.record_keys and signer not in policy.record_keys:
        raise Refused(f"signed by {signer}, which the policy does not pin")
    if not policy.counts_at(signer, index):
        raise Refused(f"signed by {signer}, which the policy retires before {index}")
    if table is not None and not any(
        each.key == signer and each.valid_from <= index for each in table.keys
    ):
        raise Refused(f"signed by {signer}, never a record key up to log index {index}")
