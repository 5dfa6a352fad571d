"""Who said so: secp256k1 signatures over 32-byte digests, as Ethereum wallets make them.

A signature is 65 bytes, r || s || v with v 27 or 28. Signing is deterministic (RFC 6979) with
s in the lower half, so one key and digest give one signature. Other libraries accept a high s
and a v of 0 or 1; we refuse both, because one authorization must have one form.
"""

import re
from typing import Final

from coincurve import PrivateKey, PublicKey

from ledger.encoding import Address
from ledger.errors import BadPrivateKey, BadSignature
from ledger.hashing import DIGEST_BYTES, keccak256, require_32_bytes, sha256

__all__ = [
    "SigningKey",
    "address_of",
    "keccak256",
    "parse_signature",
    "recover",
    "sha256",
    "sign_digest",
]

SIGNATURE_BYTES: Final = 65
CURVE_ORDER: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
_WIRE_FORM = re.compile(r"0x[0-9a-fA-F]{130}")
_HIGHEST_LOW_S: Final = (CURVE_ORDER // 2).to_bytes(32)


def _address(key: PublicKey) -> Address:
    return Address("0x" + keccak256(key.format(compressed=False)[1:])[12:].hex())


class SigningKey:
    """A private key made ready: derive it once where one key signs often.

    Making one costs a point multiplication, more than a signature does. Its text form shows
    the address only.
    """

    __slots__ = ("_key", "address")

    def __init__(self, private_key: bytes) -> None:
        """Take 32 bytes, big-endian, in 1 .. curve order - 1.

        Raises:
            BadPrivateKey: anything else.
        """
        if len(private_key) != 32 or not 0 < int.from_bytes(private_key) < CURVE_ORDER:
            raise BadPrivateKey(len(private_key))
        self._key = PrivateKey(private_key)
        self.address = _address(self._key.public_key)

    def __repr__(self) -> str:
        return f"SigningKey({self.address})"

    def sign(self, digest: bytes) -> bytes:
        """The 65-byte signature of a 32-byte digest: r || s || v, v 27 or 28, low s.

        Raises:
            BadLength: the digest is not 32 bytes.
        """
        compact = self._key.sign_recoverable(require_32_bytes("digest", digest), hasher=None)
        # An id of 2 or 3 needs an r of at least the curve order: a chance of about 2^-127.
        assert compact[64] in (0, 1)
        return compact[:64] + bytes((27 + compact[64],))


def address_of(private_key: bytes) -> Address:
    """The address of a private key of 32 bytes.

    Raises:
        BadPrivateKey: not a key.
    """
    return SigningKey(private_key).address


def sign_digest(private_key: bytes, digest: bytes) -> bytes:
    """The signature of a digest; see `SigningKey.sign`. For a key that is used once.

    Raises:
        BadPrivateKey: not a key.
        BadLength: the digest is not 32 bytes.
    """
    return SigningKey(private_key).sign(digest)


def parse_signature(text: object) -> bytes:
    """The 65 bytes that `text` writes as `0x` and 130 hex digits; `recover` checks the rest.

    Raises:
        BadSignature: any other form, EIP-2098's 64 bytes among them.
    """
    if not isinstance(text, str) or _WIRE_FORM.fullmatch(text) is None:
        raise BadSignature("not 0x and 130 hex digits")
    return bytes.fromhex(text[2:])


def recover(digest: bytes, signature: bytes) -> Address:
    """The address whose key made `signature` over `digest`.

    Any acceptable signature recovers *some* address: compare it with the one expected.

    Raises:
        BadSignature: not 65 bytes, v not 27 or 28, s in the upper half, or no such point.
    """
    if len(digest) != DIGEST_BYTES:
        raise BadSignature(f"digest of {len(digest)} bytes instead of {DIGEST_BYTES}")
    if len(signature) != SIGNATURE_BYTES:
        raise BadSignature(f"{len(signature)} bytes instead of {SIGNATURE_BYTES}")
    v = signature[64]
    if v not in {27, 28}:
        raise BadSignature(f"v is {v}, not 27 or 28")
    if signature[32:64] > _HIGHEST_LOW_S:
        raise BadSignature("s is in the upper half of the curve order")
    compact = signature[:64] + bytes((v - 27,))
    try:
        key = PublicKey.from_signature_and_message(compact, digest, hasher=None)
    except ValueError:
        raise BadSignature("recovers no key") from None
    return _address(key)
