"""What a development home holds beside the engines' data: keys, a wallet, the supplier's ids.

Every secret is made here once, at random, in a file of mode 0600. Nothing of it is a well-known
development key, and production settings are never written from here.
"""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.client.keystore import QUICK_SCRYPT, open_keystore, write_keystore, write_private
from ledger.encoding import Address
from ledger.signing import SigningKey

KEY_BYTES = 32
SECRETS = ("signing_key", "content_key", "checkpoint_key")
"""Settings that are read from files of the home."""


@dataclass(frozen=True, slots=True)
class DevelopmentHome:
    """A folder of one all-in-one, private to its owner."""

    path: Path

    def prepare(self) -> None:
        """Make the folder, its logs and every secret that is missing.

        The folder may be entered by others, because Postgres may run under another account;
        nothing in it may be read by them.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o755)
        self.logs.mkdir(exist_ok=True, mode=0o700)
        for name in SECRETS:
            _make_once(self.secret_file(name), secrets.token_hex(KEY_BYTES))
        _make_once(self.device_key, secrets.token_hex(KEY_BYTES))

    @property
    def logs(self) -> Path:
        """Where the processes write."""
        return self.path / "logs"

    @property
    def device_key(self) -> Path:
        """The agent's Ed25519 seed: 64 hex digits and a line feed, as `offpeak-agent` keeps it."""
        return self.path / "device.key"

    @property
    def keystore(self) -> Path:
        """The development wallet."""
        return self.path / "wallet.json"

    def secret_file(self, name: str) -> Path:
        """Where a secret setting lies."""
        return self.path / f"{name.replace('_', '-')}.txt"

    def device_public_key(self) -> bytes:
        """Return the 32 bytes that the gateway registers."""
        seed = bytes.fromhex(self.device_key.read_text("ascii").strip())
        return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()

    def quote_signer(self) -> Address:
        """Return the address of the quote key, for the client to pin."""
        text = self.secret_file("signing_key").read_text("ascii")
        return SigningKey(bytes.fromhex(text.strip())).address

    def is_used(self) -> bool:
        """Whether something was sold from here before."""
        return (self.path / "supplier.json").exists()

    def make_once(self, path: Path) -> str:
        """Return the random text in a file of the home, making it once."""
        _make_once(path, secrets.token_hex(KEY_BYTES))
        return path.read_text("ascii").strip()

    def wallet_key(self) -> bytes:
        """Return the development wallet's key, making keystore and password once.

        The password is random and lies beside the keystore, so scrypt need not be slow.
        """
        password = self.make_once(self.path / "wallet.password")
        if self.keystore.exists():
            return open_keystore(self.keystore, password)
        key = secrets.token_bytes(KEY_BYTES)
        write_keystore(self.keystore, key, password, scrypt_cost=QUICK_SCRYPT)
        return key

    def remember(self, name: str, document: dict[str, object]) -> None:
        """Write a small JSON file (0600), replacing an older one at once."""
        draft = self.path / f".{name}.{secrets.token_hex(8)}"
        write_private(draft, json.dumps(document, indent=2).encode() + b"\n")
        draft.replace(self.path / name)

    def recall(self, name: str) -> dict[str, object]:
        """Return what was remembered, empty when nothing was."""
        try:
            document = json.loads((self.path / name).read_text("utf-8"))
        except FileNotFoundError:
            return {}
        return document if isinstance(document, dict) else {}

    def forget(self, name: str) -> None:
        """Remove what was remembered, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def write_settings(self, environment: dict[str, str]) -> None:
        """Write `settings.env` (0600) for the commands that work on this home's stores."""
        draft = self.path / f".settings.{secrets.token_hex(8)}"
        lines = [f"{name}='{value}'" for name, value in sorted(environment.items())]
        write_private(draft, "\n".join(lines).encode() + b"\n")
        draft.replace(self.path / "settings.env")


def _make_once(path: Path, text: str) -> None:
    if not path.exists():
        write_private(path, text.encode() + b"\n")
