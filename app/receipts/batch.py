"""From signed records to a receipt batch: leaves, root, header. Pure.

A batch's proofs are made from chunks of 256 leaves and the chunks' roots. Because 256 is a power of
two, the tree over the chunks' roots is the top of the tree over the leaves (RFC 6962, 2.1).
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from app.kit.clock import unix_seconds
from app.receipts.record import StoredRecord, usage_record_of
from ledger.encoding import Domain
from ledger.errors import BadSignature
from ledger.hashing import DIGEST_BYTES, sha256
from ledger.log_entry import MAX_ASSETS, NO_HEADER, AssetSums, BatchHeader, add_up, record_leaf_hash
from ledger.merkle import BatchIndex, Tree
from ledger.money import MAX_NANO
from ledger.signing import recover

CHUNK: Final = 256


@dataclass(frozen=True, slots=True)
class Leaf:
    """A record as its batch counts it."""

    record_id: UUID
    hash: bytes
    sums: AssetSums
    completed_at: datetime


def leaf_of(stored: StoredRecord, domain: Domain) -> Leaf:
    """Return a signed record's leaf, after checking its arithmetic and its signature.

    Raises:
        RecordInconsistent: its figures disagree.
        BadSignature: there is none, or another key made it than the row says.
    """
    if stored.signature is None:
        raise BadSignature("the record is not signed")
    digest = usage_record_of(stored).digest(domain)
    signer = recover(digest, stored.signature)
    if signer != stored.key_id:
        raise BadSignature(f"made by {signer}, not by {stored.key_id}")
    sums = AssetSums(
        asset=stored.asset, charge=stored.charge, held=stored.held, released=stored.released
    )
    leaf_hash = record_leaf_hash(digest, stored.signature)
    return Leaf(stored.record_id, leaf_hash, sums, stored.completed_at)


@dataclass(frozen=True, slots=True)
class SealedBatch:
    """A batch ready to be stored: the header's bytes, its records and leaf hashes in order."""

    header: bytes
    records: list[UUID]
    hashes: list[bytes]
    chunk_roots: bytes


@dataclass(frozen=True, slots=True)
class LastBatch:
    """Where the next batch begins."""

    number: int
    end: int
    header_digest: bytes


BEFORE_FIRST: Final = LastBatch(number=-1, end=0, header_digest=NO_HEADER)


@dataclass(slots=True)
class BatchDraft:
    """Leaves as they come, with the few figures that the header needs of them."""

    records: list[UUID] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    first_at: datetime | None = None
    last_at: datetime | None = None
    is_full: bool = False
    """Whether a leaf was left out, with all after it, because the header could not count it."""
    _sums: tuple[AssetSums, ...] = ()

    def add(self, leaves: Iterable[Leaf]) -> None:
        """Append leaves in order, up to the first that no header could count with those before."""
        leaves = list(leaves) if not self.is_full else []
        if not _countable(self._sums_with(leaves)):
            self.is_full = True
            leaves = leaves[: self._room(leaves)]
        self.records += [leaf.record_id for leaf in leaves]
        self.hashes += [leaf.hash for leaf in leaves]
        self._sums = self._sums_with(leaves)
        times = [leaf.completed_at for leaf in leaves]
        self.first_at = min([*times, *filter(None, [self.first_at])], default=None)
        self.last_at = max([*times, *filter(None, [self.last_at])], default=None)

    def _sums_with(self, leaves: Iterable[Leaf]) -> tuple[AssetSums, ...]:
        return add_up([*self._sums, *(leaf.sums for leaf in leaves)])

    def _room(self, leaves: Sequence[Leaf]) -> int:
        """Return how many of the leaves can be counted."""
        return bisect_left(
            range(len(leaves)),
            True,
            key=lambda number: not _countable(self._sums_with(leaves[: number + 1])),
        )

    def seal(self, last: LastBatch, *, key_id: str) -> SealedBatch:
        """Return the batch that follows on `last`. There is at least one leaf."""
        assert self.first_at is not None
        assert self.last_at is not None
        roots = chunk_roots(self.hashes)
        header = BatchHeader(
            number=last.number + 1,
            start=last.end,
            end=last.end + len(self.hashes),
            records_root=Tree(roots).root,
            sums=self._sums,
            first_at=unix_seconds(self.first_at),
            last_at=unix_seconds(self.last_at),
            key_id=key_id,
            previous_header=last.header_digest,
        )
        return SealedBatch(header.encode(), self.records, self.hashes, b"".join(roots))


def _countable(sums: Sequence[AssetSums]) -> bool:
    """Return whether a header can say these sums."""
    return len(sums) <= MAX_ASSETS and all(each.held <= MAX_NANO for each in sums)


def following(header: bytes) -> LastBatch:
    """Return where the batch after this header begins."""
    parsed = BatchHeader.parse(header)
    return LastBatch(parsed.number, parsed.end, sha256(header))


def chunk_roots(hashes: Sequence[bytes]) -> list[bytes]:
    """Return the root of each run of 256 leaf hashes, the last one shorter."""
    return [Tree(hashes[start : start + CHUNK]).root for start in range(0, len(hashes), CHUNK)]


def batch_proof(index: BatchIndex, *, chunk: Sequence[bytes], roots: bytes) -> tuple[bytes, ...]:
    """Return the inclusion proof of a leaf in its batch.

    Args:
        index: The leaf's place in the batch.
        chunk: The leaf hashes of its chunk.
        roots: The roots of all chunks, joined.
    """
    number, place = divmod(index, CHUNK)
    split = [roots[at : at + DIGEST_BYTES] for at in range(0, len(roots), DIGEST_BYTES)]
    return Tree(chunk).proof(place) + Tree(split).proof(number)
