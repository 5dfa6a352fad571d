"""The messages of `eip712.json`: every type with a plain, a smallest, a largest and a text case."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from ledger.authorization import (
    NO_DELEGATION,
    BudgetDelegation,
    CancelJob,
    ReadAccess,
    RequestAuthorization,
    RevokeDelegation,
    SuspenseClaim,
    Withdrawal,
    authorization_domain,
)
from ledger.commitment import answer_digest, request_commit, request_digest, response_commit
from ledger.encoding import Domain, canonical_json, parse_address, uuid_bytes32
from ledger.hashing import keccak256, sha256
from ledger.money import Nano
from ledger.quote import Quote
from ledger.token_messages import Permit, ReceiveWithAuthorization
from ledger.typed_data import Field, TypedMessage
from ledger.usage import NO_RECORD, RECORD_VERSION, Outcome, UsageRecord, usage_record_domain

CHAIN_ID = 31337
TREASURY = parse_address("0x5fbdb2315678afecb367f032d93f642f64180aa3")
RECEIPT_ANCHOR = parse_address("0xe7f1725e7734ce288f8367e1bb143e90bb3f0512")
TOKEN = parse_address("0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0")
PAYER = parse_address("0x70997970c51812dc3a010c7d01b50e0d17dc79c8")
DELEGATE = parse_address("0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc")

OFFPEAK = authorization_domain(chain_id=CHAIN_ID, treasury=TREASURY)
RECORDS = usage_record_domain(chain_id=CHAIN_ID, receipt_anchor=RECEIPT_ANCHOR)
TOKEN_DOMAIN = Domain("USD Coin", "2", CHAIN_ID, TOKEN)
LAST_CHAIN = replace(OFFPEAK, chain_id=2**53 - 1)

MODEL = "smollm2-135m-instruct"
NON_ASCII = "modèle-模型-🜁"
REVISION = bytes.fromhex("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")
SALT = sha256(b"offpeak vectors: salt")
NONCE = sha256(b"offpeak vectors: nonce")
CANONICAL_REQUEST = canonical_json(
    {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Classify: I was charged twice. Überweisung?"}],
        "max_output_tokens": 64,
    }
)
ANSWER = ("Billing", "stop")
REQUEST = request_digest(SALT, CANONICAL_REQUEST)
NOW = 1_790_000_000
BEYOND_DOUBLE = 2**53 + 1


@dataclass(frozen=True, slots=True)
class Case:
    """One vector before it is hashed and signed."""

    name: str
    domain: Domain
    message: TypedMessage


QUOTE = Quote(
    quote_id=uuid_bytes32(UUID("01990000-0000-7000-8000-00000000a001")),
    payer=PAYER,
    model=MODEL,
    model_revision=REVISION,
    region="local",
    request_digest=REQUEST,
    input_tokens=48,
    max_output_tokens=64,
    input_rate_nano=Nano(60_000_000),
    output_rate_nano=Nano(180_000_000),
    per_request_nano=Nano(1_000),
    token=TOKEN,
    max_charge_nano=Nano(15_400),
    ask_nano=Nano(20_000),
    load_ppm=250_000,
    price_point_at=NOW - 1,
    curve_version=1,
    run_seconds=30,
    issued_at=NOW,
    expires_at=NOW + 60,
)

AUTHORIZATION = RequestAuthorization(
    payer=PAYER,
    delegation=NO_DELEGATION,
    quote_digest=QUOTE.digest(OFFPEAK),
    request_digest=REQUEST,
    model=MODEL,
    max_output_tokens=64,
    token=TOKEN,
    max_charge_nano=Nano(15_400),
    valid_after=NOW,
    deadline=NOW + 60,
    nonce=NONCE,
)

READ = ReadAccess(payer=PAYER, scope="jobs", valid_until=NOW + 3600, nonce=NONCE)

JOB = uuid_bytes32(UUID("01990000-0000-7000-8000-00000000b001"))
CANCEL = CancelJob(payer=PAYER, job=JOB, nonce=NONCE, deadline=NOW + 60)

DELEGATION = BudgetDelegation(
    payer=PAYER,
    delegate=DELEGATE,
    token=TOKEN,
    max_total_nano=Nano(5_000_000_000),
    max_per_request_nano=Nano(1_000_000),
    max_per_period_nano=Nano(500_000_000),
    period_seconds=86_400,
    models=MODEL,
    valid_after=NOW,
    valid_until=NOW + 30 * 86_400,
    nonce=NONCE,
)

REVOKE = RevokeDelegation(
    payer=PAYER, delegation=DELEGATION.digest(OFFPEAK), nonce=NONCE, deadline=NOW + 60
)

WITHDRAWAL = Withdrawal(
    payer=PAYER, token=TOKEN, amount=2_500_000, max_fee=10_000, nonce=NONCE, deadline=NOW + 3600
)

CLAIM = SuspenseClaim(
    payer=PAYER,
    transaction=sha256(b"offpeak vectors: transaction"),
    log_index=7,
    nonce=NONCE,
    deadline=NOW + 3600,
)

PERMIT = Permit(owner=PAYER, spender=TREASURY, value=5_000_000, nonce=3, deadline=NOW + 3600)

RECEIVE = ReceiveWithAuthorization(
    from_=PAYER,
    to=TREASURY,
    value=5_000_000,
    valid_after=0,
    valid_before=NOW + 3600,
    nonce=keccak256(bytes(12) + bytes.fromhex(PAYER[2:]) + NONCE),
)

RECORD = UsageRecord(
    version=RECORD_VERSION,
    record_id=JOB,
    quote_digest=QUOTE.digest(OFFPEAK),
    accept_digest=AUTHORIZATION.digest(OFFPEAK),
    supplier_statement=sha256(b"offpeak vectors: supplier statement"),
    payer=PAYER,
    payer_seq=2,
    prev_payer_record=uuid_bytes32(UUID("01990000-0000-7000-8000-00000000b000")),
    model_revision=REVISION,
    input_tokens=48,
    cached_input_tokens=16,
    output_tokens=21,
    reasoning_tokens=0,
    input_rate_nano=Nano(60_000_000),
    output_rate_nano=Nano(180_000_000),
    per_request_nano=Nano(1_000),
    asset=TOKEN,
    held_nano=Nano(15_400),
    charge_nano=Nano(7_660),
    released_nano=Nano(7_740),
    outcome=Outcome.COMPLETED,
    corrects_record=NO_RECORD,
    request_commit=request_commit(SALT, REQUEST),
    response_commit=response_commit(SALT, answer_digest(*ANSWER)),
    completed_at=NOW + 4,
    include_by=NOW + 4 + 86_400,
    salt=SALT,
)

FAILED = replace(
    RECORD,
    cached_input_tokens=0,
    output_tokens=0,
    charge_nano=Nano(0),
    released_nano=Nano(15_400),
    outcome=Outcome.FAILED,
)

CORRECTION = replace(
    RECORD,
    record_id=uuid_bytes32(UUID("01990000-0000-7000-8000-00000000b002")),
    held_nano=Nano(7_660),
    charge_nano=Nano(5_000),
    released_nano=Nano(2_660),
    outcome=Outcome.CORRECTION,
    corrects_record=JOB,
)

PLAIN: tuple[Case, ...] = (
    Case("plain", OFFPEAK, QUOTE),
    Case("plain", OFFPEAK, AUTHORIZATION),
    Case("plain", OFFPEAK, READ),
    Case("plain", OFFPEAK, CANCEL),
    Case("plain", OFFPEAK, DELEGATION),
    Case("plain", OFFPEAK, REVOKE),
    Case("plain", OFFPEAK, WITHDRAWAL),
    Case("plain", OFFPEAK, CLAIM),
    Case("plain", RECORDS, RECORD),
    Case("plain", TOKEN_DOMAIN, PERMIT),
    Case("plain", TOKEN_DOMAIN, RECEIVE),
)

_OUTCOME = {"least": "1", "most": "4"}
_LEAST = {"address": "0x" + "00" * 20, "bytes32": "0x" + "00" * 32, "string": ""}
_MOST = {"address": "0x" + "ff" * 20, "bytes32": "0x" + "ff" * 32, "string": NON_ASCII * 40}


def _bits(field: Field) -> int:
    """The width of an integer field, 0 for any other."""
    width = field.solidity.removeprefix("uint")
    return int(width) if width.isdigit() else 0


def _extreme(case: Case, name: str) -> Case:
    """The case with every member at the end of its type's range."""
    message: dict[str, object] = {}
    for field in case.message.TYPE.fields:
        texts = _LEAST if name == "least" else _MOST
        number = "0" if name == "least" else str((1 << _bits(field)) - 1)
        message[field.name] = texts.get(field.solidity, number)
    if "outcome" in message:
        message["outcome"] = _OUTCOME[name]
    return Case(name, case.domain, case.message.parse(message))


def _beyond_double(case: Case) -> Case:
    """The case with every wide integer above 2^53, where a double loses the last digit."""
    message: dict[str, object] = dict(case.message.message())
    wide = [field.name for field in case.message.TYPE.fields if _bits(field) >= 64]
    message.update(dict.fromkeys(wide, str(BEYOND_DOUBLE)))
    return Case("beyond 2^53", case.domain, case.message.parse(message))


def cases() -> Iterator[Case]:
    """Every vector's case, in the order of the file."""
    for case in PLAIN:
        yield case
        yield _extreme(case, "least")
        yield _extreme(case, "most")
        yield _beyond_double(case)
    yield Case("non-ASCII model", OFFPEAK, replace(QUOTE, model=NON_ASCII, region="ülm"))
    yield Case("non-ASCII model", OFFPEAK, replace(AUTHORIZATION, model=NON_ASCII))
    yield Case("non-ASCII models", OFFPEAK, replace(DELEGATION, models=f"{MODEL},{NON_ASCII}"))
    yield Case("by a delegate", OFFPEAK, replace(AUTHORIZATION, delegation=keccak256(b"budget")))
    yield Case("last chain id", LAST_CHAIN, AUTHORIZATION)
    yield Case("failed", RECORDS, FAILED)
    yield Case("correction", RECORDS, CORRECTION)
