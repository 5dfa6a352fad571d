"""Nothing is signed that the buyer did not ask for."""

from dataclasses import replace
from typing import Any

import pytest

from app.client.checks import checked_quote, highest_charge
from app.client.errors import (
    MaximumExceeded,
    QuoteDiffers,
    QuoteExpired,
    QuoteForged,
    QuoteRefused,
    WrongChain,
    WrongDomain,
)
from ledger.encoding import parse_address
from ledger.money import Nano
from tests.unit.client.gateway import (
    ASKED,
    GATEWAY_KEY,
    NOW,
    QUESTION,
    TERMS,
    checked,
    document_for,
    quote_for,
)

OTHER = parse_address(f"0x{99:040x}")


def test_an_honest_offer_is_ready_to_sign() -> None:
    found = checked()
    assert found.signer == GATEWAY_KEY.address
    assert found.authorization.max_charge_nano == found.quote.max_charge_nano
    assert highest_charge(found.quote) == found.quote.max_charge_nano


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("payer", {"payer": OTHER}),
        ("model", {"model": "another-model"}),
        ("requestDigest", {"request_digest": b"\x01" * 32}),
        ("maxOutputTokens", {"max_output_tokens": 33, "max_charge_nano": Nano(8_540)}),
        ("token", {"token": OTHER}),
        ("maxChargeNano", {"max_charge_nano": Nano(9_000)}),
        ("maxChargeNano", {"output_rate_nano": Nano(200_000_000)}),
    ],
)
def test_a_signed_quote_for_something_else_is_not_signed(
    field: str, changed: dict[str, Any]
) -> None:
    with pytest.raises(QuoteDiffers) as refused:
        checked_quote(document_for(quote_for(**changed)), ASKED, TERMS, now=NOW)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("payer", {"payer": OTHER}),
        ("delegation", {"delegation": b"\x01" * 32}),
        ("quoteDigest", {"quote_digest": b"\x01" * 32}),
        ("requestDigest", {"request_digest": b"\x01" * 32}),
        ("model", {"model": "another-model"}),
        ("maxOutputTokens", {"max_output_tokens": 1_000}),
        ("token", {"token": OTHER}),
        ("maxChargeNano", {"max_charge_nano": Nano(10**18)}),
        ("deadline", {"deadline": NOW + 10**6}),
    ],
)
def test_an_authorization_that_says_more_than_its_quote_is_not_signed(
    field: str, changed: dict[str, Any]
) -> None:
    with pytest.raises(QuoteDiffers) as refused:
        checked_quote(document_for(quote_for(), **changed), ASKED, TERMS, now=NOW)
    assert refused.value.field == field


def test_another_question_than_ours_is_noticed_by_our_own_digest() -> None:
    other = replace(ASKED, question=replace(QUESTION, temperature=1.0))
    with pytest.raises(QuoteDiffers, match="requestDigest"):
        checked_quote(document_for(quote_for()), other, TERMS, now=NOW)


def test_another_salt_than_ours_is_noticed() -> None:
    with pytest.raises(QuoteDiffers, match="requestDigest"):
        checked_quote(document_for(quote_for()), replace(ASKED, salt=b"\x09" * 32), TERMS, now=NOW)


def test_the_wrong_chain_has_its_own_message() -> None:
    terms = replace(TERMS, chain_id=8_453)
    with pytest.raises(WrongChain, match="chain 31337, this wallet is set to chain 8453"):
        checked_quote(document_for(quote_for()), ASKED, terms, now=NOW)


def test_another_contract_is_not_signed_for() -> None:
    terms = replace(TERMS, treasury=OTHER)
    with pytest.raises(WrongDomain, match="verifyingContract"):
        checked_quote(document_for(quote_for()), ASKED, terms, now=NOW)


def test_a_quote_changed_after_signing_is_not_signed() -> None:
    document = document_for(quote_for())
    quote = {**document.quote, "maxChargeNano": "8441"}
    with pytest.raises(QuoteRefused):
        checked_quote(document.model_copy(update={"quote": quote}), ASKED, TERMS, now=NOW)


def test_a_quote_by_another_key_than_the_pinned_one_is_forged() -> None:
    with pytest.raises(QuoteForged, match="pinned"):
        checked_quote(document_for(quote_for()), ASKED, replace(TERMS, quote_signer=OTHER), now=NOW)


def test_a_quote_without_a_signature_is_forged() -> None:
    document = document_for(quote_for()).model_copy(update={"signature": "0x00"})
    with pytest.raises(QuoteForged):
        checked_quote(document, ASKED, TERMS, now=NOW)


def test_an_expired_quote_is_not_signed() -> None:
    with pytest.raises(QuoteExpired):
        checked_quote(document_for(quote_for()), ASKED, TERMS, now=NOW + 60)


def test_nothing_above_the_buyers_maximum_is_signed() -> None:
    with pytest.raises(MaximumExceeded, match=r"0\.000008440, the limit is 0\.000008439"):
        checked_quote(document_for(quote_for()), replace(ASKED, limit=Nano(8_439)), TERMS, now=NOW)
    checked_quote(document_for(quote_for()), replace(ASKED, limit=Nano(8_440)), TERMS, now=NOW)


def test_typed_data_of_another_type_is_not_signed() -> None:
    document = document_for(quote_for())
    authorization = {**document.authorization, "primaryType": "Withdrawal"}
    with pytest.raises(QuoteDiffers, match="primaryType"):
        checked_quote(
            document.model_copy(update={"authorization": authorization}), ASKED, TERMS, now=NOW
        )
