"""What an agent's DONE is worth: checked against the stream, our own counts and its signature.

Pure. Rules: architecture.md, "Integrity of metering"; serving.md, "Rules for the agent", 1.
"""

from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.dispatch.errors import AttemptFault
from app.dispatch.work import ServedRelease, Work
from ledger.errors import LedgerError
from ledger.hashing import sha256
from ledger.money import Nano
from ledger.statement import STATEMENT_TAG, SupplierStatement
from pricing.charge import TokenUsage, charge_for
from supplier_agent.protocol import Answer, Done

RECOUNT_SLACK_TOKENS = 3
RECOUNT_SLACK_PERCENT = 2
MAX_CHARACTERS_PER_TOKEN = 128
"""No approved vocabulary has a longer token, and counting 2 MB of text takes 1 to 2 s."""
LONGEST_FINISH = 1
"""Engines count the end-of-turn token that a stop takes; it is no part of the text."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The agent's signed word: the statement's canonical JSON and its 64-byte signature."""

    statement: bytes
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """A checked result, ready to settle. `flagged`: the text does not bear out the count."""

    job_id: UUID
    answer: Answer
    usage: TokenUsage
    charge: Nano
    flagged: bool
    response_digest: bytes
    evidence: Evidence
    statement_digest: bytes
    cap_ms: int


def meter(
    work: Work, done: Done, answer: Answer, *, release: ServedRelease, key: Ed25519PublicKey
) -> Metered:
    """Return what the result costs and what is stored of it.

    Raises:
        AttemptFault: anything the agent said differs from the stream, the job, our own count of
            the input, the ceiling, or what its key signed.
    """
    digest = answer.digest
    check_claims(work, done, answer, digest=digest, release=release)
    signed = check_statement(work, done, digest=digest, key=key)
    recount = recounted(answer, release)
    slack = max(RECOUNT_SLACK_TOKENS, recount * RECOUNT_SLACK_PERCENT // 100)
    usage = TokenUsage(
        input_tokens=work.accepted.input_tokens,
        cached_input_tokens=min(done.usage.cached_input_tokens, work.accepted.input_tokens),
        output_tokens=min(done.usage.output_tokens, recount + slack),
        reasoning_tokens=0,
    )
    return Metered(
        job_id=work.accepted.job_id,
        answer=answer,
        usage=usage,
        charge=charge_for(usage, work.accepted.rates, work.accepted.max_charge),
        flagged=abs(done.usage.output_tokens - recount) > slack,
        response_digest=digest,
        evidence=evidence_of(done),
        statement_digest=sha256(signed),
        cap_ms=work.speeds.at_least(release.priced).accrual_cap_ms(
            input_tokens=usage.input_tokens, output_tokens=usage.output_tokens
        ),
    )


def recounted(answer: Answer, release: ServedRelease) -> int:
    """Return our own count of an answer's tokens; off by one at most, where engines are honest."""
    return release.count_text(answer.content) + (
        LONGEST_FINISH if answer.finish_reason == "stop" else 0
    )


def check_claims(
    work: Work, done: Done, answer: Answer, *, digest: bytes, release: ServedRelease
) -> None:
    """Return if DONE repeats what the stream said and what we know.

    Raises:
        AttemptFault: naming the first claim that does not hold.
    """
    accepted, usage = work.accepted, done.usage
    for reason, claimed, known in (
        ("finish", done.finish_reason, answer.finish_reason),
        ("usage", usage, answer.usage),
        ("response-digest", done.response_digest, digest.hex()),
        ("fingerprint", done.release_fingerprint, release.fingerprint),
        ("input-count", usage.input_tokens, accepted.input_tokens),
    ):
        if claimed != known:
            raise AttemptFault(reason, f"{claimed!r:.80} where {known!r:.80} holds")
    if usage.output_tokens > accepted.max_output_tokens:
        raise AttemptFault(
            "over-ceiling", f"{usage.output_tokens} of {accepted.max_output_tokens} output tokens"
        )
    if len(answer.content) > accepted.max_output_tokens * MAX_CHARACTERS_PER_TOKEN:
        raise AttemptFault(
            "over-ceiling",
            f"{len(answer.content)} characters for {accepted.max_output_tokens} tokens",
        )


def check_statement(work: Work, done: Done, *, digest: bytes, key: Ed25519PublicKey) -> bytes:
    """Return the bytes the agent signed: the statement that DONE's own claims make.

    Raises:
        AttemptFault: DONE carries another statement, or another key signed it.
    """
    statement = SupplierStatement(
        lease=work.accepted.lease_id,
        job=work.accepted.job_id,
        request_digest=work.accepted.request_digest,
        response_digest=digest,
        input_tokens=done.usage.input_tokens,
        cached_input_tokens=done.usage.cached_input_tokens,
        output_tokens=done.usage.output_tokens,
        finish=done.finish_reason,
        release_fingerprint=done.release_fingerprint,
    )
    try:
        signed = statement.signed_bytes()
    except LedgerError as error:
        raise AttemptFault("statement", str(error)) from error
    if STATEMENT_TAG + done.statement.encode(errors="replace") != signed:
        raise AttemptFault("statement", "says other than DONE does")
    try:
        key.verify(bytes.fromhex(done.statement_signature), signed)
    except InvalidSignature:
        raise AttemptFault("statement-signature", "not this agent's key") from None
    return signed


def evidence_of(done: Done) -> Evidence:
    """Return the agent's signed word as it came, true or not."""
    return Evidence(
        statement=done.statement.encode(errors="replace"),
        signature=bytes.fromhex(done.statement_signature),
    )
