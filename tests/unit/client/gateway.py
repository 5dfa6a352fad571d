"""A gateway's side of quote and record, signed with a key of the tests."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from app.client.asking import Asked, Question, Turn
from app.client.checks import CheckedQuote, checked_quote
from app.client.documents import JobDocument, QuoteDocument
from app.client.terms import Terms
from ledger.authorization import NO_DELEGATION, RequestAuthorization
from ledger.commitment import answer_digest, request_commit, response_commit
from ledger.encoding import Domain, parse_address, uuid_bytes32
from ledger.money import Nano, format_amount
from ledger.quote import Quote
from ledger.signing import SigningKey
from ledger.usage import NO_RECORD, Outcome, UsageRecord

NOW = 1_790_000_000
GATEWAY_KEY = SigningKey(bytes(31) + b"\x0b")
WALLET_KEY = bytes(31) + b"\x0c"
PAYER = SigningKey(WALLET_KEY).address
TERMS = Terms(
    chain_id=31_337,
    treasury=parse_address(f"0x{2:040x}"),
    receipt_anchor=parse_address(f"0x{3:040x}"),
    token=parse_address(f"0x{1:040x}"),
)
QUESTION = Question(
    model="smollm2-135m-instruct", turns=(Turn("user", "Say hello."),), max_output_tokens=32
)
ASKED = Asked(payer=PAYER, question=QUESTION, salt=bytes(32))


def quote_for(asked: Asked = ASKED, **changed: Any) -> Quote:
    """Return an honest quote, with fields changed."""
    quote = Quote(
        quote_id=uuid_bytes32(UUID(int=7)),
        payer=asked.payer,
        model=asked.question.model,
        model_revision=b"\x11" * 32,
        region="local",
        request_digest=asked.digest(),
        input_tokens=12,
        max_output_tokens=asked.question.max_output_tokens,
        input_rate_nano=Nano(20_000_000),
        output_rate_nano=Nano(100_000_000),
        per_request_nano=Nano(5_000),
        token=TERMS.token,
        max_charge_nano=Nano(8_440),
        ask_nano=Nano(2_000),
        load_ppm=250_000,
        price_point_at=NOW - 1,
        curve_version=1,
        run_seconds=30,
        issued_at=NOW,
        expires_at=NOW + 60,
    )
    return replace(quote, **changed)


def document_for(quote: Quote, *, domain: Domain | None = None, **authorized: Any) -> QuoteDocument:
    """Return what the gateway would answer for a quote; `authorized` changes the authorization."""
    domain = domain or TERMS.domain
    digest = quote.digest(domain)
    authorization = RequestAuthorization(
        payer=quote.payer,
        delegation=NO_DELEGATION,
        quote_digest=digest,
        request_digest=quote.request_digest,
        model=quote.model,
        max_output_tokens=quote.max_output_tokens,
        token=quote.token,
        max_charge_nano=quote.max_charge_nano,
        valid_after=quote.issued_at,
        deadline=quote.expires_at,
        nonce=b"\x22" * 32,
    )
    return QuoteDocument(
        id="quote_00000000-0000-0000-0000-000000000007",
        quote=quote.message(),
        signature="0x" + GATEWAY_KEY.sign(digest).hex(),
        digest="0x" + digest.hex(),
        price={"max_charge": format_amount(quote.max_charge_nano)},
        authorization=replace(authorization, **authorized).typed_data(domain),
    )


def checked(terms: Terms = TERMS) -> CheckedQuote:
    """Return an honest quote."""
    return checked_quote(document_for(quote_for()), ASKED, terms, now=NOW)


def record_for(accepted: CheckedQuote, **changed: Any) -> UsageRecord:
    """Return an honest usage record of a quote, with fields changed."""
    quote = accepted.quote
    salt = b"\x33" * 32
    record = UsageRecord(
        version=1,
        record_id=uuid_bytes32(UUID(int=9)),
        quote_digest=accepted.digest,
        accept_digest=accepted.authorization_digest,
        supplier_statement=b"\x44" * 32,
        payer=quote.payer,
        payer_seq=1,
        prev_payer_record=NO_RECORD,
        model_revision=quote.model_revision,
        input_tokens=12,
        cached_input_tokens=0,
        output_tokens=10,
        reasoning_tokens=0,
        input_rate_nano=quote.input_rate_nano,
        output_rate_nano=quote.output_rate_nano,
        per_request_nano=quote.per_request_nano,
        asset=quote.token,
        held_nano=Nano(8_440),
        charge_nano=Nano(6_240),
        released_nano=Nano(2_200),
        outcome=Outcome.COMPLETED,
        corrects_record=NO_RECORD,
        request_commit=request_commit(salt, quote.request_digest),
        response_commit=response_commit(salt, answer_digest("Hello.", "stop")),
        completed_at=NOW + 2,
        include_by=NOW + 86_402,
        salt=salt,
    )
    return replace(record, **changed)


def job_with(record: UsageRecord, *, signer: SigningKey = GATEWAY_KEY) -> JobDocument:
    """Return a completed job with its record signed."""
    digest = record.digest(TERMS.record_domain)
    return JobDocument.model_validate(
        {
            "id": "job_00000000-0000-0000-0000-000000000009",
            "state": "completed",
            "model": QUESTION.model,
            "region": "local",
            "quote_id": "quote_00000000-0000-0000-0000-000000000007",
            "created_at": "2026-11-30T00:00:00Z",
            "answer": {"content": "Hello.", "finish_reason": "stop"},
            "record": {
                "message": record.message(),
                "digest": "0x" + digest.hex(),
                "signature": "0x" + signer.sign(digest).hex(),
                "key_id": "k1",
            },
        }
    )
