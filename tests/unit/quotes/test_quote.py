from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from app.quotes.errors import QuoteForged, RequestMismatch
from app.quotes.quote import (
    Asked,
    IssuedQuotes,
    Presented,
    Priced,
    QuoteKey,
    SignedQuote,
    Validity,
    authorization_for,
    check_acceptance,
    make_quote,
    sign_quote,
)
from ledger.authorization import authorization_domain
from ledger.commitment import request_digest
from ledger.encoding import Address
from ledger.money import Nano
from ledger.signing import SigningKey
from pricing.rates import Rates

DOMAIN = authorization_domain(chain_id=31_337, treasury=Address("0x" + "22" * 20))
GATEWAY = SigningKey(b"\x05" * 32)
BUYER = SigningKey(b"\x06" * 32)
SALT = b"\x5a" * 32
REQUEST = b'{"model":"m"}'


def presented() -> Presented:
    asked = Asked(
        payer=BUYER.address,
        model="m",
        model_revision=b"\x01" * 32,
        region="local",
        request_digest=request_digest(SALT, REQUEST),
        input_tokens=3,
        max_output_tokens=7,
    )
    priced = Priced(
        rates=Rates(Nano(1_000_001), Nano(2_000_000), Nano(5)),
        ask=Nano(100),
        load_ppm=250_000,
        price_point_at=1_000,
        curve_version=1,
        run_seconds=20,
    )
    validity = Validity(UUID(int=9), Address("0x" + "33" * 20), issued_at=1_001, expires_at=1_061)
    signed = sign_quote(make_quote(asked, priced, validity), key=GATEWAY, domain=DOMAIN)
    authorization = authorization_for(signed, nonce=b"\x04" * 32)
    signature = BUYER.sign(authorization.digest(DOMAIN))
    return Presented(signed.quote, signed.signature, REQUEST, SALT, authorization, signature)


def check(given: Presented, issued: IssuedQuotes | None = None) -> None:
    check_acceptance(given, QuoteKey(GATEWAY.address, DOMAIN, issued or IssuedQuotes()))


def test_a_complete_acceptance_passes_and_its_maximum_is_rounded_up() -> None:
    check(presented())
    # 5 + (3 x 1,000,001 + 7 x 2,000,000) / 10^6 = 22.000003
    assert presented().quote.max_charge_nano == 23


@pytest.mark.parametrize("field", [
    "max_charge_nano", "input_tokens", "max_output_tokens", "input_rate_nano", "output_rate_nano",
    "per_request_nano", "ask_nano", "load_ppm", "price_point_at", "curve_version", "run_seconds",
    "issued_at", "expires_at",
])  # fmt: skip
def test_a_changed_figure_makes_a_forged_quote(field: str) -> None:
    given = presented()
    changed = replace(given.quote, **{field: getattr(given.quote, field) + 1})
    with pytest.raises(QuoteForged):
        check(replace(given, quote=changed))


@pytest.mark.parametrize(
    "signature",
    [b"", b"\x00" * 65, b"\x01" * 64, b"\x01" * 320, GATEWAY.sign(b"\x01" * 32)],
    ids=["none", "zero", "short", "long", "of-something-else"],
)
def test_a_quote_signature_of_any_other_kind_is_a_forged_quote(signature: bytes) -> None:
    with pytest.raises(QuoteForged):
        check(replace(presented(), quote_signature=signature))


def test_a_buyers_own_signature_does_not_make_a_quote() -> None:
    given = presented()
    own = BUYER.sign(given.quote.digest(DOMAIN))
    with pytest.raises(QuoteForged):
        check(replace(given, quote_signature=own))


@pytest.mark.parametrize(
    "change",
    [
        lambda given: replace(given, request_canonical=b'{"model":"n"}'),
        lambda given: replace(given, salt=b"\x5b" * 32),
    ],
    ids=["request", "salt"],
)
def test_another_request_under_a_quote_is_a_mismatch(
    change: Callable[[Presented], Presented],
) -> None:
    with pytest.raises(RequestMismatch) as refusal:
        check(change(presented()))
    assert refusal.value.field == "request"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("payer", Address("0x" + "44" * 20)),
        ("delegation", b"\x01" * 32),
        ("quote_digest", b"\x01" * 32),
        ("request_digest", b"\x01" * 32),
        ("model", "n"),
        ("max_output_tokens", 8),
        ("token", Address("0x" + "44" * 20)),
        ("max_charge_nano", Nano(22)),
        ("max_charge_nano", Nano(24)),
    ],
)
def test_an_authorization_for_anything_else_is_a_mismatch(field: str, value: object) -> None:
    given = presented()
    changes: dict[str, Any] = {field: value}
    changed = replace(given.authorization, **changes)
    signature = BUYER.sign(changed.digest(DOMAIN))
    with pytest.raises(RequestMismatch) as refusal:
        check(replace(given, authorization=changed, signature=signature))
    assert refusal.value.field == field


def test_validity_and_nonce_are_the_buyers_to_choose() -> None:
    given = presented()
    changed = replace(given.authorization, valid_after=0, deadline=2**60, nonce=b"\x09" * 32)
    chosen = replace(given, authorization=changed, signature=BUYER.sign(changed.digest(DOMAIN)))
    check(chosen)
    assert (chosen.authorization.deadline, chosen.authorization.valid_after) == (2**60, 0)


def test_a_quote_signed_here_needs_no_recovery_and_its_signature_must_still_be_ours() -> None:
    given = presented()
    issued = IssuedQuotes()
    issued.add(SignedQuote(given.quote, given.quote.digest(DOMAIN), given.quote_signature))

    check(given, issued)
    forged = replace(given, quote_signature=BUYER.sign(given.quote.digest(DOMAIN)))
    with pytest.raises(QuoteForged):
        check(forged, issued)


def test_only_so_many_quotes_are_remembered_the_oldest_forgotten_first() -> None:
    issued = IssuedQuotes(remembered=2)
    quote = presented().quote
    for number in range(3):
        issued.add(SignedQuote(quote, bytes([number]) * 32, b"s"))

    assert [issued.has(bytes([number]) * 32, b"s") for number in range(3)] == [False, True, True]
