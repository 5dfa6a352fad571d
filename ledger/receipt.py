"""A receipt: one JSON file that holds all that its checking needs but whom to trust.

Signed things are carried as the exact text that was signed. `Receipt.parse` checks form only;
`ledger.verify` checks what it says. A receipt of a record that is not in the log yet has no batch.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from ledger.checkpoint import LogProof
from ledger.errors import BadEntry, BadNote, BadProof, BadReceipt
from ledger.merkle import BatchIndex
from ledger.onchain import MAX_CONTRACT_SIGNATURE, Anchor, ContractCheck
from ledger.strict_json import (
    bytes_of,
    integer_of,
    list_of,
    object_of,
    parse_object,
    require_members,
    text_of,
)

FORMAT: Final = "offpeak/receipt@v1"
MAX_RECEIPT_BYTES: Final = 4_000_000
"""The longest request and answer fit; whatever is larger is refused before it is read."""
MAX_BATCH_PROOF: Final = 32
MAX_KEY_ENTRIES: Final = 64
SIGNATURE_BYTES: Final = 65


@dataclass(frozen=True, slots=True)
class SignedMessage:
    """An EIP-712 message in RFC 8785 form, as text, and the 65-byte signature over its digest."""

    message: str
    signature: bytes

    def document(self) -> dict[str, object]:
        """As it stands in the file."""
        return {"message": self.message, "signature": "0x" + self.signature.hex()}

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form."""
        given = object_of(value, field)
        require_members(given, "message", "signature", what=field)
        signature = bytes_of(given["signature"], f"{field}.signature", length=SIGNATURE_BYTES)
        return cls(text_of(given["message"], f"{field}.message"), signature)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A request authorization and its signature: 65 bytes of a key, or what a contract confirmed.

    `contract_check` is there exactly when the payer is a contract wallet; its signature has any
    length up to `MAX_CONTRACT_SIGNATURE`.
    """

    message: str
    signature: bytes
    contract_check: ContractCheck | None = None

    def document(self) -> dict[str, object]:
        """As it stands in the file."""
        shown: dict[str, object] = {
            "message": self.message,
            "signature": "0x" + self.signature.hex(),
        }
        if self.contract_check is not None:
            shown["contract_check"] = self.contract_check.document()
        return shown

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form."""
        given = object_of(value, field)
        if "contract_check" not in given:
            plain = SignedMessage.parse(given, field)
            return cls(plain.message, plain.signature)
        require_members(given, "message", "signature", "contract_check", what=field)
        signature = bytes_of(given["signature"], f"{field}.signature", length=None)
        if len(signature) > MAX_CONTRACT_SIGNATURE:
            raise BadEntry(f"{field}.signature", f"more than {MAX_CONTRACT_SIGNATURE} bytes")
        check = ContractCheck.parse(given["contract_check"], f"{field}.contract_check")
        return cls(text_of(given["message"], f"{field}.message"), signature, check)


@dataclass(frozen=True, slots=True)
class SupplierPart:
    """The agent's statement in RFC 8785 form, its Ed25519 signature, and the agent's key."""

    statement: str
    signature: bytes
    public_key: bytes

    def document(self) -> dict[str, object]:
        """As it stands in the file."""
        return {
            "statement": self.statement,
            "signature": "0x" + self.signature.hex(),
            "public_key": "0x" + self.public_key.hex(),
        }

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form."""
        given = object_of(value, field)
        require_members(given, "statement", "signature", "public_key", what=field)
        return cls(
            text_of(given["statement"], f"{field}.statement"),
            bytes_of(given["signature"], f"{field}.signature", length=64),
            bytes_of(given["public_key"], f"{field}.public_key"),
        )


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Where the record stands: the header's bytes, its place in that batch, the proof of it."""

    header: bytes
    index: BatchIndex
    proof: tuple[bytes, ...]

    def document(self) -> dict[str, object]:
        """As it stands in the file."""
        return {
            "header": self.header.decode(),
            "index": str(self.index),
            "proof": ["0x" + each.hex() for each in self.proof],
        }

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form."""
        given = object_of(value, field)
        require_members(given, "header", "index", "proof", what=field)
        listed = list_of(given["proof"], f"{field}.proof", limit=MAX_BATCH_PROOF)
        return cls(
            text_of(given["header"], f"{field}.header").encode(),
            BatchIndex(integer_of(given["index"], f"{field}.index")),
            tuple(bytes_of(each, f"{field}.proof[{n}]") for n, each in enumerate(listed)),
        )


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key-rotation entry's bytes and the proof that the log holds it."""

    entry: bytes
    log_proof: LogProof

    def document(self) -> dict[str, object]:
        """As it stands in the file."""
        return {"entry": self.entry.decode(), "log_proof": self.log_proof.text()}

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form."""
        given = object_of(value, field)
        require_members(given, "entry", "log_proof", what=field)
        return cls(
            text_of(given["entry"], f"{field}.entry").encode(),
            log_proof_of(given["log_proof"], f"{field}.log_proof"),
        )


@dataclass(frozen=True, slots=True)
class Opening:
    """What the commitments hide, for the payer only: as long as the texts are kept.

    `request` is the RFC 8785 form that was quoted, `request_salt` the buyer's salt.
    """

    request: str
    request_salt: bytes
    content: str | None
    finish_reason: str | None

    def document(self) -> dict[str, object]:
        """As it stands in the file."""
        answer = None
        if self.content is not None:
            answer = {"content": self.content, "finish_reason": self.finish_reason}
        salt = "0x" + self.request_salt.hex()
        return {"request": self.request, "request_salt": salt, "answer": answer}

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form."""
        given = object_of(value, field)
        require_members(given, "request", "request_salt", "answer", what=field)
        content = finish = None
        if given["answer"] is not None:
            answer = object_of(given["answer"], f"{field}.answer")
            require_members(answer, "content", "finish_reason", what=f"{field}.answer")
            content = text_of(answer["content"], f"{field}.answer.content")
            finish = text_of(answer["finish_reason"], f"{field}.answer.finish_reason")
        return cls(
            text_of(given["request"], f"{field}.request"),
            bytes_of(given["request_salt"], f"{field}.request_salt"),
            content,
            finish,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A whole receipt. `batch` and `log_proof` are there together or not at all.

    `supplier` is None where no agent's statement was settled; `opening` where the texts are gone
    or not the reader's. `anchor` is of the checkpoint that the proofs are for, None where that is
    not known to be on chain.
    """

    record: SignedMessage
    quote: SignedMessage
    acceptance: Acceptance
    supplier: SupplierPart | None
    batch: BatchPart | None
    log_proof: LogProof | None
    keys: tuple[KeyEntry, ...]
    opening: Opening | None
    anchor: Anchor | None = None

    def encode(self) -> bytes:
        """The file: indented JSON in UTF-8 with a last line feed."""
        document = {
            "format": FORMAT,
            "record": self.record.document(),
            "quote": self.quote.document(),
            "acceptance": self.acceptance.document(),
            "supplier": None if self.supplier is None else self.supplier.document(),
            "batch": None if self.batch is None else self.batch.document(),
            "log_proof": None if self.log_proof is None else self.log_proof.text(),
            "keys": [each.document() for each in self.keys],
            "anchor": None if self.anchor is None else self.anchor.document(),
            "opening": None if self.opening is None else self.opening.document(),
        }
        return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The receipt that a file holds.

        Raises:
            BadReceipt: too large, or a member missing, unknown or of another form.
        """
        if len(data) > MAX_RECEIPT_BYTES:
            raise BadReceipt("receipt", f"larger than {MAX_RECEIPT_BYTES} bytes")
        try:
            return cls._parse(parse_object(data, what="receipt"))
        except BadEntry as error:
            raise BadReceipt(error.field, error.reason) from None

    @classmethod
    def _parse(cls, given: Mapping[str, object]) -> Self:
        require_members(
            given, "format", "record", "quote", "acceptance", "supplier", "batch", "log_proof",
            "keys", "anchor", "opening", what="receipt",
        )  # fmt: skip
        if given["format"] != FORMAT:
            raise BadEntry("format", f"not {FORMAT}")
        supplier, batch, opening = given["supplier"], given["batch"], given["opening"]
        proof, anchor = given["log_proof"], given["anchor"]
        if (batch is None) != (proof is None):
            raise BadEntry("log_proof", "batch and log_proof must be there together")
        if anchor is not None and batch is None:
            raise BadEntry("anchor", "there without a batch")
        listed = list_of(given["keys"], "keys", limit=MAX_KEY_ENTRIES)
        return cls(
            record=SignedMessage.parse(given["record"], "record"),
            quote=SignedMessage.parse(given["quote"], "quote"),
            acceptance=Acceptance.parse(given["acceptance"], "acceptance"),
            supplier=None if supplier is None else SupplierPart.parse(supplier, "supplier"),
            batch=None if batch is None else BatchPart.parse(batch, "batch"),
            log_proof=None if proof is None else log_proof_of(proof, "log_proof"),
            keys=tuple(KeyEntry.parse(each, f"keys[{n}]") for n, each in enumerate(listed)),
            opening=None if opening is None else Opening.parse(opening, "opening"),
            anchor=None if anchor is None else Anchor.parse(anchor, "anchor"),
        )


def log_proof_of(value: object, field: str) -> LogProof:
    """The proof that a text in C2SP tlog-proof form writes.

    Raises:
        BadEntry: not a text, or of another form.
    """
    try:
        return LogProof.parse(text_of(value, field))
    except (BadNote, BadProof) as error:
        raise BadEntry(field, error.reason) from None
