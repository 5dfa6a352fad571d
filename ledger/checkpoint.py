"""Checkpoints of the receipt log, and proofs that travel with one.

Forms: C2SP tlog-checkpoint and tlog-proof.

A checkpoint is a signed note of three lines: origin, size, root. Its root counts only once a
trusted key's signature has been checked: `open_checkpoint` does both.
"""

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from ledger.errors import BadNote, BadProof
from ledger.hashing import DIGEST_BYTES
from ledger.merkle import MAX_TREE_SIZE, LogIndex, TreeHead, verify_inclusion
from ledger.note import (
    MAX_NOTE_BYTES,
    Note,
    NoteSigner,
    VerifierKey,
    from_base64,
    require_name,
    sign_note,
)

PROOF_LINE: Final = "c2sp.org/tlog-proof@v1"
MAX_PROOF_HASHES: Final = 63
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The log of `origin` at one size."""

    origin: str
    head: TreeHead

    def text(self) -> str:
        """The three lines that are signed."""
        root = base64.b64encode(self.head.root).decode()
        return f"{self.origin}\n{self.head.size}\n{root}\n"

    def sign(self, signers: Iterable[NoteSigner]) -> bytes:
        """The checkpoint as a note."""
        return sign_note(self.text(), signers)

    @classmethod
    def read(cls, note: Note) -> Self:
        """What a note claims; believe it only after `Note.signers` has named a trusted key.

        Extension lines are refused: no log of ours writes any.

        Raises:
            BadNote: not three lines of a checkpoint.
        """
        lines = note.text.split("\n")
        if len(lines) != 4:
            raise BadNote("a checkpoint has three lines: origin, size, root")
        origin, size, root = lines[:3]
        return cls(require_name(origin), TreeHead(_number(size, "size"), _hash(root)))


@dataclass(frozen=True, slots=True)
class LogProof:
    """That an entry stands at an index of the log, with the checkpoint that the proof is for.

    `checkpoint` are the note's exact bytes, cosignatures included.
    """

    index: LogIndex
    hashes: tuple[bytes, ...]
    checkpoint: bytes

    def text(self) -> str:
        """The proof in C2SP tlog-proof form."""
        lines = [PROOF_LINE, f"index {self.index}"]
        lines += [base64.b64encode(each).decode() for each in self.hashes]
        return "\n".join(lines) + "\n\n" + self.checkpoint.decode()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The proof that a text writes. Extra data, which nothing authenticates, is refused.

        Raises:
            BadProof: another form.
            BadNote: a hash or number of another form.
        """
        if len(text) > MAX_NOTE_BYTES:
            raise BadProof(f"longer than {MAX_NOTE_BYTES} characters")
        head, separator, checkpoint = text.partition("\n\n")
        first, *rest = head.split("\n")
        if not separator or first != PROOF_LINE or not rest or not rest[0].startswith("index "):
            raise BadProof(f"not {PROOF_LINE} with an index and a checkpoint")
        if len(rest) - 1 > MAX_PROOF_HASHES:
            raise BadProof(f"more than {MAX_PROOF_HASHES} hashes")
        index = _number(rest[0].removeprefix("index "), "index")
        try:
            note = checkpoint.encode()
        except UnicodeEncodeError:
            raise BadProof("a lone surrogate") from None
        return cls(LogIndex(index), tuple(_hash(line) for line in rest[1:]), note)

    def verify(self, leaf: bytes, head: TreeHead) -> None:
        """Check that the entry with this leaf hash is in the log of `head`.

        Raises:
            BadProof: it is not.
        """
        verify_inclusion(leaf, self.index, size=head.size, proof=self.hashes, root=head.root)


def open_checkpoint(
    data: bytes, *, origin: str, keys: Sequence[VerifierKey]
) -> tuple[Checkpoint, tuple[VerifierKey, ...]]:
    """The checkpoint of a log, and which of the known keys signed it.

    Raises:
        BadNote: another form, another log's, or signed by none of these keys.
    """
    note = Note.parse(data)
    checkpoint = Checkpoint.read(note)
    if checkpoint.origin != origin:
        raise BadNote(f"a checkpoint of {checkpoint.origin}, not of {origin}")
    signers = note.signers(keys)
    if not signers:
        raise BadNote("signed by no key that is known")
    return checkpoint, signers


def _number(text: str, what: str) -> int:
    if _NUMBER.fullmatch(text) is None or int(text) > MAX_TREE_SIZE:
        raise BadNote(f"{what}: not a decimal number in range")
    return int(text)


def _hash(text: str) -> bytes:
    raw = from_base64(text)
    if len(raw) != DIGEST_BYTES:
        raise BadNote(f"a hash of {len(raw)} bytes instead of {DIGEST_BYTES}")
    return raw
