from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dispatch.errors import AttemptFault
from app.dispatch.metering import MAX_CHARACTERS_PER_TOKEN, meter
from app.dispatch.work import SlotSpeeds
from ledger.statement import SupplierStatement
from supplier_agent.protocol import Answer, Usage
from tests.unit.dispatch.samples import PUBLIC, RELEASE, answer, done, work


def test_an_honest_result_is_charged_as_reported() -> None:
    lease, given_answer = work(), answer()
    metered = meter(lease, done(given_answer, lease), given_answer, release=RELEASE, key=PUBLIC)
    assert metered.usage.output_tokens == 11
    assert metered.usage.cached_input_tokens == 4
    assert metered.charge == 1_000 + 12 * 2_000 + 11 * 9_000
    assert not metered.flagged
    statement = SupplierStatement(
        lease=lease.accepted.lease_id,
        job=lease.accepted.job_id,
        request_digest=lease.accepted.request_digest,
        response_digest=given_answer.digest,
        input_tokens=12,
        cached_input_tokens=4,
        output_tokens=11,
        finish="stop",
        release_fingerprint=RELEASE.fingerprint,
    )
    assert metered.statement_digest == statement.digest()
    assert metered.cap_ms == 885  # 1.5 x (12 / 300 + 11 / 20) s


def test_a_supplier_that_calls_itself_slow_is_paid_no_more_slot_time_than_prices_cover() -> None:
    """At 1 token a second a hundred tokens would have been paid for 150 s."""
    slow, given_answer = replace(work(), speeds=SlotSpeeds(1, 1)), answer()
    priced = replace(RELEASE, priced=SlotSpeeds(300, 20))

    metered = meter(slow, done(given_answer, slow), given_answer, release=priced, key=PUBLIC)

    assert metered.cap_ms == 885  # as if it were as fast as the price says


def test_a_supplier_that_claims_to_be_slow_is_paid_for_no_more_slot_time() -> None:
    caps = []
    for claimed in (SlotSpeeds(300, 20), SlotSpeeds(75, 5), SlotSpeeds(600, 40)):
        lease, given_answer = work(claimed=claimed), answer()
        told = done(given_answer, lease)
        caps.append(meter(lease, told, given_answer, release=RELEASE, key=PUBLIC).cap_ms)
    assert caps == [885, 885, 443]


@given(
    words=st.integers(0, 60),
    reported=st.integers(0, 64),
    finish=st.sampled_from(["stop", "length"]),
)
def test_the_charge_never_exceeds_our_own_count_by_more_than_the_slack(
    words: int, reported: int, finish: str
) -> None:
    lease = work()
    given_answer = answer(words=words, output_tokens=reported, finish=finish)
    metered = meter(lease, done(given_answer, lease), given_answer, release=RELEASE, key=PUBLIC)
    recount = words + (finish == "stop")
    assert metered.usage.output_tokens <= min(reported, recount + max(3, recount * 2 // 100))
    assert metered.flagged == (abs(reported - recount) > max(3, recount * 2 // 100))
    assert 0 <= metered.charge <= lease.accepted.max_charge


@pytest.mark.parametrize(
    ("reason", "lies"),
    [
        ("finish", {"finish_reason": "length"}),
        ("usage", {"usage": Usage(input_tokens=12, cached_input_tokens=4, output_tokens=3)}),
        ("response-digest", {"response_digest": "cd" * 32}),
        ("fingerprint", {"release_fingerprint": "cd" * 32}),
        ("statement", {"statement": "{}"}),
        ("statement", {"statement": "\ud7ff\U0001f600"}),
        ("statement-signature", {"statement_signature": "11" * 64}),
    ],
)
def test_a_done_that_differs_from_the_stream_or_its_signature_is_a_fault(
    reason: str, lies: dict[str, object]
) -> None:
    lease, given_answer = work(), answer()
    told = done(given_answer, lease, **lies)
    with pytest.raises(AttemptFault) as fault:
        meter(lease, told, given_answer, release=RELEASE, key=PUBLIC)
    assert (fault.value.reason, fault.value.blame) == (reason, True)


def test_another_input_count_fails_the_attempt() -> None:
    lease, given_answer = work(input_tokens=13), answer()
    with pytest.raises(AttemptFault) as fault:
        meter(lease, done(given_answer, lease), given_answer, release=RELEASE, key=PUBLIC)
    assert fault.value.reason == "input-count"


def test_output_over_the_ceiling_fails_the_attempt() -> None:
    lease, given_answer = work(max_output=5), answer(words=3, output_tokens=6)
    with pytest.raises(AttemptFault) as fault:
        meter(lease, done(given_answer, lease), given_answer, release=RELEASE, key=PUBLIC)
    assert fault.value.reason == "over-ceiling"


def test_a_statement_about_another_lease_is_a_fault() -> None:
    lease, given_answer = work(), answer()
    other = work(input_tokens=12, max_output=32)
    told = done(given_answer, lease)
    replayed = done(given_answer, other, statement=told.statement[:-2] + '1"}')
    with pytest.raises(AttemptFault) as fault:
        meter(lease, replayed, given_answer, release=RELEASE, key=PUBLIC)
    assert fault.value.reason == "statement"


def test_more_text_than_the_ceiling_can_hold_is_a_fault_before_it_is_counted() -> None:
    lease = work()
    usage = Usage(input_tokens=12, cached_input_tokens=4, output_tokens=64)
    given_answer = Answer("a" * (64 * MAX_CHARACTERS_PER_TOKEN + 1), "length", usage)
    uncounted = replace(RELEASE, count_text=lambda _text: pytest.fail("counted"))

    with pytest.raises(AttemptFault) as fault:
        meter(lease, done(given_answer, lease), given_answer, release=uncounted, key=PUBLIC)

    assert (fault.value.reason, fault.value.blame) == ("over-ceiling", True)
