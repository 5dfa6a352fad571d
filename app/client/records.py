"""Checking a usage record: its signature, its arithmetic, and that it is about our request.

It proves that the gateway signed this billing record. It does not prove that a GPU did the work,
that metering was truthful or that the answer is right.
"""

from dataclasses import dataclass

from app.client.checks import CheckedQuote
from app.client.documents import JobDocument
from app.client.errors import RecordRefused
from app.client.terms import Terms
from ledger.commitment import answer_digest, request_commit, response_commit
from ledger.encoding import Address
from ledger.errors import BadSignature, MalformedTypedData, RecordInconsistent
from ledger.signing import recover
from ledger.usage import UsageRecord


def verify_record(job: JobDocument, checked: CheckedQuote, terms: Terms) -> UsageRecord:
    """Return the record of an ended job after recomputing everything it says.

    Raises:
        RecordRefused: naming the rule: form, digest, signature, arithmetic, or the field that
            differs from quote and authorization.
    """
    record, signer = _signed_record(job, terms)
    _require("signature", signer == checked.signer)
    _check_against_quote(record, checked)
    _check_answer(record, job)
    return record


@dataclass(frozen=True, slots=True)
class SignedRecord:
    """A record that adds up, and the key that signed it."""

    record: UsageRecord
    signer: Address


def verify_stored(job: JobDocument, terms: Terms, *, payer: Address) -> SignedRecord:
    """Return an ended job's record without its quote: all that can be recomputed later.

    Form, arithmetic, digest, signature, payer, token, and that it commits to this very answer.
    Who signed is compared with `terms.quote_signer` when that is pinned; the caller shows it.

    Raises:
        RecordRefused: naming the rule.
    """
    record, signer = _signed_record(job, terms)
    _require("signature", terms.quote_signer in (None, signer))
    _require("payer", record.payer == payer)
    _require("asset", record.asset == terms.token)
    _check_answer(record, job)
    return SignedRecord(record, signer)


def _signed_record(job: JobDocument, terms: Terms) -> tuple[UsageRecord, Address]:
    if job.record is None:
        raise RecordRefused("presence", reason="the job has no usage record yet")
    try:
        record = UsageRecord.parse(job.record.message)
        record.check()
    except MalformedTypedData as error:
        raise RecordRefused("form", reason=str(error)) from None
    except RecordInconsistent as error:
        raise RecordRefused("arithmetic", reason=str(error)) from None
    digest = record.digest(terms.record_domain)
    _require("digest", job.record.digest == "0x" + digest.hex())
    try:
        signature = bytes.fromhex(job.record.signature.removeprefix("0x"))
        return record, recover(digest, signature)
    except (BadSignature, ValueError) as error:
        raise RecordRefused("signature", reason=str(error)) from None


def _check_answer(record: UsageRecord, job: JobDocument) -> None:
    if job.answer is not None:
        answered = answer_digest(job.answer.content, job.answer.finish_reason)
        _require("responseCommit", record.response_commit == response_commit(record.salt, answered))


def _check_against_quote(record: UsageRecord, checked: CheckedQuote) -> None:
    quote = checked.quote
    _require("payer", record.payer == quote.payer)
    _require("quoteDigest", record.quote_digest == checked.digest)
    _require("acceptDigest", record.accept_digest == checked.authorization_digest)
    _require("modelRevision", record.model_revision == quote.model_revision)
    _require("asset", record.asset == quote.token)
    _require("inputRateNano", record.input_rate_nano == quote.input_rate_nano)
    _require("outputRateNano", record.output_rate_nano == quote.output_rate_nano)
    _require("perRequestNano", record.per_request_nano == quote.per_request_nano)
    _require("heldNano", record.held_nano == quote.max_charge_nano)
    _require("outputTokens", record.output_tokens <= quote.max_output_tokens)
    opened = request_commit(record.salt, quote.request_digest)
    _require("requestCommit", record.request_commit == opened)


def _require(rule: str, holds: bool) -> None:  # noqa: FBT001  # an assertion reads so
    if not holds:
        raise RecordRefused(rule, reason="differs from what was asked, signed or answered")
