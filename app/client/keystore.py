"""Web3 v3 keystore files. eth-account is loaded when one is opened or made, not before."""

import json
import os
from pathlib import Path

from app.client.errors import KeystoreExists, KeystoreUnreadable, WrongPassword
from ledger.encoding import Address, parse_address
from ledger.errors import BadAddress

_MAX_BYTES = 65_536
QUICK_SCRYPT = 4_096
"""scrypt's cost where the password is a random key itself, so that guessing it is hopeless."""


def keystore_address(path: Path) -> Address | None:
    """Return the address that a keystore names in the clear, None when it does not.

    Raises:
        KeystoreUnreadable: not a keystore.
    """
    named = _document(path).get("address")
    if not isinstance(named, str):
        return None
    try:
        return parse_address("0x" + named.lower().removeprefix("0x"))
    except BadAddress:
        raise KeystoreUnreadable(path, reason="its address is no address") from None


def open_keystore(path: Path, password: str) -> bytes:
    """Return the 32-byte private key in a keystore.

    Raises:
        KeystoreUnreadable: not a keystore. WrongPassword: the password does not open it.
    """
    document = _document(path)
    from eth_account import Account  # noqa: PLC0415  # costs a second

    try:
        return bytes(Account.decrypt(document, password))
    except ValueError as error:
        if "MAC mismatch" in str(error):
            raise WrongPassword(path) from None
        raise KeystoreUnreadable(path, reason=str(error)) from None
    except (KeyError, TypeError, NotImplementedError) as error:
        raise KeystoreUnreadable(path, reason=f"not web3 v3: {error}") from None


def write_keystore(
    path: Path, private_key: bytes, password: str, *, scrypt_cost: int | None = None
) -> None:
    """Write a new keystore, mode 0600; folders are made as needed.

    Raises:
        KeystoreExists: something is there already.
    """
    from eth_account import Account  # noqa: PLC0415  # costs a second

    document = Account.encrypt(private_key, password, kdf="scrypt", iterations=scrypt_cost)
    try:
        write_private(path, json.dumps(document).encode() + b"\n")
    except FileExistsError:
        raise KeystoreExists(path) from None


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read; FileExistsError when there is one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _document(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise KeystoreUnreadable(path, reason=error.strerror or "cannot be read") from None
    if len(raw) > _MAX_BYTES:
        raise KeystoreUnreadable(path, reason=f"over {_MAX_BYTES} bytes")
    try:
        document = json.loads(raw)
    except ValueError:
        raise KeystoreUnreadable(path, reason="not JSON") from None
    if not isinstance(document, dict) or document.get("version") != 3:
        raise KeystoreUnreadable(path, reason="not a version 3 keystore")
    return document
