"""A key in memory that signs what the checks let through."""

import base64
import json

from app.client.checks import CheckedQuote
from ledger.authorization import ReadAccess
from ledger.encoding import Address, Domain
from ledger.signing import SigningKey


class Wallet:
    """One private key. Its text form shows the address only."""

    def __init__(self, private_key: bytes) -> None:
        """Take 32 bytes; BadPrivateKey when they are no key."""
        self._key = SigningKey(private_key)

    def __repr__(self) -> str:
        return f"Wallet({self.address})"

    @property
    def address(self) -> Address:
        """The paying account."""
        return self._key.address

    def sign_quote(self, checked: CheckedQuote) -> bytes:
        """Return the signature that accepts a checked quote; the same quote, the same bytes."""
        return self._key.sign(checked.authorization_digest)

    def sign_digest(self, digest: bytes) -> bytes:
        """Return the signature of what the caller has made and shown: 65 bytes, low s."""
        return self._key.sign(digest)

    def read_header(self, access: ReadAccess, domain: Domain) -> str:
        """Return the Authorization header's value for a read access of this wallet."""
        signature = "0x" + self._key.sign(access.digest(domain)).hex()
        body = json.dumps({"access": access.message(), "signature": signature})
        return "OffpeakRead " + base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")
