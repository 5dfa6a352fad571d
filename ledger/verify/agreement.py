"""Whether the documents of a receipt speak of the same job, and the record keeps to them."""

from ledger.authorization import NO_DELEGATION, RequestAuthorization
from ledger.commitment import answer_digest, request_commit, request_digest, response_commit
from ledger.encoding import Domain, uuid_bytes32
from ledger.quote import Quote
from ledger.receipt import Opening
from ledger.statement import SupplierStatement
from ledger.usage import NO_RECORD, Outcome, UsageRecord
from ledger.verify.documents import utf8
from ledger.verify.errors import Refused

NO_STATEMENT = bytes(32)
"""`supplierStatement` of a record that no agent's word was settled for."""


def check_record(record: UsageRecord) -> None:
    """Recompute the record's figures and its place in the wallet's history.

    Raises:
        RecordInconsistent: the figures disagree.
        Refused: its number, link or times do.
    """
    record.check()
    if record.payer_seq < 1:
        raise Refused("payerSeq is 0; a wallet's first record is 1")
    if (record.payer_seq == 1) != (record.prev_payer_record == NO_RECORD):
        raise Refused("payerSeq and prevPayerRecord disagree: only a first record follows none")
    if record.record_id in {record.prev_payer_record, record.corrects_record}:
        raise Refused("it follows or corrects itself")
    if record.include_by < record.completed_at:
        raise Refused("includeBy is before completedAt")


def check_quote(record: UsageRecord, quote: Quote, authorizations: Domain) -> None:
    """Check that the record is of this quote, at its rates and within its bounds.

    Raises:
        Refused: the first member that differs.
    """
    _same("quoteDigest", record.quote_digest, quote.digest(authorizations))
    _same("payer", record.payer, quote.payer)
    _same("modelRevision", record.model_revision, quote.model_revision)
    _same("inputRateNano", record.input_rate_nano, quote.input_rate_nano)
    _same("outputRateNano", record.output_rate_nano, quote.output_rate_nano)
    _same("perRequestNano", record.per_request_nano, quote.per_request_nano)
    _same("asset", record.asset, quote.token)
    _within("inputTokens", record.input_tokens, quote.input_tokens)
    _within("outputTokens", record.output_tokens, quote.max_output_tokens)
    _within("heldNano", record.held_nano, quote.max_charge_nano)
    committed = request_commit(record.salt, quote.request_digest)
    _same("requestCommit", record.request_commit, committed)


def check_acceptance(
    record: UsageRecord, quote: Quote, acceptance: RequestAuthorization, authorizations: Domain
) -> None:
    """Check that the wallet accepted this quote, and that the charge is within what it signed.

    Raises:
        Refused: the first member that differs, or a charge above the maximum.
    """
    _same("acceptDigest", record.accept_digest, acceptance.digest(authorizations))
    _same("quoteDigest", acceptance.quote_digest, quote.digest(authorizations))
    _same("requestDigest", acceptance.request_digest, quote.request_digest)
    _same("payer", acceptance.payer, record.payer)
    _same("model", acceptance.model, quote.model)
    _same("maxOutputTokens", acceptance.max_output_tokens, quote.max_output_tokens)
    _same("token", acceptance.token, quote.token)
    _same("maxChargeNano", acceptance.max_charge_nano, quote.max_charge_nano)
    if acceptance.delegation != NO_DELEGATION:
        raise Refused("accepted under a delegation, which this version cannot check")
    _within("chargeNano", record.charge_nano, acceptance.max_charge_nano)
    _within("heldNano", record.held_nano, acceptance.max_charge_nano)


def check_statement(record: UsageRecord, quote: Quote, statement: SupplierStatement | None) -> None:
    """Check that the agent's statement is the one the record names, of this job and its tokens.

    Raises:
        Refused: it is not.
    """
    if statement is None:
        if record.supplier_statement != NO_STATEMENT:
            raise Refused("the record names a supplier's statement that the receipt leaves out")
        return
    _same("supplierStatement", record.supplier_statement, statement.digest())
    # what a correction corrects may be a correction itself: the request's digest tells whose it is
    corrects = record.outcome is Outcome.CORRECTION
    if not corrects and uuid_bytes32(statement.job) != record.record_id:
        raise Refused("a statement of another job")
    _same("request_digest", statement.request_digest, quote.request_digest)
    committed = response_commit(record.salt, statement.response_digest)
    _same("responseCommit", record.response_commit, committed)
    _within("inputTokens", record.input_tokens, statement.input_tokens)
    _within("outputTokens", record.output_tokens, statement.output_tokens)


def check_opening(opening: Opening, record: UsageRecord, quote: Quote) -> None:
    """Check that the texts are those that quote and record commit to.

    Raises:
        Refused: they are others.
    """
    request = request_digest(opening.request_salt, utf8(opening.request))
    _same("the request's digest", request, quote.request_digest)
    if opening.content is not None:
        finish_reason = opening.finish_reason or ""
        utf8(opening.content + finish_reason)
        answered = answer_digest(opening.content, finish_reason)
        committed = response_commit(record.salt, answered)
        _same("the answer's commitment", committed, record.response_commit)


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise Refused(f"{what} is {_shown(found)}, not {_shown(expected)}")


def _within(what: str, found: int, limit: int) -> None:
    if found > limit:
        raise Refused(f"{what} is {found}, above {limit}")


def _shown(value: object) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else ascii(value)[:100]
