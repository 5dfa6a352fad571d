"""What a gateway, wallet or agent could sign that it should not: signatures hold, rules do not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from ledger.commitment import response_commit
from ledger.encoding import parse_address
from ledger.hashing import sha256
from ledger.log_entry import BatchHeader
from ledger.money import Nano
from ledger.quote import Quote
from ledger.usage import NO_RECORD, Outcome, UsageRecord
from ledger.verify.verdict import Step
from tests.receipt_world import AUTHORIZATIONS, MAX_CHARGE, Edits, World
from tests.unit.ledger.verify.checking import policy as policy_of
from tests.unit.ledger.verify.checking import refusal, verdict_on

OTHER_TOKEN = parse_address("0x1111111111111111111111111111111111111111")


@dataclass(frozen=True, slots=True)
class Cheat:
    """What was changed before signing, and the step that refuses it."""

    name: str
    edits: Edits
    step: Step
    word: str


def on_record(
    name: str, step: Step, word: str, change: Callable[[UsageRecord], UsageRecord]
) -> Cheat:
    return Cheat(name, Edits(record=change), step, word)


def charged(record: UsageRecord, extra: int) -> UsageRecord:
    charge, held = record.charge_nano + extra, record.held_nano
    return replace(record, charge_nano=Nano(charge), released_nano=Nano(held - charge))


def above_maximum(record: UsageRecord) -> UsageRecord:
    released = Nano(record.released_nano + 1)
    return replace(record, held_nano=Nano(MAX_CHARGE + 1), released_nano=released)


CHEATS = [
    on_record("charged one nano more", Step.ARITHMETIC, "tokens x rates", lambda r: charged(r, 1)),
    on_record("charged one nano less", Step.ARITHMETIC, "tokens x rates", lambda r: charged(r, -1)),
    on_record(
        "released one nano less",
        Step.ARITHMETIC,
        "held = charge",
        lambda r: replace(r, released_nano=Nano(r.released_nano - 1)),
    ),
    on_record(
        "charge above hold",
        Step.ARITHMETIC,
        "within hold",
        lambda r: replace(r, charge_nano=Nano(r.held_nano + 1)),
    ),
    on_record(
        "more cached than input",
        Step.ARITHMETIC,
        "cached",
        lambda r: replace(r, cached_input_tokens=r.input_tokens + 1),
    ),
    on_record(
        "more reasoning than output",
        Step.ARITHMETIC,
        "reasoning",
        lambda r: replace(r, reasoning_tokens=r.output_tokens + 1),
    ),
    on_record(
        "a failed job charged",
        Step.ARITHMETIC,
        "failed job is free",
        lambda r: replace(r, outcome=Outcome.FAILED),
    ),
    on_record(
        "a correction of nothing",
        Step.ARITHMETIC,
        "only a correction",
        lambda r: replace(r, outcome=Outcome.CORRECTION),
    ),
    on_record("numbered 0", Step.ARITHMETIC, "payerSeq", lambda r: replace(r, payer_seq=0)),
    on_record(
        "a second record that follows none",
        Step.ARITHMETIC,
        "payerSeq",
        lambda r: replace(r, payer_seq=2),
    ),
    on_record(
        "a first record that follows one",
        Step.ARITHMETIC,
        "payerSeq",
        lambda r: replace(r, prev_payer_record=sha256(b"x")),
    ),
    on_record(
        "a record that follows itself",
        Step.ARITHMETIC,
        "itself",
        lambda r: replace(r, payer_seq=2, prev_payer_record=r.record_id),
    ),
    on_record(
        "due before it was completed",
        Step.ARITHMETIC,
        "includeBy",
        lambda r: replace(r, include_by=r.completed_at - 1),
    ),
    on_record("held above the maximum", Step.QUOTE, "heldNano", above_maximum),
    on_record(
        "another model",
        Step.QUOTE,
        "modelRevision",
        lambda r: replace(r, model_revision=sha256(b"other weights")),
    ),
    on_record("another token", Step.QUOTE, "asset", lambda r: replace(r, asset=OTHER_TOKEN)),
    on_record(
        "a dearer rate that rounds to the same charge",
        Step.QUOTE,
        "inputRateNano",
        lambda r: replace(r, input_rate_nano=Nano(r.input_rate_nano + 1)),
    ),
    on_record(
        "another quote",
        Step.QUOTE,
        "quoteDigest",
        lambda r: replace(r, quote_digest=sha256(b"other quote")),
    ),
    on_record(
        "another acceptance",
        Step.ACCEPTANCE,
        "acceptDigest",
        lambda r: replace(r, accept_digest=sha256(b"other acceptance")),
    ),
    on_record(
        "another request",
        Step.QUOTE,
        "requestCommit",
        lambda r: replace(r, request_commit=sha256(b"other request")),
    ),
    on_record(
        "another answer",
        Step.STATEMENT,
        "responseCommit",
        lambda r: replace(r, response_commit=response_commit(r.salt, sha256(b"other"))),
    ),
    on_record(
        "no statement named",
        Step.STATEMENT,
        "supplierStatement",
        lambda r: replace(r, supplier_statement=bytes(32)),
    ),
    Cheat(
        "quote of another wallet",
        Edits(quote=lambda q: replace(q, payer=OTHER_TOKEN)),
        Step.QUOTE,
        "payer",
    ),
    Cheat(
        "quote for fewer output tokens",
        Edits(quote=lambda q: replace(q, max_output_tokens=20)),
        Step.QUOTE,
        "outputTokens",
    ),
    Cheat(
        "quote for fewer input tokens",
        Edits(quote=lambda q: replace(q, input_tokens=47)),
        Step.QUOTE,
        "inputTokens",
    ),
    Cheat("quote by another key", Edits(quoted_by="stranger"), Step.QUOTE_SIGNATURE, "never"),
    Cheat(
        "record by another key",
        Edits(recorded_by="stranger"),
        Step.RECORD_SIGNATURE,
        "no record key",
    ),
    Cheat(
        "accepted by another wallet",
        Edits(accepted_by="mallory"),
        Step.ACCEPTANCE_SIGNATURE,
        "payer",
    ),
    Cheat(
        "accepted at a lower maximum",
        Edits(authorization=lambda a: replace(a, max_charge_nano=Nano(7_000))),
        Step.ACCEPTANCE,
        "maxChargeNano",
    ),
    Cheat(
        "accepted another quote",
        Edits(authorization=lambda a: replace(a, quote_digest=sha256(b"other"))),
        Step.ACCEPTANCE,
        "quoteDigest",
    ),
    Cheat(
        "accepted another request",
        Edits(authorization=lambda a: replace(a, request_digest=sha256(b"other"))),
        Step.ACCEPTANCE,
        "requestDigest",
    ),
    Cheat(
        "accepted another model",
        Edits(authorization=lambda a: replace(a, model="other")),
        Step.ACCEPTANCE,
        "model",
    ),
    Cheat(
        "accepted another token",
        Edits(authorization=lambda a: replace(a, token=OTHER_TOKEN)),
        Step.ACCEPTANCE,
        "token",
    ),
    Cheat(
        "accepted fewer output tokens",
        Edits(authorization=lambda a: replace(a, max_output_tokens=1)),
        Step.ACCEPTANCE,
        "maxOutputTokens",
    ),
    Cheat(
        "accepted by another payer",
        Edits(authorization=lambda a: replace(a, payer=OTHER_TOKEN)),
        Step.ACCEPTANCE,
        "payer",
    ),
    Cheat(
        "accepted under a delegation",
        Edits(authorization=lambda a: replace(a, delegation=sha256(b"delegation"))),
        Step.ACCEPTANCE,
        "delegation",
    ),
    Cheat(
        "statement of another job",
        Edits(statement=lambda s: replace(s, job=UUID(int=7))),
        Step.STATEMENT,
        "another job",
    ),
    Cheat(
        "statement of another request",
        Edits(statement=lambda s: replace(s, request_digest=sha256(b"other"))),
        Step.STATEMENT,
        "request_digest",
    ),
    Cheat(
        "statement of another answer",
        Edits(statement=lambda s: replace(s, response_digest=sha256(b"other"))),
        Step.STATEMENT,
        "responseCommit",
    ),
    Cheat(
        "more input billed than the agent saw",
        Edits(statement=lambda s: replace(s, input_tokens=47)),
        Step.STATEMENT,
        "inputTokens",
    ),
]


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_what_should_not_have_been_signed_is_refused(cheat: Cheat) -> None:
    cheating = World()
    job = cheating.job("alice", edits=cheat.edits)
    cheating.seal()
    assert refusal(verdict_on(cheating.receipt(job)), cheat.word) == cheat.step


def test_more_output_billed_than_the_agent_counted_is_refused() -> None:
    cheating = World()

    def more(record: UsageRecord) -> UsageRecord:
        return charged(replace(record, output_tokens=record.output_tokens + 1), 180)

    job = cheating.job("alice", edits=Edits(record=more))
    cheating.seal()
    assert refusal(verdict_on(cheating.receipt(job)), "outputTokens") == Step.STATEMENT


def at_maximum(maximum: int) -> World:
    """A world whose one job cost 7,660 nano under a quote of at most this."""
    small = World()

    def record(made: UsageRecord) -> UsageRecord:
        held = Nano(max(maximum, 7_660))
        return replace(made, held_nano=held, released_nano=Nano(held - 7_660))

    def quote(made: Quote) -> Quote:
        return replace(made, max_charge_nano=Nano(maximum))

    small.job("alice", edits=Edits(quote=quote, record=record))
    small.seal()
    return small


def test_a_charge_at_the_maximum_is_fine_and_above_it_is_refused() -> None:
    fine, dear = at_maximum(7_660), at_maximum(7_659)
    assert refusal(verdict_on(fine.receipt(fine.jobs[0]))) is None
    assert refusal(verdict_on(dear.receipt(dear.jobs[0])), "above 7659") == Step.QUOTE


HEADERS = {
    "charge above the batch's sum": lambda h: replace(
        h, sums=(replace(h.sums[0], charge=Nano(1), held=Nano(h.sums[0].released + 1)),)
    ),
    "another token's sums": lambda h: replace(h, sums=(replace(h.sums[0], asset=OTHER_TOKEN),)),
    "completed before the first": lambda h: replace(h, first_at=h.last_at),
    "completed after the last": lambda h: replace(h, last_at=h.first_at - 1, first_at=0),
    "another key": lambda h: replace(h, key_id="00000000"),
    "a number beyond the log": lambda h: replace(h, number=1),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_leaves_no_room_for_the_record_is_refused(name: str) -> None:
    cheating = World()
    job = cheating.job("alice")
    cheating.job("bob")
    change: Callable[[BatchHeader], BatchHeader] = HEADERS[name]
    cheating.seal(change)
    assert refusal(verdict_on(cheating.receipt(job))) == Step.HEADER


def test_a_batch_of_one_has_the_sums_of_its_record() -> None:
    cheating = World()
    job = cheating.job("alice")
    cheating.seal(
        lambda h: replace(
            h,
            sums=(
                replace(
                    h.sums[0],
                    charge=Nano(h.sums[0].charge + 1),
                    held=Nano(h.sums[0].held + 1),
                ),
            ),
        )
    )
    assert refusal(verdict_on(cheating.receipt(job)), "only record") == Step.HEADER


def test_a_correction_above_the_original_charge_is_refused() -> None:
    cheating = World()
    original = cheating.job("alice")
    same = cheating.correct(original, charge=original.record.charge_nano)
    cheating.seal()
    bad = cheating.correct(
        original,
        charge=0,
        edits=Edits(record=lambda r: replace(r, charge_nano=Nano(r.held_nano + 1))),
    )
    cheating.seal()
    assert refusal(verdict_on(cheating.receipt(same))) is None
    assert refusal(verdict_on(cheating.receipt(bad)), "within hold") == Step.ARITHMETIC


def test_a_correction_names_what_it_corrects() -> None:
    cheating = World()
    original = cheating.job("alice")
    bad = cheating.correct(
        original, charge=0, edits=Edits(record=lambda r: replace(r, corrects_record=NO_RECORD))
    )
    cheating.seal()
    assert refusal(verdict_on(cheating.receipt(bad)), "only a correction") == Step.ARITHMETIC


def test_signatures_of_another_chain_or_contract_count_for_nothing() -> None:
    there = World()
    job = there.job("alice")
    there.seal()
    for word, step in (
        ("31337", Step.RECORD_SIGNATURE),
        ("0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512", Step.RECORD_SIGNATURE),
        (AUTHORIZATIONS.message()["verifyingContract"], Step.QUOTE),
    ):
        new = "31338" if word == "31337" else OTHER_TOKEN
        text = there.policy().replace(str(word), new)
        assert refusal(verdict_on(there.receipt(job), policy_of(text))) == step
