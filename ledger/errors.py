"""Errors a caller of the ledger is expected to handle.

* LedgerError
  - BadAmount                 text or number that is no amount
  - BadAddress                text that is no address
  - BadSignature              bytes that are no acceptable signature
  - BadPrivateKey             bytes that are no usable key
  - BadLength                 a salt, digest or word of the wrong size
  - MalformedTypedData        an EIP-712 message that breaks a rule, with the field
  - NotCanonical              a value with no RFC 8785 form
  - RecordInconsistent        a usage record whose own figures disagree
  - BadProof                  a Merkle proof that does not prove what it should
  - BadNote                   a signed note of another form, or one that nobody known signed
  - BadEntry                  a log entry, batch header or manifest of another form
  - BadReceipt                a receipt of another form, with the member
  - HoldError                 the books refuse (see the classes)
    - InsufficientFunds, FundsOnHold, DuplicateHold, UnknownHold, HoldResolved, ChargeExceedsHold
"""

from typing import ClassVar
from uuid import UUID


class LedgerError(Exception):
    """Base of every expected ledger failure. Broken invariants are asserts, not LedgerErrors."""

    code: ClassVar[str]
    """Stable identifier for this failure, published in the API reference."""


class BadAmount(LedgerError):
    """Not an amount of the settlement token that the books can hold."""

    code = "bad-amount"

    def __init__(self, given: object, reason: str) -> None:
        shown = repr(given)[:80]
        super().__init__(f"{shown} is not an amount: {reason}")
        self.given = given
        self.reason = reason


class BadAddress(LedgerError):
    """Not an address in lower case or with a right EIP-55 checksum."""

    code = "bad-address"

    def __init__(self, given: object, reason: str) -> None:
        shown = repr(given)[:80]
        super().__init__(f"{shown} is not an address: {reason}")
        self.given = given
        self.reason = reason


class BadSignature(LedgerError):
    """Not a signature that we accept; which rule it breaks is in `reason`."""

    code = "bad-signature"

    def __init__(self, reason: str) -> None:
        super().__init__(f"signature refused: {reason}")
        self.reason = reason


class BadPrivateKey(LedgerError):
    """Not a usable private key. Carries the length only, never the key."""

    code = "bad-private-key"

    def __init__(self, length: int) -> None:
        super().__init__(f"{length} bytes that are not a private key")
        self.length = length


class BadLength(LedgerError):
    """A salt, digest or word of fixed size has another size."""

    code = "bad-length"

    def __init__(self, what: str, *, expected: int, found: int) -> None:
        super().__init__(f"{what} must be {expected} bytes, not {found}")
        self.what = what
        self.expected = expected
        self.found = found


class MalformedTypedData(LedgerError):
    """An EIP-712 message or domain breaks a rule of its wire format."""

    code = "malformed-typed-data"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class NotCanonical(LedgerError):
    """A value has no RFC 8785 form: lone surrogate, integer above 2^53 - 1, infinity."""

    code = "not-canonical"

    def __init__(self, reason: str) -> None:
        super().__init__(f"no canonical JSON form: {reason}")
        self.reason = reason


class RecordInconsistent(LedgerError):
    """A usage record's own figures disagree; `rule` names the one that fails."""

    code = "record-inconsistent"

    def __init__(self, rule: str, *, expected: int, found: int) -> None:
        super().__init__(f"{rule}: expected {expected}, found {found}")
        self.rule = rule
        self.expected = expected
        self.found = found


class BadProof(LedgerError):
    """A Merkle proof does not prove what it should."""

    code = "bad-proof"

    def __init__(self, reason: str) -> None:
        super().__init__(f"proof refused: {reason}")
        self.reason = reason


class BadNote(LedgerError):
    """Not a signed note or key that we accept."""

    code = "bad-note"

    def __init__(self, reason: str) -> None:
        super().__init__(f"note refused: {reason}")
        self.reason = reason


class BadEntry(LedgerError):
    """A log entry, batch header or manifest breaks a rule of its form; `field` names the member."""

    code = "bad-entry"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class BadReceipt(LedgerError):
    """A receipt breaks a rule of its form; `field` names the member."""

    code = "bad-receipt"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class HoldError(LedgerError):
    """Base of what the books refuse about a hold."""


class InsufficientFunds(HoldError):
    """Available and held together are smaller than the hold asked for."""

    code = "insufficient-funds"

    def __init__(self, *, available: int, required: int) -> None:
        super().__init__(f"{_tokens(required)} required, {_tokens(available)} available")
        self.available = available
        self.required = required


class FundsOnHold(HoldError):
    """The money is there, but held by other jobs; it may come back when they end."""

    code = "funds-on-hold"

    def __init__(self, *, available: int, held: int, required: int) -> None:
        super().__init__(
            f"{_tokens(required)} required, {_tokens(available)} available"
            f" and {_tokens(held)} held by open jobs"
        )
        self.available = available
        self.held = held
        self.required = required


class DuplicateHold(HoldError):
    """A hold of this id was placed before."""

    code = "duplicate-hold"

    def __init__(self, hold: UUID) -> None:
        super().__init__(f"hold {hold} exists")
        self.hold = hold


class UnknownHold(HoldError):
    """No hold of this id was ever placed on this wallet."""

    code = "unknown-hold"

    def __init__(self, hold: UUID) -> None:
        super().__init__(f"no hold {hold}")
        self.hold = hold


class HoldResolved(HoldError):
    """The hold already has its one resolution; nothing changes."""

    code = "hold-resolved"

    def __init__(self, hold: UUID, kind: str) -> None:
        super().__init__(f"hold {hold} is already {kind}")
        self.hold = hold
        self.kind = kind


class ChargeExceedsHold(HoldError):
    """A settlement tried to take more than the buyer authorized."""

    code = "charge-exceeds-hold"

    def __init__(self, *, charge: int, hold: int) -> None:
        super().__init__(f"charge of {_tokens(charge)} exceeds the hold of {_tokens(hold)}")
        self.charge = charge
        self.hold = hold


def _tokens(amount: int) -> str:
    from ledger.money import Nano, format_amount  # noqa: PLC0415 -- money raises errors of this module

    return format_amount(Nano(amount))
