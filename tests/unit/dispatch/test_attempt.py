from typing import get_args

import pytest

from app.dispatch.attempt import (
    FAILS,
    NOT_ACCEPTED,
    REQUEST_REFUSED,
    STALLED,
    Attempt,
    AttemptLimits,
    Stage,
    failed,
    give_back,
)
from app.dispatch.errors import AttemptFault
from supplier_agent.protocol import DataFrame, Fail, FailKind
from tests.unit.dispatch.samples import answer, done, work

LEASE = "lease_0199f3a0-0000-7000-8000-000000000001"
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'


def attempt(*, resumed: bool = False) -> Attempt:
    return Attempt(work(), now=100.0, limits=AttemptLimits(), resumed=resumed)


def frame(seq: int, payload: bytes = TOKEN) -> DataFrame:
    return DataFrame(1, seq, payload)


def test_accept_counts_once() -> None:
    one = attempt()
    assert one.on_accept(now=100.5)
    assert not one.on_accept(now=100.6)
    assert one.stage is Stage.ACCEPTED


def test_work_not_accepted_in_two_seconds_is_given_up() -> None:
    one = attempt()
    assert one.overdue(now=102.0) is None
    assert one.overdue(now=102.1) is NOT_ACCEPTED


def test_an_accepted_lease_may_be_silent_for_the_prompts_time_and_ten_seconds() -> None:
    one = attempt()
    one.on_accept(now=101.0)
    assert one.overdue(now=111.05) is None  # 2 x 12 tokens at 300 a second
    assert one.overdue(now=111.1) is STALLED


def test_text_is_progress_and_pings_are_not() -> None:
    one = attempt()
    one.on_accept(now=101.0)
    assert one.on_data(frame(0), now=105.0) == "hi"
    assert one.on_data(frame(1, b": ping\n\n"), now=114.0) == ""
    assert one.overdue(now=115.1) is STALLED


def test_a_decided_attempt_is_never_overdue() -> None:
    one = attempt()
    one.stage = Stage.DECIDED
    assert one.overdue(now=1e9) is None


def test_a_resumed_attempt_needs_no_accept() -> None:
    assert attempt(resumed=True).stage is Stage.ACCEPTED


@pytest.mark.parametrize("seq", [1, 2**32 - 1])
def test_a_frame_out_of_order_is_a_fault(seq: int) -> None:
    with pytest.raises(AttemptFault) as fault:
        attempt().on_data(frame(seq), now=101.0)
    assert fault.value.reason == "out-of-order"


def test_garbage_in_the_stream_is_a_fault() -> None:
    with pytest.raises(AttemptFault) as fault:
        attempt().on_data(frame(0, b"data: {\xff\xfe not json\n\n"), now=101.0)
    assert fault.value.reason == "bad-event"


def test_success_needs_finish_reason_usage_and_done() -> None:
    one, given = attempt(), answer()
    one.on_data(frame(0), now=101.0)
    with pytest.raises(AttemptFault) as fault:
        one.answer(done(given, one.work, stream_bytes=len(TOKEN)))
    assert fault.value.reason == "no-finish"


def test_an_answer_without_usage_is_unmetered() -> None:
    one, given = attempt(), answer()
    ending = (
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    one.on_data(frame(0, TOKEN + ending), now=101.0)
    with pytest.raises(AttemptFault) as fault:
        one.answer(done(given, one.work, stream_bytes=len(TOKEN + ending)))
    assert fault.value.reason == "unmetered"


def test_a_lost_frame_is_noticed() -> None:
    one, given = attempt(), answer()
    one.on_data(frame(0), now=101.0)
    with pytest.raises(AttemptFault) as fault:
        one.answer(done(given, one.work, stream_bytes=len(TOKEN) + 1))
    assert fault.value.reason == "frames-lost"


def test_results_count_until_two_seconds_after_the_deadline() -> None:
    one = attempt()
    assert not one.expired(now=162.0)
    assert one.expired(now=162.1)


def test_every_fail_kind_has_a_meaning_and_4xx_never_counts() -> None:
    assert set(FAILS) == set(get_args(FailKind))
    blameless = {kind for kind, step in FAILS.items() if not step.blame}
    assert blameless == {"bad-request", "engine-busy", "stopping", "lease-ended"}
    free = {kind for kind, step in FAILS.items() if not step.fault}
    assert free == {"engine-busy", "stopping"}


def test_a_slot_stays_taken_until_the_stream_has_ended() -> None:
    fault = AttemptFault("too-large")
    assert give_back(fault, slot_free=False).lease_state == "ending"
    assert give_back(fault, slot_free=True).lease_state == "lost"


@pytest.mark.parametrize(("kind", "retryable"), [("bad-request", True), ("engine-error", False)])
def test_only_a_final_4xx_ends_the_job_at_once(kind: FailKind, *, retryable: bool) -> None:
    final = failed(Fail(lease=LEASE, kind="bad-request", retryable=False), work())
    assert (final.final, final.fault, final.blame) == (REQUEST_REFUSED, False, False)
    other = failed(Fail(lease=LEASE, kind=kind, retryable=retryable), work())
    assert other.final is None


def test_time_over_is_paid_and_no_fault_where_the_lease_was_too_short_for_the_work() -> None:
    ended = Fail(lease=LEASE, kind="lease-ended", retryable=False)
    full = failed(ended, work())
    assert (full.fault, full.paid) == (True, False)
    short = failed(ended, work(max_output=20_000))
    assert (short.fault, short.paid) == (False, True)
