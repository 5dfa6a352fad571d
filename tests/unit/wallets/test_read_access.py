import asyncio
import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wallets.errors import (
    ContractWalletUnsupported,
    ReadAccessExpired,
    ReadAccessMalformed,
    ReadAccessMissing,
    ReadAccessTooLong,
    WalletError,
    WrongScope,
    WrongSigner,
)
from app.wallets.read_access import ReadGate, read_access_header
from app.wallets.signatures import WalletSignatures
from ledger.authorization import ReadAccess, authorization_domain
from ledger.encoding import Address
from ledger.errors import BadSignature
from ledger.signing import SigningKey

DOMAIN = authorization_domain(chain_id=31_337, treasury=Address("0x" + "22" * 20))
ELSEWHERE = authorization_domain(chain_id=1, treasury=Address("0x" + "22" * 20))
KEY = SigningKey(b"\x07" * 32)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
SECONDS = int(NOW.timestamp())


def access(scope: str = "balances", valid_until: int = SECONDS + 60) -> ReadAccess:
    return ReadAccess(KEY.address, scope, valid_until, b"\x01" * 32)


def header_of(asked: ReadAccess) -> str:
    return read_access_header(asked, KEY.sign(asked.digest(DOMAIN)))


def check(header: str | None) -> Address:
    asked = ReadGate(DOMAIN, WalletSignatures()).payer(header, scope="balances", now=NOW)
    return asyncio.run(asked)


def test_a_signed_access_reads_for_its_wallet_and_fits_a_header() -> None:
    header = header_of(access())
    assert check(header) == KEY.address
    assert len(header) < 4_000


def test_padding_and_the_case_of_the_scheme_do_not_matter() -> None:
    header = header_of(access()).removeprefix("OffpeakRead ")
    assert check("offpeakREAD " + header + "=" * (-len(header) % 4)) == KEY.address


@pytest.mark.parametrize("header", [None, "", "Bearer abc", "OffpeakReadX"])
def test_no_read_access_is_told_apart_from_a_bad_one(header: str | None) -> None:
    with pytest.raises(ReadAccessMissing):
        check(header)


@pytest.mark.parametrize(
    "header",
    [
        "OffpeakRead",
        "OffpeakRead !!!",
        "OffpeakRead e30",
        "OffpeakRead " + "A" * 5_000,
        "OffpeakRead " + base64.b64encode(b'{"access":{},"signature":"0x","more":1}').decode(),
        "OffpeakRead " + base64.b64encode(b'{"access":{"payer":1},"signature":"0x"}').decode(),
        "OffpeakRead " + base64.b64encode(b'{"access":{},"signature":"0x"}').decode(),
        "OffpeakRead " + base64.b64encode(b"\xff\xfe").decode(),
        "OffpeakRead \xe9\xe9\xe9",
    ],
)
def test_a_malformed_access_is_refused(header: str) -> None:
    with pytest.raises(ReadAccessMalformed):
        check(header)


@given(st.text(max_size=200))
def test_no_text_brings_the_check_down(text: str) -> None:
    with pytest.raises((WalletError, BadSignature)):
        check("OffpeakRead " + text)


def test_an_access_ends_at_its_second() -> None:
    assert check(header_of(access(valid_until=SECONDS + 1)))
    with pytest.raises(ReadAccessExpired):
        check(header_of(access(valid_until=SECONDS)))


def test_an_access_lives_at_most_a_day() -> None:
    assert check(header_of(access(valid_until=SECONDS + 86_400)))
    with pytest.raises(ReadAccessTooLong):
        check(header_of(access(valid_until=SECONDS + 86_401)))


def test_an_access_for_jobs_does_not_read_balances() -> None:
    with pytest.raises(WrongScope):
        check(header_of(access(scope="jobs")))


def test_another_key_or_another_chain_is_a_bad_signature_that_mentions_contract_wallets() -> None:
    asked = access()
    for signature in (
        SigningKey(b"\x08" * 32).sign(asked.digest(DOMAIN)),
        KEY.sign(asked.digest(ELSEWHERE)),
    ):
        with pytest.raises(
            WrongSigner, match="no contract of that address confirms it either"
        ) as refusal:
            check(read_access_header(asked, signature))
        assert refusal.value.code == "bad-signature"


def test_a_long_signature_is_a_contract_wallets() -> None:
    with pytest.raises(ContractWalletUnsupported):
        check(read_access_header(access(), b"\x01" * 320))


@pytest.mark.parametrize("signature", ["", "0x0", "00" * 65, "0x" + "zz" * 65, "0x" + "00" * 64])
def test_a_signature_of_another_form_is_a_bad_signature(signature: str) -> None:
    body = json.dumps({"access": access().message(), "signature": signature}).encode()
    with pytest.raises(BadSignature):
        check("OffpeakRead " + base64.urlsafe_b64encode(body).decode())
