from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ledger.errors import RecordInconsistent
from ledger.money import RATE_UNIT, Nano
from ledger.usage import NO_RECORD, Outcome, UsageRecord
from tests.vectors.eip712_messages import CORRECTION, FAILED, JOB, RECORD

nanos = st.integers(0, 2**63 - 1).map(Nano)
tokens = st.integers(0, 10**12)


def billed(record: UsageRecord, charge: int) -> UsageRecord:
    return replace(record, charge_nano=Nano(charge), released_nano=Nano(record.held_nano - charge))


@given(st.integers(0, 10**5), st.integers(0, 10**5), nanos, nanos, nanos, nanos)
def test_a_metered_record_adds_up_and_no_other_charge_does(
    inputs: int, outputs: int, input_rate: Nano, output_rate: Nano, per_request: Nano, held: Nano
) -> None:
    record = replace(
        RECORD,
        input_tokens=inputs,
        cached_input_tokens=inputs // 2,
        output_tokens=outputs,
        input_rate_nano=input_rate,
        output_rate_nano=output_rate,
        per_request_nano=per_request,
        held_nano=held,
    )
    charge = record.metered_charge()
    billed(record, charge).check()
    assert 0 <= charge <= held
    exact = per_request * RATE_UNIT + inputs * input_rate + outputs * output_rate
    assert charge == held or charge * RATE_UNIT <= exact < (charge + 1) * RATE_UNIT
    for wrong in (charge - 1, charge + 1):
        if 0 <= wrong <= held:
            with pytest.raises(RecordInconsistent):
                billed(record, wrong).check()


@given(tokens, tokens, tokens, tokens)
def test_cached_and_reasoning_tokens_are_subsets_and_never_change_the_charge(
    inputs: int, cached: int, outputs: int, reasoning: int
) -> None:
    assume(cached <= inputs and reasoning <= outputs)
    plain = replace(
        RECORD,
        input_tokens=inputs,
        cached_input_tokens=0,
        output_tokens=outputs,
        reasoning_tokens=0,
        held_nano=Nano(2**63 - 1),
    )
    parts = replace(plain, cached_input_tokens=cached, reasoning_tokens=reasoning)
    assert parts.metered_charge() == plain.metered_charge()
    billed(parts, parts.metered_charge()).check()
    with pytest.raises(RecordInconsistent, match="cached within input"):
        billed(replace(parts, cached_input_tokens=inputs + 1), 0).check()
    with pytest.raises(RecordInconsistent, match="reasoning within output"):
        billed(replace(parts, reasoning_tokens=outputs + 1), 0).check()


@pytest.mark.parametrize("record", [RECORD, FAILED, CORRECTION])
def test_a_true_record_passes(record: UsageRecord) -> None:
    record.check()


@pytest.mark.parametrize("charge", [0, RECORD.charge_nano])
def test_a_cancelled_job_pays_what_was_metered_or_nothing(charge: int) -> None:
    cancelled = replace(RECORD, outcome=Outcome.CANCELLED)
    billed(cancelled, charge).check()
    with pytest.raises(RecordInconsistent, match="tokens x rates"):
        billed(cancelled, charge + 1).check()


WRONG: list[tuple[str, Callable[[], UsageRecord]]] = [
    (
        "charge within hold",
        lambda: replace(RECORD, charge_nano=Nano(15_401), released_nano=Nano(0)),
    ),
    ("held = charge", lambda: replace(RECORD, released_nano=Nano(7_741))),
    ("a failed job is free", lambda: billed(FAILED, 1)),
    ("only a correction", lambda: replace(RECORD, corrects_record=JOB)),
    ("only a correction", lambda: replace(CORRECTION, corrects_record=NO_RECORD)),
    ("tokens x rates", lambda: billed(RECORD, 0)),
]


@pytest.mark.parametrize(("rule", "make"), WRONG)
def test_a_record_that_breaks_a_rule_is_refused_by_its_name(
    rule: str, make: Callable[[], UsageRecord]
) -> None:
    with pytest.raises(RecordInconsistent, match=rule) as refusal:
        make().check()
    assert refusal.value.code == "record-inconsistent"
    assert refusal.value.expected != refusal.value.found
