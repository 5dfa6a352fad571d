"""A usage record counts only when everything in it was recomputed."""

from dataclasses import replace
from typing import Any

import pytest

from app.client.errors import RecordRefused
from app.client.records import verify_record, verify_stored
from ledger.money import Nano
from ledger.signing import SigningKey
from tests.unit.client.gateway import GATEWAY_KEY, PAYER, TERMS, checked, job_with, record_for


def test_an_honest_record_is_returned() -> None:
    accepted = checked()
    record = record_for(accepted)
    assert verify_record(job_with(record), accepted, TERMS) == record


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("arithmetic", {"charge_nano": Nano(6_241), "released_nano": Nano(2_199)}),
        ("arithmetic", {"released_nano": Nano(2_201)}),
        ("payer", {"payer": "0x" + "99" * 20}),
        ("quoteDigest", {"quote_digest": b"\x01" * 32}),
        ("acceptDigest", {"accept_digest": b"\x01" * 32}),
        ("modelRevision", {"model_revision": b"\x01" * 32}),
        ("requestCommit", {"request_commit": b"\x01" * 32}),
        ("responseCommit", {"response_commit": b"\x01" * 32}),
        ("heldNano", {"held_nano": Nano(9_440), "released_nano": Nano(3_200)}),
        ("inputRateNano", {"input_rate_nano": Nano(20_000_001)}),
    ],
)
def test_a_signed_record_that_contradicts_quote_or_itself_is_refused(
    rule: str, changed: dict[str, Any]
) -> None:
    accepted = checked()
    with pytest.raises(RecordRefused) as refused:
        verify_record(job_with(record_for(accepted, **changed)), accepted, TERMS)
    assert refused.value.rule == rule


def test_a_record_signed_by_another_key_than_the_quote_is_refused() -> None:
    accepted = checked()
    job = job_with(record_for(accepted), signer=SigningKey(b"\x01" * 32))
    with pytest.raises(RecordRefused, match="signature"):
        verify_record(job, accepted, TERMS)


def test_a_job_without_a_record_is_not_verified() -> None:
    accepted = checked()
    job = job_with(record_for(accepted)).model_copy(update={"record": None})
    with pytest.raises(RecordRefused, match="no usage record"):
        verify_record(job, accepted, TERMS)


def test_a_stored_record_is_checked_without_its_quote() -> None:
    accepted = checked()
    job = job_with(record_for(accepted))
    signed = verify_stored(job, TERMS, payer=PAYER)
    assert signed.signer == GATEWAY_KEY.address
    pinned = replace(TERMS, quote_signer=GATEWAY_KEY.address)
    assert verify_stored(job, pinned, payer=PAYER) == signed


def test_a_stored_record_of_another_answer_wallet_or_key_is_refused() -> None:
    job = job_with(record_for(checked()))
    other = SigningKey(bytes(31) + b"\x0e")
    assert job.answer is not None
    forged = job.model_copy(update={"answer": job.answer.model_copy(update={"content": "Hi."})})
    for rule, shown, terms, payer in (
        ("responseCommit", forged, TERMS, PAYER),
        ("payer", job, TERMS, other.address),
        ("signature", job, replace(TERMS, quote_signer=other.address), PAYER),
        ("presence", job.model_copy(update={"record": None}), TERMS, PAYER),
    ):
        with pytest.raises(RecordRefused) as refused:
            verify_stored(shown, terms, payer=payer)
        assert refused.value.rule == rule
