"""The device key: an Ed25519 seed in a file that only its owner can read.

The file holds 64 hex digits and a line feed. It is made once, whole or not at all, and never
overwritten: the gateway knows this agent by its public half.
"""

import contextlib
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from supplier_agent.errors import AgentError

_SEED_BYTES = 32
_FILE_BYTES = 2 * _SEED_BYTES + 1


class BadKeyFile(AgentError):
    """The key file is missing, readable by others, or holds no key. Never carries its content."""

    code = "bad-key-file"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class DeviceKey:
    """The agent's key pair. `seed` is the secret and stays out of `repr`."""

    seed: bytes = field(repr=False)

    @property
    def public(self) -> bytes:
        """The 32 raw bytes that the gateway registers."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature (RFC 8032)."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)


def load_key(path: Path) -> DeviceKey:
    """Return the key in `path`.

    Raises:
        BadKeyFile: not a regular file of ours with mode 0600 or stricter, or no key in it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadKeyFile(path, error.strerror or "cannot be opened") from error
    try:
        _require_private(path, os.fstat(descriptor))
        text = os.read(descriptor, _FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    try:
        seed = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise BadKeyFile(path, "holds no key") from None
    if len(seed) != _SEED_BYTES:
        raise BadKeyFile(path, "holds no key")
    return DeviceKey(seed)


def load_or_create_key(path: Path) -> DeviceKey:
    """Return the key in `path`, making it first if nothing is there.

    Two agents that start at once end with the same key: the name is claimed by a hard link of
    the finished file, which only one of them can make.

    Raises:
        BadKeyFile: what is there is no key of ours, or the folder cannot be written.
    """
    if not os.path.lexists(path):
        try:
            _create(path, secrets.token_bytes(_SEED_BYTES))
        except OSError as error:
            raise BadKeyFile(path, error.strerror or "cannot be created") from error
    return load_key(path)


def _require_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise BadKeyFile(path, "not a regular file")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise BadKeyFile(path, f"mode {mode:04o} lets others read it; chmod 600 it")
    if status.st_uid != os.geteuid():
        raise BadKeyFile(path, f"belongs to user {status.st_uid}")


def _create(path: Path, seed: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(seed.hex().encode() + b"\n")
            file.flush()
            os.fsync(descriptor)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
