"""What the parties sign about a job, with TEST keys: quote, acceptance, statement, record."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from ledger.authorization import NO_DELEGATION, RequestAuthorization, authorization_domain
from ledger.commitment import answer_digest, request_commit, response_commit
from ledger.encoding import Address, canonical_json, parse_address, uuid_bytes32
from ledger.hashing import sha256
from ledger.log_entry import record_leaf_hash
from ledger.money import RATE_UNIT, Nano
from ledger.note import NoteSigner
from ledger.quote import Quote
from ledger.receipt import SupplierPart
from ledger.statement import SupplierStatement
from ledger.usage import NO_RECORD, RECORD_VERSION, Outcome, UsageRecord, usage_record_domain

CHAIN_ID = 31337
TREASURY = parse_address("0x5fbdb2315678afecb367f032d93f642f64180aa3")
RECEIPT_ANCHOR = parse_address("0xe7f1725e7734ce288f8367e1bb143e90bb3f0512")
TOKEN = parse_address("0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0")
AUTHORIZATIONS = authorization_domain(chain_id=CHAIN_ID, treasury=TREASURY)
RECORDS = usage_record_domain(chain_id=CHAIN_ID, receipt_anchor=RECEIPT_ANCHOR)
MODEL = "smollm2-135m-instruct"
REVISION = sha256(b"TEST weights")
NOW = 1_790_000_000
INPUT_TOKENS = 48
MAX_OUTPUT_TOKENS = 64
INPUT_RATE = Nano(60_000_000)
OUTPUT_RATE = Nano(180_000_000)
PER_REQUEST = Nano(1_000)
MAX_CHARGE = Nano(
    PER_REQUEST + (INPUT_TOKENS * INPUT_RATE + MAX_OUTPUT_TOKENS * OUTPUT_RATE) // RATE_UNIT
)


def secret(name: str) -> bytes:
    """The 32 bytes of a TEST key or salt of this name."""
    return sha256(b"TEST offpeak receipt world: " + name.encode())


def _same_quote(quote: Quote) -> Quote:
    return quote


def _same_authorization(authorization: RequestAuthorization) -> RequestAuthorization:
    return authorization


def _same_statement(statement: SupplierStatement) -> SupplierStatement:
    return statement


def _same_record(record: UsageRecord) -> UsageRecord:
    return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Changes to a job's documents before each is signed; what follows takes them over."""

    quote: Callable[[Quote], Quote] = _same_quote
    authorization: Callable[[RequestAuthorization], RequestAuthorization] = _same_authorization
    statement: Callable[[SupplierStatement], SupplierStatement] = _same_statement
    record: Callable[[UsageRecord], UsageRecord] = _same_record
    accepted_by: str | None = None
    """The wallet that signs the acceptance, if not the payer."""
    recorded_by: str | None = None
    """The name of the key that signs the record, if not the one in force."""
    quoted_by: str | None = None
    """The name of the key that signs the quote, if not the one in force."""


NO_EDITS = Edits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A finished job: its record and all that was signed on the way."""

    wallet: str
    request: bytes
    request_salt: bytes
    answer: tuple[str, str] | None
    quote: Quote
    acceptance: RequestAuthorization
    supplier: SupplierPart | None
    record: UsageRecord
    quote_signature: bytes
    acceptance_signature: bytes
    record_signature: bytes

    @property
    def digest(self) -> bytes:
        """The record's digest under the world's domain."""
        return self.record.digest(RECORDS)

    @property
    def leaf(self) -> bytes:
        """The record's leaf hash in its batch."""
        return record_leaf_hash(self.digest, self.record_signature)


def job_id(number: int) -> UUID:
    """The UUID of a number."""
    return UUID(f"01990000-0000-7000-8000-{number:012x}")


def request_for(number: int) -> bytes:
    """The RFC 8785 form of a request."""
    content = f"Classify {number}: I was charged twice. Überweisung?"
    messages = [{"role": "user", "content": content}]
    return canonical_json(
        {"model": MODEL, "messages": messages, "max_output_tokens": MAX_OUTPUT_TOKENS}
    )


def authorization_for(number: int, quote: Quote) -> RequestAuthorization:
    """The acceptance of a quote."""
    return RequestAuthorization(
        payer=quote.payer,
        delegation=NO_DELEGATION,
        quote_digest=quote.digest(AUTHORIZATIONS),
        request_digest=quote.request_digest,
        model=quote.model,
        max_output_tokens=quote.max_output_tokens,
        token=quote.token,
        max_charge_nano=quote.max_charge_nano,
        valid_after=quote.issued_at,
        deadline=quote.expires_at,
        nonce=secret(f"nonce {number}"),
    )


def statement_for(number: int, digest: bytes, answer: tuple[str, str]) -> SupplierStatement:
    """The agent's statement of a job's answer."""
    return SupplierStatement(
        lease=job_id(0xD000 + number),
        job=job_id(0xB000 + number),
        request_digest=digest,
        response_digest=answer_digest(*answer),
        input_tokens=INPUT_TOKENS,
        cached_input_tokens=16,
        output_tokens=21 + number % 40,
        finish=answer[1],
        release_fingerprint="TEST release",
    )


def agent_public_key() -> bytes:
    """The agent's Ed25519 key."""
    return NoteSigner("agent", secret("agent")).verifier.public_key


def quote_for(number: int, payer: Address, digest: bytes) -> Quote:
    """A quote to this wallet for a request digest."""
    return Quote(
        quote_id=uuid_bytes32(job_id(0xA000 + number)),
        payer=payer,
        model=MODEL,
        model_revision=REVISION,
        region="local",
        request_digest=digest,
        input_tokens=INPUT_TOKENS,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        input_rate_nano=INPUT_RATE,
        output_rate_nano=OUTPUT_RATE,
        per_request_nano=PER_REQUEST,
        token=TOKEN,
        max_charge_nano=MAX_CHARGE,
        ask_nano=Nano(20_000),
        load_ppm=250_000,
        price_point_at=NOW - 1,
        curve_version=1,
        run_seconds=30,
        issued_at=NOW,
        expires_at=NOW + 60,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a record stands: its job's number in the world, its place in the wallet's history."""

    number: int
    payer: Address
    seq: int
    previous: bytes
    salt: bytes


def record_for(
    place: Place,
    outcome: Outcome,
    signed: tuple[Quote, RequestAuthorization, SupplierStatement | None],
    answer: tuple[str, str] | None,
) -> UsageRecord:
    """The record of a job; without an answer nothing was used and nothing is charged."""
    quote, acceptance, statement = signed
    output = 0 if answer is None or statement is None else statement.output_tokens
    parts = INPUT_TOKENS * quote.input_rate_nano + output * quote.output_rate_nano
    charge = 0 if answer is None else quote.per_request_nano + parts // RATE_UNIT
    answered = bytes(32) if answer is None else answer_digest(*answer)
    return UsageRecord(
        version=RECORD_VERSION,
        record_id=uuid_bytes32(job_id(0xB000 + place.number)),
        quote_digest=quote.digest(AUTHORIZATIONS),
        accept_digest=acceptance.digest(AUTHORIZATIONS),
        supplier_statement=bytes(32) if statement is None else statement.digest(),
        payer=place.payer,
        payer_seq=place.seq,
        prev_payer_record=place.previous,
        model_revision=quote.model_revision,
        input_tokens=0 if answer is None else INPUT_TOKENS,
        cached_input_tokens=0 if answer is None else 16,
        output_tokens=output,
        reasoning_tokens=0,
        input_rate_nano=quote.input_rate_nano,
        output_rate_nano=quote.output_rate_nano,
        per_request_nano=quote.per_request_nano,
        asset=quote.token,
        held_nano=quote.max_charge_nano,
        charge_nano=Nano(charge),
        released_nano=Nano(quote.max_charge_nano - charge),
        outcome=outcome,
        corrects_record=NO_RECORD,
        request_commit=request_commit(place.salt, quote.request_digest),
        response_commit=response_commit(place.salt, answered),
        completed_at=NOW + 4 + place.number,
        include_by=NOW + 4 + place.number + 86_400,
        salt=place.salt,
    )
