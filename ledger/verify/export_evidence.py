"""Evidence read once: headers in the log, leaves under their roots, records signed and sound."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ledger.encoding import Address
from ledger.export_evidence import BatchLine, LeafLine, RecordLine, parse_line
from ledger.export_row import net_amount
from ledger.hashing import sha256
from ledger.log_entry import (
    AssetSums,
    BatchHeader,
    EntryKind,
    add_up,
    record_leaf_hash,
    sums_of,
)
from ledger.manifest import ExportManifest
from ledger.merkle import LogIndex, RootBuilder
from ledger.signing import recover
from ledger.usage import UsageRecord
from ledger.verify import trust
from ledger.verify.agreement import check_record
from ledger.verify.documents import read_record
from ledger.verify.errors import Refused
from ledger.verify.export_log import ExportedLog


@dataclass(slots=True)
class EvidenceCheck:
    """Checks evidence lines in order and keeps what they add up to."""

    log: ExportedLog
    manifest: ExportManifest
    count: int = 0
    batches: int = 0
    first: int | None = None
    last: int | None = None
    log_size: int = 0
    net: dict[Address, int] = field(default_factory=dict)
    """What the records add to their payers' bills, by token, in nano."""
    sums: tuple[AssetSums, ...] = ()
    """Of the records, per token, by address."""
    _sequences: dict[Address, int] = field(default_factory=dict)
    _end: int = 0
    _digest: bytes = b""

    def records(self, lines: Iterator[bytes]) -> Iterator[tuple[int, UsageRecord]]:
        """Yield each record that holds, with its place in the sequence of all sealed records.

        Raises:
            LedgerError, Refused: the first thing that does not hold.
        """
        for data in lines:
            line = parse_line(data)
            if not isinstance(line, BatchLine):
                raise Refused("a leaf outside of a batch")
            yield from self._batch(line, lines)

    def _batch(self, line: BatchLine, lines: Iterator[bytes]) -> Iterator[tuple[int, UsageRecord]]:
        header, index = self._header(line), line.log_proof.index
        tree = RootBuilder()
        own: tuple[AssetSums, ...] = ()
        before = self.count
        for place in range(header.start, header.end):
            data = next(lines, None)
            if data is None:
                raise Refused(f"batch {header.number} breaks off")
            leaf = parse_line(data)
            if isinstance(leaf, LeafLine):
                tree.add(leaf.hash)
                continue
            if not isinstance(leaf, RecordLine):
                raise Refused(f"batch {header.number} breaks off")
            record, digest = self._record(leaf, header, index)
            tree.add(record_leaf_hash(digest, leaf.signature))
            own = add_up((*own, sums_of(record)))
            yield place, record
        if tree.root() != header.records_root:
            raise Refused(f"the leaves of batch {header.number} do not lead to its root")
        found = self.count - before
        if not found:
            raise Refused(f"batch {header.number} has no record of the export")
        if found == header.count and own != header.sums:
            raise Refused(f"the sums of batch {header.number} are not those of its records")
        self.sums = add_up((*self.sums, *own))

    def _header(self, line: BatchLine) -> BatchHeader:
        """The header, once it is known to be in the log and to follow on the one before."""
        self.log.require(EntryKind.BATCH_HEADER, line.header, line.log_proof)
        header, index = BatchHeader.parse(line.header), line.log_proof.index
        if self.last is not None and header.number <= self.last:
            raise Refused(f"batch {header.number} after batch {self.last}")
        is_next = self.last is not None and header.number == self.last + 1
        links = (header.start, header.previous_header) == (self._end, self._digest)
        if (
            (is_next and not links)
            or header.start < self._end
            or index < self.log_size
            or header.number >= index
        ):
            raise Refused(f"batch {header.number} does not follow on the one before")
        key = None if self.log.table is None else self.log.table.checkpoint_key(LogIndex(index + 1))
        if key is not None and key.id.hex() != header.key_id:
            raise Refused(f"batch {header.number} is made under another key than its place's")
        self.first = header.number if self.first is None else self.first
        self.last, self._end, self.log_size = header.number, header.end, index + 1
        self._digest = sha256(line.header)
        self.batches += 1
        return header

    def _record(
        self, line: RecordLine, header: BatchHeader, index: LogIndex
    ) -> tuple[UsageRecord, bytes]:
        """The record and its digest, once it is known to be sound, signed and in its place."""
        record = read_record(line.record.decode())
        check_record(record)
        digest = record.digest(self.log.policy.records)
        signer = recover(digest, line.signature)
        trust.require_record_key(signer, self.log.table, self.log.policy, index)
        if not header.first_at <= record.completed_at <= header.last_at:
            raise Refused(f"a record completed at {record.completed_at}, outside of its batch")
        if record.completed_at >= self.manifest.to_at:
            raise Refused(f"a record completed at {record.completed_at}, after the interval")
        if record.payer_seq <= self._sequences.get(record.payer, 0):
            raise Refused(f"record {record.payer_seq} of {record.payer} out of its order, or twice")
        self._sequences[record.payer] = record.payer_seq
        self.count += 1
        self.net[record.asset] = self.net.get(record.asset, 0) + net_amount(record)
        return record, digest
