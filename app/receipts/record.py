"""From a stored row to the usage record that is signed. Pure.

Signing is deterministic (RFC 6979): whoever signs a row, and however often, makes the same bytes.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.kit.clock import unix_seconds
from ledger.commitment import request_commit, response_commit
from ledger.encoding import Address, Domain, uuid_bytes32
from ledger.money import Nano
from ledger.signing import SigningKey
from ledger.usage import NO_RECORD, RECORD_VERSION, Outcome, UsageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A usage record's row with what its job and authorization add; digests are 32 bytes.

    `corrects` is the record that a correction corrects; its job is the corrected record's.
    """

    record_id: UUID
    payer: Address
    payer_seq: int
    previous_record: UUID | None
    corrects: UUID | None
    quote_digest: bytes
    accept_digest: bytes
    request_digest: bytes
    response_digest: bytes
    supplier_statement: bytes
    model_revision: bytes
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    input_rate: Nano
    output_rate: Nano
    per_request: Nano
    asset: Address
    held: Nano
    charge: Nano
    released: Nano
    outcome: int
    completed_at: datetime
    include_by: datetime
    salt: bytes
    flags: tuple[str, ...]
    key_id: str | None
    signature: bytes | None


@dataclass(frozen=True, slots=True)
class SignedRecord:
    """A usage record with its EIP-712 digest and the 65-byte signature of key `key_id`."""

    record: UsageRecord
    digest: bytes
    signature: bytes
    key_id: str


def usage_record_of(stored: StoredRecord) -> UsageRecord:
    """Return the record a row stands for, checked against its own figures.

    Raises:
        RecordInconsistent: charge, held, released and tokens do not fit each other.
    """
    record = UsageRecord(
        version=RECORD_VERSION,
        record_id=uuid_bytes32(stored.record_id),
        quote_digest=stored.quote_digest,
        accept_digest=stored.accept_digest,
        supplier_statement=stored.supplier_statement,
        payer=stored.payer,
        payer_seq=stored.payer_seq,
        prev_payer_record=_or_none(stored.previous_record),
        model_revision=stored.model_revision,
        input_tokens=stored.input_tokens,
        cached_input_tokens=stored.cached_input_tokens,
        output_tokens=stored.output_tokens,
        reasoning_tokens=stored.reasoning_tokens,
        input_rate_nano=stored.input_rate,
        output_rate_nano=stored.output_rate,
        per_request_nano=stored.per_request,
        asset=stored.asset,
        held_nano=stored.held,
        charge_nano=stored.charge,
        released_nano=stored.released,
        outcome=Outcome(stored.outcome),
        corrects_record=_or_none(stored.corrects),
        request_commit=request_commit(stored.salt, stored.request_digest),
        response_commit=response_commit(stored.salt, stored.response_digest),
        completed_at=unix_seconds(stored.completed_at),
        include_by=unix_seconds(stored.include_by),
        salt=stored.salt,
    )
    record.check()
    return record


def _or_none(record_id: UUID | None) -> bytes:
    return NO_RECORD if record_id is None else uuid_bytes32(record_id)


class RecordSigner:
    """Signs usage records with the gateway's record key."""

    def __init__(self, private_key: bytes, domain: Domain) -> None:
        """Take the 32-byte key and the usage records' domain."""
        self._key = SigningKey(private_key)
        self._domain = domain

    @property
    def domain(self) -> Domain:
        """The usage records' domain: the chain and its receipt anchor contract."""
        return self._domain

    @property
    def key_id(self) -> str:
        """The key's name in records: its address, lower case."""
        return self._key.address

    def sign(self, stored: StoredRecord) -> SignedRecord:
        """Return the record, signed; a signature that is stored already is kept.

        Raises:
            RecordInconsistent: see `usage_record_of`.
        """
        record = usage_record_of(stored)
        digest = record.digest(self._domain)
        if stored.signature is not None and stored.key_id is not None:
            return SignedRecord(record, digest, stored.signature, stored.key_id)
        return SignedRecord(record, digest, self._key.sign(digest), self.key_id)
