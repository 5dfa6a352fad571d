"""What the receipt log and its batches hold, and how each becomes a leaf.

A leaf is one ASCII line that names the kind and digests, so no entry passes as another kind and
no inner node as an entry. A record's leaf speaks of its digest and signature only: the log can
be public while the records are their payers'.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from ledger.encoding import Address, canonical_json, checksum_address, parse_address
from ledger.errors import BadAddress, BadEntry
from ledger.hashing import require_32_bytes, sha256
from ledger.merkle import leaf_hash
from ledger.money import MAX_NANO, Nano
from ledger.note import Note, require_name
from ledger.strict_json import (
    bytes_of,
    integer_of,
    list_of,
    object_of,
    parse_canonical,
    require_members,
    text_of,
)
from ledger.usage import UsageRecord

HEADER_VERSION: Final = 1
MAX_BATCH_RECORDS: Final = 1_000_000
_KEY_ID = re.compile(r"[0-9a-f]{8}")
MAX_ASSETS: Final = 64
NO_HEADER: Final = bytes(32)
"""`previous_header` of the first batch."""

_HEADER_MEMBERS: Final = (
    "version", "number", "start", "end", "count", "records_root", "sums",
    "first_at", "last_at", "key_id", "previous_header",
)  # fmt: skip


class EntryKind(StrEnum):
    """What the log holds."""

    BATCH_HEADER = "batch-header"
    KEY_ROTATION = "key-rotation"
    EXPORT_MANIFEST = "export-manifest"


def record_leaf(digest: bytes, signature: bytes) -> bytes:
    """The line that stands for a signed record in its batch's tree.

    Args:
        digest: The record's EIP-712 digest, 32 bytes.
        signature: The 65 bytes that the record key made over it.
    """
    digest = require_32_bytes("record digest", digest)
    return f"offpeak/usage-record@v1 {digest.hex()} {sha256(signature).hex()}\n".encode()


def entry_leaf(kind: EntryKind, entry: bytes) -> bytes:
    """The line that stands for an entry in the log's tree: its kind and its bytes' SHA-256."""
    return f"offpeak/{kind}@v1 {sha256(entry).hex()}\n".encode()


def entry_leaf_hash(kind: EntryKind, entry: bytes) -> bytes:
    """The Merkle leaf hash of an entry, 32 bytes."""
    return leaf_hash(entry_leaf(kind, entry))


def record_leaf_hash(digest: bytes, signature: bytes) -> bytes:
    """The Merkle leaf hash of a signed record, 32 bytes."""
    return leaf_hash(record_leaf(digest, signature))


def signed_text(tag: str, origin: str, body: bytes) -> str:
    """The text of a signed entry: its tag, the log's origin and an RFC 8785 body, a line each."""
    return f"{tag}\n{origin}\n{body.decode()}\n"


def read_signed_text(note: Note, tag: str, *, what: str) -> tuple[str, dict[str, object]]:
    """The log's origin and the body that `signed_text` wrote into a note.

    Raises:
        BadEntry: another form.
        BadNote: the origin cannot be one.
    """
    lines = note.text.split("\n")
    if len(lines) != 4 or lines[0] != tag:
        raise BadEntry(what, f"not three lines from {tag}")
    return require_name(lines[1]), parse_canonical(lines[2].encode(), what=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetSums:
    """What a set of records says of one token, in nano."""

    asset: Address
    charge: Nano
    held: Nano
    released: Nano

    def message(self) -> dict[str, object]:
        """As it travels: decimal strings, the address in EIP-55 form."""
        return {
            "asset": checksum_address(self.asset),
            "charge_nano": str(self.charge),
            "held_nano": str(self.held),
            "released_nano": str(self.released),
        }

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """The sums that a JSON object writes; they must add up.

        Raises:
            BadEntry: another form, or held is not charge + released.
        """
        given = object_of(value, field)
        require_members(given, "asset", "charge_nano", "held_nano", "released_nano", what=field)
        try:
            asset = parse_address(given["asset"])
        except BadAddress as error:
            raise BadEntry(f"{field}.asset", error.reason) from None
        if given["asset"] != checksum_address(asset):
            raise BadEntry(f"{field}.asset", "not in EIP-55 form")
        amounts = [
            Nano(integer_of(given[name], f"{field}.{name}", limit=MAX_NANO))
            for name in ("charge_nano", "held_nano", "released_nano")
        ]
        charge, held, released = amounts
        if held != charge + released:
            raise BadEntry(field, "held is not charge + released")
        return cls(asset=asset, charge=charge, held=held, released=released)


def sums_of(record: UsageRecord) -> AssetSums:
    """What one record says of its token."""
    return AssetSums(
        asset=record.asset,
        charge=record.charge_nano,
        held=record.held_nano,
        released=record.released_nano,
    )


def add_up(amounts: Iterable[AssetSums]) -> tuple[AssetSums, ...]:
    """The sums per token, by address."""
    found: dict[Address, tuple[int, int, int]] = {}
    for one in amounts:
        charge, held, released = found.get(one.asset, (0, 0, 0))
        found[one.asset] = (charge + one.charge, held + one.held, released + one.released)
    return tuple(
        AssetSums(asset=asset, charge=Nano(charge), held=Nano(held), released=Nano(released))
        for asset, (charge, held, released) in sorted(found.items())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """A receipt batch: which records of the one sequence, their root and sums.

    `start` .. `end` - 1 are the records' places in the sequence of all batches; `first_at` and
    `last_at` are the earliest and latest completion in unix seconds; `key_id` is the id of the
    checkpoint key in force (8 hex digits); `previous_header` the SHA-256 of the header before.
    """

    number: int
    start: int
    end: int
    records_root: bytes
    sums: tuple[AssetSums, ...]
    first_at: int
    last_at: int
    key_id: str
    previous_header: bytes

    @property
    def count(self) -> int:
        """How many records, at least 1."""
        return self.end - self.start

    def encode(self) -> bytes:
        """The header's bytes: RFC 8785 JSON on one line, without a line feed."""
        return canonical_json(
            {
                "version": str(HEADER_VERSION),
                "number": str(self.number),
                "start": str(self.start),
                "end": str(self.end),
                "count": str(self.count),
                "records_root": "0x" + self.records_root.hex(),
                "sums": [each.message() for each in self.sums],
                "first_at": str(self.first_at),
                "last_at": str(self.last_at),
                "key_id": self.key_id,
                "previous_header": "0x" + self.previous_header.hex(),
            }
        )

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The header that these bytes are.

        Raises:
            BadEntry: another form, an empty batch, a wrong count, times or sums out of order.
        """
        given = parse_canonical(data, what="header")
        require_members(given, *_HEADER_MEMBERS, what="header")

        def number(name: str) -> int:
            return integer_of(given[name], f"header.{name}")

        if number("version") != HEADER_VERSION:
            raise BadEntry("header.version", "not 1")
        listed = list_of(given["sums"], "header.sums", limit=MAX_ASSETS)
        header = cls(
            number=number("number"),
            start=number("start"),
            end=number("end"),
            records_root=bytes_of(given["records_root"], "header.records_root"),
            sums=tuple(
                AssetSums.parse(each, f"header.sums[{place}]") for place, each in enumerate(listed)
            ),
            first_at=number("first_at"),
            last_at=number("last_at"),
            key_id=text_of(given["key_id"], "header.key_id"),
            previous_header=bytes_of(given["previous_header"], "header.previous_header"),
        )
        if not 0 < header.count <= MAX_BATCH_RECORDS or number("count") != header.count:
            raise BadEntry("header.count", "not the records from start to end")
        require_order(header.sums, "header.sums")
        _require_sense(header)
        return header


def require_order(sums: Sequence[AssetSums], field: str) -> None:
    """Check that sums have their one order: one per asset, by the address's bytes.

    Raises:
        BadEntry: they have another.
    """
    if [each.asset for each in sums] != sorted({each.asset for each in sums}):
        raise BadEntry(field, "not one per asset, by address")


def _require_sense(header: BatchHeader) -> None:
    """What no batch can lack, whatever it holds."""
    if not header.sums:
        raise BadEntry("header.sums", "records without an asset")
    if header.first_at > header.last_at:
        raise BadEntry("header.first_at", "after last_at")
    if _KEY_ID.fullmatch(header.key_id) is None:
        raise BadEntry("header.key_id", "not 8 lower-case hex digits")
    if (header.start == 0) != (header.previous_header == NO_HEADER):
        raise BadEntry("header.previous_header", "zero belongs to the batch that starts at 0")
