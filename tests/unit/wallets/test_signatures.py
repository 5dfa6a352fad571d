"""What counts as a plain wallet's signature, and how others are refused without a chain."""

import asyncio

import pytest

from app.wallets.errors import ContractWalletUnsupported, WrongSigner
from app.wallets.signatures import WalletSignatures, is_plain
from ledger.errors import BadSignature
from ledger.signing import CURVE_ORDER, SigningKey

KEY = SigningKey(b"\x06" * 32)
OTHER = SigningKey(b"\x05" * 32)
DIGEST = b"\x5a" * 32
GOOD = KEY.sign(DIGEST)


def check(signature: bytes) -> None:
    asyncio.run(WalletSignatures().check(DIGEST, signature, signer=KEY.address))


def test_the_wallets_own_key_is_enough() -> None:
    assert is_plain(DIGEST, GOOD, signer=KEY.address)
    check(GOOD)


def test_another_key_is_not() -> None:
    assert not is_plain(DIGEST, OTHER.sign(DIGEST), signer=KEY.address)
    with pytest.raises(WrongSigner):
        check(OTHER.sign(DIGEST))


def test_high_s_and_a_v_of_zero_or_one_are_refused() -> None:
    high = GOOD[:32] + (CURVE_ORDER - int.from_bytes(GOOD[32:64])).to_bytes(32)
    high += bytes((55 - GOOD[64],))
    for signature in (high, GOOD[:64] + bytes((GOOD[64] - 27,)), GOOD[:64]):
        assert not is_plain(DIGEST, signature, signer=KEY.address)
        with pytest.raises(BadSignature):
            check(signature)


def test_a_long_signature_is_named_a_contract_wallets() -> None:
    with pytest.raises(ContractWalletUnsupported):
        check(b"\x01" * 130)
