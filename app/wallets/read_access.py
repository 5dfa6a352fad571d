"""Wallet-signed permission to read: `Authorization: OffpeakRead <base64url JSON>`.

The JSON is `{"access": {ReadAccess message}, "signature": "0x.."}`. A header stays under 4 kB.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec

from app.wallets.errors import (
    ReadAccessExpired,
    ReadAccessMalformed,
    ReadAccessMissing,
    ReadAccessTooLong,
    WrongScope,
)
from app.wallets.signatures import WalletSignatures, parse_signature
from ledger.authorization import ReadAccess
from ledger.encoding import Address, Domain
from ledger.errors import MalformedTypedData

Scope = Literal["balances", "jobs", "receipts"]

SCHEME = "offpeakread"
MAX_HEADER_CHARACTERS = 4_000
MAX_AHEAD_SECONDS = 24 * 3_600


class Presented(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The header's JSON."""

    access: dict[str, str]
    signature: str


DECODER = msgspec.json.Decoder(Presented)


@dataclass(frozen=True, slots=True)
class ReadGate:
    """Lets wallets read what is theirs, by what they sign under `domain`."""

    domain: Domain
    signatures: WalletSignatures

    async def payer(self, authorization: str | None, *, scope: Scope, now: datetime) -> Address:
        """Return the wallet that may read `scope`.

        Args:
            authorization: The header's value, if it was sent.
            scope: What is about to be read.
            now: The present; the access must not be over, nor end more than 24 hours ahead.

        Raises:
            ReadAccessMissing, ReadAccessMalformed, ReadAccessExpired, ReadAccessTooLong, WrongScope
            BadSignature, WrongSigner and others: see `WalletSignatures.check`.
        """
        presented = parse_header(authorization)
        try:
            access = ReadAccess.parse(presented.access)
        except MalformedTypedData as error:
            raise ReadAccessMalformed(str(error)) from None
        seconds = int(now.timestamp())
        if access.valid_until <= seconds:
            raise ReadAccessExpired(valid_until=access.valid_until, now=now)
        if access.valid_until > seconds + MAX_AHEAD_SECONDS:
            raise ReadAccessTooLong(limit_seconds=MAX_AHEAD_SECONDS)
        if access.scope != scope:
            raise WrongScope(needed=scope)
        signature = parse_signature(presented.signature)
        await self.signatures.check(access.digest(self.domain), signature, signer=access.payer)
        return access.payer


def parse_header(authorization: str | None) -> Presented:
    """Return what the header carries, unchecked.

    Raises:
        ReadAccessMissing: there is none, or of another scheme. ReadAccessMalformed: not the form.
    """
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != SCHEME:
        raise ReadAccessMissing
    encoded = encoded.strip()
    if len(encoded) > MAX_HEADER_CHARACTERS:
        raise ReadAccessMalformed(f"longer than {MAX_HEADER_CHARACTERS} characters")
    try:
        padded = encoded.rstrip("=") + "=" * (-len(encoded.rstrip("=")) % 4)
        raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        return DECODER.decode(raw)
    except (binascii.Error, ValueError) as error:
        reason = "not base64url" if isinstance(error, binascii.Error) else str(error)
        raise ReadAccessMalformed(reason) from None


def read_access_header(access: ReadAccess, signature: bytes) -> str:
    """Return the Authorization header's value for a signed access; the client's side."""
    body = {"access": access.message(), "signature": "0x" + signature.hex()}
    return "OffpeakRead " + base64.urlsafe_b64encode(msgspec.json.encode(body)).decode().rstrip("=")
