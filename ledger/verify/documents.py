"""The signed documents inside a receipt, each read from the exact text that was signed."""

from typing import TypeVar
from uuid import UUID

from ledger.encoding import uuid_from_bytes32
from ledger.errors import BadLength, LedgerError, NotCanonical
from ledger.statement import SupplierStatement
from ledger.strict_json import bytes_of, integer_of, parse_canonical, require_members, text_of
from ledger.typed_data import TypedMessage
from ledger.usage import RECORD_VERSION, UsageRecord
from ledger.verify.errors import Refused

Message = TypeVar("Message", bound=TypedMessage)

_STATEMENT_MEMBERS = (
    "lease", "job", "request_digest", "response_digest", "input_tokens",
    "cached_input_tokens", "output_tokens", "finish", "release_fingerprint",
)  # fmt: skip


def read_message(kind: type[Message], text: str) -> Message:
    """The EIP-712 message that a text in RFC 8785 form writes.

    Raises:
        LedgerError: the text or a member of it has another form.
        Refused: it is not the text that the message would be written as.
    """
    message = kind.parse(parse_canonical(utf8(text), what=kind.TYPE.name))
    if message.canonical() != utf8(text):
        raise Refused("an address is not in EIP-55 form or hex digits are not lower case")
    return message


def read_record(text: str) -> UsageRecord:
    """The usage record of a text.

    Raises:
        LedgerError, Refused: another form, or another version.
    """
    record = read_message(UsageRecord, text)
    if record.version != RECORD_VERSION:
        raise Refused(f"version {record.version}, not {RECORD_VERSION}")
    return record


def read_statement(text: str) -> SupplierStatement:
    """The supplier's statement of a text in RFC 8785 form.

    Raises:
        LedgerError: another form.
    """
    given = parse_canonical(utf8(text), what="statement")
    require_members(given, *_STATEMENT_MEMBERS, what="statement")

    def tokens(name: str) -> int:
        return integer_of(given[name], f"statement.{name}")

    return SupplierStatement(
        lease=_uuid(given["lease"], "statement.lease"),
        job=_uuid(given["job"], "statement.job"),
        request_digest=bytes_of(given["request_digest"], "statement.request_digest"),
        response_digest=bytes_of(given["response_digest"], "statement.response_digest"),
        input_tokens=tokens("input_tokens"),
        cached_input_tokens=tokens("cached_input_tokens"),
        output_tokens=tokens("output_tokens"),
        finish=text_of(given["finish"], "statement.finish"),
        release_fingerprint=text_of(given["release_fingerprint"], "statement.release_fingerprint"),
    )


def utf8(text: str) -> bytes:
    """The text's bytes.

    Raises:
        Refused: a lone surrogate has none.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refused("a lone surrogate, which has no bytes") from None


def reason_of(error: LedgerError) -> str:
    """What an expected failure says, on one line."""
    reason = getattr(error, "reason", None)
    field = getattr(error, "field", None)
    if isinstance(error, NotCanonical) or not isinstance(reason, str):
        return str(error)
    return f"{field}: {reason}" if isinstance(field, str) else reason


def _uuid(value: object, field: str) -> UUID:
    text = text_of(value, field)
    try:
        found = UUID(text)
    except ValueError:
        found = None
    if found is None or str(found) != text:
        raise Refused(f"{field}: not a UUID in its one form")
    return found


def uuid_text(word: bytes) -> str:
    """The id that a bytes32 holds: a UUID's text, or 0x and hex digits where it is none."""
    try:
        return str(uuid_from_bytes32(word))
    except BadLength:
        return "0x" + word.hex()
