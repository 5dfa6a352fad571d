import contextlib

import pytest
from coincurve import PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadLength, BadPrivateKey, BadSignature
from ledger.signing import (
    CURVE_ORDER,
    SigningKey,
    address_of,
    keccak256,
    parse_signature,
    recover,
    sha256,
    sign_digest,
)

KEY = sha256(b"offpeak TEST key, never fund")
DIGEST = keccak256(b"a digest")
SIGNATURE = sign_digest(KEY, DIGEST)

keys = st.integers(1, CURVE_ORDER - 1).map(lambda number: number.to_bytes(32))
digests = st.binary(min_size=32, max_size=32)


def with_parts(r: int, s: int, v: int) -> bytes:
    return r.to_bytes(32) + s.to_bytes(32) + bytes((v,))


R, S, V = int.from_bytes(SIGNATURE[:32]), int.from_bytes(SIGNATURE[32:64]), SIGNATURE[64]


@given(keys, digests)
def test_what_a_key_signs_recovers_its_address(key: bytes, digest: bytes) -> None:
    signature = sign_digest(key, digest)
    assert recover(digest, signature) == address_of(key)
    assert len(signature) == 65
    assert signature[64] in {27, 28}
    assert int.from_bytes(signature[32:64]) <= CURVE_ORDER // 2


@given(keys, digests)
def test_signing_is_deterministic(key: bytes, digest: bytes) -> None:
    assert sign_digest(key, digest) == SigningKey(key).sign(digest)


@given(digests)
def test_a_signature_counts_for_its_digest_only(other: bytes) -> None:
    if other != DIGEST:
        try:
            found = recover(other, SIGNATURE)
        except BadSignature:
            return
        assert found != address_of(KEY)


def test_a_known_key_has_its_known_address() -> None:
    # Private key 1: its public key is the generator point.
    assert address_of((1).to_bytes(32)) == "0x7e5f4552091a69125d5dfcb7b8c2659029395bdf"


def test_a_high_s_is_refused_although_it_recovers_the_same_key() -> None:
    high = with_parts(R, CURVE_ORDER - S, 55 - V)
    compact = high[:64] + bytes((high[64] - 27,))
    twin = PrivateKey(KEY).public_key.from_signature_and_message(compact, DIGEST, hasher=None)
    assert twin == PrivateKey(KEY).public_key
    with pytest.raises(BadSignature, match="upper half"):
        recover(DIGEST, high)


def test_the_border_of_low_s_is_half_the_order() -> None:
    half = CURVE_ORDER // 2
    assert recover(DIGEST, with_parts(R, half, V)).startswith("0x")
    with pytest.raises(BadSignature, match="upper half"):
        recover(DIGEST, with_parts(R, half + 1, V))


@pytest.mark.parametrize("v", [0, 1, 2, 3, 26, 29, 30, 35, 37, 38, 255])
def test_a_v_other_than_27_or_28_is_refused(v: int) -> None:
    with pytest.raises(BadSignature, match="not 27 or 28"):
        recover(DIGEST, with_parts(R, S, v))


@pytest.mark.parametrize("length", [0, 1, 32, 64, 66, 130])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(BadSignature, match="instead of 65"):
        recover(DIGEST, (SIGNATURE * 2)[:length])


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_digest_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(BadSignature, match="instead of 32"):
        recover(bytes(length), SIGNATURE)
    with pytest.raises(BadLength):
        sign_digest(KEY, bytes(length))


@pytest.mark.parametrize(
    ("r", "s"), [(0, S), (R, 0), (0, 0), (CURVE_ORDER, S), (2**256 - 1, S), (5, S)]
)
def test_figures_that_are_no_point_recover_nothing(r: int, s: int) -> None:
    with pytest.raises(BadSignature, match="recovers no key"):
        recover(DIGEST, with_parts(r, s, V))


@given(st.binary(min_size=65, max_size=65))
def test_any_65_bytes_recover_an_address_or_are_refused(signature: bytes) -> None:
    with contextlib.suppress(BadSignature):
        assert len(recover(DIGEST, signature)) == 42


@pytest.mark.parametrize(
    "key", [b"", bytes(31), bytes(32), bytes(33), CURVE_ORDER.to_bytes(32), b"\xff" * 32]
)
def test_what_is_no_key_is_refused_without_being_shown(key: bytes) -> None:
    with pytest.raises(BadPrivateKey) as refusal:
        SigningKey(key)
    assert str(refusal.value) == f"{len(key)} bytes that are not a private key"


def test_a_signing_key_shows_its_address_only() -> None:
    key = SigningKey(KEY)
    assert repr(key) == f"SigningKey({address_of(KEY)})"
    assert KEY.hex() not in repr(key)


def test_a_signature_travels_as_0x_and_130_hex_digits() -> None:
    shown = "0x" + SIGNATURE.hex()
    assert parse_signature(shown) == SIGNATURE
    wrong: list[object] = [
        "",
        shown[2:],
        "0X" + shown[2:],
        shown[:-2],
        shown + "00",
        shown + "\n",
        " " + shown,
        "0x" + "g" * 130,
        SIGNATURE,
        None,
    ]
    for each in wrong:
        with pytest.raises(BadSignature, match="130 hex digits"):
            parse_signature(each)
