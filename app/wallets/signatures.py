"""Whether a wallet signed a digest. Plain wallets only, until there is a chain to ask."""

import re

from app.wallets.errors import ContractWalletUnsupported, WrongSigner
from ledger.encoding import Address
from ledger.errors import BadSignature
from ledger.signing import SIGNATURE_BYTES, recover

HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
MAX_SIGNATURE_CHARACTERS = 8_192


def parse_signature(text: str) -> bytes:
    """Return the bytes of a `0x` signature.

    Raises:
        BadSignature: not 0x and an even number of hex digits, or far too long.
    """
    if len(text) > MAX_SIGNATURE_CHARACTERS or not HEX.fullmatch(text):
        raise BadSignature("not 0x and hex digits")
    return bytes.fromhex(text[2:])


def check_signature(digest: bytes, signature: bytes, *, signer: Address) -> None:
    """Return if `signer` signed `digest`.

    A contract wallet's signature looks like any other when it has 65 bytes; then it recovers to
    some other address and is refused as such.

    Raises:
        BadSignature: breaks a rule of form (length, v, high s).
        WrongSigner: another key signed, or other data.
        ContractWalletUnsupported: longer than a plain wallet's.
    """
    if len(signature) > SIGNATURE_BYTES:
        raise ContractWalletUnsupported(signature_bytes=len(signature))
    recovered = recover(digest, signature)
    if recovered != signer:
        raise WrongSigner(expected=signer, recovered=recovered)
