"""Which keystore a command means, and its password. A key is never an option."""

import os
import sys
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path

from app.cli.errors import BadInput, NoPassword
from app.client.errors import KeystoreUnreadable, NoKeystore

FOUNDRY_KEYSTORES = Path(".foundry") / "keystores"
HOME_KEYSTORE = "wallet.json"
HOME_PASSWORD = "wallet.password"  # noqa: S105  # a file's name
_MAX_PASSWORD_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletOptions:
    """What was said about the wallet; names as foundry's `cast` has them."""

    home: Path
    keystore: Path | None = None
    account: str | None = None
    password_file: Path | None = None


def find_keystore(options: WalletOptions) -> Path:
    """Return the keystore that is meant.

    In this order: `account` in `keystore`'s folder (or in foundry's), the file `keystore`, the
    only file in the folder `keystore`, the development wallet of `home`.

    Raises:
        NoKeystore: there is none, or a folder does not hold exactly one.
    """
    if options.account is not None:
        folder = options.keystore or Path.home() / FOUNDRY_KEYSTORES
        return _existing(folder / options.account)
    if options.keystore is not None:
        if not options.keystore.is_dir():
            return _existing(options.keystore)
        found = [path for path in sorted(options.keystore.iterdir()) if path.is_file()]
        if len(found) != 1:
            raise NoKeystore(f"{options.keystore} holds {len(found)} files; name one by --account")
        return found[0]
    return _existing(options.home / HOME_KEYSTORE)


def password_for(keystore: Path, options: WalletOptions) -> str:
    """Return the keystore's password: from its file, from the development home, or by asking.

    Raises:
        BadInput: the password file cannot be read. NoPassword: there is nobody to ask.
    """
    if options.password_file is not None:
        return read_password(options.password_file)
    beside = options.home / HOME_PASSWORD
    if keystore == options.home / HOME_KEYSTORE and beside.is_file():
        return read_password(beside)
    if not sys.stdin.isatty():
        raise NoPassword
    return getpass(f"Password of {keystore}: ", stream=sys.stderr)


def read_password(path: Path) -> str:
    """Return a password file's text without its last line break; BadInput when unreadable."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_PASSWORD_BYTES + 1)
    except OSError as error:
        raise BadInput(f"password file {path}: {error.strerror}") from None
    if len(raw) > _MAX_PASSWORD_BYTES:
        raise BadInput(f"password file {path} is over {_MAX_PASSWORD_BYTES} bytes")
    return raw.decode("utf-8", errors="replace").removesuffix("\n").removesuffix("\r")


def new_password() -> str:
    """Ask for a new password twice.

    Raises:
        NoPassword: there is nobody to ask. BadInput: the two differ.
    """
    if not sys.stdin.isatty():
        raise NoPassword
    first = getpass("New password: ", stream=sys.stderr)
    if getpass("Again: ", stream=sys.stderr) != first:
        raise BadInput("the two passwords differ")
    return first


def _existing(path: Path) -> Path:
    if not path.exists():
        raise NoKeystore(f"{path} does not exist")
    if not os.access(path, os.R_OK):
        raise KeystoreUnreadable(path, reason="not readable")
    return path
