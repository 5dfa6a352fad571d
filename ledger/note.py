"""Signed notes: text signed by one or more named Ed25519 keys (C2SP signed-note).

A verifier key is written `name+hash+key`: the key's name, its 32-bit id in hex, and in base64 its
type byte with the public key. Type 0x01 signs the text itself; type 0x04 is a witness's
timestamped cosignature of a checkpoint (C2SP tlog-cosignature).
"""

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from ledger.errors import BadNote, BadPrivateKey
from ledger.hashing import sha256

ED25519: Final = 1
COSIGNATURE: Final = 4
MAX_NOTE_BYTES: Final = 1_000_000
MAX_SIGNATURES: Final = 64
MAX_NAME: Final = 255

_ID_BYTES: Final = 4
_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_TIME_BYTES: Final = 8
_LATEST: Final = 2**63 - 1
_VERIFIER_KEY = re.compile(r"([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)")
_SIGNATURE_LINE = re.compile(r"— ([^ ]+) ([A-Za-z0-9+/=]+)")


def require_name(name: str) -> str:
    """A key's name or a log's origin itself.

    Raises:
        BadNote: empty, longer than `MAX_NAME`, or with a space, a `+` or a control character.
    """
    if not 0 < len(name) <= MAX_NAME or "+" in name or not name.isprintable():
        raise BadNote(f"{name[:40]!a} is no key name")
    if any(character.isspace() for character in name):
        raise BadNote(f"{name[:40]!a} is no key name: it has a space")
    return name


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """Whose signature counts: the name, the type of its signatures, the 32-byte public key."""

    name: str
    public_key: bytes
    kind: int = ED25519

    @property
    def id(self) -> bytes:
        """The four bytes by which a signature line names the key."""
        named = self.name.encode() + b"\n" + bytes((self.kind,))
        return sha256(named + self.public_key)[:_ID_BYTES]

    def __str__(self) -> str:
        key = base64.b64encode(bytes((self.kind,)) + self.public_key).decode()
        return f"{self.name}+{self.id.hex()}+{key}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The key that `name+hash+key` writes.

        Raises:
            BadNote: another form, an unknown type, or an id that is not the key's.
        """
        match = _VERIFIER_KEY.fullmatch(text)
        if match is None:
            raise BadNote(f"{text[:60]!a} is not a verifier key (name+hash+key)")
        name, shown_id, encoded = match.groups()
        raw = from_base64(encoded)
        if len(raw) != 1 + _KEY_BYTES or raw[0] not in {ED25519, COSIGNATURE}:
            raise BadNote(f"the key of {name[:40]!a} is not an Ed25519 public key")
        key = cls(require_name(name), raw[1:], raw[0])
        if key.id.hex() != shown_id:
            raise BadNote(f"the id of {name[:40]!a} is not that of its key")
        return key


class NoteSigner:
    """An Ed25519 key with the name it signs by. Its text form shows the verifier key only."""

    def __init__(self, name: str, seed: bytes) -> None:
        """Take the name and the 32-byte seed.

        Raises:
            BadPrivateKey: the seed is not 32 bytes.
            BadNote: the name cannot be one.
        """
        if len(seed) != _KEY_BYTES:
            raise BadPrivateKey(len(seed))
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        public = self._key.public_key().public_bytes_raw()
        self.verifier = VerifierKey(require_name(name), public)

    def __repr__(self) -> str:
        return f"NoteSigner({self.verifier})"

    def line(self, text: str) -> str:
        """The signature line over a text; the same bytes every time (RFC 8032)."""
        signature = self.verifier.id + self._key.sign(text.encode())
        return f"— {self.verifier.name} {base64.b64encode(signature).decode()}\n"


@dataclass(frozen=True, slots=True)
class SignatureLine:
    """One signature as a note carries it: who, which key, and the bytes after the key's id."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A parsed note. `text` ends in a line feed; nobody has checked a signature yet."""

    text: str
    signatures: tuple[SignatureLine, ...]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The note that these bytes are.

        Raises:
            BadNote: too long, not UTF-8, a control character, no text, no signature, or a line
                of another form.
        """
        if len(data) > MAX_NOTE_BYTES:
            raise BadNote(f"longer than {MAX_NOTE_BYTES} bytes")
        try:
            whole = data.decode()
        except UnicodeDecodeError:
            raise BadNote("not UTF-8") from None
        if any(character < " " and character != "\n" for character in whole):
            raise BadNote("a control character")
        body, separator, lines = whole.rpartition("\n\n")
        if not separator or not body or not lines.endswith("\n"):
            raise BadNote("no text, a blank line and signatures")
        listed = lines[:-1].split("\n")
        if len(listed) > MAX_SIGNATURES:
            raise BadNote(f"more than {MAX_SIGNATURES} signatures")
        return cls(body + "\n", tuple(_signature_line(line) for line in listed))

    def signers(self, known: Iterable[VerifierKey]) -> tuple[VerifierKey, ...]:
        """Which of the known keys signed, in the order of the lines; unknown lines are skipped.

        Raises:
            BadNote: a line in the name of a known key is not its signature, or two known keys
                share name and id: whose line it is could not be told.
        """
        by_id: dict[tuple[str, bytes], VerifierKey] = {}
        for key in known:
            if by_id.setdefault((key.name, key.id), key) != key:
                raise BadNote(f"two keys of {key.name} with the id {key.id.hex()}")
        found: list[VerifierKey] = []
        for line in self.signatures:
            signer = by_id.get((line.name, line.key_id))
            if signer is not None and signer not in found:
                _check(signer, line.signature, self.text)
                found.append(signer)
        return tuple(found)


def sign_note(text: str, signers: Iterable[NoteSigner]) -> bytes:
    """The note over a text that ends in a line feed, signed by each in order.

    Raises:
        BadNote: the text does not end in a line feed, or holds a control character.
    """
    if not text.endswith("\n") or any(sign < " " and sign != "\n" for sign in text):
        raise BadNote("a text without a last line feed, or with a control character")
    return (text + "\n" + "".join(signer.line(text) for signer in signers)).encode()


def from_base64(text: str) -> bytes:
    """The bytes that standard, padded base64 writes, in its one form.

    Raises:
        BadNote: any other form.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadNote("not base64") from None
    if base64.b64encode(raw).decode() != text:
        raise BadNote("not base64 in its one form")
    return raw


def _signature_line(line: str) -> SignatureLine:
    match = _SIGNATURE_LINE.fullmatch(line)
    if match is None:
        raise BadNote("a signature line of another form")
    raw = from_base64(match[2])
    if len(raw) <= _ID_BYTES:
        raise BadNote("a signature without bytes")
    return SignatureLine(require_name(match[1]), raw[:_ID_BYTES], raw[_ID_BYTES:])


def _check(key: VerifierKey, signature: bytes, text: str) -> None:
    signed = text.encode()
    if key.kind == COSIGNATURE:
        time = int.from_bytes(signature[:_TIME_BYTES])
        if time > _LATEST:
            raise BadNote(f"a cosignature of {key.name} at a time above 2^63 - 1")
        signature = signature[_TIME_BYTES:]
        signed = f"cosignature/v1\ntime {time}\n".encode() + signed
    if len(signature) != _SIGNATURE_BYTES:
        raise BadNote(f"a signature of {key.name} has {len(signature)} bytes")
    try:
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature, signed)
    except (InvalidSignature, ValueError):
        raise BadNote(f"not a signature of {key.name}") from None
