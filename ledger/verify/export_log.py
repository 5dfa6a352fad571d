"""What an export says of the log: each entry proved for the checkpoint just after it."""

from dataclasses import dataclass, field

from ledger.checkpoint import LogProof
from ledger.log_entry import EntryKind, entry_leaf_hash
from ledger.log_keys import KeyTable
from ledger.merkle import LogIndex, TreeHead
from ledger.verify import trust
from ledger.verify.errors import Refused
from ledger.verify.policy import Policy


@dataclass(slots=True)
class ExportedLog:
    """Checks that entries are in the log.

    Two entries at one place, and so two roots of one size, are refused. Batches come in the order
    of the log, so only where rotations and the manifest stand is kept.
    """

    policy: Policy
    table: KeyTable | None
    _taken: set[LogIndex] = field(default_factory=set)

    def require(self, kind: EntryKind, entry: bytes, proof: LogProof) -> TreeHead:
        """The log's head just after an entry, once the entry is known to be its last.

        Raises:
            LedgerError: a checkpoint or proof of another form, or one that does not hold.
            Refused: the checkpoint does not count, or is not the one just after the entry.
        """
        trusted = trust.open_trusted(proof.checkpoint, self.table, self.policy)
        if not self.policy.has_quorum(trusted.signers):
            raise Refused("too few witnesses of the policy have cosigned a checkpoint")
        proof.verify(entry_leaf_hash(kind, entry), trusted.head)
        if trusted.head.size != proof.index + 1:
            raise Refused(f"entry {proof.index} is not proved for the checkpoint just after it")
        if proof.index in self._taken:
            raise Refused(f"two entries of the log at index {proof.index}")
        if kind is not EntryKind.BATCH_HEADER:
            self._taken.add(proof.index)
        return trusted.head
