"""Which keys speak for the log, by its size and not by any clock.

A key-rotation entry is a signed note: the whole table of keys after it, signed by the new
checkpoint key and, but for the first entry, by the old one. Whoever trusts one checkpoint key can
follow the entries from there.

A checkpoint key counts for log sizes from `valid_from` up to but not including `valid_until`; a
record key for batch headers at log indexes in the same half-open range.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from ledger.encoding import Address, canonical_json, checksum_address, parse_address
from ledger.errors import BadAddress, BadEntry, BadNote
from ledger.log_entry import read_signed_text, signed_text
from ledger.merkle import LogIndex
from ledger.note import ED25519, Note, NoteSigner, VerifierKey, sign_note
from ledger.strict_json import (
    integer_of,
    list_of,
    object_of,
    require_members,
    text_of,
)

ROTATION_LINE: Final = "offpeak/key-rotation@v1"
TABLE_VERSION: Final = 1
MAX_KEYS: Final = 64


class KeyRole(StrEnum):
    """What a key signs."""

    CHECKPOINT = "checkpoint"
    RECORD = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKey:
    """A key and where it counts. `key` is a verifier key's text or an address, lower case."""

    role: KeyRole
    key: str
    valid_from: int
    valid_until: int | None = None

    def counts_at(self, place: int) -> bool:
        """Whether it counts at a log size (checkpoint key) or log index (record key)."""
        return self.valid_from <= place and (self.valid_until is None or place < self.valid_until)

    def message(self) -> dict[str, object]:
        """As it travels: decimal strings, addresses in EIP-55 form, null for no end."""
        shown = self.key if self.role is KeyRole.CHECKPOINT else checksum_address(Address(self.key))
        until = None if self.valid_until is None else str(self.valid_until)
        return {"role": self.role, "key": shown, "from": str(self.valid_from), "until": until}


@dataclass(frozen=True, slots=True)
class KeyTable:
    """All keys that ever counted, in the order in which they came."""

    origin: str
    keys: tuple[LogKey, ...]

    def checkpoint_key(self, size: int) -> VerifierKey | None:
        """The one key that signs checkpoints of this size."""
        for each in self.keys:
            if each.role is KeyRole.CHECKPOINT and each.counts_at(size):
                return VerifierKey.parse(each.key)
        return None

    def record_keys(self, index: LogIndex) -> tuple[Address, ...]:
        """The keys whose records may be in a batch whose header is at this index of the log."""
        return tuple(
            Address(each.key)
            for each in self.keys
            if each.role is KeyRole.RECORD and each.counts_at(index)
        )

    def text(self) -> str:
        """The text that a rotation entry signs: its tag, the log's origin, the table."""
        table = canonical_json(
            {"version": str(TABLE_VERSION), "keys": [key.message() for key in self.keys]}
        )
        return signed_text(ROTATION_LINE, self.origin, table)

    def sign(self, signers: Iterable[NoteSigner]) -> bytes:
        """The rotation entry's bytes. The old checkpoint key signs first, then the new one."""
        return sign_note(self.text(), signers)

    @classmethod
    def read(cls, note: Note) -> Self:
        """The table that a note claims; see `follow` for whether to believe it.

        Raises:
            BadEntry: another form.
            BadNote: a key or name of another form.
        """
        origin, given = read_signed_text(note, ROTATION_LINE, what="key-rotation")
        require_members(given, "version", "keys", what="key-rotation")
        if integer_of(given["version"], "key-rotation.version") != TABLE_VERSION:
            raise BadEntry("key-rotation.version", "not 1")
        listed = list_of(given["keys"], "key-rotation.keys", limit=MAX_KEYS)
        keys = tuple(_key(each, f"key-rotation.keys[{n}]") for n, each in enumerate(listed))
        table = cls(origin, keys)
        _require_one_at_a_time(table)
        return table


def follow(
    before: KeyTable | None, entry: bytes, *, index: LogIndex, trusted: Sequence[VerifierKey]
) -> KeyTable:
    """The table after a rotation entry, believed because of who signed it.

    Signers must be the checkpoint key of the next size and, unless it stays the same, the one
    before; when there is no table before, one of `trusted` must be among them. Whoever is no
    longer in force can change nothing.

    Args:
        before: The table in force until then, None at the first entry that is looked at.
        entry: The entry's bytes.
        index: Where it stands in the log.
        trusted: Keys believed from elsewhere.

    Raises:
        BadEntry, BadNote: another form, another log, a table whose last checkpoint key has ended,
            or not signed as it must be.
    """
    note = Note.parse(entry)
    table = KeyTable.read(note)
    new = table.checkpoint_key(index + 1)
    if new is None:
        raise BadEntry("key-rotation", f"names no checkpoint key for size {index + 1}")
    old = None
    if before is not None:
        old = before.checkpoint_key(index)
        if old is None:
            raise BadEntry("key-rotation", f"no key was left that could change it at {index}")
        if before.origin != table.origin:
            raise BadEntry("key-rotation", f"of {table.origin}, not of {before.origin}")
        _require_growth(before, table, index)
    required = {key for key in (old, new) if key is not None}
    signers = note.signers({*required, *trusted})
    if not required <= set(signers):
        raise BadNote("a key rotation that the old and the new checkpoint key have not both signed")
    if before is None and not set(signers) & set(trusted):
        raise BadNote("a key rotation signed by no key that is trusted")
    return table


def _require_one_at_a_time(table: KeyTable) -> None:
    """Each key stands there once; checkpoint keys are the log's own, end to end.

    A gap would leave sizes that nobody may sign, an overlap sizes that two may.
    """
    if len({(each.role, each.key) for each in table.keys}) != len(table.keys):
        raise BadEntry("key-rotation.keys", "one key twice")
    last: LogKey | None = None
    for each in table.keys:
        if each.valid_until is not None and each.valid_until <= each.valid_from:
            raise BadEntry("key-rotation.keys", "a key ends before it begins")
        if each.role is KeyRole.RECORD:
            continue
        if VerifierKey.parse(each.key).name != table.origin:
            raise BadEntry("key-rotation.keys", "a checkpoint key of another log")
        if last is not None and last.valid_until != each.valid_from:
            raise BadEntry("key-rotation.keys", "checkpoint keys with a gap or an overlap")
        last = each


def _require_growth(before: KeyTable, after: KeyTable, index: LogIndex) -> None:
    """No key is forgotten, moved or brought back; an end is set once, and not in the past."""
    if len(after.keys) < len(before.keys):
        raise BadEntry("key-rotation.keys", "a key is missing")
    for was, now in zip(before.keys, after.keys, strict=False):
        if (was.role, was.key, was.valid_from) != (now.role, now.key, now.valid_from):
            raise BadEntry("key-rotation.keys", "a key has changed")
        if was.valid_until != now.valid_until and (
            was.valid_until is not None or now.valid_until is None or now.valid_until <= index
        ):
            raise BadEntry("key-rotation.keys", "an end that was set or is past has changed")
    for new in after.keys[len(before.keys) :]:
        if new.valid_from <= index:
            raise BadEntry("key-rotation.keys", "a new key would count in the past")


def _key(value: object, field: str) -> LogKey:
    given = object_of(value, field)
    require_members(given, "role", "key", "from", "until", what=field)
    key = text_of(given["key"], f"{field}.key")
    role = text_of(given["role"], f"{field}.role")
    if role == KeyRole.CHECKPOINT:
        if VerifierKey.parse(key).kind != ED25519:
            raise BadEntry(f"{field}.key", "not a key that signs notes")
    elif role == KeyRole.RECORD:
        key = _address(key, f"{field}.key")
    else:
        raise BadEntry(f"{field}.role", "neither checkpoint nor record")
    until = given["until"]
    return LogKey(
        role=KeyRole(role),
        key=key,
        valid_from=integer_of(given["from"], f"{field}.from"),
        valid_until=None if until is None else integer_of(until, f"{field}.until"),
    )


def _address(text: str, field: str) -> Address:
    try:
        address = parse_address(text)
    except BadAddress as error:
        raise BadEntry(field, error.reason) from None
    if text != checksum_address(address):
        raise BadEntry(field, "not in EIP-55 form")
    return address
