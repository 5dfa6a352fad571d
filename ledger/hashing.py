"""The two hash functions of the wire formats."""

import hashlib

import sha3

from ledger.errors import BadLength

DIGEST_BYTES = 32


def keccak256(data: bytes) -> bytes:
    """Keccak-256 as Ethereum uses it (the padding of 2011, not SHA3-256); 32 bytes."""
    digest: bytes = sha3.keccak_256(data).digest()
    return digest


def sha256(data: bytes) -> bytes:
    """SHA-256; 32 bytes."""
    return hashlib.sha256(data).digest()


def require_32_bytes(what: str, value: bytes) -> bytes:
    """`value` itself.

    Raises:
        BadLength: it is not 32 bytes.
    """
    if len(value) != DIGEST_BYTES:
        raise BadLength(what, expected=DIGEST_BYTES, found=len(value))
    return value
