"""Encryption of stored requests and answers (AES-256-GCM), bound to their job.

Form of a sealed value: 1 byte form number, 8 bytes key id, 12 bytes nonce, ciphertext and tag.
"""

import hashlib
import os
from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.kit.errors import ContentUnreadable, UnknownContentKey

FORM = b"\x01"
KEY_BYTES = 32
KEY_ID_BYTES = 8
NONCE_BYTES = 12
HEADER_BYTES = len(FORM) + KEY_ID_BYTES + NONCE_BYTES

Part = Literal["request", "answer"]


def content_key_id(key: bytes) -> bytes:
    """Return the 8-byte name of a key: a hash, so it says nothing of the key."""
    return hashlib.sha256(b"offpeak/content-key@v1\n" + key).digest()[:KEY_ID_BYTES]


class ContentCipher:
    """Seals with the first key; opens with any, so that a key can be replaced without loss."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        assert keys
        assert all(len(key) == KEY_BYTES for key in keys)
        self._ciphers = {content_key_id(key): AESGCM(key) for key in keys}
        self._current = content_key_id(keys[0])

    @property
    def key_id(self) -> str:
        """Hex name of the key that new content is sealed with."""
        return self._current.hex()

    def seal(self, plain: bytes, *, job_id: UUID, part: Part) -> bytes:
        """Return the sealed form; it opens only for the same job and part."""
        nonce = os.urandom(NONCE_BYTES)
        body = self._ciphers[self._current].encrypt(nonce, plain, associated_data(job_id, part))
        return FORM + self._current + nonce + body

    def open(self, sealed: bytes, *, job_id: UUID, part: Part) -> bytes:
        """Return the plain bytes.

        Raises:
            ContentUnreadable: altered, cut short, or sealed for another job or part.
            UnknownContentKey: sealed with a key that was not given.
        """
        if len(sealed) < HEADER_BYTES or sealed[:1] != FORM:
            raise ContentUnreadable
        key_id = sealed[1 : 1 + KEY_ID_BYTES]
        nonce = sealed[1 + KEY_ID_BYTES : HEADER_BYTES]
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise UnknownContentKey(key_id=key_id.hex())
        try:
            return cipher.decrypt(nonce, sealed[HEADER_BYTES:], associated_data(job_id, part))
        except InvalidTag:
            raise ContentUnreadable from None


def associated_data(job_id: UUID, part: Part) -> bytes:
    """Return what is authenticated with the content: an answer cannot pass for a request."""
    return b"offpeak/content@v1\n" + part.encode() + b"\n" + job_id.bytes
