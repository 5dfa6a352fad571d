"""The lines of an export's `evidence.jsonl` and `keys.jsonl`: what proves it without a server.

`evidence.jsonl` has each batch that holds a record of the export: its header, then one line for
every leaf in order, records of the export in full and the others by their leaf hash alone.
`keys.jsonl` has the log's key rotations before the manifest's entry. Each line is one RFC 8785
object. An entry's proof is for the checkpoint just after it, so it is the same whenever it is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ledger.checkpoint import LogProof
from ledger.encoding import canonical_json
from ledger.receipt import SIGNATURE_BYTES, KeyEntry, log_proof_of
from ledger.strict_json import bytes_of, parse_canonical, require_members, text_of

EVIDENCE_FILE: Final = "evidence.jsonl"
LEFT_OUT: Final = "left_out"
"""The manifest's filter that says how many records of the interval are not in the export."""
KEYS_FILE: Final = "keys.jsonl"
MANIFEST_FILE: Final = "manifest.note"
MANIFEST_PROOF_FILE: Final = "manifest.tlog-proof"
MAX_LINE_BYTES: Final = 100_000
"""A header with the most sums and the longest proof is well below it."""
DATA_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "jsonl": ("records.jsonl", "transfers.jsonl"),
    "csv": ("records.csv", "transfers.csv"),
    "parquet": ("records.parquet", "transfers.parquet"),
    "xlsx": ("offpeak.xlsx",),
    "focus": ("focus.csv",),
    "beancount": ("offpeak.beancount",),
    "hledger": ("offpeak.journal",),
}
"""The files of each format beside the evidence."""


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A batch header and its proof; the batch's leaves follow."""

    header: bytes
    log_proof: LogProof

    def encode(self) -> bytes:
        """The line, without its line feed."""
        return canonical_json({"header": self.header.decode(), "log_proof": self.log_proof.text()})


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record of the export: its RFC 8785 text and the 65-byte signature over its digest."""

    record: bytes
    signature: bytes

    def encode(self) -> bytes:
        """The line, without its line feed."""
        return canonical_json(
            {"record": self.record.decode(), "signature": "0x" + self.signature.hex()}
        )


@dataclass(frozen=True, slots=True)
class LeafLine:
    """Another record of the batch, by its leaf hash."""

    hash: bytes

    def encode(self) -> bytes:
        """The line, without its line feed."""
        return b'{"leaf":"0x' + self.hash.hex().encode() + b'"}'


EvidenceLine = BatchLine | RecordLine | LeafLine


def parse_line(data: bytes) -> EvidenceLine:
    """The line that these bytes are, without their line feed.

    Raises:
        BadEntry: another form.
    """
    given = parse_canonical(data, what="line")
    if "leaf" in given:
        require_members(given, "leaf", what="line")
        return LeafLine(bytes_of(given["leaf"], "line.leaf"))
    if "record" in given:
        require_members(given, "record", "signature", what="line")
        signature = bytes_of(given["signature"], "line.signature", length=SIGNATURE_BYTES)
        return RecordLine(text_of(given["record"], "line.record").encode(), signature)
    require_members(given, "header", "log_proof", what="line")
    header = text_of(given["header"], "line.header").encode()
    return BatchLine(header, log_proof_of(given["log_proof"], "line.log_proof"))


def key_line(entry: KeyEntry) -> bytes:
    """A line of `keys.jsonl`, without its line feed."""
    return canonical_json(entry.document())


def parse_key_line(data: bytes) -> KeyEntry:
    """The key-rotation entry and proof that a line of `keys.jsonl` holds.

    Raises:
        BadEntry: another form.
    """
    return KeyEntry.parse(parse_canonical(data, what="line"), "line")
