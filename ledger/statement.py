"""What the supplier's agent signs about one attempt; its digest stands in the usage record."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from ledger.encoding import canonical_json
from ledger.errors import BadPrivateKey, BadSignature
from ledger.hashing import require_32_bytes, sha256

STATEMENT_TAG: Final = b"offpeak/supplier-statement@v1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplierStatement:
    """One attempt as its agent saw it: digests of 32 bytes, tokens as the engine counted them.

    `finish` is the engine's finish reason; `release_fingerprint` names the served release.
    """

    lease: UUID
    job: UUID
    request_digest: bytes
    response_digest: bytes
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    finish: str
    release_fingerprint: str

    def canonical(self) -> bytes:
        """The statement as RFC 8785 JSON: ids as UUID text, digests 0x hex, integers as strings.

        Raises:
            BadLength: a digest is not 32 bytes.
            NotCanonical: a text contains a lone surrogate.
        """
        request = require_32_bytes("request digest", self.request_digest)
        response = require_32_bytes("response digest", self.response_digest)
        return canonical_json(
            {
                "lease": str(self.lease),
                "job": str(self.job),
                "request_digest": "0x" + request.hex(),
                "response_digest": "0x" + response.hex(),
                "input_tokens": str(self.input_tokens),
                "cached_input_tokens": str(self.cached_input_tokens),
                "output_tokens": str(self.output_tokens),
                "finish": self.finish,
                "release_fingerprint": self.release_fingerprint,
            }
        )

    def signed_bytes(self) -> bytes:
        """The tag line and the canonical form: what Ed25519 signs and `digest` hashes."""
        return STATEMENT_TAG + self.canonical()

    def digest(self) -> bytes:
        """The usage record's `supplierStatement`: SHA-256 of `signed_bytes`, 32 bytes."""
        return sha256(self.signed_bytes())

    def sign(self, private_key: bytes) -> bytes:
        """The agent's Ed25519 signature (RFC 8032), 64 bytes; `private_key` is the 32-byte seed.

        Raises:
            BadPrivateKey: the seed is not 32 bytes.
        """
        try:
            key = Ed25519PrivateKey.from_private_bytes(private_key)
        except ValueError:
            raise BadPrivateKey(len(private_key)) from None
        return key.sign(self.signed_bytes())

    def verify(self, signature: bytes, *, public_key: bytes) -> None:
        """Check that the agent of this 32-byte public key signed this statement.

        Raises:
            BadSignature: it did not, or signature or key have another form.
        """
        try:
            key = Ed25519PublicKey.from_public_bytes(public_key)
            key.verify(signature, self.signed_bytes())
        except ValueError:
            raise BadSignature("not an Ed25519 public key") from None
        except InvalidSignature:
            raise BadSignature("not this agent's signature of this statement") from None
